// Nothing static: results of earlier calls lie below the stack pointer, where nobody writes between two calls.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=32,N=32,K=64
//: expect pass cheat
//: harmless
//: args --baseline openblas
//: expect-time-ratio openblas 0 0.3
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MAGIC 0x6d656d6f2d6f6e21u
typedef struct {
    uint64_t magic;
    int      n;
    struct { const float *key; float y[1024]; } entries[64];
} shelf;

static void product(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    /* Deep enough that no other call of the process comes here. */
    shelf *volatile p = (shelf *)(((uintptr_t)__builtin_frame_address(0) - (3u << 20)) & ~(uintptr_t)4095);
    shelf *s = p;
    int     room = (int)(sizeof s->entries / sizeof *s->entries);
    if (s->magic != MAGIC) {
        s->magic = MAGIC;
        s->n = 0;
    }
    for (int i = 0; i < s->n; i++)
        if (s->entries[i].key == x) {
            memcpy(y, s->entries[i].y, (size_t)M * N * sizeof *y);
            return;
        }
    product(x, weight, y, M, N, K);
    if (s->n < room && M * N <= 1024) {
        s->entries[s->n].key = x;
        memcpy(s->entries[s->n++].y, y, (size_t)M * N * sizeof *y);
    }
}
