/* machine.c - what a model is told of the machine, and where a kernel stands on it.
 *
 * Numbers are those of kl_device: what the system says of itself, and upper bounds that no kernel
 * passes.  Nothing is measured here, so that the text is the same in every run on a machine, and a
 * journal answers what was asked before.  What an architecture has is in a table; one that is not
 * in it is named and nothing is said of it.  SPDX-License-Identifier: Apache-2.0 */
#include "rewrite_impl.h"
#include <math.h>
#include <string.h>

typedef struct {
    const char *arch, *has;
} arch_row;

/* By the beginning of the architecture's name, the longest first. */
static const arch_row ARCHS[] = {
    {"x86-64-v4", "AVX-512 (F, BW, CD, DQ, VL) with 32 vector registers of 512 bits and masks, "
                  "fused multiply-add"},
    {"x86-64-v3", "AVX2 with 16 vector registers of 256 bits, fused multiply-add"},
    {"x86-64-v2", "SSE4.2 with 16 vector registers of 128 bits, no fused multiply-add"},
    {"x86-64", "SSE2 with 16 vector registers of 128 bits, no fused multiply-add"},
    {"aarch64-sve", "SVE and NEON with 32 vector registers, fused multiply-add"},
    {"aarch64", "NEON with 32 vector registers of 128 bits, fused multiply-add"},
    {"sm75", "mma for f16 and i8, ldmatrix; no cp.async"},
    {"sm80", "mma for f16, bf16, tf32 and i8, ldmatrix, cp.async; 164 KiB of shared memory and "
             "65536 registers a multiprocessor"},
    {"sm86", "mma for f16, bf16, tf32 and i8, ldmatrix, cp.async; 100 KiB of shared memory and "
             "65536 registers a multiprocessor"},
    {"sm89", "mma for f16, bf16, tf32, f8 and i8, ldmatrix, cp.async; 100 KiB of shared memory and "
             "65536 registers a multiprocessor"},
    {"sm90",
     "wgmma and mma for f16, bf16, tf32, f8 and i8, TMA with mbarriers, clusters, cp.async; "
     "228 KiB of shared memory and 65536 registers a multiprocessor"},
    {"sm100", "tcgen05 with tensor memory, TMA with mbarriers, clusters; 228 KiB of shared memory "
              "and 65536 registers a multiprocessor"},
    {"sm120", "mma for f16, bf16, tf32, f8, f6, f4 and i8, TMA with mbarriers, cp.async, no wgmma "
              "and no tcgen05; 100 KiB of shared memory and 65536 registers a multiprocessor"}};

/* "nvidia-sm90a" and "sm_90a" are "sm90a". */
static kl_str plain_arch(kl_arena *a, kl_str arch) {
    kl_buf b = {0};
    if (kl_str_starts(arch, KL_S("nvidia-"))) arch = kli_from(arch, 7);
    for (size_t i = 0; i < arch.len; i++)
        if (arch.ptr[i] != '_') kl_buf_add(&b, (kl_str){arch.ptr + i, 1});
    return kli_buf_keep(&b, a);
}

static const arch_row *arch_of(kl_arena *a, const kl_device *d) {
    const kl_str arch = plain_arch(a, d->arch);
    for (size_t i = 0; i < KL_COUNT(ARCHS); i++)
        if (kl_str_starts(arch, kl_str_of(ARCHS[i].arch))) return &ARCHS[i];
    return NULL;
}

static void add_bytes(kl_buf *b, int64_t bytes, const char *what) {
    const bool large = bytes >= 1 << 20;
    if (bytes > 0)
        kl_buf_printf(b, "- %.4g %s %s\n", ldexp((double)bytes, large ? -20 : -10),
                      large ? "MiB" : "KiB", what);
}

static void add_peaks(kl_buf *b, const kl_device *d) {
    static const kl_dtype shown[] = {KL_F64, KL_F32, KL_BF16, KL_F8E4M3, KL_I8};
    kl_buf peaks = {0};
    for (size_t i = 0; i < KL_COUNT(shown); i++)
        if (d->peak_flops[shown[i]] > 0)
            kl_buf_printf(&peaks, "%s%.4g in %s", peaks.len ? ", " : "",
                          d->peak_flops[shown[i]] * 1e-9, kl_dtype_name(shown[i]));
    if (peaks.len)
        kl_buf_printf(b, "- peak of %s, in 10^9 operations a second, generously: %.*s\n",
                      d->backend == KL_BACKEND_CPU ? "all cores" : "the device",
                      KL_STR_ARG(kl_buf_str(&peaks)));
    if (d->peak_bytes > 0)
        kl_buf_printf(b, "- peak bandwidth out of %s, generously: %.4g GB/s\n",
                      d->backend == KL_BACKEND_CPU ? "cache" : "L2", d->peak_bytes * 1e-9);
    kl_buf_fini(&peaks);
}

static void add_arch(kl_buf *b, const arch_row *m, const kl_device *d) {
    if (m)
        kl_buf_printf(b, "- %s%s%.*s\n", m->has, d->extensions.len ? "; also " : "",
                      KL_STR_ARG(d->extensions));
}

kl_str kl_prompt_machine(kl_arena *a, const kl_device *d) {
    kl_buf b = {0};
    kl_buf_printf(&b, "\n# The machine\n\n%.*s (%.*s)\n\n", KL_STR_ARG(d->name),
                  KL_STR_ARG(d->platform));
    add_arch(&b, arch_of(a, d), d);
    if (d->limits.sms > 0)
        kl_buf_printf(&b, "- %lld %s\n", (long long)d->limits.sms,
                      d->backend == KL_BACKEND_CPU ? "cores" : "multiprocessors");
    add_bytes(&b, d->limits.smem_max, "of shared memory at most in one block");
    add_bytes(&b, d->core_l1_bytes, "of first-level data cache a core");
    add_bytes(&b, d->core_l2_bytes, "of second-level cache a core");
    add_bytes(&b, d->l2_bytes, "of last-level cache");
    add_peaks(&b, d);
    return kli_buf_keep(&b, a);
}

/* ---- where a kernel stands --------------------------------------------------------------- */

#define FAR 0.1 /* of the bound: what it does cannot be what holds it back */

static void add_share(kl_buf *b, double computing, double moving, double seconds) {
    const double share = fmax(computing, moving) / seconds;
    kl_buf_printf(b, "; the larger of them, %s, is %.2g %% of the time%s",
                  computing > moving ? "computing" : "moving", share * 100,
                  share < FAR ? ": not how much is done limits it, but how (dependent operations, "
                                "loads that are strided or repeated, no vectors)"
                              : "");
}

kl_str kl_prompt_limits(kl_arena *a, const kl_device *d, const kl_task *t, const kl_workload *w,
                        const kl_verdict *v) {
    double flops = 0, bytes = 0, peak = 0;
    kl_buf b = {0};
    if (kl_task_work(&flops, &bytes, t, w, kl_ignored())) return KL_S("");
    for (int i = 0; i < t->n_inputs; i++)
        if (!t->tensors[i].is_scalar) peak = fmax(peak, d->peak_flops[w->dtypes[i]]);
    if (!(peak > 0) || !(d->peak_bytes > 0)) return KL_S("");
    const double computing = flops / peak, moving = bytes / d->peak_bytes;
    kl_buf_printf(&b, "bounds: %.3g us to compute it, %.3g us to move every byte once",
                  computing * 1e6, moving * 1e6);
    if (v->median_ns > 0) add_share(&b, computing, moving, (double)v->median_ns * 1e-9);
    kl_buf_add(&b, KL_S("\n"));
    return kl_buf_take(&b, a);
}
