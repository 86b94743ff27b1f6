/* rng.h - counter-based randomness in named substreams: value i of stream s never depends on who
 * asked first. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (the
 * splitmix64 finaliser as a hash of a counter).  Not for secrets: those are split off by
 * kli_seed_derive, and seeds themselves come from getrandom(2).  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_BASE_RNG_H
#define KL_BASE_RNG_H
#include "base/draw.h"
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

static inline uint64_t kli_stream_u64(kl_stream s, uint64_t i) { return kli_key_u64(s.key, i); }

double kli_stream_uniform(kl_stream s, uint64_t i); /* [0,1), 53 bits */
uint64_t kli_stream_below(kl_stream s, uint64_t i,
                          uint64_t n); /* [0,n), n > 0; biased by less than n / 2^64 */
void kli_stream_shuffle(kl_stream s, uint32_t *order,
                        uint32_t n); /* Fisher-Yates over order[0..n) */

/* Mean 0, variance 1; see kli_key_normal. */
static inline float kli_stream_normal(kl_stream s, uint64_t i) { return kli_key_normal(s.key, i); }

/* out[j] = kli_stream_normal(s, first + j), in the widest vectors this machine has. */
void kli_stream_fill_normal(kl_stream s, uint64_t first, float *out, size_t n);
#endif
