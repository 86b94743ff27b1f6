/* text.c - the Markdown of a card: sections, precondition lines, names; and what a model wrote made
 * safe to stand in one.
 *
 * A section is the text below one of eight known headings at the beginning of a line; headings
 * inside fences are code. SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <ctype.h>
#include <string.h>

const char *const kli_pre_names[5] = {"data", "layout", "storage", "pipeline", "hardware"};

static const char *const section_names[] = {"Intent", "Anchor", "Carrier", "Preconditions",
                                            "Effect", "Risks",  "Scope",   "Verification"};

static bool is_fence(kl_str line) { return kl_str_starts(kl_str_trim(line), KL_S("```")); }

/* ---- sections ---------------------------------------------------------------------------- */

/* Which of the eight a line is the heading of; -1: none. */
static int text_heading(kl_str line) {
    if (!kl_str_starts(line, KL_S("## "))) return -1;
    kl_str name = kl_str_trim(kli_from(line, 3));
    for (int i = 0; i < (int)KL_COUNT(section_names); i++)
        if (kl_str_eq(name, kl_str_of(section_names[i]))) return i;
    return -1;
}

kl_str kli_section(kl_str body, const char *name) {
    kl_str rest = body, found = {0};
    bool fenced = false, inside = false;
    for (kl_str line; kli_next_line(&line, &rest);) {
        int which = fenced ? -1 : text_heading(line);
        if (is_fence(line)) fenced = !fenced;
        if (which >= 0 && inside) break;
        if (which >= 0) {
            inside = strcmp(section_names[which], name) == 0;
            if (inside) found = (kl_str){rest.ptr, 0};
        } else if (inside) {
            found.len = (size_t)(line.ptr + line.len - found.ptr);
        }
    }
    return kl_str_trim(found);
}

kl_str kli_text_cut(kl_str s, size_t max) {
    if (s.len <= max) return s;
    while (max && ((unsigned char)s.ptr[max] & 0xc0) == 0x80) max--;
    return (kl_str){s.ptr, max};
}

kl_str kli_section_clean(kl_arena *a, kl_str text, size_t max) {
    kl_buf b = {0};
    bool fenced = false;
    kl_str rest = kli_text_cut(kl_str_trim(text), max);
    for (kl_str line; kli_next_line(&line, &rest);) {
        if (is_fence(line)) fenced = !fenced;
        if (!fenced && line.len && *line.ptr == '#') kl_buf_add(&b, KL_S("\\"));
        for (size_t i = 0; i < line.len; i++) {
            unsigned char c = (unsigned char)line.ptr[i];
            if ((c >= 0x20 && c != 0x7f) || c == '\t') kl_buf_add(&b, (kl_str){line.ptr + i, 1});
        }
        kl_buf_add(&b, KL_S("\n"));
    }
    if (fenced) kl_buf_add(&b, KL_S("```\n"));
    kl_str clean = kl_arena_copy(a, kl_str_trim(kl_buf_str(&b)));
    kl_buf_fini(&b);
    return clean;
}

/* ---- preconditions ----------------------------------------------------------------------- */

#define MAX_WORD 64        /* bytes of a fact's name or value */
#define TEXT_MAX_PROSE 500 /* of one precondition: 32 of them leave room for the rest of a card */

static int pre_kind(kl_str word) {
    for (int i = 0; i < (int)KL_COUNT(kli_pre_names); i++)
        if (kl_str_eq(word, kl_str_of(kli_pre_names[i]))) return i;
    return -1;
}

/* "FACT OP VALUE" without brackets; leaves the fields empty when it is not three words. */
static void parse_test(kl_predicate *p, kl_arena *a, kl_str test) {
    kl_str fact, op;
    if (!kli_next_word(&fact, &test) || !kli_next_word(&op, &test) ||
        !kli_one_of(op, "== != < <= > >="))
        return;
    const kl_str value = kl_str_trim(test);
    if (!value.len) return;
    p->fact = kl_arena_copy(a, kli_text_cut(fact, MAX_WORD));
    p->op = kl_arena_copy(a, op);
    p->value = kl_arena_copy(a, kli_text_cut(value, MAX_WORD));
}

/* "- data: [dtype == float32] - prose".  The brackets and the prose may be missing. */
static bool parse_predicate(kl_predicate *out, kl_arena *a, kl_str line) {
    line = kl_str_trim(line);
    if (!kl_str_starts(line, KL_S("- "))) return false;
    const char *colon = memchr(line.ptr, ':', line.len);
    if (!colon) return false;
    int kind = pre_kind(kl_str_trim(kli_between(line.ptr + 2, colon)));
    if (kind < 0) return false;
    kl_str rest = kl_str_trim(kli_between(colon + 1, line.ptr + line.len));
    *out = (kl_predicate){.kind = (kl_pre_kind)kind};
    const char *close = rest.len && *rest.ptr == '[' ? memchr(rest.ptr, ']', rest.len) : NULL;
    if (close) {
        parse_test(out, a, kli_between(rest.ptr + 1, close));
        rest = kl_str_trim(kli_between(close + 1, rest.ptr + rest.len));
        if (kl_str_starts(rest, KL_S("- "))) rest = kl_str_trim(kli_from(rest, 2));
    }
    out->prose = kl_arena_copy(a, kli_text_cut(rest, TEXT_MAX_PROSE));
    return out->fact.len || out->prose.len;
}

#define MAX_PREDICATES 32 /* a card with more is no card */

int kli_predicates_parse(kl_predicate **out, kl_arena *a, kl_str text) {
    int n = 0;
    *out = KL_ARRAY(a, kl_predicate, MAX_PREDICATES);
    for (kl_str line; n < MAX_PREDICATES && kli_next_line(&line, &text);)
        n += parse_predicate(&(*out)[n], a, line);
    return n;
}

void kli_predicates_render(kl_buf *out, const kl_predicate *p, int n) {
    for (int i = 0; i < n; i++) {
        KL_ASSERT((size_t)p[i].kind < KL_COUNT(kli_pre_names));
        kl_buf_printf(out, "- %s: ", kli_pre_names[p[i].kind]);
        if (p[i].fact.len)
            kl_buf_printf(out, "[%.*s %.*s %.*s]%s", KL_STR_ARG(p[i].fact), KL_STR_ARG(p[i].op),
                          KL_STR_ARG(p[i].value), p[i].prose.len ? " - " : "");
        kl_buf_printf(out, "%.*s\n", KL_STR_ARG(p[i].prose));
    }
}

/* ---- names ------------------------------------------------------------------------------- */

kl_str kli_slug(kl_arena *a, kl_str text) {
    char slug[65];
    size_t n = 0;
    for (size_t i = 0; i < text.len && n < 64; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (isalnum(c) && c < 0x80)
            slug[n++] = (char)tolower(c);
        else if (n && slug[n - 1] != '-')
            slug[n++] = '-';
    }
    while (n && slug[n - 1] == '-') n--;
    KL_ASSERT(n < sizeof slug);
    return n ? kl_arena_copy(a, (kl_str){slug, n}) : KL_S("card");
}
