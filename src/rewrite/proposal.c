/* proposal.c - what a model answered, as a proposal.
 *
 *   ACTION: pack_b                       header lines, in any order, before or between the blocks;
 * bold, quoted or listed ones too LOCUS: the loop over kc in gemm() WHY: one line BUNDLE: prefetch
 * optional CARD: name                           optional
 *   <<<<<<< SEARCH
 *   lines as they are
 *   =======
 *   lines as they shall be
 *   >>>>>>> REPLACE
 *
 * or one fenced file, or DONE: reason.  Everything else is talk.  Nothing in a reply is ever a
 * path, a command or markup (law 7).  SPDX-License-Identifier: Apache-2.0 */
#include "edits_impl.h"

#include <string.h>

enum { PROPOSAL_MAX_HEADER = 600, MAX_ACTION = 64 };

typedef struct {
    kl_proposal *out;
    kl_arena *arena;
    kl_str reply, rest; /* rest: behind the line that is being read */
    const kl_surface *surface;
    kl_error *error;
    kl_str done, tagged, untagged;
    bool is_done;
    int around; /* a fence of this length is open around SEARCH blocks; 0: none */
} proposal_reader;

static size_t proposal_offset_of(const proposal_reader *r, kl_str part) {
    KL_ASSERT(part.ptr >= r->reply.ptr && part.ptr <= r->reply.ptr + r->reply.len);
    return (size_t)(part.ptr - r->reply.ptr);
}

static int line_number(const proposal_reader *r, kl_str line) {
    int n = 1;
    for (const char *c = r->reply.ptr; c < line.ptr; c++) n += *c == '\n';
    return n;
}

/* ---- marks ------------------------------------------------------------------------------- */

int kli_mark_length(kl_str line, char c, kl_str *word) {
    int n = 0;
    line = kl_str_trim(line);
    while ((size_t)n < line.len && line.ptr[n] == c) n++;
    const kl_str rest = kl_str_trim(kli_from(line, (size_t)n));
    if (word) *word = rest;
    if (n < KLI_MIN_MARK || n > KLI_MAX_MARK) return 0;
    if (c == '=') return rest.len ? 0 : n;
    return rest.len || c == '>' ? n : 0;
}

/* A fence that a model put inside SEARCH or REPLACE belongs to the talk. */
static kl_str without_fences(kl_str text) {
    kl_str rest = text, line, first, last = {0};
    int n = 0;
    while (kli_next_line(&line, &rest)) {
        if (!n++) first = line;
        last = line;
    }
    if (n < 2 || !kl_str_starts(first, KL_S("```")) || !kl_str_eq(kl_str_trim(last), KL_S("```")))
        return text;
    const char *begin = first.ptr + first.len + 1;
    return kli_between(begin, last.ptr);
}

static kl_err block_error(proposal_reader *r, kl_str opener, const char *what) {
    return kl_fail(r->error, KL_EPARSE, "reply", "the SEARCH block at line %d of the reply %s",
                   line_number(r, opener), what);
}

/* Lines up to the mark of `c`, as one piece of the reply; its mark line is eaten. */
static bool read_side(proposal_reader *r, kl_str *out, char c, int length) {
    const char *begin = r->rest.ptr;
    kl_str line, word;
    while (kli_next_line(&line, &r->rest)) {
        if (kli_mark_length(line, c, &word) != length) continue;
        if (c == '>' && word.len && !kl_str_eq(word, KL_S("REPLACE"))) continue;
        *out = kli_between(begin, line.ptr);
        return true;
    }
    return false;
}

static kl_err proposal_read_block(proposal_reader *r, kl_str opener, int length, kl_str word) {
    kl_edit edit = {.offset = proposal_offset_of(r, opener)};
    if (!kl_str_eq(word, KL_S("SEARCH")))
        return block_error(r, opener,
                           "names something behind its mark; a block begins with `<<<<<<< SEARCH` "
                           "alone, and there is only one file");
    if (r->out->n_edits == KL_MAX_EDITS)
        return kl_fail(r->error, KL_ELIMIT, "reply", "more than %d SEARCH/REPLACE blocks",
                       KL_MAX_EDITS);
    if (!read_side(r, &edit.search, '=', length))
        return block_error(r, opener, "has no ======= line of the same length");
    if (!read_side(r, &edit.replace, '>', length))
        return block_error(r, opener,
                           "does not end with >>>>>>> REPLACE; the reply may have been cut off");
    KL_ASSERT(r->out->n_edits < KL_MAX_EDITS);
    edit.search = kl_arena_copy(r->arena, without_fences(edit.search));
    edit.replace = kl_arena_copy(r->arena, without_fences(edit.replace));
    r->out->edits[r->out->n_edits++] = edit;
    return KL_OK;
}

