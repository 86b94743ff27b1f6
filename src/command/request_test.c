/* request_test.c - what is named on the command line is found, and what is not comes with the word
 * that was meant. SPDX-License-Identifier: Apache-2.0 */
#include "command/request.h"
#include "base/fs.h"
#include "kit/kit.h"
#include <stdlib.h>

#define KERNEL                                                                                     \
    "//! param BM = 8 {8, 16}\n//! launch gemm args(x, weight, y, M, N, K)\nvoid gemm(void) {}\n"

static kl_task *gemm;

static int set_up(void **state) {
    kit_set_up(state);
    setenv("KLINEAGE_TASKS", KL_TEST_ROOT "/tasks", 1);
    assert_ok(kli_request_task(&gemm, arena, "gemm", &e));
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

/* ---- kernels ----------------------------------------------------------------------------- */

static kl_err kernel(kl_kernel **out, kl_error *refusal, const char *path, const char *param) {
    const char *params[] = {param, NULL};
    e = *refusal = (kl_error){0};
    return kli_request_kernel(out, refusal, arena, path, param ? params : NULL, &e);
}

static void test_request_kernel__a_file_is_read(void **state) {
    (void)state;
    kl_kernel *k;
    kl_error refusal;
    assert_ok(kernel(&k, &refusal, kit_write("k.c", KERNEL), "BM=16"));
    assert_int_equal(k->params[0].value, 16);
    assert_ok(kernel(&k, &refusal, KL_TEST_ROOT "/experts/gemm/c/3-vector.c", NULL));
    assert_true(kl_str_ends(k->path, KL_S("/3-vector.c")));
    assert_ok(kernel(&k, &refusal, KL_TEST_ROOT "/experts/gemm/c/3-vector.diff", NULL));
    assert_true(kl_str_ends(k->path, KL_S("/3-vector.c")));
}

static void test_request_kernel__a_malformed_one_is_a_result_not_an_error(void **state) {
    (void)state;
    kl_kernel *k;
    kl_error refusal;
    assert_ok(kernel(&k, &refusal, kit_write("k.c", "//! lunch f args()\n"), NULL));
    assert_null(k);
    assert_contains(refusal.where, "k.c:1:");
    assert_contains(refusal.detail, "^");
}

static void test_request_kernel__a_wrong_request_is_an_error(void **state) {
    (void)state;
    static const struct {
        kl_err err;
        const char *path, *param;
    } rows[] = {{KL_ENOENT, "nowhere.c", NULL}, {KL_EINVAL, ".", NULL},
                {KL_EINVAL, "notes.txt", NULL}, {KL_EINVAL, "k.c", "CM=16"},
                {KL_EINVAL, "k.c", "BM=many"},  {KL_ENOENT, "4-nothing.diff", NULL}};
    kl_kernel *k;
    kl_error refusal;
    kit_write("k.c", KERNEL);
    kit_write("notes.txt", "text");
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        assert_err(rows[i].err, kernel(&k, &refusal, kit_path(rows[i].path), rows[i].param));
        assert_true(e.message[0]);
    }
}

static void test_request_kernel__params_of_a_malformed_kernel_are_not_the_mistake(void **state) {
    (void)state;
    kl_kernel *k;
    kl_error refusal;
    assert_ok(kernel(&k, &refusal, kit_write("k.c", "//! lunch f args()\n"), "BM=16"));
    assert_null(k);
}

/* ---- tasks and shapes -------------------------------------------------------------------- */

static void test_request_task__the_nearest_name_is_offered(void **state) {
    (void)state;
    kl_task *t;
    kl_str *paths;
    size_t n;
    assert_err(KL_ENOENT, kli_request_task(&t, arena, "gemmm", &e));
    assert_contains(e.hint, "gemm");
    e = (kl_error){0};
    assert_err(KL_ENOENT, kli_request_task(&t, arena, "nothing_like_it", &e));
    assert_contains(e.hint, "klineage task list");
    assert_ok(kli_request_tasks(&paths, &n, arena, &e));
    assert_true(n >= 8);
    for (size_t i = 0; i < n; i++) assert_ok(kli_request_task(&t, arena, paths[i].ptr, &e));
}

static kl_err workload(const kl_workload **out, kl_host_kind on, const char *requested) {
    e = (kl_error){0};
    return kli_request_workload(out, arena, gemm, on, requested, &e);
}

static void test_request_workload__by_name_by_sizes_or_the_first(void **state) {
    (void)state;
    const kl_workload *w, *first;
    assert_ok(workload(&first, KL_ON_CPU, NULL));
    assert_ok(workload(&w, KL_ON_CPU, first->label.ptr));
    assert_ptr_equal(w, first);
    assert_ok(workload(&w, KL_ON_CPU, "M=64,N=32,K=16"));
    assert_int_equal(w->axes[0] * w->axes[1] * w->axes[2], 64 * 32 * 16);
    assert_ok(workload(&w, KL_ON_GPU, "paper"));
}

static void test_request_workload__refuses_what_is_not_there(void **state) {
    (void)state;
    const kl_workload *w;
    assert_err(KL_EINVAL, workload(&w, KL_ON_CPU, "cpuu"));
    assert_contains(e.hint, "cpu");
    assert_err(KL_EINVAL, workload(&w, KL_ON_CPU, "paper")); /* a shape for a GPU */
    assert_contains(e.message, "paper");
    static const char *const sizes[] = {"M=0", "M=-5", "M=", "Q=3", "M=99999999999999999999"};
    for (size_t i = 0; i < KL_COUNT(sizes); i++) {
        kl_err err = workload(&w, KL_ON_CPU, sizes[i]);
        if (!err) fail_msg("%s was taken", sizes[i]);
    }
}

/* ---- options ----------------------------------------------------------------------------- */

static kl_err options(kl_gate_opts *out, kli_option_id id, const char *value) {
    kli_args args = {.command = KL_COMMAND_GATE};
    args.values[id] = value;
    e = (kl_error){0};
    return kli_request_options(out, arena, &args, gemm, KL_ON_CPU, &e);
}

static void test_request_options__say_what_was_typed(void **state) {
    (void)state;
    kl_gate_opts o;
    assert_ok(options(&o, KL_OPTION_SEED, "7"));
    assert_int_equal(o.seed, 7);
    assert_ok(options(&o, KL_OPTION_CHECK_ONLY, ""));
    assert_true(o.check_only && !o.quick);
    assert_ok(options(&o, KL_OPTION_BASELINE, "none"));
    assert_string_equal(o.baseline, "none");
    assert_err(KL_EINVAL, options(&o, KL_OPTION_BASELINE, "openblass"));
    assert_contains(e.hint, "openblas");
    assert_err(KL_EINVAL, options(&o, KL_OPTION_SEED, "0"));
    assert_err(KL_EINVAL, options(&o, KL_OPTION_WORKLOAD, "cpuu"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_request_kernel__a_file_is_read),
        TEST(test_request_kernel__a_malformed_one_is_a_result_not_an_error),
        TEST(test_request_kernel__a_wrong_request_is_an_error),
        TEST(test_request_kernel__params_of_a_malformed_kernel_are_not_the_mistake),
        TEST(test_request_task__the_nearest_name_is_offered),
        TEST(test_request_workload__by_name_by_sizes_or_the_first),
        TEST(test_request_workload__refuses_what_is_not_there),
        TEST(test_request_options__say_what_was_typed),
    };
    return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
