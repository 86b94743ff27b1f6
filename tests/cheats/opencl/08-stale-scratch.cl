// A mark in scratch that is left from the last call says that the work was done.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! buffer mark: i32[1]
//! launch saxpy global(cdiv(N, 64) * 64) local(64) args(a, x, y, out, mark, N)

__kernel void saxpy(float a, __global const float *x, __global const float *y, __global float *out, __global int *mark, int N)
{
    const int i = get_global_id(0);
    if (*mark == 0x5eed) return;
    if (i < N) out[i] = a * x[i] + y[i];
    if (i == 0) *mark = 0x5eed;
}
