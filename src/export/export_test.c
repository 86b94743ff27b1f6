/* export_test.c - directives as C, names, what the journal says of a kernel, and folders that are
 * whole.  What is generated is compiled and called by tests/flow/export_flow.py.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/record.h"
#include "kernel/fixture.h"
#include "kit/kit.h"
#include <klineage/run.h>
#include <stdio.h>

static const char SOURCE[] = "// SPDX-License-Identifier: MIT OR Apache-2.0 */ exec\n"
                             "//! param BM = 64 {32, 64}\n"
                             "//! let tiles = cdiv(M, BM)\n"
                             "//! let share: f32 = K ** -0.5\n"
                             "//! launch gemm args(A, B, C, M, tiles, share)\n";
static kl_fixture fixture;
static kli_export x;
static kl_kernel *kernel;

static int export_set_up(void **state) {
    kit_set_up(state);
    fixture_init(&fixture, 128, 256);
    assert_ok(kl_kernel_parse(&kernel, arena, kl_str_of(SOURCE), KL_S("k.c"), NULL, NULL, &e));
    x = (kli_export){.arena = arena,
                     .task = &fixture.task,
                     .kernel = kernel,
                     .workload = &fixture.workload,
                     .name = "small"};
    return 0;
}
#define EXPORT_TEST(function)                                                                      \
    cmocka_unit_test_setup_teardown(function, export_set_up, kit_tear_down)

/* ---- text -------------------------------------------------------------------------------- */

static void test_expression__is_checked_and_stops_early(void **state) {
    (void)state;
    assert_str(kli_expression(&x, KL_S("M * -BM")),
               "klx_mul(&p->bad, p->axis_M, klx_sub(&p->bad, INT64_C(0), INT64_C(64)))");
    assert_str(kli_expression(&x, KL_S("K == 0 || M % K >= tiles // 2")),
               "(int64_t)(((int64_t)(p->axis_K == INT64_C(0))) || ((int64_t)(klx_mod(&p->bad, "
               "p->axis_M, p->axis_K) >= klx_floor(&p->bad, p->let_tiles, INT64_C(2)))))");
    assert_str(kli_expression(&x, KL_S("pow2(min(M, cores))")),
               "klx_pow2(&p->bad, klx_min(&p->bad, p->axis_M, p->device_cores))");
    assert_str(kli_real_expression(&x, KL_S("alpha * K ** -0.5 / 2")),
               "(((double)alpha * pow((double)p->axis_K, (-0.5))) / 2.0)");
}

static void test_name__steps_aside_of_words_and_kernels(void **state) {
    (void)state;
    assert_str(kli_export_name(arena, KL_S("weight")), "weight");
    assert_str(kli_export_name(arena, KL_S("float")), "x_float");
    assert_str(kli_export_name(arena, KL_S("2d-mask")), "x_2d_mask");
    assert_str(kli_entry_name(&x, KL_S("gemm")), "small_entry_gemm");
    assert_true(kli_export_is_name("rms_norm2") && !kli_export_is_name("2rms"));
    assert_false(kli_export_is_name("lambda") || kli_export_is_name("a b") ||
                 kli_export_is_name(""));
}

static void test_header__no_text_of_a_task_ends_a_comment(void **state) {
    (void)state;
    kli_values v = {0};
    fixture.task.description = KL_S("*/ int main(void) { /* \\\n#error");
    fixture.task.constraints[0] = KL_S("**/ x");
    fixture.task.n_constraints = 1;
    kli_header_values(&v, &x);
    const char *header = kli_template(&v, "header").ptr;
    assert_contains(header, "* / int main(void) { / *  ");
    assert_contains(header, "sees to it: ** / x");
    assert_null(strstr(header, "\n#error"));
    assert_contains(header, "SPDX-License-Identifier: MIT OR Apache-2.0 */");
}

/* ---- the journal ------------------------------------------------------------------------- */

static void put_step(kl_store *store, int64_t n, const char *kernel_hash, const char *parent,
                     const char *action, bool accepted) {
    const kl_step step = {.workload = KL_S("w"),
                          .policy = KL_S("klineage"),
                          .phase = KL_S("search"),
                          .kernel = kl_str_of(kernel_hash),
                          .parent = kl_str_of(parent),
                          .action = kl_str_of(action),
                          .outcome = KL_S("pass"),
                          .accepted = accepted,
                          .spent_microusd = 1000 * n};
    json_t *o = kli_record_json(&KL_STEP, &step);
    const kl_store_step row = {.run = KL_S("0123456789abcdef0123456789abcdef0123456789abcdef0123456"
                                           "789abcdef"),
                               .track = KL_S("small/klineage/1"),
                               .n = n,
                               .json = kli_json_dump(arena, o, false)};
    json_decref(o);
    assert_ok(kl_store_step_put(store, &row, &e));
}

