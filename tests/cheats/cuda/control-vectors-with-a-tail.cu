// Four elements at a time where the addresses allow it, one at a time before and behind.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 1024)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int head = min(N, (int)((16 - ((unsigned long long)x & 15)) % 16 / 4)), i = blockIdx.x * 256 + threadIdx.x, quads = (N - head) / 4;
    const bool together = (((unsigned long long)x ^ (unsigned long long)y | (unsigned long long)x ^ (unsigned long long)out) & 15) == 0;
    if (!together) {
        for (int n = i; n < N; n += gridDim.x * 256) out[n] = a * x[n] + y[n];
        return;
    }
    if (i < head) out[i] = a * x[i] + y[i];
    for (int n = i; n < quads; n += gridDim.x * 256) {
        const float4 u = ((const float4 *)(x + head))[n], v = ((const float4 *)(y + head))[n];
        ((float4 *)(out + head))[n] = {a * u.x + v.x, a * u.y + v.y, a * u.z + v.z, a * u.w + v.w};
    }
    for (int n = head + 4 * quads + i; n < N; n += gridDim.x * 256) out[n] = a * x[n] + y[n];
}
