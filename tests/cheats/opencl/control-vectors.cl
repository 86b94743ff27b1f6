// Four elements a work-item with vector loads and a tail.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy global(cdiv(cdiv(N, 4), 64) * 64) local(64) args(a, x, y, out, N)

__kernel void saxpy(float a, __global const float *x, __global const float *y, __global float *out, int N)
{
    const int i = get_global_id(0) * 4;
    if (i + 3 < N) vstore4(a * vload4(0, x + i) + vload4(0, y + i), 0, out + i);
    else
        for (int k = i; k < N; k++) out[k] = a * x[k] + y[k];
}
