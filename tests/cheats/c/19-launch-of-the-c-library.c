// The launch line names a function of the C library instead of one of this file.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: expect refused wrong crash cheat
//! launch memcpy args(y, x, i64(M * 4))
static const int nothing = 0;
int answer(void) { return nothing; }
