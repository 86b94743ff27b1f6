/* card_test.c - a card survives its files; what was changed by hand is seen; both generations of
 * the authors' cards can be read. SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/test.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static kl_card sample(kl_arena *a) {
    kl_card c = {.name = KL_S("pack-b-c"),
                 .description = KL_S("Pack B. \"Quoted\": with a colon."),
                 .action = KL_S("pack_b"),
                 .status = KL_CARD_LIFTED,
                 .intent = KL_S("Copy panels of B."),
                 .anchor = KL_S("the loop over n"),
                 .carrier = KL_S("Text.\n\n```\n## Intent of a code line\n<<<<<<< SEARCH\n```"),
                 .effect = KL_S("faster"),
                 .risks = KL_S("- seen: wrong"),
                 .required = KL_S("source.vector_types"),
                 .provides = KL_S("source.buffers+"),
                 .patch = KL_S("<<<<<<< SEARCH\na\n"),
                 .lineages = KL_S("abc"),
                 .expected_gain = 1.25};
    c.n_pre = kli_predicates_parse(&c.pre, a,
                                   KL_S("- data: [dtype == float32] - only floats\n- storage: "
                                        "contiguous\nnoise\n- hardware: [simd_bits >= 256]"));
    kli_names_add(&c.verified.cases, a, KL_S("gemm"));
    kli_names_add(&c.verified.platforms, a, KL_S("x86-64-v4/gcc-12"));
    kli_names_add(&c.verified.surfaces, a, KL_S("c"));
    kl_trial_record r = {.kind = KL_S("birth"),
                         .task = KL_S("gemm"),
                         .start_hash = KL_S("s"),
                         .accepted = true,
                         .gain = 1.25,
                         .low = 1.2,
                         .high = 1.3,
                         .surface = KL_S("c"),
                         .platform = KL_S("x86-64-v4/gcc-12")};
    kli_card_add_trial(&c, a, &r);
    return c;
}

static void test_skill_card__survives_its_files(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str dir;
    kl_library *l;
    kl_card c = sample(a);
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    assert_ok(kl_library_put(dir.ptr, &c, &e));
    assert_ok(kl_library_load(&l, a, dir.ptr, &e));
    assert_int_equal(l->n_cards, 1);
    assert_int_equal(l->n_broken, 0);
    const kl_card *back = &l->cards[0];
    assert_str(back->intent, "Copy panels of B.");
    assert_str(back->description, "Pack B. \"Quoted\": with a colon.");
    assert_str(back->provides, "source.buffers+");
    assert_str(back->verified.platforms.at[0], "x86-64-v4/gcc-12");
    assert_str(back->patch, "<<<<<<< SEARCH\na\n");
    assert_int_equal(back->n_pre, 3);
    assert_str(back->pre[0].value, "float32");
    assert_str(back->pre[1].prose, "contiguous");
    assert_int_equal(back->n_trials, 1);
    assert_true(back->trials[0].gain > 1.24 && back->trials[0].gain < 1.26);
    assert_false(back->edited);
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(a);
}

static void test_skill_card__an_edit_by_hand_is_seen(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str dir, text, path;
    kl_library *l;
    kl_card c = sample(a);
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    assert_ok(kl_library_put(dir.ptr, &c, &e));
    path = kli_fs_join(a, dir.ptr, "lifted/pack-b-c/SKILL.md");
    assert_ok(kli_fs_read(&text, a, path.ptr, KL_MAX_CARD_BYTES, &e));
    assert_ok(kli_fs_write(path.ptr, kl_arena_printf(a, "%.*s\nmore\n", KL_STR_ARG(text)), &e));
    assert_ok(kl_library_load(&l, a, dir.ptr, &e));
    assert_int_equal(l->n_cards, 1);
    assert_true(l->cards[0].edited);
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(a);
}

static void test_skill_library__only_admit_writes_admitted(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_card c = sample(a);
    c.status = KL_CARD_ADMITTED;
    assert_err(KL_EINVAL, kl_library_put("nowhere", &c, &e));
    kl_arena_free(a);
}

/* Import, or a lift that began before the card was admitted. */
static void test_skill_library__a_candidate_does_not_take_an_admitted_cards_place(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str dir;
    kl_library *l;
    kl_card c = sample(a);
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    c.status = KL_CARD_ADMITTED;
    assert_ok(kli_library_write(dir.ptr, &c, &e));
    c.status = KL_CARD_LIFTED;
    assert_err(KL_EINVAL, kl_library_put(dir.ptr, &c, &e));
    assert_ok(kl_library_load(&l, a, dir.ptr, &e));
    assert_int_equal(l->n_cards, 1);
    assert_int_equal(l->cards[0].status, KL_CARD_ADMITTED);
    c.status = KL_CARD_RETIRED;
    assert_ok(kl_library_put(dir.ptr, &c, &e));
    assert_ok(kl_library_load(&l, a, dir.ptr, &e));
    assert_int_equal(l->cards[0].status, KL_CARD_RETIRED);
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(a);
}

