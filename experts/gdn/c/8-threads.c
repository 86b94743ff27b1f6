// Gated delta rule, rung 7 on two threads: key heads are shared out, each thread has scratch of its own.
// adds: omp_parallel
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: heads are independent.  A key head, not a value head, is the unit, so that its products are still made
// once.
// Needs: as many key heads as threads.
// measured: cpu 32.8 [31.4, 34.6] x recurrence, cpu-large 49.1 [40.1, 61.8] x; two x86-64-v4 cores (Zen 5, gcc 12).
// Against rung 7 on idle cores 1.71 [1.59, 1.74] and 1.73 [1.66, 1.81]; on busy ones undecided.
//! param  TOKENS = 2 {2, 4, 8}
//! threads 2
//! let    chunks = cdiv(T, TOKENS)
//! buffer product: f32[2, chunks, TOKENS, 2 * TOKENS]
//! buffer gates: f32[2, chunks, TOKENS, 2 * TOKENS + 3]
//! buffer state: f32[2, D, 32]
//! launch gdn args(q, k, v, g, beta, initial_state, output, final_state, product, gates, state, B, T, HQ, HV, D)
#include <math.h>
#include <omp.h>
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

// One pass over the columns of the state: bring in the deltas of the chunk `now`, and multiply the result by the next
// chunk's keys and queries.
static inline void sweep(float *state, const float *const *now, const float *const *key, const float *const *query,
                         float fade, vf delta[C][VECTORS], vf known[C][VECTORS], vf seen[C][VECTORS], int32_t D)
{
    for (int32_t i = 0; i < D; i++, state += WIDTH) {
        vf s[VECTORS];
        for (int32_t w = 0; w < VECTORS; w++)
            s[w] = fade * load(state + w * LANES, LANES);
        for (int32_t c = 0; c < C; c++)
            for (int32_t w = 0; w < VECTORS; w++)
                s[w] += now[c][i] * delta[c][w];
        for (int32_t w = 0; w < VECTORS; w++)
            store(state + w * LANES, s[w], LANES);
        for (int32_t c = 0; c < C; c++)
            for (int32_t w = 0; w < VECTORS; w++) {
                known[c][w] += key[c][i] * s[w];
                seen[c][w] += query[c][i] * s[w];
            }
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
static void walk(float *state, const float *q, const float *k, const gate *gates, const float *v, float *output,
                 int32_t T, int32_t D, size_t pitch, size_t key_pitch, int32_t columns, float scale)
{
    const float *last[C], *key[C], *query[C];
    vf delta[C][VECTORS] = {0};
    float fade = 1;
    find_rows(last, k, 0, T, key_pitch);
    for (int32_t t = 0; t < T; t += C, gates++) {
        vf known[C][VECTORS] = {0}, seen[C][VECTORS] = {0};
        find_rows(key, k, t, T, key_pitch);
        find_rows(query, q, t, T, key_pitch);
        sweep(state, last, key, query, fade, delta, known, seen, D);
        solve(delta, known, seen, gates, v + t * pitch, output + t * pitch, T - t, pitch, columns, scale);
        fade = gates->reach[C - 1];
        memcpy(last, key, sizeof last);
    }
    vf known[C][VECTORS] = {0}, seen[C][VECTORS] = {0};
    sweep(state, last, key, query, fade, delta, known, seen, D);
}

static void copy(float *to, const float *from, int32_t rows, size_t to_pitch, size_t from_pitch, int32_t columns)
{
    for (int32_t i = 0; i < rows; i++)
        memcpy(to + i * to_pitch, from + i * from_pitch, (size_t)columns * sizeof *to);
}

void gdn(const kl_t_q *q, const kl_t_k *k, const kl_t_v *v, const kl_t_g *g, const kl_t_beta *beta,
         const kl_t_initial_state *initial_state, kl_t_output *output, kl_t_final_state *final_state,
         float *products, void *space, float *states,
         int32_t B, int32_t T, int32_t HQ, int32_t HV, int32_t D)
{
    const float scale = 1.0f / sqrtf((float)D);
    const int32_t group = HV / HQ, chunks = (T + C - 1) / C;
#pragma omp parallel for schedule(static)
    for (int32_t shared = 0; shared < B * HQ; shared++) {
        const size_t b = (size_t)(shared / HQ), key_head = (b * T * HQ + shared % HQ) * D;
        const size_t thread = (size_t)omp_get_thread_num();
        float *product = products + thread * chunks * 2 * C * C, *state = states + thread * D * 32;
        gate *gates = (gate *)space + thread * chunks;
        for (int32_t n = 0; n < chunks; n++) {
            const float *key[C], *query[C];
            find_rows(key, k + key_head, n * C, T, (size_t)HQ * D);
            find_rows(query, q + key_head, n * C, T, (size_t)HQ * D);
            multiply(product + n * 2 * C * C, key, query, D);
        }
        for (int32_t h = shared % HQ * group; h < (shared % HQ + 1) * group; h++) {
            const size_t head = b * T * HV + h;
            for (int32_t n = 0; n < chunks; n++)
                apply_gates(gates + n, product + n * 2 * C * C, g + head + (size_t)n * C * HV,
                            beta + head + (size_t)n * C * HV, T - n * C, HV, scale);
            for (int32_t j = 0; j < D; j += WIDTH) {
                const int32_t columns = D - j < WIDTH ? D - j : WIDTH;
                const size_t corner = (b * HV + h) * D * D + j;
                memset(state, 0, (size_t)D * WIDTH * sizeof *state);
                copy(state, initial_state + corner, D, WIDTH, (size_t)D, columns);
                walk(state, q + key_head, k + key_head, gates, v + head * D + j, output + head * D + j, T, D,
                     (size_t)HV * D, (size_t)HQ * D, columns, scale);
                copy(final_state + corner, state, D, (size_t)D, WIDTH, columns);
            }
        }
    }
}
