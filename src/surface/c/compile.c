/* compile.c - C to a shared object, in two commands: the object, whose making is looked at, and the
 * library. SPDX-License-Identifier: Apache-2.0 */
#include "made.h"

#include "backend/cc.h"
#include "backend/listing.h"
#include "base/fs.h"

#include <string.h>

#define REMARKS "remarks.txt"
#define MAX_REMARKS ((size_t)16 << 20)

static bool c_compile_has_flag(const kl_kernel *k, const char *prefix) {
    for (int i = 0; i < k->n_flags; i++)
        if (kl_str_starts(k->flags[i], kl_str_of(prefix))) return true;
    return false;
}

/* The compiler and the assembler say which files they opened; an assembler inside the compiler
 * could not. */
static void add_object(kli_command *c) {
    static const char *const WORDS[] = {"-fPIC",
                                        "-fno-ident",
                                        "-MD",
                                        "-MF",
                                        KLI_HEADER_LIST,
                                        ("-Wa,--MD," KLI_ASSEMBLER_LIST),
                                        "-c",
                                        "-o",
                                        KLI_OBJECT_NAME,
                                        "kernel.c",
                                        NULL};
    static const char *const CLANG[] = {"-fno-integrated-as", "-Rpass=loop-vectorize",
                                        "-Rpass-analysis=loop-vectorize", NULL};
    static const char *const GCC[] = {"-fopt-info-vec-optimized-missed=" REMARKS, NULL};
    kli_command_add_all(c, WORDS);
    kli_command_add_all(c, strstr(kli_cc(), "clang") ? CLANG : GCC);
}

/* gcc says it in a file of its own, clang beside its warnings. */
static kl_str remarks_of(kl_arena *a, const char *dir, kl_str log) {
    kl_str said;
    const bool apart =
        kli_fs_read(&said, a, kli_fs_join(a, dir, REMARKS).ptr, MAX_REMARKS, kl_ignored()) == KL_OK;
    return kli_listing_remarks(a, apart ? said : log);
}

/* Defaults first, then what the kernel asks for. */
static void add_kernel_flags(kli_command *c, kl_arena *a, const kl_kernel *k) {
    if (!c_compile_has_flag(k, "-std=")) kli_command_add(c, "-std=gnu17");
    if (!c_compile_has_flag(k, "-O")) kli_command_add(c, "-O3");
    if (!c_compile_has_flag(k, "-march=") && !c_compile_has_flag(k, "-mcpu="))
        kli_command_add(c, "-march=native");
    for (int i = 0; i < k->n_flags; i++) kli_command_add(c, kl_arena_copy(a, k->flags[i]).ptr);
    if (k->threads.text.len && !c_compile_has_flag(k, "-fopenmp")) kli_command_add(c, "-fopenmp");
}

/* The same, then what it may not change. */
static kli_command kernel_command(const kl_compile_job *job) {
    kli_command c = {0};
    kli_command_add(&c, kli_cc());
    add_kernel_flags(&c, job->arena, job->kernel);
    kli_command_add_all(&c, job->defines);
    kli_command_add(&c, "-fno-stack-protector");
    return c;
}

const char *const *kli_c_build_flags(kl_arena *a, const kl_kernel *k) {
    kli_command *c = KL_NEW(a, kli_command);
    add_kernel_flags(c, a, k);
    kli_command_add(c, "-fno-stack-protector");
    return c->words;
}

kl_err kli_c_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e) {
    kli_command object = kernel_command(job), shared = object;
    kl_arena *a = job->arena;
    add_object(&object);
    kli_cc_link(&shared, KLI_OBJECT_NAME);
    KL_ASSERT(job->dir && job->kernel && !out->path.len);
    out->kind = KL_ARTEFACT_SHARED_OBJECT;
    kl_err code = kli_fs_write(kli_fs_join(a, job->dir, "kernel.c").ptr, job->kernel->source, e);
    if (!code) code = kli_cc_run(out, a, &object, KLI_OBJECT_NAME, job->dir, e);
    if (code || !out->ok) return code;
    out->remarks = remarks_of(a, job->dir, out->log);
    return kli_cc_run(out, a, &shared, KLI_CC_SHARED, job->dir, e);
}
