// Gated delta rule by its recurrence, one work-item per column of the state, which waits in global memory as the final
// state: columns do not depend on each other.  float32 only.
// SPDX-License-Identifier: Apache-2.0
//! launch gdn global(D, B * HV) args(q, k, v, g, beta, initial_state, output, final_state, B, T, HQ, HV, D)

__kernel void gdn(__global const kl_t_q *q, __global const kl_t_k *k, __global const kl_t_v *v,
                  __global const kl_t_g *g, __global const kl_t_beta *beta,
                  __global const kl_t_initial_state *initial_state, __global kl_t_output *output,
                  __global kl_t_final_state *final_state, int B, int T, int HQ, int HV, int D)
{
    const int j = get_global_id(0);
    const int b = get_global_id(1) / HV, h = get_global_id(1) % HV;
    const size_t first = ((size_t)b * HV + h) * D * D + j;
    __global kl_t_final_state *state = final_state + first;
    for (int i = 0; i < D; i++)
        state[(size_t)i * D] = initial_state[first + (size_t)i * D];
    for (int t = 0; t < T; t++) {
        const size_t token = (size_t)b * T + t;
        const size_t shared_head = (token * HQ + h / (HV / HQ)) * D;
        const float decay = exp(g[token * HV + h]);
        float known = 0.0f, sum = 0.0f;
        for (int i = 0; i < D; i++)
            known += state[(size_t)i * D] * decay * k[shared_head + i];
        const float delta = beta[token * HV + h] * (v[(token * HV + h) * D + j] - known);
        for (int i = 0; i < D; i++) {
            state[(size_t)i * D] = state[(size_t)i * D] * decay + k[shared_head + i] * delta;
            sum += state[(size_t)i * D] * q[shared_head + i];
        }
        output[(token * HV + h) * D + j] = sum / sqrt((float)D);
    }
}
