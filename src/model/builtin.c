/* builtin.c - no model: the mechanical undoings of src/rewrite, said in the words of a proposal.
 *
 * It answers "deoptimize" with the first mechanical simplification of the subject that the
 * conversation has not seen yet, and knows its limits: what cannot be derived mechanically is DONE,
 * with the reason.  The same conversation gets the same answer. Not here: the simplifications
 * (rewrite/), patches of cards (skill/materialize.c).  Format: docs/formats/proposal.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"
#include <string.h>

#define MAX_UNDOINGS 64

static kl_err builtin_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    (void)a, (void)rest, (void)e;
    *self = NULL;
    return KL_OK;
}

/* It was said before, in this conversation, whatever became of it. */
static bool builtin_was_said(const kl_request *q, kl_str answer) {
    for (int i = 0; i < q->n; i++)
        if (q->messages[i].role == KL_ROLE_ASSISTANT &&
            kl_str_eq(kl_str_trim(q->messages[i].text), kl_str_trim(answer)))
            return true;
    return false;
}

static kl_str undo_next(kl_arena *a, const kl_request *q) {
    if (!q->subject) return KL_S("DONE: there is no kernel to simplify\n");
    kl_undoing *all = KL_ARRAY(a, kl_undoing, MAX_UNDOINGS);
    const int n = kl_rewrite_undo(all, MAX_UNDOINGS, a, q->subject);
    for (int i = 0; i < n; i++) {
        const kl_str edits = kl_str_trim(kl_edits_between(a, q->subject->source, all[i].source));
        const kl_action *action = kl_action_find(all[i].action);
        const kl_str answer = kl_arena_printf(
            a, "ACTION: %.*s\nLOCUS: %.*s\nWHY: %s\n\n%.*s\n", KL_STR_ARG(all[i].action),
            KL_STR_ARG(all[i].locus), action ? action->backward : "mechanical simplification",
            KL_STR_ARG(edits));
        if (edits.len && !builtin_was_said(q, answer)) return answer;
    }
    return KL_S("DONE: no mechanical simplification is left\n");
}

static bool purpose_is(const kl_request *q, const char *purpose) {
    return strcmp(q->purpose, purpose) == 0;
}

static kl_err builtin_ask(kl_reply *out, void *self, kl_arena *a, const kl_request *q,
                          kl_error *e) {
    (void)self, (void)e;
    if (purpose_is(q, "deoptimize"))
        out->text = undo_next(a, q);
    else if (purpose_is(q, "rederive"))
        out->text = KL_S("DONE: cannot derive an optimization without a model\n");
    else if (purpose_is(q, "lift")) /* the lift fills in what follows from the evidence */
        out->text = KL_S("## Intent\n\n## Anchor\n\n## Carrier\n\n## Preconditions\n\n## "
                         "Effect\n\n## Risks\n\n## "
                         "Scope\n\n## Verification\n");
    else
        out->text = KL_S("DONE: nothing to do without a model\n");
    out->text = kl_arena_copy(a, out->text);
    out->model = KL_S("builtin");
    return KL_OK;
}

const kl_provider kli_builtin = {
    .name = "builtin",
    .spec = "builtin",
    .doc = "no model: mechanical simplifications, free and without a network",
    .example = "builtin",
    .repeatable = true,
    .open = builtin_open,
    .ask = builtin_ask,
};
