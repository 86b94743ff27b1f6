/* inspect_test.c - what is read from compiled CUDA and OpenCL: from cubins with names and no code,
 * from listings that compilers wrote, and from objects of this machine's own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/backend.h"
#include "base/fs.h"
#include "base/proc.h"
#include "device/fake_cubin.h"
#include "kit/kit.h"
#include "surface/c/made.h"
#include "surface/cuda/cuda.h"
#include "surface/opencl/opencl.h"
#include <sys/stat.h>

static kl_kernel kernel;
static kl_artefact artefact;
static const char *path_before;

/* No disassembler but the one that a test makes. */
static int set_up(void **state) {
    kit_set_up(state);
    kernel = (kl_kernel){0};
    artefact = (kl_artefact){.ok = true};
    if (!path_before) path_before = strdup(getenv("PATH"));
    assert_ok(kli_fs_mkdirs(kit_path("toolkit/bin"), &e));
    setenv("CUDA_HOME", kit_path("toolkit"), 1);
    setenv("PATH", kit_folder(), 1);
    return 0;
}

static int tear_down(void **state) {
    setenv("PATH", path_before, 1);
    return kit_tear_down(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int feature(const char *name) { return (int)kli_feature_get(&artefact, name); }

static bool has_feature(const char *name) {
    for (int i = 0; i < artefact.n_features; i++)
        if (kl_str_eq(artefact.features[i].name, kl_str_of(name))) return true;
    return false;
}

/* ---- CUDA --------------------------------------------------------------------------------- */

static void cubin_of(const char *const *kernels, const char *variable) {
    fake_cubin c;
    fake_cubin_make(&c, kernels, variable);
    fake_cubin_write(&c, kit_path("kernel.cubin"));
    artefact.path = kl_str_of(kit_path("kernel.cubin"));
}

static void inspect_cuda(const char *log) {
    artefact.log = kl_str_of(log);
    assert_ok(kli_cuda_inspect(&artefact, arena, &kernel, &e));
    assert_false(has_feature("disassembled")); /* whoever decides does not wait for it */
    assert_ok(kli_cuda_describe(&artefact, arena, &kernel, &e));
}

static const char *const TWO[] = {"f", "g", NULL};

static void test_cuda_inspect__counts_kernels_and_what_outlives_a_launch(void **state) {
    (void)state;
    cubin_of(TWO, "state");
    inspect_cuda("");
    assert_int_equal(feature("kernels"), 2);
    assert_int_equal(feature("text_bytes"), 2 * 128);
    assert_int_equal(feature("variables"), 1);
    assert_int_equal(feature("static_bytes"), 4);
    assert_int_equal(artefact.suspicious.len, 0);
}

/* What is always told is 0, and not absent, where the compiler said nothing. */
static void test_cuda_inspect__what_was_not_said_is_zero(void **state) {
    static const char *const ALWAYS[] = {"registers",         "spill_bytes",  "stack_bytes",
                                         "static_smem_bytes", "instructions", "disassembled"};
    (void)state;
    cubin_of(TWO, NULL);
    inspect_cuda("");
    for (size_t i = 0; i < KL_COUNT(ALWAYS); i++) {
        assert_true(has_feature(ALWAYS[i]));
        assert_int_equal(feature(ALWAYS[i]), 0);
    }
    assert_false(has_feature("variables"));
    assert_false(has_feature("prints"));
}

/* The largest of all kernels, as ptxas reports them one after the other. */
static void test_cuda_inspect__reads_the_report_of_the_assembler(void **state) {
    (void)state;
    cubin_of(TWO, NULL);
    inspect_cuda("ptxas info    : 0 bytes gmem\n"
                 "ptxas info    : Compiling entry function 'f' for 'sm_90a'\n"
                 "ptxas info    : Function properties for f\n"
                 "    8 bytes stack frame, 24 bytes spill stores, 16 bytes spill loads\n"
                 "ptxas info    : Used 24 registers, used 1 barriers, 4096 bytes smem\n"
                 "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                 "ptxas info    : Used 168 registers, 128 bytes smem, 400 bytes cmem[0]\n"
                 "registers bytes smem: no number stands before these\n");
    assert_int_equal(feature("registers"), 168);
    assert_int_equal(feature("spill_bytes"), 40);
    assert_int_equal(feature("stack_bytes"), 8);
    assert_int_equal(feature("static_smem_bytes"), 4096);
}

static void test_cuda_inspect__counts_instructions_of_ptx(void **state) {
    static const char PTX[] =
        ".version 8.4\n.target sm_90a\n.visible .entry f()\n{\n"
        "    .reg .pred %p<2>;\n"
        "    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\n"
        "    cp.async.cg.shared.global [%r1], [%rd2], 16;\n"
        "    cp.async.commit_group;\n"
        "    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier.multicast::cluster "
        "[%r2];\n"
        "    wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%f1};\n"
        "    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1};\n"
        "LOOP:\n"
        "    fma.rn.f32 %f1, %f2, %f3, %f1;\n"
        "    bar.sync 0;\n"
        "    @%p1 bra LOOP;\n"
        "    mov.u64 %rd3, %clock64;\n"
        "    atom.global.add.f32 %f5, [%rd1], %f1;\n"
        "    ret;\n}\n";
    (void)state;
    cubin_of(TWO, NULL);
    kit_write("kernel.ptx", PTX);
    inspect_cuda("");
    assert_int_equal(feature("disassembled"), 0);
    assert_int_equal(feature("instructions"), 12); /* neither labels nor directives */
    assert_int_equal(feature("vector128"), 1);
    assert_int_equal(feature("cp_async"), 1); /* its commit is none */
    assert_int_equal(feature("tma"), 1);
    assert_int_equal(feature("tma_multicast"), 1);
    assert_int_equal(feature("wgmma"), 1);
    assert_int_equal(feature("mma_sync"), 1);
    assert_int_equal(feature("fma"), 1);
    assert_int_equal(feature("barriers"), 1);
    assert_int_equal(feature("branches"), 1); /* behind a guard */
    assert_int_equal(feature("clocks"), 1);
    assert_int_equal(feature("atomics"), 1);
    assert_int_equal(feature("shuffles"), 0);
}

/* A disassembly as the toolkit's program writes it wins over the PTX. */
static void test_cuda_inspect__counts_instructions_of_machine_code(void **state) {
    static const char PROGRAM[] =
        "#!/bin/sh\ntest \"$1 $2\" = '-sass kernel.cubin' || exit 3\n/bin/cat <<'END'\n"
        "\tcode for sm_90a\n\t\tFunction : f\n"
        "        /*0000*/                   LDC R1, c[0x0][0x28] ;   /* 0x00000a00ff017b82 */\n"
        "        /*0010*/                   LDG.E.128 R4, [R2] ;     /* 0x0000000402047981 */\n"
        "                                                            /* 0x000fe200000e0f00 */\n"
        "        /*0020*/              @!P0 FFMA R4, R5, R6, R4 ;    /* 0x0000000605047223 */\n"
        "        /*0030*/                   HGMMA.64x128x16.F32 R24, gdesc[UR4] ; /* 0x1 */\n"
        "        /*0040*/                   UTMALDG.2D.MULTICAST [UR8], [UR4] ; /* 0x2 */\n"
        "        /*0050*/                   CS2R R6, SR_CLOCKLO ;    /* 0x0000000000067805 */\n"
        "        /*0060*/              @P1  BRA 0x10 ;               /* 0xfffffffc00fc7947 */\n"
        "END\n";
    (void)state;
    cubin_of(TWO, NULL);
    kit_write("kernel.ptx", "    bar.sync 0;\n");
    assert_int_equal(chmod(kit_write("toolkit/bin/cuobjdump", PROGRAM), 0755), 0);
    inspect_cuda("");
    if (!feature("disassembled")) skip(); /* no jail in which a program could read that folder */
    assert_int_equal(feature("instructions"), 7);
    assert_int_equal(feature("vector128"), 1);
    assert_int_equal(feature("fma"), 1);
    assert_int_equal(feature("wgmma"), 1);
    assert_int_equal(feature("tma"), 1);
    assert_int_equal(feature("tma_multicast"), 1);
    assert_int_equal(feature("clocks"), 1);
    assert_int_equal(feature("branches"), 1);
    assert_int_equal(feature("barriers"), 0);
}

static bool at_once(void *ctx) { return (void)ctx, true; }

/* Then nobody knows whether there is one, and the next who asks looks. */
static void test_cuda_describe__an_interrupted_disassembler_is_none_that_failed(void **state) {
    const kl_monitor stop = {.cancelled = at_once};
    (void)state;
    cubin_of(TWO, NULL);
    assert_int_equal(chmod(kit_write("toolkit/bin/cuobjdump", "#!/bin/sh\n"), 0755), 0);
    const kl_monitor *before = kl_monitor_use(&stop);
    assert_err(KL_EINTR, kli_cuda_describe(&artefact, arena, &kernel, &e));
    (void)kl_monitor_use(before);
    assert_false(has_feature("disassembled"));
}

static void test_cuda_inspect__wants_a_cubin(void **state) {
    (void)state;
    artefact.path = kl_str_of(kit_write("kernel.cubin", "not one"));
    assert_err(KL_EIO, kli_cuda_inspect(&artefact, arena, &kernel, &e));
    assert_contains(e.message, "is not a cubin");
    artefact.path = kl_str_of(kit_path("none.cubin"));
    assert_err(KL_ENOENT, kli_cuda_inspect(&artefact, arena, &kernel, &e));
}

/* ---- OpenCL ------------------------------------------------------------------------------- */

/* A program binary of PoCL: an object of this machine between bytes of another kind. */
static void binary_of(const char *source) {
    const char *const argv[] = {"gcc",
                                "-shared",
                                "-nostdlib",
                                "-fPIC",
                                "-O1",
                                "-w",
                                "-o",
                                kit_path("k.so"),
                                kit_write("k.c", source),
                                NULL};
    kli_proc_result r;
    kl_str object;
    kl_buf b = {0};
    setenv("PATH", path_before, 1); /* objdump is needed too */
    const kl_err err = kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv}, &e);
    if (err == KL_ENOENT) skip();
    assert_ok(err);
    if (r.exit_code) fail_msg("%s", r.err.ptr);
    assert_ok(kli_fs_read(&object, arena, kit_path("k.so"), 1 << 24, &e));
    kl_buf_add(&b, KL_S("poclbin\0\0\177ELF are four bytes of something else "));
    kl_buf_add(&b, object);
    kl_buf_add(&b, KL_S(" the end"));
    assert_ok(kli_fs_write(kit_path("kernel.bin"), kl_buf_str(&b), &e));
    kl_buf_fini(&b);
    artefact.path = kl_str_of(kit_path("kernel.bin"));
    artefact.suspicious = (kl_str){0};
    artefact.n_features = 0;
    assert_ok(kli_opencl_inspect(&artefact, arena, &kernel, &e));
}

