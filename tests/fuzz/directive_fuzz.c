/* directive_fuzz.c - any bytes as a kernel of each surface: parse, plan for a small task, make
 * defines, diff.
 *
 * What must hold besides "no crash": a failure has a code and a message, a plan stays inside its
 * bounds, and the same text parsed twice is the same kernel.  SPDX-License-Identifier: Apache-2.0
 */
#include "kernel/fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_plan(const kl_plan *p, const kl_kernel *k) {
    KL_ASSERT(p->n_launches == (uint32_t)k->n_launches && p->n_launches <= KL_MAX_LAUNCHES);
    KL_ASSERT(p->n_buffers <= KL_MAX_BUFFERS && p->n_tensormaps <= KL_MAX_TENSORMAPS);
    for (uint32_t i = 0; i < p->n_buffers; i++)
        KL_ASSERT(p->buffers[i].bytes > 0 && p->buffers[i].bytes <= KL_MAX_TENSOR_BYTES);
    for (uint32_t i = 0; i < p->n_tensormaps; i++) {
        const kl_plan_tensormap *m = &p->tensormaps[i];
        KL_ASSERT(m->rank >= 1 && m->rank <= 5);
        KL_ASSERT(m->index < (m->of_buffer ? p->n_buffers : p->n_tensors));
    }
    for (uint32_t i = 0; i < p->n_launches; i++) {
        const kl_plan_launch *l = &p->launches[i];
        KL_ASSERT(l->n_args <= KL_MAX_ARGS && l->grid[0] && l->grid[1] && l->grid[2]);
        const kl_value *args = kli_launch_args(p, l);
        for (uint32_t j = 0; j < l->n_args; j++)
            KL_ASSERT(args[j].kind <= KL_VALUE_SCALAR && args[j].index < KL_MAX_TENSORS);
    }
}

static void try_surface(kl_arena *a, kl_str text, const kl_surface *surface, const kl_fixture *f) {
    static const kl_device_limits limits = {
        .sms = 132, .cores = 2, .smem_max = 232448, .max_threads = 1024, .memory = 1 << 30};
    kl_error e = {0};
    kl_kernel *k, *again;
    kl_kernel_opts o = {.oracle = text.len % 2 != 0};
    kl_plan *plan = KL_NEW(a, kl_plan);
    kl_err err = kl_kernel_parse(&k, a, text, KL_S("fuzz"), surface, &o, &e);
    KL_ASSERT((err == KL_OK) == (e.code == KL_OK) && (err == KL_OK || e.message[0]));
    if (err) return;
    err = kl_kernel_parse(&again, a, text, KL_S("fuzz"), surface, &o, &e);
    KL_ASSERT(err == KL_OK && kl_str_eq(kl_str_of(k->hash), kl_str_of(again->hash)));
    KL_ASSERT(kl_kernel_diff(a, k, again).len == 0);
    KL_ASSERT(kli_kernel_defines(a, k, &f->task, &f->workload)[0]);
    err = kli_kernel_plan(plan, k, &f->task, &f->workload, &limits, &e);
    KL_ASSERT(err == KL_OK || (e.code == err && e.message[0]));
    if (!err) check_plan(plan, k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static kl_fixture fixture;
    kl_arena *a = kl_arena_new();
    fixture_init(&fixture, 128, 256);
    for (int i = 0; kl_surface_each(i); i++)
        try_surface(a, (kl_str){(const char *)data, size}, kl_surface_each(i), &fixture);
    kl_arena_free(a);
    return 0;
}
