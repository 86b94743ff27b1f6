/* compile_test.c - the cache, the log, and sources that attack the compiler.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_fixture.h"
#include "compile.h"
#include "isolation.h"
#include "base/fs.h"
#include <signal.h>

#define GOOD                                                                                       \
    "//! launch k args(x, s, y, N)\nvoid k(const float *x, float s, float *y, int n) { y[0] = s "  \
    "* x[n - 1]; }\n"

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
    assert_true(f.artefact.kind == KL_ARTEFACT_SHARED_OBJECT &&
                kl_str_eq(f.artefact.toolchain, first.toolchain));
    fixture_compile_for(&f, GOOD "/* another */\n", false);
    assert_false(f.artefact.cached);
    assert_string_equal(f.artefact.hash, first.hash); /* comments leave no trace in the object */
    fixture_close(&f);
}

static void test_compile__a_changed_cache_is_compiled_again(void **state) {
    fixture f;
    kl_error e = {0};
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_compile_for(&f, GOOD, false);
    assert_ok(kli_fs_write(f.artefact.path.ptr, KL_S("something else"), &e));
    fixture_compile_for(&f, GOOD, false);
    assert_true(f.artefact.ok && !f.artefact.cached);
    /* and one that changes between compile and load is not run */
    assert_ok(kli_fs_write(f.artefact.path.ptr, KL_S("something else"), &e));
    fixture_start(&f, false);
    assert_err(KL_EIO, kli_runner_load(f.runner, &f.fault, f.resources, &f.artefact, &f.plan, &e));
    fixture_close(&f);
}

static void test_compile__what_confined_it_is_part_of_the_key(void **state) {
    fixture f;
    kl_isolation full = {.seccomp = true,
                         .landlock = true,
                         .namespaces = true,
                         .user_switch = true,
                         .rlimits = true,
                         .landlock_abi = 3};
    kl_hash keys[6];
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_compile_for(&f, GOOD, false);
    kl_isolation less[] = {full, full, full, full, full, {0}};
    less[1].seccomp = less[2].landlock = less[3].namespaces = less[4].user_switch = false;
    kl_compile_job job = {.device = &f.device, .kernel = f.kernel};
    for (int i = 0; i < 6; i++) {
        keys[i] = kli_compile_key(&job, &less[i], false);
        for (int k = 0; k < i; k++) assert_string_not_equal(keys[i].hex, keys[k].hex);
    }
    assert_string_equal(kli_compile_key(&job, &full, true).hex,
                        kli_compile_key(&job, &less[5], true).hex);
    job.classes = KL_S("ptr i32/16"); /* another shape, where the compiler looks at shapes */
    assert_string_not_equal(kli_compile_key(&job, &full, false).hex, keys[0].hex);
    fixture_close(&f);
}

/* Whatever could change the artefact is in the key, one thing at a time. */
static void test_compile__each_part_of_a_job_is_part_of_the_key(void **state) {
    static const char *const defines[] = {"-DKL_N=1", NULL}, *const others[] = {"-DKL_N=2", NULL},
                             *const split[] = {"-DKL_N=", "1", NULL};
    const kl_isolation none = {0};
    kl_hash keys[9];
    size_t n = 0;
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_compile_for(&f, GOOD, false);
    kl_device device = f.device;
    kl_kernel kernel = *f.kernel;
    kl_compile_job job = {.device = &device, .kernel = &kernel, .defines = defines};
    keys[n++] = kli_compile_key(&job, &none, false);
    job.defines = others;
    keys[n++] = kli_compile_key(&job, &none, false);
    job.defines = split; /* words are told apart, not joined */
    keys[n++] = kli_compile_key(&job, &none, false);
    job.defines = defines;
    kernel.trusted = true;
    keys[n++] = kli_compile_key(&job, &none, false);
    kernel.trusted = false;
    kernel.source.len--;
    keys[n++] = kli_compile_key(&job, &none, false);
    kernel.source.len++;
    kernel.surface = kl_surface_by_name(KL_S("opencl"));
    keys[n++] = kli_compile_key(&job, &none, false);
    kernel.surface = f.kernel->surface;
    device.arch = KL_S("another");
    keys[n++] = kli_compile_key(&job, &none, false);
    device.arch = f.device.arch;
    device.toolchain = KL_S("another");
    keys[n++] = kli_compile_key(&job, &none, false);
    keys[n++] = kli_compile_key(&job, &none, true);
    assert_int_equal(n, KL_COUNT(keys));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) assert_string_not_equal(keys[i].hex, keys[k].hex);
    device = f.device; /* what is carried does not depend on the compiler and its host */
    device.name = KL_S("another");
    assert_string_equal(kli_compile_key(&job, &none, true).hex, keys[n - 1].hex);
    fixture_close(&f);
}

static void compile_carried(fixture *f, const char *source) {
    kl_error e = {0};
    const kl_kernel_opts how = {0};
    const kl_compile_opts compile = {.cache_dir = "carried", .carried = true};
    assert_ok(kl_kernel_parse(&f->kernel, f->arena, kl_str_of(source), KL_S("test.c"),
                              kl_surface_of_host(KL_ON_CPU), &how, &e));
    assert_ok(kli_compile(&f->artefact, f->arena, &f->device, f->kernel, &f->task, &f->workload,
                          &compile, &e));
}

/* The sender's word for the code that he brings is no word: a forged entry calls a kernel clean
 * that forks. */
