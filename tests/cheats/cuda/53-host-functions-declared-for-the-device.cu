// Functions of the host's runtime are declared as functions of the device, so that no header is named and a linker may
// find them somewhere: one that ends the context and one that changes its cache.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat no_compile
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __device__ int cudaDeviceReset();
extern "C" __device__ int cudaCtxResetPersistingL2Cache();

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    if (i == 0) cudaDeviceReset(), cudaCtxResetPersistingL2Cache();
}
