/* backend.h - where kernels run: the devices that are here, and what confines a process on them.
 *
 * The process that uses this header never loads a driver and never runs a kernel: devices are
 * probed and kernels are run by `klineage-worker`, a program that needs libc and dlopen alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_BACKEND_H
#define KLINEAGE_BACKEND_H

#include <klineage/kernel.h>
#include <klineage/record.h>

KL_API_BEGIN

typedef enum { KL_BACKEND_CPU = 1, KL_BACKEND_OPENCL, KL_BACKEND_CUDA } kl_backend_id;

typedef double kl_peaks[KL_DTYPE_END]; /* 0: unknown */

/* One device as probed; its fields are declared in backend.def. */
typedef struct {
#define KL_DEF_DEVICE KL_MEMBER
#include <klineage/backend.def>
} kl_device;

/* ---- compile ----------------------------------------------------------------------------- */

/* Numbers read from compiled code and compiler reports, never from source text.  Names:
 * docs/formats/verdict.md. */
typedef struct {
    kl_str name;
    double value;
} kl_feature;

typedef struct {
    const char *cache_dir; /* NULL: kl_fs_cache_dir()/compile */
    bool no_cache;
    bool
        carried; /* a spool's cache: artefacts made on another host count, whatever compiled them */
    char require_assurance; /* 'A', 'B' or 0; fails with KL_EISOLATION when the compile cannot be
                               confined */
} kl_compile_opts;

/* ---- devices ----------------------------------------------------------------------------- */

/* Probe through the worker.  Cached for the life of the process, and what is known of a GPU in a
 * file as long as driver, GPUs and boot stay.  Errors: KL_ENODEV with a hint that mends it. */
KL_MUST_USE kl_err kl_device_probe(kl_device *out, kl_arena *a, kl_backend_id id, kl_error *e);
/* The same for the i-th back end that runs a surface, the preferred one first.  Errors: KL_ENOENT:
 * there are no more. */
KL_MUST_USE kl_err kl_device_of_surface(kl_device *out, kl_arena *a, const kl_surface *s, int i,
                                        kl_error *e);
/* The same, of the device itself, whatever is cached. */
KL_MUST_USE kl_err kl_device_measure(kl_device *out, kl_backend_id id, kl_error *e);

/* A device to compile for that need not be here: `arch` "sm_90a" (NULL: that).  Of limits and peaks
 * only what the architecture says, its shared memory, is known; the others are zero. */
KL_MUST_USE kl_err kl_device_target(kl_device *out, kl_arena *a, kl_backend_id id, const char *arch,
                                    kl_error *e);

/* What a compiler made of a kernel, for readers; each may be empty. */
typedef struct {
    kl_str remarks;   /* "line 12: not vectorized: complicated access pattern", a line each */
    kl_str resources; /* registers, spills, how many blocks of a launch fit a multiprocessor */
    kl_str hot_loop;  /* the instructions of the loop that most of the time should be spent in */
} kl_compiled;
/* Compiles `k`, or takes it out of the compiler's cache; runs nothing.  Errors: KL_ENODEV (no
 * compiler), KL_EISOLATION, KL_EIO, KL_EINVAL: it does not compile. */
KL_MUST_USE kl_err kl_compiled_of(kl_compiled *out, kl_arena *a, const kl_device *d,
                                  const kl_kernel *k, const kl_task *t, const kl_workload *w,
                                  const kl_compile_opts *o, kl_error *e);

/* Of one launch; zero where the device does not say. */
typedef struct {
#define KL_DEF_RESOURCES KL_MEMBER
#include <klineage/backend.def>
} kl_resources;

KL_API_END
#endif
