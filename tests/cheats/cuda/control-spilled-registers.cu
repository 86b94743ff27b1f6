// Sixteen registers a thread and an array of sixty-four numbers, which go to local memory and come back.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! flags -maxrregcount=16
//! launch saxpy grid(cdiv(N, 16384)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    float     held[64];
    const int first = (blockIdx.x * 256 + threadIdx.x) * 64;
    for (int n = 0; n < 64; n++) held[n] = first + n < N ? x[first + n] : 0.0f;
    __syncthreads(); /* all of it is there at once */
    for (int n = 0; n < 64; n++)
        if (first + n < N) out[first + n] = a * held[n] + y[first + n];
}
