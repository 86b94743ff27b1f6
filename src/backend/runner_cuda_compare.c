/* runner_cuda_compare.c - an output of another runner, compared with an answer that stayed on this
 * device: what was brought is copied in, what stayed with the other runner is mapped for the time
 * of the comparison, and sums come out.
 *
 * Answers are wide and many; what an oracle gave needs no way over the bus, and no candidate's
 * process, device memory or pages ever hold any of it.  The process of the oracle maps outputs of
 * a candidate whose stream is idle; nobody maps anything of the oracle's.  What is not certainly
 * right is no finding: the gate then fetches the answer and looks itself.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "compare_job.h"
#include "compare_ptx.h"
#include "runner_cuda.h"
#include <math.h>
#include <string.h>

enum {
    COMPARE_THREADS = 256,
    COMPARE_BLOCKS_PER_SM = 4,
    COMPARE_ELEMS = 32 /* of a thread, at least */
};
_Static_assert((int)KLI_COMPARE_F64 == KL_F64 && (int)KLI_COMPARE_F32 == KL_F32 &&
                   (int)KLI_COMPARE_F16 == KL_F16 && (int)KLI_COMPARE_BF16 == KL_BF16,
               "a device's compiler does not read kl_dtype");
_Static_assert(sizeof(kli_compare_found) == sizeof((kl_msg_reply *)0)->found, "they travel so");

void kli_cuda_open_compare(kli_cuda *r) {
    kl_cu_module module;
    if (r->api->module_load(&module, KLI_COMPARE_PTX) ||
        r->api->module_function(&r->compare, module, "kl_compare"))
        r->compare = NULL;
}

static bool is_float(uint32_t type) { return type >= KL_F64 && type <= KL_BF16; }

static uint32_t comparison_blocks(const kli_cuda *r, int64_t n) {
    const int64_t useful = n / (COMPARE_THREADS * COMPARE_ELEMS) + 1,
                  most = (int64_t)r->sms * COMPARE_BLOCKS_PER_SM;
    return (uint32_t)(useful < most ? useful : most);
}

static kl_cu_result launch_comparison(kli_cuda *r, kli_compare_job job, uint32_t blocks,
                                      kli_compare_found *of_threads) {
    void *arguments[] = {&job};
    const kli_cu_launch_config config = {
        .grid = {blocks, 1, 1}, .block = {COMPARE_THREADS, 1, 1}, .stream = r->stream};
    const kl_cu_result error = r->api->launch(&config, r->compare, arguments, NULL);
    return error ? error
                 : kli_cuda_read(r, of_threads, job.found,
                                 (size_t)blocks * COMPARE_THREADS * sizeof *of_threads);
}

static kli_compare_found add_up(const kli_compare_found *of_threads, uint32_t n) {
    kli_compare_found all = {0};
    for (uint32_t i = 0; i < n; i++) {
        all.square += of_threads[i].square;
        all.sum += of_threads[i].sum;
        all.unsure += of_threads[i].unsure;
        if (of_threads[i].max_abs > all.max_abs) all.max_abs = of_threads[i].max_abs;
    }
    return all;
}

/* What is allowed depends on the size of the whole answer, which the first launch sums: another one
 * follows where that makes a difference. */
static kl_cu_result compare_whole(kli_cuda *r, const kl_msg_compare *m, kli_compare_job *job,
                                  kli_compare_found *of_threads, kli_compare_found *all) {
    const uint32_t blocks = comparison_blocks(r, job->n);
    kl_cu_result error = launch_comparison(r, *job, blocks, of_threads);
    *all = add_up(of_threads, blocks * COMPARE_THREADS);
    const double rms = sqrt(all->square / (double)job->n),
                 atol = m->atol * (rms < 1 || m->grows ? rms : 1);
    if (error || atol == job->atol) return error;
    job->atol = atol;
    error = launch_comparison(r, *job, blocks, of_threads);
    *all = add_up(of_threads, blocks * COMPARE_THREADS);
    return error;
}

/* An output that was brought is copied to `own`, one that stayed is mapped where it lies. */
static kl_cu_result reach_output(const kli_cuda *r, const kl_msg_compare *m, const char *got,
                                 uint64_t bytes, kl_cu_ptr own, kl_cu_ptr *mapped,
                                 kli_compare_job *job) {
    kli_cu_handle handle;
    _Static_assert(sizeof handle.bytes == sizeof m->handle, "it travels whole");
    job->got = own;
    if (got) return r->api->copy_in(own, got, bytes, r->stream);
    memcpy(handle.bytes, m->handle, sizeof handle.bytes);
    const kl_cu_result error = r->api->handle_open(mapped, handle, KL_CU_HANDLE_LAZY_PEERS);
    if (error) *mapped = 0;
    job->got = *mapped + m->offset;
    return error;
}

int kli_cuda_compare(kli_runner_ctx *c, const kl_msg_compare *m, const char *got) {
    kli_cuda *r = kli_cuda_of(c);
    const kl_plan_tensor *want = &c->plan.tensors[m->tensor];
    const uint64_t n = want->bytes / kl_dtype_bytes((kl_dtype)want->dtype),
                   bytes = n * kl_dtype_bytes((kl_dtype)m->got_type),
                   places = (uint64_t)comparison_blocks(r, (int64_t)n) * COMPARE_THREADS;
    const uint64_t found_at = got ? (bytes + 255) / 256 * 256 : 0;
    kli_cuda_pages *own = &r->pages[KLI_CUDA_COMPARED];
    kl_cu_ptr mapped = 0;
    KL_ASSERT(c->trusted && !got == !!m->has_handle);
    if (!r->compare || !n || !is_float(want->dtype) || !is_float(m->got_type))
        return kli_fault(c, KL_FAULT_REFUSED, "no kernel compares this");
    const uint64_t needed = found_at + places * sizeof(kli_compare_found);
    kl_cu_result error = own->used < needed ? kli_cuda_take_pages(r, own, needed) : KL_CU_OK;
    kli_compare_found *of_threads = KL_ARRAY(c->arena, kli_compare_found, places), all = {0};
    kli_compare_job job = {.want = kli_cuda_tensor(c, m->tensor, 0, m->slot),
                           .found = own->base + found_at,
                           .n = (int64_t)n,
                           .got_type = (int32_t)m->got_type,
                           .want_type = (int32_t)want->dtype,
                           .atol = m->atol,
                           .rtol = m->rtol};
    if (!error) error = reach_output(r, m, got, bytes, own->base, &mapped, &job);
    if (!error) error = compare_whole(r, m, &job, of_threads, &all);
    if (mapped) (void)r->api->handle_close(mapped);
    memcpy(c->reply->found, &all, sizeof all);
    return kli_cuda_check(c, error, "comparing `%s`", want->name);
}
