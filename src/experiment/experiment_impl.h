/* experiment_impl.h - the inside of an experiment: where its tracks stand, as the journal says it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_EXPERIMENT_EXPERIMENT_IMPL_H
#define KL_EXPERIMENT_EXPERIMENT_IMPL_H
#include "experiment/experiment.h"

/* What the row `p` shows of the cards `all` in this trial: library and arm of `o`, which has its
 * start. */
void kli_arm_apply(kl_search_opts *o, kl_arena *a, const kl_library *all,
                   const kl_experiment_policy *p, kl_str workload, int trial);

typedef struct {
    const char *name;
    kl_track_state state;
    int proposals;
    double start, best; /* ratios of the start, and of the best so far; 0: none */
    int64_t spent_microusd;
} kli_standing;

/* Fill what the steps of the run say; name and state are the caller's. */
void kli_standings_read(kli_standing *rows, int n, const kl_store_step *steps, size_t n_steps);
/* At most `lines` lines of at most `columns` bytes, the last one a sum; running tracks first where
 * not all have room.  Gives the number of lines. */
int kli_standings_render(kl_buf *out, const kli_standing *rows, int n, int lines, int columns,
                         int64_t most_microusd, int64_t elapsed_ns);

/* The table on stderr while tracks run. */
typedef struct {
    kl_run *run;
    kli_standing *rows;
    int n, drawn; /* tracks; lines on the screen */
    int64_t most_microusd, start_ns, next_ns;
} kli_experiment_table;

void kli_table_tick(void *table, const kl_track_state *states, int n); /* for kl_track_opts */
void kli_table_clear(kli_experiment_table *t);

#endif
