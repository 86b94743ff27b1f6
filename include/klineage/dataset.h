/* dataset.h - steps that the journal holds as rows for training.
 *
 * Reads the journal, writes one folder, judges nothing: what is correct and what is faster is the
 * gate's word as the journal keeps it (law 11).  A reply is used for training only where, applied
 * to the parent, it gives the source that was judged.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_DATASET_H
#define KLINEAGE_DATASET_H

#include <klineage/report.h>

KL_API_BEGIN

typedef enum {
    KL_DATASET_SFT,        /* steps that passed and are faster */
    KL_DATASET_RL,         /* the best steps of each search, as prompts */
    KL_DATASET_PREFERENCE, /* pairs of one parent */
    KL_DATASET_TRACE       /* every step */
} kl_dataset_format;
bool kl_dataset_format_parse(kl_dataset_format *out, kl_str name);
const char *kl_dataset_format_name(kl_dataset_format f);

typedef struct {
#define KL_DEF_TURN KL_MEMBER
#include <klineage/dataset.def>
} kl_dataset_turn;

/* One step. */
typedef struct {
#define KL_DEF_SAMPLE KL_MEMBER
#include <klineage/dataset.def>
} kl_dataset_step;

typedef struct {
#define KL_DEF_PREFERENCE KL_MEMBER
#include <klineage/dataset.def>
} kl_dataset_pair;

typedef struct {
#define KL_DEF_TALLY KL_MEMBER
#include <klineage/dataset.def>
} kl_dataset_tally;

typedef struct {
#define KL_DEF_FAMILY KL_MEMBER
#include <klineage/dataset.def>
} kl_dataset_family;

/* What was written, and what was not. */
typedef struct {
#define KL_DEF_DATASET KL_MEMBER
#include <klineage/dataset.def>
} kl_dataset;
extern const kl_record KL_DATASET;
extern const kl_record KL_DATASET_STEP;    /* of `trace` */
extern const kl_record KL_DATASET_SFT_ROW; /* the same struct */
extern const kl_record KL_DATASET_RL_ROW;  /* the same struct */
extern const kl_record KL_DATASET_PAIR;

typedef struct {
    const char *const *runs; /* ids or their beginnings */
    int n_runs;
    kl_dataset_format format;
    const char *dir;        /* made; one that is not empty is refused */
    bool force;             /* replace it */
    const kl_str *held_out; /* NUL-terminated: tasks or families of which nothing may be written; a
                             * stands for any text */
    int n_held_out;
} kl_dataset_opts;

/* Write the folder, whole or not at all.  Errors: KL_ENOENT (no such run), KL_EINVAL (the folder,
 * runs without a step), KL_ELIMIT, KL_EIO. */
KL_MUST_USE kl_err kl_dataset_export(kl_dataset *out, kl_arena *a, kl_store *s,
                                     const kl_dataset_opts *o, kl_error *e);

KL_API_END
#endif
