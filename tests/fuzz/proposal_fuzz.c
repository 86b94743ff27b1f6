/* proposal_fuzz.c - any bytes as a model's reply, and as the source that it changes.
 *
 * Up to a line of percent signs the input is a source, behind it a reply.  What parses either
 * applies or says why; what it gives can be turned back into blocks that give the same text again.
 * Reading the traits and the facts of any source, and undoing what is in it, ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include <klineage/rewrite.h>

#include <string.h>

#include "kernel/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool contains(kl_str s, const char *part) {
    return s.len && memmem(s.ptr, s.len, part, strlen(part)) != NULL;
}

/* What marks the parts of blocks is data like any other in a source, but three spellings of it are
 * taken for the reply's own. */
static bool is_ordinary(kl_str s) {
    return !contains(s, "\\ No newline") && !contains(s, "```") && !contains(s, "<<<<<<<<<<<<") &&
           !contains(s, "============") && !contains(s, ">>>>>>>>>>>>");
}

static void check_between(kl_arena *a, kl_str from, kl_str to, const kl_surface *s) {
    kl_proposal p;
    kl_str out;
    kl_error e = {0};
    const kl_str text = kl_edits_between(a, from, to);
    if (kl_str_eq(from, to) || text.len > KL_MAX_REPLY_BYTES || !is_ordinary(from) ||
        !is_ordinary(to))
        return;
    KL_ASSERT(kl_proposal_parse(&p, a, text, s, &e) == KL_OK);
    KL_ASSERT(kl_edits_apply(&out, a, from, p.edits, p.n_edits, &e) == KL_OK);
    KL_ASSERT(kl_str_eq(out, to));
}

static void check_reply(kl_arena *a, kl_str source, kl_str reply, const kl_surface *s) {
    kl_proposal p;
    kl_str out;
    kl_error e = {0};
    kl_err err = kl_proposal_parse(&p, a, reply, s, &e);
    KL_ASSERT(err == KL_OK || ((err == KL_EPARSE || err == KL_ELIMIT) && e.message[0]));
    if (err) return;
    for (size_t i = 0; i < p.action.len; i++)
        KL_ASSERT((p.action.ptr[i] >= 'a' && p.action.ptr[i] <= 'z') ||
                  strchr("0123456789_:", p.action.ptr[i]));
    for (size_t i = 0; i < p.why.len; i++) KL_ASSERT((unsigned char)p.why.ptr[i] >= 0x20);
    err = kl_proposal_apply(&out, a, source, &p, &e);
    KL_ASSERT(err == KL_OK || ((err == KL_EINVAL || err == KL_ELIMIT) && e.message[0]));
    if (!err) check_between(a, source, out, s);
}

static void check_source(kl_arena *a, kl_str source, const kl_surface *s) {
    kl_kernel *k;
    kl_traits t;
    kl_undoing undoings[16];
    kl_error e = {0};
    if (kl_kernel_parse(&k, a, source, KL_S("k"), s, NULL, &e) != KL_OK) return;
    kl_traits_of(&t, a, k, NULL);
    (void)kl_facts_of(a, k, NULL, NULL, NULL);
    const int n = kl_rewrite_undo(undoings, 16, a, k);
    for (int i = 0; i < n; i++) check_between(a, source, undoings[i].source, s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const kl_str all = {(const char *)data, size};
    const char *mark = size ? memmem(data, size, "\n%%%%\n", 6) : NULL;
    const size_t cut = mark ? (size_t)(mark + 1 - all.ptr) : size, rest = mark ? cut + 5 : size;
    kl_arena *a = kl_arena_new();
    const kl_str source = {all.ptr, cut}, reply = {all.ptr + rest, size - rest};
    const kl_surface *s = kl_surface_each((int)(size % 5));
    check_reply(a, source, reply, s);
    check_source(a, source, s);
    check_between(a, source, reply, s);
    kl_arena_free(a);
    return 0;
}
