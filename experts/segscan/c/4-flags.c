// Running sums of segments: the values as one stream, and a bit for every value that begins a segment.
// adds: other:head_flags
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: segments of some dozen values leave vectors part empty, and the processor guesses wrong where each of
// them ends.  One stream is all full vectors and has no such branch: a segment's head is a bit, and a round adds only
// to lanes that have no head between them and the lane that is added.
// Needs: vectors of running sums (scan_in_registers); a word of bits for each vector, filled a block at a time so that
// it stays in the first cache.  `joined` starts as the lanes that are no heads; after each round it is the lanes
// without a head among twice as many.  What came before the vector is added to the lanes in front of the first head.
//! param  BLOCK = 4096 {1024, 4096, 16384}
//! buffer heads: i32[BLOCK / 16]
//! launch segscan args(values, offsets, output, heads, N, S)
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#ifndef __AVX512F__
#error "this kernel needs AVX-512"
#endif

enum { LANES = 16 };

static inline __mmask16 lanes(int32_t left)
{
    return left >= LANES ? 0xffff : (__mmask16)((1u << left) - 1);
}

// To each lane of a mask the one `distance` lanes before it; the first lanes, which have none, are never in the mask.
#define ADD_BEFORE(sum, mask, distance) \
    _mm512_mask_add_ps(sum, (__mmask16)(mask), sum, \
                       (__m512)_mm512_alignr_epi32((__m512i)(sum), (__m512i)(sum), LANES - (distance)))

// Running sums that start again at every head.  Lane 0 counts as one: nothing of this vector lies before it.
static inline __m512 scan(__m512 sum, uint32_t heads)
{
    uint32_t joined = ~(heads | 1);
    sum = ADD_BEFORE(sum, joined, 1);
    joined &= joined << 1;
    sum = ADD_BEFORE(sum, joined, 2);
    joined &= joined << 2;
    sum = ADD_BEFORE(sum, joined, 4);
    joined &= joined << 4;
    return ADD_BEFORE(sum, joined, 8);
}

// Mark the heads among the `count` values from `first` on; the number of the next segment is returned.
static int32_t mark_heads(uint32_t *heads, const int32_t *offsets, int32_t s, int32_t S, int32_t first, int32_t count)
{
    memset(heads, 0, KL_BLOCK / LANES * sizeof *heads);
    for (; s < S && offsets[s] < first + count; s++)
        heads[(offsets[s] - first) / LANES] |= 1u << (offsets[s] - first) % LANES;
    return s;
}

static inline __m512 scan_vector(const float *values, float *output, uint32_t heads, __mmask16 here, __m512 carry)
{
    const uint32_t end = heads | 1u << LANES, front = (end & -end) - 1;    // lanes that go on with what came before
    __m512 sum = scan(_mm512_maskz_loadu_ps(here, values), heads);
    sum = _mm512_mask_add_ps(sum, (__mmask16)front, sum, carry);
    _mm512_mask_storeu_ps(output, here, sum);
    return _mm512_permutexvar_ps(_mm512_set1_epi32(LANES - 1), sum);
}

void segscan(const float *values, const int32_t *offsets, float *output, uint32_t *heads, int32_t N, int32_t S)
{
    __m512 carry = _mm512_setzero_ps();
    int32_t s = 0;
    for (int32_t first = 0; first < N; first += KL_BLOCK) {
        const int32_t count = N - first < KL_BLOCK ? N - first : KL_BLOCK;
        s = mark_heads(heads, offsets, s, S, first, count);
        for (int32_t i = 0; i < count; i += LANES)
            carry = scan_vector(values + first + i, output + first + i, heads[i / LANES], lanes(count - i), carry);
    }
}
