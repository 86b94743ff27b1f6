/* contract.c - does a card fit a target?  Set algebra over traits, then predicates over facts; both
 * three-valued.
 *
 * requires: traits that must be there.  provides: what the card adds; when it is there already,
 * there is nothing to do.  conflicts: traits that must not be there.  "NAME+" speaks of a rise and
 * cannot be seen on one state.  A fact that nobody knows leaves a predicate unknown: the gate
 * decides then, not a guess. SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- facts ------------------------------------------------------------------------------- */

typedef struct {
    bool known, is_number;
    double number;
    kl_str text;
} fact;

static fact of_text(kl_str text) { return (fact){.known = text.len != 0, .text = text}; }
static fact of_number(double v) { return (fact){.known = v > 0, .is_number = true, .number = v}; }

/* The architecture is the platform up to the slash. */
static kl_str contract_arch_of(kl_str platform) { return kli_before(platform, '/'); }

/* What an x86-64 level promises (the psABI's levels); other architectures have to be told. */
static int64_t simd_bits(const kl_target *t) {
    kl_str arch = contract_arch_of(t->platform);
    if (t->simd_bits) return t->simd_bits;
    if (kl_str_eq(arch, KL_S("x86-64-v4"))) return 512;
    if (kl_str_eq(arch, KL_S("x86-64-v3"))) return 256;
    return kl_str_starts(arch, KL_S("x86-64")) ? 128 : 0;
}

static fact contract_look_up(const kl_target *t, kl_str name) {
    if (kl_str_eq(name, KL_S("dtype"))) return of_text(t->dtype);
    if (kl_str_eq(name, KL_S("case"))) return of_text(t->case_name);
    if (kl_str_eq(name, KL_S("language"))) return of_text(t->surface);
    if (kl_str_eq(name, KL_S("platform"))) return of_text(t->platform);
    if (kl_str_eq(name, KL_S("arch"))) return of_text(contract_arch_of(t->platform));
    if (kl_str_eq(name, KL_S("simd_bits"))) return of_number((double)simd_bits(t));
    if (kl_str_eq(name, KL_S("cores"))) return of_number((double)t->cores);
    bool compiled = kl_str_starts(name, KL_S("code.")),
         trait = compiled || kl_str_starts(name, KL_S("source."));
    if (compiled && t->traits && !(kl_trait(t->traits, KL_S("code.instructions")) > 0))
        return (fact){0}; /* never compiled */
    if (trait && t->traits)
        return (fact){.known = true, .is_number = true, .number = kl_trait(t->traits, name)};
    return (fact){0};
}

/* ---- predicates -------------------------------------------------------------------------- */

static bool ordered(kl_str op, double x, double y) {
    if (kl_str_eq(op, KL_S("=="))) return x == y;
    if (kl_str_eq(op, KL_S("!="))) return x != y;
    return (x < y && *op.ptr == '<') || (x > y && *op.ptr == '>') ||
           (x == y && kl_str_ends(op, KL_S("=")));
}

/* "f32" and "float32" are one type. */
static bool same_text(kl_str fact_name, kl_str a, kl_str b) {
    kl_dtype x, y;
    bool types =
        kl_str_eq(fact_name, KL_S("dtype")) && kl_dtype_parse(&x, a) && kl_dtype_parse(&y, b);
    return types ? x == y : kl_str_eq(a, b);
}

static kl_fit test(const kl_predicate *p, const kl_target *t) {
    fact f = contract_look_up(t, p->fact);
    if (!f.known) return KL_FIT_UNKNOWN;
    if (f.is_number) {
        char *end = NULL;
        double wanted = strtod(p->value.ptr, &end);
        if (end == p->value.ptr) return KL_FIT_UNKNOWN;
        return ordered(p->op, f.number, wanted) ? KL_FIT_MET : KL_FIT_VIOLATED;
    }
    bool same = same_text(p->fact, f.text, p->value);
    if (kl_str_eq(p->op, KL_S("=="))) return same ? KL_FIT_MET : KL_FIT_VIOLATED;
    if (kl_str_eq(p->op, KL_S("!="))) return same ? KL_FIT_VIOLATED : KL_FIT_MET;
    return KL_FIT_UNKNOWN; /* texts have no order */
}

/* ---- contract ---------------------------------------------------------------------------- */

