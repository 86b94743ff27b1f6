/* link.c - which answer of a model became which step.
 *
 * The journal keeps questions and steps apart.  What joins them is their content: the reply,
 * applied to the parent, gives the text that was judged.  Steps and answers of a track are in the
 * same order, so each is looked for behind the one before.  A step of which nothing was judged has
 * no such proof: it takes the answer between its neighbours', and says so.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset_impl.h"

static bool gives(const kl_dataset_step *s, kl_str reply, kl_arena *a) {
    kl_proposal p;
    kl_str made;
    const kl_surface *surface = kl_surface_by_name(s->surface);
    return surface && kl_proposal_parse(&p, a, reply, surface, kl_ignored()) == KL_OK &&
           p.kind != KL_PROPOSAL_DONE &&
           kl_proposal_apply(&made, a, s->parent_source, &p, kl_ignored()) == KL_OK &&
           kl_str_eq(made, s->source);
}

static void join_step(kl_dataset_step *s, kli_question *q, int step, const char *why) {
    s->link = kl_str_of(why);
    s->reply = q->reply;
    s->cost_microusd = q->cost_microusd;
    q->step = step;
}

static void link_judged(kl_dataset_step *steps, int n_steps, kli_question *asked, int n_asked,
                        int *which) {
    int from = 0;
    for (int i = 0; i < n_steps; i++) {
        which[i] = -1;
        if (!kli_is_change(&steps[i]) || !steps[i].source.len) continue;
        kl_arena *own = kl_arena_new(); /* of proposals that are tried and dropped */
        int j = from;
        while (j < n_asked && !gives(&steps[i], asked[j].reply, own)) j++;
        kl_arena_free(own);
        if (j == n_asked) continue; /* no model's: a card's patch was tried */
        join_step(&steps[i], &asked[j], i, "applied");
        which[i] = j;
        from = j + 1;
    }
}

/* Where the answers of the next step that is known begin. */
static int link_end(const int *which, int n_steps, int i, int n_asked) {
    while (++i < n_steps)
        if (which[i] >= 0) return which[i];
    return n_asked;
}

void kli_link(kl_dataset_step *steps, int n_steps, kli_question *asked, int n_asked, int *which) {
    link_judged(steps, n_steps, asked, n_asked, which);
    int from = 0;
    for (int i = 0; i < n_steps; i++) {
        if (which[i] >= 0) from = which[i] + 1;
        if (which[i] >= 0 || !kli_is_change(&steps[i]) || steps[i].source.len) continue;
        const int end = link_end(which, n_steps, i, n_asked);
        int j = from;
        while (j < end && (asked[j].prose || asked[j].step >= 0)) j++;
        if (j >= end) continue;
        join_step(&steps[i], &asked[j], i, "order");
        which[i] = j;
        from = j + 1;
    }
}
