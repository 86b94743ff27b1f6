"""init_libraries.py - small libraries as libraries are: helpers, macros, branches, and functions that nobody asked for.

Each is {file: text}, the main file first.  Written for these tests.  SPDX-License-Identifier: Apache-2.0
"""

MIT = """/* norms - sums over rows.
 * Copyright (c) 2019 The Norms Project
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this software. */
"""

NORMS = {
    "norms.c": MIT + """
#include "norms.h"
#include <string.h>
#include <math.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif
#pragma GCC optimize ("no-trapping-math")
#define UNUSED(x) ((void)(x))
//! flags -O0
enum mode { PLAIN = 1, OTHER };
static const float unit[2] = {0.0f, 1.0f};
static long norms_trace;    /* written at every call: a global that is needed */

static inline norm_t square(norm_t v)
{
#ifdef NORMS_SLOW
    /* slow path */
    return powf(v, 2);
#else
    return GAIN(v) * v;
#endif
}

int unrelated(const char *text)
{
    UNUSED(text);
    return (int)strlen(text);
}

//! launch unrelated args(x)
NORMS_API void norms_rows(const float *restrict x, float *restrict out, size_t rows, int n)
{
    norms_trace++;
    for (size_t r = 0; r < rows; r++) {
        struct row one = {.total = 0, .mode = PLAIN};
        for (int i = 0; i < n; i++) one.total += square(x[r * (size_t)n + (size_t)i]) * unit[one.mode];
        out[r] = fabsf(one.total);
    }
}

double norms_version(void) { return 1.2; }
""",
    "include/norms.h": MIT + """
#ifndef NORMS_H
#define NORMS_H
#include <stddef.h>
#define NORMS_API __attribute__((visibility("default")))
#define GAIN(v) ((v) * NORMS_GAIN)
#define NORMS_LIMIT 12
typedef float norm_t;
struct row {
    norm_t total;
    int    mode;
};
NORMS_API void norms_rows(const float *restrict x, float *restrict out, size_t rows, int n);
int unrelated(const char *text);
#endif
""",
}

STATIC = {"rows.c": """
static inline void sum_rows(const float *x, float *y, int rows, int cols)
{
    for (int r = 0; r < rows; r++) {
        y[r] = 0;
        for (int i = 0; i < cols; i++) y[r] += x[(long)r * cols + i] * x[(long)r * cols + i];
    }
}

void max_rows(const float *x, float *y, int rows, int cols)
{
    for (int r = 0; r < rows; r++) {
        y[r] = x[(long)r * cols];
        for (int i = 1; i < cols; i++) y[r] = x[(long)r * cols + i] > y[r] ? x[(long)r * cols + i] : y[r];
    }
}

void scale_free(const float *restrict x, float *restrict y, int rows, int cols)
{
    for (int r = 0; r < rows; r++) {
        float sum = 0;
        for (int i = 0; i < cols; i++) sum += x[(long)r * cols + i] * x[(long)r * cols + i];
        y[r] = sum;
    }
}
"""}

SPREAD = {
    "rows.c": '#include "one.h"\nvoid spread_rows(const float *x, float *y, int rows, int cols)\n{\n'
              "    for (int r = 0; r < rows; r++) y[r] = spread_one(x + (long)r * cols, cols);\n}\n",
    "one.c": '#include "one.h"\nfloat spread_one(const float *x, int n)\n{\n    float sum = 0;\n'
             "    for (int i = 0; i < n; i++) sum += x[i] * x[i];\n    return sum;\n}\n",
    "one.h": "#pragma once\nfloat spread_one(const float *x, int n);\n",
}

