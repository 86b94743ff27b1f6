/* bestofn.c - policy bestofn: independent attempts, the best one kept.  The control that every
 * search has to beat at equal cost.
 *
 * Every attempt is the same request with nothing in between; the journal tells them apart by how
 * often they were asked. SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"

kl_err kli_policy_bestofn(kl_search *s, kl_error *e) {
    kli_outcome o;
    kl_err err = KL_OK;
    const kl_str question = kli_search_prompt(s, "search_once", &s->start, NULL, 0);
    while (!err && !kli_search_over(s)) {
        kl_track_log(s->track, "attempt %d", s->out->proposals + 1);
        err = kli_code_propose(s, &o, "generate", question, &s->start, e);
    }
    return err;
}
