/* backends.c - the gate's table of backends; runners.c has the other half of each row, for the
 * worker.
 *
 * A new backend is one row here, one row there and the files behind them.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "backend/backend.h"

#include <string.h>

static const kl_backend BACKENDS_ROWS[] = {
    {.id = KL_BACKEND_CPU,
     .name = "cpu",
     .on = KL_ON_CPU,
     .probe_verb = "cpu",
     .shared_memory = true,
     .parent_clock = true},
    {.id = KL_BACKEND_OPENCL,
     .name = "opencl",
     .on = KL_ON_CPU,
     .probe_verb = "opencl",
     .shared_memory = true,
     .parent_clock = true},
    {.id = KL_BACKEND_CUDA, .name = "cuda", .on = KL_ON_GPU, .probe_verb = "cuda"},
};

const kl_backend *kli_backend_each(int i) {
    return i >= 0 && i < (int)KL_COUNT(BACKENDS_ROWS) ? &BACKENDS_ROWS[i] : NULL;
}

const kl_backend *kli_backend_get(kl_backend_id id) {
    for (size_t i = 0; i < KL_COUNT(BACKENDS_ROWS); i++)
        if (BACKENDS_ROWS[i].id == id) return &BACKENDS_ROWS[i];
    return NULL;
}

const kl_backend *kli_backend_of_surface(const kl_surface *s, int i) {
    for (int n = 0; s->backends[n]; n++)
        for (size_t row = 0; n == i && row < KL_COUNT(BACKENDS_ROWS); row++)
            if (strcmp(BACKENDS_ROWS[row].name, s->backends[n]) == 0) return &BACKENDS_ROWS[row];
    return NULL;
}
