/* index_test.c - an opened library is the loaded one, at less cost; its index follows the cards and
 * can always be made again.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/test.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    kl_arena *arena;
    kl_str dir, cache;
} place;

static int set_up(void **state) {
    kl_arena *a = kl_arena_new();
    place *p = KL_NEW(a, place);
    kl_str folder;
    kl_error e = {0};
    p->arena = a;
    assert_ok(kli_fs_temp_dir(&folder, a, &e));
    p->dir = kli_fs_join(a, folder.ptr, "library");
    p->cache = kli_fs_join(a, folder.ptr, "cache");
    assert_int_equal(setenv("KLINEAGE_CACHE", p->cache.ptr, 1), 0);
    *state = p;
    return 0;
}

static int tear_down(void **state) {
    place *p = *state;
    kli_fs_remove_tree(kli_fs_dirname(p->arena, p->dir.ptr).ptr);
    kl_arena_free(p->arena);
    return 0;
}

/* ---- cards ------------------------------------------------------------------------------- */

static void put_card(const place *p, const char *name, double gain) {
    kl_error e = {0};
    kl_trial_record r = {.kind = KL_S("birth"),
                         .outcome = KL_S("pass"),
                         .accepted = true,
                         .gain = gain,
                         .surface = KL_S("c"),
                         .platform = KL_S("x86-64-v4/gcc-12")};
    kl_card c = {.name = kl_str_of(name),
                 .description = KL_S("A card."),
                 .action = KL_S("pack_b"),
                 .status = KL_CARD_ADMITTED,
                 .intent = KL_S("Copy panels."),
                 .required = KL_S("source.loops"),
                 .expected_gain = gain};
    kli_names_add(&c.verified.surfaces, p->arena, KL_S("c"));
    kli_names_add(&c.verified.cases, p->arena, KL_S("gemm"));
    kli_card_add_trial(&c, p->arena, &r);
    assert_ok(kli_library_write(p->dir.ptr, &c, &e));
}

static kl_str file_of(const place *p, const char *name) {
    const kl_str folder =
        kli_library_folder(p->arena, p->dir.ptr, KL_CARD_ADMITTED, kl_str_of(name));
    return kli_fs_join(p->arena, folder.ptr, "SKILL.md");
}

static void write_text(const char *path, const char *text) {
    kl_error e = {0};
    assert_ok(kli_fs_write(path, kl_str_of(text), &e));
}

