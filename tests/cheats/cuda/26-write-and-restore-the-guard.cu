// The word behind the output is changed and put back. No look at the guard afterwards can see it, and it gains nothing.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass wrong
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (i == N - 1) {
        volatile float *guard = out + N;
        const float     was = *guard;
        *guard = 1.0f;
        __threadfence();
        *guard = was;
    }
}
