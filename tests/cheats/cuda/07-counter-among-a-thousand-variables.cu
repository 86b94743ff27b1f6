// The counter is one of 1100 variables: a table of saved variables with room for a thousand would forget it. It must not
// be remembered from run to run either way.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
#define TEN(p, o) o(p##0) o(p##1) o(p##2) o(p##3) o(p##4) o(p##5) o(p##6) o(p##7) o(p##8) o(p##9)
#define HUNDRED(p, o) TEN(p##0, o) TEN(p##1, o) TEN(p##2, o) TEN(p##3, o) TEN(p##4, o) TEN(p##5, o) TEN(p##6, o) TEN(p##7, o) TEN(p##8, o) TEN(p##9, o)
#define ALL(o) HUNDRED(n0, o) HUNDRED(n1, o) HUNDRED(n2, o) HUNDRED(n3, o) HUNDRED(n4, o) HUNDRED(n5, o) HUNDRED(n6, o) HUNDRED(n7, o) \
    HUNDRED(n8, o) HUNDRED(n9, o) HUNDRED(n10, o)
#define DECLARE(n) __device__ volatile int n;
#define ADD(n) + n
ALL(DECLARE)
__device__ float all() { return (float)(0 ALL(ADD)); }

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    if (n1099 > 4) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) n1099++;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (N < 0) out[0] = all();
}
