/* mutate_test.c - every kind of variation on a small text, and all of them on every kernel that we
 * have: they differ, they parse. SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <time.h>

#define C "//! launch f args(x, y, N)\n"
#define CU "//! launch f grid(1) block(32) args(x)\n"
#define CL "//! launch f global(1) args(x, y, N)\n"

enum { MOST = 1024 };

/* Of the variations called `action`, the one numbered `which` reads `after`. */
static const struct {
    const char *file, *action;
    int which;
    const char *before, *after;
} ROWS[] = {
    {"k.c", "autotune", 1, "//! param  BM = 64 {32, 64, 128}\n//! param U=2{1,2}\n" C "int f;\n",
     "//! param  BM = 128 {32, 64, 128}\n//! param U=2{1,2}\n" C "int f;\n"},
    {"k.c", "autotune", 2, "//! param  BM = 64 {32, 64, 128}\n//! param U=2{1,2}\n" C "int f;\n",
     "//! param  BM = 64 {32, 64, 128}\n//! param U=1{1,2}\n" C "int f;\n"},
    {"k.c", "autotune", 0, "//! param P = -3 {4}\n" C "int f;\n",
     "//! param P = 4 {4}\n" C "int f;\n"},
    {"k.py", "autotune", 0,
     "#! surface triton\n#! param B = 64 {64, 32}\n#! launch f grid(1) args(x)\ndef f(x):\n    "
     "pass\n",
     "#! surface triton\n#! param B = 32 {64, 32}\n#! launch f grid(1) args(x)\ndef f(x):\n    "
     "pass\n"},
    {"k.c", "other:flags", 0, "//! flags -O2  -ffast-math\n" C "int f;\n",
     "//! flags  -ffast-math\n" C "int f;\n"},
    {"k.c", "other:flags", 1, "//! flags -O2  -ffast-math\n" C "int f;\n",
     "//! flags -O2\n" C "int f;\n"},
    {"k.c", "other:flags", 2, "//! flags -O2  -ffast-math\n" C "int f;\n",
     "//! flags -O2  -ffast-math\n//! flags -O1\n" C "int f;\n"},
    {"k.c", "other:flags", 0, "// k\n//! flags -O1\n" C "int f;\n", "// k\n" C "int f;\n"},
    {"k.c", "unroll", 1,
     C "void f(void) {\n    for (;;)\n        for (int i = 0; i < 9; i++) g();\n}\n",
     C "void f(void) {\n    for (;;)\n#pragma GCC unroll 2\n        for (int i = 0; i < 9; i++) "
       "g();\n}\n"},
    {"k.c", "unroll", 0,
     C "void f(void) {\n#pragma GCC unroll 4\n    for (int i = 0; i < 9; i++) g();\n}\n",
     C "void f(void) {\n#pragma GCC unroll 1\n    for (int i = 0; i < 9; i++) g();\n}\n"},
    {"k.c", "unroll", 3, C "void f(void) { if (1) for (int i = 0; i < 9; i++) g(); }\n",
     C "void f(void) { if (1) \n#pragma GCC unroll 8\nfor (int i = 0; i < 9; i++) g(); }\n"},
    {"k.cu", "unroll", 2,
     CU "__global__ void f(float *x) {\n    for (int i = 0; i < 9; i++) g();\n}\n",
     CU
     "__global__ void f(float *x) {\n#pragma unroll 4\n    for (int i = 0; i < 9; i++) g();\n}\n"},
    {"k.c", "simd_pragma", 0,
     C "void f(void) {\n#pragma GCC unroll 4\n    for (int i = 0; i < 9; i++) g();\n}\n",
     C "void f(void) {\n#pragma GCC unroll 4\n#pragma GCC ivdep\n    for (int i = 0; i < 9; i++) "
       "g();\n}\n"},
    {"k.c", "loop_order", 0,
     C "void f(void) {\n    for (int i = 0; i < 9; i++) {\n        for (int j = 1; j < 8; j += 2) "
       "g(i, j);\n    }\n}\n",
     C "void f(void) {\n    for (int j = 1; j < 8; j += 2) {\n        for (int i = 0; i < 9; i++) "
       "g(i, j);\n    }\n}\n"},
    {"k.c", "loop_order", 0,
     C "void f(void) { for (int i = 0; i < 9; i++) for (int j = 0; j < 8; j++) for (int k = j; k < "
       "7; k++) g(); }\n",
     C "void f(void) { for (int j = 0; j < 8; j++) for (int i = 0; i < 9; i++) for (int k = j; k < "
       "7; k++) g(); }\n"},
    {"k.c", "restrict_alias", 0,
     C "static int h(int n) { return n; }\nvoid f(const float *x, float *restrict y, float *z, int "
       "N) { g(x); }\n",
     C "static int h(int n) { return n; }\nvoid f(const float *restrict x, float *restrict y, "
       "float *restrict z, int "
       "N) { g(x); }\n"},
    {"k.cu", "restrict_alias", 0, CU "extern \"C\" __global__ void f(float *x) { g(x); }\n",
     CU "extern \"C\" __global__ void f(float *__restrict__ x) { g(x); }\n"},
    {"k.c", "cache_block", 1,
     C "void f(int N) {\n    for (int i = 0; i < N; i++)\n        g(i);\n}\n",
     C "void f(int N) {\n    for (int i_tile = 0; i_tile < N; i_tile += 64)\n    for (int i = "
       "i_tile; i < ((N) - "
       "i_tile < 64 ? (N) : i_tile + "
       "64); i++)\n        g(i);\n}\n"},
    {"k.c", "cache_block", 0,
     C "void f(int N) { for (size_t i = (N + 1) / 2; i < N * 2; i += MR) g(i_tile); }\n",
     C "void f(int N) { for (size_t i_tile2 = (N + 1) / 2; i_tile2 < N * 2; i_tile2 += 16 * "
       "MR)\nfor (size_t i = "
       "i_tile2; i < ((N * 2) - "
       "i_tile2 < 16 * MR ? (N * 2) : i_tile2 + 16 * MR); i += MR) g(i_tile); }\n"},
    {"k.c", "prefetch", 0, C "void f(float *x) {\n    __builtin_prefetch(x);\n    x[0] = 1;\n}\n",
     C "void f(float *x) {\n    x[0] = 1;\n}\n"},
    {"k.cl", "restrict_alias", 0,
     CL "__kernel void f(__global float *x, __global float *y, int N) { y[0] = x[0]; }\n",
     CL "__kernel void f(__global float *restrict x, __global float *restrict y, int N) { y[0] = "
        "x[0]; }\n"},
};

