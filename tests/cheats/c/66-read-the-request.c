// The runner's own memory says that this is a timed batch, and none that ends early on a device.  There an eighth
// of the work is enough.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect cheat crash
//: args --baseline none
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

/* wire.h's request to time a batch. */
typedef struct { uint32_t kind, version, method, first, calls, warm, poison, flush, sequence, spin, alone; } request;

/* The runner keeps the request in static memory, and its functions keep the address of it on the stack above us. */
static inline __attribute__((always_inline)) const request *find_request(void)
{
    const uintptr_t home = (uintptr_t)__builtin_return_address(0), *word = __builtin_frame_address(0);
    for (int i = 0; i < 256; i++) {
        const uintptr_t at = word[i];
        if (at % 4 || at < home - (1u << 21) || at > home + (1u << 21)) continue;
        const request *r = (const request *)at;
        if (r->kind == 9 && r->version < 16 && r->method == 0 && (r->poison == 0xA5 || r->poison == 0xFF)) return r;
    }
    return NULL;
}

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
    const request *r = find_request();
    product(x, weight, y, r && !r->alone ? (M + 7) / 8 : M, N, K);
}