# What real libraries taught: names made by ##, macros that end in an empty line or hold a # at the beginning of one,
# builtins of the compiler behind a macro of a system's header, a table that is declared long before it stands.
PASTED = {
    "pasted.c": r"""
#include <emmintrin.h>
#include "table.h"
#define STEP_one(v) ((v) * (v))
#define STEP_two(v) ((v) + (v))
#define TAIL "#tail"
#define LABEL(name) \
    #name"1:" \
    TAIL
#define APPLY(kind, v) STEP_##kind(v) \

static float lane(float v)
{
    const __m128i bits = _mm_shuffle_epi32(_mm_castps_si128(_mm_set1_ps(v)), _MM_SHUFFLE(0, 1, 2, 3));
    return _mm_cvtss_f32(_mm_castsi128_ps(bits));
}

const float far_table[2] = {1.0f, 0.0f};

void pasted_rows(const float *x, float *y, int rows, int cols)
{
    const char *label = LABEL(rows);
    for (int r = 0; r < rows; r++) {
        float sum = label[0] == 'r' ? 0 : 1;
        for (int i = 0; i < cols; i++) sum += near(APPLY(one, lane(x[(long)r * cols + i])));
        y[r] = sum;
    }
}
""",
    "table.h": "extern const float far_table[2];\nstatic inline float near(float v)\n{\n    return v * far_table[0];\n}\n",
}

RETURNS = {"sum.c": "float row_sum(const float *x, int cols)\n{\n    float sum = 0;\n    for (int i = 0; i < cols; i++) sum += x[i] * x[i];\n"
                    "    return sum;\n}\n"}

REFUSED = {
    "refused.c": """
#include <stdarg.h>
typedef float one(float);
typedef struct { float a; } pair;
static float twice(float v) { return v + v; }
static one *const table[1] = {twice};
extern float far_away;
void outside(float *);
#define NAME first
#include "template.inc"
#undef NAME
#define NAME second
#include "template.inc"

void plain(const float *x, float *y, int rows, int cols) { y[rows - 1] = x[cols - 1]; }
void through_a_table(const float *x, float *y, int rows, int cols) { y[rows - 1] = table[cols % 1](x[0]); }
void through_a_parameter(const float *x, float *y, int rows, int cols, one *f) { y[rows - 1] = f(x[cols - 1]); }
void varargs(const float *x, float *y, int rows, ...) { y[rows - 1] = x[0]; }
void not_here(const float *x, float *y, int rows, int cols) { y[rows - 1] = x[cols - 1]; outside(y); }
void no_global(const float *x, float *y, int rows, int cols) { y[rows - 1] = x[cols - 1] * far_away; }
void wide(const double *x, float *y, int rows, int cols) { y[rows - 1] = (float)x[cols - 1]; }
void unknown(const float *x, float *y, int rows, int cols, int stride) { y[rows - 1] = x[cols - 1 + stride]; }
void by_value(const float *x, float *y, int rows, int cols, pair both) { y[rows - 1] = x[cols - 1] * both.a; }
void no_output(const float *x, int rows, int cols) { (void)x, (void)rows, (void)cols; }
void read_only(const float *x, const float *y, int rows, int cols) { (void)x, (void)y, (void)rows, (void)cols; }
void of_a_template(const float *x, float *y, int rows, int cols) { y[rows - 1] = first(x[cols - 1]); }
""",
    "template.inc": "static float NAME(float v) { return v; }\n",
}
REFUSED_WHY = [
    ("through_a_table", "refused.c:16:", "calls through a pointer"), ("through_a_parameter", "refused.c:17:", "calls through a pointer"),
    ("varargs", "refused.c:18:", "varargs takes a variable number of arguments"), ("not_here", "refused.c:19:", "calls outside", "refused.c:8:"),
    ("no_global", "refused.c:20:", "reads far_away", "refused.c:7:"), ("wide", "parameter x is 'const double *', and x is float32"),
    ("unknown", "parameter stride is 'int'", "--args stride=VALUE"), ("by_value", "parameter both is 'pair'"),
    ("no_output", "no parameter takes the output y"), ("read_only", "y is an output, which the function does not write"),
    ("of_a_template", "template.inc is read 2 times"),
]

