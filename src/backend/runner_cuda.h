/* runner_cuda.h - what the files of the CUDA runner share: one process, one primary context, one
 * stream, one artefact.
 *
 *   runner_cuda.c         open, load, launch, run: the table's row
 *   runner_cuda_memory.c  device memory: guards, poison, upload, download, digests
 *   runner_cuda_time.c    events and graphs
 *   runner_cuda_audit.c   what a run or batch left behind: guards, inputs, the slots asked for
 *   runner_cuda_helpers.c our own device code
 *   runner_cuda_draw.c    input sets drawn on the device
 *   runner_cuda_compare.c outputs compared with answers that stayed on the device
 *   runner_cuda_plugin.c  trusted host plugins on the same stream
 *   runner_cuda_probe.c   the device as JSON
 *
 * A candidate is device code only: every line that runs on the host is ours.  Functions return 0,
 * or 1 after filling the reply. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_RUNNER_CUDA_H
#define KL_BACKEND_RUNNER_CUDA_H
#include "cuda_api.h"
#include "runner_ops.h"
#include "runner_plugin.h"

#define KLI_CUDA_GRAPHS 8 /* captured batches kept; a comparison uses two or three sizes */
#define KLI_CUDA_INPUT_GUARD                                                                       \
    0xC3u /* canary around inputs that were uploaded; a checked run puts others there */

/* A variable of the module that outlives a launch, with the bytes it had when the module was
 * loaded. */
typedef struct {
    kl_cu_ptr data;
    size_t bytes;
    char *initial;
    const char *name; /* inside the image */
} kli_cuda_global;

/* Device memory is handed out in pages of 2 MB.  We take whole ones, so that no byte of ours has
 * neighbours, and know what lies behind the bytes that are used. */
#define KLI_CUDA_PAGE (2ull << 20)

/* Behind those of the regions. */
enum { KLI_CUDA_FLUSH = KLI_REGIONS, KLI_CUDA_SUMS, KLI_CUDA_COMPARED, KLI_CUDA_ALLOCATIONS };

typedef struct {
    kl_cu_ptr base;
    uint64_t used, bytes;
} kli_cuda_pages;

typedef struct {
    uint32_t set, slot, calls; /* of the first call */
    kl_cu_exec exec;           /* NULL: free */
    kl_cu_graph graph;
} kli_cuda_graph;

typedef struct {
    const kli_cuda_api *api;
    kl_cu_device device;
    kl_cu_stream stream;
    int sms, sm_threads, smem_max, l2_bytes, max_grid[3];

    /* Our own device code; all NULL where the driver cannot compile PTX. */
    kl_cu_function digest, scrub, wait;
    kl_cu_function guards; /* NULL: the host reads them, slot by slot */
    bool clears_local;     /* a broom for local memory compiles here */
    kl_cu_module brooms;   /* one for each size of frame that the candidate's launches have */
    kl_cu_function broom[KL_MAX_LAUNCHES];
    uint32_t broom_frames[KL_MAX_LAUNCHES]; /* their sizes, in order */
    uint32_t n_brooms;
    kl_cu_ptr digest_sum;   /* of an input set; of damaged guard bytes */
    kl_cu_ptr slot_digests; /* one word per call of a batch, or per input set after it */
    kl_cu_ptr guard_spans;  /* kli_cuda_span of every guard, written anew for each look */
    /* Random.  Lent to the device while one of our kernels takes digests, and to no other: see
     * kli_cuda_digest. */
    uint64_t digest_key, *lent_key; /* pinned; 0 but while it is lent */
    kl_cu_ptr device_key;
    kl_cu_function take_key;
    bool is_lent, is_taken, has_candidate; /* since the stream was last waited for */

    kl_cu_function compare; /* NULL: answers are brought to the host */
    kl_cu_function draw;    /* NULL: inputs are brought from the shared pages */
    kli_draw_job *jobs;     /* pinned, zeros but while it draws */
    size_t n_jobs;
    const kl_msg_draw *drawing; /* the request while it is served */

    kl_cu_module module;
    kl_cu_function functions[KL_MAX_LAUNCHES];
    kl_arena *loaded; /* image and variables */
    kl_str image;
    kli_cuda_global *globals;
    size_t n_globals;
    bool reload; /* a variable's address is not to be had: the module is loaded again instead */
    bool is_plugin;
    kli_plugin plugin;

    kli_cuda_pages pages[KLI_CUDA_ALLOCATIONS];
    uint8_t flush_byte;
    uint64_t digests[KL_MAX_SETS];
    uint8_t slack[KL_MAX_SETS]; /* the guard byte around an input set */
    bool uploaded[KL_MAX_SETS];
    bool elsewhere[KL_MAX_SETS]; /* drawn, and not in the shared pages */

    kli_cuda_graph graphs[KLI_CUDA_GRAPHS];
    uint32_t next_graph;
    kl_cu_event *events;
    uint32_t n_events;
} kli_cuda;

