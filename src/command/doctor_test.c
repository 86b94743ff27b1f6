/* doctor_test.c - what doctor finds on machines that are made up of a folder of programs, a loader
 * cache and variables, and what it makes of that.  SPDX-License-Identifier: Apache-2.0 */
#include "command/doctor.h"
#include "command/asked.h"
#include <sched.h>
#include <sys/stat.h>

static kli_doctor d;
static const char *path_before;

/* A machine without programs. */
static int set_up(void **state) {
    asked_set_up(state);
    if (!path_before) path_before = strdup(getenv("PATH"));
    assert_ok(kli_fs_mkdirs(kit_path("bin"), &e));
    setenv("PATH", kit_path("bin"), 1);
    setenv("CUDA_HOME", kit_path("cuda"), 1);
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("KLINEAGE_PYTHON");
    d = (kli_doctor){.arena = arena};
    return 0;
}

static int tear_down(void **state) {
    setenv("PATH", path_before, 1);
    return asked_tear_down(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void has_program(const char *place, const char *says) {
    const kl_str script = kl_arena_printf(arena, "#!/bin/sh\n%s\n", says);
    assert_ok(kli_fs_mkdirs(kli_fs_dirname(arena, kit_path(place)).ptr, &e));
    assert_int_equal(chmod(kit_write(place, script.ptr), 0755), 0);
}

static const kli_doctor_row *row_called(const char *name) {
    for (int i = 0; i < d.n_rows; i++)
        if (strcmp(d.rows[i].name, name) == 0) return &d.rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

static void is(const char *name, kli_doctor_state state, const char *found) {
    const kli_doctor_row *r = row_called(name);
    assert_int_equal(r->state, state);
    if (found) assert_str(r->found, found);
    assert_int_equal(r->mend == NULL, state == KL_DOCTOR_OK); /* what is well needs no mending */
}

/* ---- programs ----------------------------------------------------------------------------- */

static void test_doctor_compilers__without_any_there_is_none(void **state) {
    (void)state;
    kli_doctor_compilers(&d);
    assert_false(d.has_compiler);
    is("gcc", KL_DOCTOR_MISSING, "not found");
    assert_contains(row_called("gcc")->mend, "apt-get install gcc");
    is("clang", KL_DOCTOR_MISSING, "not found");
    is("objdump", KL_DOCTOR_MISSING, "not found");
}

/* The line that names the version, wherever a program writes it. */
static void test_doctor_compilers__their_versions_are_one_line(void **state) {
    (void)state;
    has_program("bin/gcc", "echo 'gcc (Debian 12.2.0-14) 12.2.0'; echo 'Copyright (C) 2022'");
    has_program("bin/nvcc", "echo 'nvcc: NVIDIA (R) Cuda compiler driver'; echo 'Copyright (c)'; "
                            "echo 'Cuda compilation tools, release 12.4, V12.4.131'; echo more");
    has_program("cuda/bin/cuobjdump", "echo 'cuobjdump: release 12.4, V12.4.99'");
    kli_doctor_compilers(&d);
    assert_true(d.has_compiler);
    is("gcc", KL_DOCTOR_OK, "gcc (Debian 12.2.0-14) 12.2.0");
    is("nvcc", KL_DOCTOR_OK, "release 12.4, V12.4.131");
    is("cuobjdump", KL_DOCTOR_OK, "release 12.4, V12.4.99"); /* where CUDA installs itself */
}

static void test_doctor_compilers__what_does_not_run_is_missing(void **state) {
    (void)state;
    has_program("bin/clang", "exit 1");
    has_program("bin/gcc", "exit 0"); /* says nothing */
    kli_doctor_compilers(&d);
    assert_false(d.has_compiler);
    assert_int_equal(row_called("clang")->state, KL_DOCTOR_MISSING);
    assert_contains(row_called("clang")->found.ptr, "/bin/clang does not run");
    assert_contains(row_called("gcc")->found.ptr, "/bin/gcc does not run");
}

/* ---- libraries ---------------------------------------------------------------------------- */

static void test_doctor_libraries__are_read_from_the_loader_cache(void **state) {
    (void)state;
    d.loader_cache = KL_S("3 libs found in cache\n"
                          "\tmylibopenblas.so (libc6,x86-64) => /wrong/mylibopenblas.so\n"
                          "\tlibopenblas.so.0 (libc6,x86-64) => /usr/lib/libopenblas.so.0\n"
                          "\tlibdnnl.so.2 (libc6,x86-64) => /usr/lib/libdnnl.so.2");
    kli_doctor_libraries(&d);
    is("OpenBLAS", KL_DOCTOR_OK, "/usr/lib/libopenblas.so.0");
    is("oneDNN", KL_DOCTOR_OK, "/usr/lib/libdnnl.so.2"); /* the last line has no end */
}

static void test_doctor_libraries__are_looked_for_in_folders_too(void **state) {
    (void)state;
    assert_ok(kli_fs_mkdirs(kit_path("lib"), &e));
    assert_ok(kli_fs_mkdirs(kit_path("cuda/lib64"), &e));
    const char *blas = kit_write("lib/libopenblas.so.0", ""),
               *dnn = kit_write("cuda/lib64/libcudnn.so.9", "");
    const kl_str folders = kl_arena_printf(arena, "/nowhere:%s", kit_path("lib"));
    setenv("LD_LIBRARY_PATH", folders.ptr, 1);
    kli_doctor_libraries(&d);
    is("OpenBLAS", KL_DOCTOR_OK, blas);
    is("cuDNN", KL_DOCTOR_OK, dnn);
}

/* KLINEAGE_PYTHON is asked instead of the one on PATH. */
static void test_doctor_libraries__torch_is_that_of_the_chosen_python(void **state) {
    (void)state;
    has_program("bin/python3", "test \"$1\" = --version && echo 'Python 3.11.2'");
    kli_doctor_libraries(&d);
    is("python3", KL_DOCTOR_OK, "Python 3.11.2");
    is("torch", KL_DOCTOR_MISSING, "not found");
    has_program("venv/python", "echo 2.4.1");
    setenv("KLINEAGE_PYTHON", kit_path("venv/python"), 1);
    d.n_rows = 0;
    kli_doctor_libraries(&d);
    is("torch", KL_DOCTOR_OK, "2.4.1");
}

/* ---- machine ------------------------------------------------------------------------------ */

static void test_doctor_machine__counts_the_cores_that_may_be_used(void **state) {
    cpu_set_t all, one;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    size_t first = 0;
    while (!CPU_ISSET(first, &all)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    kli_doctor_machine(&d);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    is("cores", KL_DOCTOR_WEAK, "1 usable");
    is("pinning", KL_DOCTOR_OK, "yes");
    for (int i = 0; i < d.n_rows; i++) /* noise is not measured where nothing can be judged */
        assert_string_not_equal(d.rows[i].name, "quiet");
}

static void test_doctor_environment__names_what_cripples_a_baseline(void **state) {
    (void)state;
    unsetenv("OPENBLAS_CORETYPE");
    unsetenv("BLIS_ARCH_TYPE");
    kli_doctor_environment(&d);
    assert_int_equal(d.n_rows, 0);
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    kli_doctor_environment(&d);
    unsetenv("OPENBLAS_CORETYPE");
    assert_int_equal(d.n_rows, 1);
    is("OPENBLAS_CORETYPE", KL_DOCTOR_WEAK, "Prescott; the gate clears it for baselines");
}

static void test_doctor_sandbox__says_what_the_probe_says(void **state) {
    (void)state;
    kli_doctor_sandbox(&d);
    const struct {
        const char *name;
        bool has;
    } rows[] = {{"seccomp", d.isolation.seccomp},
                {"landlock", d.isolation.landlock},
                {"namespaces", d.isolation.namespaces},
                {"user switch", d.isolation.user_switch},
                {"limits", d.isolation.rlimits}};
    assert_int_equal(d.n_rows, KL_COUNT(rows));
    for (size_t i = 0; i < KL_COUNT(rows); i++)
        is(rows[i].name, rows[i].has ? KL_DOCTOR_OK : KL_DOCTOR_WEAK,
           rows[i].has ? NULL : "not available");
}

/* ---- the command -------------------------------------------------------------------------- */

/* Without a compiler nothing can be judged, and every row that is not well says how to mend it. */
static void test_doctor__says_no_where_nothing_can_be_compiled(void **state) {
    (void)state;
    assert_ok(ASK(DOCTOR, NULL));
    assert_int_equal(answer.exit_code, 1);
    assert_false(kli_json_bool_or(json, "works", true));
    for (size_t i = 0; i < count_of("rows"); i++) {
        const json_t *row = row_of("rows", i);
        assert_int_equal(json_is_null(json_object_get(row, "mend")),
                         kl_str_eq(said(row, "state"), KL_S("ok")));
        assert_contains(text, kl_arena_copy(arena, said(row, "name")).ptr);
    }
    assert_contains(text, "\n  missing gcc           not found\n          -> apt-get install");
    const json_t *surfaces = json_object_get(json, "surfaces");
    for (int i = 0; kl_surface_each(i); i++)
        assert_non_null(json_object_get(surfaces, kl_surface_name(kl_surface_each(i))));
    assert_true(json_is_null(json_object_get(surfaces, "c")));
    assert_contains(text, "\nkernels that this machine can judge\n  no   c ");
    assert_contains(text, "\n  no   tilelang");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_doctor_compilers__without_any_there_is_none),
        TEST(test_doctor_compilers__their_versions_are_one_line),
        TEST(test_doctor_compilers__what_does_not_run_is_missing),
        TEST(test_doctor_libraries__are_read_from_the_loader_cache),
        TEST(test_doctor_libraries__are_looked_for_in_folders_too),
        TEST(test_doctor_libraries__torch_is_that_of_the_chosen_python),
        TEST(test_doctor_machine__counts_the_cores_that_may_be_used),
        TEST(test_doctor_environment__names_what_cripples_a_baseline),
        TEST(test_doctor_sandbox__says_what_the_probe_says),
        TEST(test_doctor__says_no_where_nothing_can_be_compiled),
    };
    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
