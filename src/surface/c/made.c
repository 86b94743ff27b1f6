/* made.c - what a C kernel was made of: the files that its compilation read, and the object before
 * it was linked.
 *
 *   kernel.d      written by the compiler: every file that it included
 *   kernel.as.d   written by the assembler: every file that .include and .incbin opened, whatever
 * macro spelled them kernel.o      its sections: names that belong to linker and loader are not for
 * a source to fill
 *
 * A kernel is its own text and the system's headers; other bytes of this host (a vendor's library,
 * a file somebody could read) are no part of it.  What was linked in besides (libgcc's processor
 * model) is not in kernel.o, which tells the author's constructors from others'. Not here: what the
 * linked object holds (inspect.c, backend/image.c).  SPDX-License-Identifier: Apache-2.0 */
#include "made.h"
#include "base/fs.h"
#include "backend/elf.h"
#include <stdlib.h>
#include <string.h>

#define MAX_LIST_BYTES ((size_t)4 << 20)
#define MADE_MAX_OBJECT_BYTES ((size_t)1 << 30)

/* ---- files that were read ---------------------------------------------------------------- */

/* The next name of a make rule; spaces within names are escaped.  False at the end. */
static bool next_name(kl_str *rest, char *name, size_t room) {
    size_t i = 0, n = 0;
    KL_ASSERT(room > 1);
    while (i < rest->len &&
           (strchr(" \t\n", rest->ptr[i]) ||
            (rest->ptr[i] == '\\' && i + 1 < rest->len && rest->ptr[i + 1] == '\n')))
        i++;
    for (; i < rest->len && !strchr(" \t\n", rest->ptr[i]) && n + 1 < room; i++) {
        if (rest->ptr[i] == '\\' && i + 1 < rest->len && rest->ptr[i + 1] == '\n') break;
        if (rest->ptr[i] == '\\' && i + 1 < rest->len && strchr(" #\\", rest->ptr[i + 1])) i++;
        name[n++] = rest->ptr[i];
    }
    KL_ASSERT(n < room && i <= rest->len);
    name[n] = '\0';
    *rest = (kl_str){rest->ptr + i, rest->len - i};
    return n > 0;
}

/* Below a folder called include, wherever the compiler is installed, after links and dots are
 * followed. */
static bool is_system_header(const char *name) {
    char *real = realpath(name, NULL);
    bool ok = real && (strstr(real, "/include/") || strstr(real, "/include-fixed/"));
    free(real);
    return ok;
}

static bool is_own(const char *name, kl_str dir) {
    return !strchr(name, '/') ||
           (strncmp(name, dir.ptr, dir.len) == 0 && name[dir.len] == '/' && !strstr(name, ".."));
}

/* The first file that is not part of the kernel; empty when there is none.  A list that is missing
 * tells nothing: its own name. */
static kl_str foreign_file(kl_arena *a, kl_str dir, const char *list, bool headers) {
    kl_str text;
    char name[4096];
    if (kli_fs_read(&text, a, kli_fs_join(a, dir.ptr, list).ptr, MAX_LIST_BYTES, kl_ignored()))
        return kl_str_of(list);
    const char *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
    if (!colon) return kl_str_of(list);
    kl_str rest = {colon + 1, text.len - (size_t)(colon + 1 - text.ptr)};
    while (next_name(&rest, name, sizeof name))
        if (!is_own(name, dir) && !(headers && is_system_header(name)))
            return kl_arena_copy(a, kl_str_of(name));
    return (kl_str){0};
}

static void check_files(kl_artefact *out, kl_arena *a, kl_str dir) {
    kl_str header = foreign_file(a, dir, KLI_HEADER_LIST, true),
           data = foreign_file(a, dir, KLI_ASSEMBLER_LIST, false);
    if (header.len)
        out->suspicious =
            kl_arena_printf(a, "it includes %.100s, which is no header of the system", header.ptr);
    if (data.len)
        out->suspicious =
            kl_arena_printf(a, "its assembler code takes in the file %.100s", data.ptr);
}

/* ---- the object before the linker -------------------------------------------------------- */

static bool made_begins_with_any(const char *name, const char *const *prefixes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

static void check_symbol(kl_artefact *out, kl_arena *a, const char *name) {
    static const char *const INSTRUMENTED[] = {"__cyg_profile_", "__gcov",  "__sanitizer_",
                                               "__asan",         "__tsan",  "__ubsan",
                                               "mcount",         "_mcount", "__fentry__"};
    if (made_begins_with_any(name, INSTRUMENTED, KL_COUNT(INSTRUMENTED)))
        out->suspicious = kl_arena_printf(a, "it is instrumented: it holds %.60s", name);
    if (strcmp(name, "__cpu_model") == 0 || strcmp(name, "__cpu_indicator_init") == 0)
        out->refused = KL_S("it asks at run time which processor this is (__builtin_cpu_supports, "
                            "target_clones); a kernel is compiled for the "
                            "machine that it runs on: ask the preprocessor (#ifdef __AVX2__) and "
                            "write one version");
}

static void check_object(kl_artefact *out, kl_arena *a, const kli_elf_object *o) {
    for (size_t i = 0; i < o->n_symbols; i++) check_symbol(out, a, o->symbols[i]);
    if (o->reserved)
        out->suspicious = kl_arena_printf(
            a, "it fills the section %.60s, which belongs to linker and loader", o->reserved);
    if (o->initialisers)
        out->suspicious = KL_S("it has code that runs when it is loaded or unloaded");
    if (o->executable_stack && !out->refused.len)
        out->refused = KL_S("it needs a stack that can be executed (a pointer to a nested function "
                            "does): give that function file scope");
}

kl_err kli_inspect_making(kl_artefact *out, kl_arena *a, kl_error *e) {
    const kl_str dir = kli_fs_dirname(a, out->path.ptr);
    kl_str bytes;
    kli_elf_object object;
    kl_err code = kli_fs_read(&bytes, a, kli_fs_join(a, dir.ptr, KLI_OBJECT_NAME).ptr,
                              MADE_MAX_OBJECT_BYTES, e);
    if (!code) code = kli_elf_read_object(&object, a, bytes, e);
    if (code) return code;
    check_object(out, a, &object);
    if (!out->suspicious.len) check_files(out, a, dir);
    return KL_OK;
}
