/* skill.h - cards and libraries: klineage/skill.h with the bodies of its handles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SKILL_SKILL_H
#define KL_SKILL_SKILL_H

#include <klineage/skill.h>

#include "kernel/kernel.h"
#include "rewrite/rewrite.h"

/* "source.buffers >= 1", "dtype == float32", "simd_bits >= 256": about a target's facts. */
typedef enum {
    KL_PRE_DATA,
    KL_PRE_LAYOUT,
    KL_PRE_STORAGE,
    KL_PRE_PIPELINE,
    KL_PRE_HARDWARE
} kl_pre_kind;
typedef struct {
    kl_pre_kind kind;
    kl_str fact, op, value; /* op: == != < <= > >= ; fact empty: prose alone */
    kl_str prose;
} kl_predicate;

/* Scope: names, each empty list meaning nothing (declared: what the lift believes; verified: what
 * trials showed). */
typedef struct {
    kl_str *at;
    int n;
} kl_names;
typedef struct {
    kl_names cases, surfaces, platforms, prior;
} kl_scope;

struct kl_card {
    kl_str name;        /* [a-z0-9-], at most 64; folder name */
    kl_str description; /* Agent Skills: what and when, at most 1024 */
    kl_str action;      /* vocabulary id */
    kl_card_status status;
    /* sections of the body, Markdown */
    kl_str intent, anchor, carrier, effect, risks, verification;
    kl_predicate *pre;
    int n_pre;
    kl_str required, provides,
        conflicts; /* trait names separated by spaces; "source.buffers+" is "higher than before" */
    /* the contract of the second generation: predicates over facts, which take the place of the
     * three lists of traits (src/skill/predicate.c has the grammar) */
    kl_str *needs, *brings, *excludes; /* requires, provides, conflicts */
    int n_needs, n_brings, n_excludes;
    kl_scope declared, verified;
    kl_trial_record *trials;
    int n_trials; /* births first */
    kl_trial_record *controls;
    int n_controls; /* the same starts without the card, and with a placebo */
    kl_str patch;   /* forward edits of the best birth: the mechanical carrier */
    kl_traits
        before; /* of the state that the best birth began from: starts like it are tried first */
    kl_str lineages;      /* ids it was lifted from, separated by spaces */
    double expected_gain; /* smallest gain among births that pay */
    kl_str origin;        /* of an imported card: id, file, hash, commit; empty otherwise */
    kl_str flags;         /* of an imported card, what speaks against it: words */
    char body_hash[65];   /* of SKILL.md at admission */
    bool edited;          /* SKILL.md does not match body_hash any more */
    kl_str folder;        /* where it lies; empty when nowhere yet */
};

typedef struct {
    kl_str folder;
    kl_str why;
} kl_broken_card;

typedef struct kl_card_index kl_card_index;
struct kl_library {
    kl_str dir;
    kl_card *cards;
    int n_cards; /* sorted by name; broken ones are left out */
    kl_broken_card *broken;
    int n_broken;
    kl_names edited; /* admitted cards that were changed by hand since */
    kl_broken_card
        *faults; /* cards, by name, that have clauses which cannot be asked: a line each */
    int n_faults;
    kl_card_index *index; /* of one that was opened: its cards are read when they are asked for */
};

#define KL_MAX_NOISE_RECORDS 65536
struct kl_noise_records {
    kl_str *receipts;
    double *noises;
    int n;
};

#endif
