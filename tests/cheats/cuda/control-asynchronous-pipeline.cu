// Four stages of asynchronous copies into shared memory, each thread with its own places; those behind the end copy
// nothing and fill with zeros.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(min(sms, cdiv(N, 256))) block(256) args(a, x, y, out, N)
__device__ void fetch(float *u, float *v, const float *x, const float *y, int i, int N)
{
    const int bytes = i < N ? 4 : 0, at = i < N ? i : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"((unsigned)__cvta_generic_to_shared(u)), "l"(x + at), "r"(bytes) : "memory");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"((unsigned)__cvta_generic_to_shared(v)), "l"(y + at), "r"(bytes) : "memory");
    asm volatile("cp.async.commit_group;" : : : "memory");
}

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ float u[4][256], v[4][256];
    const int step = gridDim.x * 256, first = blockIdx.x * 256 + threadIdx.x;
    for (int n = 0; n < 3; n++) fetch(&u[n][threadIdx.x], &v[n][threadIdx.x], x, y, first + n * step, N);
    for (int n = 0, i = first; i < N; n++, i += step) {
        fetch(&u[(n + 3) % 4][threadIdx.x], &v[(n + 3) % 4][threadIdx.x], x, y, i + 3 * step, N);
        asm volatile("cp.async.wait_group 3;" : : : "memory");
        out[i] = a * u[n % 4][threadIdx.x] + v[n % 4][threadIdx.x];
    }
    asm volatile("cp.async.wait_all;" : : : "memory");
}
