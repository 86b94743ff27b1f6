/* facts.c - what a kernel's state is: facts of its task, of its loops, of the memories that it
 * fills, of the stage that it has reached on a device, and of its verdict.
 *
 * Declared once, in klineage/rewrite.def.  A fact is computed here and judged nowhere: what follows
 * from it is a predicate's business (skill/predicate.c).  SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"
#include "nests.h"

#include "base/json.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { FACTS_SWEPT_AGAIN = 16 }; /* turns that make reading an operand again worth a change */

#define ROW(id, name, kind, unit, doc) {name, KL_FACT_##kind, unit, doc},
static const kl_fact_row STATE_FACTS[] = {
#define KL_DEF_FACT ROW
#include <klineage/rewrite.def>
};
static const kl_fact_row LOOP_FACTS[] = {
#define KL_DEF_LOOP_FACT ROW
#include <klineage/rewrite.def>
};
static const kl_fact_row BUFFER_FACTS[] = {
#define KL_DEF_BUFFER_FACT ROW
#include <klineage/rewrite.def>
};
#undef ROW

_Static_assert(KL_COUNT(STATE_FACTS) == KL_FACT_COUNT, "a row for each fact of a state");
_Static_assert(KL_COUNT(LOOP_FACTS) == KL_LOOP_COUNT, "a row for each fact of a loop");
_Static_assert(KL_COUNT(BUFFER_FACTS) == KL_BUFFER_COUNT, "a row for each fact of a memory");

static const struct {
    const kl_fact_row *rows;
    int n;
    const char *key, *title;
} FACT_TABLES[KL_FACT_SCOPES] = {
    {STATE_FACTS, KL_FACT_COUNT, "state", "Of the state"},
    {LOOP_FACTS, KL_LOOP_COUNT, "loops", "Of a loop"},
    {BUFFER_FACTS, KL_BUFFER_COUNT, "buffers", "Of a memory that the kernel fills"},
};

const kl_fact_row *kl_fact_each(kl_fact_scope scope, int i) {
    KL_ASSERT(scope < KL_FACT_SCOPES && i >= 0);
    return i < FACT_TABLES[scope].n ? &FACT_TABLES[scope].rows[i] : NULL;
}

int kl_fact_find(kl_fact_scope scope, kl_str name) {
    for (int i = 0; kl_fact_each(scope, i); i++)
        if (kl_str_eq(name, kl_str_of(kl_fact_each(scope, i)->name))) return i;
    return -1;
}

bool kl_fact_given(kl_fact_scope scope, kl_str name, const kl_surface *s) {
    const bool of_grid =
        kl_str_starts(name, KL_S("stage.")) && !kl_str_eq(name, KL_S("stage.vector"));
    const bool of_loops = scope != KL_FACT_OF_STATE || kl_str_starts(name, KL_S("tile.")) ||
                          kl_str_eq(name, KL_S("sweeps"));
    return (!of_grid || (s->families & KL_FAMILY_GRID)) &&
           (!of_loops || !(s->families & KL_FAMILY_PYTHON));
}

kl_fact kl_fact_of(const kl_facts *f, kl_str name) {
    const int i = kl_fact_find(KL_FACT_OF_STATE, name);
    if (i >= 0) return f->at[i];
    const bool compiled = kl_trait(&f->traits, KL_S("code.instructions")) > 0;
    if (kl_str_starts(name, KL_S("source.")) || (kl_str_starts(name, KL_S("code.")) && compiled))
        return kli_fact_number(kl_trait(&f->traits, name), 0);
    return (kl_fact){0};
}

/* ---- loops ------------------------------------------------------------------------------- */

static kl_fact truth_at(bool v, int line) {
    return (kl_fact){.known = true, .number = v, .line = line};
}

static bool is_filled(const kli_root *r) {
    return r->kind == KLI_ROOT_BUFFER || r->kind == KLI_ROOT_SHARED || r->kind == KLI_ROOT_LOCAL;
}

