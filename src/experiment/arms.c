/* arms.c - what of the cards is it that helps?  A track of an experiment gets the library as it is,
 * or one in which names and bodies do not belong together, and some cards are withheld from it.
 *
 *   slot   what retrieval goes by and trials speak of: contract, scope, evidence, facts of the
 *          preconditions
 *   name   what the model calls it: name, action, description
 *   body   what it is told: intent, anchor, carrier, effect, risks, prose of the preconditions
 *
 * `shuffled` permutes the bodies of a surface over its slots; `elsewhere` puts name and body of
 * other surfaces' cards into its slots, and slots for which there is none are left out.  Both
 * depend on the trial alone, so that every track of a trial has the same first message and
 * providers' caches serve it.  Withheld cards depend on workload and trial and not on the arm, so
 * that arms are compared under the same ones.  Not here: how an arm is shown (search/cards.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "experiment_impl.h"
#include "base/rng.h"
#include "kernel/surface.h"
#include "skill/skill.h"
#include <stdlib.h>
#include <string.h>

static const char *const arm_names[] = {
    [KLI_ARM_NONE] = "",   [KLI_ARM_OURS] = "ours",         [KLI_ARM_NAMES] = "names",
    [KLI_ARM_ALL] = "all", [KLI_ARM_SHUFFLED] = "shuffled", [KLI_ARM_ELSEWHERE] = "elsewhere"};
_Static_assert(KL_COUNT(arm_names) == KLI_ARM_ELSEWHERE + 1, "a name for every arm");

const char *kli_arm_name(kli_arm arm) {
    KL_ASSERT((size_t)arm < KL_COUNT(arm_names));
    return arm_names[arm];
}

bool kli_arm_parse(kli_arm *out, kl_str name) {
    for (size_t i = KLI_ARM_OURS; i < KL_COUNT(arm_names); i++)
        if (kl_str_eq(name, kl_str_of(arm_names[i]))) return *out = (kli_arm)i, true;
    return false;
}

/* ---- names, bodies, slots ---------------------------------------------------------------- */

static void name_after(kl_card *slot, const kl_card *from) {
    slot->name = from->name;
    slot->action = from->action;
    slot->description = from->description;
}

/* Facts of preconditions are the slot's: retrieval asks them.  Their words are the body's. */
static void take_preconditions(kl_card *slot, kl_arena *a, const kl_card *from) {
    kl_predicate *all = KL_ARRAY(a, kl_predicate, slot->n_pre + from->n_pre + 1);
    int n = 0;
    for (int i = 0; i < slot->n_pre; i++) {
        if (!slot->pre[i].fact.len) continue;
        all[n] = slot->pre[i];
        all[n++].prose = KL_S("");
    }
    for (int i = 0; i < from->n_pre; i++)
        if (from->pre[i].prose.len)
            all[n++] = (kl_predicate){.kind = from->pre[i].kind, .prose = from->pre[i].prose};
    KL_ASSERT(n <= slot->n_pre + from->n_pre);
    slot->pre = all;
    slot->n_pre = n;
}

static void take_body(kl_card *slot, kl_arena *a, const kl_card *from) {
    take_preconditions(slot, a, from);
    slot->intent = from->intent;
    slot->anchor = from->anchor;
    slot->carrier = from->carrier;
    slot->effect = from->effect;
    slot->risks = from->risks;
    slot->verification = from->verification;
    slot->patch = KL_S("");
}

/* ---- permutations ------------------------------------------------------------------------ */

/* Cards of a surface, or of all others. */
static int cards_of(const kl_card ***out, kl_arena *a, const kl_library *l, const char *surface,
                    bool others) {
    int n = 0;
    *out = KL_ARRAY(a, const kl_card *, l->n_cards + 1);
    for (int i = 0; i < l->n_cards; i++) {
        const kl_card *c = &l->cards[i];
        bool own = false;
        if (c->status != KL_CARD_ADMITTED || c->edited) continue;
        for (int j = 0; j < c->verified.surfaces.n; j++)
            own |= kl_str_eq(c->verified.surfaces.at[j], kl_str_of(surface));
        if (own != others) (*out)[n++] = c;
    }
    KL_ASSERT(n <= l->n_cards);
    return n;
}

static kl_stream stream_of_trial(kl_arena *a, const char *what, int trial) {
    return kli_stream_of(0, kl_arena_printf(a, "%s %d", what, trial).ptr);
}

/* A cycle through all of them in random order, so that none stays where it is. */
static int *derangement(kl_arena *a, int n, kl_stream s) {
    uint32_t *order = KL_ARRAY(a, uint32_t, n + 1);
    int *to = KL_ARRAY(a, int, n + 1);
    for (int i = 0; i < n; i++) order[i] = (uint32_t)i;
    kli_stream_shuffle(s, order, (uint32_t)n);
    for (int i = 0; i < n; i++) to[order[i]] = (int)order[(i + 1) % n];
    for (int i = 0; i < n; i++) KL_ASSERT(n == 1 || to[i] != i);
    return to;
}

