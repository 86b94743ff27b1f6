/* archive_test.c - who holds a cell, who is drawn, who goes where; invariants after every call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "archive.h"
#include "base/test.h"
#include <stdio.h>

static const double SIZES[] = {8, 9, 10}, SCORES[] = {0.5, 1, 2};
static const kli_axis AXES[] = {{"size", SIZES, 3}, {"score", SCORES, 3}};
static const kl_stream STREAM = {42};

static kl_arena *arena;
static kli_archive *x;

static int set_up(void **state) {
    (void)state;
    arena = kl_arena_new();
    x = kli_archive_new(arena, AXES, 2, 3);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kli_archive_check(x);
    kl_arena_free(arena);
    return 0;
}

static kli_member member(const char *hash, double size, double score) {
    kli_member m = {.score = score, .feature = {size, score}};
    snprintf(m.hash, sizeof m.hash, "%s", hash);
    return m;
}

static kli_archive_change add(int island, const char *hash, double size, double score) {
    const kli_member m = member(hash, size, score);
    const kli_archive_change place = kli_archive_add(x, island, &m, NULL);
    kli_archive_check(x);
    return place;
}

/* Hashes of the members, best first: "b a". */
static kl_str members(int island) {
    kl_str text = KL_S("");
    for (int i = 0; i < kli_archive_size(x, island); i++)
        text = kl_arena_printf(arena, "%.*s%s%s", KL_STR_ARG(text), i ? " " : "",
                               kli_archive_get(x, kli_archive_at(x, island, i))->hash);
    return text;
}

/* ---- cells ------------------------------------------------------------------------------- */

static void test_search_archive__bins_are_those_of_the_edges(void **state) {
    (void)state;
    static const struct {
        double value;
        int bin;
    } ROWS[] = {{-1e300, 0}, {7.999, 0}, {8, 1}, {8.5, 1}, {9, 2}, {10, 3}, {1e300, 3}};
    for (size_t i = 0; i < KL_COUNT(ROWS); i++)
        assert_int_equal(kli_axis_bin(&AXES[0], ROWS[i].value), ROWS[i].bin);
}

static void test_search_archive__a_holder_leaves_for_a_better_one_alone(void **state) {
    (void)state;
    assert_int_equal(add(0, "a", 8.1, 1.2), KLI_FIRST);
    assert_int_equal(add(0, "b", 8.9, 1.2), KLI_LOST); /* as good is not better */
    assert_int_equal(add(0, "c", 8.5, 1.1), KLI_LOST);
    assert_str(members(0), "a");
    assert_int_equal(add(0, "d", 8.5, 1.3), KLI_WON);
    assert_str(members(0), "d");
    assert_int_equal(kli_archive_known(x), 4);
    assert_false(kli_archive_has(x, 0, 0));
    assert_true(kli_archive_has(x, 0, 3));
}

static void test_search_archive__a_slow_one_of_another_kind_stays(void **state) {
    (void)state;
    add(0, "fast", 8, 3);
    assert_int_equal(add(0, "slow", 9.5, 0.7), KLI_FIRST);
    assert_int_equal(add(0, "failed", 8, 0), KLI_FIRST); /* the score is an axis of its own */
    assert_str(members(0), "fast slow failed");
}

static void test_search_archive__a_clone_is_never_added_twice(void **state) {
    (void)state;
    int id = -1;
    add(0, "a", 8, 1);
    add(0, "b", 8, 1.5);                        /* took the cell of a */
    const kli_member again = member("a", 9, 3); /* whatever is said of it now */
    assert_int_equal(kli_archive_add(x, 0, &again, &id), KLI_KNOWN);
    assert_int_equal(id, 0);
    assert_int_equal(kli_archive_add(x, 1, &again, NULL), KLI_KNOWN); /* nor on another island */
    assert_int_equal(kli_archive_size(x, 1), 0);
    assert_str(members(0), "b");
}

