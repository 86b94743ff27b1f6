// Top-K, rung 7 on two threads: rows are shared out, each thread has scratch of its own.
// adds: omp_parallel
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: rows are independent and equally long.
// Needs: more rows than threads.  A row is written by one thread.
// measured: cpu 712 [536, 851] x qsort, cpu-large 678 [626, 697] x; two x86-64-v4 cores (Zen 5, gcc 12).  On a busy
// machine the threads wait for a core: unstable.
//! param  SAMPLE = 512 {256, 512, 1024}
//! param  AHEAD = 8192 {1024, 4096, 8192, 16384}
//! threads 2
//! buffer value: f32[2, S + 64]
//! buffer index: i32[2, S + 64]
//! launch topk args(x, values, indices, value, index, B, S, K)
#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if KL_DTYPE_x != KL_F32
#error "this kernel selects among float32 values only"
#endif

#ifdef __AVX512F__
#define LANES 16
#elif defined __AVX2__
#define LANES 8
#else
#define LANES 4
#endif
#define STEP (4 * LANES)                      // values that one turn of the counting loop takes
#define PIECE 16                              // values of the sample that lie side by side

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));

static inline vf load(const float *from)
{
    vf v;
    memcpy(&v, from, sizeof v);
    return v;
}

// Floats as integers in the same order; the map is its own inverse.
static inline int32_t mirror(int32_t bits)
{
    return bits ^ ((bits >> 31) & INT32_MAX);
}

static inline int32_t key_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return mirror(bits);
}

static inline float value_of(int32_t key)
{
    const int32_t bits = mirror(key);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// Write the wanted lanes side by side; up to LANES places may be written, the number that counts is returned.
static inline int32_t compress(float *value, int32_t *index, vf x, vi i, vi wanted)
{
#ifdef __AVX512F__
    const __mmask16 mask = _mm512_test_epi32_mask((__m512i)wanted, (__m512i)wanted);
    _mm512_storeu_ps(value, _mm512_maskz_compress_ps(mask, (__m512)x));
    _mm512_storeu_si512(index, _mm512_maskz_compress_epi32(mask, (__m512i)i));
    return __builtin_popcount(mask);
#elif defined __AVX2__ && defined __BMI2__
    const unsigned mask = (unsigned)_mm256_movemask_ps((__m256)wanted);
    const uint64_t bytes = _pdep_u64(mask, 0x0101010101010101) * 0xff;
    const __m256i order = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)_pext_u64(0x0706050403020100, bytes)));
    _mm256_storeu_ps(value, _mm256_permutevar8x32_ps((__m256)x, order));
    _mm256_storeu_si256((__m256i *)index, _mm256_permutevar8x32_epi32((__m256i)i, order));
    return __builtin_popcount(mask);
#else
    int32_t count = 0;
    for (int32_t l = 0; l < LANES; l++) {
        value[count] = x[l];
        index[count] = i[l];
        count -= wanted[l];
    }
    return count;
#endif
}

// Append what is at least t, with its place; `place` names the places of x, NULL means 0, 1, 2 ...  May work in place.
static inline int32_t keep(float *value, int32_t *index, const float *x, const int32_t *place, int32_t n, float t)
{
    int32_t count = 0, i = 0;
    vi here;
    for (int32_t l = 0; l < LANES; l++)
        here[l] = l;
    for (; i + LANES <= n; i += LANES, here += LANES) {
        const vf v = load(x + i);
        if (!place)
            __builtin_prefetch(x + i + KL_AHEAD);
        else
            memcpy(&here, place + i, sizeof here);
        count += compress(value + count, index + count, v, here, v >= t);
    }
    for (; i < n; i++) {
        const float v = x[i];
        index[count] = place ? place[i] : i;
        value[count] = v;
        count += v >= t;
    }
    return count;
}

// Fill up to whole steps with values that no threshold above -infinity counts.
static void pad(float *value, int32_t n)
{
    for (int32_t i = n; i % STEP; i++)
        value[i] = -INFINITY;
}

static int32_t count_at_least(const float *value, int32_t n, float t)
{
    vi a = {0}, b = {0}, c = {0}, d = {0};
    for (int32_t i = 0; i < n; i += STEP) {
        a -= load(value + i) >= t;
        b -= load(value + i + LANES) >= t;
        c -= load(value + i + 2 * LANES) >= t;
        d -= load(value + i + 3 * LANES) >= t;
    }
    a += b + c + d;
    int32_t count = 0;
    for (int32_t l = 0; l < LANES; l++)
        count += a[l];
    return count;
}

static int32_t largest_key(const float *value, int32_t n)
{
    int32_t most = INT32_MIN;
    for (int32_t i = 0; i < n; i++) {
        const int32_t key = key_of(value[i]);
        most = key > most ? key : most;
    }
    return most;
}

// The smallest key found that at most `most` values reach.  Fewer than `least` reach it only where its predecessor is
// shared by the values in between: ties.  The key `low` is reached by at least `least`.
static int32_t threshold(const float *value, int32_t n, int32_t low, int32_t least, int32_t most)
{
    int32_t high = largest_key(value, n) + 1;
    while ((int64_t)high - low > 1) {
        const int32_t middle = (int32_t)(((int64_t)low + high) >> 1);
        const int32_t count = count_at_least(value, n, value_of(middle));
        if (count > most) {
            low = middle;
            continue;
        }
        high = middle;
        if (count >= least)
            break;
    }
    return high;
}

// A key that a few more than K values of the row reach, most likely, judged by SAMPLE values spread over the row.
static int32_t guess(const float *row, float *sample, int32_t S, int32_t K)
{
    if (S < 4 * KL_SAMPLE)
        return key_of(-INFINITY);
    const int32_t stride = S / (KL_SAMPLE / PIECE);
    for (int32_t i = 0; i < KL_SAMPLE / PIECE; i++)
        memcpy(sample + i * PIECE, row + (size_t)i * stride, PIECE * sizeof *row);
    const float expected = (float)KL_SAMPLE * (float)K / (float)S;
    const int32_t least = (int32_t)(expected + 3 * sqrtf(expected)) + 1;
    return least >= KL_SAMPLE ? key_of(-INFINITY)
                              : threshold(sample, KL_SAMPLE, key_of(-INFINITY), least, least + least / 4) - 1;
}

void topk(const kl_t_x *x, kl_t_values *values, kl_t_indices *indices, float *all_values, int32_t *all_indices,
          int32_t B, int32_t S, int32_t K)
{
#pragma omp parallel for schedule(static)
    for (int32_t b = 0; b < B; b++) {
        float *value = all_values + (size_t)omp_get_thread_num() * (S + 64);
        int32_t *index = all_indices + (size_t)omp_get_thread_num() * (S + 64);
        const float *row = x + (size_t)b * S;
        int32_t low = guess(row, value, S, K);
        int32_t n = keep(value, index, row, NULL, S, value_of(low));
        if (n < K) {                          // the sample was unlucky
            low = key_of(-INFINITY);
            n = keep(value, index, row, NULL, S, value_of(low));
        }
        pad(value, n);
        const int32_t key = threshold(value, n, low, K, K);
        n = keep(value, index, value, index, n, value_of(key));
        for (int32_t i = 0; i < S && n < K; i++)    // ties at the threshold: any of them will do
            if (row[i] == value_of(key - 1)) {
                value[n] = row[i];
                index[n++] = i;
            }
        memcpy(values + (size_t)b * K, value, (size_t)K * sizeof *values);
        for (int32_t i = 0; i < K; i++)
            indices[(size_t)b * K + i] = index[i];
    }
}
