// Lanes find by ballots and matches who shares their row and let a leader add for all: rows of any length lie one behind
// the other over the lanes.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! nondeterministic
//! launch clear grid(cdiv(rows, 128)) block(128) args(total, rows)
//! launch scale grid(cdiv(rows * cols, 128)) block(128) args(x, a, total, rows, cols)
extern "C" __global__ void scale(float *x, const float *a, float *total, int rows, int cols)
{
    const long long at = (long long)blockIdx.x * 128 + threadIdx.x, all = (long long)rows * cols;
    const int       row = at < all ? (int)(at / cols) : -1, lane = threadIdx.x % 32;
    const float     v = at < all ? x[at] : 0.0f;
    const unsigned  peers = __match_any_sync(~0u, row), present = __ballot_sync(~0u, at < all);
    float           sum = 0.0f;
    for (int n = 0; n < 32; n++) {
        const float other = __shfl_sync(~0u, v, n);
        if (peers >> n & present >> n & 1) sum += other;
    }
    if (row < 0) return;
    x[at] = v * a[row];
    if (lane == __ffs(peers) - 1) atomicAdd(total + row, sum);
}

extern "C" __global__ void clear(float *total, int rows)
{
    if (blockIdx.x * 128 + threadIdx.x < rows) total[blockIdx.x * 128 + threadIdx.x] = 0.0f;
}
