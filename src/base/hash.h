/* hash.h - content identity.  SHA-256 (libmd) where somebody hostile may choose the content, XXH3
 * for bulk comparison. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_HASH_H
#define KL_BASE_HASH_H
#include <klineage/base.h>

typedef struct {
    char hex[65];
} kl_hash; /* lower-case sha256, NUL-terminated; all-zero means none */

typedef struct {
    _Alignas(16) unsigned char state[224];
} kl_hasher; /* libmd's context, hidden */
void kli_hasher_init(kl_hasher *h);
void kli_hasher_add(kl_hasher *h,
                    kl_str part); /* length-prefixed, so ("ab","c") differs from ("a","bc") */
kl_hash kli_hasher_end(kl_hasher *h);
kl_hash kli_hash_of(kl_str data);
kl_hash kli_hash_parts(const kl_str *parts, size_t n);  /* each added to one hasher */
uint64_t kli_hash_bulk(const void *data, size_t bytes); /* XXH3-64: fast, not for adversaries */
#endif
