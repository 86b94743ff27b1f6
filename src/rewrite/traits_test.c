/* traits_test.c - what is read from a source, and what an undoing may do.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "fixture.h"

#include "base/json.h"

/* ---- one row: a source and a trait ------------------------------------------------------- */

static const struct {
    const char *file, *text, *trait;
    double value;
} ROWS[] = {
    {"k.c",
     "void f(float *x) { for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) x[i] = j; }",
     "source.loop_depth", 2},
    {"k.c",
     "void f(float *x) { for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) x[i] = j; }",
     "source.loops", 2},
    {"k.c", "static void g(float *x) { for (;;) x[0] = 1; }\nvoid f(float *x) { for (;;) g(x); }",
     "source.loop_depth", 2},
    {"k.c", "static void g(float *x) { g(x); for (;;) g(x); }\nvoid f(float *x) { g(x); }",
     "source.loop_depth", 1},
    {"k.c", "void f(int n) { for (int i = 0; i < n; i += 8) n--; }", "source.blocked_loops", 1},
    {"k.c", "void f(int n) { for (int i = 0; i < n; i = i + LANES) n--; }", "source.blocked_loops",
     1},
    {"k.c", "void f(int n) { for (int i = 0; i < n; i += 1) n--; }", "source.blocked_loops", 0},
    {"k.c", "void f(int n, float *a) { for (int k = 0; k < n; k++, a += 6) n--; }",
     "source.blocked_loops", 0},
    {"k.c", "void f(int n) { for (int i = 0; i < LANES; i++) n--; }", "source.const_loops", 1},
    {"k.c", "void f(int N) { for (int i = 0; i < N; i++) N--; }", "source.const_loops", 0},
    {"k.c", "void f(float *x) { __builtin_prefetch(x); }", "source.prefetches", 1},
    {"k.c", "/* __builtin_prefetch(x); */ void f(float *x) { x[0] = 1; } // __builtin_prefetch(x)",
     "source.prefetches", 0},
    {"k.c", "static void g(float *x) { __builtin_prefetch(x); }\nvoid f(float *x) { x[0] = 1; }",
     "source.prefetches", 0},
    {"k.c",
     "#if 0\nvoid h(float *x) { __builtin_prefetch(x); }\n#endif\nvoid f(float *x) { x[0] = 1; }",
     "source.prefetches", 0},
    {"k.c", "#define AHEAD(p) __builtin_prefetch(p)\nvoid f(float *x) { AHEAD(x); AHEAD(x + 1); }",
     "source.prefetches", 2},
    {"k.c", "#define AHEAD(p) __builtin_prefetch(p)\nvoid f(float *x) { x[0] = 0; }",
     "source.prefetches", 0},
    {"k.c", "const char *s = \"__builtin_prefetch(x)\"; void f(float *x) { x[0] = 0; }",
     "source.prefetches", 0},
    {"k.c",
     "typedef float vf __attribute__((vector_size(32)));\nvoid f(float *x) { vf a = {0}; vf b = a; "
     "x[0] = b[0]; }",
     "source.vector_types", 2},
    {"k.c", "typedef float vf __attribute__((vector_size(32)));\nvoid f(float *x) { x[0] = 0; }",
     "source.vector_types", 0},
    {"k.c", "void f(float *x) { __m256 a = _mm256_loadu_ps(x); _mm256_storeu_ps(x, a); }",
     "source.intrinsics", 2},
    {"k.c",
     "#define UNROLL _Pragma(\"GCC unroll 4\")\nvoid f(int n) { UNROLL for (int i = 0; i < n; i++) "
     "n--; }",
     "source.unrolls", 1},
    {"k.c",
     "#define UNROLL _Pragma(\"GCC unroll 4\")\nvoid f(int n) { UNROLL for (int i = 0; i < n; i++) "
     "n--; }",
     "source.loops", 1},
    {"k.c", "void f(float *x) {\n#pragma omp simd\nfor (int i = 0; i < 4; i++) x[i] = 0; }",
     "source.simd_pragmas", 1},
    {"k.c", "void f(float *x) {\n#pragma omp parallel for\nfor (int i = 0; i < 4; i++) x[i] = 0; }",
     "source.omp_pragmas", 1},
    {"k.c", "//! threads 4\nvoid f(float *x) { x[0] = 0; }", "source.threads", 4},
    {"k.c", "//! flags -ffast-math -O3\nvoid f(float *x) { x[0] = 0; }", "source.fast_math", 1},
    {"k.c", "//! buffer t: f32[8]\nvoid f(float *x) { x[0] = 0; }", "source.buffers", 1},
    {"k.c",
     "void f(float *x) { float a = 0, b = 0; for (int i = 0; i < 8; i += 2) { a += x[i]; b += x[i "
     "+ 1]; } x[0] = a + "
     "b; }",
     "source.accumulators", 2},
    {"k.c", "void f(float *x) { float t[8]; t[0] = x[0]; x[0] = t[0]; }", "source.local_arrays", 1},
    {"k.c", "void f(float *x) { x[0] = x[1] * 0.0096755413f + 1e-6f; }", "source.constants", 1},
    {"k.c", "void f(float *x) { float *p = __builtin_assume_aligned(x, 64); p[0] = 0; }",
     "source.aligned", 1},
    {"k.c", "void f(float *x) { x[0] = expf(x[0]); }", "source.exp_calls", 1},
    {"k.c", "void f(float *x, __m512 v) { _mm512_stream_ps(x, v); }", "source.nt_stores", 1},
    {"k.cu",
     "extern \"C\" __global__ void __launch_bounds__(128) f(float *x) { __shared__ float t[32]; "
     "__syncthreads(); x[0] "
     "= t[0]; }",
     "source.shared_arrays", 1},
    {"k.cu", "__global__ void __launch_bounds__(128) f(float *x) { x[0] = 1; }",
     "source.launch_bounds", 1},
    {"k.cu",
     "__global__ void f(float *x) { asm volatile(\"mma.sync.aligned.m16n8k16 {%0};\" : "
     "\"+f\"(x[0])); }",
     "source.mma", 1},
    {"k.cu",
     "__global__ void f(float *x) { asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\"); }",
     "source.atomics", 0},
    {"k.cu", "__global__ void f(float *x) { float4 a = *(float4 *)x; x[0] = a.x; }",
     "source.vector_types", 2},
    {"k.cu", "__global__ void f(float *x) { x[0] = __shfl_xor_sync(~0u, x[0], 1); }",
     "source.shuffles", 1},
    {"k.cl",
     "__kernel void f(__global float *x) { __local float t[8]; float4 v = vload4(0, x); t[0] = "
     "v.x; x[0] = t[0]; }",
     "source.vector_types", 2},
};

