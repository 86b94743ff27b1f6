/* recall.h - what was measured once and holds as long as its key does: a small file in the cache.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_RECALL_H
#define KL_BASE_RECALL_H
#include <klineage/base.h>

/* The text that was kept under this name with this very key.  False where there is none, and where
 * the file is of another key or damaged: then it is measured anew. */
bool kli_recall(kl_str *out, kl_arena *a, const char *name, kl_str key);
/* Keep it in the place of what was there; a cache that cannot be written keeps nothing. */
void kli_remember(const char *name, kl_str key, kl_str text);

#endif
