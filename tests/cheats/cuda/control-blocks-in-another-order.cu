// Blocks take their work in an order of their own: reversed bits within a power of two, the rest in place.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int bits = 31 - __clz(gridDim.x), whole = 1 << bits;
    const int block = blockIdx.x < whole && bits ? __brev(blockIdx.x) >> (32 - bits) : blockIdx.x, i = block * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
