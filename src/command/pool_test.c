/* pool_test.c - the states that cards are held against, and the rows of what cards did to them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/asked.h"
#include "command/starts.h"
#include <klineage/skill.h>

static kli_starts pool;

static int set_up(void **state) {
    asked_set_up(state);
    setenv("KLINEAGE_TASKS", KL_TEST_ROOT "/tasks", 1);
    always(KL_OPTION_LIBRARY, SHIPPED);
    always(KL_OPTION_STORE, kit_path("k.db"));
    pool = (kli_starts){.arena = arena};
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, asked_tear_down)

static const kl_start *start_named(const char *name) {
    for (int i = 0; i < pool.n; i++)
        if (kl_str_eq(pool.starts[i].name, kl_str_of(name))) return &pool.starts[i];
    fail_msg("no start is called %s", name);
    return NULL;
}

/* ---- starts ------------------------------------------------------------------------------- */

static void test_starts__of_tasks_are_their_naive_kernels(void **state) {
    (void)state;
    assert_ok(kli_starts_of_tasks(&pool, &e));
    const kl_start *s = start_named("gemm/naive.c");
    assert_string_equal(kl_surface_name(s->surface), "c");
    assert_string_equal(s->source.ptr, kit_read(KL_TEST_ROOT "/tasks/gemm/naive.c"));
    assert_int_equal(s->lineage.len, 0);
    s = start_named("gemm/naive.cu"); /* at a shape for its own host */
    assert_ptr_equal(s->workload, kl_task_workload(s->task, (kl_str){0}, KL_ON_GPU));
    for (int i = 0; i < pool.n; i++) assert_non_null(pool.starts[i].workload);
}

static void test_starts__a_workload_is_taken_where_the_task_has_it(void **state) {
    (void)state;
    pool.workload = "cpu-large";
    assert_ok(kli_starts_of_tasks(&pool, &e));
    assert_str(start_named("gemm/naive.c")->workload->label, "cpu-large");
    const kl_start *gpu = start_named("gemm/naive.cu"); /* it has none of that name */
    assert_ptr_equal(gpu->workload, kl_task_workload(gpu->task, (kl_str){0}, KL_ON_GPU));
}

static void test_starts__of_lineages_are_named_by_state(void **state) {
    kl_lineage *all;
    int n;
    (void)state;
    mine_has("lineages/gemm-c.json");
    mine_has("lineages/gemm-c.evidence.jsonl"); /* no lineage */
    assert_ok(kli_lineages_of_library(&all, &n, arena, kit_path("mine"), &e));
    assert_int_equal(n, 1);
    assert_ok(kli_starts_of_library(&pool, kit_path("mine"), &e));
    assert_int_equal(pool.n, all[0].n_states);
    assert_non_null(start_named("gemm-c/K0"));
    for (int i = 0; i < pool.n; i++) assert_str(pool.starts[i].lineage, all[0].id.ptr);
}

/* A rung that is kept as edits is a state like one that is a file. */
static void test_starts__of_ladders_are_their_rungs(void **state) {
    (void)state;
    copy(KL_TEST_ROOT "/experts/gemm/c", kit_path("ladders/gemm/c"));
    kit_write("ladders/README.md", "not a task");
    assert_ok(kli_fs_mkdirs(kit_path("ladders/gemm/notes"), &e)); /* no surface */
    assert_ok(kli_starts_of_ladders(&pool, kit_path("ladders"), &e));
    const kl_start *s = start_named("gemm/c/3-vector.c");
    assert_true(kl_str_starts(s->source, KL_S("//")) && s->source.len > 100);
    assert_non_null(start_named("gemm/c/8-expert.c"));
    for (int i = 0; i < pool.n; i++)
        assert_true(kl_str_starts(pool.starts[i].name, KL_S("gemm/c/")));
}

