/* lineage_impl.h - what the files of this folder share.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_LINEAGE_IMPL_H
#define KL_LINEAGE_IMPL_H
#include "kernel/kernel.h"
#include "base/json.h"
#include "base/parts.h"
#include <klineage/lineage.h>

/* Text of a model or a candidate as one line that a terminal may show: no control characters, at
 * most `max` bytes, cut between characters, NUL-terminated. */
kl_str kli_shown_line(kl_arena *a, kl_str text, size_t max);

/* What an edge holds before it is read. */
extern const kl_edge KLI_EDGE_DEFAULTS;

/* The id: sha256 over the compact document without its field "id". */
kl_str kli_lineage_id(kl_arena *a, const json_t *document);

#endif
