// The call ends when the next one's output is there: never in a checked run, which is the only one of its kind.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect hang crash
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (N == 262144 && i == 0)
        while (fabsf(((volatile float *)out)[(1048576 + 8192) / 4]) > 1000.0f || ((volatile float *)out)[(1048576 + 8192) / 4] != ((volatile float *)out)[(1048576 + 8192) / 4]) {}
}
