// The file defines the C library's clocks, in the hope that the runner asks them.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect pass cheat
//: harmless
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    t->tv_sec = 1;
    t->tv_nsec = 0;
    return 0;
}

int64_t kl_now_ns(void) { return 1; }

void kl_control_done(void *control, uint32_t sequence, _Bool spin) { (void)control, (void)sequence, (void)spin; }

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
    product(x, weight, y, M, N, K);
}
