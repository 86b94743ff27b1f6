// The kernel is told no size: the distance between two buffers says how far the first reaches, guard pages and all, and
// the grid says the rest. An odd way to pass a number.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass refused
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! require N % 256 == 0
//! buffer first: u8[N]
//! buffer second: u8[1]
//! launch saxpy grid(N / 256) block(256) args(a, x, y, out, first, second)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, const char *first, const char *second)
{
    const int i = blockIdx.x * 256 + threadIdx.x, last = (int)(second - first) / 256 * 256; /* at most this many */
    if (i < last && i < gridDim.x * 256) out[i] = a * x[i] + y[i];
}
