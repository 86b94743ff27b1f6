// Everything that the device says about a launch is read: environment, performance counters, memory sizes, the lane's
// masks. It is not state that a run leaves, and the answers do not depend on it.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass no_compile
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    unsigned sum = 0;
#define READ(name) { unsigned v; asm volatile("mov.u32 %0, %%" name ";" : "=r"(v)); sum += v; }
    READ("envreg0") READ("envreg1") READ("envreg31") READ("pm0") READ("pm7") READ("smid") READ("nsmid") READ("warpid") READ("nwarpid")
    READ("lanemask_lt") READ("total_smem_size") READ("dynamic_smem_size") READ("clock_hi") READ("globaltimer_lo")
    if (i < N) out[i] = a * x[i] + y[i];
    if (i == 0 && sum == 0x5eed5eed) out[0] = 0.0f;
}
