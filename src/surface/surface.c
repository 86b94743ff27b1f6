/* surface.c - the table of kernel languages, and what can be asked of any row.
 *
 * The rows are surfaces.def; what a surface is stands in kernel/surface.h, what one does
 * in its folder. SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel.h"

#include <string.h>

#ifndef KLI_SURFACES /* the conformance test brings a table with one row more */
#define KLI_SURFACES "surfaces.def"
#endif

#define SURFACE(name) extern const kl_surface kli_surface_##name;
#include KLI_SURFACES
#undef SURFACE

static const kl_surface *const SURFACE_ROWS[] = {
#define SURFACE(name) &kli_surface_##name,
#include KLI_SURFACES
#undef SURFACE
};
_Static_assert(KL_COUNT(SURFACE_ROWS) >= 1, "the first row serves where no other does");

const char *kl_surface_name(const kl_surface *s) { return s->name; }

const kl_surface *kl_surface_each(int i) {
    return i >= 0 && (size_t)i < KL_COUNT(SURFACE_ROWS) ? SURFACE_ROWS[i] : NULL;
}

const kl_surface *kl_surface_by_name(kl_str name) {
    for (size_t i = 0; i < KL_COUNT(SURFACE_ROWS); i++)
        if (kl_str_eq(name, kl_str_of(SURFACE_ROWS[i]->name))) return SURFACE_ROWS[i];
    return NULL;
}

const kl_surface *kl_surface_of_path(kl_str path, int i) {
    for (size_t row = 0; row < KL_COUNT(SURFACE_ROWS); row++)
        if (kl_str_ends(path, kl_str_of(SURFACE_ROWS[row]->suffix)) && i-- == 0)
            return SURFACE_ROWS[row];
    return NULL;
}

const kl_surface *kl_surface_of_host(kl_host_kind on) {
    for (size_t i = 0; i < KL_COUNT(SURFACE_ROWS); i++)
        if (SURFACE_ROWS[i]->on == on) return SURFACE_ROWS[i];
    KL_ASSERT(SURFACE_ROWS[0]->oracle); /* what others are held against */
    return SURFACE_ROWS[0];
}

/* ---- one row ----------------------------------------------------------------------------- */

static bool surface_is_listed(const char *const *list, kl_str word) {
    for (; *list; list++)
        if (kl_str_eq(word, kl_str_of(*list))) return true;
    return false;
}

static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_-.", c);
}

/* What may stand behind "-ffp-contract=" or "-mavx512": no slash, no comma, no quote. */
static bool is_plain_suffix(kl_str s) {
    for (size_t i = 0; i < s.len; i++)
        if (!s.ptr[i] || !is_plain(s.ptr[i])) return false;
    return s.len > 0 && s.len <= 24;
}

static bool flag_fits(const char *allowed, kl_str flag) {
    const size_t n = strlen(allowed);
    KL_ASSERT(n > 1 && allowed[0] == '-');
    const char last = allowed[n - 1];
    if (last != '=' && last != '*') return kl_str_eq(flag, kl_str_of(allowed));
    const kl_str stem = {allowed, last == '*' ? n - 1 : n};
    return kl_str_starts(flag, stem) &&
           is_plain_suffix((kl_str){flag.ptr + stem.len, flag.len - stem.len});
}

bool kli_surface_has_flag(const kl_surface *s, kl_str flag) {
    for (const char *const *allowed = s->flags; *allowed; allowed++)
        if (flag_fits(*allowed, flag)) return true;
    return false;
}

bool kli_surface_has_clause(const kl_surface *s, kl_str clause) {
    return surface_is_listed(s->clauses, clause);
}

bool kli_surface_has_directive(const kl_surface *s, kl_str name) {
    if (kl_str_eq(name, KL_S("surface")))
        return kl_surface_of_path(kl_str_of(s->suffix), 1) != NULL;
    return surface_is_listed(s->directives, name);
}

/* ---- lists for messages ------------------------------------------------------------------ */

static kl_str surface_taken(kl_arena *a, kl_buf *b) {
    const kl_str text = kl_arena_copy(a, kl_buf_str(b));
    kl_buf_fini(b);
    return text;
}

kl_str kl_surface_names(kl_arena *a, bool that_run) {
    kl_buf b = {0};
    for (size_t i = 0; i < KL_COUNT(SURFACE_ROWS); i++)
        if (!that_run || SURFACE_ROWS[i]->backends[0])
            kl_buf_printf(&b, "%s%s", b.len ? " " : "", SURFACE_ROWS[i]->name);
    return surface_taken(a, &b);
}

static void add_ending(kl_buf *b, const kl_surface *s) {
    kl_buf_printf(b, "%s%s (", b->len ? ", " : "", s->suffix);
    for (int i = 0; kl_surface_of_path(kl_str_of(s->suffix), i); i++)
        kl_buf_printf(b, "%s%s", i ? ", " : "", kl_surface_of_path(kl_str_of(s->suffix), i)->name);
    kl_buf_add(b, KL_S(")"));
}

kl_str kl_surface_endings(kl_arena *a) {
    kl_buf b = {0};
    for (size_t i = 0; i < KL_COUNT(SURFACE_ROWS); i++)
        if (kl_surface_of_path(kl_str_of(SURFACE_ROWS[i]->suffix), 0) == SURFACE_ROWS[i])
            add_ending(&b, SURFACE_ROWS[i]);
    return surface_taken(a, &b);
}
