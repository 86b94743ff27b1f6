/* ladder.c - kernels that are kept as edits of another kernel in their folder.
 *
 * A ladder is a folder of kernels, each with one idea more than the one before.  A rung
 * `3-vector.diff` is a unified diff whose header names the rung that it changes and the rung that
 * it makes:
 *
 *     --- a/2-loop-order.c
 *     +++ b/3-vector.c
 *     @@ -1,14 +1,16 @@
 *
 * Whoever asks for `3-vector.c` gets the text that comes of it; `git apply` makes the same.  A hunk
 * holds at the lines that it names and nowhere else: what it keeps and what it deletes must be
 * there, byte for byte. Not here: diffs over several files, hunks without context, and making a
 * diff (`tools/ladder fold` has git do that). SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include "base/fs.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kl_str path, diff;           /* the file and its text */
    size_t at;                   /* where its next line begins */
    kl_str old;                  /* what is not yet copied or deleted of the rung below */
    size_t old_lines, new_lines; /* taken from the one, put into the other */
    kl_buf made;
    kl_error *error;
} ladder_patch;

static const kl_str NO_TEXT = {0};

static bool is_diff(kl_str path) { return kl_str_ends(path, KL_S(".diff")); }

/* The first line with its line end, so that a missing one at the end of a file is a difference. */
static kl_str first_line(kl_str text) {
    const char *end = text.len ? memchr(text.ptr, '\n', text.len) : NULL;
    return (kl_str){text.ptr, end ? (size_t)(end - text.ptr) + 1 : text.len};
}

static kl_str without(kl_str text, size_t n) {
    KL_ASSERT(n <= text.len);
    return (kl_str){text.ptr + n, text.len - n};
}

/* ---- hunks ------------------------------------------------------------------------------- */

static kl_err ladder_misfit(const ladder_patch *p, const char *why) {
    kl_fail_at(p->error, KL_EPARSE, p->path, p->diff, p->at, "%s", why);
    return kl_hint(p->error, "tools/ladder fold makes the edits of a ladder anew from its kernels");
}

static void take_line(ladder_patch *p) {
    p->old = without(p->old, first_line(p->old).len);
    p->old_lines++;
}

static void put_line(ladder_patch *p, kl_str line) {
    kl_buf_add(&p->made, line);
    p->new_lines++;
}

/* range = START [ "," COUNT ]; the count says nothing that the lines do not say */
static size_t read_range(char **text) {
    size_t start = strtoul(*text, text, 10);
    if (**text == ',') strtoul(*text + 1, text, 10);
    return start;
}

/* hunk = "@@ -" range " +" range " @@" [ heading ] */
static kl_err start_hunk(ladder_patch *p, kl_str line) {
    char head[64] = "";
    memcpy(head, line.ptr, line.len < sizeof head ? line.len : sizeof head - 1);
    if (strncmp(head, "@@ -", 4) != 0) return ladder_misfit(p, "not the head of a hunk");
    char *text = head + 4;
    size_t old_start = read_range(&text);
    if (strncmp(text, " +", 2) != 0) return ladder_misfit(p, "not the head of a hunk");
    text += 2;
    size_t new_start = read_range(&text);
    while (p->old.len && p->old_lines + 1 < old_start) {
        put_line(p, first_line(p->old));
        take_line(p);
    }
    bool there = p->old_lines + 1 == old_start && p->new_lines + 1 == new_start;
    return there ? KL_OK : ladder_misfit(p, "the hunk does not begin at the lines that it names");
}

static kl_err apply_line(ladder_patch *p, kl_str line) {
    char kind = line.ptr[0];
    kl_str text = without(line, 1);
    if (kind != '+' && kind != '-' && kind != ' ') return ladder_misfit(p, "not a line of a hunk");
    if (kind != '+') {
        if (!kl_str_eq(first_line(p->old), text))
            return ladder_misfit(p, "the rung below has another line here");
        take_line(p);
    }
    if (kind != '-') put_line(p, text);
    return KL_OK;
}

static kl_err ladder_apply(ladder_patch *p) {
    bool inside = false;
    kl_err err = KL_OK;
    while (!err && p->at < p->diff.len) {
        kl_str line = first_line(without(p->diff, p->at));
        bool head = kl_str_starts(line, KL_S("@@"));
        inside |= head;
        if (inside) err = head ? start_hunk(p, line) : apply_line(p, line);
        if (!err) p->at += line.len;
    }
    if (!err) kl_buf_add(&p->made, p->old);
    return err;
}

