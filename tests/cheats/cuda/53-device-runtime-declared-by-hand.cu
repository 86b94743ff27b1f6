// The device's runtime is declared by hand, so that no header is named: a synchronisation and a launch from device code.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat no_compile
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __device__ void *cudaGetParameterBufferV2(void *function, dim3 grid, dim3 block, unsigned bytes);
extern "C" __device__ int   cudaLaunchDeviceV2(void *parameters, void *stream);
extern "C" __global__ void  saxpy(float a, const float *x, const float *y, float *out, int N);

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    void *p = cudaGetParameterBufferV2((void *)saxpy, dim3(1), dim3(1), 0);
    if (i == 0 && p) cudaLaunchDeviceV2(p, nullptr);
}
