/* surface.c - TileLang: tiles in Python, lowered to CUDA C++; T.Kernel in the source states grid
 * and threads.
 *
 * Files parse and plan; nothing compiles them yet, so no back end is named and everybody says so.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel.h"

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
    .example = "args(A, B, C, M, N)",
    .flags = (const char *const[]){NULL},
    .fences = (const char *const[]){"python", "py", "python3", "tilelang", NULL},
    .note = "",
    .backends = (const char *const[]){NULL},
};
