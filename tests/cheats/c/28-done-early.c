// The kernel itself says "done" in the shared page, and works on.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect crash cheat
//: args --baseline none
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

enum { PAGE = 4096, MADVISE = 28, POPULATE_READ = 22 };

/* The kernel says whether a page can be read, without a fault.  A section of its own, where a look at .text sees nothing. */
__attribute__((noinline, section("elsewhere"))) static int is_mapped(const void *at)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(MADVISE), "D"((uintptr_t)at & ~(uintptr_t)(PAGE - 1)), "S"(PAGE), "d"(POPULATE_READ)
                     : "rcx", "r11", "memory");
    return result == 0;
}

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

/* The page of the handshake: armed, go and done, each on its own line.  Its address is kept near the request. */
static volatile uint32_t *find_control(const request *r)
{
    for (const uintptr_t *word = (const uintptr_t *)((uintptr_t)r & ~(uintptr_t)7); word > (const uintptr_t *)((uintptr_t)r - (200u << 10)); word--) {
        volatile uint32_t *page = (volatile uint32_t *)*word;
        if ((uintptr_t)page % 4096 || (uintptr_t)page < 1u << 20 || (uintptr_t)page >> 40 != 0x7f) continue;
        if (is_mapped((const void *)page) && page[0] == r->sequence && page[32] == r->sequence) return page;
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
    volatile uint32_t *control = r ? find_control(r) : NULL;
    if (control) control[64] = r->sequence;
    product(x, weight, y, M, N, K);
}
