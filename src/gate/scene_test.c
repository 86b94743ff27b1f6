/* scene_test.c - what is remembered of a reference's error.  SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

#include "scene.c"

static void errors_of(double *rms, double first) {
    for (int i = 0; i < KL_MAX_TENSORS; i++) rms[i] = -1;
    rms[0] = first;
}

static void remember_one(kl_reference_error *m, double error) {
    double rms[KL_MAX_TENSORS];
    errors_of(rms, error);
    remember(m, rms);
}

/* A lucky draw of few rows must not make the budget of every later kernel. */
static void test_gate_scene__the_largest_error_of_several_draws_counts(void **state) {
    (void)state;
    kl_reference_error m = {0};
    remember_one(&m, 2e-7);
    assert_true(m.rms[0] == 2e-7 && m.rms[1] == -1);
    remember_one(&m, 9e-7);
    remember_one(&m, 3e-7);
    assert_true(m.rms[0] == 9e-7 && m.draws == 3);
}

static void test_gate_scene__an_error_that_overflowed_gives_way_to_one_that_did_not(void **state) {
    (void)state;
    kl_reference_error m = {0};
    remember_one(&m, INFINITY);
    assert_true(isinf(m.rms[0]));
    remember_one(&m, 1e-6);
    assert_true(m.rms[0] == 1e-6);
    remember_one(&m, NAN);
    remember_one(&m, INFINITY);
    assert_true(m.rms[0] == 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_scene__the_largest_error_of_several_draws_counts),
        cmocka_unit_test(test_gate_scene__an_error_that_overflowed_gives_way_to_one_that_did_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
