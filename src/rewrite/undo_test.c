/* undo_test.c - every mechanical undoing on a small text, and on every kernel that we have: it
 * parses, compiles and is what it says. SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "base/proc.h"

#define C "//! launch f args(x, y, N)\n"
#define CU "//! launch f grid(1) block(32) args(x)\n"

static const struct {
    const char *file, *action, *before, *after;
} ROWS[] = {
    {"k.c", "prefetch",
     C "void f(float *x, float *y, int N)\n{\n    for (int i = 0; i < N; i++) {\n        "
       "__builtin_prefetch(x + i + "
       "8); // soon\n        y[i] = x[i];\n    }\n}\n",
     C "void f(float *x, float *y, int N)\n{\n    for (int i = 0; i < N; i++) {\n        y[i] = "
       "x[i];\n    }\n}\n"},
    {"k.c", "prefetch",
     C "static void ask(float *x)\n{\n    __builtin_prefetch(x);\n}\n\nvoid f(float *x, float *y, "
       "int N)\n{\n    "
       "ask(x);\n    y[0] = x[0];\n}\n",
     C "\nvoid f(float *x, float *y, int N)\n{\n    y[0] = x[0];\n}\n"},
    {"k.c", "prefetch",
     C "void f(float *x, float *y, int N)\n{\n#pragma GCC unroll 4\n    for (int i = 0; i < 4; "
       "i++) {\n        "
       "__builtin_prefetch(x);\n        __builtin_prefetch(y);\n    }\n    y[0] = x[0];\n}\n",
     C "void f(float *x, float *y, int N)\n{\n    y[0] = x[0];\n}\n"},
    {"k.c", "prefetch",
     C "void f(float *x, float *y, int N)\n{\n    if (N)\n        y[0] = 1;\n    else\n        "
       "__builtin_prefetch(x);\n    y[0] = x[0];\n}\n",
     C "void f(float *x, float *y, int N)\n{\n    if (N)\n        y[0] = 1;\n    else\n        ;\n "
       "   y[0] = x[0];\n}\n"},
    {"k.c", "unroll",
     C "#define TWICE _Pragma(\"GCC unroll 2\")\nvoid f(float *x, float *y, int N)\n{\n#pragma GCC "
       "unroll 8\n    for "
       "(int i = 0; i < N; i++) y[i] = x[i];\n    TWICE for (int i = 0; i < N; i++) y[i] = "
       "x[i];\n}\n",
     C "#define TWICE\nvoid f(float *x, float *y, int N)\n{\n    for (int i = 0; i < N; i++) y[i] "
       "= x[i];\n    TWICE "
       "for (int i = 0; i < N; i++) y[i] = x[i];\n}\n"},
    {"k.c", "simd_pragma",
     "//! flags -fopenmp-simd -O3\n" C "void f(float *x, float *y, int N)\n{\n#pragma omp simd\n   "
     " for (int i = 0; i < N; i++) y[i] = x[i];\n}\n",
     "//! flags -O3\n" C
     "void f(float *x, float *y, int N)\n{\n    for (int i = 0; i < N; i++) y[i] = x[i];\n}\n"},
    {"k.c", "omp_parallel",
     "//! threads 2\n//! flags -fopenmp\n" C
     "#include <omp.h>\nvoid f(float *x, float *y, int N)\n{\n#pragma omp parallel for "
     "schedule(static)\n    for (int "
     "i = 0; i < N; i++) y[i] = x[i];\n}\n",
     C "void f(float *x, float *y, int N)\n{\n    for (int i = 0; i < N; i++) y[i] = x[i];\n}\n"},
    {"k.c", "restrict_alias",
     C "void f(const float *restrict x, float * restrict y, int N) { y[0] = x[0]; }\n",
     C "void f(const float *x, float * y, int N) { y[0] = x[0]; }\n"},
    {"k.c", "align",
     C "void f(float *x, float *y, int N) { float *p = __builtin_assume_aligned(x + N, 64); y[0] = "
       "p[0]; }\n",
     C "void f(float *x, float *y, int N) { float *p = (x + N); y[0] = p[0]; }\n"},
    {"k.c", "branch_hint",
     C "void f(float *x, float *y, int N) { if (__builtin_expect(N > 3, 1)) y[0] = x[0]; }\n",
     C "void f(float *x, float *y, int N) { if ((N > 3)) y[0] = x[0]; }\n"},
    {"k.c", "fast_math",
     "//! flags -O3 -ffast-math -march=native\n" C
     "void f(float *x, float *y, int N) { y[0] = x[0]; }\n",
     "//! flags -O3 -march=native\n" C "void f(float *x, float *y, int N) { y[0] = x[0]; }\n"},
    {"k.c", "fast_math",
     "//! flags -ffast-math\n" C "void f(float *x, float *y, int N) { y[0] = x[0]; }\n",
     C "void f(float *x, float *y, int N) { y[0] = x[0]; }\n"},
    {"k.c", "fma_contract",
     C "#include <math.h>\nvoid f(float *x, float *y, int N) { y[0] = fmaf(x[0], x[1] + 1, y[0]); "
       "}\n",
     C
     "#include <math.h>\nvoid f(float *x, float *y, int N) { y[0] = x[0] * (x[1] + 1) + y[0]; }\n"},
    {"k.c", "fma_contract",
     C "#include <math.h>\nvoid f(float *x, float *y, int N) { y[0] = 2 * fmaf(-x[0], N, "
       "(float)N); }\n",
     C "#include <math.h>\nvoid f(float *x, float *y, int N) { y[0] = 2 * ((-x[0]) * N + "
       "((float)N)); }\n"},
    {"k.c", "nt_store",
     C "#include <immintrin.h>\nvoid f(float *x, float *y, int N) { _mm_stream_ps(y, "
       "_mm_load_ps(x)); _mm_sfence(); }\n",
     C "#include <immintrin.h>\nvoid f(float *x, float *y, int N) { _mm_store_ps(y, "
       "_mm_load_ps(x)); _mm_sfence(); }\n"},
    {"k.c", "inline_hint",
     C "static inline __attribute__((always_inline)) float g(float *x) { return x[0]; }\nvoid "
       "f(float *x, float *y, "
       "int N) { y[0] = g(x); }\n",
     C "static inline float g(float *x) { return x[0]; }\nvoid f(float *x, float *y, int N) { y[0] "
       "= g(x); }\n"},
    {"k.c", "fma_simd",
     C "typedef float vf __attribute__((vector_size(32)));\nenum { LANES = sizeof(vf) / "
       "sizeof(float) };\nvoid f(float "
       "*x, float *y, int N) { vf a = {0}; y[0] = a[LANES - 1]; }\n",
     C "typedef float vf __attribute__((vector_size(4)));\nenum { LANES = sizeof(vf) / "
       "sizeof(float) };\nvoid f(float "
       "*x, float *y, int N) { vf a = {0}; y[0] = a[LANES - 1]; }\n"},
    {"k.c", "fma_simd",
     C "#ifdef __AVX__\nenum { LANES = 8 };\n#else\nenum { LANES = 4 };\n#endif\ntypedef float vf "
       "__attribute__((vector_size(4 * LANES)));\nvoid f(float *x, float *y, int N) { vf a = {0}; "
       "y[0] = a[LANES - 1]; "
       "}\n",
     C "#ifdef __AVX__\nenum { LANES = 1 };\n#else\nenum { LANES = 1 };\n#endif\ntypedef float vf "
       "__attribute__((vector_size(4 * LANES)));\nvoid f(float *x, float *y, int N) { vf a = {0}; "
       "y[0] = a[LANES - 1]; "
       "}\n"},
    {"k.cu", "cache_hint",
     CU "extern \"C\" __global__ void f(float *x) { x[0] = __ldg(&x[1]) + __ldg(x + 2); "
        "__stcs(&x[3], 1.0f); }\n",
     CU "extern \"C\" __global__ void f(float *x) { x[0] = x[1] + *(x + 2); x[3] = 1.0f; }\n"},
    {"k.cu", "launch_bounds",
     CU "extern \"C\" __global__ void __launch_bounds__(128, 2) f(float *x) { x[0] = 1; }\n",
     CU "extern \"C\" __global__ void f(float *x) { x[0] = 1; }\n"},
    {"k.cu", "inline_hint",
     CU "static __device__ __forceinline__ float g(float *x) { return x[0]; }\n__global__ void "
        "f(float *x) { x[1] = "
        "g(x); }\n",
     CU "static __device__ inline float g(float *x) { return x[0]; }\n__global__ void f(float *x) "
        "{ x[1] = g(x); }\n"},
};

static const kl_undoing *find(const kl_undoing *list, int n, const char *action) {
    for (int i = 0; i < n; i++)
        if (kl_str_eq(list[i].action, kl_str_of(action))) return &list[i];
    return NULL;
}

static void test_rows(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        kl_undoing list[16];
        const int n = kl_rewrite_undo(list, 16, a, kernel_named(a, ROWS[i].file, ROWS[i].before));
        const kl_undoing *u = find(list, n, ROWS[i].action);
        if (!u) fail_msg("row %zu: %s is not offered", i, ROWS[i].action);
        assert_str(u->source, ROWS[i].after);
    }
    kl_arena_free(a);
}

static void test_comments_and_strings_are_left_alone(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_undoing list[16];
    const char *text = C "/* restrict __builtin_prefetch(x); */\nconst char *s = \"restrict\"; // "
                         "#pragma GCC unroll "
                         "4\nvoid f(float *x, float *y, int N) { y[0] = s[0]; }\n";
    assert_int_equal(kl_rewrite_undo(list, 16, a, kernel_named(a, "k.c", text)), 0);
    kl_arena_free(a);
}

