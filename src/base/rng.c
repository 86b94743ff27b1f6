/* rng.c - see rng.h.  SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "base/hash.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* 64-bit products are one instruction only from AVX-512 on, yet even the emulation in AVX2 gains:
 * pick at load time. Sanitizers instrument the resolver, which runs before they are ready. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) &&                 \
    !defined(__SANITIZE_THREAD__) && defined(__GNUC__) && !defined(__clang__)
#define VECTORISED                                                                                 \
    __attribute__((target_clones("default", "avx2", "arch=x86-64-v4"), optimize("O3")))
#else
#define VECTORISED
#endif

uint64_t kli_seed_fresh(void) {
    uint64_t seed;
    ssize_t n;
    do n = getrandom(&seed, sizeof seed, 0);
    while (n < 0 && errno == EINTR);
    KL_ASSERT(n == (ssize_t)sizeof seed); /* requests up to 256 bytes are never short */
    return seed;
}

kl_stream kli_stream_of(uint64_t seed, const char *name) {
    uint64_t h = kli_mix64(seed + 0x9e3779b97f4a7c15ull);
    for (const char *p = name; *p; p++)
        h = kli_mix64(h ^ (unsigned char)*p) + 0x9e3779b97f4a7c15ull;
    return (kl_stream){kli_mix64(h)};
}

static kl_str bytes_of(const uint64_t *value) {
    return (kl_str){(const char *)value, sizeof *value};
}

uint64_t kli_seed_derive(uint64_t root, const char *name, uint64_t index) {
    char first[17] = "";
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, KL_S("klineage/seed/1"));
    kli_hasher_add(&h, bytes_of(&root));
    kli_hasher_add(&h, kl_str_of(name));
    kli_hasher_add(&h, bytes_of(&index));
    memcpy(first, kli_hasher_end(&h).hex, 16);
    return strtoull(first, NULL, 16);
}

double kli_stream_uniform(kl_stream s, uint64_t i) { return kli_key_uniform(s.key, i); }

uint64_t kli_stream_below(kl_stream s, uint64_t i, uint64_t n) {
    KL_ASSERT(n > 0);
    return kli_key_below(s.key, i, n);
}

void kli_stream_shuffle(kl_stream s, uint32_t *order, uint32_t n) {
    for (uint32_t i = n; i > 1; i--) {
        uint64_t j = kli_stream_below(s, i, i);
        uint32_t held = order[i - 1];
        order[i - 1] = order[j];
        order[j] = held;
    }
}

VECTORISED void kli_stream_fill_normal(kl_stream s, uint64_t first, float *out, size_t n) {
    for (size_t j = 0; j < n; j++) out[j] = kli_stream_normal(s, first + j);
}
