// The entry is an array of bytes that happen to be instructions.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect crash refused cheat
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

const unsigned char gemm[] = {0xc3};