#define SCALE "void scale(float *y, int n) { for (int i = 0; i < n; i++) y[i] *= 2; }\n"

static void test_opencl_inspect__finds_the_objects_in_a_binary(void **state) {
    (void)state;
    binary_of(SCALE);
    assert_int_equal(feature("kernels"), 1);
    assert_true(feature("text_bytes") > 0);
    if (artefact.suspicious.len) fail_msg("%s", artefact.suspicious.ptr);
}

static void test_opencl_inspect__names_what_must_not_be_there(void **state) {
    static const struct {
        const char *source, *why;
    } ROWS[] = {
        {SCALE "int kept[100]; int next(void) { return kept[7]++; }\n",
         "keeps variables between launches"},
        {SCALE "long write(int, const void *, long);\n"
               "void tell(void) { write(1, \"x\", 1); }\n",
         "it calls write"},
        {SCALE "__attribute__((constructor)) void early(void) {}\n", "runs when it is loaded"}};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        binary_of(ROWS[i].source);
        assert_contains(artefact.suspicious.len ? artefact.suspicious.ptr : "(clean)", ROWS[i].why);
        kernel.trusted = true; /* an oracle may */
        binary_of(ROWS[i].source);
        assert_int_equal(artefact.suspicious.len, 0);
        kernel.trusted = false;
    }
}

