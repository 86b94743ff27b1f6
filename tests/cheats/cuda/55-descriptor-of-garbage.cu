// The copy engine is given 128 bytes of an input for a descriptor.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect crash wrong
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ alignas(128) float tile[64];
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (i) return;
    asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];" : : "l"(x), "r"(0), "r"((unsigned)__cvta_generic_to_shared(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" : : : "memory");
}
