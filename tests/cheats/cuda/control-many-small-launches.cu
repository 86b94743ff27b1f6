// Sixteen launches do a sixteenth of the work each; at small sizes most of them have none.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(0 * cdiv(N, 16), N), min(1 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(1 * cdiv(N, 16), N), min(2 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(2 * cdiv(N, 16), N), min(3 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(3 * cdiv(N, 16), N), min(4 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(4 * cdiv(N, 16), N), min(5 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(5 * cdiv(N, 16), N), min(6 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(6 * cdiv(N, 16), N), min(7 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(7 * cdiv(N, 16), N), min(8 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(8 * cdiv(N, 16), N), min(9 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(9 * cdiv(N, 16), N), min(10 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(10 * cdiv(N, 16), N), min(11 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(11 * cdiv(N, 16), N), min(12 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(12 * cdiv(N, 16), N), min(13 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(13 * cdiv(N, 16), N), min(14 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(14 * cdiv(N, 16), N), min(15 * cdiv(N, 16), N))
//! launch piece grid(cdiv(cdiv(N, 16), 256)) block(256) args(a, x, y, out, min(15 * cdiv(N, 16), N), min(16 * cdiv(N, 16), N))
extern "C" __global__ void piece(float a, const float *x, const float *y, float *out, int first, int last)
{
    const int i = first + blockIdx.x * 256 + threadIdx.x;
    if (i < last) out[i] = a * x[i] + y[i];
}