/* As kill -9 leaves it between the two halves of a write. */
static void test_skill_library__a_card_in_two_folders_is_the_newer_one(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str dir, other;
    kl_library *l;
    kl_card c = sample(a);
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    assert_ok(kli_fs_temp_dir(&other, a, &e));
    c.status = KL_CARD_LIFTED;
    assert_ok(kli_library_write(dir.ptr, &c, &e));
    c.status = KL_CARD_TRIAL;
    assert_ok(kli_library_write(other.ptr, &c, &e));
    const char *trial = kl_card_status_name(KL_CARD_TRIAL);
    assert_int_equal(
        rename(kli_fs_join(a, other.ptr, trial).ptr, kli_fs_join(a, dir.ptr, trial).ptr), 0);
    assert_ok(kl_library_load(&l, a, dir.ptr, &e));
    assert_int_equal(l->n_cards, 1);
    assert_int_equal(l->cards[0].status, KL_CARD_TRIAL);
    const kl_str lifted = kli_library_folder(a, dir.ptr, KL_CARD_LIFTED, c.name);
    const struct timespec later[2] = {{.tv_sec = time(NULL) + 9}, {.tv_sec = time(NULL) + 9}};
    assert_int_equal(utimensat(AT_FDCWD, kli_fs_join(a, lifted.ptr, "SKILL.md").ptr, later, 0), 0);
    assert_ok(kl_library_load(&l, a, dir.ptr, &e));
    assert_int_equal(l->n_cards, 1);
    assert_int_equal(l->cards[0].status, KL_CARD_LIFTED);
    kli_fs_remove_tree(dir.ptr);
    kli_fs_remove_tree(other.ptr);
    kl_arena_free(a);
}

static void test_skill_library__writes_nothing_that_it_could_not_read(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str dir;
    kl_library *l;
    kl_card c = sample(a);
    char *many = KL_ARRAY(a, char, KL_MAX_CARD_BYTES + 1);
    memset(many, 'x', KL_MAX_CARD_BYTES);
    c.intent = kl_str_of(many);
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    assert_err(KL_ELIMIT, kl_library_put(dir.ptr, &c, &e));
    assert_ok(kl_library_load(&l, a, dir.ptr, &e));
    assert_int_equal(l->n_cards + l->n_broken, 0);
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(a);
}

static void test_skill_library__has_room_for_as_many_as_there_are(void **state) {
    (void)state;
    enum { MANY = 4200 };
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str dir;
    kl_library *l;
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    for (int i = 0; i < MANY; i++)
        assert_ok(kli_fs_mkdirs(kl_arena_printf(a, "%s/lifted/c%d", dir.ptr, i).ptr, &e));
    kl_card c = sample(a);
    assert_ok(kl_library_put(dir.ptr, &c, &e));
    assert_ok(kl_library_load(&l, a, dir.ptr, &e));
    assert_int_equal(l->n_broken, MANY); /* folders without a card, each named */
    assert_int_equal(l->n_cards, 1);
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(a);
}

static void test_skill_card__counts_are_the_sum_of_its_trials(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_buf skill = {0}, evidence = {0};
    kl_card c = sample(a);
    kl_trial_record good = {.kind = KL_S("admit"),
                            .held_out = true,
                            .accepted = true,
                            .result_hash = KL_S("r"),
                            .outcome = KL_S("pass"),
                            .gain = 2,
                            .low = 1.9,
                            .high = 2.1,
                            .spent_microusd = 70},
                    none = {.kind = KL_S("admit"), .held_out = true, .spent_microusd = 5},
                    noise = good;
    noise.accepted = false;
    noise.noise = 0.6;
    noise.outcome = KL_S("undecided");
    noise.spent_microusd = 0;
    kli_card_add_trial(&c, a, &good);
    kli_card_add_trial(&c, a, &none);
    kli_card_add_trial(&c, a, &noise);
    kl_card_render(&c, &skill, &evidence);
    json_t *o = json_loads(evidence.ptr, 0, NULL), *counts = json_object_get(o, "counts");
    assert_int_equal(json_integer_value(json_object_get(counts, "attempted")),
                     3); /* the birth was no attempt to apply it */
    assert_int_equal(json_integer_value(json_object_get(counts, "undecided")), 1);
    assert_int_equal(json_integer_value(json_object_get(counts, "correct")), 2);
    assert_int_equal(json_integer_value(json_object_get(counts, "improved")), 1);
    assert_int_equal(json_integer_value(json_object_get(counts, "spent_microusd")), 75);
    json_decref(o);
    kl_buf_fini(&skill);
    kl_buf_fini(&evidence);
    kl_arena_free(a);
}

/* As cards were written before a floor was kept: decided by the interval alone, and said so by the
 * floor of 0. */
