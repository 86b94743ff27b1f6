/* draw.cu - the runner's kernel that draws input sets: one row of the grid for each tensor of each
 * set, its threads stride over the elements.
 *
 * draw.ptx is what `tools/device-ptx` makes of it; the worker carries that text, so that it needs no
 * compiler.  The tests compile this file as C, and the fake device runs it.  The keys come in by
 * memory that the host wipes afterwards, not as parameters, which a driver keeps; they are in
 * registers alone, never in local memory.  SPDX-License-Identifier: Apache-2.0 */
#include "base/draw.h"

#ifdef __cplusplus
extern "C"
#endif
__global__ void __launch_bounds__(256) kl_draw(const kli_draw_job *jobs) {
    const kli_draw_job job = jobs[blockIdx.y];
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.draw.elems;
         i += stride)
        kli_draw_put(&job.draw, (void *)job.data, i);
}
