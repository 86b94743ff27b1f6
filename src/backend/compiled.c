/* compiled.c - what a compiler made of a kernel, for who wants to read it: out of the cache where
 * the gate compiled it before.  SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"
#include <string.h>

enum {
    WARP = 32,
    REGISTERS = 65536, /* of a multiprocessor, on every architecture of the table */
    REGISTERS_AT_ONCE = 256,
    SMEM_OF_SYSTEM = 1024, /* of each block */
    SMEM_AT_ONCE = 128
};

/* What a multiprocessor holds at once. */
typedef struct {
    const char *arch;
    int warps, blocks, smem_kib;
} multiprocessor;

static const multiprocessor MULTIPROCESSORS[] = {
    {"sm_75", 32, 16, 64},  {"sm_80", 64, 32, 164},  {"sm_86", 48, 16, 100}, {"sm_89", 48, 24, 100},
    {"sm_90", 64, 32, 228}, {"sm_100", 64, 32, 228}, {"sm_120", 48, 24, 100}};

/* NULL where the table does not have it. */
static const multiprocessor *multiprocessor_of(kl_str arch) {
    for (size_t i = 0; i < KL_COUNT(MULTIPROCESSORS); i++)
        if (kl_str_starts(arch, kl_str_of(MULTIPROCESSORS[i].arch))) return &MULTIPROCESSORS[i];
    return NULL;
}

int64_t kli_arch_smem_max(kl_str arch) {
    const multiprocessor *m = multiprocessor_of(arch);
    if (!m) return 0;
    const int64_t all = (int64_t)m->smem_kib << 10;
    return m->warps == 32 ? all : all - SMEM_OF_SYSTEM; /* sm_75 keeps nothing back */
}

/* ---- occupancy --------------------------------------------------------------------------- */

static int rounded_up(int n, int step) { return (n + step - 1) / step * step; }

/* Blocks of `warps` warps that fit a multiprocessor at once, and what they run out of first. */
static int resident_blocks(const char **limit, const multiprocessor *m, int warps, int registers,
                           int smem) {
    const int by_registers = REGISTERS / (rounded_up(registers * WARP, REGISTERS_AT_ONCE) * warps),
              by_smem = (m->smem_kib << 10) / rounded_up(smem + SMEM_OF_SYSTEM, SMEM_AT_ONCE),
              by_warps = m->warps / warps;
    int least = m->blocks;
    KL_ASSERT(warps > 0 && registers > 0 && smem >= 0);
    *limit = "the number of blocks";
    if (by_warps < least) least = by_warps, *limit = "warps";
    if (by_smem < least) least = by_smem, *limit = "shared memory";
    if (by_registers < least) least = by_registers, *limit = "registers";
    return least;
}

static void add_launch(kl_buf *b, const kl_plan_launch *l, const multiprocessor *m, int registers,
                       int static_smem) {
    const char *limit;
    const int64_t threads = (int64_t)l->block[0] * l->block[1] * l->block[2];
    const int warps = (int)((threads + WARP - 1) / WARP), smem = static_smem + (int)l->smem;
    if (warps < 1 || warps > m->warps || smem > m->smem_kib << 10) return; /* the gate refuses it */
    const int blocks = resident_blocks(&limit, m, warps, registers, smem);
    kl_buf_printf(b,
                  "launch `%s`: %d blocks of %lld threads and %d bytes of shared memory fit a "
                  "multiprocessor, %d of %d warps (occupancy %.0f %%), limited by %s\n",
                  l->entry, blocks, (long long)threads, smem, blocks * warps, m->warps,
                  100.0 * blocks * warps / m->warps, limit);
}

/* The compiler reports the most of all kernels, so a launch may do better than this. */
static void add_occupancy(kl_buf *b, const kl_artefact *made, const kl_device *d,
                          const kl_plan *plan) {
    const multiprocessor *m = multiprocessor_of(d->arch);
    const int registers = (int)kli_feature_get(made, "registers"),
              smem = (int)kli_feature_get(made, "static_smem_bytes");
    if (registers < 1) return;
    kl_buf_printf(b, "registers of a thread: %d; spilled: %.0f bytes\n", registers,
                  kli_feature_get(made, "spill_bytes"));
    for (uint32_t i = 0; m && m->warps && i < plan->n_launches; i++)
        add_launch(b, &plan->launches[i], m, registers, smem);
}

static kl_str resources_text(kl_arena *a, const kl_artefact *made, const kl_device *d,
                             const kl_kernel *k, const kl_task *t, const kl_workload *w) {
    kl_arena *scratch = kl_arena_new();
    kl_plan *plan = KL_NEW(scratch, kl_plan);
    kl_buf b = {0};
    if (kli_kernel_plan(plan, k, t, w, &d->limits, kl_ignored()) ||
        kli_plan_complete(plan, made->completion, k, t, w, &d->limits, kl_ignored()))
        plan->n_launches = 0;
    add_occupancy(&b, made, d, plan);
    kl_arena_free(scratch);
    return kl_buf_take(&b, a);
}

kl_err kl_compiled_of(kl_compiled *out, kl_arena *a, const kl_device *d, const kl_kernel *k,
                      const kl_task *t, const kl_workload *w, const kl_compile_opts *o,
                      kl_error *e) {
    kl_artefact made;
    *out = (kl_compiled){0};
    const kl_err err = kli_compile(&made, a, d, k, t, w, o, e);
    if (err) return err;
    if (!made.ok) return kl_fail(e, KL_EINVAL, "compile", "%.300s", made.log.ptr);
    *out = (kl_compiled){.remarks = made.remarks,
                         .resources = resources_text(a, &made, d, k, t, w),
                         .hot_loop = made.hot_loop};
    return KL_OK;
}
