// Timing self-test: three microseconds of work done four times takes four times as long as its baseline.  A fixed cost
// inside the interval (handshake, poisoning, a page fault) would bring the ratio nearer to one.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: expect-time-ratio naive 0.19 0.31
//! launch saxpy args(a, x, y, out, N)
#include <stddef.h>
#include <stdint.h>

void saxpy(float a, const float *restrict x, const float *restrict y, float *restrict out, int32_t N)
{
    for (int32_t again = 0; again < 4; again++) {
        for (int32_t i = 0; i < N; i++) out[i] = a * x[i] + y[i];
        __asm__ volatile("" : : "r"(out) : "memory"); /* the compiler must not merge the four */
    }
}