static kl_kernel *row_kernel(kl_arena *a, const char *file, const char *text) {
    const char *launch =
        kl_str_ends(kl_str_of(file), KL_S("u"))    ? "//! launch f grid(1) block(32) args(x)\n"
        : kl_str_ends(kl_str_of(file), KL_S("cl")) ? "//! launch f global(1) args(x)\n"
                                                   : "//! launch f args(x)\n";
    return kernel_named(a, file, kl_arena_printf(a, "%s%s\n", launch, text).ptr);
}

static void test_traits_of_small_sources(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        kl_traits t;
        kl_traits_of(&t, a, row_kernel(a, ROWS[i].file, ROWS[i].text), NULL);
        const double got = kl_trait(&t, kl_str_of(ROWS[i].trait));
        if (got != ROWS[i].value)
            fail_msg("row %zu: %s is %g, not %g, in %s", i, ROWS[i].trait, got, ROWS[i].value,
                     ROWS[i].text);
    }
    kl_arena_free(a);
}

static void read_python(kl_traits *t, kl_arena *a, const char *text) {
    const char *head = "#! surface triton\n#! launch f grid(1) args(x)\n#! buffer t: f32[8]\n";
    kl_traits_of(t, a, kernel_named(a, "k.py", kl_arena_printf(a, "%s%s", head, text).ptr), NULL);
}

