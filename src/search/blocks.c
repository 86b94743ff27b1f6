/* blocks.c - EVOLVE-BLOCK: which ranges of a start kernel may change.
 *
 *     // EVOLVE-BLOCK-START         a line of its own, in a comment of the language
 *     ...                           may become anything
 *     // EVOLVE-BLOCK-END
 *
 * Without such lines the whole file may change.  With them, everything outside of the ranges, the
 * marker lines too, has to stay as it is in the start, line by line, white space at line ends
 * aside.  It is compared as one text, so that an edit, a whole file and a patch are held to the
 * same rule, and a marker that a proposal adds inside of a range is a line that was not there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include <stdio.h>
#include <string.h>

typedef enum { BLOCKS_PLAIN, OPENS, CLOSES } blocks_mark;

/* A file, line by line. */
typedef struct {
    kl_str rest, line; /* `line` without white space at its end */
    int number;
    bool inside; /* of a range; marker lines are outside */
    blocks_mark mark;
} blocks_reader;

static bool is_comment_char(char c) {
    return c == '/' || c == '*' || c == '#' || c == '!' || c == ' ' || c == '\t';
}

static blocks_mark blocks_mark_of(kl_str line) {
    size_t n = 0, signs = 0;
    while (n < line.len && is_comment_char(line.ptr[n]))
        signs += line.ptr[n] != ' ' && line.ptr[n] != '\t', n++;
    const kl_str word = {line.ptr + n, line.len - n};
    if (!signs) return BLOCKS_PLAIN; /* code, or a text that speaks of it */
    if (kl_str_starts(word, KL_S("EVOLVE-BLOCK-START"))) return OPENS;
    return kl_str_starts(word, KL_S("EVOLVE-BLOCK-END")) ? CLOSES : BLOCKS_PLAIN;
}

static kl_str blocks_without_end(kl_str s) {
    while (s.len && strchr(" \t\r\n\v\f", s.ptr[s.len - 1]) && s.ptr[s.len - 1]) s.len--;
    return s;
}

static bool blocks_next_line(blocks_reader *r) {
    if (!r->rest.len) return false;
    const char *end = memchr(r->rest.ptr, '\n', r->rest.len);
    const size_t n = end ? (size_t)(end - r->rest.ptr) + 1 : r->rest.len;
    r->line = blocks_without_end((kl_str){r->rest.ptr, n});
    r->rest = (kl_str){r->rest.ptr + n, r->rest.len - n};
    r->number++;
    r->mark = blocks_mark_of(r->line);
    return true;
}

/* The next line that is in no range; false at the end. */
static bool next_outside(blocks_reader *r) {
    while (blocks_next_line(r)) {
        if (r->mark == CLOSES) r->inside = false;
        if (r->inside) continue;
        r->inside = r->mark == OPENS;
        return true;
    }
    r->line = KL_S("");
    return false;
}

static blocks_reader reader_of(kl_str source) {
    return (blocks_reader){.rest = blocks_without_end(source)};
}

bool kli_blocks_any(kl_str source) {
    blocks_reader r = reader_of(source);
    while (blocks_next_line(&r))
        if (r.mark != BLOCKS_PLAIN) return true;
    return false;
}

kl_err kli_blocks_valid(kl_str source, kl_str where, kl_error *e) {
    blocks_reader r = reader_of(source);
    int opened = 0;
    while (blocks_next_line(&r)) {
        if (r.mark == (opened ? OPENS : CLOSES))
            return kl_fail(e, KL_EPARSE, where.ptr, "line %d: %s", r.number,
                           opened ? "EVOLVE-BLOCK-START inside of a block"
                                  : "EVOLVE-BLOCK-END without its START");
        if (r.mark != BLOCKS_PLAIN) opened = r.mark == OPENS ? r.number : 0;
    }
    if (!opened) return KL_OK;
    return kl_fail(e, KL_EPARSE, where.ptr,
                   "line %d: EVOLVE-BLOCK-START without its EVOLVE-BLOCK-END", opened);
}

static int blocks_shown(kl_str line) { return line.len > 200 ? 200 : (int)line.len; }

kl_err kli_blocks_check(kl_str start, kl_str source, kl_error *e) {
    blocks_reader a = reader_of(start), b = reader_of(source);
    if (!kli_blocks_any(start)) return KL_OK;
    for (;;) {
        const bool more_a = next_outside(&a), more_b = next_outside(&b);
        if (!more_a && !more_b) return KL_OK;
        if (more_a && more_b && kl_str_eq(a.line, b.line)) continue;
        kl_fail(e, KL_EINVAL, "reply",
                "only the lines between EVOLVE-BLOCK-START and EVOLVE-BLOCK-END may change, and "
                "the markers have to stay: "
                "your change touches text outside of them, so nothing of it was used");
        snprintf(e->detail, sizeof e->detail,
                 "the line that has to be there: %.*s\nyours, line %d of the new file: %.*s",
                 more_a ? blocks_shown(a.line) : 17, more_a ? a.line.ptr : "(nothing further)",
                 b.number, more_b ? blocks_shown(b.line) : 17,
                 more_b ? b.line.ptr : "(nothing further)");
        return KL_EINVAL;
    }
}