/* ---- fenced files ------------------------------------------------------------------------ */

static int fence_length(kl_str line) {
    int n = 0;
    line = kl_str_trim(line);
    while ((size_t)n < line.len && line.ptr[n] == '`') n++;
    return n >= 3 && !memchr(line.ptr + n, '`', line.len - (size_t)n) ? n : 0;
}

static bool is_tag(kl_str tag, const kl_surface *s) {
    for (const char *const *known = s->fences; *known; known++)
        if (kl_str_eq(tag, kl_str_of(*known))) return true;
    return false;
}

/* A file says how it is launched: that tells an untagged block of code from talk. */
static bool has_launch(kl_str text, const kl_surface *s) {
    const kl_str prefix = kl_str_of(s->comment);
    kl_str line;
    while (kli_next_line(&line, &text)) {
        line = kl_str_trim(line);
        if (kl_str_starts(line, prefix) &&
            kl_str_starts(kl_str_trim(kli_from(line, prefix.len)), KL_S("launch")))
            return true;
    }
    return false;
}

/* A fence around SEARCH blocks is no file: then reading goes on inside it. */
static kl_err read_fence(proposal_reader *r, kl_str opener, int length) {
    const kl_str info = kl_str_trim(opener), inside = r->rest;
    kl_str tag = kl_str_trim(kli_from(info, (size_t)length)), line, rest = r->rest;
    while (kli_next_line(&line, &rest)) {
        if (kli_mark_length(line, '<', NULL)) {
            r->around = length;
            return KL_OK;
        }
        const kl_str bare = kl_str_trim(line);
        if (fence_length(line) < length || bare.len != (size_t)fence_length(line)) continue;
        const kl_str text = {inside.ptr, (size_t)(line.ptr - inside.ptr)};
        size_t n = 0;
        while (n < tag.len && tag.ptr[n] != ' ' && tag.ptr[n] != ':' && tag.ptr[n] != '{') n++;
        tag.len = n;
        if (is_tag(tag, r->surface))
            r->tagged = text;
        else if (!tag.len && has_launch(text, r->surface))
            r->untagged = text;
        r->rest = rest;
        return KL_OK;
    }
    if (r->out->n_edits) return KL_OK; /* a stray fence behind the blocks */
    return kl_fail(
        r->error, KL_EPARSE, "reply",
        "the fenced block at line %d of the reply does not end; the reply may have been cut off",
        line_number(r, opener));
}

/* ---- header lines ------------------------------------------------------------------------ */

static bool is_decoration(char c) { return c && strchr(" \t*#>`_-\r", c); }

static kl_str strip(kl_str s) {
    while (s.len && is_decoration(s.ptr[0])) s = kli_from(s, 1);
    while (s.len && is_decoration(s.ptr[s.len - 1])) s.len--;
    return s;
}

/* The value of a header as plain text: no control characters, not endless. */
static kl_str proposal_plain(kl_arena *a, kl_str s) {
    const kl_str plain = kl_arena_copy(a, kli_cut(s, PROPOSAL_MAX_HEADER));
    char *out = (char *)plain.ptr;
    for (size_t i = 0; i < plain.len; i++)
        if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f) out[i] = ' ';
    return plain;
}

static bool is_id_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

/* Ids in `s`, as the table writes them, separated by one blank; at most `most` of them. */
static kl_str ids(kl_arena *a, kl_str s, int most) {
    kl_buf b = {0};
    for (size_t i = 0; i < s.len && most > 0;) {
        char id[MAX_ACTION + 1];
        size_t n = 0;
        for (; i < s.len; i++) {
            const char c = s.ptr[i] >= 'A' && s.ptr[i] <= 'Z' ? (char)(s.ptr[i] + 32) : s.ptr[i];
            if (!is_id_char(c)) break;
            if (n < MAX_ACTION) id[n++] = c;
        }
        id[n] = '\0';
        if (n && strcmp(id, "none") != 0 && strcmp(id, "and") != 0) {
            kl_buf_printf(&b, "%s%s", b.len ? " " : "", id);
            most--;
        }
        if (!n) i++;
    }
    return kli_buf_keep(&b, a);
}

static bool proposal_header(kl_str line, const char *key, kl_str *value) {
    line = strip(line);
    if (!kl_str_starts(line, kl_str_of(key))) return false;
    line = kli_from(line, strlen(key));
    while (line.len && line.ptr[0] && strchr("*` _", line.ptr[0])) line = kli_from(line, 1);
    if (!line.len || line.ptr[0] != ':') return false;
    *value = strip(kli_from(line, 1));
    return true;
}

