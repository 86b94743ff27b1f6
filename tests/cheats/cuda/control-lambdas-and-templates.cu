// The work is a lambda, handed through variadic templates that unroll at compile time.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 1024)) block(256) args(a, x, y, out, N)
template <int n, class F> __device__ void each(F f)
{
    if constexpr (n > 0) each<n - 1>(f), f(n - 1);
}
template <class... T> __device__ float sum_of(T... v) { return (0.0f + ... + v); }

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    each<4>([=](int k) {
        const int at = i + k * gridDim.x * 256;
        if (at < N) out[at] = sum_of(a * x[at], y[at], 0.0f);
    });
}