/* Ranges that move with what was seen would put the first program elsewhere by the end. */
static void test_search_archive__cells_do_not_drift(void **state) {
    (void)state;
    add(0, "a", 8.4, 1.2);
    for (int i = 0; i < 200; i++)
        add(0, kl_arena_printf(arena, "x%d", i).ptr, 20.0 + i * i, 5.0 + i);
    assert_int_equal(add(0, "b", 8.6, 1.1), KLI_LOST);
    assert_int_equal(add(0, "c", 8.6, 1.3), KLI_WON);
    assert_int_equal(kli_archive_size(x, 0), 2);
}

static void test_search_archive__of_equals_the_older_comes_first(void **state) {
    (void)state;
    add(0, "a", 10, 1);
    add(0, "b", 8, 1);
    add(0, "c", 9, 1);
    assert_str(members(0), "a b c");
}

/* ---- islands ----------------------------------------------------------------------------- */

static void test_search_archive__islands_keep_apart_what_is_added(void **state) {
    (void)state;
    const kli_member start = member("start", 8, 1);
    assert_int_equal(kli_archive_seed(x, &start), 0);
    add(0, "a", 9, 1.5);
    add(1, "b", 9, 1.2); /* a worse one of the same kind lives where a is not */
    assert_str(members(0), "a start");
    assert_str(members(1), "b start");
    assert_str(members(2), "start");
}

static void test_search_archive__the_best_go_one_island_on(void **state) {
    (void)state;
    add(0, "a", 8, 3);
    add(0, "a2", 9, 2.5);
    add(1, "b", 8, 1.5);
    assert_int_equal(kli_archive_migrate(x, 0.1),
                     2); /* a and b, one each; nothing from the empty island */
    kli_archive_check(x);
    assert_str(members(0), "a a2");
    assert_str(members(1), "a b");
    assert_str(members(2), "b"); /* a arrived on 1 in this call and stays there until the next */
    assert_int_equal(kli_archive_migrate(x, 0.1), 2); /* a on 2, b on 0; a was on 1 already */
    assert_str(members(0), "a a2 b");
    assert_str(members(2), "a b");
    assert_int_equal(kli_archive_known(x), 3); /* nobody new was made */
}

static void test_search_archive__a_migrant_has_to_win_its_cell(void **state) {
    (void)state;
    add(0, "a", 8, 1.2);
    add(1, "b", 8, 1.4);
    assert_int_equal(kli_archive_migrate(x, 1), 1); /* b on 2; a lost against b */
    assert_str(members(1), "b");
}

static void test_search_archive__one_island_has_nowhere_to_go(void **state) {
    (void)state;
    x = kli_archive_new(arena, AXES, 2, 1);
    add(0, "a", 8, 1.2);
    assert_int_equal(kli_archive_migrate(x, 1), 0);
    assert_str(members(0), "a");
}

/* ---- parents ----------------------------------------------------------------------------- */

static void grow_ten(void) {
    static const double SIZE[] = {7, 8, 9, 10};
    for (int i = 0; i < 10; i++)
        add(0, kl_arena_printf(arena, "p%d", i).ptr, SIZE[i % 4],
            (const double[]){0.1, 0.7, 1.5}[i / 4] + i * 0.01);
    assert_int_equal(kli_archive_size(x, 0), 10);
}

static void test_search_archive__top_draws_are_from_the_best(void **state) {
    (void)state;
    grow_ten();
    const kli_mix mix = {.top = 1, .share = 0.2};
    bool seen[2] = {0};
    for (uint64_t i = 0; i < 100; i++) {
        const int id = kli_archive_parent(x, 0, &mix, STREAM, i);
        assert_true(id == kli_archive_at(x, 0, 0) || id == kli_archive_at(x, 0, 1));
        seen[id == kli_archive_at(x, 0, 1)] = true;
    }
    assert_true(seen[0] && seen[1]);
}