static void proposal_keep(kl_str *slot, kl_str value) {
    if (!slot->len) *slot = value;
}

/* Header lines, and where their values go; `ids`: so many names of the vocabulary, 0: plain text.
 */
static const struct {
    const char *key;
    size_t at;
    int ids;
} REPLY_HEADERS[] = {
    {"ACTION", offsetof(kl_proposal, action), 1}, {"BUNDLE", offsetof(kl_proposal, bundle), 8},
    {"LOCUS", offsetof(kl_proposal, locus), 0},   {"WHY", offsetof(kl_proposal, why), 0},
    {"CARD", offsetof(kl_proposal, card), 0},     {"FETCH", offsetof(kl_proposal, fetch), 0}};

static void proposal_read_header(proposal_reader *r, kl_str line) {
    kl_str value;
    for (size_t i = 0; i < KL_COUNT(REPLY_HEADERS); i++) {
        if (!proposal_header(line, REPLY_HEADERS[i].key, &value)) continue;
        kl_str *slot = (void *)((char *)r->out + REPLY_HEADERS[i].at);
        proposal_keep(slot, REPLY_HEADERS[i].ids ? ids(r->arena, value, REPLY_HEADERS[i].ids)
                                                 : proposal_plain(r->arena, value));
    }
    if (!proposal_header(line, "DONE", &value)) return;
    r->is_done = true;
    proposal_keep(&r->done, proposal_plain(r->arena, value));
}

/* ---- the whole reply --------------------------------------------------------------------- */

static kl_err read_line(proposal_reader *r, kl_str line) {
    kl_str word;
    const int mark = kli_mark_length(line, '<', &word), fence = fence_length(line);
    if (mark) return proposal_read_block(r, line, mark, word);
    if (fence && r->around && kl_str_trim(line).len == (size_t)fence)
        r->around = 0; /* its end */
    else if (fence)
        return read_fence(r, line, fence);
    else
        proposal_read_header(r, line);
    return KL_OK;
}

static kl_err proposal_settle(proposal_reader *r) {
    kl_proposal *p = r->out;
    const kl_str file = r->tagged.len ? r->tagged : r->untagged;
    if (p->n_edits) {
        p->kind = KL_PROPOSAL_EDITS;
        return KL_OK;
    }
    if (file.len) {
        p->kind = KL_PROPOSAL_FILE;
        p->file = kl_arena_copy(r->arena, file);
        return KL_OK;
    }
    if (!r->is_done)
        return kl_fail(
            r->error, KL_EPARSE, "reply",
            "no SEARCH/REPLACE block, no file in a ```%s fence and no DONE line in the reply",
            r->surface->name);
    p->kind = KL_PROPOSAL_DONE;
    proposal_keep(&p->why, r->done);
    return KL_OK;
}

kl_err kl_proposal_parse(kl_proposal *out, kl_arena *a, kl_str reply, const kl_surface *surface,
                         kl_error *e) {
    *out = (kl_proposal){0};
    if (reply.len > KL_MAX_REPLY_BYTES)
        return kl_fail(e, KL_ELIMIT, "reply", "the reply is longer than %u bytes",
                       KL_MAX_REPLY_BYTES);
    proposal_reader r = {
        .out = out, .arena = a, .reply = reply, .rest = reply, .surface = surface, .error = e};
    kl_str line;
    kl_err err = KL_OK;
    out->edits = KL_ARRAY(a, kl_edit, KL_MAX_EDITS);
    while (!err && kli_next_line(&line, &r.rest)) err = read_line(&r, line);
    return err ? err : proposal_settle(&r);
}

static bool proposal_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool same_but_white_space(kl_str a, kl_str b) {
    size_t i = 0, j = 0;
    for (;;) {
        while (i < a.len && proposal_is_space(a.ptr[i])) i++;
        while (j < b.len && proposal_is_space(b.ptr[j])) j++;
        if (i == a.len || j == b.len) return i == a.len && j == b.len;
        if (a.ptr[i++] != b.ptr[j++]) return false;
    }
}

kl_err kl_proposal_apply(kl_str *out, kl_arena *a, kl_str source, const kl_proposal *p,
                         kl_error *e) {
    kl_str text = p->file;
    if (p->kind == KL_PROPOSAL_DONE)
        return kl_fail(e, KL_EINVAL, "reply", "the proposal says DONE and changes nothing");
    kl_err err = p->kind == KL_PROPOSAL_EDITS
                     ? kl_edits_apply(&text, a, source, p->edits, p->n_edits, e)
                     : KL_OK;
    if (err) return err;
    if (same_but_white_space(text, source))
        return kl_fail(e, KL_EINVAL, "reply", "the proposal changes nothing but white space");
    *out = text;
    return KL_OK;
}