static const struct {
    const char *text, *trait;
    double value;
} PYTHON[] = {
    {"def f(x):\n  for i in range(0, 64, 8):\n    for j in range(4): pass  # for k in x\n"
     "  y = [1 for q in x]\n",
     "source.loops", 2},
    {"def f(x):\n  for i in range(0, 64, 8):\n    for j in range(0, 4, 1): pass\n",
     "source.blocked_loops", 1},
    {"def f(x):\n  for i in tl.range(0, x,\n      step=8): pass\n", "source.blocked_loops", 1},
    {"def g(x):\n  while x: x -= 1\n@jit\ndef f(x):\n  for i in x:\n    g(i)\n",
     "source.loop_depth", 2},
    {"def g(x):\n  return g(x)\ndef f(x):\n  for i in x: g(f(x))\n", "source.loop_depth", 1},
    {"def unused(x):\n  for i in x: tl.dot(x, x)\ndef f(x): pass\n", "source.loops", 0},
    {"def unused(x):\n  for i in x: tl.dot(x, x)\ndef f(x): pass\n", "source.functions", 1},
    {"def f(x):\n  s = 'tl.dot(x, x)'  # tl.dot(x, x)\n  return tl.dot(x, x) + dot\n", "source.mma",
     1},
    {"def f(x):\n  for i in x:\n    a[i] += 1; b += 2; a[i] += 3\n", "source.accumulators", 2},
    {"def f(x):\n  return x * 0.0096755413 + 1e-6\n", "source.constants", 1},
    {"def f(x): tl.load(x, mask=x < 3)\n", "source.masked", 1},
    {"def f(x): tl.inline_asm_elementwise('shfl.sync')\n", "source.shuffles", 1},
    {"def f(x): tl.range(0, 9, num_stages=3)\n", "source.stages", 0},
    {"def f(x):\n  for k in T.Pipelined(9, num_stages=3): pass\n", "source.stages", 3},
    {"def f(x):\n  for k in T.Pipelined(9, num_stages=N): pass\n", "source.stages", 0},
    {"def f(x):\n  if x\n    pass\n", "source.loops", 0}, /* no Python: directives are known */
    {"def f(x):\n  if x\n    pass\n", "source.buffers", 1},
};

static void test_python(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    for (size_t i = 0; i < KL_COUNT(PYTHON); i++) {
        kl_traits t;
        read_python(&t, a, PYTHON[i].text);
        const double got = kl_trait(&t, kl_str_of(PYTHON[i].trait));
        if (got != PYTHON[i].value)
            fail_msg("%s is %g, not %g, in\n%s", PYTHON[i].trait, got, PYTHON[i].value,
                     PYTHON[i].text);
    }
    kl_arena_free(a);
}

static void test_hostile_python_ends(void **state) {
    (void)state;
    static const char *const UNITS[] = {"(",       "-",  "f(",     "[x for x in ",
                                        "lambda:", "x.", "if x: ", "'''"};
    kl_arena *a = kl_arena_new();
    for (size_t i = 0; i < KL_COUNT(UNITS); i++) {
        kl_buf b = {0};
        kl_traits t;
        kl_buf_printf(&b, "def f(x):\n  return ");
        for (int n = 0; n < 40000; n++) kl_buf_printf(&b, "%s", UNITS[i]);
        read_python(&t, a, b.ptr);
        assert_float_equal(kl_trait(&t, KL_S("source.buffers")), 1, 0);
        kl_buf_fini(&b);
    }
    kl_arena_free(a);
}

static void test_hostile_sources_end(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    const struct {
        const char *unit;
        int times;
    } rows[] = {{"for (", 40000},
                {"if (x) ", 40000},
                {"{", 40000},
                {"asm ", 60000},
                {"x += ", 60000},
                {"#define A A A\nA ", 4000},
                {"f(", 40000},
                {"do ", 40000},
                {"\"", 40000},
                {"/*", 40000},
                {"#define A(x) x x\nA(A(", 4000},
                {"#define E\n#define F E E E E E E E E\nF F ", 4000}};
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        kl_buf b = {0};
        kl_traits t;
        kl_buf_printf(&b, "//! launch f args(x)\nvoid f(float *x) {\n");
        for (int n = 0; n < rows[i].times; n++) kl_buf_printf(&b, "%s", rows[i].unit);
        kl_traits_of(&t, a, kernel_named(a, "k.c", b.ptr), NULL);
        assert_true(kl_trait(&t, KL_S("source.tokens")) > 0);
        kl_buf_fini(&b);
    }
    kl_traits t; /* macros that double: 2^40 without a bound */
    kl_buf b = {0};
    kl_buf_printf(&b, "//! launch f args(x)\n");
    for (int n = 0; n < 40; n++) kl_buf_printf(&b, "#define M%d M%d M%d\n", n, n + 1, n + 1);
    kl_buf_printf(&b, "void f(float *x) { M0 }\n");
    kl_traits_of(&t, a, kernel_named(a, "k.c", b.ptr), NULL);
    kl_buf_fini(&b);
    kl_arena_free(a);
}

