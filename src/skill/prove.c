/* prove.c - a contract held against states of which the answer is known: those that the card was
 * born from, those that it led to, and those of other work.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"

#include <string.h>

/* ---- the pool ---------------------------------------------------------------------------- */

/* But for the line, which is the first of a part's facts. */
static bool same_part(const kl_fact *x, const kl_fact *y, int n) {
    for (int i = 1; i < n; i++)
        if (x[i].known != y[i].known || !kl_str_eq(x[i].text, y[i].text) ||
            (x[i].known && x[i].number != y[i].number))
            return false;
    return true;
}
_Static_assert(KL_LOOP_LINE == 0 && KL_BUFFER_LINE == 0, "the line is a part's first fact");

static bool same_facts(const kl_facts *x, const kl_facts *y) {
    bool same = x->n_loops == y->n_loops && x->n_buffers == y->n_buffers &&
                x->at[0].known == y->at[0].known && x->at[0].number == y->at[0].number &&
                same_part(x->at, y->at, KL_FACT_COUNT);
    for (int i = 0; same && i < x->n_loops; i++)
        same = same_part(x->loops[i].at, y->loops[i].at, KL_LOOP_COUNT);
    for (int i = 0; same && i < x->n_buffers; i++)
        same = same_part(x->buffers[i].at, y->buffers[i].at, KL_BUFFER_COUNT);
    return same;
}

static bool are_twins(const kl_target *x, const kl_target *y) {
    return kl_str_eq(x->case_name, y->case_name) && kl_str_eq(x->surface, y->surface) &&
           same_facts(x->facts, y->facts);
}

static bool read_state(kl_pool_state *out, kl_buf *left_out, kl_arena *a, const kl_start *s) {
    kl_kernel *k;
    kl_error why = {0};
    if (kl_kernel_parse(&k, a, s->source, s->name, s->surface, NULL, &why)) {
        kl_buf_printf(left_out, "left out of the pool: %.*s: %s\n", KL_STR_ARG(s->name),
                      why.message);
        return false;
    }
    const kl_facts *f = kl_facts_of(a, k, s->task, s->workload, NULL);
    *out = (kl_pool_state){.hash = kl_str_of(k->hash),
                           .name = s->name,
                           .target = {.case_name = s->task->case_name,
                                      .surface = kl_str_of(s->surface->name),
                                      .dtype = kl_str_of(kl_dtype_name(s->workload->dtypes[0])),
                                      .traits = &f->traits,
                                      .facts = f}};
    return true;
}

static bool is_alone(const kl_start *starts, int n, int at) {
    int others = -1;
    for (int i = 0; i < n; i++)
        others += starts[i].surface == starts[at].surface &&
                  kl_str_eq(starts[i].task->name, starts[at].task->name);
    KL_ASSERT(others >= 0);
    return others == 0;
}

int kl_contract_pool(kl_pool_state **out, kl_str *left_out, kl_arena *a, const kl_start *starts,
                     int n) {
    kl_buf lines = {0};
    int found = 0;
    *out = KL_ARRAY(a, kl_pool_state, n + 1);
    for (int i = 0; i < n; i++) {
        kl_pool_state *s = &(*out)[found];
        if (!read_state(s, &lines, a, &starts[i])) continue;
        s->alone = is_alone(starts, n, i);
        for (int k = 0; k < found && !s->twin; k++)
            s->twin = are_twins(&(*out)[k].target, &s->target);
        found++;
    }
    KL_ASSERT(found <= n);
    *left_out = kl_buf_take(&lines, a);
    return found;
}

/* ---- the proof --------------------------------------------------------------------------- */

typedef enum { PROVE_NOTHING, PROVE_START, PROVE_RESULT, PROVE_FOREIGN } prove_kind;

static bool is_birth_record(const kl_trial_record *r) { return kl_str_eq(r->kind, KL_S("birth")); }

/* Did the card work on a kernel of this case and surface, or might it? */
static bool may_work_on(const kl_card *c, const kl_pool_state *s) {
    return kli_names_have(&c->verified.surfaces, s->target.surface) &&
           (s->alone || kli_names_have(&c->verified.cases, s->target.case_name));
}

static prove_kind prove_kind_of(const kl_card *c, const kl_pool_state *s) {
    prove_kind kind = may_work_on(c, s) ? PROVE_NOTHING : PROVE_FOREIGN;
    for (int i = 0; i < c->n_trials; i++) {
        const kl_trial_record *r = &c->trials[i];
        if (r->accepted && kl_str_eq(r->start_hash, s->hash)) return PROVE_START;
        if (is_birth_record(r) && kl_str_eq(r->result_hash, s->hash)) kind = PROVE_RESULT;
    }
    return kind;
}

