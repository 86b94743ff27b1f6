/* c_test.c - features come from instructions; what must not be there is named.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/runner_fixture.h"
#include "base/fs.h"

#define LAUNCH "//! launch k args(x, s, y, N)\n"
#define HEAD LAUNCH "void k(const float *x, float s, float *y, int n) "

static double feature(const fixture *f, const char *name) {
    for (int i = 0; i < f->artefact.n_features; i++)
        if (kl_str_eq(f->artefact.features[i].name, kl_str_of(name)))
            return f->artefact.features[i].value;
    return -1;
}

static void test_c_inspect__features(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_compile_for(&f,
                        "//! flags -march=x86-64-v3 -ffast-math\n" HEAD
                        "{ for (int i = 0; i < n; i++) y[i] += s * x[i]; }\n",
                        false);
    assert_int_equal(f.artefact.suspicious.len, 0);
    if (feature(&f, "disassembled") < 1) skip();
    assert_true(feature(&f, "vector256") > 0 && feature(&f, "vector512") == 0 &&
                feature(&f, "fma") > 0);
    assert_true(feature(&f, "vector_bits") == 256 && feature(&f, "prefetch") == 0 &&
                feature(&f, "static_bytes") == 0);
    fixture_compile_for(
        &f,
        "//! flags -O1 -fno-tree-vectorize\n" HEAD
        "{ for (int i = 0; i < n; i++) { __builtin_prefetch(x + i + 64); y[i] = s * x[i]; } }\n",
        false);
    assert_true(feature(&f, "vector256") == 0 && feature(&f, "scalar_float") > 0 &&
                feature(&f, "prefetch") == 1);
    fixture_close(&f);
}

static const struct {
    const char *source, *why;
} CHEATS[] = {
    {HEAD "{ (void)x; (void)s; (void)n; y[0] = 1; }\n__attribute__((constructor)) void early(void) "
          "{ }\n",
     "when it is loaded"},
    {HEAD
     "{ (void)x; (void)s; (void)n; y[0] = 1; }\n__attribute__((destructor)) void late(void) { }\n",
     "when it is loaded or unloaded"},
    {HEAD "{ (void)x; (void)s; (void)n; y[0] = 1; }\nvoid _init(void) { }\n__asm__(\".section "
          ".init_array,\\\"aw\\\"\\n.quad _init\\n.text\");\n",
     "when it is loaded"},
    {HEAD "{ (void)x; (void)s; (void)n; y[0] = 1; }\nstatic void *pick(void) { return 0; }\nvoid "
          "g(void) __attribute__((ifunc(\"pick\")));\n",
     "resolver"},
    {"#include <unistd.h>\n" HEAD "{ (void)x; (void)s; y[0] = (float)write(n, y, 4); }\n",
     "calls write"},
    {"#include <pthread.h>\n" HEAD
     "{ (void)x; (void)s; (void)n; pthread_create((pthread_t *)(void *)y, 0, 0, 0); }\n",
     "calls pthread_create"},
    {"void *dlopen(const char *, int);\n" HEAD
     "{ (void)x; (void)s; (void)n; y[0] = dlopen(\"libopenblas.so.0\", 2) != 0; }\n",
     "calls dlopen"},
    {"void exit(int);\n" HEAD "{ (void)x; (void)s; (void)y; exit(n - n); }\n", "calls exit"},
    {"#include <time.h>\n" HEAD "{ (void)x; (void)s; (void)n; y[0] = (float)clock(); }\n",
     "calls clock"},
    {HEAD "{ (void)x; (void)s; (void)n; y[0] = (float)__builtin_ia32_rdtsc(); }\n",
     "reads a clock"},
    {HEAD "{ (void)x; (void)s; (void)n; y[0] = 1; __asm__ volatile(\"syscall\" ::: \"rcx\", "
          "\"r11\"); }\n",
     "instruction syscall"},
    {HEAD "{ (void)x; (void)s; (void)n; y[0] = 1; __asm__ volatile(\"int $0x80\"); }\n",
     "instruction int"},
    {HEAD "{ (void)x; (void)s; (void)n; y[0] = 1; }\nvoid GOMP_parallel(void) { }\n",
     "belongs to OpenMP"},
    {"//! flags -fopenmp\n" HEAD
     "{ (void)x; (void)s; (void)n; y[0] = 1; }\nvoid omp_set_num_threads(int n) { (void)n; }\n",
     "belongs to OpenMP"},
};

#define BODY HEAD "{ (void)x; (void)s; (void)n; y[0] = 1; }\n"

/* Files of this host, tables of the linker and the loader, instruments: what a kernel's text alone
 * could not bring. */
