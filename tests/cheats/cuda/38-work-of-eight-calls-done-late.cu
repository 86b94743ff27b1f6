// Seven calls of eight only pass by; the eighth does the work of all. At the end of a full batch every answer is right,
// but no call in between was done when it was over. A batch of another length, or one that ends early, shows the debt.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat wrong crash
//: args --baseline naive
//! launch saxpy grid(min(cdiv(N, 256), 1024)) block(256) args(a, x, y, out, N)
#define SLOT ((1048576 + 8192) / 4)     /* elements from one output to the next */
#define SET ((2 * 1048576 + 3 * 4096) / 4) /* and from one input set to the next */
struct place { float *first; int calls, ready; };
__device__ place places[1024]; /* one for each block, and no other block looks at it */

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    __shared__ place own;
    if (threadIdx.x == 0) own = places[blockIdx.x];
    __syncthreads();
    const long long call = own.calls ? (out - own.first) / SLOT : 0;
    const bool      batch = N == 262144 && own.calls >= 8 && call == own.calls && call < 496;
    const int       i = blockIdx.x * 256 + threadIdx.x, n = !batch ? 1 : call % 8 == 7 ? 8 : 0;
    for (int d = 0; d < n; d++)
        if (i < N) out[i - (long long)d * SLOT] = a * x[i - (long long)d * SET] + y[i - (long long)d * SET];
    if (threadIdx.x) return;
    places[blockIdx.x].calls = own.calls + 1;
    if (own.calls == 0) places[blockIdx.x].first = out;
}
