// Gated delta rule, rung 4 in chunks of TOKENS: the state is read for all tokens of a chunk at once.
// adds: gemm_phase_decomposition
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: a row of the state is loaded for a chunk, not for a token, and feeds 2 TOKENS independent sums: they
// hide the latency of a multiply-add.  What tokens of a chunk owe each other comes from their products k.k and q.k, a
// small triangular system.
// Needs: exp(G[i] - G[j]) as a product of decays, so that no sum of g can overflow.  Tokens behind the last repeat it
// with beta 0.
// measured: cpu 18.0 [13.4, 18.3] x recurrence, cpu-large 27.5 [27.3, 29.0] x; one x86-64-v4 core (Zen 5, gcc 12).
//! param  TOKENS = 2 {2, 4, 8}
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
#define C KL_TOKENS

typedef float vf __attribute__((vector_size(4 * LANES)));

// What a head's decays make of a chunk; G is the sum of g from the chunk's first token to the one meant.
typedef struct {
    float reach[C], left[C], beta[C];         // exp(G[i]), exp(G[last] - G[i])
    float kk[C][C];                           // beta[i] exp(G[i] - G[j]) k[i].k[j]
    float qk[C][C];                           // exp(G[i] - G[j]) q[i].k[j] / sqrt(D)
} gate;

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

static float dot(const float *a, const float *b, int32_t D)
{
    vf sum = {0};
    for (int32_t i = 0; i < D; i += LANES)
        sum += load(a + i, D - i) * load(b + i, D - i);
    float all = 0;
    for (int32_t l = 0; l < LANES; l++)
        all += sum[l];
    return all;
}

// Row j: the products of key j with every later key and query of its chunk, and its own.
static void multiply(float *product, const float *const *key, const float *const *query, int32_t D)
{
    for (int32_t j = 0; j < C; j++)
        for (int32_t i = j; i < C; i++) {
            product[j * 2 * C + i] = dot(key[j], key[i], D);
            product[j * 2 * C + C + i] = dot(key[j], query[i], D);
        }
}

// Where the rows of a chunk's tokens begin; behind the last token it stands in.
static inline void find_rows(const float **rows, const float *from, int32_t t, int32_t T, size_t pitch)
{
    for (int32_t c = 0; c < C; c++)
        rows[c] = from + (t + c < T ? t + c : T - 1) * pitch;
}

// g and beta begin at the chunk, `tokens` are left of the sequence; tokens behind its last change nothing.
static void apply_gates(gate *out, const float *product, const float *g, const float *beta, int32_t tokens, int32_t HV,
                        float scale)
{
    float gamma[C], reach = 1;                // gamma[j]: exp(G[i] - G[j]) as a product of decays
    for (int32_t i = 0; i < C; i++) {
        const float decay = i < tokens ? expf(g[(size_t)i * HV]) : 1;
        out->beta[i] = i < tokens ? beta[(size_t)i * HV] : 0;
        out->reach[i] = reach *= decay;
        gamma[i] = 1;
        for (int32_t j = 0; j < i; j++)
            gamma[j] *= decay;
        for (int32_t j = 0; j <= i; j++) {
            out->kk[i][j] = out->beta[i] * gamma[j] * product[j * 2 * C + i];
            out->qk[i][j] = scale * gamma[j] * product[j * 2 * C + C + i];
        }
    }
    memcpy(out->left, gamma, sizeof gamma);
}

// Multiply the columns of the state by the keys and queries of a chunk.
static inline void project(const float *state, const float *const *key, const float *const *query,
                           vf known[C][VECTORS], vf seen[C][VECTORS], int32_t D)
{
    for (int32_t i = 0; i < D; i++, state += WIDTH)
        for (int32_t w = 0; w < VECTORS; w++) {
            const vf s = load(state + w * LANES, LANES);
            for (int32_t c = 0; c < C; c++) {
                known[c][w] += key[c][i] * s;
                seen[c][w] += query[c][i] * s;
            }
        }
}

// Bring a chunk's deltas into the columns of the state.
static inline void update(float *state, const float *const *key, float fade, vf delta[C][VECTORS], int32_t D)
{
    for (int32_t i = 0; i < D; i++, state += WIDTH)
        for (int32_t w = 0; w < VECTORS; w++) {
            vf s = fade * load(state + w * LANES, LANES);
            for (int32_t c = 0; c < C; c++)
                s += key[c][i] * delta[c][w];
            store(state + w * LANES, s, LANES);
        }
}

// The chunk's deltas, each of which needs those before it, and its outputs.  v and output begin at the chunk.
static inline void solve(vf delta[C][VECTORS], vf known[C][VECTORS], vf seen[C][VECTORS], const gate *now,
                         const float *v, float *output, int32_t tokens, size_t pitch, int32_t columns, float scale)
{
#pragma GCC unroll 4
    for (int32_t w = 0; w < VECTORS; w++)
#pragma GCC unroll 8
        for (int32_t i = 0; i < C; i++) {
            const int32_t width = i < tokens ? columns - w * LANES : 0;
            const size_t place = i * pitch + w * LANES;
            vf d = now->beta[i] * (load(v + place, width) - now->reach[i] * known[i][w]);
            vf o = scale * now->reach[i] * seen[i][w];
            for (int32_t j = 0; j < i; j++) {
                d -= now->kk[i][j] * delta[j][w];
                o += now->qk[i][j] * delta[j][w];
            }
            delta[i][w] = d;
            store(output + place, o + now->qk[i][i] * d, width);
        }
    for (int32_t i = 0; i < C; i++)
        for (int32_t w = 0; w < VECTORS; w++)
            delta[i][w] *= now->left[i];      // as the chunk's last token leaves it
}

// All tokens on some columns of one head; v and output begin at the first of them.
static void walk(float *state, const float *q, const float *k, const float *g, const float *beta, const float *v,
                 float *output, int32_t T, int32_t HV, int32_t D, size_t key_pitch, int32_t columns, float scale)
{
    const size_t pitch = (size_t)HV * D;
    for (int32_t t = 0; t < T; t += C) {
        vf delta[C][VECTORS], known[C][VECTORS] = {0}, seen[C][VECTORS] = {0};
        const float *key[C], *query[C];
        float product[2 * C * C];
        gate now;
        find_rows(key, k, t, T, key_pitch);
        find_rows(query, q, t, T, key_pitch);
        multiply(product, key, query, D);
        apply_gates(&now, product, g + (size_t)t * HV, beta + (size_t)t * HV, T - t, HV, scale);
        project(state, key, query, known, seen, D);
        solve(delta, known, seen, &now, v + t * pitch, output + t * pitch, T - t, pitch, columns, scale);
        update(state, key, now.reach[C - 1], delta, D);
    }
}

static void copy(float *to, const float *from, int32_t rows, size_t to_pitch, size_t from_pitch, int32_t columns)
{
    for (int32_t i = 0; i < rows; i++)
        memcpy(to + i * to_pitch, from + i * from_pitch, (size_t)columns * sizeof *to);
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
                 HV, D, (size_t)HQ * D, columns, scale);
            copy(final_state + corner, state, D, (size_t)D, WIDTH, columns);
        }
    }
}