static bool rises(kl_str word) { return kl_str_ends(word, KL_S("+")); }
kl_str kli_trait_name_of(kl_str word) {
    return kl_str_ends(word, KL_S("+")) ? kli_cut(word, word.len - 1) : word;
}

/* First trait of `words` that is (or, with `missing`, is not) there; empty when none. */
static kl_str first(kl_str words, const kl_traits *t, bool missing) {
    for (kl_str w; kli_next_word(&w, &words);)
        if (!rises(w) && (kl_trait(t, w) > 0) != missing) return w;
    return (kl_str){0};
}

/* Everything that the card would add is there already. */
static bool all_there(kl_str provides, const kl_traits *t) {
    int n = 0;
    for (kl_str w; kli_next_word(&w, &provides); n++)
        if (rises(w) || !(kl_trait(t, w) > 0)) return false;
    return n > 0;
}

static kl_fit contract(const kl_card *c, const kl_target *t, kl_arena *a, kl_str *why) {
    kl_str missing = first(c->required, t->traits, true),
           clash = first(c->conflicts, t->traits, false);
    if (missing.len)
        return *why = kl_arena_printf(a, "requires %.*s, which is not there", KL_STR_ARG(missing)),
               KL_FIT_VIOLATED;
    if (clash.len)
        return *why = kl_arena_printf(a, "conflicts with %.*s", KL_STR_ARG(clash)), KL_FIT_VIOLATED;
    if (all_there(c->provides, t->traits))
        return *why = KL_S("what it provides is there already"), KL_FIT_VIOLATED;
    return KL_FIT_MET;
}

kl_fit kli_card_fits(const kl_card *c, const kl_target *t, kl_arena *a, kl_str *why) {
    kl_fit worst = t->traits ? contract(c, t, a, why) : KL_FIT_UNKNOWN;
    for (int i = 0; i < c->n_pre && worst != KL_FIT_VIOLATED; i++) {
        const kl_predicate *p = &c->pre[i];
        kl_fit fit = p->fact.len ? test(p, t) : KL_FIT_MET;
        if (fit <= worst) continue;
        worst = fit;
        *why = kl_arena_printf(a, "%s that %.*s %.*s %.*s",
                               fit == KL_FIT_VIOLATED ? "needs" : "unknown whether it holds",
                               KL_STR_ARG(p->fact), KL_STR_ARG(p->op), KL_STR_ARG(p->value));
    }
    return worst;
}

static void add_condition(kl_buf *b, const kl_predicate *p, const kl_target *t) {
    static const char *const words[] = {"holds", "not known", "fails"};
    const fact f = contract_look_up(t, p->fact);
    kl_buf_printf(b, "- %.*s %.*s %.*s: %s", KL_STR_ARG(p->fact), KL_STR_ARG(p->op),
                  KL_STR_ARG(p->value), words[test(p, t)]);
    if (f.known && f.is_number) kl_buf_printf(b, ", it is %g", f.number);
    if (f.known && !f.is_number) kl_buf_printf(b, ", it is %.*s", KL_STR_ARG(f.text));
    kl_buf_add(b, KL_S("\n"));
}

void kli_card_conditions(kl_buf *out, const kl_card *c, const kl_target *t) {
    kl_str required = c->required;
    for (kl_str w; t->traits && kli_next_word(&w, &required);)
        kl_buf_printf(out, "- %.*s: here %g\n", KL_STR_ARG(w), kl_trait(t->traits, w));
    for (int i = 0; i < c->n_pre; i++)
        if (c->pre[i].fact.len) add_condition(out, &c->pre[i], t);
}

static bool any_rose(kl_str words, const kl_traits *start, const kl_traits *result) {
    for (kl_str w; kli_next_word(&w, &words);)
        if (kl_trait(result, kli_trait_name_of(w)) > kl_trait(start, kli_trait_name_of(w)))
            return true;
    return false;
}

/* What rose in all births, or any other sign of the action: another code may show the same
 * optimization by another of its traits. */
bool kli_card_provided(const kl_card *c, const kl_traits *start, const kl_traits *result) {
    const kl_action *action = kl_action_find(c->action);
    kl_str witness = kl_str_of(action ? action->witness : "");
    if (!c->provides.len && !witness.len) return true; /* nothing visible was promised */
    return any_rose(c->provides, start, result) || any_rose(witness, start, result);
}