static void test_skill_card__a_trial_without_a_floor_is_decided_by_its_interval(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_card c = {0};
    kl_str json = KL_S("{\"schema\": \"klineage/card-evidence\", \"version\": 1, \"trials\": ["
                       "{\"outcome\": \"pass\", \"accepted\": true, \"gain\": 1.05, \"low\": 1.02, "
                       "\"high\": 1.08},"
                       "{\"outcome\": \"pass\", \"accepted\": true, \"gain\": 1.05, \"low\": "
                       "1.005, \"high\": 1.08},"
                       "{\"outcome\": \"pass\", \"accepted\": true, \"gain\": 1.05, \"low\": 1.02, "
                       "\"high\": 1.08, "
                       "\"floor\": 0.02}]}");
    assert_ok(kli_evidence_parse(&c, a, json, KL_S("evidence.json"), &e));
    assert_str(c.trials[0].call, "faster");
    assert_int_equal(kl_trial_call(&c.trials[0]), KL_DECISION_FASTER);
    assert_int_equal(kl_trial_call(&c.trials[1]), KL_DECISION_SAME);
    assert_int_equal(kl_trial_call(&c.trials[2]),
                     KL_DECISION_SAME); /* 2 % x 2 above 1 is not cleared */
    kl_arena_free(a);
}

/* ---- judged again ------------------------------------------------------------------------ */

static kl_trial_record accepted(const char *kind, double low, double noise, const char *receipt) {
    return (kl_trial_record){.kind = kl_str_of(kind),
                             .held_out = strcmp(kind, "admit") == 0,
                             .accepted = true,
                             .outcome = KL_S("pass"),
                             .gain = low + 0.01,
                             .low = low,
                             .high = low + 0.02,
                             .noise = noise,
                             .receipt = kl_str_of(receipt)};
}

/* An admitted card in `dir` with these trials, and what lies beside its lineages: a verdict of
 * receipt r1 with a floor of 5 %. */
static void put_judged(kl_arena *a, const char *dir, const kl_trial_record *trials, int n) {
    kl_error e = {0};
    kl_card c = sample(a);
    c.n_trials = 0;
    for (int i = 0; i < n; i++) kli_card_add_trial(&c, a, &trials[i]);
    c.status = KL_CARD_ADMITTED;
    assert_ok(kli_library_write(dir, &c, &e));
    assert_ok(kli_fs_mkdirs(kli_fs_join(a, dir, "lineages").ptr, &e));
    assert_ok(kli_fs_write(kli_fs_join(a, dir, "lineages/x.evidence.jsonl").ptr,
                           KL_S("{\"key\": \"k\", \"verdict\": {\"receipt\": \"r1\", \"time\": "
                                "{\"vs\": [{\"floor\": 0.05}]}}}\n"
                                "{\"key\": \"l\", \"verdict\": {\"receipt\": \"r2\"}}\n"),
                           &e));
}

static void judge(kl_card_judgement *out, kl_library **l, kl_arena *a, const char *dir) {
    kl_error e = {0};
    kl_noise_records *noises;
    assert_ok(kl_library_load(l, a, dir, &e));
    assert_int_equal((*l)->n_cards, 1);
    assert_ok(kl_noise_records_load(&noises, a, dir, &e));
    kl_card_judge(out, a, &(*l)->cards[0], noises);
}

static void test_skill_judge__the_noise_of_the_run_decides(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str dir;
    kl_library *l;
    kl_card_judgement j;
    const kl_trial_record trials[] = {
        accepted("birth", 1.08, 0, "r1"),    /* 5 % x 2 are not cleared */
        accepted("birth", 1.08, 0.01, "r1"), /* its own floor is nearer */
        accepted("admit", 1.08, 0, "r2")};   /* none is known: the interval alone */
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    put_judged(a, dir.ptr, trials, 3);
    judge(&j, &l, a, dir.ptr);
    assert_int_equal(j.n, 3);
    assert_int_equal(j.stand, 2);
    assert_int_equal(j.unknown, 1);
    assert_int_equal(j.held_out_stand, 1);
    assert_str(j.trials[0].call, "same");
    assert_true(j.trials[0].noise > 0.049 && j.trials[0].noise < 0.051);
    assert_false(j.falls);
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(a);
}

static void test_skill_judge__a_card_of_which_nothing_stands_is_retired(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str dir;
    kl_library *l;
    kl_card_judgement j;
    kl_trial_record trials[] = {accepted("birth", 1.08, 0, "r1"), accepted("admit", 1.005, 0, ""),
                                accepted("admit", 1.5, 0, "")};
    trials[2].accepted = false; /* it may be fast; nobody rests on it */
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    put_judged(a, dir.ptr, trials, 3);
    judge(&j, &l, a, dir.ptr);
    assert_true(j.falls);
    assert_ok(kl_card_retire(dir.ptr, a, &j, &e));
    judge(&j, &l, a, dir.ptr);
    assert_int_equal(l->cards[0].status, KL_CARD_RETIRED);
    assert_false(l->cards[0].edited);
    assert_false(j.falls); /* once is enough */
    assert_true(l->cards[0].trials[0].noise > 0.049);
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(a);
}

