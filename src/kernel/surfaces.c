/* surfaces.c - the kernel languages, one row each; the only table of them.
 *
 * A row says how a file is recognised, which launch clauses make sense and which compile flags a candidate may ask for.
 * Flags are an allow-list because a flag can name a file, load a plugin or switch off what the gate relies on; nothing
 * here can carry a path.  How a surface is compiled and run is not here: back ends own that.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include <string.h>

// clang-format off
static const char *const c_flags[] = {
    "-O0", "-O1", "-O2", "-O3", "-Os", "-Ofast", "-std=c11", "-std=c17", "-std=gnu11", "-std=gnu17", "-ffast-math",
    "-funsafe-math-optimizations", "-fassociative-math", "-freciprocal-math", "-ffinite-math-only", "-fno-math-errno",
    "-fno-trapping-math", "-fno-signed-zeros", "-ffp-contract=", "-funroll-loops", "-funroll-all-loops",
    "-fno-unroll-loops", "-floop-nest-optimize", "-fprefetch-loop-arrays", "-ftree-vectorize", "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize", "-fno-tree-loop-vectorize", "-fvect-cost-model=", "-fsimd-cost-model=",
    "-fstrict-aliasing", "-fno-strict-aliasing", "-fomit-frame-pointer", "-fno-inline", "-finline-functions",
    "-finline-limit=", "-falign-loops=", "-falign-functions=", "-fno-semantic-interposition", "-fopenmp",
    "-fopenmp-simd", "-march=native", "-march=x86-64", "-march=x86-64-v2", "-march=x86-64-v3", "-march=x86-64-v4",
    "-mtune=native", "-mcpu=native", "-msse4.1", "-msse4.2", "-mavx", "-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2",
    "-mavx512*", "-mavxvnni", "-mamx-tile", "-mamx-bf16", "-mamx-int8", "-mprefer-vector-width=", "-mno-avx",
    "-mno-avx2", "-mno-avx512f", "-mno-fma", NULL};

static const char *const opencl_flags[] = {
    "-cl-std=CL1.1", "-cl-std=CL1.2", "-cl-std=CL2.0", "-cl-std=CL3.0", "-cl-fast-relaxed-math", "-cl-mad-enable",
    "-cl-unsafe-math-optimizations", "-cl-finite-math-only", "-cl-no-signed-zeros", "-cl-denorms-are-zero",
    "-cl-single-precision-constant", "-cl-fp32-correctly-rounded-divide-sqrt", "-cl-uniform-work-group-size",
    "-cl-strict-aliasing", "-cl-opt-disable", NULL};

/* -Xptxas is spelled out: its value is a comma list that could smuggle any option of the assembler. */
static const char *const cuda_flags[] = {
    "-O0", "-O1", "-O2", "-O3", "-std=c++14", "-std=c++17", "-std=c++20", "--std=c++14", "--std=c++17", "--std=c++20",
    "--use_fast_math", "-use_fast_math", "--fmad=", "-fmad=", "--ftz=", "-ftz=", "--prec-div=", "-prec-div=",
    "--prec-sqrt=", "-prec-sqrt=", "--maxrregcount=", "-maxrregcount=", "--restrict", "-restrict",
    "--extra-device-vectorization", "-extra-device-vectorization", "--expt-relaxed-constexpr",
    "-expt-relaxed-constexpr", "--extended-lambda", "-extended-lambda", "--expt-extended-lambda", "-Xptxas=-O0",
    "-Xptxas=-O1", "-Xptxas=-O2", "-Xptxas=-O3", "-Xptxas=-v", "-Xptxas=-dlcm=ca", "-Xptxas=-dlcm=cg", NULL};
// clang-format on

static const char *const no_flags[] = {NULL};

static const char *const c_clauses[] = {"args", NULL};
static const char *const opencl_clauses[] = {"global", "local", "args", NULL};
static const char *const cuda_clauses[] = {"grid", "block", "cluster", "smem", "args", NULL};
static const char *const triton_clauses[] = {"grid", "warps", "stages", "args", NULL};
static const char *const tilelang_clauses[] = {"args", NULL}; /* T.Kernel in the source states grid and threads */

static const kl_surface surfaces[] = {
    {KL_SURFACE_C, "c", ".c", "//!", KL_ON_CPU, 'B', c_flags, c_clauses},
    {KL_SURFACE_OPENCL, "opencl", ".cl", "//!", KL_ON_CPU, 'A', opencl_flags, opencl_clauses},
    {KL_SURFACE_CUDA, "cuda", ".cu", "//!", KL_ON_GPU, 'A', cuda_flags, cuda_clauses},
    {KL_SURFACE_TRITON, "triton", ".py", "#!", KL_ON_GPU, 'A', no_flags, triton_clauses},
    {KL_SURFACE_TILELANG, "tilelang", ".py", "#!", KL_ON_GPU, 'A', no_flags, tilelang_clauses},
};

const kl_surface *kl_surface_each(int i)
{
    return i >= 0 && (size_t)i < KL_COUNT(surfaces) ? &surfaces[i] : NULL;
}

const kl_surface *kl_surface_get(kl_surface_id id)
{
    for (size_t i = 0; i < KL_COUNT(surfaces); i++)
        if (surfaces[i].id == id) return &surfaces[i];
    return NULL;
}

const kl_surface *kl_surface_by_name(kl_str name)
{
    for (size_t i = 0; i < KL_COUNT(surfaces); i++)
        if (kl_str_eq(name, kl_str_of(surfaces[i].name))) return &surfaces[i];
    return NULL;
}

const kl_surface *kl_surface_of_path(kl_str path)
{
    for (size_t i = 0; i < KL_COUNT(surfaces); i++)
        if (kl_str_ends(path, kl_str_of(surfaces[i].suffix))) return &surfaces[i];
    return NULL;
}

/* What may stand behind "-ffp-contract=" or "-mavx512": no slash, no comma, no quote. */
static bool plain_suffix(kl_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!kli_is_name_part(s.ptr[i]) && s.ptr[i] != '-' && s.ptr[i] != '.') return false;
    return s.len > 0 && s.len <= 24;
}

static bool flag_fits(const char *allowed, kl_str flag)
{
    size_t n = strlen(allowed);
    kl_str whole = {allowed, n};
    if (allowed[n - 1] != '=' && allowed[n - 1] != '*') return kl_str_eq(flag, whole);
    kl_str stem = {allowed, allowed[n - 1] == '*' ? n - 1 : n};
    return kl_str_starts(flag, stem) && plain_suffix((kl_str){flag.ptr + stem.len, flag.len - stem.len});
}

bool kli_flag_allowed(const kl_surface *surface, kl_str flag)
{
    for (const char *const *allowed = surface->flags; *allowed; allowed++)
        if (flag_fits(*allowed, flag)) return true;
    return false;
}

bool kli_clause_allowed(const kl_surface *surface, const char *clause)
{
    for (const char *const *known = surface->clauses; *known; known++)
        if (strcmp(*known, clause) == 0) return true;
    return false;
}
