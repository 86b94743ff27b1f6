/* births.c - the contract that the births of a card show: of the clauses that a contract may say,
 * those that hold before each of them, those that each makes hold, and those that none ever met.
 *
 * A hypothesis, as the rest of a lifted card: one birth shows more than the mechanism needs, and
 * `library check` and trials say what of it stands.  Where facts show no change, there is none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "predicate.h"

typedef enum { CLAUSE_OPERATOR, CLAUSE_STAGE, CLAUSE_CHANGE, CLAUSE_ORDER } clause_role;

static const struct {
    clause_role role;
    const char *text;
} CLAUSES[] = {
#define CLAUSE(role, text) {CLAUSE_##role, text},
#include "clauses.def"
};

enum { MAX_ASKED_BIRTHS = 16 }; /* more of one group show nothing else */

/* Facts of a state of a lineage; what its task would tell is unknown where the task is not here. */
static bool facts_of_state(kl_facts *out, kl_arena *a, const kl_lineage *l, int state) {
    const kl_surface *s = kl_surface_by_name(l->surface);
    kl_kernel *k;
    kl_task *t = NULL;
    kl_str path;
    if (!s || !l->states[state].source.len ||
        kl_kernel_parse(&k, a, l->states[state].source, l->states[state].name, s, NULL,
                        kl_ignored()))
        return false;
    if (kl_task_find(&path, a, kl_arena_copy(a, l->task).ptr, kl_ignored()) ||
        kl_task_load(&t, a, path.ptr, kl_ignored()))
        t = NULL;
    const kl_workload *w = t ? kl_task_workload(t, l->workload, s->on) : NULL;
    if (t && !w) w = kl_task_workload(t, KL_S(""), s->on);
    *out = *kl_facts_of(a, k, t, w, NULL);
    return true;
}

typedef struct {
    kl_facts *before, *after;
    int n;
} asked_births;

static bool gather_births(asked_births *out, kl_arena *a, const kl_group *g) {
    *out = (asked_births){.before = KL_ARRAY(a, kl_facts, MAX_ASKED_BIRTHS),
                          .after = KL_ARRAY(a, kl_facts, MAX_ASKED_BIRTHS)};
    for (int i = 0; i < g->n_births && i < MAX_ASKED_BIRTHS; i++, out->n++) {
        const kl_lineage *l = g->births[i].lineage;
        const kl_edge *e = &l->edges[g->births[i].edge];
        if (!facts_of_state(&out->before[i], a, l, e->from) ||
            !facts_of_state(&out->after[i], a, l, e->to))
            return false;
    }
    KL_ASSERT(out->n <= MAX_ASKED_BIRTHS);
    return out->n > 0;
}

/* Is the answer the same on all of them? */
static bool all_answer(kl_arena *a, const char *clause, const kl_facts *states, int n, kl_fit fit) {
    for (int i = 0; i < n; i++) {
        kli_answer y;
        const kli_question q = {.facts = &states[i]};
        if (kli_predicate_ask(&y, a, kl_str_of(clause), &q, kl_ignored()) || y.fit != fit)
            return false;
    }
    return true;
}

void kli_contract_of_births(kl_card *c, kl_arena *a, const kl_group *g) {
    asked_births b;
    if (!gather_births(&b, a, g)) return;
    for (size_t i = 0; i < KL_COUNT(CLAUSES); i++) {
        const char *text = CLAUSES[i].text;
        const clause_role role = CLAUSES[i].role;
        const bool held = all_answer(a, text, b.before, b.n, KL_FIT_MET),
                   lacked = all_answer(a, text, b.before, b.n, KL_FIT_VIOLATED);
        KL_ASSERT(!(held && lacked));
        if (held && (role == CLAUSE_OPERATOR || role == CLAUSE_STAGE))
            *KL_PUSH(a, c->needs, c->n_needs) = kl_str_of(text);
        if (lacked && (role == CLAUSE_STAGE || role == CLAUSE_CHANGE) &&
            all_answer(a, text, b.after, b.n, KL_FIT_MET))
            *KL_PUSH(a, c->brings, c->n_brings) = kl_str_of(text);
        if (lacked && role == CLAUSE_ORDER)
            *KL_PUSH(a, c->excludes, c->n_excludes) = kl_str_of(text);
    }
    if (c->n_brings) return;
    c->n_needs = c->n_excludes = 0; /* it could not be refused where it has been applied */
}