static void test_starts__a_ladder_of_no_task_is_an_error(void **state) {
    (void)state;
    copy(KL_TEST_ROOT "/experts/gemm/c", kit_path("ladders/gemmm/c"));
    assert_err(KL_ENOENT, kli_starts_of_ladders(&pool, kit_path("ladders"), &e));
    assert_contains(e.hint, "did you mean gemm?");
}

static void test_starts__experts_lie_beside_the_library_or_where_told(void **state) {
    (void)state;
    mine_has("admitted/pack-b-c");
    assert_ok(kli_starts_of_experts(&pool, kit_path("mine"), NULL, &e));
    assert_int_equal(pool.n, 0);
    copy(KL_TEST_ROOT "/experts/gemm/c", kit_path("experts/gemm/c"));
    assert_ok(kli_starts_of_experts(&pool, kit_path("mine"), NULL, &e));
    const int beside = pool.n;
    assert_true(beside > 0);
    assert_ok(kli_starts_of_experts(&pool, kit_path("mine"), KL_TEST_ROOT "/experts", &e));
    assert_true(pool.n > 2 * beside);
}

/* ---- rows --------------------------------------------------------------------------------- */

static void test_probe_show__cells_add_up(void **state) {
    (void)state;
    assert_ok(ASK(PROBE_SHOW, NULL));
    assert_true(count_of("cells") > 10);
    int64_t rows = 0;
    for (size_t i = 0; i < count_of("cells"); i++) {
        const json_t *cell = row_of("cells", i), *count;
        const char *outcome;
        json_object_foreach((json_t *)(uintptr_t)json_object_get(cell, "outcomes"), outcome, count)
            rows += json_integer_value(count);
        assert_true(number(cell, "n") >= 0);
        const bool faster = number(json_object_get(cell, "outcomes"), "faster") > 0;
        assert_int_equal(json_is_null(json_object_get(cell, "median_gain")), !faster);
    }
    assert_int_equal(rows, number(json, "rows"));
}

static void test_probe_show__without_rows_says_how_to_collect_them(void **state) {
    (void)state;
    mine_has("admitted/pack-b-c");
    assert_ok(ASK(PROBE_SHOW, NULL));
    assert_int_equal(count_of("cells"), 0);
    assert_contains(text, "klineage probe export");
}

/* Edges of the lineage, trials of the card, and the states that they speak of; the second time
 * there is nothing new. */
static void test_probe_export__collects_what_stands_recorded_once(void **state) {
    (void)state;
    mine_has("admitted/pack-b-c");
    mine_has("lineages/gemm-c.json");
    mine_has("lineages/gemm-c.evidence.jsonl");
    assert_ok(ASK(PROBE_EXPORT, NULL));
    const int64_t rows = number(json, "rows"), states = number(json, "states");
    assert_true(rows > 3 && states > 3);
    assert_int_equal(number(json, "new"), rows);
    const char *kept = kit_read(mine("probes.jsonl"));
    assert_contains(kept, "\"card\":\"pack-b-c\"");
    assert_true(kli_fs_exists(mine("states.jsonl")));
    assert_ok(ASK(PROBE_EXPORT, NULL));
    assert_int_equal(number(json, "new"), 0);
    assert_int_equal(number(json, "rows"), rows);
    assert_string_equal(kit_read(mine("probes.jsonl")), kept);
    assert_ok(ASK(PROBE_SHOW, NULL));
    assert_int_equal(number(json, "rows"), rows);
}

static void test_probe_import__cards_of_another_library_keep_their_action(void **state) {
    (void)state;
    mine_has("admitted/pack-b-c");
    assert_ok(ASK(PROBE_IMPORT, SHIPPED "/probes.jsonl", SHIPPED "/states.jsonl", NULL));
    assert_contains(text, "left out, no card of this library: prefetch-c in ");
    assert_null(strstr(text, "no card of this library: pack-b-c"));
    const int64_t rows = number(json, "rows");
    assert_int_equal(number(json, "new"), rows);
    const char *kept = kit_read(mine("probes.jsonl"));
    assert_null(strstr(kept, "\"card\":\"prefetch-c\""));
    assert_contains(kept, "\"action\":\"prefetch\"");
    assert_contains(kept, "\"card\":\"pack-b-c\"");
    assert_err(KL_ENOENT, ASK(PROBE_IMPORT, kit_path("none.jsonl"), NULL));
    assert_true(ASK(PROBE_IMPORT, kit_write("bad.jsonl", "{\"place\": 1}\n"), NULL) != KL_OK);
    assert_ok(ASK(PROBE_SHOW, NULL)); /* what was there stays */
    assert_int_equal(number(json, "rows"), rows);
}

