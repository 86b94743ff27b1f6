// Objects with virtual functions, made on the device and used there.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
struct step { virtual __device__ float of(float u, float v) const = 0; };
struct scaled : step {
    float by;
    __device__ scaled(float b) : by(b) {}
    __device__ float of(float u, float v) const override { return by * u + v; }
};
struct moved : step {
    float by;
    __device__ moved(float b) : by(b) {}
    __device__ float of(float u, float v) const override { return fmaf(by, u, v); }
};

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    const scaled one(a);
    const moved  other(a);
    const step  *chosen = i & 1 ? (const step *)&one : &other;
    if (i < N) out[i] = chosen->of(x[i], y[i]);
}
