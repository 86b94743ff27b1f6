/* runner_cuda_memory.c - the runner's device memory: the layout of the shared pages once more, with
 * canaries of its own.
 *
 * One allocation for all input sets, one for all output slots, one for all scratch slots; offsets
 * are those of the layout, so that what lies between two tensors is guard zone.  A device has no
 * page protection for us, therefore
 *
 *   outputs, scratch  guards hold ~poison, set before each run and read back after it
 *   inputs            guards hold KLI_CUDA_INPUT_GUARD; a keyed digest over the whole set, guards
 * included, is taken on the device after the upload and again after each run (0.2 ms for 800 MB
 * instead of 100 ms for bringing it back)
 *
 * The digest only says "changed"; which tensor it was is then looked up by bringing the set back.
 * Memory of another process never shows up here: the driver clears fresh allocations.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_cuda.h"
#include "base/fs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPARE_BYTES (8u << 20) /* piece of an input set compared at a time */
#define SMALL_BYTES (2 * KLI_CUDA_PAGE)
#define GIVEN_BACK_NS 1000000000ll

/* ---- addresses --------------------------------------------------------------------------- */

kl_cu_ptr kli_cuda_copy(const kli_runner_ctx *c, kli_region region, uint32_t copy) {
    KL_ASSERT(copy < kli_region_copies(&c->layout, region));
    return kli_cuda_of(c)->pages[region].base + kli_region_stride(&c->layout, region) * copy;
}

kl_cu_ptr kli_cuda_tensor(const kli_runner_ctx *c, uint32_t tensor, uint32_t set, uint32_t slot) {
    KL_ASSERT(tensor < c->plan.n_tensors);
    const bool input = c->plan.tensors[tensor].role == KL_ROLE_INPUT;
    return kli_cuda_copy(c, input ? KLI_INPUTS : KLI_OUTPUTS, input ? set : slot) +
           c->layout.tensor_offset[tensor];
}

kl_cu_ptr kli_cuda_buffer(const kli_runner_ctx *c, uint32_t buffer, uint32_t slot) {
    KL_ASSERT(buffer < c->plan.n_buffers);
    return kli_cuda_copy(c, KLI_SCRATCH, slot) + c->layout.buffer_offset[buffer];
}

kl_cu_result kli_cuda_read(kli_cuda *r, void *to, kl_cu_ptr from, size_t bytes) {
    kl_cu_result error = r->api->copy_out(to, from, bytes, r->stream);
    return error ? error : kli_cuda_wait(r);
}

/* ---- bind -------------------------------------------------------------------------------- */

/* A process that ended a moment ago gives its memory back while its context is taken down. */
static kl_cu_result allocate_pages(const kli_cuda *r, kl_cu_ptr *out, uint64_t bytes) {
    size_t available = 0, total = 0;
    kl_cu_result error = r->api->memory_alloc(out, bytes);
    if (error != KL_CU_OUT_OF_MEMORY || r->api->memory_info(&available, &total) || bytes > total)
        return error;
    for (int64_t end = kli_now_ns() + GIVEN_BACK_NS;
         error == KL_CU_OUT_OF_MEMORY && kli_now_ns() < end; (void)usleep(20000))
        error = r->api->memory_alloc(out, bytes);
    return error;
}

/* Small allocations stay, since a driver makes who asks for memory wait while another process
 * begins or ends.  Nothing stays in them. */
kl_cu_result kli_cuda_take_pages(kli_cuda *r, kli_cuda_pages *out, uint64_t used) {
    const uint64_t pages = (used + KLI_CUDA_PAGE - 1) / KLI_CUDA_PAGE * KLI_CUDA_PAGE,
                   bytes = pages < SMALL_BYTES ? SMALL_BYTES : pages;
    kl_cu_ptr base = 0;
    KL_ASSERT(bytes >= used);
    if (used && out->base && out->bytes == bytes && bytes == SMALL_BYTES) {
        out->used = used;
        return r->api->fill(out->base, 0xFF, out->bytes, r->stream);
    }
    if (out->base) (void)r->api->memory_free(out->base);
    *out = (kli_cuda_pages){0};
    const kl_cu_result error = used ? allocate_pages(r, &base, bytes) : KL_CU_OK;
    if (!error && used) *out = (kli_cuda_pages){base, used, bytes};
    return error;
}

