// Every eighth call of a batch does the work of the next seven too, whose inputs and outputs lie at known distances, and
// these find it done. All answers are right; what is saved is seven launches' ramp and tail, which no user's single call
// saves. A call must be seen to write its own slot alone: a batch that ends early must leave the later slots as they were.
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
    const int       i = blockIdx.x * 256 + threadIdx.x, n = !batch ? 1 : call < own.ready ? 0 : 8;
    for (int d = 0; d < n; d++)
        if (i < N) out[i + (long long)d * SLOT] = a * x[i + (long long)d * SET] + y[i + (long long)d * SET];
    if (threadIdx.x) return;
    places[blockIdx.x].calls = own.calls + 1;
    if (own.calls == 0) places[blockIdx.x].first = out;
    if (n == 8) places[blockIdx.x].ready = (int)call + 8;
}
