/* cc.c - the C compiler of this host: shared objects that run nothing by themselves, and plugins.
 *
 * No start files, so no constructors of the C runtime; every symbol bound at load time, so that no
 * first call pays for it; and relocated data read-only afterwards.  The compiler works in its
 * private folder under fixed names, so the same source gives the same bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cc.h"
#include "plugin_header.h"
#include "base/fs.h"
#include <stdlib.h>

const char *kli_cc(void) {
    const char *cc = getenv("KLINEAGE_CC");
    return cc && *cc ? cc : "gcc";
}

void kli_cc_link(kli_command *c, const char *from) {
    static const char *const WORDS[] = {"-fPIC",
                                        "-shared",
                                        "-nostartfiles",
                                        "-fno-ident",
                                        "-Wl,-z,now,-z,relro,-z,defs,-z,noexecstack",
                                        "-Wl,--build-id=none,--as-needed,--hash-style=sysv",
                                        "-o",
                                        KLI_CC_SHARED,
                                        NULL};
    kli_command_add_all(c, WORDS);
    kli_command_add(c, from);
    kli_command_add(c, "-lm");
}

kl_err kli_cc_run(kl_artefact *out, kl_arena *a, const kli_command *c, const char *makes,
                  const char *dir, kl_error *e) {
    kli_proc_result r;
    const kl_str warned = out->log;
    kl_err code = kli_compile_run(&r, a, c->words, dir, NULL, 0, e);
    if (code) return code;
    kli_compile_took(out, a, &r, dir, makes);
    if (out->ok && !out->log.len) out->log = warned;
    return KL_OK;
}

/* Plugins include one header of ours, which travels inside this program. */
kl_err kli_plugin_compile(kl_artefact *out, kl_arena *a, kl_str source, const char *dir,
                          kl_error *e) {
    static const char *const WORDS[] = {"-std=gnu17", "-O2", "-I.", NULL};
    kli_command c = {0};
    kli_command_add(&c, kli_cc());
    kli_command_add_all(&c, WORDS);
    kli_cc_link(&c, "kernel.c");
    kl_str folder = kli_fs_join(a, dir, "klineage");
    kl_err code = kli_fs_mkdirs(folder.ptr, e);
    if (!code)
        code = kli_fs_write(kli_fs_join(a, folder.ptr, "plugin.h").ptr,
                            kl_str_of(KLI_PLUGIN_HEADER), e);
    out->kind = KL_ARTEFACT_PLUGIN;
    if (!code) code = kli_fs_write(kli_fs_join(a, dir, "kernel.c").ptr, source, e);
    return code ? code : kli_cc_run(out, a, &c, KLI_CC_SHARED, dir, e);
}