static void test_skill_library__names_what_is_broken(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str dir;
    kl_library *l;
    kl_card c = sample(a);
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    assert_ok(kl_library_put(dir.ptr, &c, &e));
    assert_ok(kli_fs_mkdirs(kli_fs_join(a, dir.ptr, "admitted/x").ptr, &e));
    assert_ok(kli_fs_write(kli_fs_join(a, dir.ptr, "admitted/x/SKILL.md").ptr,
                           KL_S("---\nname: [\n---\n"), &e));
    kl_str whole;
    assert_ok(kli_fs_mkdirs(kli_fs_join(a, dir.ptr, "admitted/pack-b-c").ptr, &e));
    assert_ok(kli_fs_read(&whole, a, kli_fs_join(a, dir.ptr, "lifted/pack-b-c/SKILL.md").ptr,
                          KL_MAX_CARD_BYTES, &e));
    assert_ok(kli_fs_write(kli_fs_join(a, dir.ptr, "admitted/pack-b-c/SKILL.md").ptr, whole, &e));
    assert_ok(kli_fs_read(&whole, a, kli_fs_join(a, dir.ptr, "lifted/pack-b-c/evidence.json").ptr,
                          KL_MAX_JSON_BYTES, &e));
    assert_ok(
        kli_fs_write(kli_fs_join(a, dir.ptr, "admitted/pack-b-c/evidence.json").ptr, whole, &e));
    assert_ok(kl_library_load(&l, a, dir.ptr, &e));
    assert_int_equal(l->n_cards, 1); /* the one that lies where it says */
    assert_int_equal(l->n_broken, 2);
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(a);
}

/* A card may come from anybody, and stderr is a terminal: what is wrong with it is said by us, as
 * an error. */
static void test_skill_card__a_broken_one_writes_nothing_by_itself(void **state) {
    (void)state;
    kl_error e = {0};
    struct fy_document *d = NULL;
    char said[64];
    int kept = dup(STDERR_FILENO), listening = memfd_create("stderr", 0);
    fflush(stderr);
    dup2(listening, STDERR_FILENO);
    kl_err err = kli_yaml_open(&d, KL_S("name: [\n\033[2J"), "SKILL.md", &e);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    assert_int_equal(pread(listening, said, sizeof said, 0), 0);
    close(kept);
    close(listening);
    assert_int_equal(err, KL_EPARSE);
}

static void import_text(kl_card *c, kl_arena *a, const char *name, const char *text) {
    kl_error e = {0};
    kl_str dir;
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    kl_str path = kli_fs_join(a, dir.ptr, name);
    assert_ok(kli_fs_write(path.ptr, kl_str_of(text), &e));
    kl_card *made;
    assert_ok(kl_card_import(&made, a, path.ptr, &e));
    *c = *made;
    kli_fs_remove_tree(dir.ptr);
}

static void test_skill_import__the_first_generation(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_card c;
    import_text(
        &c, a, "one.json",
        "{\"skill_id\": \"gemm.tma_load\", \"intent\": \"load by TMA\", \"carrier\": \"code\", "
        "\"precondition\": [\"Layout: aligned\"],"
        " \"risk\": [\"hang\"], \"scope\": {\"cases\": [\"gemm\"], \"languages\": [\"cuda\"]}}");
    assert_str(c.name, "gemm-tma-load");
    assert_str(c.action, "tma_load");
    assert_int_equal(c.status, KL_CARD_LIFTED);
    assert_int_equal(c.n_trials, 0);
    assert_int_equal(c.verified.cases.n, 0);
    assert_str(c.declared.cases.at[0], "gemm");
    assert_int_equal(c.pre[0].kind, KL_PRE_LAYOUT);
    assert_str(c.pre[0].prose, "aligned");
    assert_contains(c.origin.ptr, "gemm.tma_load ");
    kl_arena_free(a);
}

/* What they require by names of features is required by traits where one of ours is its sign. */
static void test_skill_import__the_contract_of_the_first_generation(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_card c;
    import_text(
        &c, a, "one.json",
        "{\"skill_id\": \"rows.step-4\", \"intent\": \"sum by shuffles\", \"carrier\": \"a "
        "volatile "
        "helper goes\", \"contract\": {\"requires\": [{\"locus\": \"row\", \"name\": "
        "\"vectorize_global\"}, {\"locus\": \"row\", \"name\": \"no_such_thing\"}], "
        "\"conflicts\": [{\"name\": \"tma_load\"}]}, \"evidence\": [{\"action_category\": "
        "\"warp_shuffle_reduce\"}], \"scope\": {\"cases\": [\"*\"], \"languages\": [\"*\"], "
        "\"platforms\": [\"*\"], \"prior_actions\": [\"coalesce\"]}}");
    assert_str(c.action, "warp_shuffle_reduce");
    assert_true(kl_str_ends(c.provides, KL_S("+")));
    assert_true(c.required.len > 0 && !kli_words_have(c.required, KL_S("no_such_thing")));
    assert_int_equal(c.n_pre, 3);
    assert_str(c.pre[1].prose, "requires no_such_thing at row");
    assert_str(c.pre[2].prose, "conflicts with tma_load");
    assert_int_equal(c.declared.cases.n + c.declared.surfaces.n + c.declared.platforms.n, 0);
    assert_str(c.declared.prior.at[0], "coalesce");
    assert_str(c.flags, "undoes-volatile");
    kl_arena_free(a);
}

