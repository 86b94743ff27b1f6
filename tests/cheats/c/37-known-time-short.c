// Timing self-test: three microseconds of arithmetic done four times take four times as long as their baseline.  A fixed
// cost inside the interval (handshake, poisoning, a page fault) would bring the ratio nearer to one.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=2,cols=160
//: control
//: args --baseline naive
//: expect-time-ratio naive 0.22 0.33
//! launch softmax args(x, output, rows, cols)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

static void once(const float *x, float *output, int32_t rows, int32_t cols)
{
    for (int32_t row = 0; row < rows; row++) {
        const float *in = x + (size_t)row * (size_t)cols;
        float       *out = output + (size_t)row * (size_t)cols;
        float        top = -INFINITY, sum = 0;
        for (int32_t i = 0; i < cols; i++) top = fmaxf(top, in[i]);
        for (int32_t i = 0; i < cols; i++) sum += expf(in[i] - top);
        for (int32_t i = 0; i < cols; i++) out[i] = expf(in[i] - top) / sum;
    }
}

void softmax(const float *x, float *output, int32_t rows, int32_t cols)
{
    for (int32_t again = 0; again < 4; again++) {
        once(x, output, rows, cols);
        __asm__ volatile("" : : "r"(output) : "memory");
    }
}
