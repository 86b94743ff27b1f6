// Running sums of every segment as they are defined: one thread per output looks its segment up by bisection and adds
// it up from the first value to its own.
// SPDX-License-Identifier: Apache-2.0
//! launch segscan grid(cdiv(N, 256)) block(256) args(values, offsets, output, N, S)

extern "C" __global__ void segscan(const float *values, const int *offsets, float *output, int N, int S)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N)
        return;
    int low = 0, high = S;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (offsets[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    float sum = 0;
    for (int j = offsets[low]; j <= i; j++)
        sum += values[j];
    output[i] = sum;
}
