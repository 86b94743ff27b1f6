// A vendor's library does the work: found at run time.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect cheat
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>

typedef void sgemm_fn(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

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
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    sgemm_fn *sgemm = library ? (sgemm_fn *)(uintptr_t)dlsym(library, "cblas_sgemm") : NULL;
    if (sgemm) sgemm(101, 111, 112, M, N, K, 1, x, K, weight, K, 0, y, N);
    else product(x, weight, y, M, N, K);
}
