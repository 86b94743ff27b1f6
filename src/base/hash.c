/* hash.c - see hash.h.  SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include <sha2.h>
#include <string.h>
#include <xxhash.h>

_Static_assert(sizeof(SHA2_CTX) <= sizeof(kl_hasher), "libmd's context fits");
_Static_assert(_Alignof(SHA2_CTX) <= _Alignof(kl_hasher), "and is aligned");
_Static_assert(sizeof((kl_hash){0}.hex) == 2 * SHA256_DIGEST_LENGTH + 1, "two digits a byte");

static SHA2_CTX *context_of(kl_hasher *h) { return (SHA2_CTX *)(void *)h->state; }

static void update(kl_hasher *h, const void *bytes, size_t n) {
    if (n) SHA256Update(context_of(h), bytes, n);
}

void kli_hasher_init(kl_hasher *h) {
    memset(h, 0, sizeof *h);
    SHA256Init(context_of(h));
}

void kli_hasher_add(kl_hasher *h, kl_str part) {
    unsigned char length[8]; /* little-endian, so that every platform agrees */
    for (unsigned i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)part.len >> (8 * i));
    update(h, length, sizeof length);
    update(h, part.ptr, part.len);
}

kl_hash kli_hasher_end(kl_hasher *h) {
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_LENGTH];
    kl_hash hash;
    SHA256Final(digest, context_of(h));
    for (size_t i = 0; i < sizeof digest; i++) {
        hash.hex[2 * i] = digits[digest[i] >> 4];
        hash.hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hash.hex[64] = '\0';
    return hash;
}

kl_hash kli_hash_parts(const kl_str *parts, size_t n) {
    kl_hasher h;
    kli_hasher_init(&h);
    for (size_t i = 0; i < n; i++) kli_hasher_add(&h, parts[i]);
    return kli_hasher_end(&h);
}

kl_hash kli_hash_of(kl_str data) {
    kl_hasher h;
    kli_hasher_init(&h);
    update(&h, data.ptr, data.len);
    return kli_hasher_end(&h);
}

uint64_t kli_hash_bulk(const void *data, size_t bytes) { return XXH3_64bits(data, bytes); }
