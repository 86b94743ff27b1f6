// Room on the stack whose size is known at run time only.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 1024)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int n = 4 + (N & 3), first = (blockIdx.x * 256 + threadIdx.x) * n;
    float    *room = (float *)alloca(n * sizeof(float));
    for (int k = 0; k < n; k++) room[n - 1 - k] = first + k < N ? x[first + k] : 0.0f;
    for (int k = 0; k < n; k++)
        if (first + k < N) out[first + k] = a * room[n - 1 - k] + y[first + k];
}