static void test_search_archive__diverse_draws_go_round_the_cells(void **state) {
    (void)state;
    grow_ten();
    const kli_mix mix = {.diverse = 1, .share = 0.1};
    int drawn[10] = {0};
    for (uint64_t i = 0; i < 30; i++) drawn[kli_archive_parent(x, 0, &mix, STREAM, i)]++;
    for (int i = 0; i < 10; i++) assert_int_equal(drawn[i], 3);
}

/* A new holder was never a parent, whatever its cell has seen. */
static void test_search_archive__a_new_holder_is_drawn_first(void **state) {
    (void)state;
    const kli_mix mix = {.diverse = 1, .share = 0.1};
    grow_ten();
    for (uint64_t i = 0; i < 20; i++) kli_archive_parent(x, 0, &mix, STREAM, i);
    assert_int_equal(add(0, "new", 7, 0.2), KLI_WON);
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(kli_archive_parent(x, 0, &mix, STREAM, 20 + i), 10);
}

static void test_search_archive__the_rest_is_uniform(void **state) {
    (void)state;
    grow_ten();
    const kli_mix mix = {.share = 0.1};
    int drawn[10] = {0};
    for (uint64_t i = 0; i < 2000; i++) drawn[kli_archive_parent(x, 0, &mix, STREAM, i)]++;
    for (int i = 0; i < 10; i++) assert_in_range(drawn[i], 140, 260); /* 200 expected, sigma 13 */
}

static void test_search_archive__the_same_draw_gives_the_same_parent(void **state) {
    (void)state;
    grow_ten();
    const kli_mix mix = {.top = 0.5, .share = 0.5};
    const int first = kli_archive_parent(x, 0, &mix, STREAM, 7);
    kli_archive_parent(x, 0, &mix, STREAM, 8);
    assert_int_equal(kli_archive_parent(x, 0, &mix, STREAM, 7), first);
}

static void test_search_archive__never_a_program_of_another_island(void **state) {
    (void)state;
    const kli_mix mix = {.top = 0.3, .diverse = 0.3, .share = 1};
    grow_ten();
    add(1, "only", 8, 1.6);
    for (uint64_t i = 0; i < 50; i++)
        assert_int_equal(kli_archive_parent(x, 1, &mix, STREAM, i), 10);
}

/* ---- what is shown ----------------------------------------------------------------------- */

static void test_search_archive__shows_the_best_and_the_far(void **state) {
    (void)state;
    kli_search_shown shown;
    add(0, "parent", 7, 3);
    add(0, "near", 8, 2.5);
    add(0, "far", 10, 0.1);
    add(0, "farther", 10, 0.7);
    add(0, "second", 9, 2.9);
    kli_archive_show(&shown, x, 0, 0, 0, 1, 2);
    assert_int_equal(shown.n_top, 1);
    assert_string_equal(kli_archive_get(x, shown.top[0])->hash, "second");
    assert_int_equal(shown.n_diverse, 2);
    assert_string_equal(kli_archive_get(x, shown.diverse[0])->hash,
                        "far"); /* 3 + 3 bins from the parent, 4 from second */
    assert_string_equal(kli_archive_get(x, shown.diverse[1])->hash, "near");
}

static void test_search_archive__shows_no_more_than_there_is(void **state) {
    (void)state;
    kli_search_shown shown;
    add(0, "parent", 7, 3);
    kli_archive_show(&shown, x, 0, 0, 0, 3, 2);
    assert_int_equal(shown.n_top + shown.n_diverse, 0);
    add(0, "other", 8, 3);
    kli_archive_show(&shown, x, 0, 0, 0, 3, 2);
    assert_int_equal(shown.n_top, 1);
    assert_int_equal(shown.n_diverse, 0); /* nobody twice */
}