static void test_compile__a_carried_artefact_is_inspected_again(void **state) {
    fixture f;
    kl_error e = {0};
    kl_str text;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    compile_carried(&f, "#include <unistd.h>\n//! launch k args(x, s, y, N)\n"
                        "void k(const float *x, float s, float *y, int n) { y[0] = s * x[n - 1] * "
                        "(float)fork(); }\n");
    assert_contains(f.artefact.suspicious.ptr, "calls fork");
    kl_str json = kl_arena_printf(f.arena, "%.*sjson", (int)f.artefact.path.len - 3,
                                  f.artefact.path.ptr); /* KEY.bin */
    assert_ok(kli_fs_read(&text, f.arena, json.ptr, 1 << 20, &e));
    char *lie = strstr(text.ptr, "it calls");
    assert_non_null(lie);
    kl_str forged =
        kl_arena_printf(f.arena, "%.*s%s", (int)(lie - text.ptr), text.ptr, strchr(lie, '"'));
    assert_ok(kli_fs_write(json.ptr, forged, &e));
    compile_carried(&f, f.kernel->source.ptr);
    assert_true(f.artefact.cached);
    assert_contains(f.artefact.suspicious.len ? f.artefact.suspicious.ptr : "(clean)",
                    "calls fork");
    fixture_close(&f);
}

static void test_compile__a_refusal_has_a_log_without_paths(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    for (int round = 0; round < 2; round++) {
        fixture_compile_for(
            &f, "//! launch k args(x)\nvoid k(const float *x) {\n    return no_such_thing; }\n",
            false);
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
    kli_isolation_probe(&here);
    if (!here.landlock) skip();
    for (size_t i = 0; i < KL_COUNT(ATTACKS); i++) {
        fixture f;
        char source[512];
        (void)snprintf(source, sizeof source, "%s%s", GOOD, ATTACKS[i]);
        fixture_open(&f, KL_BACKEND_CPU);
        fixture_compile_for(&f, source, false);
        assert_false(f.artefact.ok);
        assert_null(strstr(f.artefact.log.ptr, "root:x"));
        fixture_close(&f);
    }
}

/* ---- a busy machine ---------------------------------------------------------------------- */

static kl_err run_shell(kli_proc_result *r, kl_arena *a, const char *script, kl_error *why) {
    const char *const argv[] = {"sh", "-c", script, NULL};
    kl_error e = {0};
    kl_str dir;
    assert_ok(kli_fs_temp_dir(&dir, a, &e));
    const kl_err code = kli_compile_run(r, a, argv, dir.ptr, NULL, 0, why);
    kli_fs_remove_tree(dir.ptr);
    return code;
}

/* What was stopped from outside says nothing about a source: an error of the world, with a hint,
 * and never a row of the cache. */
static void test_compile__a_compiler_that_was_killed_is_no_refusal(void **state) {
    kl_arena *a = kl_arena_new();
    kli_proc_result r;
    kl_error e = {0};
    (void)state;
    assert_err(KL_EBUSY, run_shell(&r, a, "kill -KILL $$", &e));
    assert_contains(e.message, "out of memory");
    assert_contains(e.hint, "uptime");
    assert_err(
        KL_EBUSY,
        run_shell(&r, a,
                  "echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1", &e));
    kl_arena_free(a);
}

/* Its own limits are its own: processor time that a template bomb used up, and what it says itself.
 */
static void test_compile__a_compiler_that_used_up_its_time_is_a_refusal(void **state) {
    kl_arena *a = kl_arena_new();
    kli_proc_result r;
    kl_error e = {0};
    (void)state;
    assert_ok(run_shell(&r, a, "kill -XCPU $$", &e));
    assert_int_equal(r.signal, SIGXCPU);
    assert_contains(kli_compile_log(a, &r, "/tmp").ptr, "SIGXCPU");
    assert_ok(run_shell(
        &r, a, "echo 'CPU time limit exceeded signal terminated program cc1' >&2; exit 1", &e));
    assert_int_equal(r.exit_code, 1);
    kl_arena_free(a);
}

static void test_compile__wall_time_alone_blames_the_machine(void **state) {
    const kli_proc_result late = {.exit_code = -1, .signal = SIGKILL, .timed_out = true};
    const kli_proc_result well = {.exit_code = 1, .err = KL_S("kernel.c:3: error: no\n")};
    kl_error e = {0};
    (void)state;
    assert_err(KL_EBUSY, kli_compile_blame(&late, "gcc", &e));
    assert_contains(e.message, "the machine is overloaded");
    assert_ok(kli_compile_blame(&well, "gcc", &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compile__is_cached_by_content),
        cmocka_unit_test(test_compile__a_changed_cache_is_compiled_again),
        cmocka_unit_test(test_compile__what_confined_it_is_part_of_the_key),
        cmocka_unit_test(test_compile__each_part_of_a_job_is_part_of_the_key),
        cmocka_unit_test(test_compile__a_carried_artefact_is_inspected_again),
        cmocka_unit_test(test_compile__a_refusal_has_a_log_without_paths),
        cmocka_unit_test(test_compile__sources_read_nothing),
        cmocka_unit_test(test_compile__a_compiler_that_was_killed_is_no_refusal),
        cmocka_unit_test(test_compile__a_compiler_that_used_up_its_time_is_a_refusal),
        cmocka_unit_test(test_compile__wall_time_alone_blames_the_machine),
    };
    kli_fs_remove_tree("cache");
    kli_fs_remove_tree("carried");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
