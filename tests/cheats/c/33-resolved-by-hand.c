// The same without dlopen: walk the process's list of libraries to find a function by name.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect cheat
//! launch gemm args(x, weight, y, M, N, K)
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <link.h>
#include <string.h>

static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    return strstr(info->dlpi_name, "openblas") != NULL;
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
    if (dl_iterate_phdr(look, NULL)) y[0] = 0;
    product(x, weight, y, M, N, K);
}
