/* starts.h - states of kernels that lie in files.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_STARTS_H
#define KL_COMMAND_STARTS_H

#include <klineage/skill.h>

#define KLI_MAX_STARTS 1024

typedef struct {
    kl_arena *arena;
    const char *workload; /* NULL: the first real shape */
    kl_start *starts;
    int n;
} kli_starts;

/* Each adds to what is there.  Errors: KL_ENOENT, KL_EPARSE of what cannot be read. */
/* The lineages themselves, sorted by file. */
KL_MUST_USE kl_err kli_lineages_of_library(kl_lineage **out, int *n, kl_arena *a, const char *dir,
                                           kl_error *e);
KL_MUST_USE kl_err kli_starts_of_library(kli_starts *g, const char *dir, kl_error *e);
KL_MUST_USE kl_err kli_starts_of_ladders(kli_starts *g, const char *dir, kl_error *e);
KL_MUST_USE kl_err kli_starts_of_tasks(kli_starts *g, kl_error *e);
/* Ladders that lie in `experts` beside the library, if there, unless `ladders` says where. */
KL_MUST_USE kl_err kli_starts_of_experts(kli_starts *g, const char *library, const char *ladders,
                                         kl_error *e);
/* All of them. */
KL_MUST_USE kl_err kli_starts_of_pool(kli_starts *g, const char *library, const char *ladders,
                                      kl_error *e);

#endif
