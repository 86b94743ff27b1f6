/* rows.c - which steps a format wants.
 *
 * Kernel-Smith, after its sections on training: for SFT what is correct and faster; for RL the best
 * steps alone, and never one beside the step before it, whose prompt would show the answer of the
 * other.  What is faster is the gate's word of the step (law 11): nothing is compared here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset_impl.h"
#include <stdlib.h>
#include <string.h>

enum { PAIRS_OF_ONE = 4 }; /* rejected replies beside one chosen: more repeat the same lesson */

bool kli_is_change(const kl_dataset_step *s) {
    return s->parent.len > 0 && !kl_str_eq(s->phase, KL_S("end"));
}

static bool is(kl_str s, const char *text) { return kl_str_eq(s, kl_str_of(text)); }

/* ---- SFT: correct, and faster ------------------------------------------------------------ */

static const char *not_verified(const kl_dataset_step *s) {
    static const char *const OUTCOMES[] = {"no_edit", "done",  "no_compile", "wrong",  "cheat",
                                           "hang",    "crash", "unstable",   "refused"};
    static const char *const CALLS[] = {"slower", "same", "undecided"};
    if (!kli_is_change(s)) return "no proposal: the start, a reference, or the end";
    for (size_t i = 0; i < KL_COUNT(OUTCOMES); i++)
        if (is(s->outcome, OUTCOMES[i])) return OUTCOMES[i];
    if (!is(s->outcome, "pass")) return "of an unknown outcome";
    for (size_t i = 0; i < KL_COUNT(CALLS); i++)
        if (is(s->call, CALLS[i])) return CALLS[i];
    return is(s->call, "faster") ? NULL : "not asked whether it is faster";
}

static const char *not_usable(const kl_dataset_step *s) {
    if (is(s->assurance, "C")) return "assurance C";
    if (is(s->link, "applied")) return NULL;
    return "no reply is known that gives it";
}

const char *kli_left_out(const kl_dataset_step *s, kl_dataset_format f) {
    if (!s->task_hash.len) return "of a task that no verdict of its track names";
    if (f == KL_DATASET_TRACE) return NULL;
    const char *why = not_verified(s);
    if (!why) why = not_usable(s);
    if (!why && f == KL_DATASET_RL && !s->best) why = "faster than its parent, and no new best";
    return why;
}

/* ---- RL: best steps ---------------------------------------------------------------------- */

static bool shows(const kl_dataset_step *s, kl_str source) {
    for (int i = 0; source.len && i < s->n_prompt; i++)
        if (memmem(s->prompt[i].content.ptr, s->prompt[i].content.len, source.ptr, source.len))
            return true;
    return false;
}

/* Does the prompt of one give away what the other is to find? */
static bool gives_away(const kl_dataset_step *x, const kl_dataset_step *y) {
    return kl_str_eq(x->parent, y->kernel) || shows(x, y->source);
}

static int by_gain(const void *x, const void *y) {
    const kl_dataset_step *a = *(kl_dataset_step *const *)x, *b = *(kl_dataset_step *const *)y;
    return a->gain != b->gain ? (a->gain < b->gain ? 1 : -1) : (a < b ? -1 : 1);
}

void kli_best_steps(const kli_samples *s, bool *take, kl_arena *a) {
    const kl_dataset_step **sorted = KL_ARRAY(a, const kl_dataset_step *, s->n + 1);
    int n = 0, kept = 0;
    for (int i = 0; i < s->n; i++)
        if (take[i]) sorted[n++] = &s->at[i];
    qsort(sorted, (size_t)n, sizeof(const kl_dataset_step *), by_gain);
    for (int i = 0; i < n; i++) {
        const kl_dataset_step *x = sorted[i];
        bool told = false;
        for (int j = 0; !told && j < kept; j++)
            told = kl_str_eq(x->task, sorted[j]->task) &&
                   (gives_away(x, sorted[j]) || gives_away(sorted[j], x));
        if (told)
            take[x - s->at] = false;
        else
            sorted[kept++] = x;
    }
}

/* ---- preference: pairs ------------------------------------------------------------------- */

/* By the gate: what is wrong, or right and slower.  What a busy machine left open says nothing. */
bool kli_is_rejected(const kl_dataset_step *s) {
    static const char *const BAD[] = {"no_compile", "wrong", "cheat", "hang", "crash", "refused"};
    if (!kli_is_change(s) || !is(s->link, "applied")) return false;
    for (size_t i = 0; i < KL_COUNT(BAD); i++)
        if (is(s->outcome, BAD[i])) return true;
    return is(s->outcome, "pass") && is(s->call, "slower");
}

static bool one_state(const kl_dataset_step *x, const kl_dataset_step *y) {
    return kl_str_eq(x->parent, y->parent) && kl_str_eq(x->task_hash, y->task_hash) &&
           kl_str_eq(x->workload, y->workload) && kl_str_eq(x->platform, y->platform) &&
           !kl_str_eq(x->reply, y->reply);
}

static bool one_prompt(const kl_dataset_step *x, const kl_dataset_step *y) {
    bool same = x->n_prompt == y->n_prompt;
    for (int i = 0; same && i < x->n_prompt; i++)
        same = kl_str_eq(x->prompt[i].content, y->prompt[i].content);
    return same;
}

static kl_dataset_pair pair_of(const kl_dataset_step *x, const kl_dataset_step *y) {
    return (kl_dataset_pair){.prompt = x->prompt,
                             .n_prompt = x->n_prompt,
                             .chosen = x->completion,
                             .n_chosen = 1,
                             .rejected = y->completion,
                             .n_rejected = 1,
                             .same_prompt = one_prompt(x, y),
                             .run = x->run,
                             .track = x->track,
                             .task = x->task,
                             .task_hash = x->task_hash,
                             .family = x->family,
                             .workload = x->workload,
                             .surface = x->surface,
                             .platform = x->platform,
                             .policy = x->policy,
                             .model = x->model,
                             .replayed = x->replayed || y->replayed,
                             .parent = x->parent,
                             .chosen_n = x->n,
                             .chosen_gain = x->gain,
                             .chosen_low = x->gain_low,
                             .chosen_high = x->gain_high,
                             .chosen_verdict = x->verdict,
                             .rejected_track = y->track,
                             .rejected_n = y->n,
                             .rejected_outcome = y->outcome,
                             .rejected_call = y->call,
                             .rejected_why = y->why,
                             .rejected_verdict = y->verdict,
                             .chosen_at = x,
                             .rejected_at = y};
}

/* Those of the very same prompt first. */
kl_dataset_pair *kli_pairs(int *n, const kli_samples *s, const bool *take, kl_arena *a) {
    kl_dataset_pair *pairs = NULL;
    *n = 0;
    for (int i = 0; i < s->n; i++) {
        int of_this = 0;
        for (int round = 0; take[i] && round < 2; round++)
            for (int j = 0; j < s->n && of_this < PAIRS_OF_ONE; j++) {
                const kl_dataset_step *x = &s->at[i], *y = &s->at[j];
                if (!kli_is_rejected(y) || !one_state(x, y) || one_prompt(x, y) != !round) continue;
                *KL_PUSH(a, pairs, *n) = pair_of(x, y);
                of_this++;
            }
    }
    return pairs;
}
