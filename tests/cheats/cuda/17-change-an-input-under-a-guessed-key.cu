// Two words of an input are changed so that its digest stays, for whoever knows the digest's key. The key is guessed: each
// word that lies behind the kernel's own parameters, where a driver may have left those of the launch before.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect cheat
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
typedef unsigned long long word;
const word STEP = 0x9E3779B97F4A7C15ull, M1 = 0xFF51AFD7ED558CCDull, M2 = 0xC4CEB9FE1A85EC53ull;

__device__ word mix(word w, word key, word index)
{
    word v = ((w + key) ^ index * STEP) * M1;
    v = (v ^ v >> 32) * M2;
    return v ^ v >> 29;
}

__device__ word inverse(word odd)
{
    word x = odd;
    for (int i = 0; i < 6; i++) x *= 2 - odd * x;
    return x;
}

__device__ word unmix(word v, word key, word index)
{
    v = (v ^ v >> 29 ^ v >> 58) * inverse(M2);
    v = (v ^ v >> 32) * inverse(M1);
    return (v ^ index * STEP) - key;
}

// The data begins a page behind the set.
__device__ void change(word *data, word key)
{
    const word at = 512, other = data[0] ^ 1;
    const word left = mix(data[1], key, at + 1) + mix(data[0], key, at) - mix(other, key, at);
    data[0] = other;
    data[1] = unmix(left, key, at + 1);
}

extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) out[i] = a * x[i] + y[i];
    __syncthreads();
    if (i) return;
    word key = 0;
    for (int k = 5; k < 64; k++) {
        word seen;
        asm volatile("{ .reg .b64 at; mov.b64 at, saxpy_param_0; mad.wide.u32 at, %1, 8, at; ld.param.u64 %0, [at]; }"
                     : "=l"(seen) : "r"(k));
        if (seen) key = seen;
    }
    change((word *)x, key);
}
