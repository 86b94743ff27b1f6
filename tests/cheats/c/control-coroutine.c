// Two generators take turns by computed goto, one for rows and one for columns.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

typedef struct { void *resume; int32_t at; } coroutine;

/* The next index below `end`, -1 after the last; goes on where it left. */
static int32_t next(coroutine *c, int32_t end)
{
    if (c->resume) goto *c->resume;
    for (c->at = 0; c->at < end; c->at++) {
        c->resume = &&again;
        return c->at;
    again:;
    }
    c->resume = NULL;
    return -1;
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    coroutine rows = {0}, columns = {0};
    for (int32_t i; (i = next(&rows, M)) >= 0;)
        for (int32_t j; (j = next(&columns, N)) >= 0;) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}
