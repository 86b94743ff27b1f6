/* inspect.c - what an OpenCL program binary contains.
 *
 * A program binary of PoCL carries the host code of every kernel as a shared object.  They are
 * found by their magic number and read like any other object: instructions for the features,
 * writable data because it would be state between launches (program scope variables of OpenCL 2.0),
 * symbols and instructions that no kernel needs because inline assembly can ask for anything. A
 * binary without such an object (another driver) has no features, and says so. Not here: LLVM
 * bitcode.  SPDX-License-Identifier: Apache-2.0 */
#include "opencl.h"
#include "backend/elf.h"
#include "base/fs.h"
#include <string.h>

#define STATE_BYTES 16 /* what PoCL's own support code keeps at most */

static void inspect_check(kl_artefact *out, kl_arena *a, const kli_elf *f) {
    if (f->initialisers || f->ifuncs)
        out->suspicious = KL_S("it has code that runs when it is loaded");
    if (f->data_bytes + f->bss_bytes > STATE_BYTES + f->linkage_bytes)
        out->suspicious = KL_S("it keeps variables between launches (program scope)");
    for (size_t i = 0; i < f->n_symbols && !out->suspicious.len; i++) {
        const char *name = f->symbols[i].name;
        bool own = strncmp(name, "_cl_", 4) == 0 || strncmp(name, "pocl", 4) == 0 ||
                   strncmp(name, "__pocl", 6) == 0;
        if (!f->symbols[i].defined && !own && !kli_symbol_is_harmless(name))
            out->suspicious =
                kl_arena_printf(a, "it calls %.60s, which a kernel has no business with", name);
    }
}

static kl_err take_object(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_str object,
                          const char **name, int number, kl_error *e) {
    kli_elf f;
    if (kli_elf_read(&f, a, object, kl_ignored()) != KL_OK)
        return KL_OK; /* these four bytes were something else */
    if (!k->trusted) inspect_check(out, a, &f);
    kli_feature_set(out, a, "text_bytes",
                    kli_feature_get(out, "text_bytes") + (double)f.text_bytes);
    kli_feature_set(out, a, "static_bytes",
                    kli_feature_get(out, "static_bytes") + (double)(f.data_bytes + f.bss_bytes));
    *name = kl_arena_printf(a, "object%d.so", number).ptr;
    return kli_fs_write(kli_fs_join(a, kli_fs_dirname(a, out->path.ptr).ptr, *name).ptr, object, e);
}

kl_err kli_opencl_inspect(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e) {
    kl_str bytes;
    const char *names[KLI_MAX_OBJECTS + 1] = {0};
    int n = 0;
    kl_err code = kli_fs_read(&bytes, a, out->path.ptr, (size_t)1 << 30, e);
    for (kl_str rest = bytes; !code && rest.len && n < KLI_MAX_OBJECTS;) {
        const char *magic = memmem(rest.ptr, rest.len, "\177ELF", 4);
        if (!magic) break;
        rest = (kl_str){magic, rest.len - (size_t)(magic - rest.ptr)};
        code = take_object(out, a, k, rest, &names[n], n, e);
        n += names[n] != NULL;
        rest.ptr += 4;
        rest.len -= 4;
    }
    KL_ASSERT(n <= KLI_MAX_OBJECTS && !names[n]);
    kli_feature_set(out, a, "kernels", n);
    if (code || !n || k->trusted || out->suspicious.len) return code;
    return kli_inspect_code(out, a, names, e);
}
