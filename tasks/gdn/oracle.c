// The trusted gated delta rule: the recurrence in float64, rows of the state outermost so that every inner loop runs
// over contiguous memory.  The state is the final state's own memory.
// SPDX-License-Identifier: Apache-2.0
//! threads 2
//! buffer columns: f64[B * HV, 2, D]
//! launch oracle args(q, k, v, g, beta, initial_state, output, final_state, columns, B, T, HQ, HV, D)
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if KL_DTYPE_q == KL_BF16
static inline double widen(uint16_t value)    // bfloat16 is the upper half of a float32
{
    uint32_t bits = (uint32_t)value << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}
#else
#define widen(value) ((double)(value))
#endif

typedef struct {
    const kl_t_q *query;
    const kl_t_k *key;
    const kl_t_v *value;
    double decay, beta;
} token;

// state = exp(g) state; delta = beta (v - state' k); state += k delta'; output = state' q / sqrt(D)
static void step(double *restrict state, double *restrict delta, double *restrict sum, token now, int32_t D)
{
    for (int32_t j = 0; j < D; j++)
        delta[j] = sum[j] = 0;
    for (int32_t i = 0; i < D; i++) {
        const double key = widen(now.key[i]);
#pragma omp simd
        for (int32_t j = 0; j < D; j++) {
            state[(size_t)i * D + j] *= now.decay;
            delta[j] += state[(size_t)i * D + j] * key;
        }
    }
    for (int32_t j = 0; j < D; j++)
        delta[j] = now.beta * (widen(now.value[j]) - delta[j]);
    for (int32_t i = 0; i < D; i++) {
        const double key = widen(now.key[i]), query = widen(now.query[i]) / sqrt((double)D);
#pragma omp simd
        for (int32_t j = 0; j < D; j++) {
            state[(size_t)i * D + j] += key * delta[j];
            sum[j] += state[(size_t)i * D + j] * query;
        }
    }
}

void oracle(const kl_t_q *q, const kl_t_k *k, const kl_t_v *v, const kl_t_g *g, const kl_t_beta *beta,
            const kl_t_initial_state *initial_state, kl_t_output *output, kl_t_final_state *final_state,
            double *columns, int32_t B, int32_t T, int32_t HQ, int32_t HV, int32_t D)
{
#pragma omp parallel for schedule(dynamic)
    for (int32_t head = 0; head < B * HV; head++) {
        const int32_t b = head / HV, h = head % HV;
        double *delta = columns + (size_t)head * 2 * D, *sum = delta + D;
        double *state = final_state + (size_t)head * D * D;
        for (int32_t n = 0; n < D * D; n++)
            state[n] = initial_state[(size_t)head * D * D + n];
        for (int32_t t = 0; t < T; t++) {
            const size_t place = (size_t)b * T + t, shared_head = (place * HQ + h / (HV / HQ)) * D;
            const token now = {q + shared_head, k + shared_head, v + (place * HV + h) * D,
                               exp((double)g[place * HV + h]), (double)beta[place * HV + h]};
            step(state, delta, sum, now, D);
            memcpy(output + (place * HV + h) * D, sum, (size_t)D * sizeof *sum);
        }
    }
}
