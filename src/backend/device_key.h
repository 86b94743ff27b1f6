/* device_key.h - SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_DEVICE_KEY_H
#define KL_BACKEND_DEVICE_KEY_H
#include "backend/backend.h"

/* What the answer of a probe of the GPU hangs on, read in files of `proc` ("/proc") without loading
 * a driver; empty where that is not known, and the device is asked each time. */
kl_str kli_device_key(kl_arena *a, const char *proc);
/* The answer that was kept under this key, else the worker's, which is kept then; an empty key
 * keeps nothing. */
KL_MUST_USE kl_err kli_device_answer(kl_device *out, kl_arena *a, const kl_backend *b, kl_str key,
                                     kl_error *e);

#endif
