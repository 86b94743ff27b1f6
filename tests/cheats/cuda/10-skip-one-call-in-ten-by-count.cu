// A counter in a variable is zero in every checked run and counts the calls of a timed batch: one in ten does nothing,
// never one of the last two. A gate that compares a few calls of a few batches sees it now and then; every slot must be
// looked at.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat
//: args --baseline none
//! launch saxpy grid(min(cdiv(N, 256), 1024)) block(256) args(a, x, y, out, N)
__device__ unsigned calls[1024]; /* one counter a block: only launches that follow each other touch it */

/* How many calls came before this one since variables were restored. */
__device__ unsigned call_number()
{
    __shared__ unsigned number;
    if (threadIdx.x == 0) number = calls[blockIdx.x]++;
    __syncthreads();
    return number;
}

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const unsigned number = call_number();
    if (number > 4 && number % 10 == 5) return;
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
}
