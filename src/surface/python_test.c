/* python_test.c - the same bytes, whichever process a compiler in Python ran in: one of its own,
 * the first child of a server, a child of a warm one.  Kernels whose package is not here are left
 * out. SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/test.h"
#include "backend/backend.h"
#include "kernel/kernel.h"
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *file, *task;
} KERNELS[] = {{"triton/softmax", "softmax"},
               {"triton/gemm_pointers", "gemm"},
               {"triton/gemm_descriptors", "gemm"},
               {"triton/gemm_device_descriptors", "gemm"},
               {"triton/softmax_two_launches", "softmax"},
               {"triton/gemm_cluster", "gemm"},
               {"tilelang/softmax", "softmax"},
               {"tilelang/gemm", "gemm"}};

typedef struct {
    char hash[65], completion[65];
    bool cold;
    bool is_made;
} made;

static void compile_kernel(made *out, size_t i, const char *cache) {
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_task *t;
    kl_kernel *k;
    kl_device d;
    kl_artefact artefact;
    const kl_compile_opts o = {.cache_dir = cache, .no_cache = true};
    kl_str path = kl_arena_printf(a, KL_TEST_ROOT "/tests/data/%s.py", KERNELS[i].file), text;
    assert_ok(
        kl_task_load(&t, a, kl_arena_printf(a, KL_TEST_ROOT "/tasks/%s", KERNELS[i].task).ptr, &e));
    assert_ok(kli_fs_read(&text, a, path.ptr, 1 << 20, &e));
    assert_ok(kl_kernel_parse(&k, a, text, path, NULL, NULL, &e));
    *out = (made){0};
    if (k->surface->missing(a).len) {
        kl_arena_free(a);
        return;
    }
    assert_ok(kl_device_target(&d, a, KL_BACKEND_CUDA, "sm_90a", &e));
    assert_ok(
        kli_compile(&artefact, a, &d, k, t, kl_task_workload(t, KL_S("tiny"), KL_ON_GPU), &o, &e));
    assert_true(artefact.ok);
    memcpy(out->hash, artefact.hash, sizeof out->hash);
    memcpy(out->completion, kli_hash_of(artefact.completion).hex, sizeof out->completion);
    out->is_made = true;
    out->cold = artefact.degraded.len > 0;
    kl_arena_free(a);
}

/* In a process that no namespace is given to. */
static void compile_cold(made *out, const char *cache) {
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
        if (!f ||
            seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                             SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWPID, CLONE_NEWPID)) != 0 ||
            seccomp_load(f) != 0)
            _exit(1);
        for (size_t i = 0; i < KL_COUNT(KERNELS); i++) compile_kernel(&out[i], i, cache);
        _exit(write(ends[1], out, KL_COUNT(KERNELS) * sizeof *out) < 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], out, KL_COUNT(KERNELS) * sizeof *out),
                     KL_COUNT(KERNELS) * sizeof *out);
    close(ends[0]);
    close(ends[1]);
}

static void test_python__a_warm_compiler_makes_the_same_bytes(void **state) {
    made cold[KL_COUNT(KERNELS)], warm;
    kl_error e = {0};
    kl_str cache;
    (void)state;
    kl_arena *a = kl_arena_new();
    assert_ok(kli_fs_temp_dir(&cache, a, &e));
    compile_cold(cold, cache.ptr);
    for (int round = 0; round < 2; round++) /* the server warms up after its first job */
        for (size_t i = 0; i < KL_COUNT(KERNELS); i++) {
            compile_kernel(&warm, i, cache.ptr);
            assert_int_equal(cold[i].cold, cold[i].is_made);
            assert_string_equal(warm.hash, cold[i].hash);
            assert_string_equal(warm.completion, cold[i].completion);
            if (!round && !i && warm.cold) print_message("no warm compiler here\n");
        }
    kli_fs_remove_tree(cache.ptr);
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_python__a_warm_compiler_makes_the_same_bytes)};
    return cmocka_run_group_tests_name("surface_python", tests, NULL, NULL);
}