/* Guard bytes of the first copy; the same lie `pitch` further on in the next. */
typedef struct {
    kl_cu_ptr at;
    uint64_t bytes, pitch;
} kli_cuda_span;
enum { KLI_CUDA_SPANS = KL_MAX_TENSORS + KL_MAX_BUFFERS + KLI_REGIONS };

/* What calls that are over worked in: n slots from `slot` on, n sets from `set` on, both around the
 * end of theirs. */
typedef struct {
    uint32_t slot, n_slots, set, n_sets;
    uint8_t poison;
} kli_cuda_left;

static inline kli_cuda *kli_cuda_of(const kli_runner_ctx *c) { return c->state; }

/* 0 where there is none; else 1, with the reply filled for a driver error met while `doing`:
 * refusals of the driver are KL_FAULT_REFUSED, everything else KL_FAULT_DEVICE. */
int kli_cuda_check(const kli_runner_ctx *c, kl_cu_result error, const char *doing, ...)
    KL_PRINTF(3, 4);
/* For the stream; afterwards no key is lent. */
kl_cu_result kli_cuda_wait(kli_cuda *r);
/* Bring bytes of the device here, and wait for them. */
kl_cu_result kli_cuda_read(kli_cuda *r, void *to, kl_cu_ptr from, size_t bytes);

/* runner_cuda.c */
int kli_cuda_enqueue(kli_runner_ctx *c, uint32_t set, uint32_t slot); /* all launches of one call */
int kli_cuda_reset(kli_runner_ctx *c); /* globals and shared memory */
void kli_cuda_drop_graphs(kli_cuda *r);
int kli_cuda_open_helpers(kli_runner_ctx *c);
/* runner_cuda_helpers.c: local memory of every thread that fits on the device, for frames of these
 * sizes; others go. */
int kli_cuda_make_brooms(kli_runner_ctx *c, const uint32_t *frames, uint32_t n);
kl_cu_result kli_cuda_sweep_local(kli_cuda *r);
void kli_cuda_drop_brooms(kli_cuda *r);
/* Enqueue the digests of `n` rows of `words` pairs of words, `pitch` bytes from row to row, on top
 * of the sums; no candidate runs before the stream was waited for. */
typedef struct {
    kl_cu_ptr base, sum;
    uint64_t words, pitch;
    uint32_t n;
} kli_cuda_rows;
kl_cu_result kli_cuda_digest(kli_cuda *r, const kli_cuda_rows *rows);

/* runner_cuda_memory.c */
/* What a small shape needs, before there is one; what cannot be had is asked for again. */
void kli_cuda_open_memory(kli_cuda *r);
int kli_cuda_bind(kli_runner_ctx *c);
kl_cu_result kli_cuda_take_pages(kli_cuda *r, kli_cuda_pages *out,
                                 uint64_t used); /* those it had go */
kl_cu_result kli_cuda_clear_tails(
    kli_cuda *r); /* what lies behind the used bytes of every allocation, and sums */
