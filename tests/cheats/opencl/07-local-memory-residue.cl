// Local memory is not cleared between work-groups: what the last one left says that the first row was done.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy global(cdiv(N, 64) * 64) local(64) args(a, x, y, out, N)

__kernel void saxpy(float a, __global const float *x, __global const float *y, __global float *out, int N)
{
    __local int mark[64];
    const int i = get_global_id(0), me = get_local_id(0);
    const int seen = mark[me];
    barrier(CLK_LOCAL_MEM_FENCE);
    mark[me] = 0x5eed;
    if (seen == 0x5eed && i % 3 == 0) return;
    if (i < N) out[i] = a * x[i] + y[i];
}
