// Ten thousand warnings, and then an error.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect no_compile
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

#define W1 _Pragma("GCC warning \"a very long warning that is said again and again and again\"")
#define W10 W1 W1 W1 W1 W1 W1 W1 W1 W1 W1
#define W100 W10 W10 W10 W10 W10 W10 W10 W10 W10 W10
#define W1000 W100 W100 W100 W100 W100 W100 W100 W100 W100 W100
W1000 W1000 W1000 W1000 W1000 W1000 W1000 W1000 W1000 W1000

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K) { return nothing_of_that_name; }
