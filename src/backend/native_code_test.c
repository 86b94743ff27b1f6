/* native_code_test.c - which names of the C library a kernel may call, and the table of features.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/compile.h"
#include "base/test.h"
#include <stdio.h>

static void test_symbol__arithmetic_and_memory_are_harmless(void **state) {
    static const char *const HARMLESS[] = {"sin",           "sinf",   "sinl",   "__sinf_finite",
                                           "__expf_finite", "fma",    "lgamma", "_ZGVdN8v_expf",
                                           "memcpy",        "malloc", "qsort",  "__memcpy_chk",
                                           "abort",         "powf",   "cexpf",  "__assert_fail"};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(HARMLESS); i++)
        if (!kli_symbol_is_harmless(HARMLESS[i])) fail_msg("%s is forbidden", HARMLESS[i]);
}

/* A name that merely begins like one of the list is another function. */
static void test_symbol__what_only_looks_like_it_is_not(void **state) {
    static const char *const OTHERS[] = {
        "sinx",    "sinff",    "sin_finite_",   "exp2g",  "memcpyx",
        "mallopt", "__memcpy", "__sin_finitex", "system", "",
        "open",    "_exit",    "dlsym",         "__",     "fork",
        "_ZGU",    "qsort_s",  "GOMP_parallel"};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(OTHERS); i++)
        if (kli_symbol_is_harmless(OTHERS[i])) fail_msg("%s is harmless", OTHERS[i]);
}

static void test_symbol__openmp_is_told_by_its_prefixes(void **state) {
    (void)state;
    assert_true(kli_symbol_is_openmp("GOMP_parallel") &&
                kli_symbol_is_openmp("omp_get_num_threads"));
    assert_false(kli_symbol_is_openmp("gomp_parallel") || kli_symbol_is_openmp("pomp_x") ||
                 kli_symbol_is_openmp("__kmpc_fork_call") || kli_symbol_is_openmp("omp"));
}

static void test_feature__a_full_table_drops_what_is_new_and_keeps_what_is_there(void **state) {
    kl_arena *a = kl_arena_new();
    kl_artefact *out = KL_NEW(a, kl_artefact);
    (void)state;
    for (int i = 0; i < 70; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        kli_feature_set(out, a, name, i);
        memset(name, 'x', sizeof name); /* the table has its own copy */
    }
    assert_int_equal(out->n_features, KL_COUNT(out->features));
    assert_true(kli_feature_get(out, "f63") == 63.0 && kli_feature_get(out, "f64") == 0.0);
    kli_feature_set(out, a, "f0", 7);
    assert_true(kli_feature_get(out, "f0") == 7.0);
    assert_int_equal(out->n_features, KL_COUNT(out->features));
    kl_arena_free(a);
}

static void test_line__ends_count_once(void **state) {
    kl_str line, rest = KL_S("one\n\nthree");
    (void)state;
    assert_true(kli_code_line(&line, &rest));
    assert_str(line, "one");
    assert_true(kli_code_line(&line, &rest));
    assert_int_equal(line.len, 0);
    assert_true(kli_code_line(&line, &rest));
    assert_str(line, "three");
    assert_false(kli_code_line(&line, &rest));
    rest = KL_S("\n");
    assert_true(kli_code_line(&line, &rest));
    assert_false(kli_code_line(&line, &rest));
}

static void test_command__a_word_too_many_is_dropped_and_the_end_stays(void **state) {
    static kli_command c;
    (void)state;
    for (int i = 0; i < 600; i++) kli_command_add(&c, "word");
    assert_int_equal(c.n, KL_COUNT(c.words) - 1);
    assert_null(c.words[c.n]);
    kli_command_add_all(&c, NULL);
    assert_null(c.words[c.n]);
}

static void test_log__is_bounded_and_forgets_the_folder(void **state) {
    kl_arena *a = kl_arena_new();
    kl_buf text = {0};
    (void)state;
    for (int i = 0; i < 3000; i++) kl_buf_printf(&text, "/tmp/k/kernel.c:%d: no\n", i);
    const kli_proc_result r = {.err = kl_buf_str(&text), .out = KL_S("said last"), .signal = 9};
    const kl_str log = kli_compile_log(a, &r, "/tmp/k");
    assert_int_equal(log.len, KLI_LOG_BYTES);
    assert_null(strstr(log.ptr, "/tmp"));
    assert_true(kl_str_starts(log, KL_S("the compiler was ended by SIGKILL")));
    assert_contains(log.ptr, "kernel.c:0: no\nkernel.c:1: no\n");
    kl_buf_fini(&text);
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbol__arithmetic_and_memory_are_harmless),
        cmocka_unit_test(test_symbol__what_only_looks_like_it_is_not),
        cmocka_unit_test(test_symbol__openmp_is_told_by_its_prefixes),
        cmocka_unit_test(test_feature__a_full_table_drops_what_is_new_and_keeps_what_is_there),
        cmocka_unit_test(test_line__ends_count_once),
        cmocka_unit_test(test_command__a_word_too_many_is_dropped_and_the_end_stays),
        cmocka_unit_test(test_log__is_bounded_and_forgets_the_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
