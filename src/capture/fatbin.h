/* fatbin.h - the cubin of one device out of the code that a program gave to its driver.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_CAPTURE_FATBIN_H
#define KL_CAPTURE_FATBIN_H
#include <klineage/base.h>

/* `image` is a cubin, or a fatbin: several of them, and PTX, each for an architecture, compressed
 * or not.  `arch` is 90 for sm_90.  The newest code that such a device runs and that has kernel
 * `name`; in the arena.  Errors: KL_EPARSE (it is neither, or is cut short), KL_ENOENT (it holds no
 * code for the device, or no such kernel: what the driver made of PTX is not to be had), KL_ENODEV
 * (it is compressed in a way that this build cannot read). */
KL_MUST_USE kl_err kli_fatbin_cubin(kl_str *out, kl_arena *a, kl_str image, int arch,
                                    const char *name, kl_error *e);

#endif
