/* device_test.c - what a probe may say, and the table of back ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/device_json.h"
#include "backend/device_key.h"
#include "base/fs.h"
#include "base/recall.h"
#include "base/test.h"
#include "kernel/kernel.h"
#include <stdlib.h>

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
    assert_int_equal(d.limits.smem_max, 163 << 10);        /* the architecture says it */
    assert_ok(kl_device_target(&d, a, KL_BACKEND_CUDA, "sm_90a", &e));
    assert_int_equal(d.limits.smem_max, 227 << 10);
    assert_ok(kl_device_target(&d, a, KL_BACKEND_CUDA, "sm_75", &e));
    assert_int_equal(d.limits.smem_max, 64 << 10);
    assert_ok(kl_device_target(&d, a, KL_BACKEND_CUDA, "sm_61", &e));
    assert_int_equal(d.limits.smem_max, 0);
    kl_arena_free(a);
}

static void test_backend__each_row_is_found_by_its_number(void **state) {
    int n = 0;
    (void)state;
    for (; kli_backend_each(n); n++) {
        const kl_backend *b = kli_backend_each(n);
        assert_ptr_equal(kli_backend_get(b->id), b);
        assert_true(b->shared_memory == b->parent_clock); /* who has its own memory has events */
    }
    assert_int_equal(n, KL_BACKEND_CUDA);
    assert_null(kli_backend_each(-1));
    assert_null(kli_backend_get((kl_backend_id)0));
    assert_null(kli_backend_get((kl_backend_id)(KL_BACKEND_CUDA + 1)));
}

static void test_backend__a_surface_names_rows_in_its_own_order(void **state) {
    const kl_surface s = {.backends = (const char *const[]){"cuda", "nowhere", "cpu", NULL}};
    (void)state;
    assert_ptr_equal(kli_backend_of_surface(&s, 0), kli_backend_get(KL_BACKEND_CUDA));
    assert_null(kli_backend_of_surface(&s, 1));
    assert_ptr_equal(kli_backend_of_surface(&s, 2), kli_backend_get(KL_BACKEND_CPU));
    assert_null(kli_backend_of_surface(&s, 3));
}

/* ---- answers that are given again -------------------------------------------------------- */

static const char GPU[] = "fake_proc/driver/nvidia/gpus/0000:01:00.0/information";

static void write_proc(const char *path, const char *text) {
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    assert_ok(kli_fs_mkdirs(kli_fs_dirname(a, path).ptr, &e));
    assert_ok(kli_fs_write(path, kl_str_of(text), &e));
    kl_arena_free(a);
}

static void write_machine(void) {
    kli_fs_remove_tree("fake_proc");
    write_proc("fake_proc/driver/nvidia/version", "NVRM version: 580.1\n");
    write_proc("fake_proc/sys/kernel/random/boot_id", "11111111\n");
    write_proc(GPU, "Model: \t\t H200\nIRQ:   \t\t 100\nGPU UUID: \t GPU-1234\nBus: PCIe\n");
}

static void test_device__a_key_names_boot_driver_and_gpus(void **state) {
    const struct {
        const char *path, *text;
        bool known, same;
    } changes[] = {
        {GPU, "Model: \t\t H200\nIRQ:   \t\t 7\nGPU UUID: \t GPU-1234\n", true, true},
        {GPU, "Model: \t\t H200\nIRQ:   \t\t 100\nGPU UUID: \t GPU-1235\n", true, false},
        {GPU, "Model: \t\t H200\nGPU UUID: \t GPU-????????\n", false, false},
        {GPU, "Model: \t\t H200\n", false, false},
        {"fake_proc/driver/nvidia/version", "NVRM version: 580.2\n", true, false},
        {"fake_proc/sys/kernel/random/boot_id", "11111112\n", true, false},
        {"fake_proc/driver/nvidia/gpus/0000:02:00.0/information", "GPU UUID: GPU-9\n", true, false},
        {"fake_proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0", "", true, false}};
    kl_arena *a = kl_arena_new();
    (void)state;
    assert_int_equal(kli_device_key(a, "no_proc").len, 0);
    write_machine();
    const kl_str key = kli_device_key(a, "fake_proc");
    assert_true(key.len > 0);
    for (size_t i = 0; i < KL_COUNT(changes); i++) {
        write_machine();
        write_proc(changes[i].path, changes[i].text);
        const kl_str other = kli_device_key(a, "fake_proc");
        assert_int_equal(other.len > 0, changes[i].known);
        assert_int_equal(kl_str_eq(other, key), changes[i].same);
    }
    write_machine();
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "1", 1), 0);
    assert_false(kl_str_eq(kli_device_key(a, "fake_proc"), key));
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    kl_arena_free(a);
}

