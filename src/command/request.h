/* request.h - what several commands share: a task, a kernel, a shape and the gate's options, loaded
 * as named on the command line. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_REQUEST_H
#define KL_COMMAND_REQUEST_H
#include "command/command.h"
#include <klineage/skill.h>

/* Names are looked for as kl_task_find does; an unknown one comes with "did you mean". */
KL_MUST_USE kl_err kli_request_task(kl_task **out, kl_arena *a, const char *name_or_path,
                                    kl_error *e);
/* Every folder that holds a task found by name, in the order of the search, one path per name. */
KL_MUST_USE kl_err kli_request_tasks(kl_str **paths, size_t *n, kl_arena *a, kl_error *e);

/* A kernel that does not follow its format is a verdict, so `*out` is then NULL with KL_OK and
 * `refusal` says why; a file that is not there, or --param that does not fit the kernel, is an
 * error of the caller. */
KL_MUST_USE kl_err kli_request_kernel(kl_kernel **out, kl_error *refusal, kl_arena *a,
                                      const char *path, const char *const *params, kl_error *e);

/* The same for who has no use for a verdict: a malformed kernel is an error too. */
KL_MUST_USE kl_err kli_request_sound_kernel(kl_kernel **out, kl_arena *a, const char *path,
                                            const char *const *params, kl_error *e);

/* What a kernel is held against: it may be a captured one (`cubin`). */
KL_MUST_USE kl_err kli_request_opponent(kl_kernel **out, kl_arena *a, const char *path,
                                        kl_error *e);

/* --workload resolved: NULL is the first real shape for the host. */
KL_MUST_USE kl_err kli_request_workload(const kl_workload **out, kl_arena *a, const kl_task *t,
                                        kl_host_kind on, const char *requested, kl_error *e);

/* The library that --library names, or the one that is found. */
KL_MUST_USE kl_err kli_request_library(kl_library **out, kl_arena *a, const kli_args *args,
                                       kl_error *e);

/* LINEAGE, the first word, with the task and the shape that it was walked at.  Errors: KL_EINVAL
 * when the task is another version now. */
KL_MUST_USE kl_err kli_request_lineage(kl_lineage *out, kl_task **task, const kl_workload **w,
                                       kl_arena *a, const kli_args *args, kl_error *e);

/* The gate's options from the arguments; checks --workload and --baseline against the task. */
KL_MUST_USE kl_err kli_request_options(kl_gate_opts *out, kl_arena *a, const kli_args *args,
                                       const kl_task *t, kl_host_kind on, kl_error *e);

/* Something that a new folder would overwrite is at `path`: a file, or a folder with files. */
bool kli_request_is_taken(kl_arena *a, const char *path);

/* Text, JSON and exit status of a verdict. */
void kli_request_show(kli_command_result *out, const kl_verdict *v, bool colour);

#endif
