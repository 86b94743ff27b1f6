/* triton_test.c - what Triton's front end is told of a plan, which toolkit is found, and what is
 * said where there is none.  SPDX-License-Identifier: Apache-2.0 */
#include "surface/triton/triton.h"
#include "backend/backend.h"
#include "base/fs.h"
#include "kernel/fixture.h"
#include "kit/kit.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what the front end is told ----------------------------------------------------------- */

static const char *specialized(const char *directives, int64_t m, int64_t n) {
    kl_fixture f;
    kl_kernel *k;
    kl_plan *plan = KL_NEW(arena, kl_plan);
    const kl_surface *triton = kl_surface_by_name(KL_S("triton"));
    const kl_str source = kl_arena_printf(arena, "#! surface triton\n%s", directives);
    fixture_init(&f, m, n);
    assert_ok(kl_kernel_parse(&k, arena, source, KL_S("k.py"), triton, NULL, &e));
    assert_ok(kli_kernel_plan(plan, k, &f.task, &f.workload, NULL, &e));
    return kli_python_specialize(arena, k, plan).ptr;
}

static void is_told(const char *directives, const char *text) {
    assert_string_equal(specialized(directives, 64, 96), text);
}

static void test_triton_specialize__a_launch_with_its_options(void **state) {
    (void)state;
    is_told("#! launch f grid(4) args(A, C)\n",
            "[{\"entry\":\"f\",\"warps\":4,\"stages\":3,\"ctas\":1,\"maxnreg\":0,"
            "\"args\":[{\"type\":\"bfloat16\"},{\"type\":\"bfloat16\"}]}]");
    is_told("#! launch f grid(4) warps(8) stages(2) ctas(2) maxnreg(168) args(state)\n",
            "[{\"entry\":\"f\",\"warps\":8,\"stages\":2,\"ctas\":2,\"maxnreg\":168,"
            "\"args\":[{\"type\":\"float32\"}]}]");
}

/* An integer reaches the code as a class: one, divided by sixteen, or neither.  So shapes of one
 * class share an artefact. */
static void test_triton_specialize__integers_are_told_by_class(void **state) {
    static const char DIRECTIVES[] = "#! launch f grid(1) args(M, N, 1, i64(M))\n";
    (void)state;
    const char *told = specialized(DIRECTIVES, 64, 97);
    assert_contains(told, "{\"integer\":\"i32\",\"by\":16},{\"integer\":\"i32\",\"by\":0},"
                          "{\"integer\":\"i32\",\"by\":1},{\"integer\":\"i64\",\"by\":16}]");
    assert_null(strstr(told, "\"value\""));
    assert_string_equal(specialized(DIRECTIVES, 128, 33), told);
    assert_string_not_equal(specialized(DIRECTIVES, 65, 97), told);
    assert_string_not_equal(specialized(DIRECTIVES, 64, 1), told);
}

/* What has a name may be meant for a constexpr, so its value is told, and is part of the key. */
static void test_triton_specialize__named_values_are_told(void **state) {
    (void)state;
    is_told("#! param BLOCK = 64 {32, 64}\n"
            "#! launch f grid(1) args(A, BLOCK_M=BLOCK, EPS=f32(0.5), T=dtype(C), ACT='relu', "
            "BIAS=None)\n",
            "[{\"entry\":\"f\",\"warps\":4,\"stages\":3,\"ctas\":1,\"maxnreg\":0,\"args\":["
            "{\"type\":\"bfloat16\"},"
            "{\"name\":\"BLOCK_M\",\"integer\":\"i32\",\"by\":16,\"value\":64},"
            "{\"name\":\"EPS\",\"real\":\"float32\",\"value\":0.5},"
            "{\"name\":\"T\",\"dtype\":\"bfloat16\"},"
            "{\"name\":\"ACT\",\"word\":\"'relu'\"},"
            "{\"name\":\"BIAS\",\"word\":\"None\"}]}]");
}

/* A scalar input of the task is data: its type is told, and never its value. */
static void test_triton_specialize__inputs_stay_data(void **state) {
    (void)state;
    const char *told = specialized("#! launch f grid(1) args(scale=alpha, alpha)\n", 64, 96);
    assert_contains(told, "{\"name\":\"scale\",\"real\":\"float32\"},{\"real\":\"float32\"}");
    assert_null(strstr(told, "\"value\""));
}

static void test_triton_specialize__a_descriptor_has_its_box(void **state) {
    (void)state;
    assert_contains(
        specialized("#! tensormap tA: A box(64, 16)\n#! launch f grid(1) args(tA)\n", 64, 96),
        "{\"type\":\"bfloat16\",\"map\":\"tA\",\"box\":[64,16]}");
}

/* ---- the toolkit -------------------------------------------------------------------------- */

