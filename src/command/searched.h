/* searched.h - what the tracks of a search came to: optimize and experiment say it alike.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_SEARCHED_H
#define KL_COMMAND_SEARCHED_H
#include "command/command.h"
#include <klineage/experiment.h>

typedef struct {
    json_t *rows;           /* one a track */
    int64_t spent_microusd; /* of all of them */
    bool estimated;         /* tokens of a call were counted from bytes */
    bool improved;          /* one of them proved to be faster than its start */
    int ended, failed, waiting;
} kli_searched;

/* A line and a row for each track, those that failed or wait included. */
KL_MUST_USE kl_err kli_searched_show(kli_searched *out, kl_buf *text, kl_arena *a, kl_run *run,
                                     const kl_experiment_track *tracks, int n, kl_error *e);
/* Name of the file for a track's best kernel: "softmax-klineage-1.c". */
kl_str kli_searched_file(kl_arena *a, const kl_experiment_track *t);

#endif
