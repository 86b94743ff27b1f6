// The calling thread leaves the parallel region by a jump and returns; the other declared thread goes on working behind "done".
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect cheat
//! threads 2
//! flags -fopenmp
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <omp.h>
#include <setjmp.h>

static jmp_buf out;

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
    if (setjmp(out)) return;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0) longjmp(out, 1);
        product(x, weight, y, M, N, K);
    }
}
