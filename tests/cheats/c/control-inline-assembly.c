<<<<<<< HEAD
// Arithmetic in assembly: allowed, since it does nothing but compute.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=64,N=64,K=64
=======
// A table in .rodata and one instruction by inline assembler, both plain.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
>>>>>>> 1985cf4 (cheats: tables of the loader, files of the host, shared pages, notes from batch to batch, and honest kernels beside them)
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

<<<<<<< HEAD
static float multiply_add(float a, float b, float sum)
{
#if defined(__x86_64__)
    __asm__("mulss %1, %0\n\taddss %2, %0" : "+x"(a) : "x"(b), "x"(sum));
    return a;
#else
    return a * b + sum;
#endif
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
=======
__asm__(".pushsection .rodata\n.balign 4\nones: .float 1, 1, 1, 1\n.popsection");
extern const float ones[4] __attribute__((visibility("hidden")));
static void product(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
>>>>>>> 1985cf4 (cheats: tables of the loader, files of the host, shared pages, notes from batch to batch, and honest kernels beside them)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
<<<<<<< HEAD
            for (int32_t k = 0; k < K; k++) sum = multiply_add(x[(size_t)i * K + k], weight[(size_t)j * K + k], sum);
            y[(size_t)i * N + j] = sum;
        }
}
=======
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    product(x, weight, y, M, N, K);
    for (int32_t i = 0; i < M * N; i++) __asm__ volatile("mulss %1, %0" : "+x"(y[i]) : "m"(ones[i % 4]));
}
>>>>>>> 1985cf4 (cheats: tables of the loader, files of the host, shared pages, notes from batch to batch, and honest kernels beside them)
