// Whole tiles come by bulk copies without a descriptor, the tail by loads.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ alignas(128) float u[256];
    __shared__ alignas(8) unsigned long long barrier;
    const int      i = blockIdx.x * 256 + threadIdx.x;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    if ((blockIdx.x + 1) * 256 > N) {
        if (i < N) out[i] = a * x[i] + y[i];
        return;
    }
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;" : : "r"(at));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" : : "r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" : : "r"((unsigned)__cvta_generic_to_shared(u)), "l"(x + i), "r"(at) : "memory");
    }
    __syncthreads();
    for (unsigned done = 0; !done;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
    out[i] = a * u[threadIdx.x] + y[i];
}
