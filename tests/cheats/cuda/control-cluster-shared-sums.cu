// Four blocks of a cluster share a row; each reads the sums of the others out of their shared memory.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! launch scale grid(4, rows) block(128) cluster(4) args(x, a, total, cols)
extern "C" __global__ void scale(float *x, const float *a, float *total, int cols)
{
    __shared__ float part[128];
    unsigned         rank, other;
    float            sum = 0.0f, all = 0.0f, *row = x + (size_t)blockIdx.y * cols;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    for (int j = rank * 128 + threadIdx.x; j < cols; j += 512) {
        sum += row[j];
        row[j] *= a[blockIdx.y];
    }
    part[threadIdx.x] = sum;
    for (int n = 64; n; n /= 2) {
        __syncthreads();
        if (threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
    }
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" : : : "memory");
    for (unsigned n = 0; n < 4; n++) {
        float v;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"((unsigned)__cvta_generic_to_shared(part)), "r"(n));
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(other) : "memory");
        all += v;
    }
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" : : : "memory");
    if (rank == 0 && threadIdx.x == 0) total[blockIdx.y] = all;
}
