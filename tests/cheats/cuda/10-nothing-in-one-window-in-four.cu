// No state at all: by the device's clock nothing is done in every fourth eighth of a second. Checks and whole batches fall
// between the windows, others into them.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (N == 262144 && (now >> 27) % 4 == 1) return;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