static void put_verdict(kl_store *store, const char *key, kl_outcome outcome, const char *task) {
    kl_verdict v = {.outcome = outcome,
                    .stage = KL_STAGE_DONE,
                    .assurance = 'B',
                    .task = KL_S("small"),
                    .task_hash = kl_str_of(task),
                    .kernel_hash = kl_str_of(kernel->hash),
                    .surface = KL_S("c"),
                    .workload = KL_S("real")};
    json_t *o = kl_verdict_json(&v);
    const kl_store_verdict row = {.key = kl_str_of(key),
                                  .task = v.task,
                                  .kernel = v.kernel_hash,
                                  .platform = KL_S("here"),
                                  .outcome = kl_str_of(kl_outcome_name(outcome)),
                                  .json = kli_json_dump(arena, o, false)};
    json_decref(o);
    assert_ok(kl_store_verdict_put(store, &row, &e));
}

#define KEY_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define KEY_2 "2222222222222222222222222222222222222222222222222222222222222222"
#define KEY_3 "3333333333333333333333333333333333333333333333333333333333333333"

static void test_find__takes_what_passed_and_the_way_that_led_to_it(void **state) {
    (void)state;
    kl_store *store;
    assert_ok(kl_store_open(&store, kit_path("journal.db"), &e));
    assert_err(KL_ENOENT, kli_export_find(&x, store, NULL, NULL, &e));
    put_verdict(store, KEY_1, KL_OUTCOME_PASS, KEY_1);
    put_verdict(store, KEY_2, KL_OUTCOME_WRONG, KEY_1);
    assert_ok(kl_store_run_put(store,
                               &(kl_store_run){.id = KL_S("0123456789abcdef0123456789abcdef01234567"
                                                          "89abcdef0123456789abcdef"),
                                               .command = KL_S("optimize"),
                                               .json = KL_S("{}")},
                               &e));
    put_step(store, 0, "start", "", "", true);
    put_step(store, 1, "first", "start", "pack-b-c", false); /* a preparation */
    put_step(store, 2, "other", "first", "prefetch-c", false);
    put_step(store, 3, kernel->hash, "first", "vectorize", true);
    assert_err(KL_ENOENT, kli_export_find(&x, store, KEY_3, NULL, &e));
    assert_err(KL_ENOENT, kli_export_find(&x, store, NULL, "tiny", &e));
    assert_ok(kli_export_find(&x, store, KEY_1, "real", &e));
    kl_store_close(store);
    assert_string_equal(x.verdict_key, KEY_1);
    assert_non_null(x.origin);
    json_t *actions = json_object_get(x.origin, "actions");
    assert_int_equal(json_array_size(actions), 2);
    assert_string_equal(json_string_value(json_array_get(actions, 0)), "pack-b-c");
    assert_string_equal(json_string_value(json_array_get(actions, 1)), "vectorize");
    assert_int_equal(json_integer_value(json_object_get(x.origin, "spent_microusd")), 3000);
    json_decref(x.origin);
}

/* ---- the folder -------------------------------------------------------------------------- */

static void test_write__leaves_all_or_nothing(void **state) {
    (void)state;
    kli_export_files files = {0};
    kl_str *names;
    size_t n;
    const char *dir = kit_path("out");
    kli_files_add(&files, KL_S("a/b.txt"), KL_S("first"));
    assert_ok(kli_export_write(&files, arena, kit_path("out/"), false, &e));
    assert_err(KL_EINVAL, kli_export_write(&files, arena, dir, false, &e));
    assert_contains(e.hint, "--force");
    files.at[0].text = KL_S("second");
    kli_files_add(&files, KL_S("a/b.txt/c"), KL_S("a file is no folder"));
    assert_true(kli_export_write(&files, arena, dir, true, &e) != KL_OK);
    assert_string_equal(kit_read(kit_path("out/a/b.txt")), "first");
    files.n = 1;
    assert_ok(kli_export_write(&files, arena, dir, true, &e));
    assert_string_equal(kit_read(kit_path("out/a/b.txt")), "second");
    assert_ok(kli_fs_list(&names, &n, arena, kit_folder(), &e));
    assert_int_equal(n, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EXPORT_TEST(test_expression__is_checked_and_stops_early),
        EXPORT_TEST(test_name__steps_aside_of_words_and_kernels),
        EXPORT_TEST(test_header__no_text_of_a_task_ends_a_comment),
        EXPORT_TEST(test_find__takes_what_passed_and_the_way_that_led_to_it),
        EXPORT_TEST(test_write__leaves_all_or_nothing),
    };
    return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
