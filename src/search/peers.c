/* peers.c - what the policies that follow other programs share.
 *
 * Prose that a model writes - a plan, a review, a summary, a rule - goes into later prompts.  It is
 * data (law 7): printable, bounded, quoted. Not here: what to ask and what becomes of the answer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"
#include "base/hash.h"
#include <string.h>

/* ---- prose ------------------------------------------------------------------------------- */

/* Not in the middle of a character. */
static kl_str peers_cut(kl_str s, size_t most) {
    if (s.len <= most) return s;
    while (most && ((unsigned char)s.ptr[most] & 0xc0) == 0x80) most--;
    return (kl_str){s.ptr, most};
}

kl_str kli_prose_clean(kl_arena *a, kl_str text, size_t most) {
    kl_buf b = {0};
    const kl_str kept = peers_cut(kl_str_trim(text), most);
    for (size_t i = 0; i < kept.len; i++) {
        const unsigned char c = (unsigned char)kept.ptr[i];
        if ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t')
            kl_buf_add(&b, (kl_str){kept.ptr + i, 1});
    }
    return kl_str_trim(kl_buf_take(&b, a));
}

kl_str kli_prose_quote(kl_arena *a, kl_str text) {
    kl_str line;
    kl_buf b = {0};
    while (kl_str_cut(&line, &text, '\n')) kl_buf_printf(&b, "> %.*s\n", KL_STR_ARG(line));
    return kl_str_trim(kl_buf_take(&b, a));
}

static kli_search_dialog peers_dialog(kl_search *s, const char *phase, kl_str rules,
                                      kl_str question) {
    kli_search_dialog talk = {0};
    kl_track_phase(s->track, phase);
    kli_search_dialog_add(&talk, s->arena, KL_ROLE_SYSTEM, rules);
    kli_search_dialog_add(&talk, s->arena, KL_ROLE_USER, question);
    return talk;
}

/* A text that was cut off at the token limit is used as far as it goes: it is cut here anyway. */
kl_err kli_prose_ask(kl_search *s, kl_str *out, const char *purpose, const char *prompt,
                     const kli_point *about, const kl_prompt_value *own, size_t n, kl_error *e) {
    kl_reply reply;
    *out = (kl_str){0};
    const char *rules = kl_arena_printf(s->arena, "%s_rules", prompt).ptr;
    const kli_search_dialog talk =
        peers_dialog(s, purpose, kli_search_prompt(s, rules, about, own, n),
                     kli_search_prompt(s, prompt, about, own, n));
    kl_err err = kli_search_ask(s, &reply, &talk, purpose, about->kernel, e);
    if (!err && reply.stop != KL_STOP_REFUSED)
        *out = kli_prose_clean(s->arena, reply.text, KLI_PROSE_BYTES);
    return err;
}

/* ---- kernels ----------------------------------------------------------------------------- */

kl_err kli_code_propose(kl_search *s, kli_outcome *out, const char *purpose, kl_str question,
                        const kli_point *base, kl_error *e) {
    const kli_search_dialog talk = peers_dialog(s, purpose, kli_search_rules(s), question);
    return kli_search_propose(s, out, &talk, purpose, base, e);
}

void kli_show_kernel(const kl_search *s, kl_buf *b, const kli_point *p) {
    kl_buf_printf(b, "```%.*s\n%.*s%s```\n\nWhat the gate says of it:\n\n%.*s\n",
                  KL_STR_ARG(kli_search_tag(s)), KL_STR_ARG(p->kernel->source),
                  kl_str_ends(p->kernel->source, KL_S("\n")) ? "" : "\n",
                  KL_STR_ARG(kl_rewrite_feedback(s->arena, &p->verdict)));
}

/* Text that does not even parse is a base for edits as well; then it has nothing but its source and
 * an identity. */
static kl_kernel *peers_kernel_of(kl_search *s, kl_str source) {
    kl_kernel *k = NULL;
    const kl_surface *surface = s->o.start->surface;
    if (kl_kernel_parse(&k, s->arena, source, KL_S("candidate"), surface, NULL, kl_ignored()) ==
        KL_OK)
        return k;
    k = KL_NEW(s->arena, kl_kernel);
    k->surface = surface;
    k->path = KL_S("candidate");
    k->source = source;
    memcpy(k->hash, kli_hash_of(source).hex, sizeof k->hash);
    return k;
}

bool kli_point_failed(kl_search *s, kli_point *out, const kli_outcome *o, const kli_point *base) {
    kl_str source;
    if (o->ended != KLI_FAILED ||
        kl_proposal_apply(&source, s->arena, base->kernel->source, &o->proposal, kl_ignored()))
        return false;
    *out = (kli_point){.kernel = peers_kernel_of(s, source), .verdict = o->verdict};
    return true;
}

bool kli_point_timed(const kli_outcome *o) {
    return o->ended >= KLI_UNDECIDED && o->verdict.outcome == KL_OUTCOME_PASS && o->point.ratio > 0;
}