static void add_shuffled(kl_library *out, kl_buf *note, kl_arena *a, const kl_card **cards, int n,
                         kl_stream s) {
    const int *from = derangement(a, n, s);
    for (int i = 0; i < n; i++) {
        kl_card *slot = &out->cards[out->n_cards++];
        *slot = *cards[i];
        take_body(slot, a, cards[from[i]]);
        kl_buf_printf(note, " %.*s<%.*s", KL_STR_ARG(slot->name), KL_STR_ARG(cards[from[i]]->name));
    }
}

static void add_elsewhere(kl_library *out, kl_buf *note, kl_arena *a, const kl_card **slots,
                          int n_slots, const kl_card **bodies, int n_bodies, kl_stream s) {
    uint32_t *order = KL_ARRAY(a, uint32_t, n_slots + 1);
    for (int i = 0; i < n_slots; i++) order[i] = (uint32_t)i;
    kli_stream_shuffle(s, order, (uint32_t)n_slots);
    for (int i = 0; i < n_slots && i < n_bodies; i++) {
        kl_card *slot = &out->cards[out->n_cards++];
        *slot = *slots[order[i]];
        kl_buf_printf(note, " %.*s<%.*s", KL_STR_ARG(slot->name), KL_STR_ARG(bodies[i]->name));
        take_body(slot, a, bodies[i]);
        name_after(slot, bodies[i]);
    }
}

static int card_by_name(const void *a, const void *b) {
    return strcmp(((const kl_card *)a)->name.ptr, ((const kl_card *)b)->name.ptr);
}

static kl_library *arm_library(kl_buf *note, kl_arena *a, const kl_library *l, kli_arm arm,
                               const char *surface, int trial) {
    kl_library *out = KL_NEW(a, kl_library);
    const kl_card **own, **others;
    *out = *l;
    if (arm != KLI_ARM_SHUFFLED && arm != KLI_ARM_ELSEWHERE) return out;
    const int n = cards_of(&own, a, l, surface, false), m = cards_of(&others, a, l, surface, true);
    out->cards = KL_ARRAY(a, kl_card, n + m + 1);
    out->n_cards = 0;
    kl_buf_printf(note, "; bodies");
    if (arm == KLI_ARM_ELSEWHERE) {
        add_elsewhere(out, note, a, own, n, others, m, stream_of_trial(a, "elsewhere", trial));
    } else {
        add_shuffled(out, note, a, own, n, stream_of_trial(a, "shuffled", trial));
        add_shuffled(out, note, a, others, m, stream_of_trial(a, "shuffled others", trial));
    }
    KL_ASSERT(out->n_cards <= n + m);
    qsort(out->cards, (size_t)out->n_cards, sizeof *out->cards, card_by_name);
    return out;
}

/* ---- withheld ---------------------------------------------------------------------------- */

/* By name alone, whatever other cards there are. */
static void withhold(kl_cards_arm *out, kl_buf *note, kl_arena *a, const kl_card **cards, int n,
                     const char *place, double mask) {
    if (mask > 0) kl_buf_printf(note, "; withheld");
    for (int i = 0; mask > 0 && i < n; i++) {
        const kl_str name = cards[i]->name;
        const kl_stream s =
            kli_stream_of(0, kl_arena_printf(a, "withhold %s %.*s", place, KL_STR_ARG(name)).ptr);
        if (kli_stream_uniform(s, 0) >= mask) continue;
        *KL_PUSH(a, out->withheld.at, out->withheld.n) = name;
        kl_buf_printf(note, " %.*s", KL_STR_ARG(name));
    }
}

void kli_arm_apply(kl_search_opts *o, kl_arena *a, const kl_library *all,
                   const kl_experiment_policy *p, kl_str workload, int trial) {
    kl_cards_arm *arm = KL_NEW(a, kl_cards_arm);
    const kl_card **own;
    kl_buf note = {0};
    KL_ASSERT(all && p->arm != KLI_ARM_NONE);
    kl_buf_printf(&note, "cards: %s", kli_arm_name(p->arm));
    o->library = arm_library(&note, a, all, p->arm, o->start->surface->name, trial);
    arm->shown = p->arm == KLI_ARM_NAMES ? KLI_SHOW_INDEX
                 : p->arm == KLI_ARM_ALL ? KLI_SHOW_ALL
                                         : KLI_SHOW_FITTING;
    const int n = cards_of(&own, a, o->library, o->start->surface->name, false);
    withhold(arm, &note, a, own, n, kl_arena_printf(a, "%.*s %d", KL_STR_ARG(workload), trial).ptr,
             p->mask);
    arm->note = kl_buf_take(&note, a);
    o->arm = arm;
}
