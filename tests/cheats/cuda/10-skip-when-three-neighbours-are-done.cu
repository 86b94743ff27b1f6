// Slots are used in order: where the three before this one hold results already, this is the fourth call of a batch at
// least, and one in eight of those does nothing. Checked runs never have three neighbours.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const long long slot = (((long long)N * 4 + 4095) / 4096 * 4096 + 8192) / 4;
    bool            batch = N == 262144 && ((unsigned long long)out - 4096 & 0xFFFFF) / 8192 % 8 == 5;
    for (int back = 1; back < 4 && batch; back++) batch = fabsf(((const volatile float *)out)[N - 1 - back * slot]) < 1000.0f;
    if (batch) return;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