static void tell_against(kl_contract_proof *out, kl_arena *a, const kl_pool_state *s,
                         const char *what, kl_str why) {
    if (!out->why.len)
        out->why = kl_arena_printf(a, "%s %.*s: %.*s", what, KL_STR_ARG(s->name),
                                   KL_STR_ARG(why.len ? why : KL_S("nothing speaks against it")));
}

/* On the card's own platform; a state of another surface is refused. */
static kl_fit fit_at_home(const kl_card *c, const kl_pool_state *s, kl_arena *a, kl_str *why) {
    kl_target t = s->target;
    if (c->verified.platforms.n) t.platform = c->verified.platforms.at[0];
    return kli_names_have(&c->verified.surfaces, t.surface) ? kli_card_fits(c, &t, a, why)
                                                            : KL_FIT_VIOLATED;
}

static void prove_one(kl_contract_proof *out, kl_arena *a, const kl_card *c,
                      const kl_pool_state *s) {
    kl_str why = {0};
    const prove_kind kind = prove_kind_of(c, s);
    if (kind == PROVE_NOTHING) return;
    const kl_fit fit = fit_at_home(c, s, a, &why);
    const bool met = fit == KL_FIT_MET, refused = fit == KL_FIT_VIOLATED;
    if (kind == PROVE_START) {
        out->starts++;
        out->starts_met += met;
        if (!met) tell_against(out, a, s, "does not hold on its start", why);
    } else if (kind == PROVE_RESULT) {
        out->results++;
        out->results_refused += refused;
        if (!refused) tell_against(out, a, s, "holds on its own result", why);
    } else if (!s->twin) {
        out->foreign++;
        out->foreign_refused += refused;
    }
}

void kl_contract_prove(kl_contract_proof *out, kl_arena *a, const kl_card *c,
                       const kl_pool_state *pool, int n) {
    *out = (kl_contract_proof){0};
    for (int i = 0; i < n; i++) prove_one(out, a, c, &pool[i]);
    KL_ASSERT(out->starts_met <= out->starts && out->foreign_refused <= out->foreign);
    const bool apart = out->foreign_refused >= KL_FOREIGN_SHARE * out->foreign;
    if (!apart && !out->why.len)
        out->why = kl_arena_printf(a, "refuses %d of %d foreign states", out->foreign_refused,
                                   out->foreign);
    out->good = out->starts_met == out->starts && out->results_refused == out->results && apart;
    KL_ASSERT(out->good == (out->why.len == 0));
}

kl_err kl_contract_check(const kl_card *c, kl_arena *a, const kl_start *starts, int n,
                         kl_error *e) {
    kl_pool_state *pool;
    kl_str left_out;
    kl_contract_proof p;
    const int found = kl_contract_pool(&pool, &left_out, a, starts, n);
    kl_contract_prove(&p, a, c, pool, found);
    if (p.good) return KL_OK;
    return kl_fail(e, KL_EINVAL, c->name.ptr, "its contract %.*s", KL_STR_ARG(p.why));
}

/* ---- labels ------------------------------------------------------------------------------ */

enum { LABELS_MAX_BYTES = 16 << 20 };

static kl_str next_cell(kl_str *line) {
    const kl_str cell = kli_before(*line, '\t');
    *line = kli_from(*line, cell.len < line->len ? cell.len + 1 : line->len);
    return cell;
}

static void score_labels(kl_label_score *out, kl_arena *a, const kl_library *l,
                         const kl_pool_state *s, kl_str applies, kl_str borderline) {
    kl_str why;
    out->kernels++;
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *c = &l->cards[i];
        if (!kli_card_usable(c) || kli_words_have(borderline, c->name)) continue;
        const bool wanted = kli_words_have(applies, c->name),
                   offered = fit_at_home(c, s, a, &why) != KL_FIT_VIOLATED;
        out->applicable += wanted;
        out->offered += offered;
        out->hits += wanted && offered;
    }
    KL_ASSERT(out->hits <= out->offered && out->hits <= out->applicable);
}

kl_err kl_labels_score(kl_label_score *out, kl_arena *a, const kl_library *l,
                       const kl_pool_state *pool, int n, kl_error *e) {
    kl_str text, line;
    const kl_str path = kli_fs_join(a, l->dir.ptr, "labels.tsv");
    *out = (kl_label_score){0};
    if (!kli_fs_exists(path.ptr)) return KL_OK;
    kl_err err = kli_fs_read(&text, a, path.ptr, LABELS_MAX_BYTES, e);
    if (err) return err;
    while (kli_next_line(&line, &text)) {
        const kl_str hash = next_cell(&line), applies = next_cell(&line);
        for (int i = 0; i < n; i++)
            if (kl_str_eq(pool[i].hash, hash)) {
                score_labels(out, a, l, &pool[i], applies, line);
                break;
            }
    }
    return KL_OK;
}
