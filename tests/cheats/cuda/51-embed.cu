// A file of the system as the bytes of an array.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect no_compile
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    static __device__ const unsigned char bytes[] = {
#embed "/etc/passwd"
    };
    if (i < N) out[i] = a * x[i] + y[i] + 0.0f * bytes[0];
}
