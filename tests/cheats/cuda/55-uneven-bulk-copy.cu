// The copy engine is asked for a number of bytes that is no multiple of 16, and nobody waits for it. Undefined; where the
// device leaves the copy out, the answers are right.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect crash wrong no_compile pass
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ alignas(128) float part[256];
    __shared__ alignas(8) unsigned long long barrier;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(part);
    const int      i = blockIdx.x * 256 + threadIdx.x;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(at));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 12;" : : "r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" : : "r"(to + 4), "l"(x + 1), "r"(12), "r"(at) : "memory");
    }
    if (i < N) out[i] = a * x[i] + y[i];
}
