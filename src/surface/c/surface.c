/* surface.c - C for cores, compiled by gcc to a shared object that our own loader maps.
 *
 * Native code: what keeps it in is the sandbox, so the best assurance is B.
 * SPDX-License-Identifier: Apache-2.0 */
#include "c.h"

#include "backend/cc.h"
#include "base/fs.h"

// clang-format off
static const char *const c_flags[] = {
    "-O0", "-O1", "-O2", "-O3", "-Os", "-Ofast", "-std=c11", "-std=c17", "-std=gnu11",
    "-std=gnu17", "-ffast-math", "-funsafe-math-optimizations", "-fassociative-math",
    "-freciprocal-math", "-ffinite-math-only", "-fno-math-errno", "-fno-trapping-math",
    "-fno-signed-zeros", "-ffp-contract=", "-funroll-loops", "-funroll-all-loops",
    "-fno-unroll-loops", "-floop-nest-optimize", "-fprefetch-loop-arrays", "-ftree-vectorize",
    "-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-fno-tree-loop-vectorize",
    "-fvect-cost-model=", "-fsimd-cost-model=", "-fstrict-aliasing", "-fno-strict-aliasing",
    "-fomit-frame-pointer", "-fno-inline", "-finline-functions", "-finline-limit=",
    "-falign-loops=", "-falign-functions=", "-fno-semantic-interposition", "-fopenmp",
    "-fopenmp-simd", "-march=native", "-march=x86-64", "-march=x86-64-v2", "-march=x86-64-v3",
    "-march=x86-64-v4", "-mtune=native", "-mcpu=native", "-msse4.1", "-msse4.2", "-mavx", "-mavx2",
    "-mfma", "-mf16c", "-mbmi", "-mbmi2", "-mavx512*", "-mavxvnni", "-mamx-tile", "-mamx-bf16",
    "-mamx-int8", "-mprefer-vector-width=", "-mno-avx", "-mno-avx2", "-mno-avx512f", "-mno-fma",
    NULL};
// clang-format on

// clang-format off
static const char *const c_types[KL_DTYPE_END] = {
    [KL_F64] = "double", [KL_F32] = "float", [KL_F16] = "_Float16", [KL_BF16] = "unsigned short",
    [KL_F8E4M3] = "unsigned char", [KL_F8E5M2] = "unsigned char", [KL_I64] = "long",
    [KL_I32] = "int", [KL_I16] = "short", [KL_I8] = "signed char", [KL_U8] = "unsigned char",
    [KL_BOOL] = "unsigned char"};
// clang-format on

static kl_str c_missing(kl_arena *a) {
    if (kli_fs_find_program(a, kli_cc()).len) return (kl_str){0};
    return kl_arena_printf(
        a, "%s was not found: apt-get install gcc libc6-dev, or name a C compiler in KLINEAGE_CC",
        kli_cc());
}

const kl_surface kli_surface_c = {
    .name = "c",
    .families = KL_FAMILY_CPU | KL_FAMILY_C,
    .on = KL_ON_CPU,
    .assurance = 'B',
    .suffix = ".c",
    .comment = "//!",
    .naive = "naive.c",
    .oracle = "oracle.c",
    .directives = (const char *const[]){"threads", NULL},
    .clauses = (const char *const[]){"args", NULL},
    .required = (const char *const[]){NULL},
    .example = "args(A, B, C, M, N)",
    .flags = c_flags,
    .types = c_types,
    .fences = (const char *const[]){"c", "C", "c11", "c17", "h", NULL},
    .note = "- `threads EXPRESSION` lets the launched function use so many cores (OpenMP); without "
            "it there is one.\n",
    .backends = (const char *const[]){"cpu", NULL},
    .missing = c_missing,
    .compile = kli_c_compile,
    .build_flags = kli_c_build_flags,
    .inspect = kli_c_inspect,
};
