// Sixteen bytes a load, and a tail.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 1024)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = (blockIdx.x * 256 + threadIdx.x) * 4;
    if (i + 3 < N) {
        const float4 u = *(const float4 *)(x + i), v = *(const float4 *)(y + i);
        *(float4 *)(out + i) = make_float4(a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w);
    } else
        for (int k = i; k < N; k++) out[k] = a * x[k] + y[k];
}
