/* surface.c - Triton: tiles in Python, compiled to a cubin by the installed package.
 *
 * Of a file's Python only the functions of kernels are read, and their text is translated, never
 * run on the host by us: assurance A, since only device code is launched.
 * SPDX-License-Identifier: Apache-2.0 */
#include "triton.h"

#include "kernel/launch.h"
#include "surface/cuda/cuda.h"

enum { WARP = 32 };

static kl_err triton_shape(kli_planner *p, const kl_launch *l, kl_plan_launch *out) {
    kl_err err = kli_plan_sizes(p, l, KL_CLAUSE_GRID, "grid", kli_cuda_grid_most, 1, out->grid);
    if (!err) err = kli_plan_one(p, l, KL_CLAUSE_WARPS, "warps", 1, 32, 4, &out->warps);
    if (!err) err = kli_plan_one(p, l, KL_CLAUSE_STAGES, "stages", 1, 16, 3, &out->stages);
    if (!err && (out->warps & (out->warps - 1)))
        err = kli_plan_fail(p, KL_EINVAL, l->clauses[KL_CLAUSE_WARPS][0].offset,
                            "warps is %u; it must be a power of two", out->warps);
    for (int d = 0; d < 3; d++) out->block[d] = out->cluster[d] = 1;
    if (!err) err = kli_plan_one(p, l, KL_CLAUSE_CTAS, "ctas", 1, 16, 1, &out->cluster[0]);
    if (!err) err = kli_plan_one(p, l, KL_CLAUSE_MAXNREG, "maxnreg", 24, 255, 0, &out->registers);
    out->block[0] = out->warps * WARP; /* until the compiler says how many it made of them */
    return err;
}

static const char triton_note[] =
    "- `args` fills the parameters that are no `tl.constexpr`, in their order; `NAME=value` fills "
    "one by its name, a constexpr too: an integer expression, f32(x), dtype(TENSOR), None, True, "
    "False or 'text'. A constexpr that is called like a param or a constant axis takes its value "
    "unasked.\n"
    "- `grid` counts programs, `warps(4) stages(3) ctas(1) maxnreg(168)` are Triton's options.\n"
    "- `tensormap NAME: TENSOR box(INNER, OUTER)` makes a host-side tensor descriptor; the "
    "compiler "
    "chooses its swizzle.\n"
    "- Only imports of triton, constants and `@triton.jit` functions are read of a file.\n";

static kl_str triton_missing(kl_arena *a) {
    (void)a;
    return kli_triton_toolkit_find()->front.package->missing;
}

const kl_surface kli_surface_triton = {
    .name = "triton",
    .families = KL_FAMILY_GRID | KL_FAMILY_NVIDIA | KL_FAMILY_PYTHON | KL_FAMILY_TRITON,
    .on = KL_ON_GPU,
    .assurance = 'A',
    .suffix = ".py",
    .comment = "#!",
    .naive = "naive.triton.py",
    .directives = (const char *const[]){"tensormap", NULL},
    .clauses = (const char *const[]){"grid", "warps", "stages", "ctas", "maxnreg", "args", NULL},
    .required = (const char *const[]){"grid", NULL},
    .example = "grid(cdiv(N, 256)) warps(4) stages(3) args(A, B, C, M, N)",
    .named_args = true,
    .flags = (const char *const[]){NULL},
    .shape = triton_shape,
    .fences = (const char *const[]){"python", "py", "python3", "triton", NULL},
    .note = triton_note,
    .backends = (const char *const[]){"cuda", NULL},
    .missing = triton_missing,
    .toolchain = kli_triton_toolchain,
    .specialize = kli_python_specialize,
    .compile = kli_triton_compile,
    .inspect = kli_cuda_inspect,
    .describe = kli_cuda_describe,
};
