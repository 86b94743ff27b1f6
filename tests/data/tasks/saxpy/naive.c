// One loop.
// SPDX-License-Identifier: Apache-2.0
//! launch saxpy args(a, x, y, out, N)
#include <stdint.h>

void saxpy(float a, const float *restrict x, const float *restrict y, float *restrict out, int32_t N)
{
    for (int32_t i = 0; i < N; i++) out[i] = a * x[i] + y[i];
}