static const struct {
    const char *source, *why;
} MADE[] = {
    {"__asm__(\".section .rodata\\n.incbin \\\"/usr/bin/env\\\"\\n.text\");\n" BODY,
     "takes in the file /usr/bin/env"},
    {"#define CAT(a, b) a b\n__asm__(CAT(\".section .rodata\\n.inc\", \"bin "
     "\\\"/usr/bin/env\\\"\\n.text\"));\n" BODY,
     "takes in the file /usr/bin/env"},
    {"__asm__(\".macro p a b\\n.\\\\a\\\\b \\\"/usr/bin/env\\\"\\n.endm\\n.section .rodata\\np inc "
     "bin\\n.text\");\n" BODY,
     "takes in the file /usr/bin/env"},
    {"__asm__(\".section .rodata\\n.irp x,bin\\n.inc\\\\x "
     "\\\"/usr/bin/env\\\"\\n.endr\\n.text\");\n" BODY,
     "takes in the file /usr/bin/env"},
    {"#include \"/usr/include/../share/perl/strict.pm\"\n" BODY, "(no compile)"},
    {BODY "__asm__(\".section .dynamic,\\\"aw\\\"\\n.quad 7,0\\n.text\");\n", "section .dynamic"},
    {BODY "__attribute__((section(\".dynamic\"))) const long more[2] = {23, 0};\n",
     "section .dynamic"},
    {BODY "__asm__(\".section .rela.dyn,\\\"a\\\"\\n.quad 0,37,0\\n.text\");\n",
     "section .rela.dyn"},
    {BODY "__asm__(\".section .rela.plt,\\\"a\\\"\\n.quad 0,37,0\\n.text\");\n",
     "section .rela.plt"},
    {BODY "__asm__(\".section .got.plt,\\\"aw\\\"\\n.quad 0\\n.text\");\n", "section .got.plt"},
    {BODY "const char i[] __attribute__((section(\".interp\"))) = \"/bin/sh\";\n",
     "section .interp"},
    {BODY "__attribute__((section(\".ctors\"))) void *early = (void *)scale2; \n", "(no compile)"},
    {BODY "void late(void) { }\n__attribute__((section(\".fini_array\"))) void (*at_end)(void) = "
          "late;\n",
     "loaded or unloaded"},
    {BODY "void late(void) { }\n__attribute__((section(\".ctors\"))) void (*early)(void) = late;\n",
     "loaded or unloaded"},
    {BODY "void __cyg_profile_func_enter(void *f, void *c) { (void)f; (void)c; }\n",
     "instrumented"},
};

static void test_c_inspect__names_what_it_was_made_of(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(MADE); i++) {
        fixture f;
        fixture_open(&f, KL_BACKEND_CPU);
        fixture_compile_for(&f, MADE[i].source, false);
        const char *found = !f.artefact.ok              ? "(no compile)"
                            : f.artefact.suspicious.len ? f.artefact.suspicious.ptr
                                                        : "(clean)";
        if (!strstr(found, MADE[i].why))
            fail_msg("%s\n%s, not %s", MADE[i].source, found, MADE[i].why);
        fixture_close(&f);
    }
}

/* Honest, and yet not here: the message says what to use instead, and nothing about honesty. */
static const struct {
    const char *source, *why;
} REFUSED[] = {
    {HEAD "{ (void)x; (void)s; (void)n; y[0] = __builtin_cpu_supports(\"avx2\") ? 1 : 2; }\n",
     "#ifdef __AVX2__"},
    {LAUNCH "__attribute__((target_clones(\"avx2\", \"default\")))\nvoid k(const float *x, float "
            "s, float *y, int n) "
            "{ for (int i = 0; i < n; i++) y[i] = s * x[i]; }\n",
     "#ifdef __AVX2__"},
    {"static void each(void (*f)(int), int n) { for (int i = 0; i < n; i++) f(i); }\n" HEAD
     "{ void one(int i) { y[i] = s * x[i]; } each(one, n); }\n",
     "file scope"},
    {"#include <stdlib.h>\n" HEAD "{ (void)x; (void)s; (void)n; y[0] = (float)rand(); }\n",
     "calls rand, which kernels are not offered"},
    {"#include <stdio.h>\n" HEAD
     "{ char t[64]; (void)x; (void)n; y[0] = (float)sprintf(t, \"%g\", (double)s); }\n",
     "which kernels are not offered"},
};

static void test_c_inspect__refuses_what_is_not_offered(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(REFUSED); i++) {
        fixture f;
        fixture_open(&f, KL_BACKEND_CPU);
        for (int round = 0; round < 2; round++) { /* and from the cache */
            fixture_compile_for(&f, REFUSED[i].source, false);
            if (!f.artefact.ok) fail_msg("%s\n%s", REFUSED[i].source, f.artefact.log.ptr);
            if (f.artefact.suspicious.len)
                fail_msg("%s\nis a cheat: %s", REFUSED[i].source, f.artefact.suspicious.ptr);
            assert_contains(f.artefact.refused.len ? f.artefact.refused.ptr : "(offered)",
                            REFUSED[i].why);
        }
        fixture_close(&f);
    }
}

static void test_c_inspect__names_what_must_not_be_there(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(CHEATS); i++) {
        fixture f;
        fixture_open(&f, KL_BACKEND_CPU);
        fixture_compile_for(&f, CHEATS[i].source, false);
        if (!f.artefact.ok) fail_msg("%s\n%s", CHEATS[i].source, f.artefact.log.ptr);
        assert_contains(f.artefact.suspicious.len ? f.artefact.suspicious.ptr : "(clean)",
                        CHEATS[i].why);
        fixture_compile_for(&f, CHEATS[i].source, true); /* trusted code may */
        assert_int_equal(f.artefact.suspicious.len, 0);
        fixture_close(&f);
    }
}

static void test_c_inspect__arithmetic_and_memory_are_clean(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_compile_for(
        &f,
        "#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n" HEAD
        "{ float *t = malloc(sizeof(float) * (size_t)n); memcpy(t, x, sizeof(float) * (size_t)n);"
        " for (int i = 0; i < n; i++) y[i] = expf(t[i]) + sinf(s) + powf(s, t[i]) + "
        "(float)erf(t[i]); free(t); }\n",
        false);
    if (f.artefact.suspicious.len) fail_msg("%s", f.artefact.suspicious.ptr);
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_c_inspect__features),
        cmocka_unit_test(test_c_inspect__names_what_must_not_be_there),
        cmocka_unit_test(test_c_inspect__names_what_it_was_made_of),
        cmocka_unit_test(test_c_inspect__refuses_what_is_not_offered),
        cmocka_unit_test(test_c_inspect__arithmetic_and_memory_are_clean),
    };
    kli_fs_remove_tree("cache");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