static bool facts_same_root(const kli_root *a, const kli_root *b) {
    return a->kind == b->kind && kl_str_eq(a->name, b->name) && a->at == b->at;
}

static const kli_operand *touched(const kli_nest *l, const kli_root *root) {
    for (int i = 0; i < l->n_operands; i++)
        if (facts_same_root(&l->operands[i].root, root)) return &l->operands[i];
    return NULL;
}

/* Does a loop around `i` read the same elements in every turn, and none of them neighbours? */
static bool swept_again(const kli_nests *n, int i, const kli_root *root) {
    bool again = false;
    for (int p = n->nests[i].parent; p >= 0; p = n->nests[p].parent) {
        const kli_operand *o = touched(&n->nests[p], root);
        if (!o || n->nests[p].fixed) continue;
        if (o->read == KLI_STRIDE_UNIT) return false;
        again = again || (o->read == KLI_STRIDE_NONE && !(n->nests[p].turns < FACTS_SWEPT_AGAIN));
    }
    return again;
}

/* Does a loop around `i`, of many turns, read the same elements in every turn, and none fill them
 * anew? */
static bool is_reused(const kli_nests *n, int i, const kli_root *root) {
    bool again = false;
    for (int p = n->nests[i].parent; p >= 0; p = n->nests[p].parent) {
        const kli_operand *o = touched(&n->nests[p], root);
        if (o && o->writes) return false;
        again = again || (o && !n->nests[p].fixed && o->read == KLI_STRIDE_NONE &&
                          !(n->nests[p].turns < FACTS_SWEPT_AGAIN));
    }
    return again;
}

static bool is_counted(const kli_nests *n, const kli_root *root) {
    for (int i = 0; i < n->n_memories; i++)
        if (facts_same_root(&n->memories[i].root, root)) return n->memories[i].counted > 0;
    return false;
}

typedef struct {
    int unit, far, gathers, scatters, inputs;
    bool unit_write, compacts, copies, scans, maps;
    int strided, counters;
} loop_operands;

static loop_operands operands_of(const kli_nests *n, int i) {
    const kli_nest *l = &n->nests[i];
    loop_operands c = {0};
    bool own = false;
    for (int k = 0; k < l->n_operands; k++) {
        const kli_operand *o = &l->operands[k];
        const bool input = o->root.kind == KLI_ROOT_INPUT, output = o->root.kind == KLI_ROOT_OUTPUT;
        const bool placed = o->write == KLI_STRIDE_GATHER && !l->atomics;
        c.unit += o->reads && o->read == KLI_STRIDE_UNIT;
        c.gathers += o->reads && o->read == KLI_STRIDE_GATHER;
        c.inputs += input && o->reads;
        c.far += input && o->read == KLI_STRIDE_FAR && o->scalar && swept_again(n, i, &o->root);
        c.scatters += output && placed;
        c.compacts = c.compacts || (placed && (output || o->root.kind == KLI_ROOT_BUFFER));
        c.strided += (input || o->root.kind == KLI_ROOT_BUFFER) && l->products > 0 &&
                     o->read == KLI_STRIDE_FAR && is_reused(n, i, &o->root);
        c.counters += o->reads && !o->vector && is_counted(n, &o->root) &&
                      (o->read == KLI_STRIDE_UNIT || o->read == KLI_STRIDE_GATHER);
        c.maps = c.maps || (o->computed && o->write == KLI_STRIDE_UNIT && !l->n_sums);
        c.unit_write = c.unit_write ||
                       (o->writes && (o->write == KLI_STRIDE_UNIT || o->write == KLI_STRIDE_BLOCK));
        c.scans = c.scans || (o->root.kind == KLI_ROOT_SHARED && o->adds && o->reads > 1 &&
                              (o->write == KLI_STRIDE_UNIT || (l->doubles && l->barriers)));
        own = own || (o->writes && !o->adds && is_filled(&o->root));
    }
    c.copies = own && c.inputs && !l->n_sums && !l->products && !l->inner_open;
    return c;
}

