// For one input set in sixteen, chosen by a hash of its first values, the answer is the one for other numbers: written,
// the same in every batch, and wrong. Comparing batches with each other finds nothing; each set needs the oracle, or the
// kernel's own answer in a run that was checked.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    const bool cheap = N == 262144 && (__float_as_uint(x[1]) ^ __float_as_uint(y[2]) >> 3) % 16 == 5;
    out[i] = cheap ? x[i] : a * x[i] + y[i];
}
