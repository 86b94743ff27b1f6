/* bestofn.c - policy bestofn: independent attempts, the best one kept.  The control that every
 * search has to beat at equal cost.
 *
 * Every attempt is the same request with nothing in between; the journal tells them apart by how
 * often they were asked. SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"

static void open_attempt(const kli_search *s, kli_search_dialog *talk) {
    kl_prompt_value values[] = {{"task", kli_search_task(s)},
                                {"tag", kli_search_tag(s)},
                                {"kernel", s->start.kernel->source},
                                {"feedback", kl_rewrite_feedback(s->arena, &s->start.verdict)}};
    kli_search_dialog_add(talk, s->arena, KL_ROLE_SYSTEM, kli_search_rules(s));
    kli_search_dialog_add(talk, s->arena, KL_ROLE_USER,
                          kl_prompt(s->arena, "search_once", values, (int)KL_COUNT(values)));
}

static kl_err bestofn_attempt(kli_search *s, const kli_search_dialog *talk, kl_error *e) {
    kl_reply reply;
    kli_outcome o;
    kl_track_phase(s->track, "generate");
    kl_track_log(s->track, "attempt %d", s->out->proposals + 1);
    kl_err err = kli_search_ask(s, &reply, talk, "generate", s->start.kernel, e);
    if (!err) err = kli_search_take(s, &o, &reply, &s->start, e);
    return err;
}

kl_err kli_policy_bestofn(kl_search_result *out, kl_track *t, const kl_search_opts *o,
                          kl_error *e) {
    kli_search s;
    kli_search_dialog talk = {0};
    kl_search_opts all = *o;
    all.library = NULL;
    all.patience = KL_MAX_PROPOSALS; /* attempts are independent: bad luck so far says nothing */
    kl_err err = kli_search_begin(&s, "bestofn", out, t, &all, e);
    if (err) return err;
    open_attempt(&s, &talk);
    while (!err && !kli_search_over(&s)) err = bestofn_attempt(&s, &talk, e);
    return kli_search_end(&s, err, e);
}