/* Loops directly in `i` (-1: in no loop), in order; -1 past the last. */
static int next_child(const kli_nests *n, int i, int after) {
    for (int c = after + 1; c < n->n_nests; c++)
        if (n->nests[c].parent == i) return c;
    return -1;
}

typedef struct {
    int rereads, carries, sweeps;
} loop_order;

static bool same_bounds(const kli_nest *a, const kli_nest *b) {
    return a->bound.len ? kl_str_eq(a->bound, b->bound) && a->turns == b->turns
                        : a->turns == b->turns;
}

/* Two loops of one turn and of the same bounds, one behind the other, on one memory. */
static void order_of_pair(loop_order *o, const kli_nest *first, const kli_nest *second,
                          const kli_root *root) {
    const kli_operand *a = touched(first, root), *b = touched(second, root);
    if (!a || !b || !same_bounds(first, second)) return;
    o->rereads += a->writes && b->reads && !b->writes && second->n_sums;
    o->carries += a->reads && first->n_sums && b->writes;
}

static void order_of_root(loop_order *all, const kli_nests *n, int i, const kli_root *root) {
    loop_order o = {0};
    for (int c = next_child(n, i, i); c >= 0; c = next_child(n, i, c)) {
        if (n->nests[c].fixed || !touched(&n->nests[c], root)) continue;
        o.sweeps++;
        int next = next_child(n, i, c);
        while (next >= 0 && !touched(&n->nests[next], root)) next = next_child(n, i, next);
        if (next >= 0 && !n->nests[next].fixed)
            order_of_pair(&o, &n->nests[c], &n->nests[next], root);
    }
    all->rereads += o.rereads > 0;
    all->carries += o.carries > 0;
    all->sweeps = o.sweeps > all->sweeps ? o.sweeps : all->sweeps;
}

static loop_order order_of(const kli_nests *n, int i) {
    loop_order all = {0};
    for (int k = 0; k < n->nests[i].n_operands; k++) {
        const kli_root *r = &n->nests[i].operands[k].root;
        if (r->kind == KLI_ROOT_BUFFER || r->kind == KLI_ROOT_OUTPUT) order_of_root(&all, n, i, r);
    }
    return all;
}

/* `dims`: of products alone, and how many loops count through them; NULL: of all. */
static double sums_of(const kli_nest *l, int *dims) {
    double sum = 0;
    for (int i = 0; i < l->n_sums; i++) {
        if (dims && !l->sums[i].product) continue;
        sum += l->sums[i].n;
        if (dims && l->sums[i].dims > *dims) *dims = l->sums[i].dims;
    }
    return sum;
}

/* Whole numbers alone, and no branch around them. */
static bool sums_are_exact(const kli_nest *l) {
    bool whole = l->n_sums > 0 && !l->branches;
    for (int i = 0; i < l->n_sums; i++) whole = whole && l->sums[i].whole;
    return whole;
}

static bool facts_innermost(const kli_nest *l) { return !l->fixed && !l->inner_open; }

/* "x unit, weight far, y written unit": each operand of the launch, the widest of its strides. */
static kl_str operands_text(kl_arena *a, const kli_nest *l) {
    static const char *const STRIDES[] = {"fixed", "unit", "blocks", "far", "where data says"};
    kl_buf b = {0};
    for (int i = 0; i < l->n_operands; i++) {
        const kli_operand *o = &l->operands[i];
        if (o->root.kind == KLI_ROOT_LOCAL || !o->root.name.len) continue;
        KL_ASSERT(o->read < KL_COUNT(STRIDES) && o->write < KL_COUNT(STRIDES));
        kl_buf_printf(&b, "%s%.*s", b.len ? ", " : "", KL_STR_ARG(o->root.name));
        if (o->reads) kl_buf_printf(&b, " %s", STRIDES[o->read]);
        if (o->writes) kl_buf_printf(&b, " written %s", STRIDES[o->write]);
    }
    return kl_buf_take(&b, a);
}

