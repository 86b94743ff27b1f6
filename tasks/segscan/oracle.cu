// The trusted running sums on a GPU: one thread walks a segment, in float64.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle grid(cdiv(S, 64)) block(64) args(values, offsets, output, S)

extern "C" __global__ void oracle(const float *values, const int *offsets, double *output, int S)
{
    const int s = blockIdx.x * 64 + threadIdx.x;
    if (s >= S)
        return;
    double sum = 0;
    for (int i = offsets[s]; i < offsets[s + 1]; i++)
        output[i] = sum += values[i];
}
