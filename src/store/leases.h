/* leases.h - who works on what, for a reader.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_LEASES_H
#define KL_STORE_LEASES_H
#include <klineage/store.h>

typedef struct {
    kl_str name, owner; /* "process 17", "process 17 of HOST" */
    bool held;          /* false: its owner is gone, and the next one that asks has it */
} kli_known_lease;
KL_MUST_USE kl_err kli_lease_list(kli_known_lease **rows, size_t *n, kl_store *s, kl_arena *a,
                                  kl_error *e);

#endif
