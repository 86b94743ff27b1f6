/* parse.c - a lineage back from its document, and whether it can be one.
 *
 * What is checked is what every later step takes for granted: the id is the hash of the document,
 * edge i joins state i to state i + 1, each hash is the identity of the source beside it, the edits
 * lead where they say, every number has the key and the receipt of a verdict (law 10), every state
 * has a verdict (law 4), an edge that pays has a forward edit. Whether the verdicts say so too is
 * the journal's to know.  A document may come from anywhere: nothing in it is trusted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lineage_impl.h"
#include "base/record.h"

typedef struct {
    kl_lineage *l;
    kl_arena *a;
    kl_str file;
    const kl_surface *surface;
    kl_error *e;
    kl_err err;     /* of the first thing that was wrong; everything after it is skipped */
    const char *at; /* "states[2]" */
} checking;

static void parse_wrong(checking *p, const char *fmt, ...) KL_PRINTF(2, 3);
static void parse_wrong(checking *p, const char *fmt, ...) {
    if (p->err) return;
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const kl_str file = kl_arena_copy(p->a, p->file);
    p->err =
        kl_fail(p->e, KL_EINVAL, file.ptr, "%s%s%s", p->at ? p->at : "", p->at ? ": " : "", text);
}

static void parse_enter(checking *p, const char *list, int i) {
    p->at = kl_arena_printf(p->a, "%s[%d]", list, i).ptr;
}

static void check_interval(checking *p, double ratio, double low, double high) {
    if (!(low <= ratio && ratio <= high)) parse_wrong(p, "the ratio is not within its interval");
}

/* The kernel's text must have the identity that is written beside it. */
static void check_source(checking *p, kl_str source, kl_str identity) {
    kl_kernel *k;
    kl_error e = {0};
    if (p->err) return;
    if (kl_kernel_parse(&k, p->a, source, KL_S("source"), p->surface, NULL, &e))
        parse_wrong(p, "its source is no kernel: %s", e.message);
    else if (!kl_str_eq(kl_str_of(k->hash), identity))
        parse_wrong(p, "its hash is not that of its source");
}

/* Edits as they are kept are a proposal without words. */
static void check_edits(checking *p, const char *which, kl_str edits, kl_str from, kl_str to) {
    kl_proposal proposal;
    kl_error e = {0};
    kl_str made = {0};
    if (p->err) return;
    kl_err err = kl_proposal_parse(&proposal, p->a, edits, p->surface, &e);
    if (!err && proposal.kind != KL_PROPOSAL_EDITS)
        err = kl_fail(&e, KL_EPARSE, NULL, "they are no edits");
    if (!err) err = kl_edits_apply(&made, p->a, from, proposal.edits, proposal.n_edits, &e);
    if (!err && !kl_str_eq(made, to)) err = kl_fail(&e, KL_EINVAL, NULL, "they make another text");
    if (err) parse_wrong(p, "its %s edits do not lead where it says: %s", which, e.message);
}

static void check_state(checking *p, const kl_state *s) {
    check_interval(p, s->ratio, s->low, s->high);
    check_source(p, s->source, s->hash);
}

static void check_forward(checking *p, const kl_edge *d) {
    check_interval(p, d->forward_ratio, d->forward_low, d->forward_high);
    check_interval(p, d->recovered, d->recovered_low, d->recovered_high);
    check_source(p, d->forward_source, d->forward_hash);
    check_edits(p, "forward", d->forward, p->l->states[d->from].source, d->forward_source);
}

/* What the comparison means.  A document without floor and call was made by the rule's first form:
 * the interval alone. */
static void settle_call(checking *p, kl_edge *d) {
    d->has_call = d->call != KLI_EDGE_DEFAULTS.call;
    if (d->has_call != (d->noise >= 0))
        return parse_wrong(p, "its gain has a floor without a call, or a call without a floor");
    if (!d->has_call) d->noise = 0;
    const kl_decision most = kl_decide(d->gain_low, d->gain_high, d->noise, true);
    if (!d->has_call) d->call = most;
    if ((d->call == KL_DECISION_FASTER || d->call == KL_DECISION_SLOWER) && d->call != most)
        parse_wrong(p, "its gain is called %s, and its interval and floor do not say so",
                    kl_decision_name(d->call));
}

static void check_gain(checking *p, kl_edge *d) {
    if (!d->gain_verdict_key.len)
        return parse_wrong(p, "an edge was compared with nothing: \"gain\" is null");
    check_interval(p, d->gain, d->gain_low, d->gain_high);
    settle_call(p, d);
    if (!p->err && d->pays != (d->call == KL_DECISION_FASTER))
        parse_wrong(p, "it says that it %s, and its gain is %s", d->pays ? "pays" : "does not pay",
                    kl_decision_name(d->call));
}

static void check_edge(checking *p, kl_edge *d, int i) {
    const kl_state *from = &p->l->states[i], *to = &p->l->states[i + 1];
    KL_ASSERT(i >= 0 && i + 1 < p->l->n_states);
    d->before = from->traits;
    d->after = to->traits;
    if (d->from != i || d->to != i + 1)
        return parse_wrong(p, "it does not join state %d to state %d", i, i + 1);
    if (!kl_action_valid(d->action)) parse_wrong(p, "its action is no word of the vocabulary");
    check_edits(p, "backward", d->backward, to->source, from->source);
    check_gain(p, d);
    if (d->forward_hash.len)
        check_forward(p, d);
    else if (d->pays && !d->witness.len)
        parse_wrong(p, "it pays and has no forward edit");
}

static void check_chain(checking *p) {
    kl_lineage *l = p->l;
    if (l->n_states != l->n_edges + 1)
        return parse_wrong(p, "%d states cannot be joined by %d edges", l->n_states, l->n_edges);
    for (int i = 0; !p->err && i < l->n_states; i++) {
        parse_enter(p, "states", i);
        check_state(p, &l->states[i]);
    }
    for (int i = 0; !p->err && i < l->n_edges; i++) {
        parse_enter(p, "edges", i);
        check_edge(p, &l->edges[i], i);
    }
    p->at = "naive";
    if (!p->err && l->naive.hash.len) check_state(p, &l->naive);
}

static void check_document(checking *p, const json_t *o) {
    const kl_lineage *l = p->l;
    if (!l->name.len || !l->platform.len)
        parse_wrong(p, "a lineage has a name and a platform, and this one has not");
    p->surface = kl_surface_by_name(l->surface);
    if (!p->surface) parse_wrong(p, "the surface '%.60s' is unknown", l->surface.ptr);
    if (!kl_str_eq(l->id, kli_lineage_id(p->a, o)))
        parse_wrong(p, "its id is not the hash of the document: it was changed after it was made");
    if (!p->err) check_chain(p);
}

kl_err kl_lineage_parse(kl_lineage *out, kl_arena *a, kl_str json, kl_str file, kl_error *e) {
    json_t *o = NULL;
    checking p = {.l = out, .a = a, .file = file, .e = e};
    *out = (kl_lineage){0};
    kl_err err = kli_json_parse(&o, json, file, e);
    if (err) return err;
    err = kli_record_read(out, &KL_LINEAGE, a, o, file, e);
    if (!err) check_document(&p, o);
    json_decref(o);
    KL_ASSERT(err || p.err || out->n_states == out->n_edges + 1);
    return err ? err : p.err;
}
