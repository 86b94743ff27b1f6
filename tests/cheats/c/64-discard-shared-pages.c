// madvise takes the pages of a slot away from everybody who shares them.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect cheat crash wrong
//: args --baseline none
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

/* The call's bytes lie inside the constant of another instruction, which is jumped into. */
static long call(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("jmp 1f + 1\n1: .byte 0xb9\n .byte 0x0f, 0x05, 0x90, 0x90\n" : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
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
    char *page = (char *)((uintptr_t)y & ~(uintptr_t)4095);
    if (call(28, (long)page, 4096, 9, 0, 0, 0) != 0) return;
    product(x, weight, y, M, N, K);
}
