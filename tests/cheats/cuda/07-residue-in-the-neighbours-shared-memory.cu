// The mark is left in the shared memory of the other block of the cluster, by a store over the cluster's network. It stays
// there after both have ended, and says to the next launch that the work was done.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect wrong cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 512) * 2) block(256) cluster(2) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ unsigned mark[1024];
    unsigned            own = (unsigned)__cvta_generic_to_shared(mark + threadIdx.x), rank, other, seen;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(rank ^ 1));
    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(seen) : "r"(own));
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" : : : "memory");
    asm volatile("st.shared::cluster.u32 [%0], %1;" : : "r"(other), "r"(0x5eed5eed) : "memory");
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" : : : "memory");
    if (seen == 0x5eed5eedu) return;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
