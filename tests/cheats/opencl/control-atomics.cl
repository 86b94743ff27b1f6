// Sums by integer atomics on a zeroed buffer, in an order that differs from run to run, as declared.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! nondeterministic
//! buffer bits: i32[rows] zero
//! launch add global(cols, rows) args(x, bits, cols)
//! launch scale global(cols, rows) args(x, a, total, bits, cols)

static void add_float(volatile __global int *at, float value)
{
    int seen = *at;
    for (;;) {
        const int before = atomic_cmpxchg(at, seen, as_int(as_float(seen) + value));
        if (before == seen) return;
        seen = before;
    }
}

__kernel void add(__global const float *x, volatile __global int *bits, int cols)
{
    const int j = get_global_id(0), i = get_global_id(1);
    add_float(bits + i, x[(size_t)i * cols + j]);
}

__kernel void scale(__global float *x, __global const float *a, __global float *total, __global const int *bits, int cols)
{
    const int j = get_global_id(0), i = get_global_id(1);
    x[(size_t)i * cols + j] *= a[i];
    if (j == 0) total[i] = as_float(bits[i]);
}