static kl_err answer(kl_device *d, kl_arena *a, const char *key, kl_error *e) {
    return kli_device_answer(d, a, kli_backend_get(KL_BACKEND_CUDA), kl_str_of(key), e);
}

/* There is no driver here: whoever asks the device gets no answer. */
static void test_device__an_answer_is_given_again_under_its_key_alone(void **state) {
    static const char SAID[] = "{\"name\": \"a GPU\", \"platform\": \"p\", \"arch\": \"sm_90a\", "
                               "\"toolchain\": \"nvrtc 13.0\"}\n";
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_device d;
    (void)state;
    assert_int_equal(setenv("KLINEAGE_CACHE", "device_cache", 1), 0);
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", "/nonexistent/libcuda.so.1", 1), 0);
    kli_fs_remove_tree("device_cache");
    assert_err(KL_ENODEV, answer(&d, a, "key", &e));
    kli_remember("device-cuda", KL_S("key"), kl_str_of(SAID));
    assert_ok(answer(&d, a, "key", &e));
    assert_str(d.name, "a GPU");
    assert_int_equal(d.backend, KL_BACKEND_CUDA);
    assert_err(KL_ENODEV, answer(&d, a, "another key", &e));
    assert_err(KL_ENODEV, answer(&d, a, "", &e));
    kli_remember("device-cuda", KL_S("key"), KL_S("{\"name\": \"\"}"));
    assert_err(KL_ENODEV, answer(&d, a, "key", &e));
    kl_arena_free(a);
}

/* The CPU can always be asked. */
static void test_device__an_answer_of_the_device_is_kept(void **state) {
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_device asked, again;
    kl_str text;
    (void)state;
    const kl_backend *cpu = kli_backend_get(KL_BACKEND_CPU);
    assert_int_equal(setenv("KLINEAGE_CACHE", "device_cache", 1), 0);
    kli_fs_remove_tree("device_cache");
    assert_ok(kli_device_answer(&asked, a, cpu, KL_S(""), &e));
    assert_false(kli_recall(&text, a, "device-cpu", KL_S("key")));
    assert_ok(kli_device_answer(&asked, a, cpu, KL_S("key"), &e));
    assert_true(kli_recall(&text, a, "device-cpu", KL_S("key")));
    assert_ok(kli_device_answer(&again, a, cpu, KL_S("key"), &e));
    assert_true(kl_str_eq(again.platform, asked.platform) && kl_str_eq(again.name, asked.name));
    assert_true(again.limits.memory == asked.limits.memory);
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device__reads_what_a_probe_prints),
        cmocka_unit_test(test_device__refuses_what_is_no_device),
        cmocka_unit_test(test_device__a_target_is_known_by_its_architecture_alone),
        cmocka_unit_test(test_device__a_key_names_boot_driver_and_gpus),
        cmocka_unit_test(test_device__an_answer_is_given_again_under_its_key_alone),
        cmocka_unit_test(test_device__an_answer_of_the_device_is_kept),
        cmocka_unit_test(test_backend__each_row_is_found_by_its_number),
        cmocka_unit_test(test_backend__a_surface_names_rows_in_its_own_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