static const kl_undoing *find(const kl_undoing *list, int n, const char *action, int which) {
    for (int i = 0; i < n; i++)
        if (kl_str_eq(list[i].action, kl_str_of(action)) && which-- == 0) return &list[i];
    return NULL;
}

static void test_rows(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_undoing *list = KL_ARRAY(a, kl_undoing, MOST);
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        const int n =
            kl_rewrite_mutate(list, MOST, a, kernel_named(a, ROWS[i].file, ROWS[i].before));
        const kl_undoing *u = find(list, n, ROWS[i].action, ROWS[i].which);
        if (!u) fail_msg("row %zu: %s is not offered", i, ROWS[i].action);
        assert_str(u->source, ROWS[i].after);
    }
    kl_arena_free(a);
}

/* What would be another program, and what is no code. */
static void test_what_is_left_alone(void **state) {
    (void)state;
    static const struct {
        const char *action, *text;
    } NOT[] = {
        {"loop_order",
         "void f(void) { for (int i = 0; i < 9; i++) for (int j = i; j < 8; j++) g(); }"},
        {"loop_order",
         "void f(void) { for (int i = 0; i < 9; i++) { g(); for (int j = 0; j < 8; j++) g(); } }"},
        {"loop_order",
         "void f(void) { for (int i = 0; i < 9; i++) { for (int j = 0; j < 8; j++) g(); g(); } }"},
        {"cache_block", "void f(void) { for (int i = 0; i < 9; i++) if (g()) break; }"},
        {"cache_block", "void f(int i) { for (i = 0; i < 9; i++) g(); }"},
        {"cache_block", "void f(void) { for (int i = 9; i > 0; i--) g(); }"},
        {"cache_block", "void f(void) { for (int i = 0; i < 9 && g(); i++) g(); }"},
        {"cache_block", "void f(void) { for (int i = 0, j = 0; i < 9; i++) g(j); }"},
        {"cache_block", "void f(void) { for (const char *i = 0; i < e; i++) g(i); }"},
        {"cache_block", "void f(void) { for (int i = 0; i < 9; i++, g()) g(i); }"},
        {"unroll", "/* for (int i = 0; i < 9; i++) g(); */ const char *s = \"for (;;)\";"},
        {"unroll", "#define LOOP for (int i = 0; i < 9; i++)\n"},
        {"restrict_alias", "void f(float *x);\nvoid g(void) { f(y); if (*z) { } }"},
    };
    kl_arena *a = kl_arena_new();
    kl_undoing *list = KL_ARRAY(a, kl_undoing, MOST);
    for (size_t i = 0; i < KL_COUNT(NOT); i++) {
        const int n = kl_rewrite_mutate(list, MOST, a, kernel_c(a, NOT[i].text));
        if (find(list, n, NOT[i].action, 0)) fail_msg("row %zu: %s is offered", i, NOT[i].action);
    }
    kl_arena_free(a);
}

