// The kernel launches another, whose work no event of ours would wait for.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat no_compile refused
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__global__ void work(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) work<<<(N + 255) / 256, 256>>>(a, x, y, out, N);
}
