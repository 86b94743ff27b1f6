// Pushes the operands out of every cache at its end, so that whoever comes next is slow: the flush takes longer than it brings.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: workload N=65536
//: expect pass
//: harmless
//: args --baseline naive
//: expect-time-ratio naive 0.02 1.06
//! launch saxpy args(a, x, y, out, N)
#include <stddef.h>
#include <stdint.h>

void saxpy(float a, const float *x, const float *y, float *out, int32_t n)
{
    for (int32_t i = 0; i < n; i++) out[i] = a * x[i] + y[i];
    for (int32_t i = 0; i < n; i += 16) {
        __builtin_ia32_clflush(x + i);
        __builtin_ia32_clflush(y + i);
    }
}
