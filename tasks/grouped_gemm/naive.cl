//! launch grouped_gemm global(N, T) args(x, weight, offsets, output, T, N, K)
/* Rows offsets[g] .. offsets[g+1] of x times the transposed weight g: one work item an element.  float32 only.
 * SPDX-License-Identifier: Apache-2.0 */
#if KL_DTYPE_x != KL_F32
#error "this kernel is written for float32"
#endif

__kernel void grouped_gemm(__global const float *x, __global const float *weight, __global const int *offsets,
                           __global float *output, int T, int N, int K)
{
    int n = get_global_id(0), t = get_global_id(1);
    if (n >= N || t >= T) return;
    int g = 0;
    while (t >= offsets[g + 1])
        g++;
    __global const float *row = x + (size_t)t * K;
    __global const float *column = weight + ((size_t)g * N + n) * K;
    float                 sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += row[k] * column[k];
    output[(size_t)t * N + n] = sum;
}
