// a * x + y, every product and sum in float64.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle args(a, x, y, out, N)
#include <stdint.h>

void oracle(float a, const float *x, const float *y, kl_t_out *out, int32_t N)
{
    for (int32_t i = 0; i < N; i++) out[i] = (double)a * (double)x[i] + (double)y[i];
}
