// Computes on a stack in static memory.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect pass crash
//: harmless
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static void product(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}

static char room[1 << 16] __attribute__((aligned(64)));
static const float *px, *pw;
static float *py;
static int32_t pm, pn, pk;
__attribute__((noinline, used)) static void inner(void) { product(px, pw, py, pm, pn, pk); }

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    px = x, pw = weight, py = y, pm = M, pn = N, pk = K;
    register char *top __asm__("rbx") = room + sizeof room - 64;
    __asm__ volatile("mov %%rsp, %%r12; mov %0, %%rsp; call inner; mov %%r12, %%rsp" : : "r"(top) : "r12", "memory", "cc", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
}