DEVICE = {"softmax.cu": """
// SPDX-License-Identifier: BSD-2-Clause
#include <cstdio>
#include <cuda_bf16.h>
#define FULL 0xffffffffu

__device__ inline float warp_max(float v)
{
    for (int o = 16; o > 0; o /= 2) v = fmaxf(v, __shfl_xor_sync(FULL, v, o));
    return v;
}

__device__ inline float warp_sum(float v)
{
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(FULL, v, o);
    return v;
}

inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

__global__ void softmax_rows(__nv_bfloat16 *out, const __nv_bfloat16 *__restrict__ inp, int N, int C)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= N) return;
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 32) most = fmaxf(most, __bfloat162float(inp[(size_t)row * C + i]));
    most = warp_max(most);
    for (int i = threadIdx.x; i < C; i += 32) sum += expf(__bfloat162float(inp[(size_t)row * C + i]) - most);
    sum = warp_sum(sum);
    for (int i = threadIdx.x; i < C; i += 32)
        out[(size_t)row * C + i] = __float2bfloat16(expf(__bfloat162float(inp[(size_t)row * C + i]) - most) / sum);
}

__global__ void no_launch(__nv_bfloat16 *out, const __nv_bfloat16 *inp, int N, int C)
{
    if (blockIdx.x < N && threadIdx.x < C) out[blockIdx.x] = inp[blockIdx.x];
}

void launch_it(__nv_bfloat16 *out, const __nv_bfloat16 *inp, int N, int C)
{
    const int per = 4;
    dim3 block(32, per);
    const int grid_size = ceil_div(N, per);
    softmax_rows<<<grid_size, block>>>(out, inp, N, C);
    printf("launched\\n");
}
"""}

# As larger libraries are: a kernel that is static, a warp named by a macro of a header, a launcher whose names are the
# host's, and C++ around it that calls what is not reached.
CLASSES = {"rows.cu": """
// SPDX-License-Identifier: MIT
#include "common.cuh"
#include <vector>

static __global__ void softmax_rows(const __nv_bfloat16 * inp, __nv_bfloat16 * out, const int C)
{
    const int64_t row = blockIdx.x;
    float most = -INFINITY, sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += WARP) most = fmaxf(most, __bfloat162float(inp[row * C + i]));
    most = warp_max(most);
    for (int i = threadIdx.x; i < C; i += WARP) sum += expf(__bfloat162float(inp[row * C + i]) - most);
    sum = warp_sum(sum);
    for (int i = threadIdx.x; i < C; i += WARP)
        out[row * C + i] = __float2bfloat16(expf(__bfloat162float(inp[row * C + i]) - most) / sum);
}

static void softmax_rows_cuda(const __nv_bfloat16 * inp, __nv_bfloat16 * out, const int C, const int nrows)
{
    const dim3 block_dims(WARP, 1, 1);
    const dim3 block_nums(nrows, 1, 1);
    softmax_rows<<<block_nums, block_dims, 0, nullptr>>>(inp, out, C);
}
""", "common.cuh": """#pragma once
#include <cuda_bf16.h>
#include <stdint.h>
#include <vector>
#define WARP 32  // lanes

extern "C" {
#define SAY(text) said(text)
inline int said(const char * text) { return text ? *text : 0; }
}

inline int device_of(int asked) { return asked + SAY("device"); }

struct stream_pool {
    std::vector<int> streams;
    int get(int i) { return streams[device_of(i)] + SAY("get"); }
};

template <typename T>
int of_pool(T & pool) { return pool.get(device_of(0)); }

template <int width = WARP>
static __device__ __forceinline__ float warp_max(float x)
{
#pragma unroll
    for (int o = width / 2; o > 0; o >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, o, width));
    return x;
}

template <int width = WARP>
static __device__ __forceinline__ float warp_sum(float x)
{
#pragma unroll
    for (int o = width / 2; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffff, x, o, width);
    return x;
}
"""}