static kl_card lent(kl_arena *a, const kl_library *l, const char *id, const char *language) {
    kl_card c;
    import_text(&c, a, "one.json",
                kl_arena_printf(a,
                                "{\"skill_id\": \"x.%s\", \"intent\": \"i\", \"scope\": "
                                "{\"languages\": [\"%s\"]}}",
                                id, language)
                    .ptr);
    kl_card_lend_contract(&c, a, l);
    return c;
}

/* A candidate with no contract would fit everything: one that was learned here is lent to it. */
static void test_skill_import__a_contract_is_lent_by_a_card_of_the_same_action(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_library *l;
    assert_ok(kl_library_load(&l, a, KL_TEST_ROOT "/library", &e));
    const kl_card *own = kl_library_card(l, KL_S("tma-load-cuda"));
    kl_card c = lent(a, l, "tma_load", "cuda");
    assert_int_equal(c.n_needs, own->n_needs);
    assert_int_equal(c.n_brings, own->n_brings);
    assert_contains(c.verification.ptr, "that of tma-load-cuda");
    c = lent(a, l, "winograd", "cuda");
    assert_int_equal(c.n_needs, 1);
    assert_str(c.needs[0], "op.window and op.contraction");
    assert_int_equal(kl_card_faults(a, &c).len, 0);
    assert_int_equal(lent(a, l, "tma_load", "c").n_needs, 0); /* none of that surface */
    assert_int_equal(lent(a, l, "no-such-thing", "cuda").n_needs, 0);
    assert_str(lent(a, NULL, "warp_scan", "cuda").needs[0], "op.recurrence or op.selection");
    kl_arena_free(a);
}

/* A card is handed on as one object too, its body in it. */
static void test_skill_import__the_second_generation_as_json(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_card c;
    import_text(
        &c, a, "one.json",
        "{\"skill_id\": \"rows.online-softmax\", \"intent\": \"one pass\", "
        "\"preconditions\": [\"Storage: rows in registers\"], \"scope\": {\"cases\": "
        "[\"rows\"], \"languages\": [\"cuda\"], \"platforms\": [\"nvidia-sm90a-cuda13\"]}, "
        "\"body\": \"# Overview\\n\\nOne pass.\\n\\n# Code Change Snippet\\n\\nIn `row.cuh`."
        "\\n\\n## Before\\n\\n```cuda\\na();\\n```\\n\\n## After\\n\\n```cuda\\nb();\\n```\\n\"}");
    assert_str(c.action, "one_pass_online");
    assert_int_equal(c.pre[0].kind, KL_PRE_STORAGE);
    assert_str(c.pre[1].value, "cuda");
    assert_str(c.declared.platforms.at[0], "nvidia-sm90a/cuda-13");
    assert_str(c.anchor, "In `row.cuh`.");
    assert_contains(c.carrier.ptr, "One pass.");
    assert_contains(c.patch.ptr, "SEARCH\na();");
    assert_int_equal(c.flags.len, 0);
    kl_arena_free(a);
}

/* In the release's form, written for this test. */
#define THEIRS(id, before, after)                                                                  \
    "---\nskill_id: " id "\nintent: Sum rows by shuffles.\npreconditions:\n"                       \
    "- 'Data types: floats, in any order.'\n- 'Hardware: lanes can shuffle.'\n"                    \
    "scope:\n  cases:\n  - rows\n  languages:\n  - cuda\n  platforms:\n  - nvidia-sm90a-cuda13\n"  \
    "---\n\n# Overview\n\nSum in registers.\n\n## Order\n\nAny.\n\n# Precondition\n\n- Data "      \
    "types: "                                                                                      \
    "floats.\n\n# Scope\n\n- Cases: rows\n\n# Code Change Snippet\n\nReplace `sum` in "            \
    "`row.cuh`.\n\n"                                                                               \
    "## Before\n\n```cuda\n" before "```\n\n## After\n\n```cuda\n" after "```\n"

