/* rng.h - counter-based randomness in named substreams: value i of stream s never depends on who
 * asked first. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (the
 * splitmix64 finaliser as a hash of a counter).  Not for secrets: those are split off by
 * kli_seed_derive, and seeds themselves come from getrandom(2).  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_BASE_RNG_H
#define KL_BASE_RNG_H
#include <klineage/base.h>

typedef struct {
    uint64_t key;
} kl_stream;

uint64_t kli_seed_fresh(void);                            /* 64 bits from getrandom(2) */
kl_stream kli_stream_of(uint64_t seed, const char *name); /* substream by name */

/* A seed or key that tells nothing of `root`, nor of what another name or index gives: the first 64
 * bits of SHA-256 over all three. The streams themselves are bijections: whoever reads one value
 * can compute its key. */
uint64_t kli_seed_derive(uint64_t root, const char *name, uint64_t index);

/* The splitmix64 finaliser: a bijection of 64 bits in which every input bit reaches every output
 * bit. */
static inline uint64_t kli_mix64(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static inline uint64_t kli_stream_u64(kl_stream s, uint64_t i) {
    return kli_mix64(s.key + (i + 1) * 0x9e3779b97f4a7c15ull);
}

double kli_stream_uniform(kl_stream s, uint64_t i); /* [0,1), 53 bits */
uint64_t kli_stream_below(kl_stream s, uint64_t i,
                          uint64_t n); /* [0,n), n > 0; biased by less than n / 2^64 */
void kli_stream_shuffle(kl_stream s, uint32_t *order,
                        uint32_t n); /* Fisher-Yates over order[0..n) */

/* Mean 0, variance 1: eight 16-bit uniforms summed in integers, so that every platform gives the
 * same bits. |x| < 4.9. Four of the eight come from the hash and four from one more multiplication
 * of it: a kernel's inputs are hundreds of millions of these, and 64-bit products are what they
 * cost.  Value i uses the hash that kli_stream_u64(s, i) gives. */
static inline float kli_stream_normal(kl_stream s, uint64_t i) {
    const uint64_t lanes = 0x0000ffff0000ffffull;
    uint64_t h = kli_stream_u64(s, i);
    uint64_t g = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ull;
    g ^= g >> 32;
    uint64_t pairs = (h & lanes) + ((h >> 16) & lanes) + (g & lanes) + ((g >> 16) & lanes);
    int32_t sum = (int32_t)((uint32_t)pairs + (uint32_t)(pairs >> 32)) - 8 * 65535 / 2;
    return (float)sum * 1.86881237e-5f; /* 1 / sqrt(8 (2^32 - 1) / 12) */
}

/* out[j] = kli_stream_normal(s, first + j), in the widest vectors this machine has. */
void kli_stream_fill_normal(kl_stream s, uint64_t first, float *out, size_t n);
#endif