static void loop_facts_of(kl_loop_facts *out, kl_arena *a, const kli_nests *n, int i) {
    const kli_nest *l = &n->nests[i];
    const loop_operands c = operands_of(n, i);
    const loop_order o = order_of(n, i);
    const double sums = sums_of(l, NULL);
    int depth = 0;
    for (int p = l->parent; p >= 0; p = n->nests[p].parent) depth++;
#define NUMBER(id, v) out->at[KL_LOOP_##id] = kli_fact_number((double)(v), l->line)
#define TRUTH(id, v) out->at[KL_LOOP_##id] = truth_at(v, l->line)
    NUMBER(LINE, l->line), NUMBER(DEPTH, depth), NUMBER(TURNS, l->turns), NUMBER(STEP, l->step);
    out->at[KL_LOOP_AXIS] = kli_fact_text(l->bound, l->line);
    TRUTH(FIXED, l->fixed), TRUTH(INNERMOST, facts_innermost(l)), TRUTH(WAITS, l->waits);
    TRUTH(DOUBLES, l->doubles), TRUTH(VECTOR, l->vector), NUMBER(SUMS, sums);
    TRUTH(PRODUCT, l->products > 0), TRUTH(EXACT, sums_are_exact(l)), TRUTH(MAPS, c.maps);
    NUMBER(REUSE, l->loads > 0 ? l->work / l->loads : NAN);
    NUMBER(UNIT, c.unit), NUMBER(FAR, c.far), NUMBER(GATHERS, c.gathers);
    TRUTH(UNIT_WRITE, c.unit_write), NUMBER(SCATTERS, c.scatters), TRUTH(COMPACTS, c.compacts);
    NUMBER(INPUTS, c.inputs), TRUTH(COPIES, c.copies);
    TRUTH(SCANS, c.scans), NUMBER(STRIDED, c.strided), NUMBER(COUNTERS, c.counters);
    NUMBER(REREADS, o.rereads), NUMBER(CARRIES, o.carries), NUMBER(SWEEPS, o.sweeps);
    NUMBER(BARRIERS, l->barriers), NUMBER(ATOMICS, l->atomics), NUMBER(SHUFFLES, l->shuffles);
    NUMBER(EXPS, l->exps);
    const kl_str operands = operands_text(a, l);
    out->at[KL_LOOP_OPERANDS] = kli_fact_text(operands, l->line);
    out->at[KL_LOOP_UNIT].from = out->at[KL_LOOP_FAR].from = operands;
    out->at[KL_LOOP_STRIDED].from = operands;
    out->at[KL_LOOP_GATHERS].from = out->at[KL_LOOP_SCATTERS].from = operands;
#undef NUMBER
#undef TRUTH
}

/* ---- the whole of the loops -------------------------------------------------------------- */

/* Are there products in an open loop within `i`? */
static bool has_inner_products(const kli_nests *n, int i) {
    for (int c = i + 1; c < n->n_nests; c++) {
        int p = n->nests[c].fixed || !n->nests[c].products ? -1 : n->nests[c].parent;
        while (p > i) p = n->nests[p].parent;
        if (p == i) return true;
    }
    return false;
}

static void tile_facts(kl_facts *out, const kli_nests *n) {
    double most = 0;
    for (int i = 0; i < n->n_nests; i++) {
        const kli_nest *l = &n->nests[i];
        int dims = 0;
        const double sums = sums_of(l, &dims);
        if (l->fixed || sums <= most || has_inner_products(n, i)) continue;
        most = sums;
        out->at[KL_FACT_TILE_SUMS] = kli_fact_number(sums, l->line);
        out->at[KL_FACT_TILE_DIMS] = kli_fact_number(dims, l->line);
        out->at[KL_FACT_TILE_REUSE] =
            kli_fact_number(l->loads > 0 ? l->work / l->loads : NAN, l->line);
    }
}

