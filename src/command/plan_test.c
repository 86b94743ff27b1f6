/* plan_test.c - what is read of kernels, experiments and queues without running anything.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/asked.h"
#include "command/plan.h"

static int set_up(void **state) {
    asked_set_up(state);
    setenv("KLINEAGE_TASKS", KL_TEST_ROOT "/tasks", 1);
    unsetenv("KLINEAGE_PRICES");
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, asked_tear_down)

/* ---- a plan ------------------------------------------------------------------------------- */

/* Every kind of argument in words, and the same as a document. */
static void test_plan__has_a_word_for_every_kind_of_argument(void **state) {
    (void)state;
    kl_plan *p = KL_NEW(arena, kl_plan);
    kl_buf b = {0};
    p->n_tensors = 2;
    snprintf(p->tensors[0].name, sizeof p->tensors[0].name, "x");
    snprintf(p->tensors[1].name, sizeof p->tensors[1].name, "alpha");
    p->n_buffers = 1;
    snprintf(p->buffers[0].name, sizeof p->buffers[0].name, "packed");
    p->buffers[0].bytes = 4096;
    p->n_launches = 1;
    kl_plan_launch *l = &p->launches[0];
    snprintf(l->entry, sizeof l->entry, "f");
    for (int i = 0; i < 3; i++) l->grid[i] = l->block[i] = l->cluster[i] = 1;
    l->grid[0] = 4294967295u; /* the most that OpenCL can have */
    l->smem = 128;
    l->warps = 4;
    l->stages = 3;
    const kl_value args[] = {
        {.kind = KL_VALUE_TENSOR},         {.kind = KL_VALUE_SCALAR, .index = 1, .f = 0.5},
        {.kind = KL_VALUE_BUFFER},         {.kind = KL_VALUE_TENSORMAP},
        {.kind = KL_VALUE_I32, .i = -7},   {.kind = KL_VALUE_I64, .i = 8},
        {.kind = KL_VALUE_F32, .f = 1.5},  {.kind = KL_VALUE_F64, .f = 2.5},
        {.kind = KL_VALUE_LOCAL, .i = 64}, {.kind = KL_VALUE_NONE}};
    memcpy(kli_take_args(p, l, KL_COUNT(args)), args, sizeof args);
    json_t *o = kli_plan_json(&b, p, KL_S("tiny"));
    assert_str(kl_buf_str(&b),
               "plan at tiny\n"
               "  f grid 4294967295,1,1 block 1,1,1 smem 128 warps 4 stages 3 args(x, alpha=0.5, "
               "packed, tensormap 0, -7, i64(8), f32(1.5), f64(2.5), local(64), none)\n"
               "  scratch packed, 4096 bytes\n");
    const json_t *launch = json_array_get(json_object_get(o, "launches"), 0);
    assert_int_equal(json_array_size(json_object_get(launch, "args")), KL_COUNT(args));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(launch, "grid"), 0)),
                     4294967295);
    assert_int_equal(number(json_array_get(json_object_get(o, "buffers"), 0), "bytes"), 4096);
    json_decref(o);
    kl_buf_fini(&b);
}

/* ---- kernels ------------------------------------------------------------------------------ */

#define KERNEL                                                                                     \
    "//! param BM = 8 {8, 16}\n//! let tiles = cdiv(M, BM)\n//! require tiles > 0\n"               \
    "//! flags -O2\n//! buffer packed: f32[K, N]\n"                                                \
    "//! launch gemm args(x, weight, y, packed, tiles, M, N, K)\n"                                 \
    "void gemm(const float *x, const float *w, float *y, float *p, int t, int M, int N, int K) "   \
    "{}\n"

static void test_kernel_show__plans_for_a_task(void **state) {
    (void)state;
    with(KL_OPTION_TASK, "gemm");
    with(KL_OPTION_WORKLOAD, "M=33,N=7,K=5");
    assert_ok(ASK(KERNEL_SHOW, kit_write("k.c", KERNEL), NULL));
    const json_t *plan = json_object_get(json, "plan"),
                 *buffer = json_array_get(json_object_get(plan, "buffers"), 0);
    assert_int_equal(number(buffer, "bytes"), 5 * 7 * 4);
    assert_contains(text, "args(x, weight, y, packed, 5, 33, 7, 5)\n");
    assert_contains(text, "param     BM = 8 of 8 16\n");
    assert_contains(text, "let       tiles = cdiv(M, BM)\n");
    assert_true(count_of("defines") > 3);
    assert_int_equal(count_of("params"), 1);
}

