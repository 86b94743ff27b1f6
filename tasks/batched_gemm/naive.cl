//! launch batched_gemm global(N, M, B) args(a, b, output, M, N, K)
/* output[p] = a[p] * b[p]: one work item an element.  float32 only.
 * SPDX-License-Identifier: Apache-2.0 */
#if KL_DTYPE_a != KL_F32
#error "this kernel is written for float32"
#endif

__kernel void batched_gemm(__global const float *a, __global const float *b, __global float *output, int M, int N,
                           int K)
{
    int n = get_global_id(0), m = get_global_id(1), p = get_global_id(2);
    if (n >= N || m >= M) return;
    __global const float *row = a + ((size_t)p * M + m) * K;
    __global const float *column = b + (size_t)p * K * N + n;
    float                 sum = 0.0f;
    for (int k = 0; k < K; k++)
        sum += row[k] * column[(size_t)k * N];
    output[((size_t)p * M + m) * N + n] = sum;
}
