/* cpu_compile.c - C to a shared object.
 *
 * The object holds nothing that runs by itself: no start files, so no constructors of the C runtime; every symbol bound at load
 * time, so that no first call pays for it; and relocated data read-only afterwards.  The compiler works in its private folder
 * under fixed names, so the same source gives the same bytes.
 * gcc by default, KLINEAGE_CC names another.  Not here: what the object contains (cpu_inspect.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cpu_made.h"
#include "plugin_header.h"
#include "base/fs.h"
#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 512

typedef struct { const char *words[MAX_ARGUMENTS]; int n; } command;

static void add(command *c, const char *word) {
    if (c->n < MAX_ARGUMENTS - 1) c->words[c->n++] = word;
}

static const char *compiler(void) {
    const char *cc = getenv("KLINEAGE_CC");
    return cc && *cc ? cc : "gcc";
}

static bool has_flag(const kl_kernel *k, const char *prefix) {
    for (int i = 0; i < k->n_flags; i++)
        if (kl_str_starts(k->flags[i], kl_str_of(prefix))) return true;
    return false;
}

static void add_linking(command *c, const char *from) {
    static const char *const WORDS[] = {"-fPIC", "-shared", "-nostartfiles", "-fno-ident", "-Wl,-z,now,-z,relro,-z,defs,-z,noexecstack",
                                        "-Wl,--build-id=none,--as-needed,--hash-style=sysv", "-o", "kernel.so"};
    for (size_t i = 0; i < KL_COUNT(WORDS); i++) add(c, WORDS[i]);
    add(c, from);
    add(c, "-lm");
}

/* The compiler and the assembler say which files they opened; an assembler inside the compiler could not. */
static void add_object(command *c) {
    static const char *const WORDS[] = {"-fPIC", "-fno-ident", "-MD", "-MF", KLI_HEADER_LIST, ("-Wa,--MD," KLI_ASSEMBLER_LIST),
                                        "-c", "-o", KLI_OBJECT_NAME, "kernel.c"};
    for (size_t i = 0; i < KL_COUNT(WORDS); i++) add(c, WORDS[i]);
    if (strstr(compiler(), "clang")) add(c, "-fno-integrated-as");
}

/* Defaults first, then what the kernel asks for, then what it may not change. */
static void kernel_command(command *c, kl_arena *a, const kl_kernel *k, const char *const *defines) {
    add(c, compiler());
    if (!has_flag(k, "-std=")) add(c, "-std=gnu17");
    if (!has_flag(k, "-O")) add(c, "-O3");
    if (!has_flag(k, "-march=") && !has_flag(k, "-mcpu=")) add(c, "-march=native");
    for (int i = 0; i < k->n_flags; i++) add(c, kl_arena_copy(a, k->flags[i]).ptr);
    if (k->threads.text.len && !has_flag(k, "-fopenmp")) add(c, "-fopenmp");
    for (; defines && *defines; defines++) add(c, *defines);
    add(c, "-fno-stack-protector");
}

/* Run the command; take the file that it makes, or the log. */
static kl_err build(kl_artefact *out, kl_arena *a, const command *c, const char *makes, const char *dir, kl_error *e) {
    kl_proc_result r;
    kl_err         code = kli_compile_run(&r, a, c->words, dir, NULL, 0, e);
    if (code) return code;
    out->path = kl_fs_join(a, dir, makes);
    out->ok = r.exit_code == 0 && !r.timed_out && kl_fs_exists(out->path.ptr);
    kl_str log = kli_compile_log(a, &r, dir);
    if (log.len) out->log = log; /* what the compiler warned of stays when the linker is silent */
    if (!out->ok && !out->log.len) out->log = kl_arena_printf(a, "the compiler failed with status %d and no message\n", r.exit_code);
    return KL_OK;
}

kl_err kl_cpu_compile(kl_artefact *out, kl_arena *a, const kl_device *d, const kl_kernel *k, const char **defines, const char *dir,
                      const kl_compile_opts *o, kl_error *e) {
    command object = {0}, shared = {0};
    (void)d, (void)o;
    kernel_command(&object, a, k, defines);
    kernel_command(&shared, a, k, defines);
    add_object(&object);
    add_linking(&shared, KLI_OBJECT_NAME);
    out->kind = KL_ARTEFACT_SHARED_OBJECT;
    kl_err code = kl_fs_write(kl_fs_join(a, dir, "kernel.c").ptr, k->source, e);
    if (!code) code = build(out, a, &object, KLI_OBJECT_NAME, dir, e);
    return code || !out->ok ? code : build(out, a, &shared, "kernel.so", dir, e);
}

/* Plugins include one header of ours, which travels inside this program. */
kl_err kli_plugin_compile(kl_artefact *out, kl_arena *a, kl_str source, const char *dir, kl_error *e) {
    static const char *const WORDS[] = {"-std=gnu17", "-O2", "-I."};
    command                  c = {0};
    add(&c, compiler());
    for (size_t i = 0; i < KL_COUNT(WORDS); i++) add(&c, WORDS[i]);
    add_linking(&c, "kernel.c");
    kl_str folder = kl_fs_join(a, dir, "klineage");
    kl_err code = kl_fs_mkdirs(folder.ptr, e);
    if (!code) code = kl_fs_write(kl_fs_join(a, folder.ptr, "plugin.h").ptr, kl_str_of(KLI_PLUGIN_HEADER), e);
    out->kind = KL_ARTEFACT_PLUGIN;
    if (!code) code = kl_fs_write(kl_fs_join(a, dir, "kernel.c").ptr, source, e);
    return code ? code : build(out, a, &c, "kernel.so", dir, e);
}