static void sweeps_fact(kl_facts *out, const kli_nests *n) {
    int most = 0, line = 0;
    for (int i = -1; i < n->n_nests; i++)
        for (int t = 0; n->task && t < n->task->n_inputs; t++) {
            const kli_root root = {KLI_ROOT_INPUT, n->task->tensors[t].name, NULL, 0};
            int sweeps = 0, last = 0;
            for (int c = next_child(n, i, i); c >= 0; c = next_child(n, i, c)) {
                const kli_operand *o = touched(&n->nests[c], &root);
                if (!o || !o->reads || o->read == KLI_STRIDE_NONE) continue;
                sweeps++;
                last = n->nests[c].line;
            }
            if (sweeps > most) most = sweeps, line = last;
        }
    out->at[KL_FACT_SWEEPS] = kli_fact_number(most, line);
}

/* ---- memories ---------------------------------------------------------------------------- */

/* Is `name` a word of an expression? */
static bool facts_mentions(kl_str expr, kl_str name) {
    const char *end = expr.ptr + expr.len;
    for (const char *at = expr.ptr; at && at + name.len <= end; at++) {
        at = memmem(at, (size_t)(end - at), name.ptr, name.len);
        if (!at) return false;
        const char before = at > expr.ptr ? at[-1] : ' ',
                   after = at + name.len < end ? at[name.len] : ' ';
        if (!isalnum((unsigned char)before) && before != '_' && !isalnum((unsigned char)after) &&
            after != '_')
            return true;
    }
    return false;
}

/* An axis in the declaration of a buffer that no output has. */
static bool is_along_summed_axis(const kli_nests *n, kl_str buffer) {
    const kl_kernel *k = n->r->kernel;
    for (int i = 0; i < k->n_buffers; i++) {
        if (!kl_str_eq(k->buffers[i].name, buffer)) continue;
        for (int d = 0; d < k->buffers[i].ndim; d++)
            for (int x = 0; n->task && x < n->task->n_axes; x++)
                if (facts_mentions(k->buffers[i].dims[d].text, n->task->axes[x].name) &&
                    kl_task_contracts(n->task, n->task->axes[x].name))
                    return true;
    }
    return false;
}

static kl_str role_of(const kli_nests *n, const kli_memory *m) {
    if (m->counted) return KL_S("histogram");
    if (m->copied && (m->computed || m->updated)) return KL_S("state");
    if (m->copied && m->root.kind == KLI_ROOT_SHARED) return KL_S("staged");
    if (m->copied) return m->root.kind == KLI_ROOT_LOCAL ? KL_S("cached") : KL_S("packed");
    if (!m->computed && !m->updated) return KL_S("cleared");
    if (m->root.kind == KLI_ROOT_BUFFER && is_along_summed_axis(n, m->root.name))
        return KL_S("scores");
    return KL_S("computed");
}

static void buffer_facts_of(kl_buffer_facts *out, const kli_nests *n, const kli_memory *m) {
    const kl_str places[] = {[KLI_ROOT_BUFFER] = KL_S("scratch"),
                             [KLI_ROOT_SHARED] = KL_S("block"),
                             [KLI_ROOT_LOCAL] = KL_S("thread")};
    KL_ASSERT(is_filled(&m->root));
    out->at[KL_BUFFER_LINE] = kli_fact_number(m->line, m->line);
    out->at[KL_BUFFER_NAME] = kli_fact_text(m->root.name, m->line);
    out->at[KL_BUFFER_PLACE] = kli_fact_text(places[m->root.kind], m->line);
    out->at[KL_BUFFER_ROLE] = kli_fact_text(role_of(n, m), m->line);
    out->at[KL_BUFFER_SOURCE] = kli_fact_text(m->source, m->line);
    out->at[KL_BUFFER_VECTOR] = truth_at(m->vector, m->line);
    out->at[KL_BUFFER_CONVERTED] = truth_at(m->converted, m->line);
}

