// One warp loads, seven compute, and named barriers hand over two buffers in turn.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(sms) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ float u[2][224], v[2][224];
    const int tiles = (N + 223) / 224, warp = threadIdx.x / 32;
    for (int t = blockIdx.x, n = 0; t < tiles; t += gridDim.x, n ^= 1) {
        if (warp == 7) {
            asm volatile("bar.sync %0, 256;" : : "r"(3 + n) : "memory"); /* empty */
            for (int k = threadIdx.x % 32; k < 224 && t * 224 + k < N; k += 32) u[n][k] = x[t * 224 + k], v[n][k] = y[t * 224 + k];
            __threadfence_block();
            asm volatile("bar.arrive %0, 256;" : : "r"(1 + n) : "memory"); /* full */
        } else {
            asm volatile("bar.arrive %0, 256;" : : "r"(3 + n) : "memory");
            asm volatile("bar.sync %0, 256;" : : "r"(1 + n) : "memory");
            const int i = t * 224 + threadIdx.x;
            if (i < N) out[i] = a * u[n][threadIdx.x] + v[n][threadIdx.x];
        }
    }
}
