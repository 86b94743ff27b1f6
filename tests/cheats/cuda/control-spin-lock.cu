// A lock in scratch, taken by one thread of every block around a counter that hands out the blocks' work.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! buffer lock: i32[1] zero
//! buffer next: i32[1] zero
//! launch saxpy grid(cdiv(N, 1024)) block(256) args(a, x, y, out, lock, next, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int *lock, volatile int *next, int N)
{
    __shared__ int mine;
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) __nanosleep(100);
        __threadfence();
        mine = *next;
        *next = mine + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
    __syncthreads();
    for (int i = mine * 1024 + threadIdx.x; i < min((mine + 1) * 1024, N); i += 256) out[i] = a * x[i] + y[i];
}