static void test_kernel_show__another_value_is_another_plan_and_identity(void **state) {
    (void)state;
    const char *path = kit_write("k.c", KERNEL);
    assert_ok(ASK(KERNEL_SHOW, path, NULL));
    const char *before = kl_arena_copy(arena, said(json, "hash")).ptr;
    asked_args.params[0] = "BM=16";
    asked_args.n_params = 1;
    with(KL_OPTION_TASK, "gemm");
    with(KL_OPTION_WORKLOAD, "M=33,N=7,K=5");
    assert_ok(ASK(KERNEL_SHOW, path, NULL));
    assert_contains(text, "packed, 3, 33, 7, 5)\n");
    assert_false(kl_str_eq(said(json, "hash"), kl_str_of(before)));
}

static void test_kernel_diff__status_one_where_they_differ(void **state) {
    (void)state;
    const char *one = kit_write("one.c", KERNEL);
    const char *two = kit_write("two.c", "//! launch gemm args(x, weight, y, M, N, K)\n"
                                         "void gemm(void) {}\n");
    assert_ok(ASK(KERNEL_DIFF, one, one, NULL));
    assert_int_equal(answer.exit_code, 0);
    assert_true(kli_json_bool_or(json, "same", false));
    assert_ok(ASK(KERNEL_DIFF, one, two, NULL));
    assert_int_equal(answer.exit_code, 1);
    assert_false(kl_str_eq(said(json, "from"), said(json, "to")));
    assert_contains(text, "args(x, weight, y, M, N, K)");
}

static void test_kernel_source__of_a_rung_is_what_its_edits_make(void **state) {
    (void)state;
    assert_ok(ASK(KERNEL_SOURCE, KL_TEST_ROOT "/experts/gemm/c/3-vector.c", NULL));
    const char *by_name = text;
    assert_ok(ASK(KERNEL_SOURCE, KL_TEST_ROOT "/experts/gemm/c/3-vector.diff", NULL));
    assert_string_equal(text, by_name);
    assert_str(said(json, "source"), by_name);
    assert_ok(ASK(KERNEL_SOURCE, KL_TEST_ROOT "/experts/gemm/c/8-expert.c", NULL));
    assert_string_equal(text, kit_read(KL_TEST_ROOT "/experts/gemm/c/8-expert.c"));
}

/* ---- a queue ------------------------------------------------------------------------------ */

static void job(const char *place, const char *path) {
    const char *dir = kli_fs_join(arena, kit_path("spool"), place).ptr;
    const kl_str document = kl_arena_printf(arena, "{\"path\": \"%s\"}", path);
    assert_ok(kli_fs_mkdirs(dir, &e));
    assert_ok(kli_fs_write(kli_fs_join(arena, dir, "job.json").ptr, document, &e));
}

static void test_spool__shows_where_every_job_is(void **state) {
    (void)state;
    job("todo/aaaa", "waiting.c");
    job("taken/bbbb@host:17", "running.c");
    job("done/cccc", "finished.c");
    assert_ok(kli_fs_write(kit_path("spool/done/cccc/error.json"), KL_S("{}"), &e));
    assert_ok(kli_fs_mkdirs(kit_path("spool/todo/dddd"), &e)); /* still being written */
    assert_ok(ASK(SPOOL, kit_path("spool"), NULL));
    assert_contains(text, "2 waiting, 1 running, 1 done\n");
    assert_int_equal(number(json_object_get(json, "counts"), "todo"), 2);
    const json_t *taken = row_named("jobs", "id", "bbbb");
    assert_str(said(taken, "worker"), "@host:17");
    assert_str(said(taken, "kernel"), "running.c");
    assert_str(said(taken, "outcome"), "");
    assert_str(said(row_named("jobs", "id", "cccc"), "outcome"), "error");
    assert_str(said(row_named("jobs", "id", "dddd"), "kernel"), "?");
}

static void test_spool__work_on_an_empty_queue_is_done(void **state) {
    (void)state;
    assert_ok(kli_fs_mkdirs(kit_path("spool"), &e));
    with(KL_OPTION_WORK, "");
    assert_ok(ASK(SPOOL, kit_path("spool"), NULL));
    assert_int_equal(answer.exit_code, 0);
    assert_int_equal(number(json, "judged"), 0);
    assert_contains(text, "0 judged, 0 could not be judged");
}

/* ---- experiments -------------------------------------------------------------------------- */

#define PLAN                                                                                       \
    "schema: klineage/experiment\nversion: 1\ntitle: Which one?\nmodel: builtin\n"                 \
    "policies: [generate, {policy: bestofn, name: few, trials: 2, max-steps: 3}]\n"                \
    "workloads: [softmax, {task: gemm, name: product, workload: cpu-large}]\n"

