// Every eighth call of a batch does the work of the next seven too, whose inputs and outputs lie at known distances, and
// these find it done. A batch that ends early has no such slots to write to, and one that wraps around has them elsewhere.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat wrong crash
//: args --baseline naive
//! launch saxpy args(a, x, y, out, N)
#include <stdint.h>

static void one(float a, const float *x, const float *y, float *out, int32_t N)
{
    for (int32_t i = 0; i < N; i++) out[i] = a * x[i] + y[i];
}

#define SLOT ((32768 + 8192) / 4)       /* elements from one output to the next */
#define SET ((2 * 32768 + 3 * 4096) / 4) /* and from one input set to the next */

void saxpy(float a, const float *x, const float *y, float *out, int32_t N)
{
    static int calls;
    const int  call = calls++, batch = N == 8192 && call >= 8 && call < 496;
    if (batch && call % 8) return;
    for (int d = 0; d < (batch ? 8 : 1); d++) one(a, x + d * SET, y + d * SET, out + d * SLOT, N);
}
