// The factor is never read, because every shape that is shown has the same. A task whose hidden shapes varied their arrays
// and not their scalars could not tell it from the real thing.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong
//: args --baseline none
//! launch saxpy args(a, x, y, out, N)
void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    (void)a;
    for (int i = 0; i < N; i++) out[i] = 2.5f * x[i] + y[i];
}
