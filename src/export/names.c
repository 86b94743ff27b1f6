/* names.c - what tensors, axes and entry points are called in the code of others.
 *
 * Names of a task may be any text and names of a kernel may be those of a library, so parameters
 * step aside of the words of C and C++, and a kernel's entry carries the name of the export.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include <string.h>

// clang-format off
static const char *const EXPORT_TAKEN[] = {
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class",
    "const", "constexpr", "continue", "default", "delete", "do", "double", "else", "enum", "except",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
    "int", "long", "mutable", "namespace", "new", "not", "nullptr", "operator", "or", "private",
    "protected", "public", "register", "requires", "restrict", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "template", "this", "throw", "true", "try", "typedef",
    "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "while", "xor",
    "def", "del", "elif", "from", "global", "import", "in", "is", "lambda", "pass", "raise", "with",
    "yield", "None", "True", "False", "async", "await", "assert", "finally", "nonlocal", "as",
    "torch", "linux", "unix", "workspace", "workspace_bytes", "stream", "module", "fallback",
    "p", "code", "scratch", "main"};
// clang-format on

static bool is_taken_name(kl_str name) {
    for (size_t i = 0; i < KL_COUNT(EXPORT_TAKEN); i++)
        if (kl_str_eq(name, kl_str_of(EXPORT_TAKEN[i]))) return true;
    return false;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool kli_export_is_name(const char *name) {
    if (!is_letter(name[0]) || strlen(name) >= KL_MAX_NAME) return false;
    for (const char *c = name; *c; c++)
        if (!is_letter(*c) && !(*c >= '0' && *c <= '9')) return false;
    return !is_taken_name(kl_str_of(name));
}

kl_str kli_export_name(kl_arena *a, kl_str name) {
    const bool moves = !name.len || !is_letter(name.ptr[0]) || is_taken_name(name);
    char *out = KL_ARRAY(a, char, name.len + 3);
    size_t n = 0;
    if (moves) out[n++] = 'x', out[n++] = '_';
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.ptr[i];
        out[n++] = is_letter(c) || (c >= '0' && c <= '9') ? c : '_';
    }
    return (kl_str){out, n};
}

/* "batched_gemm", whatever a data set calls it. */
kl_str kli_export_default_name(kl_arena *a, const kl_task *t) {
    kl_str name = kli_export_name(a, t->name);
    if (name.len >= KL_MAX_NAME) name.len = KL_MAX_NAME - 1;
    return kl_arena_copy(a, name);
}

kl_str kli_export_upper(kl_arena *a, const char *name) {
    kl_str out = kl_arena_copy(a, kl_str_of(name));
    char *text = KL_ARRAY(a, char, out.len + 1);
    for (size_t i = 0; i < out.len; i++)
        text[i] = out.ptr[i] >= 'a' && out.ptr[i] <= 'z' ? (char)(out.ptr[i] - 32) : out.ptr[i];
    return (kl_str){text, out.len};
}

kl_str kli_entry_name(const kli_export *x, kl_str entry) {
    return kl_arena_printf(x->arena, "%s_entry_%.*s", x->name, KL_STR_ARG(entry));
}

bool kli_is_device_code(const kli_export *x) {
    return (x->kernel->surface->families & KL_FAMILY_NVIDIA) != 0;
}
