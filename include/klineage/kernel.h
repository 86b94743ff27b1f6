/* kernel.h - one candidate: source text and the directives that say how to launch it.
 *
 * Parsing touches no device and runs nothing.  Format: docs/formats/kernel.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_KERNEL_H
#define KLINEAGE_KERNEL_H

#include <klineage/base.h>
#include <klineage/limits.h>
#include <klineage/record.h>
#include <klineage/surface.h>
#include <klineage/task.h>

KL_API_BEGIN

/* What a device allows; zero fields are "unknown, do not check". */
typedef struct {
#define KL_DEF_LIMITS KL_MEMBER
#include <klineage/kernel.def>
} kl_device_limits;

/* A parsed source file, in the arena that it was read into. */
typedef struct kl_kernel kl_kernel;

typedef struct {
    bool trusted; /* oracle or baseline: allow any flag */
    bool oracle;  /* implies trusted: allow `result`; float outputs are f64 unless it says f32 */
    bool may_be_code; /* implied by trusted: allow `cubin`, a kernel that was compiled elsewhere;
                         never for what a model wrote */
    const char *const *params; /* "BM=64" overrides, NULL-terminated; NULL: none */
} kl_kernel_opts;

/* Parse a file, or text with a name for messages; `surface` NULL: by the name's ending.  Everything
 * lives in the arena. Errors: KL_ENOENT, KL_EPARSE (line and caret), KL_ELIMIT (source above
 * KL_MAX_SOURCE_BYTES, too many of something), KL_EINVAL (an override of an unknown param). */
KL_MUST_USE kl_err kl_kernel_load(kl_kernel **out, kl_arena *a, const char *path,
                                  const kl_kernel_opts *o, kl_error *e);
KL_MUST_USE kl_err kl_kernel_parse(kl_kernel **out, kl_arena *a, kl_str text, kl_str path,
                                   const kl_surface *surface, const kl_kernel_opts *o, kl_error *e);
kl_str kl_kernel_source(const kl_kernel *k);
const kl_surface *kl_kernel_surface(const kl_kernel *k);
const char *kl_kernel_hash(const kl_kernel *k); /* identity: surface, source, flags, parameters */
/* Files of kernels.  A ladder (experts/README.md) keeps rungs as edits of the rung below: where
 * there is `3-vector.diff` and no `3-vector.c`, reading the one means applying the other.  Errors:
 * KL_ENOENT, KL_EPARSE (edits that do not fit), KL_ELIMIT. list  names of the kernels of a folder,
 * sorted by name; a rung has the name of the kernel that it makes file  the file that holds the
 * kernel or its edits; empty when there is neither read  the text of `path`; a path that ends in
 * .diff becomes that of the kernel it makes */
KL_MUST_USE kl_err kl_kernel_list(kl_str **names, size_t *n, kl_arena *a, const char *dir,
                                  kl_error *e);
kl_str kl_kernel_file(kl_arena *a, const char *path);
KL_MUST_USE kl_err kl_kernel_read(kl_str *text, kl_str *path, kl_arena *a, kl_error *e);

/* Unified-style difference of two sources, directives first; for people and for models.  Lives in
 * the arena. */
kl_str kl_kernel_diff(kl_arena *a, const kl_kernel *from, const kl_kernel *to);

KL_API_END
#endif