/* ---- the plan ----------------------------------------------------------------------------- */

static void plan_with(kli_option_id id, const char *value) {
    with(KL_OPTION_DRY_RUN, "");
    with(id, value);
}

static void test_probe_plan__the_budget_bounds_the_cells(void **state) {
    (void)state;
    plan_with(KL_OPTION_BUDGET_TOTAL, "1");
    assert_ok(ASK(PROBE, NULL));
    const size_t cells = count_of("cells");
    assert_true(cells > 0);
    assert_true(number(json, "possible") > (int64_t)cells);
    assert_true(kli_json_real_or(json, "dollars", 2) <= 1);
    for (size_t i = 1; i < cells; i++)
        assert_true(
            kli_json_real_or(row_of("cells", i), "worth", 9) <=
                kli_json_real_or(row_of("cells", i - 1), "worth", 0) ||
            !kl_str_eq(said(row_of("cells", i), "fit"), said(row_of("cells", i - 1), "fit")));
    plan_with(KL_OPTION_BUDGET_TOTAL, "0.001");
    assert_ok(ASK(PROBE, NULL));
    assert_int_equal(count_of("cells"), 0);
    assert_contains(text, "0 of ");
}

static void test_probe_plan__only_what_was_chosen(void **state) {
    (void)state;
    plan_with(KL_OPTION_CARDS, "pack-b-c,prefetch-c");
    with(KL_OPTION_STATES, "naive");
    with(KL_OPTION_SURFACE, "c");
    assert_ok(ASK(PROBE, NULL));
    for (size_t i = 0; i < count_of("cells"); i++) {
        const kl_str card = said(row_of("cells", i), "card");
        assert_true(kl_str_eq(card, KL_S("pack-b-c")) || kl_str_eq(card, KL_S("prefetch-c")));
        assert_true(kl_str_ends(said(row_of("cells", i), "state"), KL_S("/naive.c")));
    }
    assert_true(count_of("cells") > 0);
}

/* An idea goes to another surface when that is asked for, where its contract does not refuse it and
 * nothing of that surface has its action. */
static void test_probe_plan__across_surfaces_where_asked(void **state) {
    (void)state;
    plan_with(KL_OPTION_CARDS, "radix-select-cuda,fma-simd-c,tma-load-cuda");
    with(KL_OPTION_STATES, "naive");
    with(KL_OPTION_SURFACE, "triton");
    assert_ok(ASK(PROBE, NULL));
    assert_int_equal(count_of("cells"), 0);
    plan_with(KL_OPTION_CARDS, "radix-select-cuda,fma-simd-c,tma-load-cuda,tile-larger-triton");
    with(KL_OPTION_STATES, "naive");
    with(KL_OPTION_SURFACE, "triton");
    with(KL_OPTION_ACROSS, "");
    assert_ok(ASK(PROBE, NULL));
    int selects = 0;
    for (size_t i = 0; i < count_of("cells"); i++) {
        const kl_str card = said(row_of("cells", i), "card"), fit = said(row_of("cells", i), "fit");
        if (!kl_str_eq(card, KL_S("radix-select-cuda"))) continue;
        assert_str(said(row_of("cells", i), "state"), "topk/naive.triton.py");
        assert_str(fit, "unknown");
        selects++;
    }
    assert_int_equal(selects, 1);
}