static void set_time(const char *path, time_t seconds) {
    const struct timespec times[2] = {{seconds, 0}, {seconds, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* As if written long ago: what changed just now is read again at each opening. */
static void grow_old(const place *p, const char *const *names, int n) {
    for (int i = 0; i < n; i++) {
        const kl_str skill = file_of(p, names[i]), folder = kli_fs_dirname(p->arena, skill.ptr);
        set_time(skill.ptr, 1000);
        set_time(kli_fs_join(p->arena, folder.ptr, "evidence.json").ptr, 1000);
        set_time(kli_fs_dirname(p->arena, folder.ptr).ptr, 1000);
    }
}

/* In place, of the same length and with the same time. */
static void break_unseen(const place *p, const char *name) {
    const kl_str path = file_of(p, name);
    FILE *f = fopen(path.ptr, "r+");
    assert_non_null(f);
    assert_int_equal(fwrite("+++", 1, 3, f), 3);
    assert_int_equal(fclose(f), 0);
    set_time(path.ptr, 1000);
}

static kl_library *opened(const place *p) {
    kl_library *l;
    kl_error e = {0};
    assert_ok(kl_library_open(&l, p->arena, p->dir.ptr, &e));
    assert_int_equal(l->n_cards, 0);
    assert_non_null(l->index);
    return l;
}

static int retrieved(kl_match **m, const place *p, const kl_library *l) {
    int n;
    kl_traits *t = KL_NEW(p->arena, kl_traits);
    t->at[t->n++] = (kl_feature){.name = KL_S("source.loops"), .value = 1};
    const kl_target target = {
        .case_name = KL_S("gemm"), .surface = KL_S("c"), .platform = KL_S("p"), .traits = t};
    kl_library_retrieve(m, &n, p->arena, l, &target, NULL);
    return n;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void same_matches(const place *p, const kl_library *one, const kl_library *other,
                         const kl_target *t, const kl_retrieve_opts *o) {
    kl_match *a, *b;
    int n, m;
    kl_library_retrieve(&a, &n, p->arena, one, t, o);
    kl_library_retrieve(&b, &m, p->arena, other, t, o);
    assert_int_equal(n, m);
    for (int i = 0; i < n; i++) {
        assert_string_equal(a[i].card->name.ptr, b[i].card->name.ptr);
        assert_string_equal(a[i].card->carrier.ptr, b[i].card->carrier.ptr);
        assert_int_equal(a[i].fit, b[i].fit);
        assert_true(kl_str_eq(a[i].why, b[i].why));
        assert_true(fabs(a[i].expected_log_gain - b[i].expected_log_gain) < 1e-12);
        assert_true(a[i].cost_usd == b[i].cost_usd);
        assert_memory_equal(a[i].similarity, b[i].similarity, sizeof a[i].similarity);
    }
}

static void test_skill_index__says_of_the_shipped_cards_what_reading_them_says(void **state) {
    place *p = *state;
    kl_library *loaded, *index;
    kl_error e = {0};
    static const char *const cases[] = {"gemm", "softmax", "topk", "nothing"}, *const surfaces[] = {
                                                                                   "c", "cuda",
                                                                                   "opencl"};
    assert_ok(kl_library_load(&loaded, p->arena, KL_TEST_ROOT "/library", &e));
    assert_ok(kl_library_open(&index, p->arena, KL_TEST_ROOT "/library", &e));
    assert_string_equal(kl_library_id(loaded, p->arena).ptr, kl_library_id(index, p->arena).ptr);
    assert_int_equal(loaded->n_broken, index->n_broken);
    for (size_t i = 0; i < KL_COUNT(cases) * KL_COUNT(surfaces) * 4; i++) {
        kl_traits traits = {0};
        const kl_target t = {.case_name = kl_str_of(cases[i % KL_COUNT(cases)]),
                             .surface = kl_str_of(surfaces[i / 4 % KL_COUNT(surfaces)]),
                             .platform = i % 2 ? KL_S("x86-64-v4/gcc-12") : KL_S(""),
                             .prior = i % 3 ? KL_S("pack_b") : KL_S(""),
                             .traits = &traits};
        same_matches(p, loaded, index, &t,
                     &(kl_retrieve_opts){.top = (int)(i % 5), .all = i / 12 % 2 == 0});
    }
}

/* What is known of a kernel, for contracts that ask for it. */
static kl_target target_of(const place *p, const char *task_name, const char *file) {
    kl_task *task;
    kl_kernel *kernel;
    kl_error e = {0};
    kl_traits *traits = KL_NEW(p->arena, kl_traits);
    const kl_str folder = kl_arena_printf(p->arena, KL_TEST_ROOT "/tasks/%s", task_name);
    assert_ok(kl_task_load(&task, p->arena, folder.ptr, &e));
    assert_ok(kl_kernel_load(&kernel, p->arena, kli_fs_join(p->arena, folder.ptr, file).ptr,
                             &(kl_kernel_opts){0}, &e));
    kl_traits_of(traits, p->arena, kernel, NULL);
    return (kl_target){.case_name = task->case_name,
                       .surface = kl_str_of(kernel->surface->name),
                       .platform = KL_S("x86-64-v4/gcc-12"),
                       .traits = traits,
                       .facts = kl_facts_of(p->arena, kernel, task, NULL, NULL)};
}

/* Lines that cards share are asked once, in place of contracts: the answers must be the same. */
static int same_refusals(const place *p, const kl_library *loaded, const kl_library *index,
                         const kl_target *t) {
    kl_match *m;
    kli_candidates from;
    int n, refused = 0;
    kli_candidates_of(&from, p->arena, index);
    kli_screen *s = kli_screen_new(p->arena, &from, t);
    kl_library_retrieve(&m, &n, p->arena, loaded, t,
                        &(kl_retrieve_opts){.top = from.n, .all = true});
    for (int i = 0; i < n; i++) {
        int at = 0;
        while (!kl_str_eq(from.at[at].name, m[i].card->name)) at++;
        assert_int_equal(kli_screen_refuses(s, at), m[i].fit == KL_FIT_VIOLATED);
        refused += m[i].fit == KL_FIT_VIOLATED;
    }
    return refused;
}

static void test_skill_index__refuses_what_the_contracts_refuse(void **state) {
    place *p = *state;
    kl_library *loaded, *index;
    kl_error e = {0};
    int refused = 0;
    static const char *const tasks[] = {"gemm", "conv2d",  "fmha",   "gdn",
                                        "topk", "softmax", "stencil"},
                             *const files[] = {"naive.c", "naive.cu", "naive.cl"};
    assert_ok(kl_library_load(&loaded, p->arena, KL_TEST_ROOT "/library", &e));
    assert_ok(kl_library_open(&index, p->arena, KL_TEST_ROOT "/library", &e));
    for (size_t i = 0; i < KL_COUNT(tasks) * KL_COUNT(files); i++) {
        const char *task = tasks[i / KL_COUNT(files)], *file = files[i % KL_COUNT(files)];
        if (!kli_fs_exists(kl_arena_printf(p->arena, KL_TEST_ROOT "/tasks/%s/%s", task, file).ptr))
            continue;
        const kl_target t = target_of(p, task, file);
        refused += same_refusals(p, loaded, index, &t);
        for (int top = 1; top < 9; top++)
            same_matches(p, loaded, index, &t, &(kl_retrieve_opts){.top = top});
    }
    assert_true(refused > 100);
}

static void put_clauses(const place *p, int number, const char *needs, const char *excludes,
                        const char *brings) {
    kl_error e = {0};
    kl_card c = {.name = kl_arena_printf(p->arena, "card-%d", number),
                 .description = KL_S("A card."),
                 .action = KL_S("pack_b"),
                 .status = KL_CARD_ADMITTED,
                 .intent = KL_S("Copy panels.")};
    const char *const texts[] = {needs, excludes, brings};
    kl_str **const lists[] = {&c.needs, &c.excludes, &c.brings};
    int *const counts[] = {&c.n_needs, &c.n_excludes, &c.n_brings};
    for (int i = 0; i < 3; i++)
        for (kl_str word, rest = kl_str_of(texts[i]); kli_next_word(&word, &rest);)
            *KL_PUSH(p->arena, *lists[i], *counts[i]) = word;
    kli_names_add(&c.verified.surfaces, p->arena, number % 4 ? KL_S("c") : KL_S("cuda"));
    kli_names_add(&c.verified.platforms, p->arena, KL_S("x86-64-v4/gcc-12"));
    assert_ok(kli_library_write(p->dir.ptr, &c, &e));
}

/* op.contraction holds, op.window does not, and no fact is called no.fact: a clause that cannot be
 * asked decides nothing, and only what is brought altogether is there already. */
static void test_skill_index__puts_answers_together_as_contracts_do(void **state) {
    place *p = *state;
    kl_library *loaded;
    kl_error e = {0};
    kl_match *m;
    int n, number = 0;
    static const char *const needs[] = {"", "op.contraction no.fact", "op.contraction op.window"},
                             *const excludes[] = {"", "no.fact op.window", "op.contraction"},
                             *const brings[] = {"", "op.contraction no.fact", "no.fact",
                                                "op.contraction op.window",
                                                "op.window op.contraction"};
    for (size_t i = 0; i < 3 * 3 * 5; i++)
        put_clauses(p, number++, needs[i % 3], excludes[i / 3 % 3], brings[i / 9]);
    const kl_target here = target_of(p, "gemm", "naive.c");
    assert_ok(kl_library_load(&loaded, p->arena, p->dir.ptr, &e));
    kl_library *index = opened(p);
    assert_int_equal(same_refusals(p, loaded, index, &here), number - 12);
    for (int top = 1; top < number; top += 3)
        same_matches(p, loaded, index, &here, &(kl_retrieve_opts){.top = top});
    kl_library_retrieve(&m, &n, p->arena, index, &here, &(kl_retrieve_opts){.top = number});
    assert_int_equal(n, 12);
}

static void test_skill_index__follows_the_cards(void **state) {
    place *p = *state;
    kl_match *m;
    put_card(p, "one", 2);
    put_card(p, "two", 3);
    kl_library *l = opened(p);
    assert_int_equal(retrieved(&m, p, l), 2);
    assert_string_equal(m[0].card->name.ptr, "two");
    put_card(p, "one", 9);
    put_card(p, "three", 4);
    kli_fs_remove_tree(kli_fs_dirname(p->arena, file_of(p, "two").ptr).ptr);
    l = opened(p);
    assert_int_equal(retrieved(&m, p, l), 2);
    assert_string_equal(m[0].card->name.ptr, "one");
    assert_string_equal(m[1].card->name.ptr, "three");
    assert_ptr_equal(kl_library_card(l, KL_S("one")), m[0].card);
    assert_null(kl_library_card(l, KL_S("two")));
}

static void test_skill_index__names_what_it_leaves_out(void **state) {
    place *p = *state;
    kl_match *m;
    static const char *const names[] = {"broken", "edited", "sound"};
    for (int i = 0; i < 3; i++) put_card(p, names[i], 2);
    grow_old(p, names, 3);
    kl_library *l = opened(p);
    const kl_str id = kl_library_id(l, p->arena);
    FILE *f = fopen(file_of(p, "edited").ptr, "a");
    assert_true(f && fputs("more\n", f) >= 0 && fclose(f) == 0);
    write_text(file_of(p, "broken").ptr, "no card");
    l = opened(p);
    assert_int_equal(l->n_broken, 1);
    assert_contains(l->broken[0].folder.ptr, "admitted/broken");
    assert_contains(l->broken[0].why.ptr, "frontmatter");
    assert_int_equal(l->edited.n, 1);
    assert_str(l->edited.at[0], "edited");
    assert_int_equal(retrieved(&m, p, l), 1);
    assert_string_not_equal(id.ptr, kl_library_id(l, p->arena).ptr);
}

/* It is the index that is asked: what changes without a trace shows when the card is read. */
static void test_skill_index__serves_as_long_as_no_stamp_changes(void **state) {
    place *p = *state;
    kl_match *m;
    static const char *const names[] = {"one", "two"};
    for (int i = 0; i < 2; i++) put_card(p, names[i], 2);
    grow_old(p, names, 2);
    (void)opened(p);
    break_unseen(p, "two");
    kl_library *l = opened(p);
    assert_int_equal(l->n_broken, 0);
    assert_int_equal(retrieved(&m, p, l), 1);
    assert_string_equal(m[0].card->name.ptr, "one");
}

static void test_skill_index__keeps_cards_for_a_run(void **state) {
    place *p = *state;
    kl_match *m;
    put_card(p, "one", 2);
    kl_library *l = opened(p);
    kl_library_keep(l);
    kli_fs_remove_tree(p->dir.ptr);
    assert_int_equal(retrieved(&m, p, l), 1);
    assert_str(m[0].card->intent, "Copy panels.");
}

static void test_skill_index__of_many_cards_is_brought_up_to_date_by_their_folder(void **state) {
    enum { MANY = 1030 }; /* above WALKED of index.c */
    place *p = *state;
    kl_match *m;
    put_card(p, "card-0", 2);
    const kl_str from = kli_fs_dirname(p->arena, file_of(p, "card-0").ptr);
    for (int i = 1; i < MANY; i++) { /* broken ones, which are known as well */
        const kl_str to = kli_library_folder(p->arena, p->dir.ptr, KL_CARD_ADMITTED,
                                             kl_arena_printf(p->arena, "card-%d", i));
        assert_int_equal(mkdir(to.ptr, 0700), 0);
    }
    set_time(kli_fs_dirname(p->arena, from.ptr).ptr, 1000);
    kl_library *l = opened(p);
    assert_int_equal(l->n_broken, MANY - 1);
    write_text(file_of(p, "card-1").ptr, "still no card");
    set_time(kli_fs_dirname(p->arena, from.ptr).ptr, 1000);
    l = opened(p);
    assert_contains(l->broken[0].why.ptr, "No such file"); /* was not looked at */
    put_card(p, "another", 3); /* whoever puts a card leaves its time on the folder */
    l = opened(p);
    assert_contains(l->broken[0].why.ptr, "frontmatter");
    assert_int_equal(retrieved(&m, p, l), 2);
}

/* The one file of the cache. */
static kl_str index_file_of(const place *p) {
    kl_str *names;
    size_t n;
    kl_error e = {0};
    assert_ok(kli_fs_list(&names, &n, p->arena, p->cache.ptr, &e));
    assert_int_equal(n, 1);
    return kli_fs_join(p->arena, p->cache.ptr, names[0].ptr);
}

static void test_skill_index__is_made_anew_when_it_cannot_be_read(void **state) {
    place *p = *state;
    kl_match *m;
    put_card(p, "one", 2);
    (void)opened(p);
    const kl_str path = index_file_of(p);
    write_text(path.ptr, "SQLite format 3, and then nothing of it");
    kl_library *l = opened(p);
    assert_int_equal(retrieved(&m, p, l), 1);
    assert_true(kli_fs_exists(path.ptr));
    assert_int_equal(truncate(path.ptr, 5000), 0);
    l = opened(p);
    assert_int_equal(retrieved(&m, p, l), 1);
}

static char said[512];
static void take_line(void *ctx, kl_log_level level, const char *line) {
    (void)ctx, (void)level;
    snprintf(said, sizeof said, "%s", line);
}

static void test_skill_index__is_done_without_where_none_can_be_kept(void **state) {
    place *p = *state;
    kl_match *m;
    const kl_monitor listening = {.log = take_line};
    put_card(p, "one", 2);
    write_text(p->cache.ptr, "a file, no folder");
    const kl_monitor *before = kl_monitor_use(&listening);
    kl_library *l = opened(p);
    (void)kl_monitor_use(before);
    assert_contains(said, "no index of the cards can be kept in");
    assert_int_equal(retrieved(&m, p, l), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define EACH(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        EACH(test_skill_index__says_of_the_shipped_cards_what_reading_them_says),
        EACH(test_skill_index__refuses_what_the_contracts_refuse),
        EACH(test_skill_index__puts_answers_together_as_contracts_do),
        EACH(test_skill_index__follows_the_cards),
        EACH(test_skill_index__names_what_it_leaves_out),
        EACH(test_skill_index__serves_as_long_as_no_stamp_changes),
        EACH(test_skill_index__keeps_cards_for_a_run),
        EACH(test_skill_index__of_many_cards_is_brought_up_to_date_by_their_folder),
        EACH(test_skill_index__is_made_anew_when_it_cannot_be_read),
        EACH(test_skill_index__is_done_without_where_none_can_be_kept)};
    return cmocka_run_group_tests_name("skill_index", tests, NULL, NULL);
}
