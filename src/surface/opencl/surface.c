/* surface.c - OpenCL C, built by the device's own driver in a confined worker.
 *
 * The type names hold no space, because clBuildProgram splits its options at spaces.  On a CPU a
 * program is native code, so its assurance there is that of the sandbox.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "opencl.h"

#include "kernel/launch.h"

// clang-format off
static const char *const opencl_flags[] = {
    "-cl-std=CL1.1", "-cl-std=CL1.2", "-cl-std=CL2.0", "-cl-std=CL3.0", "-cl-fast-relaxed-math",
    "-cl-mad-enable", "-cl-unsafe-math-optimizations", "-cl-finite-math-only",
    "-cl-no-signed-zeros", "-cl-denorms-are-zero", "-cl-single-precision-constant",
    "-cl-fp32-correctly-rounded-divide-sqrt", "-cl-uniform-work-group-size", "-cl-strict-aliasing",
    "-cl-opt-disable", NULL};
// clang-format on

// clang-format off
static const char *const opencl_types[KL_DTYPE_END] = {
    [KL_F64] = "double", [KL_F32] = "float", [KL_F16] = "half", [KL_BF16] = "ushort",
    [KL_F8E4M3] = "uchar", [KL_F8E5M2] = "uchar", [KL_I64] = "long", [KL_I32] = "int",
    [KL_I16] = "short", [KL_I8] = "char", [KL_U8] = "uchar", [KL_BOOL] = "uchar"};
// clang-format on

/* `grid` is the global size, `block` the local size (0: the driver chooses). */
static kl_err opencl_shape(kli_planner *p, const kl_launch *l, kl_plan_launch *out) {
    static const int64_t any_size[3] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    const int n_local = l->n_clauses[KL_CLAUSE_LOCAL], n_global = l->n_clauses[KL_CLAUSE_GLOBAL];
    if (n_local && n_local != n_global)
        return kli_plan_fail(p, KL_EINVAL, l->clauses[KL_CLAUSE_LOCAL][0].offset,
                             "local has %d dimension%s, global has %d", n_local,
                             n_local == 1 ? "" : "s", n_global);
    kl_err err = kli_plan_sizes(p, l, KL_CLAUSE_GLOBAL, "global", any_size, 1, out->grid);
    if (!err)
        err = kli_plan_sizes(p, l, KL_CLAUSE_LOCAL, "local", any_size, n_local ? 1 : 0, out->block);
    if (!err && n_local)
        err = kli_plan_threads(p, l, KL_CLAUSE_LOCAL, out->block, kli_plan_limits(p)->max_threads,
                               "a work-group", "threads");
    if (!err && n_local)
        err = kli_plan_divides(p, l, KL_CLAUSE_LOCAL, out->grid, out->block, "global", "local");
    for (int d = 0; d < 3; d++) out->cluster[d] = 1;
    return err;
}

const kl_surface kli_surface_opencl = {
    .name = "opencl",
    .families = KL_FAMILY_GRID | KL_FAMILY_OPENCL,
    .on = KL_ON_CPU,
    .assurance = 'A',
    .suffix = ".cl",
    .comment = "//!",
    .naive = "naive.cl",
    .directives = (const char *const[]){NULL},
    .clauses = (const char *const[]){"global", "local", "args", NULL},
    .required = (const char *const[]){"global", NULL},
    .local_args = true,
    .example = "global(cdiv(N, 64) * 64) local(64) args(A, B, C, M, N)",
    .flags = opencl_flags,
    .types = opencl_types,
    .shape = opencl_shape,
    .fences = (const char *const[]){"opencl", "cl", "ocl", "c", "opencl-c", "OpenCL", NULL},
    .note = "",
    .backends = (const char *const[]){"opencl", NULL},
    .compile = kli_opencl_compile,
    .inspect = kli_opencl_inspect,
};
