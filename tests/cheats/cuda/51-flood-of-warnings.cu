// Ten thousand warnings, for a log to choke on.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass no_compile
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
#define TEN(p) int p##0; int p##1; int p##2; int p##3; int p##4; int p##5; int p##6; int p##7; int p##8; int p##9;
#define HUNDRED(p) TEN(p##0) TEN(p##1) TEN(p##2) TEN(p##3) TEN(p##4) TEN(p##5) TEN(p##6) TEN(p##7) TEN(p##8) TEN(p##9)
#define KILO(p) HUNDRED(p##0) HUNDRED(p##1) HUNDRED(p##2) HUNDRED(p##3) HUNDRED(p##4) HUNDRED(p##5) HUNDRED(p##6) HUNDRED(p##7) HUNDRED(p##8) HUNDRED(p##9)

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    KILO(o) KILO(p) KILO(q) KILO(r) KILO(s) KILO(t) KILO(u) KILO(v) KILO(w) KILO(z)
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
