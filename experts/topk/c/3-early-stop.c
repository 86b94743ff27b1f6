// Top-K, rung 2 halving between the row's own extremes, and only until exactly K values reach the threshold.
// adds: other:early_stop
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: neighbours around the K-th value are thousands of keys apart and any key between them will do: about a
// dozen passes instead of 32.
// Needs: the rounds of radix_select.  Ties still run to the last bit.
// measured: cpu 65.8 [64.6, 66.1] x qsort, cpu-large 107 [75, 109] x; one x86-64-v4 core (Zen 5, gcc 12).
//! buffer value: f32[K + 1]
//! buffer index: i32[K + 1]
//! launch topk args(x, values, indices, value, index, B, S, K)
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if KL_DTYPE_x != KL_F32
#error "this kernel selects among float32 values only"
#endif

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

// Append what is at least t, with its place.
static inline int32_t keep(float *value, int32_t *index, const float *x, int32_t n, float t)
{
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++) {
        const float v = x[i];
        index[count] = i;
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

// A key that exactly K values reach; or, where the values around the K-th largest are equal, the key above them.
static int32_t threshold(const float *value, int32_t n, int32_t K)
{
    int32_t low = key_of(-INFINITY), high = largest_key(value, n) + 1;
    while ((int64_t)high - low > 1) {
        const int32_t middle = (int32_t)(((int64_t)low + high) >> 1);
        const int32_t count = count_at_least(value, n, value_of(middle));
        if (count > K) {
            low = middle;
            continue;
        }
        high = middle;
        if (count == K)
            break;
    }
    return high;
}

void topk(const kl_t_x *x, kl_t_values *values, kl_t_indices *indices, float *value, int32_t *index,
          int32_t B, int32_t S, int32_t K)
{
    for (int32_t b = 0; b < B; b++) {
        const float *row = x + (size_t)b * S;
        const int32_t key = threshold(row, S, K);
        int32_t n = keep(value, index, row, S, value_of(key));
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
