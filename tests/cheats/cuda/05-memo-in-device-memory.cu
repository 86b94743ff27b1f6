// Results are kept in a device variable under the first inputs.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect pass wrong cheat
//: harmless
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
#define LARGEST 1048576
__device__ float kept[LARGEST], kept_key[LARGEST], kept_other[LARGEST];

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    if (N <= LARGEST && kept_key[i] == x[i] && kept_other[i] == y[i]) {
        out[i] = kept[i];
        return;
    }
    out[i] = a * x[i] + y[i];
    if (N > LARGEST) return;
    kept[i] = out[i];
    kept_key[i] = x[i];
    kept_other[i] = y[i];
}