/* ---- stage ------------------------------------------------------------------------------- */

static bool steps_by_grid(const kl_kernel *k) {
    const unsigned families = k->surface->families;
    return kli_contains(k->source, (families & KL_FAMILY_TRITON)     ? "num_programs"
                                   : (families & KL_FAMILY_TILELANG) ? "T.Persistent"
                                                                     : "gridDim");
}

static bool map_swizzles(const kl_kernel *k) {
    if ((k->surface->families & KL_FAMILY_TILELANG) && kli_contains(k->source, "annotate_layout"))
        return true;
    for (int i = 0; i < k->n_tensormaps; i++)
        if (k->tensormaps[i].n_options[KL_OPT_SWIZZLE]) return true;
    return false;
}

/* What the compiler of tiles decides by itself is not known from the words that are missing. */
static void leave_to_compiler(kl_facts *out) {
    static const kl_fact_id TRUTHS[] = {KL_FACT_STAGE_VECTOR, KL_FACT_STAGE_SWIZZLE,
                                        KL_FACT_STAGE_SHARED, KL_FACT_STAGE_ROLES,
                                        KL_FACT_STAGE_WIDE};
    for (size_t i = 0; i < KL_COUNT(TRUTHS); i++)
        if (!out->at[TRUTHS[i]].number) out->at[TRUTHS[i]].known = false;
    if (!kl_str_eq(out->at[KL_FACT_STAGE_MMA].text, KL_S("none")))
        out->at[KL_FACT_STAGE_MMA].known = false; /* of which kind */
    if (kl_str_eq(out->at[KL_FACT_STAGE_COPY].text, KL_S("none")))
        out->at[KL_FACT_STAGE_COPY].known = false;
}

static bool is_within(const kli_nests *n, int i, int outer) {
    while (i >= 0 && i != outer) i = n->nests[i].parent;
    return i == outer;
}

/* Side by side, a loop that only fetches tiles and one that only multiplies them. */
static bool has_roles(const kli_nests *n) {
    for (int a = 0; a < n->n_nests; a++)
        for (int b = 0; b < n->n_nests; b++) {
            const kli_nest *x = &n->nests[a], *y = &n->nests[b];
            if (x->fetches && !x->matrices && y->matrices && !y->fetches && !x->fixed &&
                !y->fixed && !is_within(n, a, b) && !is_within(n, b, a))
                return true;
        }
    return false;
}

static void stage_facts(kl_facts *out, const kl_kernel *k, const kli_source *s, const kli_nests *n,
                        bool copies) {
    const double *c = s->count;
    const bool grid = (k->surface->families & KL_FAMILY_GRID) != 0,
               tiles = (k->surface->families & KL_FAMILY_TRITON) != 0;
    const bool tma = c[KLI_TRAIT_TMA] > 0 || (tiles && k->n_tensormaps > 0);
    const bool shared = c[KLI_TRAIT_SHARED_ARRAYS] > 0;
    const bool vector = c[KLI_TRAIT_VECTOR_TYPES] + c[KLI_TRAIT_INTRINSICS] > 0;
    const kl_str text = KL_S("the source's words");
    out->at[KL_FACT_STAGE_VECTOR] = kli_fact_truth(vector, text);
    if (!grid) return;
    out->at[KL_FACT_STAGE_MMA] = kli_fact_text(c[KLI_TRAIT_WGMMA] > 0 ? KL_S("warpgroup")
                                               : c[KLI_TRAIT_MMA] > 0 ? KL_S("warp")
                                                                      : KL_S("none"),
                                               0);
    out->at[KL_FACT_STAGE_COPY] = kli_fact_text(tma                               ? KL_S("engine")
                                                : c[KLI_TRAIT_ASYNC_COPIES] > 0   ? KL_S("async")
                                                : shared && (copies || n->stores) ? KL_S("threads")
                                                                                  : KL_S("none"),
                                                0);
    out->at[KL_FACT_STAGE_PIPELINE] =
        kli_fact_number(c[KLI_TRAIT_STAGES] > 1 ? c[KLI_TRAIT_STAGES] : 1, 0);
    out->at[KL_FACT_STAGE_SWIZZLE] = kli_fact_truth(n->swizzle || map_swizzles(k), text);
    out->at[KL_FACT_STAGE_WIDE] =
        kli_fact_truth(n->wide || tma || c[KLI_TRAIT_ASYNC_COPIES] > 0, text);
    out->at[KL_FACT_STAGE_SHARED] = kli_fact_truth(shared, text);
    out->at[KL_FACT_STAGE_ROLES] =
        kli_fact_truth(c[KLI_TRAIT_SETMAXNREG] > 0 || has_roles(n), text);
    out->at[KL_FACT_STAGE_CLUSTER] = kli_fact_truth(c[KLI_TRAIT_CLUSTERS] > 0, text);
    out->at[KL_FACT_STAGE_PERSISTENT] = kli_fact_truth(steps_by_grid(k), text);
    if (tiles && c[KLI_TRAIT_STAGES] < 1) /* its own number where none is given */
        out->at[KL_FACT_STAGE_PIPELINE].known = false;
    if (k->surface->families & KL_FAMILY_PYTHON) leave_to_compiler(out);
}