static void test_search_archive__shows_nothing_below_the_least(void **state) {
    (void)state;
    kli_search_shown shown;
    add(0, "parent", 7, 3);
    add(0, "fine", 8, 0.6);
    add(0, "failed", 10, 0);
    kli_archive_show(&shown, x, 0, 0, 0.6, 3, 2); /* as much as the least is enough */
    assert_int_equal(shown.n_top, 1);
    assert_int_equal(shown.n_diverse, 0);
    kli_archive_show(&shown, x, 0, 0, 0.1, 0, 2);
    assert_int_equal(shown.n_diverse, 1);
    assert_string_equal(kli_archive_get(x, shown.diverse[0])->hash, "fine");
}

/* ---- everything at once ------------------------------------------------------------------ */

static void assert_distinct(const kli_search_shown *s, int parent) {
    int all[2 * KLI_MAX_SHOWN + 1] = {parent}, n = 1;
    for (int i = 0; i < s->n_top; i++) all[n++] = s->top[i];
    for (int i = 0; i < s->n_diverse; i++) all[n++] = s->diverse[i];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) assert_int_not_equal(all[i], all[j]);
}

/* A2 from outside: the best score of a cell never falls. */
static void test_search_archive__a_long_life(void **state) {
    (void)state;
    const kl_stream s = kli_stream_of(1, "life");
    const kli_mix mix = {.top = 0.5, .diverse = 0.3, .share = 0.2};
    double best[3] = {0};
    for (uint64_t i = 0; i < 3000; i++) {
        const int island = (int)kli_stream_below(s, 4 * i, 3);
        const double score = kli_stream_uniform(s, 4 * i + 1) * 3,
                     size = 7 + kli_stream_uniform(s, 4 * i + 2) * 5;
        add(island,
            kl_arena_printf(arena, "h%llu",
                            (unsigned long long)kli_stream_below(s, 4 * i + 3, 2000))
                .ptr,
            size, score);
        if (i % 50 == 49) kli_archive_migrate(x, 0.1);
        if (!kli_archive_size(x, island)) continue;
        kli_search_shown shown;
        const int parent = kli_archive_parent(x, island, &mix, STREAM, i);
        assert_true(kli_archive_has(x, island, parent));
        kli_archive_show(&shown, x, island, parent, 0, 3, 2);
        assert_distinct(&shown, parent);
        const double now = kli_archive_get(x, kli_archive_at(x, island, 0))->score;
        assert_true(now >= best[island]);
        best[island] = now;
    }
    assert_true(kli_archive_known(x) > 1000 && kli_archive_known(x) <= 2000);
    assert_true(kli_archive_size(x, 0) <= 16);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_search_archive__bins_are_those_of_the_edges),
        CASE(test_search_archive__a_holder_leaves_for_a_better_one_alone),
        CASE(test_search_archive__a_slow_one_of_another_kind_stays),
        CASE(test_search_archive__a_clone_is_never_added_twice),
        CASE(test_search_archive__cells_do_not_drift),
        CASE(test_search_archive__of_equals_the_older_comes_first),
        CASE(test_search_archive__islands_keep_apart_what_is_added),
        CASE(test_search_archive__the_best_go_one_island_on),
        CASE(test_search_archive__a_migrant_has_to_win_its_cell),
        CASE(test_search_archive__one_island_has_nowhere_to_go),
        CASE(test_search_archive__top_draws_are_from_the_best),
        CASE(test_search_archive__diverse_draws_go_round_the_cells),
        CASE(test_search_archive__a_new_holder_is_drawn_first),
        CASE(test_search_archive__the_rest_is_uniform),
        CASE(test_search_archive__the_same_draw_gives_the_same_parent),
        CASE(test_search_archive__never_a_program_of_another_island),
        CASE(test_search_archive__shows_the_best_and_the_far),
        CASE(test_search_archive__shows_no_more_than_there_is),
        CASE(test_search_archive__shows_nothing_below_the_least),
        CASE(test_search_archive__a_long_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
