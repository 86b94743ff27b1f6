/* fixture.h - kernels for the tests of src/rewrite: text in, kernel out; and the real ones of
 * tasks/ and experts/. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWRITE_FIXTURE_H
#define KL_REWRITE_FIXTURE_H

#include "kernel/kernel.h"
#include "base/test.h"
#include "base/fs.h"
#include <klineage/rewrite.h>

static inline kl_kernel *kernel_named(kl_arena *a, const char *name, const char *text) {
    kl_kernel *k;
    kl_error e = {0};
    assert_ok(kl_kernel_parse(&k, a, kl_str_of(text), kl_str_of(name), NULL, NULL, &e));
    return k;
}

static inline kl_kernel *kernel_c(kl_arena *a, const char *body) {
    return kernel_named(a, "k.c", kl_arena_printf(a, "//! launch f args(x, y, N)\n%s", body).ptr);
}

typedef void each_kernel(kl_arena *a, const kl_kernel *k, const kl_kernel *before, void *ctx);

/* Every kernel of a folder in the order of its names; `before` is the one before it, NULL for the
 * first. */
static inline int kernels_of(const char *dir, each_kernel *each, void *ctx) {
    if (!kli_fs_is_dir(dir)) return 0;
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str *names;
    size_t n;
    int seen = 0;
    kl_kernel *before = NULL;
    assert_ok(kl_kernel_list(&names, &n, a, dir, &e));
    for (size_t i = 0; i < n; i++) {
        kl_kernel *k;
        if (kl_str_starts(names[i], KL_S("oracle"))) continue;
        assert_ok(kl_kernel_load(&k, a, kli_fs_join(a, dir, names[i].ptr).ptr, NULL, &e));
        each(a, k, before, ctx);
        before = k;
        seen++;
    }
    kl_arena_free(a);
    return seen;
}

/* Every folder of tasks/, and every ladder of experts/. */
static inline int all_kernels(each_kernel *each, void *ctx) {
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str *names;
    size_t n;
    int seen = 0;
    assert_ok(kli_fs_list(&names, &n, a, KL_TEST_ROOT "/tasks", &e));
    for (size_t i = 0; i < n; i++)
        seen += kernels_of(kli_fs_join(a, KL_TEST_ROOT "/tasks", names[i].ptr).ptr, each, ctx);
    assert_ok(kli_fs_list(&names, &n, a, KL_TEST_ROOT "/experts", &e));
    for (size_t i = 0; i < n; i++) {
        const char *const surfaces[] = {"c", "cuda", "opencl"};
        for (size_t s = 0; s < KL_COUNT(surfaces); s++)
            seen += kernels_of(
                kl_arena_printf(a, KL_TEST_ROOT "/experts/%s/%s", names[i].ptr, surfaces[s]).ptr,
                each, ctx);
    }
    kl_arena_free(a);
    return seen;
}

/* The task is the folder that the kernel's path names: tasks/NAME or experts/NAME/SURFACE. */
static inline kl_task *task_of(kl_arena *a, const kl_kernel *k) {
    kl_task *t;
    kl_error e = {0};
    kl_str dir = kli_fs_dirname(a, k->path.ptr);
    if (memmem(dir.ptr, dir.len, "/experts/", 9)) dir = kli_fs_dirname(a, dir.ptr);
    assert_ok(kl_task_load(
        &t, a, kl_arena_printf(a, KL_TEST_ROOT "/tasks/%s", kli_fs_basename(dir.ptr).ptr).ptr, &e));
    return t;
}

#endif
