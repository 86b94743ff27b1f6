// A very short kernel.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy global(cdiv(N, 64) * 64) local(64) args(a, x, y, out, N)

__kernel void saxpy(float a, __global const float *x, __global const float *y, __global float *out, int N)
{
    const int i = get_global_id(0);
    if (i < N) out[i] = a * x[i] + y[i];
}