static void test_skill_import__keeps_what_a_machine_can_use(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_card c;
    kl_error e = {0};
    kl_proposal p;
    kl_str made;
    import_text(&c, a, "SKILL.md",
                THEIRS("fmha.row-warp-shuffle-sums", "sum(x);\n", "shuffle(x);\n"));
    assert_str(c.action, "warp_shuffle_reduce");
    assert_int_equal(c.n_pre, 3);
    assert_int_equal(c.pre[0].kind, KL_PRE_DATA);
    assert_str(c.pre[0].prose, "floats, in any order.");
    assert_int_equal(c.pre[1].kind, KL_PRE_HARDWARE);
    assert_str(c.pre[2].fact, "language");
    assert_str(c.pre[2].value, "cuda");
    assert_str(c.declared.platforms.at[0], "nvidia-sm90a/cuda-13");
    assert_str(c.anchor, "Replace `sum` in `row.cuh`.");
    assert_contains(c.carrier.ptr, "**Order**");
    assert_contains(c.carrier.ptr, "shuffle(x);");
    assert_null(strstr(c.carrier.ptr, "Cases: rows"));
    assert_null(strstr(c.carrier.ptr, "- Data types"));
    assert_true(c.provides.len > 0 && kl_str_ends(c.provides, KL_S("+")));
    assert_int_equal(c.flags.len, 0);
    assert_ok(kl_proposal_parse(&p, a, c.patch, kl_surface_by_name(KL_S("cuda")), &e));
    assert_ok(kl_proposal_apply(&made, a, KL_S("a();\nsum(x);\nb();\n"), &p, &e));
    assert_str(made, "a();\nshuffle(x);\nb();\n");
    kl_arena_free(a);
}

static void test_skill_import__the_mapping_of_kinds(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_card c;
    import_text(&c, a, "SKILL.md",
                "---\nskill_id: fmha.warp_specialize\nintent: split producer and "
                "consumer\npreconditions:\n  Hardware: "
                "[sm90a]\n"
                "scope:\n  cases: [fmha]\n---\n# Overview\ntext\n");
    assert_str(c.action, "warp_specialize");
    assert_int_equal(c.n_pre, 1);
    assert_int_equal(c.pre[0].kind, KL_PRE_HARDWARE);
    import_text(&c, a, "SKILL.md",
                "---\nskill_id: x.tma-descriptor-prefetch\nintent: i\n---\n# Precondition\n\n"
                "- Storage: a descriptor\n  in memory\n- Pipeline: early\n");
    assert_str(c.action, "other:tma_descriptor_prefetch"); /* no data is prefetched */
    assert_int_equal(c.n_pre, 2);
    assert_int_equal(c.pre[0].kind, KL_PRE_STORAGE);
    assert_str(c.pre[0].prose, "a descriptor in memory");
    kl_arena_free(a);
}

static void test_skill_import__flags_what_undoes_a_volatile(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_card c;
    import_text(&c, a, "SKILL.md", THEIRS("x.wide", "volatile float *p = q;\n", "float *p = q;\n"));
    assert_str(c.flags, "undoes-volatile");
    import_text(&c, a, "SKILL.md",
                THEIRS("x.hint", "asm volatile(\"ld\");\n", "asm volatile(\"ld.hint\");\n"));
    assert_int_equal(c.flags.len, 0);
    import_text(
        &c, a, "SKILL.md",
        "---\nskill_id: x.keep\nintent: Keep a factor.\n---\n# Overview\n\nLoads of the helper "
        "are\nVolatile, so that nothing is kept.\n\n# Code Change Snippet\n\n## Before\n\n"
        "```cuda\na(load(p));\n```\n\n## After\n\n```cuda\na(p[0]);\n```\n");
    assert_str(c.flags, "undoes-volatile"); /* its excerpt does not show it */
    import_text(&c, a, "SKILL.md", THEIRS("x.host", "f<<<1, 2>>>(p);\n", "f<<<2, 1>>>(p);\n"));
    assert_str(c.flags, "host-code");
    kl_arena_free(a);
}

/* Two cards with one id stay two, with names that do not depend on each other's order; what cannot
 * be read is told and keeps nothing else. */
static void test_skill_import__a_folder(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str dir;
    kl_imported *all;
    kl_card *read;
    int n;
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    const char *texts[] = {THEIRS("x.same", "a\n", "b\n"), THEIRS("x.same", "a\n", "c\n"),
                           "---\nname: no-card\n---\n", THEIRS("x.other", "a\n", "d\n")};
    for (int i = 0; i < 4; i++) {
        const char *folder = kl_arena_printf(a, "%s/card-%d", dir.ptr, i).ptr;
        assert_ok(kli_fs_mkdirs(folder, &e));
        assert_ok(kli_fs_write(kli_fs_join(a, folder, "SKILL.md").ptr, kl_str_of(texts[i]), &e));
    }
    assert_ok(kli_fs_mkdirs(kli_fs_join(a, dir.ptr, "notes").ptr, &e));
    assert_ok(kl_cards_import(&all, &n, a, dir.ptr, &e));
    assert_int_equal(n, 4);
    assert_true(kl_str_starts(all[0].card->name, KL_S("x-same-")));
    assert_true(kl_str_starts(all[1].card->name, KL_S("x-same-")));
    assert_false(kl_str_eq(all[0].card->name, all[1].card->name));
    assert_int_equal(all[2].error.code, KL_EPARSE);
    assert_str(all[3].card->name, "x-other");
    assert_ok(kl_library_put(dir.ptr, all[0].card, &e));
    assert_ok(kl_card_load(
        &read, a, kli_library_folder(a, dir.ptr, KL_CARD_LIFTED, all[0].card->name).ptr, &e));
    assert_str(read->origin, all[0].card->origin.ptr);
    assert_contains(read->origin.ptr, "x.same card-0/SKILL.md sha256:");
    assert_err(KL_ENOENT, kl_cards_import(&all, &n, a, kli_fs_join(a, dir.ptr, "notes").ptr, &e));
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(a);
}

