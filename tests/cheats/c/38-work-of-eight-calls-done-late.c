// Seven calls of eight only take a note of where they should have worked; the eighth does the work of all. At the end of a
// full batch every answer is right, but no call in between was done when it was over. A batch that ends early shows the debt.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat
//: args --baseline naive
//! launch saxpy args(a, x, y, out, N)
#include <stdint.h>

static void one(float a, const float *x, const float *y, float *out, int32_t N)
{
    for (int32_t i = 0; i < N; i++) out[i] = a * x[i] + y[i];
}

void saxpy(float a, const float *x, const float *y, float *out, int32_t N)
{
    static struct { const float *x, *y; float *out; } notes[8];
    static int calls;
    const int  call = calls++, batch = N == 8192 && call >= 8 && call < 496;
    if (!batch) {
        one(a, x, y, out, N);
        return;
    }
    notes[call % 8].x = x, notes[call % 8].y = y, notes[call % 8].out = out;
    for (int d = 0; d < 8 && call % 8 == 7; d++) one(a, notes[d].x, notes[d].y, notes[d].out, N);
}
