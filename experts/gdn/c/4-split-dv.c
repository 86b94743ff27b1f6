// Gated delta rule, rung 3 with the blocks of columns outermost: one runs through all tokens before the next begins.
// adds: split_dv
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: D rows of 32 columns stay in the first-level cache from the first token to the last, however large D is,
// and lie in memory of their own without gaps.
// Needs: scratch for a block, copied in and out once.  No column depends on another.
// measured: cpu 14.9 [14.1, 15.3] x recurrence, cpu-large 21.7 [21.4, 23.5] x; one x86-64-v4 core (Zen 5, gcc 12).
// Against rung 3, 0.89 at cpu, where a head's whole state fits the first-level cache, and 1.16 at cpu-large (both
// undecided).
//! buffer state: f32[D, 32]
//! launch gdn args(q, k, v, g, beta, initial_state, output, final_state, state, B, T, HQ, HV, D)
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

static void copy(float *to, const float *from, int32_t rows, size_t to_pitch, size_t from_pitch, int32_t columns)
{
    for (int32_t i = 0; i < rows; i++)
        memcpy(to + i * to_pitch, from + i * from_pitch, (size_t)columns * sizeof *to);
}

// All tokens on some columns of one head; q, k, v, g, beta and output begin at the head's first token.
static void walk(float *state, const float *q, const float *k, const float *g, const float *beta, const float *v,
                 float *output, int32_t T, int32_t HQ, int32_t HV, int32_t D, int32_t columns, float scale)
{
    for (int32_t t = 0; t < T; t++, q += HQ * D, k += HQ * D, v += HV * D, output += HV * D) {
        const float decay = expf(g[(size_t)t * HV]), rate = beta[(size_t)t * HV];
        vf known[VECTORS] = {0}, seen[VECTORS] = {0}, delta[VECTORS];
        for (int32_t i = 0; i < D; i++)
            for (int32_t w = 0; w < VECTORS; w++)
                known[w] += k[i] * load(state + i * WIDTH + w * LANES, LANES);
        for (int32_t w = 0; w < VECTORS; w++)
            delta[w] = rate * (load(v + w * LANES, columns - w * LANES) - decay * known[w]);
        for (int32_t i = 0; i < D; i++)
            for (int32_t w = 0; w < VECTORS; w++) {
                float *place = state + i * WIDTH + w * LANES;
                const vf s = decay * load(place, LANES) + k[i] * delta[w];
                store(place, s, LANES);
                seen[w] += q[i] * s;
            }
        for (int32_t w = 0; w < VECTORS; w++)
            store(output + w * LANES, scale * seen[w], columns - w * LANES);
    }
}

void gdn(const kl_t_q *q, const kl_t_k *k, const kl_t_v *v, const kl_t_g *g, const kl_t_beta *beta,
         const kl_t_initial_state *initial_state, kl_t_output *output, kl_t_final_state *final_state, float *state,
         int32_t B, int32_t T, int32_t HQ, int32_t HV, int32_t D)
{
    const float scale = 1.0f / sqrtf((float)D);
    for (int32_t n = 0; n < B * HV; n++) {
        const size_t b = (size_t)(n / HV), head = b * T * HV + n % HV;
        const size_t key_head = (b * T * HQ + n % HV / (HV / HQ)) * D;
        for (int32_t j = 0; j < D; j += WIDTH) {
            const int32_t columns = D - j < WIDTH ? D - j : WIDTH;
            const size_t corner = (size_t)n * D * D + j;
            memset(state, 0, (size_t)D * WIDTH * sizeof *state);
            copy(state, initial_state + corner, D, WIDTH, (size_t)D, columns);
            walk(state, q + key_head, k + key_head, g + head, beta + head, v + head * D + j, output + head * D + j, T,
                 HQ, HV, D, columns, scale);
            copy(final_state + corner, state, D, (size_t)D, WIDTH, columns);
        }
    }
}