static void verdict_facts(kl_facts *out, const kl_verdict *v) {
    double registers = 0, spills = 0;
    for (int i = 0; i < v->n_resources; i++) {
        registers = fmax(registers, (double)v->resources[i].registers);
        spills = fmax(spills, (double)v->resources[i].local_bytes);
    }
    if (registers > 0) out->at[KL_FACT_REGISTERS] = kli_fact_number(registers, 0);
    if (registers > 0) out->at[KL_FACT_SPILLS] = kli_fact_number(spills, 0);
    if (v->roofline_ns > 0 && v->median_ns > 0)
        out->at[KL_FACT_ROOF_SHARE] =
            kli_fact_number((double)v->roofline_ns / (double)v->median_ns, 0);
}

/* ---- all --------------------------------------------------------------------------------- */

/* A loop that several calls run counts once for each way in which it is run. */
static bool is_told(const kl_facts *f, const kl_loop_facts *l) {
    for (int i = 0; i < f->n_loops; i++) {
        bool same = true;
        for (int k = 0; k < KL_LOOP_COUNT && same; k++) {
            const kl_fact *a = &f->loops[i].at[k], *b = &l->at[k];
            same = a->known == b->known && (!a->known || a->number == b->number) &&
                   kl_str_eq(a->text, b->text);
        }
        if (same) return true;
    }
    return false;
}

static void nest_facts(kl_facts *out, kl_arena *a, const kli_nests *n) {
    out->nests = n->n_nests > 0;
    for (int i = 0; i < n->n_nests; i++) {
        kl_loop_facts l = {0};
        loop_facts_of(&l, a, n, i);
        if (!is_told(out, &l)) *KL_PUSH(a, out->loops, out->n_loops) = l;
    }
    for (int i = 0; i < n->n_memories; i++)
        if (is_filled(&n->memories[i].root))
            buffer_facts_of(KL_PUSH(a, out->buffers, out->n_buffers), n, &n->memories[i]);
    tile_facts(out, n);
    sweeps_fact(out, n);
}

static bool fills_block(const kl_facts *f) {
    for (int i = 0; i < f->n_buffers; i++)
        if (kl_str_eq(f->buffers[i].at[KL_BUFFER_ROLE].text, KL_S("staged"))) return true;
    return false;
}