/* Notes could be kept there from batch to batch.  Sums have no tail: digests of the last batch's
 * right outputs would tell the next one what to imitate.  A key that was taken stays till
 * it is cleared. */
kl_cu_result kli_cuda_clear_tails(kli_cuda *r) {
    kl_cu_result error = KL_CU_OK;
    for (int i = 0; i < KLI_CUDA_ALLOCATIONS && !error; i++) {
        const kli_cuda_pages *p = &r->pages[i];
        const uint64_t from = i != KLI_CUDA_SUMS ? p->used : r->is_taken ? sizeof r->digest_key : 0;
        if (from < p->bytes) error = r->api->fill(p->base + from, 0xFF, p->bytes - from, r->stream);
    }
    return error;
}

static int runner_cuda_memory_allocate(kli_runner_ctx *c, int which, uint64_t bytes,
                                       const char *what) {
    kli_cuda *r = kli_cuda_of(c);
    size_t available = 0, total = 0;
    const kl_cu_result error = kli_cuda_take_pages(r, &r->pages[which], bytes);
    if (error != KL_CU_OUT_OF_MEMORY) return kli_cuda_check(c, error, "allocating %s", what);
    (void)r->api->memory_info(&available, &total);
    return kli_fault(c, KL_FAULT_REFUSED,
                     "out of device memory: %s take %.2f GiB, %.2f of %.2f GiB are free", what,
                     (double)bytes / 1073741824.0, (double)available / 1073741824.0,
                     (double)total / 1073741824.0);
}

/* To who compares them; without our digests nobody could say whether two runs agree. */
static void offer_outputs(const kli_runner_ctx *c) {
    const kli_cuda *r = kli_cuda_of(c);
    const kl_cu_ptr base = r->pages[KLI_OUTPUTS].base;
    kli_cu_handle handle;
    _Static_assert(sizeof handle == sizeof c->reply->handle, "it travels whole");
    if (!base || !r->digest || !r->guards || r->api->handle_get(&handle, base)) return;
    memcpy(c->reply->handle, handle.bytes, sizeof handle.bytes);
    c->reply->has_handle = true;
}

static uint64_t flush_bytes(const kli_cuda *r) {
    return 2 * (uint64_t)(r->l2_bytes > 0 ? r->l2_bytes : 64 << 20);
}

void kli_cuda_open_memory(kli_cuda *r) {
    (void)kli_cuda_take_pages(r, &r->pages[KLI_INPUTS], 1);
    (void)kli_cuda_take_pages(r, &r->pages[KLI_OUTPUTS], 1);
    (void)kli_cuda_take_pages(r, &r->pages[KLI_CUDA_FLUSH], flush_bytes(r));
}

int kli_cuda_bind(kli_runner_ctx *c) {
    /* Sets first: without them nothing runs at all, so the message names them. */
    static const char *const WHAT[KLI_REGIONS] = {"input sets", "output slots", "scratch buffers"};
    kli_cuda *r = kli_cuda_of(c);
    memset(r->uploaded, 0, sizeof r->uploaded);
    KL_ASSERT(c->layout.n_sets <= KL_MAX_SETS);
    if (kli_cuda_check(c, kli_cuda_wait(r), "waiting for the device")) return 1;
    for (kli_region i = 0; i < KLI_REGIONS; i++)
        if (runner_cuda_memory_allocate(c, (int)i, kli_region_bytes(&c->layout, i), WHAT[i]))
            return 1;
    offer_outputs(c);
    return r->pages[KLI_CUDA_FLUSH].base
               ? 0
               : runner_cuda_memory_allocate(c, KLI_CUDA_FLUSH, flush_bytes(r), "the cache flush");
}