static void test_json_and_code_features(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_feature features[] = {{KL_S("fma"), 12}, {KL_S("vector_bits"), 512.5}};
    kl_verdict v = {.features = features, .n_features = 2};
    kl_traits t, again;
    kl_traits_of(&t, a, kernel_c(a, "void f(float *x) { for (;;) x[0] = 1; }"), &v);
    assert_float_equal(kl_trait(&t, KL_S("code.fma")), 12, 0);
    json_t *o = kl_traits_json(&t);
    json_object_set_new(o, "odd", json_string("text"));
    kl_traits_parse(&again, a, o);
    json_decref(o);
    assert_int_equal(again.n, t.n);
    for (int i = 0; i < t.n; i++) {
        assert_true(kl_str_eq(t.at[i].name, again.at[i].name));
        assert_float_equal(t.at[i].value, again.at[i].value, 0);
        if (i) assert_true(strcmp(t.at[i - 1].name.ptr, t.at[i].name.ptr) < 0);
    }
    kl_arena_free(a);
}

/* ---- naive and raised -------------------------------------------------------------------- */

static void read_file(kl_traits *t, kl_arena *a, const char *path) {
    kl_kernel *k;
    kl_error e = {0};
    assert_ok(kl_kernel_load(&k, a, path, NULL, &e));
    kl_traits_of(t, a, k, NULL);
}

static void test_naive_kernels_are_naive_and_others_are_not(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_traits naive, vector;
    kl_str why = {0};
    read_file(&naive, a, KL_TEST_ROOT "/tasks/gemm/naive.c");
    assert_true(kl_traits_naive(&naive, &naive, &why, a));
    kl_traits_of(
        &vector, a,
        kernel_c(a, "void f(float *x) { float t[4]; for (int i = 0; i < 4; i++) x[i] = t[i]; }"),
        NULL);
    assert_false(kl_traits_naive(&vector, &naive, &why, a));
    assert_str(why, "source.const_loops is 1, the naive kernel has 0");
    assert_str(kl_traits_raised(a, &naive, &vector), "source.const_loops source.local_arrays");
    /* more loops and more text are no optimization */
    kl_traits_of(&vector, a,
                 kernel_c(a, "void f(float *x, int n) { while (n--) while (n--) while (n--) while "
                             "(n--) *x++ = n; }"),
                 NULL);
    assert_true(kl_traits_naive(&vector, &naive, NULL, a));
    kl_arena_free(a);
}

/* ---- undoing ----------------------------------------------------------------------------- */

#define VECTOR "typedef float vf __attribute__((vector_size(32)));\n"
#define LOOP "for (int i = 0; i < n; i++) y[i] = x[i];"

