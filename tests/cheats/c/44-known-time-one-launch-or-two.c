// Timing self-test: the same work in two launches takes as long as in one.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: expect-time-ratio naive 0.90 1.10
//! launch half args(a, x, y, out, i64(0), i64(N / 2))
//! launch half args(a, x, y, out, i64(N / 2), i64(N))
#include <stddef.h>
#include <stdint.h>

void half(float a, const float *restrict x, const float *restrict y, float *restrict out, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++) out[i] = a * x[i] + y[i];
}
