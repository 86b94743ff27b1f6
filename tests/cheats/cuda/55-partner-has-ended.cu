// A block of a cluster stores into the shared memory of the other, which has ended by then.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect crash pass wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 512) * 2) block(256) cluster(2) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ float mark[256];
    unsigned         own = (unsigned)__cvta_generic_to_shared(mark + threadIdx.x), other, rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (rank == 1) return;
    __nanosleep(20000);
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(other) : "r"(own));
    asm volatile("st.shared::cluster.f32 [%0], %1;" : : "r"(other), "f"(a) : "memory");
}