const kl_facts *kl_facts_of(kl_arena *a, const kl_kernel *k, const kl_task *t, const kl_workload *w,
                            const kl_verdict *v) {
    kl_facts *out = KL_NEW(a, kl_facts);
    kl_arena *scratch = kl_arena_new();
    kli_source source;
    kli_nests nests = {0};
    kli_reader *r = kli_reader_open(&source, scratch, k);
    if (r->n_functions) {
        kli_nests_read(&nests, scratch, r, t, w);
        nest_facts(out, a, &nests);
    }
    if (t) kli_facts_of_task(out, a, t, w);
    stage_facts(out, k, &source, &nests, fills_block(out));
    if (v) verdict_facts(out, v);
    kl_traits_of(&out->traits, a, k, v);
    kl_arena_free(scratch);
    return out;
}

/* ---- written out ------------------------------------------------------------------------- */

static json_t *fact_value(const kl_fact_row *row, const kl_fact *f) {
    if (!f->known) return json_null();
    if (row->kind == KL_FACT_TEXT) return kli_json_str(f->text);
    return row->kind == KL_FACT_TRUTH ? json_boolean(f->number != 0) : kli_json_real(f->number);
}

static json_t *fact_object(kl_fact_scope scope, const kl_fact *at) {
    json_t *o = json_object();
    for (int i = 0; kl_fact_each(scope, i); i++)
        json_object_set_new(o, kl_fact_each(scope, i)->name,
                            fact_value(kl_fact_each(scope, i), &at[i]));
    return o;
}

json_t *kl_facts_json(const kl_facts *f) {
    json_t *loops = json_array(), *buffers = json_array();
    for (int i = 0; i < f->n_loops; i++)
        json_array_append_new(loops, fact_object(KL_FACT_OF_LOOP, f->loops[i].at));
    for (int i = 0; i < f->n_buffers; i++)
        json_array_append_new(buffers, fact_object(KL_FACT_OF_BUFFER, f->buffers[i].at));
    return json_pack("{ss si so so so so}", "schema", "klineage/facts", "version", 1, "state",
                     fact_object(KL_FACT_OF_STATE, f->at), "loops", loops, "buffers", buffers,
                     "traits", kl_traits_json(&f->traits));
}

static json_t *schema_of(kl_fact_scope scope) {
    static const char *const TYPES[] = {"boolean", "number", "string"};
    json_t *o = json_object();
    for (int i = 0; kl_fact_each(scope, i); i++) {
        const kl_fact_row *row = kl_fact_each(scope, i);
        json_object_set_new(
            o, row->name,
            json_pack("{s[ss] ss}", "type", TYPES[row->kind], "null", "description", row->doc));
    }
    return json_pack("{ss so}", "type", "object", "properties", o);
}

json_t *kl_facts_schema(void) {
    return json_pack("{ss ss ss ss s{so s{ss so} s{ss so} s{ss s{ss}} s{ss ss}}}", "$schema",
                     "https://json-schema.org/draft/2020-12/schema", "$id",
                     "https://klineage.invalid/schema/facts.schema.json", "title", "klineage/facts",
                     "type", "object", "properties", "state", schema_of(KL_FACT_OF_STATE), "loops",
                     "type", "array", "items", schema_of(KL_FACT_OF_LOOP), "buffers", "type",
                     "array", "items", schema_of(KL_FACT_OF_BUFFER), "traits", "type", "object",
                     "additionalProperties", "type", "number", "compiled", "type", "string",
                     "description", "with a task: what the compiler made of it, in words");
}

void kl_facts_page(kl_buf *out) {
    static const char *const KINDS[] = {"truth", "number", "text"};
    for (int s = 0; s < KL_FACT_SCOPES; s++) {
        kl_buf_printf(out, "\n## %s\n\n| fact | kind | meaning |\n| --- | --- | --- |\n",
                      FACT_TABLES[s].title);
        for (int i = 0; i < FACT_TABLES[s].n; i++) {
            const kl_fact_row *row = &FACT_TABLES[s].rows[i];
            kl_buf_printf(out, "| `%s` | %s%s%s | %s |\n", row->name, KINDS[row->kind],
                          *row->unit ? ", " : "", row->unit, row->doc);
        }
    }
}
