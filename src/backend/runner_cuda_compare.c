/* runner_cuda_compare.c - outputs of another runner, compared with answers on this device, which
 * stayed or are given first: what was brought is copied in, what stayed with the other runner is
 * mapped for the time of the comparison, and sums come out.  All of a request is enqueued before
 * the first wait.
 *
 * Answers are wide and many; what an oracle gave needs no way over the bus, and no candidate's
 * process, device memory or pages ever hold any of it.  The process of the oracle maps outputs of
 * a candidate whose stream is idle; nobody maps anything of the oracle's.  What is not certainly
 * right is no finding: the gate then fetches the answer and looks itself.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "compare_job.h"
#include "compare_ptx.h"
#include "runner_cuda.h"
#include "base/fs.h"
#include <math.h>
#include <string.h>

enum {
    COMPARE_THREADS = 256,
    COMPARE_BLOCKS_PER_SM = 4,
    COMPARE_ELEMS = 32, /* of a thread, at least */
    NANS = 0xFF         /* of every float type */
};
_Static_assert((int)KLI_COMPARE_F64 == KL_F64 && (int)KLI_COMPARE_F32 == KL_F32 &&
                   (int)KLI_COMPARE_F16 == KL_F16 && (int)KLI_COMPARE_BF16 == KL_BF16,
               "a device's compiler does not read kl_dtype");
_Static_assert(KL_FETCH_SLOTS * sizeof(kli_compare_found) == sizeof((kl_msg_reply *)0)->found,
               "they travel so");

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

/* A request, and where on the device its parts lie. */
typedef struct {
    const kl_msg_compare *m;
    kli_compare_job jobs[KL_FETCH_SLOTS];
    uint32_t blocks;               /* of each comparison */
    kl_cu_ptr found_at;            /* a place for every thread, output after output */
    kli_compare_found *of_threads; /* the same, here */
    kli_compare_found all[KL_FETCH_SLOTS];
} comparison;

static size_t places_of(const comparison *x) { return (size_t)x->blocks * COMPARE_THREADS; }

static kl_cu_result launch_comparison(const kli_cuda *r, const comparison *x, uint32_t i) {
    kli_compare_job job = x->jobs[i];
    void *arguments[] = {&job};
    const kli_cu_launch_config config = {
        .grid = {x->blocks, 1, 1}, .block = {COMPARE_THREADS, 1, 1}, .stream = r->stream};
    return r->api->launch(&config, r->compare, arguments, NULL);
}

static kli_compare_found add_up(const kli_compare_found *of_threads, size_t n) {
    kli_compare_found all = {0};
    for (size_t i = 0; i < n; i++) {
        all.square += of_threads[i].square;
        all.sum += of_threads[i].sum;
        all.unsure += of_threads[i].unsure;
        if (of_threads[i].max_abs > all.max_abs) all.max_abs = of_threads[i].max_abs;
    }
    return all;
}

static kl_cu_result compare_all(kli_cuda *r, comparison *x, const bool *wanted) {
    const size_t places = places_of(x);
    kl_cu_result error = KL_CU_OK;
    for (uint32_t i = 0; i < x->m->n && !error; i++)
        if (wanted[i]) error = launch_comparison(r, x, i);
    if (!error)
        error =
            kli_cuda_read(r, x->of_threads, x->found_at, x->m->n * places * sizeof *x->of_threads);
    for (uint32_t i = 0; i < x->m->n && !error; i++)
        if (wanted[i]) x->all[i] = add_up(x->of_threads + i * places, places);
    return error;
}

/* What is allowed depends on the size of the whole answer, which the first look sums: another one
 * follows where that makes a difference. */
static kl_cu_result compare_twice(kli_cuda *r, comparison *x) {
    bool wanted[KL_FETCH_SLOTS], again = false;
    memset(wanted, true, sizeof wanted);
    const kl_cu_result error = compare_all(r, x, wanted);
    for (uint32_t i = 0; i < x->m->n && !error; i++) {
        const double rms = sqrt(x->all[i].square / (double)x->jobs[i].n),
                     atol = x->m->atol * (rms < 1 || x->m->grows ? rms : 1);
        wanted[i] = atol != x->jobs[i].atol;
        x->jobs[i].atol = atol;
        again |= wanted[i];
    }
    return again ? compare_all(r, x, wanted) : error;
}