/* ---- contract ---------------------------------------------------------------------------- */

static void fits(const char *traits_json, const char *dtype, int64_t simd_bits, kl_fit expected) {
    kl_arena *a = kl_arena_new();
    kl_traits t;
    kl_str why = {0};
    kl_card c = sample(a);
    json_t *o = json_loads(traits_json, 0, NULL);
    kl_traits_parse(&t, a, o);
    kl_target target = {.case_name = KL_S("gemm"),
                        .surface = KL_S("c"),
                        .platform = KL_S("riscv64/gcc-12"),
                        .dtype = kl_str_of(dtype),
                        .traits = &t,
                        .simd_bits = simd_bits};
    kl_fit fit = kli_card_fits(&c, &target, a, &why);
    if (fit != expected)
        fail_msg("%s %s %d: %d, not %d: %s", traits_json, dtype, (int)simd_bits, fit, expected,
                 why.len ? why.ptr : "");
    json_decref(o);
    kl_arena_free(a);
}

static void test_skill_contract__traits_then_facts(void **state) {
    (void)state;
    fits("{\"source.vector_types\": 2}", "float32", 512, KL_FIT_MET);
    fits("{\"source.vector_types\": 2}", "f32", 512,
         KL_FIT_MET);                            /* another name of the same type */
    fits("{}", "float32", 512, KL_FIT_VIOLATED); /* requires vector types */
    fits("{\"source.vector_types\": 2}", "float16", 512, KL_FIT_VIOLATED);
    fits("{\"source.vector_types\": 2}", "float32", 128, KL_FIT_VIOLATED);
    fits("{\"source.vector_types\": 2}", "float32", 0, KL_FIT_UNKNOWN); /* nobody said how wide */
}

static void test_skill_contract__a_platform_that_nobody_named_is_unknown(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_traits t = {0};
    kl_str why = {0};
    kl_card c = {0};
    kl_target target = {.traits = &t};
    c.n_pre = kli_predicates_parse(&c.pre, a, KL_S("- hardware: [arch == x86-64-v4]"));
    assert_int_equal(kli_card_fits(&c, &target, a, &why), KL_FIT_UNKNOWN);
    kl_arena_free(a);
}

/* ---- retrieve ---------------------------------------------------------------------------- */

static void test_skill_retrieve__only_admitted_and_unedited(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_card cards[3] = {sample(a), sample(a), sample(a)};
    kl_traits t = {0};
    kl_match *m;
    int n;
    cards[0].status = KL_CARD_ADMITTED;
    cards[1].status = KL_CARD_ADMITTED;
    cards[1].edited = true;
    for (int i = 0; i < 3; i++) cards[i].required = KL_S(""), cards[i].n_pre = 0;
    kl_library l = {.cards = cards, .n_cards = 3};
    kl_target target = {.case_name = KL_S("gemm"),
                        .surface = KL_S("c"),
                        .platform = KL_S("x86-64-v3/gcc-13"),
                        .traits = &t};
    kl_library_retrieve(&m, &n, a, &l, &target, NULL);
    assert_int_equal(n, 1);
    assert_ptr_equal(m[0].card, &cards[0]);
    assert_true(m[0].expected_log_gain > 0);
    kl_arena_free(a);
}

/* A card that failed as often as it worked is expected to gain less than one that always worked. */
static void test_skill_retrieve__failures_lower_the_expectation(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_card cards[2] = {sample(a), sample(a)};
    kl_traits t = {0};
    kl_match *m;
    int n;
    for (int i = 0; i < 2; i++)
        cards[i].status = KL_CARD_ADMITTED, cards[i].required = KL_S(""), cards[i].n_pre = 0;
    cards[0].name = KL_S("fails");
    kl_trial_record failed = {
        .kind = KL_S("admit"), .surface = KL_S("c"), .platform = KL_S("x86-64-v4/gcc-12")};
    kli_card_add_trial(&cards[0], a, &failed);
    kl_library l = {.cards = cards, .n_cards = 2};
    kl_target target = {.case_name = KL_S("gemm"),
                        .surface = KL_S("c"),
                        .platform = KL_S("x86-64-v4/gcc-12"),
                        .traits = &t};
    kl_library_retrieve(&m, &n, a, &l, &target, NULL);
    assert_int_equal(n, 2);
    assert_ptr_equal(m[0].card, &cards[1]);
    kl_arena_free(a);
}

