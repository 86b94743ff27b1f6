/* blocks.c - EVOLVE-BLOCK: which ranges of a start kernel may change.
 *
 *     // EVOLVE-BLOCK-START         a line of its own, in a comment of the language
 *     ...                           may become anything
 *     // EVOLVE-BLOCK-END
 *
 * Without such lines the whole file may change.  With them, everything outside of the ranges, the marker lines too, has to stay as it is in
 * the start, line by line, white space at line ends aside.  It is compared as one text, so that an edit, a whole file and a patch are held to the
 * same rule, and a marker that a proposal adds inside of a range is a line that was not there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include <stdio.h>
#include <string.h>

typedef enum { PLAIN, OPENS, CLOSES } mark;

/* A file, line by line. */
typedef struct {
    kl_str rest, line; /* `line` without white space at its end */
    int number;
    bool inside; /* of a range; marker lines are outside */
    mark mark;
} reader;

static bool is_comment_char(char c) { return c == '/' || c == '*' || c == '#' || c == '!' || c == ' ' || c == '\t'; }

static mark mark_of(kl_str line) {
    size_t n = 0, signs = 0;
    while (n < line.len && is_comment_char(line.ptr[n])) signs += line.ptr[n] != ' ' && line.ptr[n] != '\t', n++;
    const kl_str word = {line.ptr + n, line.len - n};
    if (!signs) return PLAIN; /* code, or a text that speaks of it */
    if (kl_str_starts(word, KL_S("EVOLVE-BLOCK-START"))) return OPENS;
    return kl_str_starts(word, KL_S("EVOLVE-BLOCK-END")) ? CLOSES : PLAIN;
}

static kl_str without_end(kl_str s) {
    while (s.len && strchr(" \t\r\n\v\f", s.ptr[s.len - 1]) && s.ptr[s.len - 1]) s.len--;
    return s;
}

static bool next_line(reader *r) {
    if (!r->rest.len) return false;
    const char *end = memchr(r->rest.ptr, '\n', r->rest.len);
    const size_t n = end ? (size_t)(end - r->rest.ptr) + 1 : r->rest.len;
    r->line = without_end((kl_str){r->rest.ptr, n});
    r->rest = (kl_str){r->rest.ptr + n, r->rest.len - n};
    r->number++;
    r->mark = mark_of(r->line);
    return true;
}

/* The next line that is in no range; false at the end. */
static bool next_outside(reader *r) {
    while (next_line(r)) {
        if (r->mark == CLOSES) r->inside = false;
        if (r->inside) continue;
        r->inside = r->mark == OPENS;
        return true;
    }
    r->line = KL_S("");
    return false;
}

static reader reader_of(kl_str source) { return (reader){.rest = without_end(source)}; }

bool kli_blocks_any(kl_str source) {
    reader r = reader_of(source);
    while (next_line(&r))
        if (r.mark != PLAIN) return true;
    return false;
}

kl_err kli_blocks_valid(kl_str source, kl_str where, kl_error *e) {
    reader r = reader_of(source);
    int opened = 0;
    while (next_line(&r)) {
        if (r.mark == (opened ? OPENS : CLOSES))
            return kl_fail(e, KL_EPARSE, where.ptr, "line %d: %s", r.number,
                           opened ? "EVOLVE-BLOCK-START inside of a block" : "EVOLVE-BLOCK-END without its START");
        if (r.mark != PLAIN) opened = r.mark == OPENS ? r.number : 0;
    }
    if (!opened) return KL_OK;
    return kl_fail(e, KL_EPARSE, where.ptr, "line %d: EVOLVE-BLOCK-START without its EVOLVE-BLOCK-END", opened);
}

static int shown(kl_str line) { return line.len > 200 ? 200 : (int)line.len; }

kl_err kli_blocks_check(kl_str start, kl_str source, kl_error *e) {
    reader a = reader_of(start), b = reader_of(source);
    if (!kli_blocks_any(start)) return KL_OK;
    for (;;) {
        const bool more_a = next_outside(&a), more_b = next_outside(&b);
        if (!more_a && !more_b) return KL_OK;
        if (more_a && more_b && kl_str_eq(a.line, b.line)) continue;
        kl_fail(
            e, KL_EINVAL, "reply",
            "only the lines between EVOLVE-BLOCK-START and EVOLVE-BLOCK-END may change, and the markers have to stay: "
            "your change touches text outside of them, so nothing of it was used");
        snprintf(e->detail, sizeof e->detail,
                 "the line that has to be there: %.*s\nyours, line %d of the new file: %.*s",
                 more_a ? shown(a.line) : 17, more_a ? a.line.ptr : "(nothing further)", b.number,
                 more_b ? shown(b.line) : 17, more_b ? b.line.ptr : "(nothing further)");
        return KL_EINVAL;
    }
}