/* ---- digests ----------------------------------------------------------------------------- */

/* Enqueue the digests of n pieces of `bytes`, one behind the other from `base`, into the words at
 * `sum`. */
static kl_cu_result enqueue_digests(kli_cuda *r, kl_cu_ptr base, uint64_t bytes, uint32_t n,
                                    kl_cu_ptr sum) {
    const kli_cuda_rows rows = {base, sum, bytes / 16, bytes, n};
    const kl_cu_result error = r->api->fill(sum, 0, n * sizeof(uint64_t), r->stream);
    return error ? error : kli_cuda_digest(r, &rows);
}

static kl_cu_result take_digest(kli_runner_ctx *c, uint32_t set, uint64_t *out) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = enqueue_digests(r, kli_cuda_copy(c, KLI_INPUTS, set), c->layout.set_bytes,
                                         1, r->digest_sum);
    return error ? error : kli_cuda_read(r, out, r->digest_sum, sizeof *out);
}

kl_cu_result kli_cuda_digest_copies(kli_runner_ctx *c, kli_region region, uint32_t first,
                                    uint32_t n, uint32_t word) {
    kli_cuda *r = kli_cuda_of(c);
    const uint32_t copies = kli_region_copies(&c->layout, region);
    kl_cu_result error = KL_CU_OK;
    KL_ASSERT(word + n <= KL_WIRE_MAX_SAMPLES + 1);
    for (uint32_t done = 0; done < n && !error;) { /* copies wrap around */
        const uint32_t from = (first + done) % copies, rest = copies - from;
        const uint32_t run = n - done < rest ? n - done : rest;
        error = enqueue_digests(r, kli_cuda_copy(c, region, from),
                                kli_region_stride(&c->layout, region), run,
                                r->slot_digests + (word + done) * sizeof(uint64_t));
        done += run;
    }
    return error;
}

int kli_cuda_digest_slots(kli_runner_ctx *c, uint32_t slot, uint32_t n, uint32_t call) {
    return kli_cuda_check(c, kli_cuda_digest_copies(c, KLI_OUTPUTS, slot, n, call),
                          "digests of output slots from %u", slot);
}

int kli_cuda_read_digests(kli_runner_ctx *c, uint64_t *out, uint32_t first, uint32_t n) {
    kli_cuda *r = kli_cuda_of(c);
    KL_ASSERT(first + n <= KL_WIRE_MAX_SAMPLES + 1);
    return kli_cuda_check(
        c, kli_cuda_read(r, out, r->slot_digests + first * sizeof *out, n * sizeof *out),
        "reading the digests of a batch");
}

int kli_cuda_digest_idle(kli_runner_ctx *c, uint32_t slot, uint32_t n, uint64_t *out) {
    memset(out, 0, 2 * n * sizeof *out);
    for (kli_region region = KLI_OUTPUTS; region < KLI_REGIONS; region++, out += n) {
        if (!kli_cuda_of(c)->pages[region].base) continue;
        if (kli_cuda_check(c, kli_cuda_digest_copies(c, region, slot, n, 0),
                           "digests of idle slots from %u", slot) ||
            kli_cuda_read_digests(c, out, 0, n))
            return 1;
    }
    return 0;
}

/* ---- filling ----------------------------------------------------------------------------- */

static kl_cu_result restore_mutable(kli_runner_ctx *c, const kli_piece *p, uint32_t first,
                                    uint32_t n) {
    kl_cu_result error = KL_CU_OK;
    for (uint32_t slot = first; slot < first + n && !error; slot++)
        error = kli_cuda_of(c)->api->copy_in(kli_cuda_copy(c, p->region, slot) + p->zone.data,
                                             kli_ctx_copy(c, p->region, slot) + p->zone.data,
                                             p->bytes, kli_cuda_of(c)->stream);
    return error;
}

