/* compare_text.h - the kernel that compares, compiled as C, as draw_text.h does it for the one that
 * draws.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_TEST_COMPARE_TEXT_H
#define KL_TEST_COMPARE_TEXT_H
#include "draw_text.h"

#define __global__ static
#define __launch_bounds__(threads)
#include "backend/compare.cu"
#undef __global__
#undef __launch_bounds__

static inline void compare_text_run(kli_compare_job job, const unsigned *grid,
                                    const unsigned *block) {
    gridDim = (draw_text_place){grid[0], grid[1], grid[2]};
    blockDim = (draw_text_place){block[0], block[1], block[2]};
    for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < block[0]; threadIdx.x++) kl_compare(job);
}

#endif