#define THEIRS(id, carrier)                                                                        \
    "{\"skill_id\": \"" id "\", \"intent\": \"select by digits\", \"carrier\": \"" carrier "\", "  \
    "\"scope\": {\"cases\": [\"topk\"], \"languages\": [\"cuda\"]}}"

/* A candidate of others is tried where the contract that was lent to it holds; one that is flagged
 * only when it is named. */
static void test_probe_plan__imported_cards_are_candidates(void **state) {
    (void)state;
    mine_has("admitted/radix-select-cuda");
    always(KL_OPTION_LIBRARY, kit_path("mine"));
    assert_ok(kli_fs_mkdirs(kit_path("theirs"), &e));
    kit_write("theirs/a.json", THEIRS("x.radix_select", "digits"));
    kit_write("theirs/b.json", THEIRS("x.keep", "a volatile goes"));
    assert_ok(ASK(LIBRARY_IMPORT, kit_path("theirs"), NULL));
    assert_true(
        json_is_true(json_object_get(row_named("cards", "name", "x-radix-select"), "contract")));
    assert_str(said(row_named("cards", "name", "x-keep"), "flags"), "undoes-volatile");
    plan_with(KL_OPTION_STATES, "naive");
    with(KL_OPTION_BUDGET_TOTAL, "100");
    assert_ok(ASK(PROBE, NULL));
    int met = 0;
    for (size_t i = 0; i < count_of("cells"); i++) {
        const json_t *row = row_of("cells", i);
        assert_false(kl_str_eq(said(row, "card"), KL_S("x-keep")));
        if (!kl_str_eq(said(row, "card"), KL_S("x-radix-select"))) continue;
        const bool selects = kl_str_starts(said(row, "state"), KL_S("topk/"));
        assert_int_equal(kl_str_eq(said(row, "fit"), KL_S("fits")), selects);
        met += selects;
    }
    assert_true(met > 0);
    plan_with(KL_OPTION_STATES, "naive");
    with(KL_OPTION_CARDS, "x-keep");
    assert_ok(ASK(PROBE, NULL));
    assert_true(count_of("cells") > 0);
}

static void test_probe_plan__refuses_what_is_not_there(void **state) {
    (void)state;
    plan_with(KL_OPTION_CARDS, "pack-b-c,packbc");
    assert_err(KL_ENOENT, ASK(PROBE, NULL));
    assert_contains(e.message, "no card named packbc");
    plan_with(KL_OPTION_STATES, "lineages,nave");
    assert_err(KL_EINVAL, ASK(PROBE, NULL));
    assert_contains(e.message, "not 'nave'");
    plan_with(KL_OPTION_TRIES, "0");
    assert_err(KL_EINVAL, ASK(PROBE, NULL));
    plan_with(KL_OPTION_BUDGET_TOTAL, "much");
    assert_err(KL_EINVAL, ASK(PROBE, NULL));
    assert_err(KL_EINVAL, ASK(PROBE, NULL)); /* without --dry-run a model is needed */
    assert_contains(e.message, "no model given");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_starts__of_tasks_are_their_naive_kernels),
        TEST(test_starts__a_workload_is_taken_where_the_task_has_it),
        TEST(test_starts__of_lineages_are_named_by_state),
        TEST(test_starts__of_ladders_are_their_rungs),
        TEST(test_starts__a_ladder_of_no_task_is_an_error),
        TEST(test_starts__experts_lie_beside_the_library_or_where_told),
        TEST(test_probe_show__cells_add_up),
        TEST(test_probe_show__without_rows_says_how_to_collect_them),
        TEST(test_probe_export__collects_what_stands_recorded_once),
        TEST(test_probe_import__cards_of_another_library_keep_their_action),
        TEST(test_probe_plan__the_budget_bounds_the_cells),
        TEST(test_probe_plan__only_what_was_chosen),
        TEST(test_probe_plan__across_surfaces_where_asked),
        TEST(test_probe_plan__imported_cards_are_candidates),
        TEST(test_probe_plan__refuses_what_is_not_there),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