/* `guard` in everything between the pieces of n copies, `data` in the pieces themselves unless it
 * is negative.  One call for the same bytes of all copies, since hundreds of small fills would take
 * longer than the batch. */
static kl_cu_result fill_copies(kli_runner_ctx *c, kli_region region, uint32_t first, uint32_t n,
                                uint8_t guard, int data) {
    kli_cuda *r = kli_cuda_of(c);
    const uint64_t pitch = kli_region_stride(&c->layout, region);
    uint64_t at = 0;
    kl_cu_result error = KL_CU_OK;
    if (!r->pages[region].base) return KL_CU_OK;
    const kl_cu_ptr base = kli_cuda_copy(c, region, first);
    for (kli_piece p = {0}; !error && kli_piece_next(&p, &c->plan, &c->layout);) {
        if (p.region != region) continue;
        KL_ASSERT(at < p.zone.data && p.zone.data_end < pitch);
        error = r->api->fill_rows(base + at, pitch, guard, p.zone.data - at, n, r->stream);
        at = p.zone.data_end;
        if (error || data < 0 || !p.bytes) continue;
        error = p.kept ? restore_mutable(c, &p, first, n)
                       : r->api->fill_rows(base + p.zone.data, pitch,
                                           p.zero ? 0 : (unsigned char)data, p.bytes, n, r->stream);
    }
    return error ? error : r->api->fill_rows(base + at, pitch, guard, pitch - at, n, r->stream);
}

int kli_cuda_prepare_slots(kli_runner_ctx *c, uint32_t first, uint32_t n, uint8_t poison) {
    for (uint32_t done = 0; done < n;) { /* slots wrap around */
        const uint32_t slot = (first + done) % c->layout.n_slots, rest = c->layout.n_slots - slot;
        const uint32_t run = n - done < rest ? n - done : rest;
        kl_cu_result error = fill_copies(c, KLI_OUTPUTS, slot, run, poison ^ 0xFF, poison);
        if (!error) error = fill_copies(c, KLI_SCRATCH, slot, run, poison ^ 0xFF, poison);
        if (kli_cuda_check(c, error, "preparing output slots from %u", slot)) return 1;
        done += run;
    }
    return 0;
}

/* ---- input sets -------------------------------------------------------------------------- */

/* What the sets must still be after every run; enqueued. */
static kl_cu_result note_inputs(kli_runner_ctx *c, uint32_t first, uint32_t n) {
    kli_cuda *r = kli_cuda_of(c);
    if (!r->digest) return KL_CU_OK;
    kl_cu_result error = kli_cuda_digest_copies(c, KLI_INPUTS, first, n, 0);
    return error ? error
                 : r->api->copy_out(&r->digests[first], r->slot_digests, n * sizeof *r->digests,
                                    r->stream);
}

/* The inputs that the request being served does not draw. */
static kl_cu_result copy_rest(kli_runner_ctx *c, uint32_t first, uint32_t n) {
    const kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = KL_CU_OK;
    for (uint32_t set = first; set < first + n; set++)
        for (kli_piece p = {0}; !error && kli_piece_next(&p, &c->plan, &c->layout);)
            if (p.region == KLI_INPUTS && p.bytes && !kli_cuda_draws(r, p.index))
                error = r->api->copy_in(kli_cuda_copy(c, KLI_INPUTS, set) + p.zone.data,
                                        kli_ctx_copy(c, KLI_INPUTS, set) + p.zone.data, p.bytes,
                                        r->stream);
    return error;
}

/* The pages of all sets as they lie here, in one copy; then what is beside the inputs, and one look
 * at the whole. */
