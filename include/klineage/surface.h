/* surface.h - which kernel languages there are.
 *
 * Compare them by identity.  What one does is a row of operations in src/kernel/surface.h; how to
 * add one: docs/how-to/add-a-surface.md.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_SURFACE_H
#define KLINEAGE_SURFACE_H

#include <klineage/base.h>
#include <klineage/task.h>

KL_API_BEGIN

typedef struct kl_surface kl_surface;

const char *kl_surface_name(const kl_surface *s);
/* In the order of the table; NULL past the end. */
const kl_surface *kl_surface_each(int i);
/* NULL when unknown. */
const kl_surface *kl_surface_by_name(kl_str name);
/* The i-th surface whose files end as `path` does; NULL past the last.  Where there is more than
 * one, the file itself decides (kl_kernel_parse). */
const kl_surface *kl_surface_of_path(kl_str path, int i);
/* The first of the table for a kind of host: the one whose oracle and naive kernel all kernels
 * there are held against. */
const kl_surface *kl_surface_of_host(kl_host_kind on);

/* For messages, in the arena: "c opencl cuda", and ".c (c), .py (triton, tilelang)". */
kl_str kl_surface_names(kl_arena *a, bool that_run);
kl_str kl_surface_endings(kl_arena *a);

KL_API_END
#endif