static const struct {
    const char *action, *bundle, *before, *after, *says;
} UNDOINGS[] = {
    {"prefetch", "", "void f(float *x, float *y, int n) { __builtin_prefetch(x); " LOOP " }",
     "void f(float *x, float *y, int n) { " LOOP " }", NULL},
    {"prefetch", "", "void f(float *x, float *y, int n) { __builtin_prefetch(x); " LOOP " }",
     "void f(float *x, float *y, int n) { __builtin_prefetch(x + 1); " LOOP " }", "still there"},
    {"pack_b", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "void f(float *x, float *y, int n) { " LOOP " n = 0; }", "still there"},
    {"prefetch", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "void f(float *x, float *y, int n) { for (int k = 0; k < n; k++) y[k] = x[k]; }",
     "not visible"},
    {"prefetch", "",
     VECTOR "void f(vf *x, vf *y, int n) { __builtin_prefetch(x); vf a = *x; *y = a; }",
     "void f(float *x, float *y, int n) { " LOOP " }", "source.vector_types from 1 to 0"},
    {"prefetch", "fma_simd",
     VECTOR "void f(vf *x, vf *y, int n) { __builtin_prefetch(x); vf a = *x; *y = a; }",
     "void f(float *x, float *y, int n) { " LOOP " }", NULL},
    {"cache_block", "",
     "//! buffer t: f32[8]\nvoid f(float *x, float *y, int n) { for (int i = 0; i < n; i += 64) "
     "y[i] = x[i]; }",
     "void f(float *x, float *y, int n) { " LOOP " }", "source.buffers from 1 to 0"},
    {"cache_block", "pack_a",
     "//! buffer t: f32[8]\nvoid f(float *x, float *y, int n) { for (int i = 0; i < n; i += 64) "
     "y[i] = x[i]; }",
     "void f(float *x, float *y, int n) { " LOOP " }", NULL},
    {"other:thing", "", "void f(float *x, float *y, int n) { int k = 2; " LOOP " }",
     "void f(float *x, float *y, int n) { " LOOP " }", NULL},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "void f(volatile float *x, float *y, int n) { " LOOP " }", "volatile"},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "void f(float *x, float *y, int n) { __asm__(\"nop\"); " LOOP " }", "assembler"},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "void f(float *x, float *y, int n) { usleep(1); " LOOP " }", "only takes time"},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "#define W __rdtsc()\nvoid f(float *x, float *y, int n) { W; " LOOP " }", "only takes time"},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "#define W __rdtsc\nvoid f(float *x, float *y, int n) { W(); " LOOP " }", "only takes time"},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "#define W(n) for (int k = 0; k < n; k++) {}\nvoid f(float *x, float *y, int n) { W(9) " LOOP
     " }",
     "empty body"},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "#define W(n) for (int k = 0; k < n; k++)\nvoid f(float *x, float *y, int n) { W(9) { " LOOP
     " } }",
     "repeats the same work"},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "void f(float *x, float *y, int n) { for (int k = 0; k < 9; k++); " LOOP " }", "empty body"},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "void f(float *x, float *y, int n) { for (int r = 0; r < 3; r++) { " LOOP " } }",
     "repeats the same work"},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "//! flags -O0\nvoid f(float *x, float *y, int n) { " LOOP " }", "optimize less"},
    {"loop_order", "", "void f(float *x, float *y, int n) { " LOOP " }",
     "void f(float *x, float *y, int n) { " LOOP LOOP LOOP LOOP " }", "grew from"},
};

static void test_undoing_is_checked(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    for (size_t i = 0; i < KL_COUNT(UNDOINGS); i++) {
        kl_error e = {0};
        kl_traits t_before, t_after;
        const kl_kernel *before = kernel_c(a, UNDOINGS[i].before),
                        *after = kernel_c(a, UNDOINGS[i].after);
        kl_traits_of(&t_before, a, before, NULL);
        kl_traits_of(&t_after, a, after, NULL);
        const kl_err err =
            kl_rewrite_check_undo(kl_str_of(UNDOINGS[i].action), kl_str_of(UNDOINGS[i].bundle),
                                  before, &t_before, after, &t_after, &e);
        if (err != (UNDOINGS[i].says ? KL_EINVAL : KL_OK))
            fail_msg("row %zu: %s: %s", i, kl_err_name(err), e.message);
        if (UNDOINGS[i].says) assert_contains(e.message, UNDOINGS[i].says);
    }
    kl_arena_free(a);
}

/* ---- the real ones ----------------------------------------------------------------------- */

static void check_real(kl_arena *a, const kl_kernel *k, const kl_kernel *before, void *ctx) {
    (void)before;
    (void)ctx;
    kl_traits t;
    kl_error e = {0};
    kl_traits_of(&t, a, k, NULL);
    assert_true(kl_trait(&t, KL_S("source.loops")) > 0);
    assert_true(kl_trait(&t, KL_S("source.functions")) > 0);
    assert_true(kl_traits_naive(&t, &t, NULL, a));
    assert_ok(kl_rewrite_check_undo(KL_S("loop_order"), KL_S(""), k, &t, k, &t,
                                    &e)); /* nothing changed: nothing to complain of */
}

static void test_real_kernels(void **state) {
    (void)state;
    assert_true(all_kernels(check_real, NULL) > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traits_of_small_sources),
        cmocka_unit_test(test_python),
        cmocka_unit_test(test_hostile_python_ends),
        cmocka_unit_test(test_hostile_sources_end),
        cmocka_unit_test(test_json_and_code_features),
        cmocka_unit_test(test_naive_kernels_are_naive_and_others_are_not),
        cmocka_unit_test(test_undoing_is_checked),
        cmocka_unit_test(test_real_kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