static kl_cu_result upload_sets(kli_runner_ctx *c, uint32_t first, uint32_t n) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = r->drawing ? copy_rest(c, first, n)
                                    : r->api->copy_in(kli_cuda_copy(c, KLI_INPUTS, first),
                                                      kli_ctx_copy(c, KLI_INPUTS, first),
                                                      c->layout.set_bytes * n, r->stream);
    if (!error) error = fill_copies(c, KLI_INPUTS, first, n, KLI_CUDA_INPUT_GUARD, -1);
    memset(&r->slack[first], KLI_CUDA_INPUT_GUARD, n);
    if (!error) error = note_inputs(c, first, n);
    return error ? error : kli_cuda_wait(r);
}

int kli_cuda_upload(kli_runner_ctx *c, const kl_msg_upload *m) {
    kli_cuda *r = kli_cuda_of(c);
    KL_ASSERT(m->first + m->n <= c->layout.n_sets);
    if (r->pages[KLI_INPUTS].base && m->n &&
        kli_cuda_check(c, upload_sets(c, m->first, m->n), "uploading %u input sets from %u", m->n,
                       m->first))
        return 1;
    memset(&r->uploaded[m->first], true, m->n);
    memset(&r->elsewhere[m->first], r->drawing && !r->drawing->request.in_pages, m->n);
    return 0;
}

int kli_cuda_slack(kli_runner_ctx *c, uint32_t set, uint8_t byte) {
    kli_cuda *r = kli_cuda_of(c);
    if (!r->pages[KLI_INPUTS].base || r->slack[set] == byte) return 0;
    kl_cu_result error = fill_copies(c, KLI_INPUTS, set, 1, byte, -1);
    if (!error) error = note_inputs(c, set, 1);
    r->slack[set] = byte;
    return kli_cuda_check(c, error, "filling the guards of input set %u", set);
}

/* Compare `bytes` on the device with `expected`, or with the guard byte where `expected` is NULL.
 */
static kl_cu_result differs(kli_runner_ctx *c, kl_cu_ptr from, uint64_t bytes, const char *expected,
                            uint8_t guard, bool *out) {
    char *piece = kl_arena_alloc(c->arena, 1, bytes < COMPARE_BYTES ? bytes : COMPARE_BYTES);
    kl_cu_result error = KL_CU_OK;
    for (uint64_t done = 0; done < bytes && !error && !*out;) {
        size_t n = bytes - done < COMPARE_BYTES ? (size_t)(bytes - done) : COMPARE_BYTES;
        error = kli_cuda_read(kli_cuda_of(c), piece, from + done, n);
        for (size_t i = 0; !error && !expected && i < n; i++)
            *out = *out || (uint8_t)piece[i] != guard;
        if (!error && expected) *out = memcmp(piece, expected + done, n) != 0;
        done += n;
    }
    return error;
}

/* Which input of a set, or which guard of one, is not what was uploaded. */
static int find_changed_input(kli_runner_ctx *c, uint32_t set) {
    const kl_cu_ptr base = kli_cuda_copy(c, KLI_INPUTS, set);
    const uint8_t guard = kli_cuda_of(c)->slack[set];
    for (kli_piece p = {0}; kli_piece_next(&p, &c->plan, &c->layout);) {
        const kli_zone z = p.zone;
        bool data = false, low = false, high = false;
        if (p.region != KLI_INPUTS) continue;
        kl_cu_result error = KL_CU_OK;
        if (!kli_cuda_of(c)->elsewhere[set])
            error = differs(c, base + z.data, p.bytes, kli_ctx_copy(c, KLI_INPUTS, set) + z.data,
                            guard, &data);
        if (!error) error = differs(c, base + z.low, z.data - z.low, NULL, guard, &low);
        if (!error) error = differs(c, base + z.data_end, z.high - z.data_end, NULL, guard, &high);
        if (kli_cuda_check(c, error, "comparing input `%s`", p.name)) return 1;
        if (data) return kli_fault(c, KL_FAULT_INPUT, "wrote to input `%s`", p.name);
        /* A zone between two inputs is seen from both: the end of the first is the likelier story,
         * and comes first. */
        if (high || low)
            return kli_fault(c, KL_FAULT_GUARD, "wrote %s of input `%s`",
                             high ? "past the end" : "before the beginning", p.name);
    }
    return 0;
}

