/* surface.c - TileLang: tiles in Python, lowered to CUDA C++ by the installed package and compiled
 * as that; T.Kernel in the source states grid and threads.
 *
 * The Python that builds a kernel runs confined, and only device code is launched: assurance A.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tilelang.h"

#include "backend/cuda_toolkit.h"
#include "surface/cuda/cuda.h"

/* Pass configurations.  Not here: what writes files, names compilers' options, adds passes, or
 * switches off what keeps a kernel inside its memory and its threads in step. */
static const char *const tilelang_flags[] = {"-tl.enable_fast_math",
                                             "-tl.disable_tma_lower",
                                             "-tl.disable_warp_specialized",
                                             "-tl.disable_wgmma",
                                             "-tl.disable_vectorize_256",
                                             "-tl.disable_shuffle_elect",
                                             "-tl.disable_loop_unswitching",
                                             "-tl.disable_shared_memory_reuse",
                                             "-tl.enable_aggressive_shared_memory_merge",
                                             "-tl.enable_async_copy",
                                             "-tl.enable_lower_ldgstg",
                                             "-tl.enable_lower_ldgstg_predicated",
                                             "-tl.config_index_bitwidth=32",
                                             "-tl.config_index_bitwidth=64",
                                             NULL};

static const char tilelang_note[] =
    "- A launch names a function that returns a `T.prim_func`. `args` fills the prim_func's "
    "parameters in their order; `NAME=value` fills a parameter of the function that builds it: an "
    "integer expression, f32(x), dtype(TENSOR), None, True, False or 'text'. One that is called "
    "like a param or a constant axis takes its value unasked.\n"
    "- `T.Kernel` states grid and threads; they, shared memory and descriptors are read from what "
    "was lowered. A size that is given to the builder is compiled in; `M = T.dynamic(\"M\")`, "
    "called like an axis, leaves it to the launch.\n"
    "- The compiler masks what reaches past a tensor as it is declared. A fragment that it finds "
    "no "
    "layout for has an extent that the threads do not divide: take a power of two and mask with "
    "`T.if_then_else`.\n"
    "- Scratch is a `buffer` line, passed like a tensor. Text of other languages "
    "(`T.import_source`, `T.call_extern`, a prelude), raw addresses, `T.sync_grid` and "
    "`T.alloc_global` are refused.\n"
    "- Only imports of tilelang and math, constants and functions are read of a file; decorators "
    "other than `T.prim_func` and `T.macro` are left out. Pass configurations are flags: `flags "
    "-tl.disable_warp_specialized`.\n";

static kl_str tilelang_missing(kl_arena *a) {
    kli_cuda_toolkit toolkit;
    kli_cuda_toolkit_find(&toolkit, a);
    if (!toolkit.nvcc.len && !toolkit.include.len) return kli_surface_cuda.missing(a);
    return kli_tilelang_front()->package->missing;
}

const kl_surface kli_surface_tilelang = {
    .name = "tilelang",
    .families = KL_FAMILY_GRID | KL_FAMILY_NVIDIA | KL_FAMILY_PYTHON | KL_FAMILY_TILELANG,
    .on = KL_ON_GPU,
    .assurance = 'A',
    .suffix = ".py",
    .comment = "#!",
    .naive = "naive.tilelang.py",
    .directives = (const char *const[]){NULL},
    .clauses = (const char *const[]){"args", NULL},
    .required = (const char *const[]){NULL},
    .example = "args(A, B, C, M=M, N=N)",
    .named_args = true,
    .flags = tilelang_flags,
    .fences = (const char *const[]){"python", "py", "python3", "tilelang", NULL},
    .note = tilelang_note,
    .backends = (const char *const[]){"cuda", NULL},
    .missing = tilelang_missing,
    .toolchain = kli_tilelang_toolchain,
    .specialize = kli_python_specialize,
    .compile = kli_tilelang_compile,
    .inspect = kli_cuda_inspect,
    .describe = kli_cuda_describe,
};
