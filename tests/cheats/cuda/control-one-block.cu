// One block goes over everything.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(1) block(1024) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    for (int i = threadIdx.x; i < N; i += 1024) out[i] = a * x[i] + y[i];
}
