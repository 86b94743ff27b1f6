/* executors.h - the rows of the table.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_EXECUTOR_EXECUTORS_H
#define KL_EXECUTOR_EXECUTORS_H
#include <klineage/executor.h>

#include "kernel/kernel.h"

extern const kl_executor_ops kli_executor_local; /* local.c */
extern const kl_executor_ops kli_executor_spool; /* spool.c */
extern const kl_executor_ops kli_executor_slurm; /* slurm.c */
extern const kl_executor_ops kli_executor_ssh;   /* ssh.c */

#endif