/* ---- rungs ------------------------------------------------------------------------------- */

/* NAME of the header line that `mark` begins; empty when there is none, or when it leaves the
 * folder. */
static kl_str header_name(kl_arena *a, kl_str diff, kl_str mark) {
    while (diff.len && !kl_str_starts(diff, KL_S("@@"))) {
        kl_str line = first_line(diff);
        kl_str name = kl_str_starts(line, mark) ? kl_str_trim(without(line, mark.len)) : NO_TEXT;
        if (name.len) return memchr(name.ptr, '/', name.len) ? NO_TEXT : kl_arena_copy(a, name);
        diff = without(diff, line.len);
    }
    return NO_TEXT;
}

static kl_err ladder_read_header(kl_str *from, kl_str *to, kl_arena *a, kl_str diff, kl_str path,
                                 kl_error *e) {
    *from = header_name(a, diff, KL_S("--- a/"));
    *to = header_name(a, diff, KL_S("+++ b/"));
    if (from->len && to->len) return KL_OK;
    return kl_fail(e, KL_EPARSE, path.ptr,
                   "the header must name two kernels of this folder: --- a/NAME, +++ b/NAME");
}

kl_str kl_kernel_file(kl_arena *a, const char *path) {
    if (kli_fs_exists(path)) return kl_str_of(path);
    const char *dot = strrchr(path, '.');
    if (!dot) return NO_TEXT;
    kl_str diff = kl_arena_printf(a, "%.*s.diff", (int)(dot - path), path);
    return kli_fs_exists(diff.ptr) ? diff : NO_TEXT;
}

/* `rungs`: how many may still lie below. */
static kl_err read_rung(kl_str *text, kl_str *path, kl_arena *a, int rungs, kl_error *e) {
    KL_ASSERT(rungs >= 0 && rungs <= KL_MAX_RUNGS);
    kl_str file = kl_kernel_file(a, path->ptr), from, to;
    if (!file.len) file = *path;
    kl_err err = kli_fs_read(text, a, file.ptr, KL_MAX_SOURCE_BYTES, e);
    if (err || !is_diff(file)) return err;
    ladder_patch p = {.path = file, .diff = *text, .error = e};
    if ((err = ladder_read_header(&from, &to, a, p.diff, file, e)) != KL_OK) return err;
    kl_str folder = kli_fs_dirname(a, file.ptr), below = kli_fs_join(a, folder.ptr, from.ptr);
    if (is_diff(*path))
        *path = kli_fs_join(a, folder.ptr, to.ptr);
    else if (!kl_str_eq(to, kli_fs_basename(path->ptr)))
        return kl_fail(e, KL_ENOENT, path->ptr, "no such file; %s makes %s", file.ptr, to.ptr);
    if (rungs == 0)
        return kl_fail(e, KL_ELIMIT, file.ptr, "more than %d edits, one on the other",
                       KL_MAX_RUNGS);
    if ((err = read_rung(&p.old, &below, a, rungs - 1, e)) != KL_OK) return err;
    err = ladder_apply(&p);
    *text = kl_arena_copy(a, kl_buf_str(&p.made));
    kl_buf_fini(&p.made);
    return err;
}

kl_err kl_kernel_read(kl_str *text, kl_str *path, kl_arena *a, kl_error *e) {
    return read_rung(text, path, a, KL_MAX_RUNGS, e);
}

kl_err kl_kernel_list(kl_str **names, size_t *n, kl_arena *a, const char *dir, kl_error *e) {
    kl_err err = kli_fs_list(names, n, a, dir, e);
    size_t kept = 0;
    for (size_t i = 0; !err && i < *n; i++) {
        kl_str name = (*names)[i], path = kli_fs_join(a, dir, name.ptr), diff, from;
        if (is_diff(name)) {
            err = kli_fs_read(&diff, a, path.ptr, KL_MAX_SOURCE_BYTES, e);
            if (!err) err = ladder_read_header(&from, &name, a, diff, path, e);
            if (!err && kli_fs_exists(kli_fs_join(a, dir, name.ptr).ptr)) continue;
        } else if (!kl_surface_of_path(name, 0))
            continue;
        if (!err) (*names)[kept++] = name;
    }
    *n = kept;
    return err;
}
