// The copy engine brings tiles of both inputs and takes the results; what lies behind the inputs it fills with zeros.
// It writes whole pieces of 16 bytes, whatever the tensor's length, so the threads write the last tile where one is cut.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! tensormap from: x box(256)
//! tensormap and_from: y box(256)
//! tensormap to: out box(256)
//! launch saxpy grid(cdiv(N, 256)) block(256) args(from, and_from, to, a, out, N)
#include <cuda.h>

extern "C" __global__ void saxpy(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap and_from, const __grid_constant__ CUtensorMap to, float a, float *out, int N)
{
    __shared__ alignas(128) float u[256], v[256];
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), su = (unsigned)__cvta_generic_to_shared(u), sv = (unsigned)__cvta_generic_to_shared(v);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;" : : "r"(at));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 2048;" : : "r"(at) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" : : "r"(su), "l"(&from), "r"(blockIdx.x * 256), "r"(at) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" : : "r"(sv), "l"(&and_from), "r"(blockIdx.x * 256), "r"(at) : "memory");
    }
    __syncthreads();
    for (unsigned done = 0; !done;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
    u[threadIdx.x] = a * u[threadIdx.x] + v[threadIdx.x];
    if (blockIdx.x * 256 + 256 > N) {
        if (blockIdx.x * 256 + threadIdx.x < N) out[blockIdx.x * 256 + threadIdx.x] = u[threadIdx.x];
        return;
    }
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    if (threadIdx.x) return;
    asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];" : : "l"(&to), "r"(blockIdx.x * 256), "r"(su) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" : : : "memory");
}
