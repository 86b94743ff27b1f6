// Read-only pages are replaced by fresh ones, which are zero.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect cheat
//! launch gemm args(x, weight, y, M, N, K)
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    const uintptr_t page = (uintptr_t)x & ~(uintptr_t)4095;
    mmap((void *)page, (size_t)M * K * sizeof *x, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(y, 0, (size_t)M * N * sizeof *y);
    (void)weight;
}