static void test_at_most_as_many_as_asked(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_undoing list[1];
    const char *text =
        "//! flags -ffast-math\n" C
        "void f(float *restrict x, float *y, int N) { __builtin_prefetch(x); y[0] = x[0]; }\n";
    assert_int_equal(kl_rewrite_undo(list, 1, a, kernel_named(a, "k.c", text)), 1);
    assert_str(list[0].action, "prefetch"); /* the one that was applied last */
    assert_str(
        list[0].locus,
        "line 3: void f(float *restrict x, float *y, int N) { __builtin_prefetch(x); y[0] = x[0];");
    kl_arena_free(a);
}

/* ---- real kernels ------------------------------------------------------------------------ */

/* They are compiled and not run: for a machine that has what the experts ask for, whatever this one
 * is. */
#ifdef __x86_64__
static const char MACHINE[] = "-march=icelake-server";
#else
static const char MACHINE[] = "-march=native";
#endif

static void compile(kl_arena *a, const kl_kernel *k, const kl_undoing *u) {
    const kl_task *t = task_of(a, k);
    const kl_workload *w = kl_task_workload(t, (kl_str){0}, KL_ON_CPU);
    const char *argv[128] = {"cc",       "-std=gnu17", "-fsyntax-only",
                             "-fopenmp", "-w",         "-Werror=implicit-function-declaration",
                             MACHINE};
    int n = 7;
    kli_proc_result r;
    kl_error e = {0};
    for (const char **d = kli_kernel_defines(a, k, t, w); *d && n < 120; d++) argv[n++] = *d;
    argv[n++] = "-xc";
    argv[n] = "-";
    assert_ok(kli_proc_run(
        &r, a, &(kli_proc_spec){.argv = argv, .input = u->source, .timeout_ns = 20000000000}, &e));
    if (r.exit_code) fail_msg("%s without %s:\n%s", k->path.ptr, u->action.ptr, r.err.ptr);
}

typedef struct {
    int undoings, compiled;
} tally;

static void undo_real(kl_arena *a, const kl_kernel *k, const kl_kernel *before, void *ctx) {
    (void)before;
    tally *sum = ctx;
    kl_undoing list[16];
    const int n = kl_rewrite_undo(list, 16, a, k);
    for (int i = 0; i < n; i++) {
        kl_kernel *after;
        kl_error e = {0};
        assert_non_null(kl_action_find(list[i].action));
        assert_ok(kl_kernel_parse(&after, a, list[i].source, k->path, k->surface, NULL, &e));
        sum->undoings++;
        if (!(k->surface->families & KL_FAMILY_C)) continue;
        compile(a, k, &list[i]);
        sum->compiled++;
    }
}

static void test_real_kernels(void **state) {
    (void)state;
    tally sum = {0};
    all_kernels(undo_real, &sum);
    print_message("%d undoings, %d of them compiled\n", sum.undoings, sum.compiled);
    if (kli_fs_is_dir(KL_TEST_ROOT "/experts/gemm/c")) assert_true(sum.compiled > 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows), cmocka_unit_test(test_comments_and_strings_are_left_alone),
        cmocka_unit_test(test_at_most_as_many_as_asked), cmocka_unit_test(test_real_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
