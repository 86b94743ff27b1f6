// The counter is a static member of a class template: a weak symbol, made by the compiler, with a name that a list of
// variables may not have.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
template <class T> struct counter { static __device__ volatile int calls; };
template <class T> __device__ volatile int counter<T>::calls;

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    if (counter<float>::calls > 4) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) counter<float>::calls++;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
