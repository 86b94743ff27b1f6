/* device_test.c - what a probe may say, and the table of back ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/device_json.h"
#include "base/test.h"
#include <klineage/surface.h>

static kl_err parse(kl_device *d, kl_arena *a, const char *json, kl_error *e) {
    *d = (kl_device){.backend = KL_BACKEND_OPENCL};
    return kli_device_parse(d, a, kl_str_of(json), e);
}

static void test_device__reads_what_a_probe_prints(void **state) {
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_device d;
    (void)state;
    assert_ok(parse(&d, a,
                    "{\"name\": \"a core\", \"platform\": \"p\", \"arch\": \"x\", \"toolchain\": "
                    "\"gcc 1\", \"driver\": \"\", \"limits\": {\"sms\": 4, \"cores\": 2, "
                    "\"smem_max\": 0, \"max_threads\": 0, \"memory\": 1024}, \"peak_flops\": "
                    "{\"float32\": 5e9, \"no_such_type\": 1}, \"peak_bytes\": 1e9, \"l2_bytes\": "
                    "64, \"pageable_access\": true}\n",
                    &e));
    assert_int_equal(d.backend, KL_BACKEND_OPENCL); /* is the asker's, not the text's */
    assert_str(d.name, "a core");
    assert_int_equal(d.limits.sms, 4);
    assert_int_equal(d.limits.memory, 1024);
    assert_true(d.peak_flops[KL_F32] == 5e9 && d.peak_flops[KL_F64] == 0.0);
    assert_true(d.pageable_access && d.l2_bytes == 64);
    kl_arena_free(a);
}

static void test_device__refuses_what_is_no_device(void **state) {
    static const char *const NONE[] = {"", "null", "{", "no device\n", "{\"name\": \"\"}", "{}"};
    kl_arena *a = kl_arena_new();
    kl_device d;
    (void)state;
    for (size_t i = 0; i < KL_COUNT(NONE); i++) {
        kl_error e = {0};
        assert_err(KL_EPARSE, parse(&d, a, NONE[i], &e));
        assert_contains(e.where, "klineage-worker probe");
    }
    kl_arena_free(a);
}

static void test_device__a_target_is_known_by_its_architecture_alone(void **state) {
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_device d;
    (void)state;
    assert_ok(kl_device_target(&d, a, KL_BACKEND_CUDA, NULL, &e));
    assert_str(d.arch, "sm_90a");
    assert_ok(kl_device_target(&d, a, KL_BACKEND_CUDA, "sm_80", &e));
    assert_str(d.platform, "nvidia-sm_80");
    assert_str(d.toolchain, "unknown");
    assert_true(d.limits.sms == 0 && d.peak_bytes == 0.0); /* not known, and not invented */
    kl_arena_free(a);
}

static void test_backend__each_row_is_found_by_its_number(void **state) {
    int n = 0;
    (void)state;
    for (; kl_backend_each(n); n++) {
        const kl_backend *b = kl_backend_each(n);
        assert_ptr_equal(kl_backend_get(b->id), b);
        assert_true(b->shared_memory == b->parent_clock); /* who has its own memory has events */
    }
    assert_int_equal(n, KL_BACKEND_CUDA);
    assert_null(kl_backend_each(-1));
    assert_null(kl_backend_get((kl_backend_id)0));
    assert_null(kl_backend_get((kl_backend_id)(KL_BACKEND_CUDA + 1)));
}

static void test_backend__a_surface_names_rows_in_its_own_order(void **state) {
    const kl_surface s = {.backends = (const char *const[]){"cuda", "nowhere", "cpu", NULL}};
    (void)state;
    assert_ptr_equal(kl_backend_of_surface(&s, 0), kl_backend_get(KL_BACKEND_CUDA));
    assert_null(kl_backend_of_surface(&s, 1));
    assert_ptr_equal(kl_backend_of_surface(&s, 2), kl_backend_get(KL_BACKEND_CPU));
    assert_null(kl_backend_of_surface(&s, 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device__reads_what_a_probe_prints),
        cmocka_unit_test(test_device__refuses_what_is_no_device),
        cmocka_unit_test(test_device__a_target_is_known_by_its_architecture_alone),
        cmocka_unit_test(test_backend__each_row_is_found_by_its_number),
        cmocka_unit_test(test_backend__a_surface_names_rows_in_its_own_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
