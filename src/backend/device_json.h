/* device_json.h - a device as the JSON that `klineage-worker probe` prints.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_DEVICE_JSON_H
#define KL_BACKEND_DEVICE_JSON_H
#include "backend/backend.h"

/* One line on stdout, as backend.def declares it.  Returns an exit status. */
int kli_device_print(const kl_device *d);
KL_MUST_USE kl_err kli_device_parse(kl_device *out, kl_arena *a, kl_str json, kl_error *e);

/* Exit status of a probe that could not find out, as of sysexits.h's "try again". */
#define KLI_PROBE_BUSY 75

#endif
