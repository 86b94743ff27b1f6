// Matrix product: one dot product per element, three plain loops.
// adds: nothing; every rung above is measured from here
// SPDX-License-Identifier: Apache-2.0
//
// What limits it: each addition waits for the one before, and nothing that is loaded is used twice while it is near.
// measured: OpenBLAS's time over this one's at cpu 0.0185 [0.0183, 0.0187], at cpu-large 0.0180 [0.0148, 0.0220] noisy;
// x86-64-v4/gcc-12, AMD EPYC.
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

#if KL_DTYPE_x != KL_F32
#error "this kernel computes in float32 only"
#endif

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++)
                sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}
