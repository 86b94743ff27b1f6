/* group.c - which edges teach the same.
 *
 * Two edges belong together when they carry the same action, on the same surface, and one of the
 * same traits rose: the action's own witnesses where it has any, everything that rose where it has
 * none.  Loci differ from kernel to kernel by nature; the model that writes the card sees them all.
 * Source: KLineage paper, section 3.3.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <string.h>

#define MAX_GROUPS 512

/* The traits of an edge that speak for its action. */
static kl_str signature(kl_arena *a, const kl_edge *edge, const kl_action *action) {
    kl_str own = {0}, rest = edge->raised;
    for (kl_str w; action && kli_next_word(&w, &rest);)
        if (kli_words_have(kl_str_of(action->witness), w)) own = kli_words_with(a, own, w);
    return own.len ? own : edge->raised;
}

static kl_str common(kl_arena *a, kl_str x, kl_str y) {
    kl_str both = {0};
    for (kl_str w; kli_next_word(&w, &x);)
        if (kli_words_have(y, w)) both = kli_words_with(a, both, w);
    return both;
}

static bool group_teaches(const kl_edge *edge) {
    return edge->pays && edge->call == KL_DECISION_FASTER && edge->forward_source.len &&
           !kl_str_eq(edge->witness, KL_S("failed"));
}

static kl_group *home(kl_group *groups, int n, kl_arena *a, kl_str action, kl_str surface,
                      kl_str raised) {
    for (int i = 0; i < n; i++) {
        bool same = kl_str_eq(groups[i].id, action) && kl_str_eq(groups[i].surface, surface);
        bool alike =
            common(a, groups[i].raised, raised).len || (!raised.len && !groups[i].raised.len);
        if (same && alike) return &groups[i];
    }
    return NULL;
}

static void add_birth(kl_group *g, kl_arena *a, const kl_lineage *l, int edge) {
    __typeof__(g->births) birth = KL_PUSH(a, g->births, g->n_births);
    birth->lineage = l;
    birth->edge = edge;
}

static void add_edge(kl_group *groups, int *n, kl_arena *a, const kl_lineage *l, int i) {
    const kl_edge *edge = &l->edges[i];
    const kl_action *action = kl_action_find(edge->action);
    kl_str raised = signature(a, edge, action);
    kl_group *g = home(groups, *n, a, edge->action, l->surface, raised);
    if (!g && *n == MAX_GROUPS) return;
    if (!g) {
        KL_ASSERT(*n < MAX_GROUPS);
        g = &groups[(*n)++];
        *g = (kl_group){
            .action = action, .id = edge->action, .surface = l->surface, .raised = raised};
    } else {
        g->raised = common(a, g->raised, raised);
    }
    add_birth(g, a, l, i);
}

static bool group_is_taken(const kl_group *groups, int n, kl_str name) {
    for (int i = 0; i < n; i++)
        if (kl_str_eq(groups[i].name, name)) return true;
    return false;
}

/* "pack_b" on c becomes pack-b-c; a second group of the same action is told apart by the case it
 * was born from and a number, which a name that is cut keeps. */
static void name_group(kl_group *groups, int i, kl_arena *a) {
    kl_group *g = &groups[i];
    kl_str plain = kl_arena_printf(a, "%.*s-%.*s", KL_STR_ARG(g->id), KL_STR_ARG(g->surface));
    kl_str by_case = kli_slug(a, kl_arena_printf(a, "%.*s-%.*s", KL_STR_ARG(plain),
                                                 KL_STR_ARG(g->births[0].lineage->case_name)));
    g->name = kli_slug(a, plain);
    for (int number = i; group_is_taken(groups, i, g->name); number++)
        g->name = kli_slug(
            a, kl_arena_printf(a, "%.*s-%d", KL_STR_ARG(kli_text_cut(by_case, 58)), number));
}

void kl_skill_group(kl_group **out, int *n, kl_arena *a, const kl_lineage *lineages,
                    int n_lineages) {
    *out = KL_ARRAY(a, kl_group, MAX_GROUPS);
    *n = 0;
    for (int i = 0; i < n_lineages; i++)
        for (int j = 0; j < lineages[i].n_edges; j++)
            if (group_teaches(&lineages[i].edges[j])) add_edge(*out, n, a, &lineages[i], j);
    for (int i = 0; i < *n; i++) name_group(*out, i, a);
}