/* A Python that is real, with a package of that version that is not; "": without ptxas. */
static void make_package(const char *version, const char *assembler) {
    static const char *const FOLDERS[] = {"site/triton/backends/nvidia/bin",
                                          "site/triton-9.8.7.dist-info"};
    for (size_t i = 0; i < KL_COUNT(FOLDERS); i++)
        assert_ok(kli_fs_mkdirs(kit_path(FOLDERS[i]), &e));
    kit_write("site/triton/__init__.py", "raise RuntimeError('it is looked for, not imported')\n");
    const kl_str metadata =
        kl_arena_printf(arena, "Metadata-Version: 2.1\nName: triton\nVersion: %s\n", version);
    kit_write("site/triton-9.8.7.dist-info/METADATA", metadata.ptr);
    if (*assembler) kit_write("site/triton/backends/nvidia/bin/ptxas", assembler);
    setenv("PYTHONPATH", kit_path("site"), 1);
}

/* The toolkit is looked for once a process, so in one of its own: what `say` prints. */
static const char *found(void (*say)(FILE *out, const kli_triton_toolkit *t)) {
    const char *path = kit_write("said", "");
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
        FILE *out = fopen(path, "w");
        say(out, kli_triton_toolkit_find());
        fclose(out);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return kit_read(path);
}

static void say_all(FILE *out, const kli_triton_toolkit *t) {
    fprintf(out, "version %s\nsite %s\nbinaries %s\nmissing %s\n",
            t->front.package->version.len ? t->front.package->version.ptr : "",
            t->front.package->site.len ? t->front.package->site.ptr : "",
            t->binaries.len ? t->binaries.ptr : "",
            t->front.package->missing.len ? t->front.package->missing.ptr : "");
}

static void test_triton_toolkit__is_the_package_of_a_python(void **state) {
    (void)state;
    unsetenv("KLINEAGE_PYTHON");
    make_package("9.8.7", "an assembler");
    const char *said = found(say_all);
    assert_contains(said, "version 9.8.7\n");
    assert_contains(said, kl_arena_printf(arena, "site %s\n", kit_path("site")).ptr);
    assert_contains(said, "/site/triton/backends/nvidia/bin\nmissing \n");
    unsetenv("PYTHONPATH");
}

static void test_triton_toolkit__says_what_is_missing(void **state) {
    (void)state;
    make_package("9.8.7", "");
    assert_contains(found(say_all), "version \n");
    assert_contains(found(say_all), "no ptxas of its own");
    unsetenv("PYTHONPATH");
    setenv("KLINEAGE_PYTHON", "/nowhere/python3", 1);
    assert_contains(found(say_all), "missing no ");
    const char *broken = kit_write("python", "#!/bin/sh\nexit 1\n");
    assert_int_equal(chmod(broken, 0755), 0);
    setenv("KLINEAGE_PYTHON", broken, 1);
    assert_contains(found(say_all), "python3 -m pip install triton");
    unsetenv("KLINEAGE_PYTHON");
}

/* The front end's own text is part of the key: another one may say no where this one says yes. */
static void say_toolchain(FILE *out, const kli_triton_toolkit *t) {
    (void)t;
    fprintf(out, "%s", kli_triton_toolchain(arena).len ? kli_triton_toolchain(arena).ptr : "none");
}

static void test_triton_toolchain__names_package_and_front_end(void **state) {
    (void)state;
    make_package("9.8.7", "an assembler");
    const char *said = found(say_toolchain);
    if (strcmp(said, "none") != 0) assert_contains(said, "triton 9.8.7, front end ");
    unsetenv("PYTHONPATH");
    setenv("KLINEAGE_PYTHON", "/nowhere/python3", 1);
    assert_string_equal(found(say_toolchain), "none");
    unsetenv("KLINEAGE_PYTHON");
}

/* ---- without one -------------------------------------------------------------------------- */

static void say_compiled(FILE *out, const kli_triton_toolkit *t) {
    kl_device device = {.arch = KL_S("sm_90a")};
    kl_kernel kernel = {.source = KL_S("x = 1\n")};
    const kl_compile_job job = {.arena = arena,
                                .device = &device,
                                .kernel = &kernel,
                                .classes = KL_S("[]"),
                                .dir = kit_folder()};
    kl_artefact made = {0};
    kl_error own = {0};
    (void)t;
    fprintf(out, "%s: %s; %s", kl_err_name(kli_triton_compile(&made, &job, &own)), own.message,
            own.hint);
}

static void test_triton_compile__without_a_toolkit_says_how_to_get_one(void **state) {
    (void)state;
    setenv("KLINEAGE_PYTHON", "/nowhere/python3", 1);
    const char *said = found(say_compiled);
    assert_contains(said, kl_err_name(KL_ENODEV));
    assert_contains(said, "needs Triton's compiler; no ");
    unsetenv("KLINEAGE_PYTHON");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_triton_specialize__a_launch_with_its_options),
        KIT_TEST(test_triton_specialize__integers_are_told_by_class),
        KIT_TEST(test_triton_specialize__named_values_are_told),
        KIT_TEST(test_triton_specialize__inputs_stay_data),
        KIT_TEST(test_triton_specialize__a_descriptor_has_its_box),
        KIT_TEST(test_triton_toolkit__is_the_package_of_a_python),
        KIT_TEST(test_triton_toolkit__says_what_is_missing),
        KIT_TEST(test_triton_toolchain__names_package_and_front_end),
        KIT_TEST(test_triton_compile__without_a_toolkit_says_how_to_get_one),
    };
    return cmocka_run_group_tests_name("triton", tests, NULL, NULL);
}
