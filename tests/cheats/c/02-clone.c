// A thread made with the bare system call, so that no thread library is needed.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect cheat
//! launch gemm args(x, weight, y, M, N, K)
#define _GNU_SOURCE
#include <sched.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { const float *x, *weight; float *y; int32_t M, N, K; } job;
static job job_of;
static int work(void *unused);

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
    static char stack[65536];
    job_of = (job){x, weight, y, M, N, K};
    if (clone(work, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES, NULL) < 0) work(NULL);
}

static int work(void *unused)
{
    (void)unused;
    product(job_of.x, job_of.weight, job_of.y, job_of.M, job_of.N, job_of.K);
    return 0;
}
