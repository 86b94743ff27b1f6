/* plugin_test.c - a trusted plugin from its source to its time.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "runner_fixture.h"
#include "base/fs.h"

static const char SOURCE[] =
    "#include <klineage/plugin.h>\n#include <stdio.h>\n"
    "static int opened;\n"
    "int kl_plugin_open(void **state, char *why, size_t n) { (void)why; (void)n; *state = &opened; "
    "opened = 7; return 0; }\n"
    "int kl_plugin_prepare(void *state, const kl_plugin_call *c, char *why, size_t n) { "
    "(void)state;\n"
    "  if (c->tensors[0].dims[0] == 1000 && c->tensors[0].dtype == KL_PLUGIN_F32) return 0;\n"
    "  snprintf(why, n, \"no such shape\"); return 1; }\n"
    "int kl_plugin_run(void *state, const kl_plugin_call *c) { (void)state; const float *x = "
    "c->tensors[0].data; float *y = c->tensors[2].data;\n"
    "  float s = *(const float *)c->tensors[1].data; for (int i = 0; i < c->tensors[2].dims[0]; "
    "i++) y[i] = s * x[i]; return 0; }\n"
    "const char *kl_plugin_describe(void *state) { (void)state; return \"Toy 1.0\"; }\n";

static void compile_plugin(fixture *f, const char *source) {
    kl_error e = {0};
    const kl_compile_opts compile = {.cache_dir = "cache"};
    assert_ok(kli_fs_write("toy.c", kl_str_of(source), &e));
    assert_ok(kli_compile_plugin(&f->artefact, f->arena, &f->device, "toy.c", &compile, &e));
}

/* The plan of any kernel of the task, without its launches: as the gate makes it. */
static void plan_without_launches(fixture *f) {
    fixture_compile_for(f,
                        "//! launch k args(x, s, y, N)\nvoid k(const float *x, float s, float *y, "
                        "int n) { y[0] = s * x[n - 1]; }\n",
                        true);
    f->plan.n_launches = 0;
}

static void test_plugin__runs_and_is_timed(void **state) {
    fixture f;
    kl_error e = {0};
    double ns;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    plan_without_launches(&f);
    compile_plugin(&f, SOURCE);
    if (!f.artefact.ok) fail_msg("%s", f.artefact.log.ptr);
    assert_int_equal(f.artefact.kind, KL_ARTEFACT_PLUGIN);
    fixture_start(&f, true);
    fixture_load(&f);
    if (f.fault.kind) fail_msg("%s", f.fault.text);
    assert_string_equal(kli_runner_describe(f.runner), "Toy 1.0");
    fixture_run(&f, 2, 3);
    fixture_expect_scaled(&f, 2, 3);
    const kl_time_request q = {.method = KL_TIME_BATCH, .calls = 4, .warm = 2};
    assert_ok(kli_runner_time(f.runner, &f.fault, &ns, &q, 20 * SECOND, &e));
    assert_int_equal(f.fault.kind, KL_FAULT_NONE);
    assert_true(ns > 0);
    compile_plugin(&f, SOURCE);
    assert_true(f.artefact.cached);
    fixture_close(&f);
}

static void test_plugin__says_why_it_cannot(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    f.workload.axes[0] = 999;
    plan_without_launches(&f);
    compile_plugin(&f, SOURCE);
    fixture_start(&f, true);
    fixture_load(&f);
    fixture_expect_fault(&f, KL_FAULT_REFUSED, 0, "no such shape");
    fixture_close(&f);
}

static void test_plugin__is_not_for_candidates(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    plan_without_launches(&f);
    compile_plugin(&f, SOURCE);
    fixture_start(&f, false);
    fixture_load(&f);
    fixture_expect_fault(&f, KL_FAULT_REFUSED, 0, "not for candidates");
    fixture_close(&f);
}

static void test_plugin__a_broken_one_has_a_log(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    compile_plugin(&f,
                   "#include <klineage/plugin.h>\nint kl_plugin_open(void) { return missing; }\n");
    assert_false(f.artefact.ok);
    assert_contains(f.artefact.log.ptr, "missing");
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plugin__runs_and_is_timed),
        cmocka_unit_test(test_plugin__says_why_it_cannot),
        cmocka_unit_test(test_plugin__is_not_for_candidates),
        cmocka_unit_test(test_plugin__a_broken_one_has_a_log),
    };
    kli_fs_remove_tree("cache");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