int kli_cuda_check_inputs(kli_runner_ctx *c, uint32_t set) {
    kli_cuda *r = kli_cuda_of(c);
    uint64_t now = 0;
    if (!r->pages[KLI_INPUTS].base) return 0;
    if (!r->digest) return find_changed_input(c, set);
    if (kli_cuda_check(c, take_digest(c, set, &now), "checking input set %u", set)) return 1;
    if (now == r->digests[set]) return 0;
    return find_changed_input(c, set) ||
           kli_fault(c, KL_FAULT_INPUT, "wrote to input set %u while it was being checked", set);
}

/* ---- slots ------------------------------------------------------------------------------- */

kl_cu_result kli_cuda_bring(kli_runner_ctx *c, uint32_t slot) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = KL_CU_OK;
    for (kli_piece p = {0}; !error && kli_piece_next(&p, &c->plan, &c->layout);)
        if (p.region == KLI_OUTPUTS && p.bytes)
            error = r->api->copy_out(kli_ctx_copy(c, KLI_OUTPUTS, slot) + p.zone.data,
                                     kli_cuda_copy(c, KLI_OUTPUTS, slot) + p.zone.data, p.bytes,
                                     r->stream);
    return error;
}

/* ---- guards ------------------------------------------------------------------------------ */

/* Guards of one tensor or buffer are below 3 pages on either side: a zone's slack is less than a
 * page, its guard is one page. */
typedef struct {
    char low[2 * KL_GUARD_BYTES], high[2 * KL_GUARD_BYTES];
} guard_copy;

static bool runner_cuda_memory_whole(const char *p, uint64_t n, uint8_t value) {
    for (uint64_t i = 0; i < n; i++)
        if ((uint8_t)p[i] != value) return false;
    return true;
}

static int check_zone(kli_runner_ctx *c, kl_cu_ptr base, const kli_piece *p, uint8_t value) {
    kli_cuda *r = kli_cuda_of(c);
    const kli_zone z = p->zone;
    guard_copy copy;
    KL_ASSERT(z.data - z.low <= sizeof copy.low && z.high - z.data_end <= sizeof copy.high);
    kl_cu_result error = r->api->copy_out(copy.low, base + z.low, z.data - z.low, r->stream);
    if (!error) error = kli_cuda_read(r, copy.high, base + z.data_end, z.high - z.data_end);
    if (kli_cuda_check(c, error, "reading the guards of `%s`", p->name)) return 1;
    if (!runner_cuda_memory_whole(copy.high, z.high - z.data_end, value))
        return kli_fault(c, KL_FAULT_GUARD, "wrote past the end of `%s`", p->name);
    if (!runner_cuda_memory_whole(copy.low, z.data - z.low, value))
        return kli_fault(c, KL_FAULT_GUARD, "wrote before the beginning of `%s`", p->name);
    return 0;
}

int kli_cuda_check_guards(kli_runner_ctx *c, uint32_t slot, uint8_t poison) {
    for (kli_piece p = {0}; kli_piece_next(&p, &c->plan, &c->layout);)
        if (p.region != KLI_INPUTS &&
            check_zone(c, kli_cuda_copy(c, p.region, slot), &p, poison ^ 0xFF))
            return 1;
    return 0;
}

/* ---- cache ------------------------------------------------------------------------------- */

/* The value alternates, so that no line is written with what it holds already. */
int kli_cuda_flush(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    const kli_cuda_pages *flush = &r->pages[KLI_CUDA_FLUSH];
    return kli_cuda_check(c,
                          r->api->fill(flush->base, r->flush_byte ^= 0xFF, flush->used, r->stream),
                          "flushing the cache");
}