/* Outputs that were brought are copied to `own`, those that stayed are mapped where they lie. */
static kl_cu_result reach_outputs(const kli_cuda *r, comparison *x, const char *pages,
                                  uint64_t pitch, kl_cu_ptr own, kl_cu_ptr *mapped) {
    const kl_msg_compare *m = x->m;
    kli_cu_handle handle;
    kl_cu_result error = KL_CU_OK;
    _Static_assert(sizeof handle.bytes == sizeof m->handle, "it travels whole");
    memcpy(handle.bytes, m->handle, sizeof handle.bytes);
    if (!pages) error = r->api->handle_open(mapped, handle, KL_CU_HANDLE_LAZY_PEERS);
    if (error) *mapped = 0;
    for (uint32_t i = 0; i < m->n && !error; i++) {
        kli_compare_job *job = &x->jobs[i];
        const uint64_t bytes = (uint64_t)job->n * kl_dtype_bytes((kl_dtype)m->got_type);
        job->got = pages ? own + i * pitch : *mapped + m->offsets[i];
        if (pages) error = r->api->copy_in(job->got, pages + m->offsets[i], bytes, r->stream);
    }
    return error;
}

/* Nonzero, with the fault said.  Their guards are looked at; that trusted code leaves its inputs
 * alone is seen where it runs by itself. */
static int give_answers(kli_runner_ctx *c, const kl_msg_compare *m) {
    const int64_t begin = kli_now_ns();
    uint32_t given[KL_FETCH_SLOTS], n = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const uint32_t set = m->sets[i], slot = m->slots[i];
        if (set == KLI_NO_SET) continue;
        KL_ASSERT(set < c->layout.n_sets && slot < c->layout.n_slots);
        if (!kli_cuda_of(c)->uploaded[set])
            return kli_fault(c, KL_FAULT_PROTOCOL, "input set %u was never uploaded", set);
        if (kli_cuda_reset(c) || kli_cuda_prepare_slots(c, slot, 1, NANS) ||
            kli_cuda_enqueue(c, set, slot))
            return 1;
        given[n++] = slot;
    }
    if (n && kli_cuda_check_slots(c, given, n, NANS)) return 1;
    c->reply->wall_ns = n ? kli_now_ns() - begin : 0;
    return 0;
}

static uint64_t compare_aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }

static void plan_comparison(kli_runner_ctx *c, comparison *x, uint64_t elems, kl_cu_ptr found_at) {
    const kl_msg_compare *m = x->m;
    x->found_at = found_at;
    x->of_threads = KL_ARRAY(c->arena, kli_compare_found, m->n * places_of(x));
    for (uint32_t i = 0; i < m->n; i++)
        x->jobs[i] =
            (kli_compare_job){.want = kli_cuda_tensor(c, m->tensor, 0, m->slots[i]),
                              .found = found_at + i * places_of(x) * sizeof(kli_compare_found),
                              .n = (int64_t)elems,
                              .got_type = (int32_t)m->got_type,
                              .want_type = (int32_t)c->plan.tensors[m->tensor].dtype,
                              .atol = m->atol,
                              .rtol = m->rtol};
}

int kli_cuda_compare(kli_runner_ctx *c, const kl_msg_compare *m, const char *pages) {
    kli_cuda *r = kli_cuda_of(c);
    const kl_plan_tensor *want = &c->plan.tensors[m->tensor];
    const uint64_t n = want->bytes / kl_dtype_bytes((kl_dtype)want->dtype),
                   pitch = compare_aligned(n * kl_dtype_bytes((kl_dtype)m->got_type)),
                   found_at = pages ? m->n * pitch : 0;
    comparison x = {.m = m, .blocks = comparison_blocks(r, (int64_t)n)};
    kli_cuda_pages *own = &r->pages[KLI_CUDA_COMPARED];
    kl_cu_ptr mapped = 0;
    KL_ASSERT(c->trusted && !pages == !!m->has_handle && m->n <= KL_FETCH_SLOTS);
    if (!r->compare || !n || !is_float(want->dtype) || !is_float(m->got_type))
        return kli_fault(c, KL_FAULT_REFUSED, "no kernel compares this");
    if (give_answers(c, m)) return 1;
    const uint64_t needed = found_at + m->n * places_of(&x) * sizeof(kli_compare_found);
    kl_cu_result error = own->used < needed ? kli_cuda_take_pages(r, own, needed) : KL_CU_OK;
    plan_comparison(c, &x, n, own->base + found_at);
    if (!error) error = reach_outputs(r, &x, pages, pitch, own->base, &mapped);
    if (!error) error = compare_twice(r, &x);
    if (mapped) (void)r->api->handle_close(mapped);
    memcpy(c->reply->found, x.all, m->n * sizeof *x.all);
    return kli_cuda_check(c, error, "comparing `%s`", want->name);
}
