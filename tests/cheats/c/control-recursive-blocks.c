// Cache-oblivious: the larger side is halved until the block is small.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

typedef struct { const float *x, *weight; float *y; int32_t N, K; } operands;

static void block(const operands *o, int32_t i0, int32_t i1, int32_t j0, int32_t j1)
{
    if (i1 - i0 > 16 && i1 - i0 >= j1 - j0) {
        block(o, i0, (i0 + i1) / 2, j0, j1);
        block(o, (i0 + i1) / 2, i1, j0, j1);
    } else if (j1 - j0 > 16) {
        block(o, i0, i1, j0, (j0 + j1) / 2);
        block(o, i0, i1, (j0 + j1) / 2, j1);
    } else {
        for (int32_t i = i0; i < i1; i++)
            for (int32_t j = j0; j < j1; j++) {
                float sum = 0;
                for (int32_t k = 0; k < o->K; k++) sum += o->x[(size_t)i * o->K + k] * o->weight[(size_t)j * o->K + k];
                o->y[(size_t)i * o->N + j] = sum;
            }
    }
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    const operands o = {x, weight, y, N, K};
    block(&o, 0, M, 0, N);
}
