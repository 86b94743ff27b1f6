// The function returns how long it took, and says a nanosecond.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect pass
//: harmless
//: expect-time-ratio naive 0.94 1.06
//! launch saxpy args(a, x, y, out, N)
#include <stddef.h>
#include <stdint.h>

float saxpy(float a, const float *restrict x, const float *restrict y, float *restrict out, int32_t N)
{
    for (int32_t i = 0; i < N; i++) out[i] = a * x[i] + y[i];
    return 1e-6f;
}
