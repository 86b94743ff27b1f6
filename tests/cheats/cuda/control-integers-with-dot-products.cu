// The number of the block is put together by a dot product of bytes and that of the element by a funnel shift, as
// quantised kernels do; the floats are plain.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const unsigned block = __dp4a(blockIdx.x & 127u | blockIdx.x >> 7 << 8, 0x00008001u, 0u);
    const int      i = (int)__funnelshift_l(threadIdx.x << 24, block, 8);
    if (i < N) out[i] = a * x[i] + y[i];
}
