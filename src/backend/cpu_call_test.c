/* cpu_call_test.c - arguments arrive where the calling convention puts them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cpu_call.h"
#include "base/test.h"

static int64_t ints[20];
static double reals[12];

static void few(const char *p, int32_t a, float f, int64_t b, double d) {
    ints[0] = p[0];
    ints[1] = a;
    ints[2] = b;
    reals[0] = (double)f;
    reals[1] = d;
}

/* Ten integers and ten reals, mixed: both rows of registers overflow to the stack. */
static void many(int64_t a, double p, int32_t b, float q, int64_t c, double r, int64_t d, double s,
                 int64_t e, float t, int64_t f, double u, int32_t g, double v, int64_t h, double w,
                 int64_t i, float x, int32_t j, double y) {
    const int64_t all[] = {a, b, c, d, e, f, g, h, i, j};
    const double all_reals[] = {p, (double)q, r, s, (double)t, u, v, w, (double)x, y};
    memcpy(ints, all, sizeof all);
    memcpy(reals, all_reals, sizeof all_reals);
}

static void test_cpu_call__passes_a_few(void **state) {
    kli_backend_call c;
    (void)state;
    kli_call_init(&c, (void (*)(void))(uintptr_t)few);
    kli_call_add_int(&c, (uint64_t)(uintptr_t) "*");
    kli_call_add_int(&c, (uint64_t)(int64_t)-7);
    kli_call_add_float(&c, 1.5f);
    kli_call_add_int(&c, 1ull << 40);
    kli_call_add_double(&c, -0.25);
    kli_call_make(&c);
    assert_int_equal(ints[0], '*');
    assert_int_equal(ints[1], -7);
    assert_int_equal(ints[2], 1ll << 40);
    assert_true(reals[0] == 1.5 && reals[1] == -0.25);
}

static void test_cpu_call__spills_to_the_stack_in_order(void **state) {
    kli_backend_call c;
    (void)state;
    kli_call_init(&c, (void (*)(void))(uintptr_t)many);
    for (int k = 0; k < 10; k++) {
        kli_call_add_int(&c, (uint64_t)(int64_t)(k % 2 ? -k : k));
        if (k == 1 || k == 4 || k == 8)
            kli_call_add_float(&c, (float)k + 0.5f);
        else
            kli_call_add_double(&c, k + 0.5);
    }
    kli_call_make(&c);
    for (int k = 0; k < 10; k++) {
        assert_int_equal(ints[k], k % 2 ? -k : k);
        assert_true(reals[k] == k + 0.5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_call__passes_a_few),
        cmocka_unit_test(test_cpu_call__spills_to_the_stack_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
