/* check.c - did an undoing undo what it says, and nothing else?
 *
 * Three questions, in the order in which a model can act on the answer: is it sabotage, is the
 * named optimization gone, is every other one still there.  The last is lenient: decorations
 * (unrolling, alignment, inlining) go with the code that they decorate, and a row of actions.def
 * lists what else may follow from it.  Speed is not looked at: the gate knows that.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rewrite_impl.h"

#define CHECK_SAY(...) kl_fail(e, KL_EINVAL, "undo", __VA_ARGS__)

/* ---- sabotage ---------------------------------------------------------------------------- */

/* What only wastes time, by what the source has more of. */
static const struct {
    size_t at;
    const char *what;
} SABOTAGE[] = {{offsetof(kli_source, volatiles),
                 "volatile; a kernel may only become slower by losing an optimization"},
                {offsetof(kli_source, asms),
                 "inline assembler; a kernel may only become slower by losing an optimization"},
                {offsetof(kli_source, waits),
                 "something that only takes time (a wait, a clock, a cache flush)"},
                {offsetof(kli_source, empty_loops), "a loop with an empty body"},
                {offsetof(kli_source, idle_loops),
                 "a loop that repeats the same work: its body does not look "
                 "at what its step changes"}};

static double sabotage_of(const kli_source *s, size_t at) {
    return *(const double *)(const void *)((const char *)s + at);
}

static kl_err check_sabotage(const kli_source *before, const kli_source *after, const kl_kernel *k,
                             kl_error *e) {
    const bool gpu_asm = (k->surface->families & KL_FAMILY_CUDA) &&
                         before->asms > 0; /* there instructions are written so */
    for (size_t i = 0; i < KL_COUNT(SABOTAGE); i++) {
        const size_t at = SABOTAGE[i].at;
        if (sabotage_of(after, at) > sabotage_of(before, at) &&
            !(gpu_asm && at == offsetof(kli_source, asms)))
            return CHECK_SAY("the change adds %s", SABOTAGE[i].what);
    }
    if (after->slow_flags > before->slow_flags)
        return CHECK_SAY("the change has the compiler optimize less; undo the optimization in the "
                         "source instead");
    return KL_OK;
}

static kl_err check_size(const kli_source *before, const kli_source *after, kl_error *e) {
    const double was = before->count[KLI_TRAIT_TOKENS], is = after->count[KLI_TRAIT_TOKENS];
    if (is <= 1.25 * was + 20) return KL_OK;
    return CHECK_SAY("the text grew from %.0f to %.0f tokens; undoing an optimization makes a "
                     "kernel simpler, not longer",
                     was, is);
}

/* ---- the optimization itself ------------------------------------------------------------- */

/* source.tokens stands for the shape of the code, of which every number is a sign. */
static bool any_fell(const char *witness, const kl_traits *before, const kl_traits *after) {
    kl_str rest = kl_str_of(witness), name;
    for (int i = 0; i < before->n && kli_one_of(KL_S("source.tokens"), witness); i++)
        if (kl_str_starts(before->at[i].name, KL_S("source.")) &&
            kl_trait(after, before->at[i].name) < before->at[i].value)
            return true;
    while (kli_next_word(&name, &rest))
        if (kl_trait(after, name) < kl_trait(before, name)) return true;
    return false;
}

/* A witness that was not there before cannot fall. */
static bool any_there(const char *witness, const kl_traits *t) {
    kl_str rest = kl_str_of(witness), name;
    while (kli_next_word(&name, &rest))
        if (kl_trait(t, name) > 0) return true;
    return false;
}

static kl_err check_gone(kl_str id, const kl_traits *before, const kl_traits *after, kl_error *e) {
    const kl_action *action = kl_action_find(id);
    if (!action || !action->witness[0] || any_fell(action->witness, before, after)) return KL_OK;
    if (!any_there(action->witness, before))
        return CHECK_SAY("%s is not visible in the kernel before the change (it would show as: "
                         "%s); name what you really undid",
                         action->id, action->witness);
    return CHECK_SAY("%s is still there: none of its signs became less (%s)", action->id,
                     action->witness);
}

/* ---- everything else --------------------------------------------------------------------- */

static bool may_take(kl_str id, kl_str trait) {
    const kl_action *action = kl_action_find(id);
    return action && (kli_one_of(trait, action->witness) || kli_one_of(trait, action->follows));
}

static bool is_named(kl_str action, kl_str bundle, kl_str trait) {
    kl_str rest = bundle, id;
    if (may_take(action, trait)) return true;
    while (kli_next_word(&id, &rest))
        if (may_take(id, trait)) return true;
    return false;
}

static void list_owners(kl_buf *b, kl_str trait, const kl_surface *s) {
    int n = 0;
    for (int i = 0; kl_action_each(i); i++) {
        const kl_action *action = kl_action_each(i);
        if (n == 4 || !(action->families & s->families) || !kli_one_of(trait, action->witness))
            continue;
        kl_buf_printf(b, "%s%s", n++ ? ", " : "", action->id);
    }
}

static kl_err complain(kl_str action, kl_str trait, double was, double is, const kl_surface *s,
                       kl_error *e) {
    kl_buf owners = {0};
    list_owners(&owners, trait, s);
    const kl_err err = CHECK_SAY(
        "undoing %.*s also took %.*s from %g to %g, which belongs to another optimization (%.*s); "
        "undo one thing, or name it "
        "in BUNDLE if they cannot go apart",
        KL_STR_ARG(action), KL_STR_ARG(trait), was, is, KL_STR_ARG(kl_buf_str(&owners)));
    kl_buf_fini(&owners);
    return err;
}

static kl_err check_others(kl_str action, kl_str bundle, const kli_source *before,
                           const kli_source *after, const kl_surface *s, kl_error *e) {
    for (int i = 0; i < KLI_TRAIT_COUNT; i++) {
        const kli_trait_role role = kli_trait_role_of((kli_trait)i);
        const double was = before->count[i], is = after->count[i];
        const bool gone =
            role == KLI_COUNTED ? is < was : role == KLI_WITNESS && was > 0 && is <= 0;
        const kl_str name = kl_str_of(kli_trait_name((kli_trait)i));
        if (gone && !is_named(action, bundle, name)) return complain(action, name, was, is, s, e);
    }
    return KL_OK;
}

kl_err kl_rewrite_check_undo(kl_str action, kl_str bundle, const kl_kernel *before,
                             const kl_traits *t_before, const kl_kernel *after,
                             const kl_traits *t_after, kl_error *e) {
    kli_source was, is;
    kli_source_read(&was, before);
    kli_source_read(&is, after);
    kl_err err = check_sabotage(&was, &is, before, e);
    if (!err) err = check_size(&was, &is, e);
    if (!err) err = check_gone(action, t_before, t_after, e);
    if (!err) err = check_others(action, bundle, &was, &is, before->surface, e);
    return err;
}
