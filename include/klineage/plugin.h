/* plugin.h - the ABI of a trusted baseline: a vendor library called the way a user would call it.
 *
 * A plugin is one C file in a task's baseline/ folder.  It is compiled to a shared object that
 * links libc alone and finds its library with dlopen, so a host without the library skips the
 * baseline instead of failing to start. Plugins are trusted: they are part of a task, never of a
 * candidate.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_PLUGIN_H
#define KLINEAGE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KL_PLUGIN_MAX_DIMS 8

/* Same values as kl_dtype in base.h. */
enum {
    KL_PLUGIN_F64 = 1,
    KL_PLUGIN_F32,
    KL_PLUGIN_F16,
    KL_PLUGIN_BF16,
    KL_PLUGIN_F8E4M3,
    KL_PLUGIN_F8E5M2,
    KL_PLUGIN_I64,
    KL_PLUGIN_I32,
    KL_PLUGIN_I16,
    KL_PLUGIN_I8,
    KL_PLUGIN_U8,
    KL_PLUGIN_BOOL
};

/* One input or output of the task, dense and row-major.  Tensors come in the definition's order,
 * inputs first. */
typedef struct {
    const char *name;
    int dtype;                        // KL_PLUGIN_F32 ...
    int ndim;                         // 0: a scalar input
    int64_t dims[KL_PLUGIN_MAX_DIMS]; // elements, outermost first
    void *data; // host pointer (cpu) or device pointer (gpu); for a scalar always a host pointer
} kl_plugin_tensor;

typedef struct {
    int n_tensors;
    const kl_plugin_tensor *tensors;
    void *stream; // CUstream on a gpu, NULL on a cpu
    int threads;  // CPU threads the run may use
} kl_plugin_call;

/* The three functions a plugin exports.  Each returns 0, or another number after writing one line
 * to `why`. open     once per process: load the library.  Failing here means "not installed", and
 * the baseline is skipped. prepare  once per shape and data type, outside every timed interval:
 * choose algorithms, allocate workspaces. Pointers in later runs differ; shapes do not. run the
 * timed call: enqueue on `stream` (gpu: it must be capturable in a graph) or compute at once (cpu).
 */
int kl_plugin_open(void **state, char *why, size_t why_bytes);
int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes);
int kl_plugin_run(void *state, const kl_plugin_call *call);

/* What the library says of itself, for the record: version and the kernel or core it chose
 * ("OpenBLAS 0.3.21 Cooperlake"). Borrowed; lives as long as the state. */
const char *kl_plugin_describe(void *state);

#ifdef __cplusplus
}
#endif
#endif