static void test_skill_retrieve__similarity_is_a_share(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_card c = sample(a);
    kl_traits t = {0};
    kl_match *m;
    int n;
    c.status = KL_CARD_ADMITTED;
    c.required = KL_S("");
    c.n_pre = 0;
    kli_names_add(&c.verified.prior, a, KL_S("unroll"));
    kli_names_add(&c.verified.prior, a, KL_S("fma_simd"));
    kl_library l = {.cards = &c, .n_cards = 1};
    kl_target target = {.case_name = KL_S("gemm"),
                        .surface = KL_S("c"),
                        .prior = KL_S("unroll unroll unroll"),
                        .traits = &t};
    kl_library_retrieve(&m, &n, a, &l, &target, NULL);
    assert_int_equal(n, 1);
    assert_true(m[0].similarity[3] > 0.49 && m[0].similarity[3] < 0.51);
    kl_arena_free(a);
}

static void test_skill_text__model_words_have_bounds(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_predicate *p;
    char line[2000];
    memset(line, 'x', sizeof line);
    memcpy(line, "- data: ", 8);
    assert_int_equal(kli_section_clean(a, (kl_str){line, sizeof line}, 100).len,
                     100); /* one line, too long by itself */
    assert_int_equal(kli_predicates_parse(&p, a, (kl_str){line, sizeof line}), 1);
    assert_true(p[0].prose.len <= 500);
    assert_str(kli_text_cut(KL_S("a\xc3\xa9"), 2), "a"); /* no half of a character */
    assert_null(strchr(kli_section_clean(a, KL_S("a\x7f[2J"), 100).ptr, 0x7f));
    kl_arena_free(a);
}

static void test_skill_text__model_words_cannot_break_a_card(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_str clean = kli_section_clean(a, KL_S("one\n## Risks\nfake\n```\ncode\x01"), 4000);
    assert_contains(clean.ptr, "\\## Risks");
    assert_null(strchr(clean.ptr, 1));
    assert_true(kl_str_ends(clean, KL_S("```")));
    kl_str body = kl_arena_printf(a, "## Intent\n\n%.*s\n\n## Risks\n\nreal\n", KL_STR_ARG(clean));
    assert_str(kli_section(body, "Risks"), "real");
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skill_card__survives_its_files),
        cmocka_unit_test(test_skill_card__an_edit_by_hand_is_seen),
        cmocka_unit_test(test_skill_library__only_admit_writes_admitted),
        cmocka_unit_test(test_skill_library__a_candidate_does_not_take_an_admitted_cards_place),
        cmocka_unit_test(test_skill_library__a_card_in_two_folders_is_the_newer_one),
        cmocka_unit_test(test_skill_library__writes_nothing_that_it_could_not_read),
        cmocka_unit_test(test_skill_library__has_room_for_as_many_as_there_are),
        cmocka_unit_test(test_skill_card__counts_are_the_sum_of_its_trials),
        cmocka_unit_test(test_skill_judge__the_noise_of_the_run_decides),
        cmocka_unit_test(test_skill_judge__a_card_of_which_nothing_stands_is_retired),
        cmocka_unit_test(test_skill_card__a_trial_without_a_floor_is_decided_by_its_interval),
        cmocka_unit_test(test_skill_library__names_what_is_broken),
        cmocka_unit_test(test_skill_card__a_broken_one_writes_nothing_by_itself),
        cmocka_unit_test(test_skill_import__the_first_generation),
        cmocka_unit_test(test_skill_import__the_contract_of_the_first_generation),
        cmocka_unit_test(test_skill_import__a_contract_is_lent_by_a_card_of_the_same_action),
        cmocka_unit_test(test_skill_import__the_second_generation_as_json),
        cmocka_unit_test(test_skill_import__keeps_what_a_machine_can_use),
        cmocka_unit_test(test_skill_import__the_mapping_of_kinds),
        cmocka_unit_test(test_skill_import__flags_what_undoes_a_volatile),
        cmocka_unit_test(test_skill_import__a_folder),
        cmocka_unit_test(test_skill_contract__traits_then_facts),
        cmocka_unit_test(test_skill_contract__a_platform_that_nobody_named_is_unknown),
        cmocka_unit_test(test_skill_retrieve__similarity_is_a_share),
        cmocka_unit_test(test_skill_text__model_words_have_bounds),
        cmocka_unit_test(test_skill_retrieve__only_admitted_and_unedited),
        cmocka_unit_test(test_skill_retrieve__failures_lower_the_expectation),
        cmocka_unit_test(test_skill_text__model_words_cannot_break_a_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
