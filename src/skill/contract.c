/* contract.c - does a card fit a target?  Its contract, then predicates over what is known of the
 * target; both three-valued.
 *
 * A contract of the second generation is three lists of predicates over facts (predicate.c).  One
 * of the first is set algebra over traits.  requires: traits that must be there.  provides: what
 * the card adds; when it is there already, there is nothing to do.  conflicts: traits that must not
 * be there.  "NAME+" speaks of a rise and cannot be seen on one state.  A fact that nobody knows
 * leaves a predicate unknown: the gate decides then, not a guess. SPDX-License-Identifier:
 * Apache-2.0 */
#include "predicate.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- facts ------------------------------------------------------------------------------- */

static kl_fact fact_of_text(kl_str text) { return (kl_fact){.known = text.len != 0, .text = text}; }
static kl_fact fact_of_number(double v) { return (kl_fact){.known = v > 0, .number = v}; }

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

kl_fact kli_target_fact(const kl_target *t, kl_str name) {
    if (kl_str_eq(name, KL_S("dtype"))) return fact_of_text(t->dtype);
    if (kl_str_eq(name, KL_S("case"))) return fact_of_text(t->case_name);
    if (kl_str_eq(name, KL_S("language"))) return fact_of_text(t->surface);
    if (kl_str_eq(name, KL_S("platform"))) return fact_of_text(t->platform);
    if (kl_str_eq(name, KL_S("arch"))) return fact_of_text(contract_arch_of(t->platform));
    if (kl_str_eq(name, KL_S("simd_bits"))) return fact_of_number((double)simd_bits(t));
    return kl_str_eq(name, KL_S("cores")) ? fact_of_number((double)t->cores) : (kl_fact){0};
}

static kl_fact contract_look_up(const kl_target *t, kl_str name) {
    if (kli_one_of(name, KLI_TARGET_FACTS)) return kli_target_fact(t, name);
    const bool compiled = kl_str_starts(name, KL_S("code.")),
               trait = compiled || kl_str_starts(name, KL_S("source."));
    if (compiled && t->traits && !(kl_trait(t->traits, KL_S("code.instructions")) > 0))
        return (kl_fact){0}; /* never compiled */
    return trait && t->traits ? (kl_fact){.known = true, .number = kl_trait(t->traits, name)}
                              : (kl_fact){0};
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
    const kl_fact f = contract_look_up(t, p->fact);
    if (!f.known) return KL_FIT_UNKNOWN;
    if (!f.text.len) {
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

/* ---- contract of the second generation --------------------------------------------------- */

bool kl_card_has_contract(const kl_card *c) { return c->n_needs + c->n_brings + c->n_excludes > 0; }

typedef struct {
    const kl_target *target;
    kl_arena *arena;
    const kl_surface *own; /* of the card */
    kl_str *why;           /* of the worst answer so far */
    kl_fit worst;
} contract_ask;

static const kl_surface *own_surface(const kl_card *c) {
    const kl_names *s = c->verified.surfaces.n ? &c->verified.surfaces : &c->declared.surfaces;
    return s->n ? kl_surface_by_name(s->at[0]) : NULL;
}

/* A clause that cannot be asked is left out: kl_card_faults names it. */
static bool ask_clause(kli_answer *out, const contract_ask *x, kl_str clause) {
    const kli_question q = {x->target, x->target->facts, x->own};
    return !kli_predicate_ask(out, x->arena, clause, &q, kl_ignored());
}

static void take_answer(contract_ask *x, kl_fit fit, const char *word, kl_str clause, kl_str why) {
    if (fit <= x->worst) return;
    x->worst = fit;
    *x->why = kl_arena_printf(x->arena, "%s %.*s; %.*s", word, KL_STR_ARG(clause), KL_STR_ARG(why));
}

static void ask_needs(contract_ask *x, const kl_card *c) {
    kli_answer y;
    for (int i = 0; i < c->n_needs; i++)
        if (ask_clause(&y, x, c->needs[i]))
            take_answer(x, y.fit,
                        y.fit == KL_FIT_VIOLATED ? "refused, it needs" : "unknown whether",
                        c->needs[i], y.why);
}

static void ask_excludes(contract_ask *x, const kl_card *c) {
    kli_answer y;
    for (int i = 0; i < c->n_excludes; i++) {
        if (!ask_clause(&y, x, c->excludes[i])) continue;
        const kl_fit fit = y.fit == KL_FIT_MET        ? KL_FIT_VIOLATED
                           : y.fit == KL_FIT_VIOLATED ? KL_FIT_MET
                                                      : KL_FIT_UNKNOWN;
        take_answer(x, fit,
                    fit == KL_FIT_VIOLATED ? "refused, it conflicts with" : "unknown whether",
                    c->excludes[i], y.why);
    }
}

/* There already, when all that it brings holds. */
static void ask_brings(contract_ask *x, const kl_card *c) {
    kli_answer y, all = {.fit = KL_FIT_MET};
    int n = 0;
    for (int i = 0; i < c->n_brings; i++)
        if (ask_clause(&y, x, c->brings[i])) {
            n++;
            if (y.fit > all.fit || !all.why.len) all = y;
        }
    if (!n || all.fit == KL_FIT_VIOLATED) return;
    const bool there = all.fit == KL_FIT_MET;
    take_answer(x, there ? KL_FIT_VIOLATED : KL_FIT_UNKNOWN,
                there ? "refused, there already:" : "unknown whether", c->brings[0], all.why);
}

static kl_fit second_contract(const kl_card *c, const kl_target *t, kl_arena *a, kl_str *why) {
    contract_ask x = {.target = t, .arena = a, .own = own_surface(c), .why = why};
    ask_needs(&x, c);
    ask_excludes(&x, c);
    ask_brings(&x, c);
    return x.worst;
}

static void list_faults(kl_buf *out, kl_arena *a, const kl_card *c, const kl_str *clauses, int n) {
    const kli_question nothing = {.own = own_surface(c)};
    kli_answer ignored;
    for (int i = 0; i < n; i++) {
        kl_error e = {0};
        if (kli_predicate_ask(&ignored, a, clauses[i], &nothing, &e))
            kl_buf_printf(out, "%.*s: %s\n", KL_STR_ARG(clauses[i]), e.message);
    }
}

kl_str kl_card_faults(kl_arena *a, const kl_card *c) {
    kl_buf b = {0};
    list_faults(&b, a, c, c->needs, c->n_needs);
    list_faults(&b, a, c, c->brings, c->n_brings);
    list_faults(&b, a, c, c->excludes, c->n_excludes);
    return kl_buf_take(&b, a);
}

static bool provides_clause(const kl_card *c, kl_str clause) {
    for (int i = 0; i < c->n_brings; i++)
        if (kl_str_eq(c->brings[i], clause)) return true;
    return false;
}

/* Does the card require, in the same words, what only cards provide that are still waiting? */
static bool waits_for_others(const kl_card *c, const kl_card *cards, const bool *waiting, int n) {
    for (int i = 0; i < c->n_needs; i++) {
        bool provided = false, open = false;
        for (int k = 0; k < n && !open; k++) {
            const bool here = provides_clause(&cards[k], c->needs[i]);
            provided = provided || here;
            open = here && !waiting[k];
        }
        if (provided && !open) return true;
    }
    return false;
}

/* Takes away, round by round, what waits for nothing that is left; what remains waits in a ring. */
kl_str kl_library_cycle(kl_arena *a, const kl_library *l) {
    const kl_card *cards = l->cards;
    const int n = l->n_cards;
    bool *waiting = KL_ARRAY(a, bool, n + 1);
    kl_str names = {0};
    for (int i = 0; i < n; i++) waiting[i] = true;
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < n; i++) {
            const bool waits = waiting[i] && waits_for_others(&cards[i], cards, waiting, n);
            again = again || waits != waiting[i];
            waiting[i] = waits;
        }
    }
    for (int i = 0; i < n; i++)
        if (waiting[i]) names = kli_words_with(a, names, cards[i].name);
    return names;
}