int kli_cuda_upload(kli_runner_ctx *c, const kl_msg_upload *m);
/* The first byte of a copy. */
kl_cu_ptr kli_cuda_copy(const kli_runner_ctx *c, kli_region region, uint32_t copy);
kl_cu_ptr kli_cuda_tensor(const kli_runner_ctx *c, uint32_t tensor, uint32_t set, uint32_t slot);
kl_cu_ptr kli_cuda_buffer(const kli_runner_ctx *c, uint32_t buffer, uint32_t slot);
/* Poison outputs and scratch of a slot, set its guards, restore mutable inputs; asynchronous. */
int kli_cuda_prepare_slots(kli_runner_ctx *c, uint32_t first, uint32_t n, uint8_t poison);
kl_cu_result kli_cuda_bring(kli_runner_ctx *c, uint32_t slot); /* its outputs; asynchronous */
int kli_cuda_check_guards(kli_runner_ctx *c, uint32_t slot, uint8_t poison);
/* Enqueue the digests of n copies from `first` on, around the end, into the words from `word` on.
 */
kl_cu_result kli_cuda_digest_copies(kli_runner_ctx *c, kli_region region, uint32_t first,
                                    uint32_t n, uint32_t word);
/* Digests of n output slots, guards and all, for the calls of a batch from `call` on: taken on the
 * stream; and read by the host. */
int kli_cuda_digest_slots(kli_runner_ctx *c, uint32_t slot, uint32_t n, uint32_t call);
int kli_cuda_read_digests(kli_runner_ctx *c, uint64_t *out, uint32_t first, uint32_t n);
/* Digests of n slots from `slot` on into `out`: n of outputs, then n of scratch (zeros where there
 * is none). */
int kli_cuda_digest_idle(kli_runner_ctx *c, uint32_t slot, uint32_t n, uint64_t *out);
int kli_cuda_slack(kli_runner_ctx *c, uint32_t set,
                   uint8_t byte); /* other guard bytes around a set; asynchronous */
int kli_cuda_check_inputs(kli_runner_ctx *c, uint32_t set);
int kli_cuda_flush(kli_runner_ctx *c); /* write 2 x L2 */

/* The part of a set's digest that these bytes make, which begin `at` bytes into it. */
uint64_t kli_cuda_digest_here(const kli_cuda *r, const void *bytes, uint64_t at, uint64_t n);

/* runner_cuda_draw.c */
void kli_cuda_open_draw(kli_cuda *r);
bool kli_cuda_draws(const kli_cuda *r, uint32_t tensor); /* by the request being served */
int kli_cuda_draw(kli_runner_ctx *c, const kl_msg_draw *m);

/* runner_cuda_compare.c */
void kli_cuda_open_compare(kli_cuda *r);
int kli_cuda_compare(kli_runner_ctx *c, const kl_msg_compare *m, const char *pages);

/* runner_cuda_time.c */
int kli_cuda_time(kli_runner_ctx *c, const kl_msg_time *m);

/* runner_cuda_audit.c */
int kli_cuda_look_over(kli_runner_ctx *c, const kli_cuda_left *left);
int kli_cuda_audit(kli_runner_ctx *c, const kl_msg_audit *m);
int kli_cuda_fetch(kli_runner_ctx *c, const kl_msg_fetch *m);
/* Nonzero, with the fault said: a guard of these slots is not as it was set. */
int kli_cuda_check_slots(kli_runner_ctx *c, const uint32_t *slots, uint32_t n, uint8_t poison);
/* Digests of the data of some slots' outputs, read by the host. */
kl_cu_result kli_cuda_print(kli_runner_ctx *c, const uint32_t *slots, uint32_t n, uint64_t *out);
/* Enqueue the count of bytes that are not `value` in n copies of the spans, from `first` on around
 * the end of `copies`, on top of what is counted. */
kl_cu_result kli_cuda_count_damage(const kli_cuda *r, uint32_t n_spans, uint32_t first, uint32_t n,
                                   uint32_t copies, uint8_t value);

/* runner_cuda_plugin.c */
int kli_cuda_plugin_load(kli_runner_ctx *c);
int kli_cuda_plugin_prepare(kli_runner_ctx *c);
int kli_cuda_plugin_enqueue(kli_runner_ctx *c, uint32_t set, uint32_t slot);

/* runner_cuda_probe.c */
int kli_cuda_probe(void);

#endif
