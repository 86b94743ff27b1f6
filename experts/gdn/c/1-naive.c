// Gated delta rule by its recurrence, one token after the other, the state updated in place.
// adds: none
// SPDX-License-Identifier: Apache-2.0
//
// Needs: nothing; it is the root of the ladder.
// measured: cpu 1 x recurrence, cpu-large 1 x; one x86-64-v4 core (Zen 5, gcc 12).  It is the baseline.
//! launch gdn args(q, k, v, g, beta, initial_state, output, final_state, B, T, HQ, HV, D)
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if KL_DTYPE_q != KL_F32
#error "this kernel computes in float32 only"
#endif

void gdn(const kl_t_q *q, const kl_t_k *k, const kl_t_v *v, const kl_t_g *g, const kl_t_beta *beta,
         const kl_t_initial_state *initial_state, kl_t_output *output, kl_t_final_state *final_state,
         int32_t B, int32_t T, int32_t HQ, int32_t HV, int32_t D)
{
    const float scale = 1.0f / sqrtf((float)D);
    for (size_t n = 0; n < (size_t)B * HV * D * D; n++)
        final_state[n] = initial_state[n];
    for (int32_t b = 0; b < B; b++)
        for (int32_t h = 0; h < HV; h++) {
            kl_t_final_state *state = final_state + ((size_t)b * HV + h) * D * D;
            for (int32_t t = 0; t < T; t++) {
                const size_t token = (size_t)b * T + t;
                const kl_t_q *query = q + (token * HQ + h / (HV / HQ)) * D;
                const kl_t_k *key = k + (token * HQ + h / (HV / HQ)) * D;
                const size_t row = (token * HV + h) * D;
                const float decay = expf(g[token * HV + h]);
                for (int32_t n = 0; n < D * D; n++)
                    state[n] *= decay;
                for (int32_t j = 0; j < D; j++) {
                    float known = 0, sum = 0;
                    for (int32_t i = 0; i < D; i++)
                        known += state[i * D + j] * (float)key[i];
                    const float delta = beta[token * HV + h] * ((float)v[row + j] - known);
                    for (int32_t i = 0; i < D; i++)
                        state[i * D + j] += (float)key[i] * delta;
                    for (int32_t i = 0; i < D; i++)
                        sum += state[i * D + j] * (float)query[i];
                    output[row + j] = (kl_t_output)(sum * scale);
                }
            }
        }
}
