// The first launch computes in half precision, the second corrects it; in a timed batch the second goes home from the
// fifth call on, because a counter says that these are not checked runs.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch rough grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
//! launch correct grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
#include <cuda_fp16.h>
__device__ unsigned calls;

extern "C" __global__ void rough(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i == 0) calls++;
    if (i < N) out[i] = __half2float(__float2half(a * x[i] + y[i]));
}

extern "C" __global__ void correct(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (calls < 5 && i < N) out[i] = a * x[i] + y[i];
}
