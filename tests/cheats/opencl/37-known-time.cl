// Timing self-test: the same work in one launch four times over takes longer than once, and not more than eight times.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: workload N=4194304
//: control
//: args --baseline none
//! launch saxpy global(cdiv(N, 64) * 64) local(64) args(a, x, y, out, N)

__kernel void saxpy(float a, __global const float *x, __global const float *y, __global float *out, int N)
{
    const int i = get_global_id(0);
    for (int again = 0; again < 4; again++)
        if (i < N) ((volatile __global float *)out)[i] = a * x[i] + y[i];
}
