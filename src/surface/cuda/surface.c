/* surface.c - CUDA C++, device code alone, compiled to a cubin by NVRTC or nvcc.
 *
 * Nothing of a source is ever host code, so a kernel can touch nothing but its device: assurance A.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda.h"

#include "backend/cuda_toolkit.h"
#include "kernel/launch.h"

/* -Xptxas is spelled out: its value is a comma list that could smuggle any other option. */
// clang-format off
static const char *const cuda_flags[] = {
    "-O0", "-O1", "-O2", "-O3", "-std=c++14", "-std=c++17", "-std=c++20", "--std=c++14",
    "--std=c++17", "--std=c++20", "--use_fast_math", "-use_fast_math", "--fmad=", "-fmad=",
    "--ftz=", "-ftz=", "--prec-div=", "-prec-div=", "--prec-sqrt=", "-prec-sqrt=",
    "--maxrregcount=", "-maxrregcount=", "--restrict", "-restrict", "--extra-device-vectorization",
    "-extra-device-vectorization", "--expt-relaxed-constexpr", "-expt-relaxed-constexpr",
    "--extended-lambda", "-extended-lambda", "--expt-extended-lambda", "-Xptxas=-O0",
    "-Xptxas=-O1", "-Xptxas=-O2", "-Xptxas=-O3", "-Xptxas=-v", "-Xptxas=-dlcm=ca",
    "-Xptxas=-dlcm=cg", NULL};
// clang-format on

// clang-format off
static const char *const cuda_types[KL_DTYPE_END] = {
    [KL_F64] = "double", [KL_F32] = "float", [KL_F16] = "__half", [KL_BF16] = "__nv_bfloat16",
    [KL_F8E4M3] = "__nv_fp8_e4m3", [KL_F8E5M2] = "__nv_fp8_e5m2", [KL_I64] = "long long",
    [KL_I32] = "int", [KL_I16] = "short", [KL_I8] = "signed char", [KL_U8] = "unsigned char",
    [KL_BOOL] = "bool"};
// clang-format on

static const char cuda_note[] =
    "- `tensormap NAME: TENSOR box(INNER, OUTER) swizzle(128)` makes a TMA descriptor of a tensor "
    "or buffer; NAME in `args` is passed by value, to a parameter `const __grid_constant__ "
    "CUtensorMap`. Innermost dimension first; a box is at most 256 a side, its rows are multiples "
    "of 16 bytes and no wider than the swizzle (0, 32, 64 or 128). By default the tensor has its "
    "outermost dimensions multiplied until there are as many as the box has; `dims(...)` and "
    "`strides(...)` in elements say otherwise, `l2(...)` promotes.\n"
    "- A kernel that a launch names is declared `extern \"C\" __global__`. `smem(BYTES)` is its "
    "dynamic shared memory, `cluster(N)` its cluster.\n";

static kl_err cuda_shape(kli_planner *p, const kl_launch *l, kl_plan_launch *out) {
    static const int64_t block_most[3] = {1024, 1024, 64}, cluster_most[3] = {16, 16, 16};
    const kl_device_limits *limits = kli_plan_limits(p);
    const int64_t smem_most = limits->smem_max ? limits->smem_max : 1 << 20;
    const int64_t threads_most = limits->max_threads ? limits->max_threads : 1024;
    kl_err err = kli_plan_sizes(p, l, KL_CLAUSE_GRID, "grid", kli_cuda_grid_most, 1, out->grid);
    if (!err) err = kli_plan_sizes(p, l, KL_CLAUSE_BLOCK, "block", block_most, 1, out->block);
    if (!err)
        err = kli_plan_sizes(p, l, KL_CLAUSE_CLUSTER, "cluster", cluster_most, 1, out->cluster);
    if (!err)
        err = kli_plan_one(p, l, KL_CLAUSE_SMEM, "dynamic shared memory", 0, smem_most, 0,
                           &out->smem);
    if (!err)
        err =
            kli_plan_threads(p, l, KL_CLAUSE_BLOCK, out->block, threads_most, "a block", "threads");
    if (!err)
        err = kli_plan_threads(p, l, KL_CLAUSE_CLUSTER, out->cluster, 16, "a cluster", "blocks");
    if (!err)
        err = kli_plan_divides(p, l, KL_CLAUSE_CLUSTER, out->grid, out->cluster, "grid", "cluster");
    return err;
}

static kl_str cuda_missing(kl_arena *a) {
    kli_cuda_toolkit toolkit;
    kli_cuda_toolkit_find(&toolkit, a);
    if (toolkit.nvcc.len || toolkit.include.len) return (kl_str){0};
    return KL_S("neither nvcc nor NVRTC with its headers: install CUDA 12.4 or newer, or set "
                "CUDA_HOME to its folder");
}

const kl_surface kli_surface_cuda = {
    .name = "cuda",
    .families = KL_FAMILY_GRID | KL_FAMILY_NVIDIA | KL_FAMILY_CUDA,
    .on = KL_ON_GPU,
    .assurance = 'A',
    .suffix = ".cu",
    .comment = "//!",
    .naive = "naive.cu",
    .oracle = "oracle.cu",
    .directives = (const char *const[]){"tensormap", "cubin", NULL},
    .clauses = (const char *const[]){"grid", "block", "cluster", "smem", "args", NULL},
    .required = (const char *const[]){"grid", "block", NULL},
    .example = "grid(cdiv(N, 256)) block(256) args(A, B, C, M, N)",
    .flags = cuda_flags,
    .types = cuda_types,
    .shape = cuda_shape,
    .fences = (const char *const[]){"cuda", "cu", "cpp", "c++", "CUDA", NULL},
    .note = cuda_note,
    .backends = (const char *const[]){"cuda", NULL},
    .missing = cuda_missing,
    .compile = kli_cuda_compile,
    .inspect = kli_cuda_inspect,
    .describe = kli_cuda_describe,
};