/* ---- contract of the first --------------------------------------------------------------- */

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

kl_fit kli_contract_fits(const kl_card *c, const kl_target *t, kl_arena *a, kl_str *why) {
    return kl_card_has_contract(c) ? second_contract(c, t, a, why)
           : t->traits             ? contract(c, t, a, why)
                                   : KL_FIT_UNKNOWN;
}

kl_fit kli_card_fits(const kl_card *c, const kl_target *t, kl_arena *a, kl_str *why) {
    kl_fit worst = kli_contract_fits(c, t, a, why);
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

static const char *const FIT_WORDS[] = {"holds", "not known", "fails"};

static void add_condition(kl_buf *b, const kl_predicate *p, const kl_target *t) {
    const kl_fact f = contract_look_up(t, p->fact);
    const kl_fit fit = test(p, t);
    if (fit == KL_FIT_MET) return;
    kl_buf_printf(b, "- %.*s %.*s %.*s: %s", KL_STR_ARG(p->fact), KL_STR_ARG(p->op),
                  KL_STR_ARG(p->value), FIT_WORDS[fit]);
    if (f.known && !f.text.len) kl_buf_printf(b, ", it is %g", f.number);
    if (f.known && f.text.len) kl_buf_printf(b, ", it is %.*s", KL_STR_ARG(f.text));
    kl_buf_add(b, KL_S("\n"));
}

static void add_needs(kl_buf *b, kl_arena *a, const kl_card *c, const kl_target *t) {
    const kli_question q = {t, t->facts, own_surface(c)};
    kli_answer y;
    for (int i = 0; i < c->n_needs; i++)
        if (!kli_predicate_ask(&y, a, c->needs[i], &q, kl_ignored()) &&
            (y.fit != KL_FIT_MET || kli_contains(y.why, "line ")))
            kl_buf_printf(b, "- %.*s: %s; %.*s\n", KL_STR_ARG(c->needs[i]), FIT_WORDS[y.fit],
                          KL_STR_ARG(y.why));
}

/* A condition that holds is told where it names a line: the place to begin. */
void kli_card_conditions(kl_buf *out, kl_arena *a, const kl_card *c, const kl_target *t) {
    kl_str required = kl_card_has_contract(c) ? KL_S("") : c->required;
    add_needs(out, a, c, t);
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
