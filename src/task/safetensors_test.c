/* Tests of safetensors.c: one sound file, and every way in which a header can lie.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "fixtures.h"

static const kl_shape shape = {.ndim = 2, .dims = {2, 3}, .elems = 6, .bytes = 24};

/* Length, header and `data_bytes` bytes 0, 1, 2 ... */
static const char *write_file(fixture *f, uint64_t length, const char *header, int data_bytes) {
    static const char path[] = "tensors.safetensors";
    kl_buf bytes = {0};
    for (int i = 0; i < 8; i++) {
        const char byte = (char)(length >> (8 * i) & 0xff);
        kl_buf_add(&bytes, (kl_str){&byte, 1});
    }
    kl_buf_add(&bytes, kl_str_of(header));
    for (int i = 0; i < data_bytes; i++) {
        const char byte = (char)i;
        kl_buf_add(&bytes, (kl_str){&byte, 1});
    }
    assert_ok(kli_fs_write(path, kl_buf_str(&bytes), &f->error));
    kl_buf_fini(&bytes);
    return path;
}

static kl_err read_x(fixture *f, const char *header, int data_bytes, kl_dtype dtype, void *data) {
    const char *path = write_file(f, strlen(header), header, data_bytes);
    return kli_safetensors_read(data, path, KL_S("x"), dtype, &shape, &f->error);
}

#define SOUND                                                                                      \
    "{\"__metadata__\": {\"format\": \"pt\"}, \"b\": {\"dtype\": \"F9_NEW\", \"shape\": [2], "     \
    "\"data_offsets\": [0, "                                                                       \
    "1]}, "                                                                                        \
    "\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [1, 25]}, "                  \
    "\"empty\": {\"dtype\": \"U64\", \"shape\": [0], \"data_offsets\": [25, 25]}}"

static void test_task_safetensors__reads_one_tensor(void **state) {
    fixture *f = *state;
    int32_t data[6];
    assert_ok(read_x(f, SOUND, 25, KL_I32, data));
    assert_int_equal(data[0], 0x04030201);
    assert_int_equal(data[5], 0x18171615);
}

static void test_task_safetensors__refuses_another_tensor(void **state) {
    fixture *f = *state;
    int32_t data[6];
    assert_err(KL_EINVAL, read_x(f, SOUND, 25, KL_F32, data));
    const char *path = write_file(f, strlen(SOUND), SOUND, 25);
    assert_err(KL_EINVAL, kli_safetensors_read(data, path, KL_S("y"), KL_I32, &shape, &f->error));
    assert_err(KL_EINVAL,
               kli_safetensors_read(data, path, KL_S("__metadata__"), KL_I32, &shape, &f->error));
    kl_shape other = shape;
    other.dims[0] = 3, other.dims[1] = 2;
    assert_err(KL_EINVAL, kli_safetensors_read(data, path, KL_S("x"), KL_I32, &other, &f->error));
    other.ndim = 1, other.dims[0] = 6;
    assert_err(KL_EINVAL, kli_safetensors_read(data, path, KL_S("x"), KL_I32, &other, &f->error));
}

static void test_task_safetensors__refuses_headers_that_lie(void **state) {
    fixture *f = *state;
    static const char *const headers[] = {
        "",
        "{",
        "[]",
        "{\"x\": 5}",
        "{\"x\": {}}",
        "{\"x\": {\"dtype\": 5, \"shape\": [2, 3], \"data_offsets\": [0, 24]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [0, 23]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [0, 25]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [24, 0]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [-1, 23]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [0]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [0, 24, 48]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [0.0, 24.0]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, -3], \"data_offsets\": [0, 24]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [4611686018427387904, 4, 6], \"data_offsets\": "
        "[0, 24]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [4, 28]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [0, 24]}, \"x\": "
        "{\"dtype\": \"I32\", "
        "\"shape\": [2, 3], \"data_offsets\": [0, 24]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [0, 24]}, \"y\": "
        "{\"dtype\": \"I32\", "
        "\"shape\": [2, 3], \"data_offsets\": [0, 24]}}",
        "{\"x\": {\"dtype\": \"I32\", \"shape\": [2, 3], \"data_offsets\": [0, 24]}, "
        "\"__metadata__\": {\"a\": 5}}",
        "{\"x\": {\"dtype\": \"I8\", \"shape\": [20], \"data_offsets\": [0, 20]}}",
        "{\"x\": {\"dtype\": \"\xff\", \"shape\": [20], \"data_offsets\": [0, 20]}}",
    };
    int32_t data[6];
    for (size_t i = 0; i < KL_COUNT(headers); i++) {
        const kl_err err = read_x(f, headers[i], 24, KL_I32, data);
        if (err != KL_EIO)
            fail_msg("%s gave %s: %s", headers[i], kl_err_name(err), f->error.message);
    }
}

