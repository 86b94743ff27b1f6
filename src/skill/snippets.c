/* snippets.c - the body of a card of the authors' release, taken apart: where it acts, what is to
 * be read of it, and what was before and after.
 *
 *   # Overview              prose                             carrier
 *   # Precondition          the same as in the frontmatter    left out, unless that has none
 *   # Scope                 likewise                          left out
 *   # Code Change Snippet   where, then fences under Before   anchor, patch, and carrier
 *                           and After
 *
 * Headings become bold lines: a section of ours may hold none.  SPDX-License-Identifier: Apache-2.0
 */
#include "skill_impl.h"
#include <string.h>
#include <strings.h>

enum { MAX_CHANGES = 32, MAX_ANCHOR = 1000 };

static bool is_heading(kl_str line) { return line.len && *line.ptr == '#'; }
static bool fences(kl_str line) { return kl_str_starts(line, KL_S("```")); }

static kl_str heading_text(kl_str line) {
    while (line.len && *line.ptr == '#') line = kli_from(line, 1);
    return kl_str_trim(line);
}

static bool is_top(kl_str line) { return kl_str_starts(line, KL_S("# ")); }

/* What stands below the heading of the first level that begins with `name`, up to the next one. */
static kl_str below(kl_str body, const char *name) {
    kl_str found = {0};
    bool inside = false, fenced = false;
    for (kl_str line, rest = body; kli_next_line(&line, &rest);) {
        if (fences(line)) fenced = !fenced;
        if (fenced || !is_top(line)) {
            if (inside) found.len = (size_t)(line.ptr + line.len - found.ptr);
            continue;
        }
        if (inside) break;
        inside = kl_str_starts(heading_text(line), kl_str_of(name));
        if (inside) found = (kl_str){rest.ptr, 0};
    }
    return kl_str_trim(found);
}

/* ---- before and after -------------------------------------------------------------------- */

typedef struct {
    kl_str before[MAX_CHANGES], after[MAX_CHANGES];
    int n_before, n_after;
} code_changes;

static void keep_fence(code_changes *c, kl_str heading, kl_str code) {
    if (kl_str_starts(heading, KL_S("Before")) && c->n_before < MAX_CHANGES)
        c->before[c->n_before++] = code;
    if (kl_str_starts(heading, KL_S("After")) && c->n_after < MAX_CHANGES)
        c->after[c->n_after++] = code;
}

static void changes_of(code_changes *out, kl_str body) {
    kl_str heading = {0};
    const char *begin = NULL;
    *out = (code_changes){0};
    for (kl_str line, rest = body; kli_next_line(&line, &rest);) {
        if (!begin && is_heading(line)) heading = heading_text(line);
        if (!fences(line)) continue;
        if (begin) keep_fence(out, heading, kli_between(begin, line.ptr));
        begin = begin ? NULL : rest.ptr;
    }
    KL_ASSERT(out->n_before <= MAX_CHANGES && out->n_after <= MAX_CHANGES);
}

/* As edits, where each Before has its After: it applies wherever a kernel has the same text. */
static kl_str patch_of(kl_arena *a, const code_changes *c, kl_str action, kl_str why) {
    kl_buf b = {0};
    if (!c->n_before || c->n_before != c->n_after) return (kl_str){0};
    kl_buf_printf(&b, "ACTION: %.*s\nLOCUS: as imported\nWHY: ", KL_STR_ARG(action));
    for (size_t i = 0; i < why.len; i++)
        kl_buf_add(&b, why.ptr[i] == '\n' ? KL_S(" ") : (kl_str){why.ptr + i, 1});
    for (int i = 0; i < c->n_before; i++)
        kl_buf_printf(&b, "\n\n<<<<<<< SEARCH\n%.*s=======\n%.*s>>>>>>> REPLACE\n",
                      KL_STR_ARG(c->before[i]), KL_STR_ARG(c->after[i]));
    return kl_buf_take(&b, a);
}

/* ---- what makes a card suspicious -------------------------------------------------------- */

