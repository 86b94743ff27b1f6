/* dataset_impl.h - steps with what was asked for them, which of them are rows, and into which file
 * each goes.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_DATASET_DATASET_IMPL_H
#define KL_DATASET_DATASET_IMPL_H
#include <klineage/dataset.h>

/* In the order of what is kept where two rows are nearly the same: the last of these wins. */
typedef enum {
    KLI_TRAIN,
    KLI_VALIDATION,
    KLI_TEST,
    KLI_HELD_OUT, /* written nowhere */
    KLI_SPLITS
} kli_split;
const char *kli_split_name(kli_split s);

/* ---- steps: what the journal says -------------------------------------------------------- */

typedef struct {
    kl_dataset_step *at;
    int n;
    kl_str *runs; /* ids */
    int n_runs;
} kli_samples;

/* Every step of the runs, in the order of the runs, each track together. */
KL_MUST_USE kl_err kli_samples_load(kli_samples *out, kl_arena *a, kl_store *s,
                                    const kl_dataset_opts *o, kl_error *e);

/* One answer of a model. */
typedef struct {
    kl_str request, reply, model; /* request: JSON of the effect */
    int64_t cost_microusd;
    bool prose; /* a plan, a summary: no proposal */
    int step;   /* of which step; -1: of none */
} kli_question;

/* Which answer of a track led to which of its steps; `n` each in the track's order.  Writes `link`
 * and `reply` of each step and returns the question's place, or -1, in `which`. */
void kli_link(kl_dataset_step *steps, int n_steps, kli_question *asked, int n_asked, int *which);

/* ---- rows: which steps a format wants ---------------------------------------------------- */

bool kli_is_change(const kl_dataset_step *s); /* a proposal: neither start, reference nor end */
/* NULL where it is a row of this format; else why it is none. */
const char *kli_left_out(const kl_dataset_step *s, kl_dataset_format f);
/* Of the steps that `take` holds, those that are the best of their search and show nothing of each
 * other: the others are taken out. */
void kli_best_steps(const kli_samples *s, bool *take, kl_arena *a);
kl_dataset_pair *kli_pairs(int *n, const kli_samples *s, const bool *take, kl_arena *a);
bool kli_is_rejected(const kl_dataset_step *s);

/* ---- splits ------------------------------------------------------------------------------ */

kli_split kli_split_of(kl_str family); /* by its hash alone: the same in every data set */

/* What a kernel's text is made of, as the least of the hashes of its runs of tokens. */
enum { KLI_SKETCH = 128 };
typedef struct {
    uint64_t least[KLI_SKETCH]; /* ascending, each once */
    int n;
} kli_sketch;
void kli_sketch_of(kli_sketch *out, kl_str text);
double kli_alike(const kli_sketch *x, const kli_sketch *y); /* 0 to 1: Jaccard, estimated */
#define KLI_NEARLY_SAME 0.8

/* The split of each step; KLI_SPLITS for one that is nearly the same as a step of a split that
 * counts more: it is written nowhere. */
void kli_splits(kli_split *out, const kli_samples *s, const bool *take, const kl_dataset_opts *o,
                kl_arena *a);

/* ---- files ------------------------------------------------------------------------------- */

kl_str kli_card(kl_arena *a, const kl_dataset *d, const kl_dataset_opts *o);

#endif
