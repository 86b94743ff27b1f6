/* prove.c - a contract held against states of which the answer is known: those that the card was
 * born from, those that it led to, and those of other work.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"

#include <string.h>

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

static void prove_one(kl_contract_proof *out, kl_arena *a, const kl_card *c,
                      const kl_pool_state *s) {
    kl_str why = {0};
    const prove_kind kind = prove_kind_of(c, s);
    kl_target t = s->target;
    if (kind == PROVE_NOTHING) return;
    if (c->verified.platforms.n) t.platform = c->verified.platforms.at[0];
    const bool foreign_surface = !kli_names_have(&c->verified.surfaces, t.surface);
    const kl_fit fit = foreign_surface ? KL_FIT_VIOLATED : kli_card_fits(c, &t, a, &why);
    const bool met = fit == KL_FIT_MET, refused = fit == KL_FIT_VIOLATED;
    if (kind == PROVE_START) {
        out->starts++;
        out->starts_met += met;
        if (!met) tell_against(out, a, s, "does not hold on its start", why);
    } else if (kind == PROVE_RESULT) {
        out->results++;
        out->results_refused += refused;
        if (!refused) tell_against(out, a, s, "holds on its own result", why);
    } else {
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
