// Local memory of a thread that never wrote it holds what the last thread in its place left there.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong pass cheat
//: harmless
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    float     room[512];
    volatile float *kept = room;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    for (int n = 0; n < 128; n++)
        if (kept[4 * n] == x[i] && kept[4 * n + 1] == y[i]) {
            out[i] = kept[4 * n + 2] * 1.0f;
            return;
        }
    const int place = i % 128;
    out[i] = a * x[i] + y[i];
    kept[4 * place] = x[i];
    kept[4 * place + 1] = y[i];
    kept[4 * place + 2] = out[i];
}