/* The binary of another driver holds no object, and so no features. */
static void test_opencl_inspect__a_binary_without_objects_says_so(void **state) {
    (void)state;
    artefact.path = kl_str_of(kit_write("kernel.bin", "bitcode"));
    assert_ok(kli_opencl_inspect(&artefact, arena, &kernel, &e));
    assert_true(has_feature("kernels"));
    assert_int_equal(feature("kernels"), 0);
    assert_int_equal(artefact.n_features, 1);
}

/* ---- C: the files that were read ---------------------------------------------------------- */

/* What is said of lists that a compiler could have written. */
static const char *made_of(const char *headers, const char *data) {
    artefact.suspicious = artefact.refused = (kl_str){0};
    if (headers) kit_write(KLI_HEADER_LIST, headers);
    if (data) kit_write(KLI_ASSEMBLER_LIST, data);
    assert_ok(kli_inspect_making(&artefact, arena, &e));
    return artefact.suspicious.len ? artefact.suspicious.ptr : "(clean)";
}

static void compile_object(void) {
    const char *const argv[] = {
        "gcc", "-c", "-o", kit_path(KLI_OBJECT_NAME), kit_write("kernel.c", SCALE), NULL};
    kli_proc_result r;
    setenv("PATH", path_before, 1);
    const kl_err err = kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv}, &e);
    if (err == KL_ENOENT) skip();
    assert_ok(err);
    assert_int_equal(r.exit_code, 0);
    artefact.path = kl_str_of(kit_path("kernel.so"));
}

