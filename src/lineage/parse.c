/* parse.c - a lineage back from its document, and whether it can be one.
 *
 * What is checked is what every later step takes for granted: the id is the hash of the document, edge i joins
 * state i to state i + 1, each hash is the identity of the source beside it, the edits lead where they say, every
 * number has the key and the receipt of a verdict (law 10), every state has a verdict (law 4), an edge that pays
 * has a forward edit. Whether the verdicts say so too is the journal's to know.  A document may come from anywhere:
 * nothing in it is trusted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lineage_impl.h"
#include <math.h>
#include <string.h>

#define MAX_REJECTIONS 4096 /* of one list in a document; a walk of 64 steps with 8 rejections each has 512 */

typedef struct {
    kl_lineage *out;
    kl_arena *a;
    kl_str file;
    const kl_surface *surface;
    kl_error *e;
    kl_err err;     /* of the first thing that was wrong; everything after it is skipped */
    const char *at; /* "states[2]" */
} parsing;

static void wrong(parsing *p, kl_err code, const char *fmt, ...) KL_PRINTF(3, 4);
static void wrong(parsing *p, kl_err code, const char *fmt, ...) {
    if (p->err) return;
    char text[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const kl_str file = kl_arena_copy(p->a, p->file);
    p->err = kl_fail(p->e, code, file.ptr, "%s%s%s", p->at ? p->at : "", p->at ? ": " : "", text);
}

static const char *place(parsing *p, const char *list, int i) {
    return p->at = kl_arena_printf(p->a, "%s[%d]", list, i).ptr;
}

/* ---- fields -------------------------------------------------------------------------------------------------- */

static kl_str text(parsing *p, const json_t *o, const char *key) {
    kl_str value = {0};
    kl_error e = {0};
    if (p->err) return value;
    if (kl_json_text(&value, o, key, p->file, &e)) wrong(p, KL_EPARSE, "%s", e.message);
    return kl_arena_copy(p->a, value);
}

static double real(parsing *p, const json_t *o, const char *key) {
    const double v = kl_json_real_or(o, key, NAN);
    if (!isfinite(v) || v < 0) wrong(p, KL_EPARSE, "\"%s\" is missing or no number from 0 up", key);
    return isfinite(v) ? v : 0;
}

static int64_t whole(parsing *p, const json_t *o, const char *key) {
    const int64_t v = kl_json_int_or(o, key, -1);
    if (v < 0) wrong(p, KL_EPARSE, "\"%s\" is missing or no whole number from 0 up", key);
    return v < 0 ? 0 : v;
}

static const json_t *list(parsing *p, const json_t *o, const char *key, size_t max) {
    const json_t *v = json_object_get(o, key);
    if (!json_is_array(v))
        wrong(p, KL_EPARSE, "\"%s\" is missing or no list", key);
    else if (json_array_size(v) > max)
        wrong(p, KL_ELIMIT, "\"%s\" has %zu items; the limit is %zu", key, json_array_size(v), max);
    return p->err ? NULL : v;
}

/* An object, or NULL for null. */
static const json_t *maybe(parsing *p, const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    if (!json_is_object(v) && !json_is_null(v))
        wrong(p, KL_EPARSE, "\"%s\" is missing or neither an object nor null", key);
    return json_is_object(v) ? v : NULL;
}

static bool is_hash(kl_str s) { return s.len == 64 && strspn(s.ptr, "0123456789abcdef") == 64; }

static kl_str hash(parsing *p, const json_t *o, const char *key) {
    const kl_str v = text(p, o, key);
    if (!p->err && !is_hash(v)) wrong(p, KL_EINVAL, "\"%s\" is not 64 hexadecimal digits", key);
    return v;
}

static void interval(parsing *p, const json_t *o, double *ratio, double *low, double *high) {
    *ratio = real(p, o, "ratio");
    *low = real(p, o, "low");
    *high = real(p, o, "high");
    if (!p->err && !(*low <= *ratio && *ratio <= *high)) wrong(p, KL_EINVAL, "the ratio is not within its interval");
}

/* The kernel's text, which must have the identity that is written beside it. */
static kl_str source(parsing *p, const json_t *o, kl_str identity) {
    const kl_str v = text(p, o, "source");
    kl_kernel *k;
    kl_error e = {0};
    if (p->err) return v;
    if (kl_kernel_parse(&k, p->a, v, KL_S("source"), p->surface, NULL, &e))
        wrong(p, KL_EINVAL, "its source is no kernel: %s", e.message);
    else if (!kl_str_eq(kl_str_of(k->hash), identity))
        wrong(p, KL_EINVAL, "its hash is not that of its source");
    return v;
}

/* Edits as they are kept are a proposal without words. */
static void leads(parsing *p, const char *which, kl_str edits, kl_str from, kl_str to) {
    kl_proposal proposal;
    kl_error e = {0};
    kl_str made = {0};
    if (p->err) return;
    kl_err err = kl_proposal_parse(&proposal, p->a, edits, p->surface, &e);
    if (!err && proposal.kind != KL_PROPOSAL_EDITS) err = kl_fail(&e, KL_EPARSE, NULL, "they are no edits");
    if (!err) err = kl_edits_apply(&made, p->a, from, proposal.edits, proposal.n_edits, &e);
    if (!err && !kl_str_eq(made, to)) err = kl_fail(&e, KL_EINVAL, NULL, "they make another text");
    if (err) wrong(p, KL_EINVAL, "its %s edits do not lead where it says: %s", which, e.message);
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

static kl_rejection *rejections(parsing *p, int *n, const json_t *o) {
    const json_t *all = list(p, o, "rejections", MAX_REJECTIONS);
    if (!all) return NULL;
    kl_rejection *r = KL_ARRAY(p->a, kl_rejection, json_array_size(all) + 1);
    for (*n = 0; !p->err && *n < (int)json_array_size(all); ++*n) {
        const json_t *item = json_array_get(all, (size_t)*n);
        r[*n] = (kl_rejection){.stage = text(p, item, "stage"),
                               .action = text(p, item, "action"),
                               .locus = text(p, item, "locus"),
                               .why = text(p, item, "why"),
                               .symptom = text(p, item, "symptom"),
                               .verdict_key = text(p, item, "verdict"),
                               .edit = text(p, item, "edit")};
        if (!p->err && r[*n].verdict_key.len && !is_hash(r[*n].verdict_key))
            wrong(p, KL_EINVAL, "rejections[%d]: the key of its verdict is not 64 hexadecimal digits", *n);
    }
    return r;
}

static void state(parsing *p, kl_state *s, const json_t *o) {
    *s = (kl_state){.name = text(p, o, "name"),
                    .hash = hash(p, o, "hash"),
                    .median_ns = whole(p, o, "median_ns"),
                    .unsettled = kl_json_bool_or(o, "unsettled", false)};
    interval(p, o, &s->ratio, &s->low, &s->high);
    s->verdict_key = hash(p, o, "verdict");
    s->receipt = hash(p, o, "receipt");
    const json_t *traits = json_object_get(o, "traits");
    if (json_is_object(traits))
        kl_traits_parse(&s->traits, p->a, traits);
    else
        wrong(p, KL_EPARSE, "\"traits\" is missing or no object");
    s->source = source(p, o, s->hash);
}

static void forward(parsing *p, kl_edge *d, const json_t *o) {
    d->mechanical = kl_json_bool_or(o, "mechanical", false);
    d->forward_hash = hash(p, o, "hash");
    interval(p, o, &d->forward_ratio, &d->forward_low, &d->forward_high);
    d->forward_verdict_key = hash(p, o, "verdict");
    d->forward_receipt = hash(p, o, "receipt");
    d->forward = text(p, o, "edits");
    d->forward_source = source(p, o, d->forward_hash);
    leads(p, "forward", d->forward, p->out->states[d->from].source, d->forward_source);
    const json_t *recovered = maybe(p, o, "recovered");
    if (!recovered) return;
    interval(p, recovered, &d->recovered, &d->recovered_low, &d->recovered_high);
    d->recovered_verdict_key = hash(p, recovered, "verdict");
    d->recovered_receipt = hash(p, recovered, "receipt");
}

/* What the race means.  A document without it was made by the rule's first form: the interval alone. */
static void call(parsing *p, kl_edge *d, const json_t *g) {
    d->has_call = json_object_get(g, "call") != NULL;
    if (d->has_call) {
        d->floor = real(p, g, "floor");
        const kl_str word = text(p, g, "call");
        int c = KL_SAME;
        while (c <= KL_UNDECIDED && !kl_str_eq(word, kl_str_of(kl_call_name((kl_call)c)))) c++;
        if (c > KL_UNDECIDED) return wrong(p, KL_EPARSE, "the call '%.60s' is unknown", word.len ? word.ptr : "");
        d->call = (kl_call)c;
    }
    const kl_call most = kl_decide(d->gain_low, d->gain_high, d->floor, true);
    if (!d->has_call) d->call = most;
    if ((d->call == KL_FASTER || d->call == KL_SLOWER) && d->call != most)
        wrong(p, KL_EINVAL, "its gain is called %s, and its interval and floor do not say so", kl_call_name(d->call));
}

static void gain(parsing *p, kl_edge *d, const json_t *o) {
    const json_t *g = maybe(p, o, "gain");
    if (!p->err && !g) wrong(p, KL_EINVAL, "an edge was compared with nothing: \"gain\" is null");
    if (p->err) return;
    interval(p, g, &d->gain, &d->gain_low, &d->gain_high);
    d->gain_verdict_key = hash(p, g, "verdict");
    d->gain_receipt = hash(p, g, "receipt");
    call(p, d, g);
}

static void edge(parsing *p, kl_edge *d, const json_t *o, int i) {
    const kl_state *from = &p->out->states[i], *to = &p->out->states[i + 1];
    *d = (kl_edge){.from = i, .to = i + 1, .before = from->traits, .after = to->traits};
    if (whole(p, o, "from") != i || whole(p, o, "to") != i + 1)
        wrong(p, KL_EINVAL, "it does not join state %d to state %d", i, i + 1);
    d->action = text(p, o, "action");
    if (!p->err && !kl_action_valid(d->action)) wrong(p, KL_EINVAL, "its action is no word of the vocabulary");
    d->bundle = text(p, o, "bundle");
    d->locus = text(p, o, "locus");
    d->why = text(p, o, "why");
    d->decided = kl_arena_copy(p->a, kl_json_text_or(o, "decided", (kl_str){0}));
    d->here = kl_arena_copy(p->a, kl_json_text_or(o, "here", (kl_str){0}));
    d->raised = text(p, o, "raised");
    d->backward = text(p, o, "backward");
    leads(p, "backward", d->backward, to->source, from->source);
    gain(p, d, o);
    const json_t *f = maybe(p, o, "forward");
    if (f) forward(p, d, f);
    d->pays = d->call == KL_FASTER;
    if (!p->err && d->pays != kl_json_bool_or(o, "pays", false))
        wrong(p, KL_EINVAL, "it says that it %s, and its gain is %s", d->pays ? "does not pay" : "pays",
              kl_call_name(d->call));
    d->witness = kl_arena_copy(p->a, kl_json_text_or(f ? f : o, "witness", (kl_str){0}));
    if (d->pays && !f && !d->witness.len) wrong(p, KL_EINVAL, "it pays and has no forward edit");
    d->rejections = rejections(p, &d->n_rejections, o);
}

static void termination(parsing *p, const json_t *o) {
    const json_t *end = maybe(p, o, "termination");
    if (!end) wrong(p, KL_EPARSE, "\"termination\" is null");
    const kl_str how = text(p, end, "how");
    int t = KL_WALK_COMPLETE;
    while (t <= KL_WALK_INTERRUPTED && !kl_str_eq(how, kl_str_of(kl_termination_name((kl_termination)t)))) t++;
    if (t > KL_WALK_INTERRUPTED) wrong(p, KL_EPARSE, "the termination '%.60s' is unknown", how.len ? how.ptr : "");
    if (p->err) return;
    p->out->termination = (kl_termination)t;
    p->out->termination_why = text(p, end, "why");
}

static void identity(parsing *p, const json_t *o) {
    kl_lineage *l = p->out;
    const json_t *task = maybe(p, o, "task");
    if (!task) wrong(p, KL_EPARSE, "\"task\" is null");
    *l = (kl_lineage){.id = hash(p, o, "id"),
                      .name = text(p, o, "name"),
                      .created = text(p, o, "created"),
                      .task = text(p, task, "name"),
                      .task_hash = hash(p, task, "hash"),
                      .case_name = text(p, task, "case"),
                      .surface = text(p, o, "surface"),
                      .workload = text(p, o, "workload"),
                      .dtype = text(p, o, "dtype"),
                      .platform = text(p, o, "platform"),
                      .toolchain = text(p, o, "toolchain"),
                      .model = text(p, o, "model"),
                      .run = text(p, o, "run"),
                      .expert = text(p, o, "expert"),
                      .spent_microusd = whole(p, o, "spent_microusd"),
                      .estimated = kl_json_bool_or(o, "estimated", false)};
    if (!p->err && (!l->name.len || !l->platform.len))
        wrong(p, KL_EINVAL, "a lineage has a name and a platform, and this one has not");
    p->surface = kl_surface_by_name(l->surface);
    if (!p->err && !p->surface) wrong(p, KL_EINVAL, "the surface '%.60s' is unknown", l->surface.ptr);
    termination(p, o);
}

static void chain(parsing *p, const json_t *o) {
    kl_lineage *l = p->out;
    const json_t *states = list(p, o, "states", KL_MAX_STEPS + 1), *edges = list(p, o, "edges", KL_MAX_STEPS);
    if (p->err) return;
    l->n_states = (int)json_array_size(states);
    l->n_edges = (int)json_array_size(edges);
    if (l->n_states != l->n_edges + 1)
        return wrong(p, KL_EINVAL, "%d states cannot be joined by %d edges", l->n_states, l->n_edges);
    l->states = KL_ARRAY(p->a, kl_state, l->n_states);
    l->edges = KL_ARRAY(p->a, kl_edge, l->n_edges + 1);
    for (int i = 0; !p->err && i < l->n_states; i++) {
        place(p, "states", i);
        state(p, &l->states[i], json_array_get(states, (size_t)i));
    }
    for (int i = 0; !p->err && i < l->n_edges; i++) {
        place(p, "edges", i);
        edge(p, &l->edges[i], json_array_get(edges, (size_t)i), i);
    }
    p->at = NULL;
}

static void document(parsing *p, const json_t *o) {
    identity(p, o);
    if (!p->err && !kl_str_eq(p->out->id, kli_lineage_id(p->a, o)))
        wrong(p, KL_EINVAL, "its id is not the hash of the document: it was changed after it was made");
    if (p->err) return;
    chain(p, o);
    if (p->err) return;
    p->out->rejections = rejections(p, &p->out->n_rejections, o);
    const json_t *naive = maybe(p, o, "naive");
    p->at = "naive";
    if (naive) state(p, &p->out->naive, naive);
}

kl_err kl_lineage_parse(kl_lineage *out, kl_arena *a, kl_str json, kl_str file, kl_error *e) {
    json_t *o = NULL;
    parsing p = {.out = out, .a = a, .file = file, .e = e};
    *out = (kl_lineage){0};
    const kl_err err = kl_json_parse(&o, json, file, e);
    if (err) return err;
    kl_str schema = {0};
    if (kl_json_text(&schema, o, "schema", file, kl_ignored()) || !kl_str_eq(schema, KL_S("klineage/lineage")))
        wrong(&p, KL_EPARSE, "this is no lineage: \"schema\" is not \"klineage/lineage\"");
    else if (kl_json_int_or(o, "version", 0) != 1)
        wrong(&p, KL_EINVAL, "a lineage of version %lld, and this program reads version 1",
              (long long)kl_json_int_or(o, "version", 0));
    if (!p.err) document(&p, o);
    json_decref(o);
    return p.err;
}