static int count_words(const kl_str *texts, int n, const char *word) {
    int found = 0;
    const size_t len = strlen(word);
    for (int i = 0; i < n; i++)
        for (kl_str rest = texts[i]; rest.len >= len; rest = kli_from(rest, 1))
            found += memcmp(rest.ptr, word, len) == 0;
    return found;
}

static bool says_any(const code_changes *c, const char *const *words) {
    for (; *words; words++)
        if (count_words(c->after, c->n_after, *words) > 0) return true;
    return false;
}

/* Code of the host is none of a kernel: a directive has to say what it says. */
static const char *const host_words[] = {
    "<<<",       "cudaMalloc",   "cudaLaunchKernel",     "cuTensorMap",
    "at::empty", "torch::empty", "cudaFuncSetAttribute", NULL};

bool kli_import_says_volatile(kl_str line) {
    static const kl_str word = {"volatile", 8};
    for (; line.len >= word.len; line = kli_from(line, 1))
        if (strncasecmp(line.ptr, word.ptr, word.len) == 0) return true;
    return false;
}

/* Its excerpt may call what the helper beside it does with the qualifier: then prose says so. */
static bool prose_says_volatile(kl_str body) {
    bool fenced = false;
    for (kl_str line; kli_next_line(&line, &body);) {
        if (fences(line)) fenced = !fenced;
        if (!fenced && kli_import_says_volatile(line)) return true;
    }
    return false;
}

static bool undoes_volatile(const code_changes *c, kl_str body) {
    const int before = count_words(c->before, c->n_before, "volatile"),
              after = count_words(c->after, c->n_after, "volatile");
    return before > after || (!after && prose_says_volatile(body));
}

static kl_str flags_of(kl_arena *a, const code_changes *c, kl_str body) {
    kl_str flags = {0};
    if (undoes_volatile(c, body)) flags = kli_words_with(a, flags, KL_S("undoes-volatile"));
    if (says_any(c, host_words)) flags = kli_words_with(a, flags, KL_S("host-code"));
    if (c->n_before != c->n_after) flags = kli_words_with(a, flags, KL_S("unpaired-change"));
    return flags;
}

/* ---- prose ------------------------------------------------------------------------------- */

static kl_str first_paragraph(kl_str text) {
    const char *end = text.len ? memmem(text.ptr, text.len, "\n\n", 2) : NULL;
    return end ? kli_between(text.ptr, end) : text;
}

static kl_str anchor_of(kl_str body) {
    kl_str where = below(body, "Code Change Snippet");
    for (kl_str line, rest = where; kli_next_line(&line, &rest);)
        if (is_heading(line) || fences(line)) {
            where = kli_between(where.ptr, line.ptr);
            break;
        }
    where = kl_str_trim(where);
    return where.len ? where : first_paragraph(below(body, "Overview"));
}

/* Everything that stands nowhere else. */
static kl_str carrier_of(kl_arena *a, kl_str body) {
    kl_buf b = {0};
    bool fenced = false, left_out = false;
    for (kl_str line, rest = body; kli_next_line(&line, &rest);) {
        if (fences(line)) fenced = !fenced;
        const bool heading = !fenced && is_heading(line);
        const kl_str text = heading ? heading_text(line) : line;
        if (heading && is_top(line))
            left_out = kl_str_starts(text, KL_S("Precondition")) || kl_str_eq(text, KL_S("Scope"));
        if (left_out) continue;
        kl_buf_printf(&b, heading ? "**%.*s**\n" : "%.*s\n", KL_STR_ARG(text));
    }
    return kl_buf_take(&b, a);
}

void kli_import_body(kl_card *c, kl_arena *a, kl_str body, size_t most) {
    code_changes changes;
    changes_of(&changes, body);
    c->anchor = kli_section_clean(a, anchor_of(body), MAX_ANCHOR);
    c->carrier = kli_section_clean(a, carrier_of(a, body), most);
    c->patch = patch_of(a, &changes, c->action, c->intent);
    c->flags = flags_of(a, &changes, body);
}

kl_str kli_import_preconditions(kl_str body) { return below(body, "Precondition"); }
