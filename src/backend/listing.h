/* listing.h - what a compiler made of a kernel, for a reader.  SPDX-License-Identifier: Apache-2.0
 */
#ifndef KL_BACKEND_LISTING_H
#define KL_BACKEND_LISTING_H
#include "compile.h"

/* The loop of a disassembly (objdump's, cuobjdump's, or PTX) that most of the time should be spent
 * in: a line about it, then its instructions.  Empty where nothing loops. */
kl_str kli_listing_hottest(kl_arena *a, kl_str code);
/* What gcc or clang said of vectors: "line 12: not vectorized: complicated access pattern" each. */
kl_str kli_listing_remarks(kl_arena *a, kl_str log);
/* What ptxas warned of: lost performance. */
kl_str kli_listing_warnings(kl_arena *a, kl_str log);

#endif
