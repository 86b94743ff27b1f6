// Running sums of segments: sixteen values at a time in four rounds.
// adds: other:scan_in_registers
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: a running sum waits for every addition.  In a vector, adding to each lane the one that is 1, 2, 4 and 8
// lanes before gives sixteen running sums in four additions; what was summed before is added to all of them at last.
// Needs: AVX-512, and additions in another order.  A segment's end is loaded and stored under a mask.
//! launch segscan args(values, offsets, output, S)
#include <immintrin.h>
#include <stdint.h>

#ifndef __AVX512F__
#error "this kernel needs AVX-512"
#endif

enum { LANES = 16 };

static inline __mmask16 lanes(int32_t left)
{
    return left >= LANES ? 0xffff : (__mmask16)((1u << left) - 1);
}

// To each lane the one `distance` lanes before it; the first lanes have none and add zero.
#define ADD_BEFORE(sum, distance) \
    _mm512_add_ps(sum, (__m512)_mm512_alignr_epi32((__m512i)(sum), _mm512_setzero_si512(), LANES - (distance)))

static inline __m512 scan(__m512 sum)
{
    sum = ADD_BEFORE(sum, 1);
    sum = ADD_BEFORE(sum, 2);
    sum = ADD_BEFORE(sum, 4);
    return ADD_BEFORE(sum, 8);
}

static void scan_segment(const float *values, float *output, int32_t count)
{
    __m512 carry = _mm512_setzero_ps();
    for (int32_t i = 0; i < count; i += LANES) {
        const __mmask16 here = lanes(count - i);
        const __m512 sum = scan(_mm512_maskz_loadu_ps(here, values + i)) + carry;
        _mm512_mask_storeu_ps(output + i, here, sum);
        carry = _mm512_permutexvar_ps(_mm512_set1_epi32(LANES - 1), sum);
    }
}

void segscan(const float *values, const int32_t *offsets, float *output, int32_t S)
{
    for (int32_t s = 0; s < S; s++)
        scan_segment(values + offsets[s], output + offsets[s], offsets[s + 1] - offsets[s]);
}
