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

/* What evidence.json says of it, and what stands in its SKILL.md. */
struct kl_card {
#define KL_DEF_EVIDENCE KL_MEMBER
#include <klineage/skill.def>
    kl_str description; /* Agent Skills: what and when, at most 1024 */
    kl_str action;      /* vocabulary id */
    kl_card_status status;
    /* sections of the body, Markdown */
    kl_str intent, anchor, carrier, effect, risks, verification;
    kl_predicate *pre;
    int n_pre;
    kl_str required, provides,
        conflicts; /* trait names separated by spaces; "source.buffers+" is "higher than before" */
    kl_scope declared, verified;
    double expected_gain; /* smallest gain among births that pay */
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
