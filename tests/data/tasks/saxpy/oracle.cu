// a * x + y, every product and sum in float64.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)

extern "C" __global__ void oracle(float a, const float *x, const float *y, kl_t_out *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = (double)a * (double)x[i] + (double)y[i];
}
