/* draw_text.h - the kernel that draws, compiled as C: its text, thread after thread on the host.
 * KL_DRAW_PTX_AS_C names the C that ptx_as_c.py made of draw.ptx, to be run in place of draw.cu.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_TEST_DRAW_TEXT_H
#define KL_TEST_DRAW_TEXT_H

typedef struct {
    unsigned x, y, z;
} draw_text_place;
static draw_text_place threadIdx, blockIdx, blockDim, gridDim;

#ifdef KL_DRAW_PTX_AS_C
#include "base/draw.h"
#include KL_DRAW_PTX_AS_C
#else
#define __global__ static
#define __launch_bounds__(threads)
#include "backend/draw.cu"
#undef __global__
#undef __launch_bounds__
#endif

static inline void draw_text_run(const kli_draw_job *jobs, const unsigned *grid,
                                 const unsigned *block) {
    gridDim = (draw_text_place){grid[0], grid[1], grid[2]};
    blockDim = (draw_text_place){block[0], block[1], block[2]};
    for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < block[0]; threadIdx.x++) kl_draw(jobs);
}

#endif