/* Strip-mined and with its loops exchanged: blocking, in two steps. */
static void test_variations_compose(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_undoing *list = KL_ARRAY(a, kl_undoing, MOST);
    const kl_kernel *k = kernel_c(
        a, "void f(int M, int N) {\n    for (int i = 0; i < M; i++)\n        for (int j = 0; "
           "j < N; j++)\n            g(i, j);\n}\n");
    int n = kl_rewrite_mutate(list, MOST, a, k);
    const kl_undoing *tiled = find(list, n, "cache_block", 3);
    assert_non_null(tiled);
    n = kl_rewrite_mutate(list, MOST, a, kernel_named(a, "k.c", tiled->source.ptr));
    const kl_undoing *blocked = find(list, n, "loop_order", 0);
    assert_non_null(blocked);
    assert_contains(blocked->source.ptr, "    for (int j_tile = 0; j_tile < N; j_tile += 16)\n     "
                                         "   for (int i = 0; i < M; i++)\n");
    kl_arena_free(a);
}

static void test_at_most_as_many_as_asked(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_undoing list[4] = {{.action = KL_S("untouched")},
                          {.action = KL_S("untouched")},
                          {.action = KL_S("untouched")},
                          {.action = KL_S("untouched")}};
    const kl_kernel *k =
        kernel_c(a, "void f(float *restrict x) { for (int i = 0; i < 9; i++) x[i] = 0; }\n");
    for (int max = 0; max < 4; max++) assert_int_equal(kl_rewrite_mutate(list, max, a, k), max);
    assert_str(list[3].action, "untouched");
    kl_arena_free(a);
}

/* Text that was made to be slow or to confuse: it ends, and soon. */
static void test_hostile_texts(void **state) {
    (void)state;
    static const char *const PARTS[] = {"for (",
                                        "int f(",
                                        "{",
                                        "for (;;) ",
                                        "if (x) ",
                                        "do ",
                                        "for (int i = 0; i < 9; i++) {",
                                        "#pragma GCC unroll 2\n",
                                        "(",
                                        ")",
                                        "}",
                                        "\"",
                                        "else ",
                                        "for (int i = 0; i < (",
                                        "int i_tile i_tile2 "};
    const clock_t begin = clock();
    for (size_t i = 0; i < KL_COUNT(PARTS); i++) {
        kl_arena *a = kl_arena_new();
        kl_undoing list[16];
        kl_buf b = {0};
        while (b.len < 200000) kl_buf_add(&b, kl_str_of(PARTS[i]));
        kl_buf_add(&b, KL_S("\n"));
        const int n = kl_rewrite_mutate(list, 16, a, kernel_c(a, b.ptr));
        assert_in_range(n, 0, 16);
        kl_buf_fini(&b);
        kl_arena_free(a);
    }
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 60);
}

/* ---- real kernels ------------------------------------------------------------------------ */

typedef struct {
    int kernels, variations;
    kl_undoing list[MOST];
} tally;

static void mutate_real(kl_arena *a, const kl_kernel *k, const kl_kernel *before, void *ctx) {
    (void)before;
    tally *sum = ctx;
    const int n = kl_rewrite_mutate(sum->list, MOST, a, k);
    for (int i = 0; i < n; i++) {
        kl_kernel *after;
        kl_error e = {0};
        const kl_undoing *u = &sum->list[i];
        assert_true(kl_action_valid(u->action) && u->locus.len > 0);
        assert_false(kl_str_eq(u->source, k->source));
        assert_ok(kl_kernel_parse(&after, a, u->source, k->path, k->surface, NULL, &e));
        assert_string_not_equal(after->hash, k->hash);
    }
    if (k->surface->families & KL_FAMILY_C) assert_true(n > 40 && n < MOST);
    sum->kernels++;
    sum->variations += n;
}

static void test_real_kernels(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    tally *sum = KL_NEW(a, tally);
    all_kernels(mutate_real, sum);
    print_message("%d variations of %d kernels\n", sum->variations, sum->kernels);
    assert_true(sum->kernels > 0);
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_what_is_left_alone),
        cmocka_unit_test(test_variations_compose),
        cmocka_unit_test(test_at_most_as_many_as_asked),
        cmocka_unit_test(test_hostile_texts),
        cmocka_unit_test(test_real_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
