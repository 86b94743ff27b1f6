/* cpu_probe.h - what this processor is.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_CPU_PROBE_H
#define KL_BACKEND_CPU_PROBE_H
#include "backend/backend.h"

int kli_cpu_probe(void); /* kli_runner_ops.probe */
/* Arch, limits and upper bounds that OpenCL on a CPU shares with the C surface. */
void kli_cpu_describe(kl_device *d, kl_arena *a);

#endif
