/* surface.c - Triton: tiles in Python, compiled to a cubin.
 *
 * Files parse and plan; nothing compiles them yet, so no back end is named and everybody says so.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/launch.h"

enum { WARP = 32 };

static kl_err triton_shape(kli_planner *p, const kl_launch *l, kl_plan_launch *out) {
    kl_err err = kli_plan_sizes(p, l, KL_CLAUSE_GRID, "grid", kli_cuda_grid_most, 1, out->grid);
    if (!err) err = kli_plan_one(p, l, KL_CLAUSE_WARPS, "warps", 1, 32, 4, &out->warps);
    if (!err) err = kli_plan_one(p, l, KL_CLAUSE_STAGES, "stages", 1, 16, 3, &out->stages);
    if (!err && (out->warps & (out->warps - 1)))
        err = kli_plan_fail(p, KL_EINVAL, l->clauses[KL_CLAUSE_WARPS][0].offset,
                            "warps is %u; it must be a power of two", out->warps);
    for (int d = 0; d < 3; d++) out->block[d] = out->cluster[d] = 1;
    out->block[0] = out->warps * WARP;
    return err;
}

const kl_surface kli_surface_triton = {
    .name = "triton",
    .families = KL_FAMILY_GRID | KL_FAMILY_NVIDIA | KL_FAMILY_PYTHON | KL_FAMILY_TRITON,
    .on = KL_ON_GPU,
    .assurance = 'A',
    .suffix = ".py",
    .comment = "#!",
    .naive = "naive.triton.py",
    .directives = (const char *const[]){NULL},
    .clauses = (const char *const[]){"grid", "warps", "stages", "args", NULL},
    .required = (const char *const[]){"grid", NULL},
    .example = "grid(cdiv(N, 256)) warps(4) stages(3) args(A, B, C, M, N)",
    .flags = (const char *const[]){NULL},
    .shape = triton_shape,
    .fences = (const char *const[]){"python", "py", "python3", "triton", NULL},
    .note = "",
    .backends = (const char *const[]){NULL},
};
