/* runner_cuda_draw.c - input sets drawn on the device: one launch of draw.cu for all tensors of all
 * sets that it can draw; the others come from the shared pages.
 *
 * The keys tell the values of sets that lie in this process anyway, and nothing else: the seed of a
 * set is split off the root by SHA-256, so no key leads to another set, to the root or to the
 * schedule.  They are still kept out of a candidate's reach, so that computing an input never
 * replaces reading it: a driver keeps parameters of launches in memory that device code could find,
 * so the keys lie in pinned pages of ours, which the kernel reads into registers, and which are
 * wiped before the reply, like the request and the stack.  No launch of a candidate is queued
 * meanwhile.
 *
 * Of the set that the gate names as proof, both ends of each drawn tensor lie in the shared pages
 * too: a device, driver or text that computes other bytes ends in an error, never in a verdict.
 * SPDX-License-Identifier: Apache-2.0 */
#include "draw_ptx.h"
#include "runner_cuda.h"
#include "task/inputs.h"
#include <string.h>

enum { DRAW_THREADS = 256, DRAW_BLOCKS_PER_SM = 64 };

void kli_cuda_open_draw(kli_cuda *r) {
    kl_cu_module module;
    if (r->api->module_load(&module, KLI_DRAW_PTX) ||
        r->api->module_function(&r->draw, module, "kl_draw"))
        r->draw = NULL;
}

bool kli_cuda_draws(const kli_cuda *r, uint32_t tensor) {
    return r->drawing && r->drawing->request.draws[tensor].kind != KLI_DRAW_NONE;
}

/* ---- jobs -------------------------------------------------------------------------------- */

static kl_cu_result want_jobs(kli_cuda *r, size_t n) {
    if (n <= r->n_jobs) return KL_CU_OK;
    if (r->jobs) (void)r->api->host_free(r->jobs);
    void *pages = NULL;
    const kl_cu_result error = r->api->host_alloc(&pages, n * sizeof *r->jobs, KL_CU_HOST_MAPPED);
    r->jobs = pages;
    r->n_jobs = error ? 0 : n;
    return error;
}

static size_t fill_jobs(kli_runner_ctx *c, const kli_draw_request *q, int64_t *longest) {
    kli_cuda *r = kli_cuda_of(c);
    size_t n = 0;
    *longest = 0;
    for (uint32_t set = q->first; set < q->first + q->n; set++)
        for (uint32_t i = 0; i < c->plan.n_tensors; i++) {
            if (!kli_cuda_draws(r, i)) continue;
            KL_ASSERT(n < r->n_jobs);
            kli_draw_job *job = &r->jobs[n++];
            *job = (kli_draw_job){q->draws[i], kli_cuda_tensor(c, i, set, 0)};
            kli_draw_seed(&job->draw, q->seeds[set], kl_str_of(c->plan.tensors[i].name));
            if (job->draw.elems > *longest) *longest = job->draw.elems;
        }
    return n;
}

static kl_cu_result launch_jobs(kli_cuda *r, size_t n, int64_t longest) {
    const uint64_t share = ((uint64_t)r->sms * DRAW_BLOCKS_PER_SM + n - 1) / n,
                   useful = ((uint64_t)longest + DRAW_THREADS - 1) / DRAW_THREADS;
    kl_cu_ptr jobs = (kl_cu_ptr)(uintptr_t)r->jobs; /* one address space for host and device */
    void *arguments[] = {&jobs};
    const kli_cu_launch_config config = {
        .grid = {(unsigned)(share < useful ? share : useful), (unsigned)n, 1},
        .block = {DRAW_THREADS, 1, 1},
        .stream = r->stream};
    KL_ASSERT(config.grid[0] >= 1 && n <= 65535);
    return r->api->launch(&config, r->draw, arguments, NULL);
}

/* Has a frame of its own, below its caller's, which wipe_stack reaches. */
__attribute__((noinline)) static kl_cu_result draw_sets(kli_runner_ctx *c,
                                                        const kli_draw_request *q) {
    kli_cuda *r = kli_cuda_of(c);
    int64_t longest;
    kl_cu_result error = want_jobs(r, (size_t)q->n * c->plan.n_tensors);
    if (error) return error;
    const size_t n = fill_jobs(c, q, &longest);
    if (n) error = launch_jobs(r, n, longest);
    const kl_cu_result end = kli_cuda_wait(r);
    if (n) explicit_bzero(r->jobs, n * sizeof *r->jobs);
    return error ? error : end;
}

/* What the calls that saw keys left on the stack: where a device reads pageable memory, it is in a
 * candidate's reach too. */
__attribute__((noinline)) static void wipe_stack(void) {
    char frames[1 << 16];
    explicit_bzero(frames, sizeof frames);
}

/* ---- proof ------------------------------------------------------------------------------- */

static int prove_range(kli_runner_ctx *c, const kli_draw_request *q, uint32_t i, int64_t from,
                       int64_t to) {
    kli_cuda *r = kli_cuda_of(c);
    const size_t size = kl_dtype_bytes((kl_dtype)c->plan.tensors[i].dtype),
                 at = (size_t)from * size, bytes = (size_t)(to - from) * size;
    char *there = kl_arena_alloc(c->arena, bytes, 1);
    const kl_cu_ptr tensor = kli_cuda_tensor(c, i, q->proof, 0);
    if (kli_cuda_check(c, kli_cuda_read(r, there, tensor + at, bytes), "reading what was drawn"))
        return 1;
    if (memcmp(there, kli_ctx_tensor(c, i, q->proof, 0) + at, bytes) == 0) return 0;
    return kli_fault(c, KL_FAULT_PROTOCOL, "the device drew other bytes for input set %u",
                     q->proof);
}

static int prove_set(kli_runner_ctx *c, const kli_draw_request *q) {
    for (uint32_t i = 0; i < c->plan.n_tensors; i++) {
        const int64_t n = q->draws[i].elems, end = n < KLI_PROOF_ELEMS ? n : KLI_PROOF_ELEMS;
        if (q->draws[i].kind == KLI_DRAW_NONE) continue;
        if (prove_range(c, q, i, 0, end) || prove_range(c, q, i, n - end, n)) return 1;
    }
    return 0;
}

int kli_cuda_draw(kli_runner_ctx *c, const kl_msg_draw *m) {
    kli_cuda *r = kli_cuda_of(c);
    const kli_draw_request *q = &m->request;
    const kl_msg_upload rest = {.first = q->first, .n = q->n};
    if (!r->draw || !r->digest) return kli_fault(c, KL_FAULT_REFUSED, "no kernel draws here");
    r->drawing = m;
    const int failed =
        (r->pages[KLI_INPUTS].base &&
         kli_cuda_check(c, draw_sets(c, q), "drawing input sets from %u", q->first)) ||
        kli_cuda_upload(c, &rest);
    r->drawing = NULL;
    wipe_stack();
    return failed || (q->proof != KLI_NO_PROOF && prove_set(c, q));
}
