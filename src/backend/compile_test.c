/* compile_test.c - the cache, the log, and sources that attack the compiler.  SPDX-License-Identifier: Apache-2.0 */
#include "runner_fixture.h"
#include "base/fs.h"

#define GOOD "//! launch k args(x, s, y, N)\nvoid k(const float *x, float s, float *y, int n) { y[0] = s * x[n - 1]; }\n"

static void test_compile__is_cached_by_content(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_compile_for(&f, GOOD, false);
    assert_true(f.artefact.ok && !f.artefact.cached);
    const kl_artefact first = f.artefact;
    fixture_compile_for(&f, GOOD, false);
    assert_true(f.artefact.ok && f.artefact.cached);
    assert_string_equal(f.artefact.hash, first.hash);
    assert_int_equal(f.artefact.n_features, first.n_features);
    assert_true(f.artefact.kind == KL_ARTEFACT_SHARED_OBJECT && kl_str_eq(f.artefact.toolchain, first.toolchain));
    fixture_compile_for(&f, GOOD "/* another */\n", false);
    assert_false(f.artefact.cached);
    assert_string_equal(f.artefact.hash, first.hash); /* comments leave no trace in the object */
    fixture_close(&f);
}

static void test_compile__a_changed_cache_is_compiled_again(void **state) {
    fixture  f;
    kl_error e = {0};
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_compile_for(&f, GOOD, false);
    assert_ok(kl_fs_write(f.artefact.path.ptr, KL_S("something else"), &e));
    fixture_compile_for(&f, GOOD, false);
    assert_true(f.artefact.ok && !f.artefact.cached);
    /* and one that changes between compile and load is not run */
    assert_ok(kl_fs_write(f.artefact.path.ptr, KL_S("something else"), &e));
    fixture_start(&f, false);
    assert_err(KL_EIO, kl_runner_load(f.runner, &f.fault, f.resources, &f.artefact, &f.plan, &e));
    fixture_close(&f);
}

static void test_compile__a_refusal_has_a_log_without_paths(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    for (int round = 0; round < 2; round++) {
        fixture_compile_for(&f, "//! launch k args(x)\nvoid k(const float *x) {\n    return no_such_thing; }\n", false);
        assert_false(f.artefact.ok);
        assert_int_equal(f.artefact.cached, round);
        assert_contains(f.artefact.log.ptr, "kernel.c:3:");
        assert_null(strstr(f.artefact.log.ptr, "/klineage-"));
    }
    fixture_close(&f);
}

/* What a source could try while it is compiled. */
static const char *const ATTACKS[] = {
    "#include \"/etc/passwd\"\n",
    "__asm__(\".section .rodata\\n.incbin \\\"/etc/passwd\\\"\\n.text\");\n",
    "#include \"/proc/self/environ\"\n",
    "extern int outside_of_everything(void); int k2(void) { return outside_of_everything(); }\n",
};

static void test_compile__sources_read_nothing(void **state) {
    kl_isolation here;
    (void)state;
    kl_isolation_probe(&here);
    if (!here.landlock) skip();
    for (size_t i = 0; i < KL_COUNT(ATTACKS); i++) {
        fixture f;
        char    source[512];
        (void)snprintf(source, sizeof source, "%s%s", GOOD, ATTACKS[i]);
        fixture_open(&f, KL_BACKEND_CPU);
        fixture_compile_for(&f, source, false);
        assert_false(f.artefact.ok);
        assert_null(strstr(f.artefact.log.ptr, "root:x"));
        fixture_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compile__is_cached_by_content),
        cmocka_unit_test(test_compile__a_changed_cache_is_compiled_again),
        cmocka_unit_test(test_compile__a_refusal_has_a_log_without_paths),
        cmocka_unit_test(test_compile__sources_read_nothing),
    };
    kl_fs_remove_tree("cache");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