static kl_err dry_run(void) {
    with(KL_OPTION_DRY_RUN, "");
    return ASK(EXPERIMENT, kit_write("x.yaml", PLAN), NULL);
}

static void test_experiment_plan__lists_every_track(void **state) {
    (void)state;
    with(KL_OPTION_BUDGET, "0.5");
    assert_ok(dry_run());
    assert_int_equal(count_of("tracks"), 6);
    const json_t *t = row_named("tracks", "track", "product/few/2");
    assert_str(said(t, "task"), "gemm");
    assert_str(said(t, "workload"), "cpu-large");
    assert_str(said(t, "policy"), "bestofn");
    assert_str(said(t, "surface"), "c");
    assert_int_equal(number(t, "trial"), 2);
    assert_int_equal(number(t, "max_steps"), 3);
    assert_str(said(json, "title"), "Which one?");
    assert_int_equal(number(json, "most_microusd"), 0);
    assert_int_equal(number(json, "budget_microusd"), 0); /* whatever was typed */
    assert_contains(text, "6 tracks with builtin, free of charge\n");
}

static void test_experiment_plan__only_some_of_its_tracks(void **state) {
    (void)state;
    with(KL_OPTION_ONLY, "*/few/*");
    assert_ok(dry_run());
    assert_int_equal(count_of("tracks"), 4);
    with(KL_OPTION_ONLY, "softmax/*");
    assert_ok(dry_run());
    assert_int_equal(count_of("tracks"), 3);
    with(KL_OPTION_ONLY, "few");
    assert_err(KL_EINVAL, dry_run());
    assert_contains(e.message, "no track matches --only 'few'");
    assert_contains(e.hint, "--dry-run lists them");
}

/* What calls cost needs a price and a budget, and both bound the sum that is shown. */
static void test_experiment_plan__a_paid_model_needs_a_budget(void **state) {
    const char *box = kl_arena_printf(arena, "mailbox:%s", kit_path("box")).ptr;
    (void)state;
    with(KL_OPTION_MODEL, box);
    with(KL_OPTION_PRICED_AS, "claude-opus-4-6");
    assert_err(KL_EINVAL, dry_run());
    with(KL_OPTION_MODEL, box);
    with(KL_OPTION_PRICED_AS, "claude-opus-4-6");
    with(KL_OPTION_BUDGET, "0.5");
    assert_ok(dry_run());
    assert_int_equal(number(json, "budget_microusd"), 500000);
    assert_int_equal(number(json, "most_microusd"), 3000000);
    with(KL_OPTION_MODEL, box);
    with(KL_OPTION_PRICED_AS, "claude-opus-4-6");
    with(KL_OPTION_BUDGET, "0.5");
    with(KL_OPTION_BUDGET_TOTAL, "1.25");
    assert_ok(dry_run());
    assert_int_equal(number(json, "most_microusd"), 1250000);
    assert_contains(text, "at most $1.2500 in total, $0.5000 per track\n");
}

static void test_experiment_plan__options_are_checked_like_the_file(void **state) {
    (void)state;
    with(KL_OPTION_BUDGET_TOTAL, "0");
    assert_err(KL_EINVAL, dry_run());
    assert_contains(e.message, "--budget-total must be above 0");
    with(KL_OPTION_BUDGET, "five");
    assert_err(KL_EINVAL, dry_run());
    with(KL_OPTION_JOBS, "0");
    assert_err(KL_EINVAL, dry_run());
    with(KL_OPTION_MODEL, "nobody:x");
    assert_true(dry_run() != KL_OK);
    with(KL_OPTION_DRY_RUN, "");
    assert_err(KL_EPARSE, ASK(EXPERIMENT, kit_write("bad.yaml", "schema: [\n"), NULL));
    assert_contains(e.where, "bad.yaml:");
    assert_false(kli_fs_exists(kit_path("box"))); /* a dry run leaves nothing behind */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_plan__has_a_word_for_every_kind_of_argument),
        TEST(test_kernel_show__plans_for_a_task),
        TEST(test_kernel_show__another_value_is_another_plan_and_identity),
        TEST(test_kernel_diff__status_one_where_they_differ),
        TEST(test_kernel_source__of_a_rung_is_what_its_edits_make),
        TEST(test_spool__shows_where_every_job_is),
        TEST(test_spool__work_on_an_empty_queue_is_done),
        TEST(test_experiment_plan__lists_every_track),
        TEST(test_experiment_plan__only_some_of_its_tracks),
        TEST(test_experiment_plan__a_paid_model_needs_a_budget),
        TEST(test_experiment_plan__options_are_checked_like_the_file),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
