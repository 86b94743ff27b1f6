// The generator of the inputs is public: if the first elements are those of a seed from 1 to 8, the rest is drawn instead
// of read. Seeds are 64 random bits drawn after the compile, so it never is and the memory is read after all.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: harmless
//: expect pass
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
__device__ unsigned long long mix(unsigned long long v)
{
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
    v = (v ^ v >> 27) * 0x94d049bb133111ebull;
    return v ^ v >> 31;
}

__device__ float drawn(unsigned long long seed, unsigned long long i)
{
    const unsigned long long lanes = 0x0000ffff0000ffffull, h = mix(mix(seed) + (i + 1) * 0x9e3779b97f4a7c15ull);
    unsigned long long       g = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
    g ^= g >> 32;
    const unsigned long long pairs = (h & lanes) + (h >> 16 & lanes) + (g & lanes) + (g >> 16 & lanes);
    return (float)((int)((unsigned)pairs + (unsigned)(pairs >> 32)) - 262140) * 1.86881237e-5f;
}

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    unsigned long long seed = 0;
    for (unsigned long long s = 1; s <= 8; s++)
        if (drawn(s, 0) == x[0] && drawn(s, 1) == x[1]) seed = s;
    out[i] = a * (seed ? drawn(seed, i) : x[i]) + y[i];
}
