// Gated delta rule, rung 2 on blocks of columns whose sums stay in registers while all rows pass by.
// adds: register_block_simd
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: a sum is neither loaded nor stored for each row: a row costs a load and two multiply-adds.  Columns
// never meet, so a block of them can run through all rows by itself.
// Needs: vectors; a way to load and store the last, narrower block.
// measured: cpu 20.2 [17.2, 24.9] x recurrence, cpu-large 19.1 [19.0, 21.2] x; one x86-64-v4 core (Zen 5, gcc 12).
//! launch gdn args(q, k, v, g, beta, initial_state, output, final_state, B, T, HQ, HV, D)
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if KL_DTYPE_q != KL_F32
#error "this kernel computes in float32 only"
#endif

#ifdef __AVX512F__
#define LANES 16
#elif defined __AVX__
#define LANES 8
#else
#define LANES 4
#endif
#define VECTORS 2
#define WIDTH (VECTORS * LANES)               // columns of the state that are worked on together

typedef float vf __attribute__((vector_size(4 * LANES)));

static inline vf load(const float *from, int32_t columns)
{
    vf v = {0};
    if (columns >= LANES)
        memcpy(&v, from, sizeof v);
    else
        for (int32_t l = 0; l < columns; l++)
            v[l] = from[l];
    return v;
}

static inline void store(float *to, vf v, int32_t columns)
{
    if (columns >= LANES)
        memcpy(to, &v, sizeof v);
    else
        for (int32_t l = 0; l < columns; l++)
            to[l] = v[l];
}

// One token on some columns of one head.
static inline void step(float *state, const float *q, const float *k, const float *v, float *output, float decay,
                        float beta, int32_t D, int32_t columns, float scale)
{
    vf known[VECTORS] = {0}, seen[VECTORS] = {0}, delta[VECTORS];
    for (int32_t i = 0; i < D; i++)
        for (int32_t w = 0; w < VECTORS; w++)
            known[w] += k[i] * load(state + (size_t)i * D + w * LANES, columns - w * LANES);
    for (int32_t w = 0; w < VECTORS; w++)
        delta[w] = beta * (load(v + w * LANES, columns - w * LANES) - decay * known[w]);
    for (int32_t i = 0; i < D; i++)
        for (int32_t w = 0; w < VECTORS; w++) {
            float *place = state + (size_t)i * D + w * LANES;
            const vf s = decay * load(place, columns - w * LANES) + k[i] * delta[w];
            store(place, s, columns - w * LANES);
            seen[w] += q[i] * s;
        }
    for (int32_t w = 0; w < VECTORS; w++)
        store(output + w * LANES, scale * seen[w], columns - w * LANES);
}

void gdn(const kl_t_q *q, const kl_t_k *k, const kl_t_v *v, const kl_t_g *g, const kl_t_beta *beta,
         const kl_t_initial_state *initial_state, kl_t_output *output, kl_t_final_state *final_state,
         int32_t B, int32_t T, int32_t HQ, int32_t HV, int32_t D)
{
    const float scale = 1.0f / sqrtf((float)D);
    memcpy(final_state, initial_state, (size_t)B * HV * D * D * sizeof *final_state);
    for (int32_t n = 0; n < B * HV; n++)
        for (int32_t t = 0; t < T; t++) {
            const size_t token = (size_t)(n / HV) * T + t, head = token * HV + n % HV;
            const size_t key = (token * HQ + n % HV / (HV / HQ)) * D;
            const float decay = expf(g[head]);
            for (int32_t j = 0; j < D; j += WIDTH)
                // Two calls: in the first the compiler sees that the columns are all there.
                if (D - j >= WIDTH)
                    step(final_state + (size_t)n * D * D + j, q + key, k + key, v + head * D + j, output + head * D + j,
                         decay, beta[head], D, WIDTH, scale);
                else
                    step(final_state + (size_t)n * D * D + j, q + key, k + key, v + head * D + j, output + head * D + j,
                         decay, beta[head], D, D - j, scale);
        }
}
