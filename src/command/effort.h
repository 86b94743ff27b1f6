/* effort.h - what the commands that spend have in common: model, budget, trial, store, as given on
 * the command line. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_EFFORT_H
#define KL_COMMAND_EFFORT_H
#include "command/command.h"
#include <klineage/run.h>

/* Errors: KL_EINVAL for --jobs 0. */
KL_MUST_USE kl_err kli_effort_jobs(const kli_args *args, kl_error *e);
/* --trial --store --spool --quick --arch --jobs: a run in which no model is asked. */
KL_MUST_USE kl_err kli_effort_gates(kl_run_opts *out, kl_arena *a, const kli_args *args,
                                    const char *command, kl_error *e);
/* --model --priced-as --budget --budget-total --trial --store --spool --quick.  The identity is the
 * caller's to fill. */
KL_MUST_USE kl_err kli_effort_run(kl_run_opts *out, kl_arena *a, const kli_args *args,
                                  const char *command, kl_error *e);
/* Who judges: "local", or "spool:DIR" with --spool DIR. */
const char *kli_effort_executor(kl_arena *a, const kli_args *args);
bool kli_effort_elsewhere(const kli_args *args); /* than in this process */
/* Errors: KL_EINVAL for --spool beside --executor. */
KL_MUST_USE kl_err kli_effort_one_executor(const kli_args *args, kl_error *e);
/* Answers come out of a recording: its end is an end in order. */
bool kli_effort_replays(const char *model);
/* How alike does identical code run here now?  Keeps it in the journal, says so when little will be
 * decided, now or by this host's record, and goes on; with --wait-quiet it waits first.  To be
 * asked before anything is paid for.  Nothing is measured where the kernels run elsewhere
 * (--spool), nor for a run that goes on, to which it was said before.  Errors: KL_EINTR. */
KL_MUST_USE kl_err kli_effort_quiet(const kli_args *args, kl_run *run, kl_error *e);
/* For commands that spend nothing: --wait-quiet alone measures.  `out`: this host's record in the
 * journal (NULL: none). */
KL_MUST_USE kl_err kli_effort_host(kl_noise_record *out, kl_arena *a, const kli_args *args,
                                   kl_store *journal, kl_error *e);
/* --jobs --once. */
kl_track_opts kli_effort_tracks(const kli_args *args);
/* Dollars of an option as micro-dollars; `otherwise` when it is not given.  Errors: KL_EINVAL. */
KL_MUST_USE kl_err kli_effort_dollars(int64_t *microusd, const kli_args *args, kli_option_id id,
                                      int64_t otherwise, kl_error *e);
/* A real number of an option. */
KL_MUST_USE kl_err kli_effort_real(double *out, const kli_args *args, kli_option_id id,
                                   double otherwise, kl_error *e);
/* A count of an option, from 1 to `most`; `otherwise` when it is not given.  Errors: KL_EINVAL. */
KL_MUST_USE kl_err kli_effort_count(int *out, const kli_args *args, kli_option_id id, int otherwise,
                                    int most, kl_error *e);
/* Does the ledger of the run hold a call whose tokens were counted from bytes? */
KL_MUST_USE kl_err kli_effort_estimated(bool *out, kl_run *r, kl_arena *a, kl_error *e);
/* "$1.23", with the run to look it up in. */
void kli_effort_spent(kl_buf *out, const kl_run *r, int64_t microusd, bool estimated);

#endif