static void test_c_made__of_its_own_text_and_the_systems_headers(void **state) {
    (void)state;
    compile_object();
    const kl_str own =
        kl_arena_printf(arena, "kernel.o: kernel.c \\\n %s/kernel.c /usr/include/", kit_folder());
    assert_string_equal(
        made_of(kl_arena_printf(arena, "%sstdlib.h \\\n /usr/include/features.h\n", own.ptr).ptr,
                "kernel.o: kernel.s\n"),
        "(clean)");
    assert_contains(made_of("kernel.o: kernel.c /etc/passwd\n", NULL), "includes /etc/passwd");
    assert_contains(made_of("kernel.o: kernel.c /usr/include/../../etc/passwd\n", NULL),
                    "/etc/passwd");
    const kl_str escape = kl_arena_printf(arena, "kernel.o: %s/../secret.h\n", kit_folder());
    assert_contains(made_of(escape.ptr, NULL), "secret.h");
    assert_contains(made_of("kernel.o: /tmp/a\\ b.h\n", NULL), "includes /tmp/a b.h, which");
    assert_contains(made_of("kernel.o: kernel.c\n", "kernel.o: /usr/include/stdlib.h\n"),
                    "takes in the file /usr/include/stdlib.h"); /* a header is no data */
}

/* A list that is not there, or says nothing, tells nothing good. */
static void test_c_made__a_list_must_be_there(void **state) {
    (void)state;
    compile_object();
    assert_contains(made_of("kernel.o: kernel.c\n", NULL), KLI_ASSEMBLER_LIST);
    assert_string_equal(made_of(NULL, "kernel.o: kernel.s\n"), "(clean)");
    assert_contains(made_of("", NULL), KLI_HEADER_LIST);
    assert_contains(made_of("no rule\n", NULL), KLI_HEADER_LIST);
    artefact.path = kl_str_of("/nowhere/kernel.so");
    assert_err(KL_ENOENT, kli_inspect_making(&artefact, arena, &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_cuda_inspect__counts_kernels_and_what_outlives_a_launch),
        TEST(test_cuda_inspect__what_was_not_said_is_zero),
        TEST(test_cuda_inspect__reads_the_report_of_the_assembler),
        TEST(test_cuda_inspect__counts_instructions_of_ptx),
        TEST(test_cuda_inspect__counts_instructions_of_machine_code),
        TEST(test_cuda_describe__an_interrupted_disassembler_is_none_that_failed),
        TEST(test_cuda_inspect__wants_a_cubin),
        TEST(test_opencl_inspect__finds_the_objects_in_a_binary),
        TEST(test_opencl_inspect__names_what_must_not_be_there),
        TEST(test_opencl_inspect__a_binary_without_objects_says_so),
        TEST(test_c_made__of_its_own_text_and_the_systems_headers),
        TEST(test_c_made__a_list_must_be_there),
    };
    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
