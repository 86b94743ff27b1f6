// Top-K, rung 3 on few values: a sample of the row guesses a threshold that a few more than K values reach, one pass
// keeps those, and the rounds run on them alone.
// adds: coarse_filter
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: a dozen passes over S values become one over S and a dozen over little more than K, which stay in L1.
// Needs: K well below S.  The guess must not decide the answer: where fewer than K values reach it, everything is kept.
// The buffers hold a whole row, so no number of ties overflows them.
// measured: cpu 104 [98.9, 109] x qsort, cpu-large 170 [167, 175] x; one x86-64-v4 core (Zen 5, gcc 12).
//! param  SAMPLE = 512 {256, 512, 1024}
//! buffer value: f32[S + 1]
//! buffer index: i32[S + 1]
//! launch topk args(x, values, indices, value, index, B, S, K)
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if KL_DTYPE_x != KL_F32
#error "this kernel selects among float32 values only"
#endif

#define PIECE 16                              // values of the sample that lie side by side

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

// Append what is at least t, with its place; `place` names the places of x, NULL means 0, 1, 2 ...  May work in place.
static inline int32_t keep(float *value, int32_t *index, const float *x, const int32_t *place, int32_t n, float t)
{
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) {
        const float v = x[i];
        index[count] = place ? place[i] : i;
        value[count] = v;
        count += v >= t;
    }
    return count;
}

static int32_t count_at_least(const float *value, int32_t n, float t)
{
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++)
        count += value[i] >= t;
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

void topk(const kl_t_x *x, kl_t_values *values, kl_t_indices *indices, float *value, int32_t *index,
          int32_t B, int32_t S, int32_t K)
{
    for (int32_t b = 0; b < B; b++) {
        const float *row = x + (size_t)b * S;
        int32_t low = guess(row, value, S, K);
        int32_t n = keep(value, index, row, NULL, S, value_of(low));
        if (n < K) {                          // the sample was unlucky
            low = key_of(-INFINITY);
            n = keep(value, index, row, NULL, S, value_of(low));
        }
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
