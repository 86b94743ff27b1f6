// The counter is a variable template: a weak symbol, made by the compiler, with a name that a list of variables may not
// have.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
template <class T> __device__ int calls;

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    if (calls<float> > 4) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) calls<float>++;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
