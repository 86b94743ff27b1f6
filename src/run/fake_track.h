/* fake_track.h - effects for tests: replies out of a list or from a function, verdicts out of what
 * a kernel says of itself, no store, no gate, no compiler.
 *
 * A source may hold `ns 200` in a comment (its time; 300 otherwise), `outcome wrong` (its verdict;
 * pass otherwise) and `baseline other` (what it was timed against; blas otherwise), `spread 0.3`
 * (half the width of its interval against that; 0.002), `wide 0.3` (the same against another
 * kernel, where it then never settles) and `floor 0.2` (A/A noise of its runs; 0.001).  An unstable
 * one is timed too. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_RUN_FAKE_TRACK_H
#define KL_RUN_FAKE_TRACK_H
#include "run/effects.h"

typedef struct {
    kl_err err;
    kl_stop stop;
    kl_str text;
} fake_reply;

/* What the call that is the n-th of its track, from 0, gets. */
typedef void fake_answer(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx);

/* A row as kl_track_step got it. */
typedef struct {
    char action[32], locus[32], outcome[16], kernel[65], verdict_key[65];
    double ratio;
    bool best;
} fake_step;

typedef struct {
    kl_track base;
    const char *model; /* name of it; "fake" otherwise */
    fake_reply replies[64];
    int n_replies, next; /* past the end: KL_ENOENT, as a recording has it */
    kl_buf said[2];      /* what was said in the last deoptimize and rederive request, all turns */
    int turns[2];        /* of those requests */
    kl_gate_opts opts;   /* base options of every gate run */
    int moves_at;        /* verdicts from this number on come from another platform */
    int judged, steps, accepted;
    int prefetched,
        came_true;       /* questions that were announced, and those of them that were asked */
    char ahead[65];      /* key of the last one that was announced */
    fake_answer *answer; /* instead of the list; NULL: the list */
    void *answer_ctx;
    kl_err fails; /* what the ask and the judge numbered here give, and every one behind them; -1:
                     none */
    int ask_fails, judge_fails;
    char heard[65];           /* hash of everything that was asked so far */
    const char *recorded[32]; /* slots of the recording that is replayed, in its order; none:
                                 nothing is replayed */
    char slot[64];            /* of the call that was answered last */
    kl_buf slots;             /* of all of them, without their numbers */
    fake_step *rows;
    int cap_rows;
    kl_str phases; /* first letter of each step's phase, in order, upper case when accepted */
} fake_track;

void fake_track_open(fake_track *t, kl_arena *a);
void fake_track_close(fake_track *t);
void fake_says(fake_track *t, kl_str text); /* one more reply */
void fake_fails(fake_track *t, kl_err err); /* the next call fails */
void fake_answers(fake_track *t, fake_answer *answer, void *ctx);

#endif