static void test_task_safetensors__refuses_lengths_beyond_the_file(void **state) {
    fixture *f = *state;
    int32_t data[6];
    static const uint64_t lengths[] = {0, 1, 1000, 1u << 30, UINT64_MAX, (uint64_t)1 << 63};
    for (size_t i = 0; i < KL_COUNT(lengths); i++)
        assert_err(KL_EIO, kli_safetensors_read(data, write_file(f, lengths[i], SOUND, 25),
                                                KL_S("x"), KL_I32, &shape, &f->error));
    assert_ok(kli_fs_write("short.safetensors", KL_S("\x02\0\0"), &f->error));
    assert_err(KL_EIO, kli_safetensors_read(data, "short.safetensors", KL_S("x"), KL_I32, &shape,
                                            &f->error));
    assert_err(KL_EIO, kli_safetensors_read(data, "missing.safetensors", KL_S("x"), KL_I32, &shape,
                                            &f->error));
    assert_err(KL_EIO, kli_safetensors_read(data, ".", KL_S("x"), KL_I32, &shape, &f->error));
}

static void test_task_safetensors__does_not_hang_on_a_pipe(void **state) {
    fixture *f = *state;
    int32_t data[6];
    (void)remove("pipe.safetensors");
    assert_int_equal(mkfifo("pipe.safetensors", 0600), 0);
    assert_err(KL_EIO, kli_safetensors_read(data, "pipe.safetensors", KL_S("x"), KL_I32, &shape,
                                            &f->error));
}

static void test_task_safetensors__gives_bools_that_are_0_or_1(void **state) {
    fixture *f = *state;
    unsigned char data[24];
    kl_shape flags = {.ndim = 1, .dims = {24}, .elems = 24, .bytes = 24};
    const char *header =
        "{\"x\": {\"dtype\": \"BOOL\", \"shape\": [24], \"data_offsets\": [0, 24]}}";
    assert_ok(kli_safetensors_read(data, write_file(f, strlen(header), header, 24), KL_S("x"),
                                   KL_BOOL, &flags, &f->error));
    assert_int_equal(data[0], 0);
    assert_int_equal(data[23], 1);
}

static void test_task_safetensors__fills_an_input(void **state) {
    fixture *f = *state;
    int32_t data[6];
    kl_workload *w;
    (void)write_file(f, strlen(SOUND), SOUND, 25);
    assert_ok(parse_definition(
        f, definition_with(f, AXES, "\"x\": {\"shape\": [\"M\", 3], \"dtype\": \"int32\"}", OUTPUTS,
                           "")));
    f->task->dir = KL_S(".");
    assert_ok(
        parse_workloads(f, "{\"uuid\": \"u\", \"axes\": {\"M\": 2, \"N\": 1}, \"inputs\": {\"x\": "
                           "{\"type\": \"safetensors\", \"path\": \"./tensors.safetensors\", "
                           "\"tensor_key\": \"x\"}}}"));
    assert_ok(kl_task_fill(data, f->task, f->task->workloads, 0, 1, 1, 1, &f->error));
    assert_int_equal(data[0], 0x04030201);
    assert_err(KL_EINVAL, kl_workload_with_axes(&w, f->arena, f->task, f->task->workloads,
                                                KL_S("M=4"), &f->error));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_of(test_task_safetensors__reads_one_tensor),
        test_of(test_task_safetensors__refuses_another_tensor),
        test_of(test_task_safetensors__refuses_headers_that_lie),
        test_of(test_task_safetensors__refuses_lengths_beyond_the_file),
        test_of(test_task_safetensors__does_not_hang_on_a_pipe),
        test_of(test_task_safetensors__gives_bools_that_are_0_or_1),
        test_of(test_task_safetensors__fills_an_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
