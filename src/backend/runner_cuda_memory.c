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
#include "layout.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPARE_BYTES (8u << 20) /* piece of an input set compared at a time */
#define DIGEST_THREADS 512u

/* ---- addresses --------------------------------------------------------------------------- */

kl_cu_ptr kli_cuda_tensor(const kli_runner_ctx *c, uint32_t tensor, uint32_t set, uint32_t slot) {
    const kli_cuda *r = kli_cuda_of(c);
    uint64_t offset = c->layout.tensor_offset[tensor];
    if (c->plan.tensors[tensor].role == KLI_ROLE_INPUT)
        return r->inputs + c->layout.set_bytes * set + offset;
    return r->outputs + c->layout.slot_bytes * slot + offset;
}

kl_cu_ptr kli_cuda_buffer(const kli_runner_ctx *c, uint32_t buffer, uint32_t slot) {
    return kli_cuda_of(c)->scratch + c->layout.scratch_bytes * slot +
           c->layout.buffer_offset[buffer];
}

static bool lives_in_slot(const kl_plan_tensor *t) {
    return t->role == KLI_ROLE_OUTPUT || t->role == KLI_ROLE_MUTABLE;
}

/* ---- bind -------------------------------------------------------------------------------- */

kl_cu_result kli_cuda_take_pages(kli_cuda *r, kli_cuda_pages *out, uint64_t used) {
    const uint64_t bytes = (used + KLI_CUDA_PAGE - 1) / KLI_CUDA_PAGE * KLI_CUDA_PAGE;
    kl_cu_ptr base = 0;
    if (out->base) (void)r->api->memory_free(out->base);
    *out = (kli_cuda_pages){0};
    const kl_cu_result error = used ? r->api->memory_alloc(&base, bytes) : KL_CU_OK;
    if (!error && used) *out = (kli_cuda_pages){base, used, bytes};
    return error;
}

/* Notes could be kept there from batch to batch. */
kl_cu_result kli_cuda_clear_tails(kli_cuda *r) {
    kl_cu_result error = KL_CU_OK;
    for (int i = 0; i < KLI_CUDA_ALLOCATIONS && !error; i++) {
        const kli_cuda_pages *p = &r->pages[i];
        if (p->used < p->bytes)
            error = r->api->fill(p->base + p->used, 0xFF, p->bytes - p->used, r->stream);
    }
    return error;
}

static int runner_cuda_memory_allocate(kli_runner_ctx *c, int which, kl_cu_ptr *out, uint64_t bytes,
                                       const char *what, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    size_t available = 0, total = 0;
    const kl_cu_result error = kli_cuda_take_pages(r, &r->pages[which], bytes);
    *out = r->pages[which].base;
    if (error != KL_CU_OUT_OF_MEMORY)
        return error ? kli_cuda_fail(c, reply, error, "allocating %s", what) : 0;
    (void)r->api->memory_info(&available, &total);
    return kli_reply_fault(reply, KL_FAULT_REFUSED, 0,
                           "out of device memory: %s take %.2f GiB, %.2f of %.2f GiB are free",
                           what, (double)bytes / 1073741824.0, (double)available / 1073741824.0,
                           (double)total / 1073741824.0);
}

int kli_cuda_bind(kli_runner_ctx *c, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    const kl_layout *l = &c->layout;
    memset(r->uploaded, 0, sizeof r->uploaded);
    if (l->n_sets > KL_MAX_SETS)
        return kli_reply_fault(reply, KL_FAULT_PROTOCOL, 0, "%u input sets", l->n_sets);
    kl_cu_result error = r->api->stream_sync(r->stream);
    if (error) return kli_cuda_fail(c, reply, error, "waiting for the device");
    /* Sets first: without them nothing runs at all, so the message names them. */
    if (runner_cuda_memory_allocate(c, KLI_CUDA_INPUTS, &r->inputs, l->set_bytes * l->n_sets,
                                    "input sets", reply) ||
        runner_cuda_memory_allocate(c, KLI_CUDA_OUTPUTS, &r->outputs, l->slot_bytes * l->n_slots,
                                    "output slots", reply) ||
        runner_cuda_memory_allocate(c, KLI_CUDA_SCRATCH, &r->scratch, l->scratch_bytes * l->n_slots,
                                    "scratch buffers", reply))
        return 1;
    if (r->flush) return 0;
    r->flush_bytes = 2 * (size_t)(r->l2_bytes > 0 ? r->l2_bytes : 64 << 20);
    return runner_cuda_memory_allocate(c, KLI_CUDA_FLUSH, &r->flush, r->flush_bytes,
                                       "the cache flush", reply);
}

/* ---- input sets -------------------------------------------------------------------------- */

/* Enqueue the digests of n pieces of `bytes`, one behind the other from `base`, into the words at
 * `sum`; no more blocks than there is work for. */
static kl_cu_result enqueue_digests(const kli_cuda *r, kl_cu_ptr base, uint64_t bytes, uint32_t n,
                                    kl_cu_ptr sum) {
    uint64_t words = bytes / 16, key = r->digest_key, pitch = bytes;
    const uint64_t blocks = (words + DIGEST_THREADS - 1) / DIGEST_THREADS,
                   most = 4u * (unsigned)r->sms;
    void *arguments[] = {&base, &words, &key, &sum, &pitch};
    kli_cu_launch_config config = {.grid = {(unsigned)(blocks < 1      ? 1
                                                       : blocks < most ? blocks
                                                                       : most),
                                            n, 1},
                                   .block = {DIGEST_THREADS, 1, 1},
                                   .stream = r->stream};
    kl_cu_result error = r->api->fill(sum, 0, n * sizeof(uint64_t), r->stream);
    return error ? error : r->api->launch(&config, r->digest, arguments, NULL);
}

static kl_cu_result take_digest(kli_runner_ctx *c, uint32_t set, uint64_t *out) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = enqueue_digests(r, r->inputs + c->layout.set_bytes * set,
                                         c->layout.set_bytes, 1, r->digest_sum);
    if (!error) error = r->api->copy_out(out, r->digest_sum, sizeof *out, r->stream);
    return error ? error : r->api->stream_sync(r->stream);
}

/* Of n slots of `bytes` each, from `slot` on, into the words from `word` on. */
static kl_cu_result digest_rotation(kli_runner_ctx *c, kl_cu_ptr base, uint64_t bytes,
                                    uint32_t slot, uint32_t n, uint32_t word) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = KL_CU_OK;
    for (uint32_t done = 0; done < n && !error;) { /* slots wrap around */
        const uint32_t from = (slot + done) % c->layout.n_slots, rest = c->layout.n_slots - from;
        const uint32_t run = n - done < rest ? n - done : rest;
        error = enqueue_digests(r, base + bytes * from, bytes, run,
                                r->slot_digests + (word + done) * sizeof(uint64_t));
        done += run;
    }
    return error;
}

int kli_cuda_digest_slots(kli_runner_ctx *c, uint32_t slot, uint32_t n, uint32_t call,
                          kl_msg_reply *reply) {
    kl_cu_result error =
        digest_rotation(c, kli_cuda_of(c)->outputs, c->layout.slot_bytes, slot, n, call);
    return error ? kli_cuda_fail(c, reply, error, "digests of output slots from %u", slot) : 0;
}

int kli_cuda_read_digests(kli_runner_ctx *c, uint32_t first, uint32_t n, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error =
        r->api->copy_out(c->control->digests + first, r->slot_digests + first * sizeof(uint64_t),
                         n * sizeof(uint64_t), r->stream);
    if (!error) error = r->api->stream_sync(r->stream);
    return error ? kli_cuda_fail(c, reply, error, "reading the digests of a batch") : 0;
}

int kli_cuda_read_blank(kli_runner_ctx *c, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = r->api->copy_out(&c->control->blank_digest,
                                          r->slot_digests + KL_WIRE_MAX_SAMPLES * sizeof(uint64_t),
                                          sizeof(uint64_t), r->stream);
    if (!error) error = r->api->stream_sync(r->stream);
    return error ? kli_cuda_fail(c, reply, error, "reading the digest of an empty slot") : 0;
}

int kli_cuda_digest_idle(kli_runner_ctx *c, uint32_t slot, uint32_t n, uint64_t *out,
                         kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = KL_CU_OK;
    memset(out, 0, 2 * n * sizeof *out);
    for (int scratch = 0; scratch < 2 && !error; scratch++) {
        const kl_cu_ptr base = scratch ? r->scratch : r->outputs;
        if (!base) continue;
        error = digest_rotation(c, base, scratch ? c->layout.scratch_bytes : c->layout.slot_bytes,
                                slot, n, 0);
        if (!error)
            error = r->api->copy_out(out + (scratch ? n : 0), r->slot_digests, n * sizeof *out,
                                     r->stream);
        if (!error) error = r->api->stream_sync(r->stream);
    }
    return error ? kli_cuda_fail(c, reply, error, "digests of idle slots from %u", slot) : 0;
}

static kl_cu_result upload_set(kli_runner_ctx *c, uint32_t set) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_ptr base = r->inputs + c->layout.set_bytes * set;
    kl_cu_result error = r->api->fill(base, KLI_CUDA_INPUT_GUARD, c->layout.set_bytes, r->stream);
    r->slack[set] = KLI_CUDA_INPUT_GUARD;
    for (uint32_t i = 0; i < c->plan.n_tensors && !error; i++) {
        const kl_plan_tensor *t = &c->plan.tensors[i];
        if (t->role != KLI_ROLE_INPUT || t->bytes == 0) continue;
        error = r->api->copy_in(kli_cuda_tensor(c, i, set, 0), kli_ctx_tensor(c, i, set, 0),
                                t->bytes, r->stream);
    }
    if (!error) error = r->api->stream_sync(r->stream);
    if (!error && r->digest) error = take_digest(c, set, &r->digests[set]);
    return error;
}

int kli_cuda_upload(kli_runner_ctx *c, const kl_msg_upload *m, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    for (uint32_t set = m->first; set < m->first + m->n && set < c->layout.n_sets; set++) {
        kl_cu_result error = r->inputs ? upload_set(c, set) : KL_CU_OK;
        if (error) return kli_cuda_fail(c, reply, error, "uploading input set %u", set);
        r->uploaded[set] = true;
    }
    return 0;
}

/* What lies between the tensors of a set, and its digest with it. */
static kl_cu_result refill_slack(kli_runner_ctx *c, uint32_t set, uint8_t byte) {
    kli_cuda *r = kli_cuda_of(c);
    const kl_cu_ptr base = r->inputs + c->layout.set_bytes * set;
    uint64_t at = 0;
    kl_cu_result error = KL_CU_OK;
    for (uint32_t i = 0; i < c->plan.n_tensors && !error; i++) {
        if (c->plan.tensors[i].role != KLI_ROLE_INPUT) continue;
        const uint64_t offset = c->layout.tensor_offset[i];
        error = r->api->fill(base + at, byte, offset - at, r->stream);
        at = offset + c->plan.tensors[i].bytes;
    }
    if (!error) error = r->api->fill(base + at, byte, c->layout.set_bytes - at, r->stream);
    if (!error) error = r->api->stream_sync(r->stream);
    return error || !r->digest ? error : take_digest(c, set, &r->digests[set]);
}

int kli_cuda_slack(kli_runner_ctx *c, uint32_t set, uint8_t byte, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    if (!r->inputs || r->slack[set] == byte) return 0;
    kl_cu_result error = refill_slack(c, set, byte);
    r->slack[set] = byte;
    return error ? kli_cuda_fail(c, reply, error, "filling the guards of input set %u", set) : 0;
}

/* Compare `bytes` on the device with `expected`, or with the guard byte where `expected` is NULL.
 */
static kl_cu_result differs(kli_runner_ctx *c, kl_cu_ptr from, uint64_t bytes, const char *expected,
                            uint8_t guard, bool *out) {
    kli_cuda *r = kli_cuda_of(c);
    char *piece = malloc(COMPARE_BYTES);
    kl_cu_result error = KL_CU_OK;
    if (!piece) kl_oom(COMPARE_BYTES);
    for (uint64_t done = 0; done < bytes && !error && !*out;) {
        size_t n = bytes - done < COMPARE_BYTES ? (size_t)(bytes - done) : COMPARE_BYTES;
        error = r->api->copy_out(piece, from + done, n, r->stream);
        if (!error) error = r->api->stream_sync(r->stream);
        for (size_t i = 0; !error && !expected && i < n; i++)
            *out = *out || (uint8_t)piece[i] != guard;
        if (!error && expected) *out = memcmp(piece, expected + done, n) != 0;
        done += n;
    }
    free(piece);
    return error;
}

/* Which input of a set, or which guard of one, is not what was uploaded. */
static int find_changed_input(kli_runner_ctx *c, uint32_t set, kl_msg_reply *reply) {
    for (uint32_t i = 0; i < c->plan.n_tensors; i++) {
        const kl_plan_tensor *t = &c->plan.tensors[i];
        if (t->role != KLI_ROLE_INPUT) continue;
        kli_zone z = kli_zone_of(c->layout.tensor_offset[i], t->bytes);
        kl_cu_ptr base = kli_cuda_of(c)->inputs + c->layout.set_bytes * set;
        const uint8_t guard = kli_cuda_of(c)->slack[set];
        bool data = false, low = false, high = false;
        kl_cu_result error =
            differs(c, base + z.data, t->bytes, kli_ctx_tensor(c, i, set, 0), guard, &data);
        if (!error) error = differs(c, base + z.low, z.data - z.low, NULL, guard, &low);
        if (!error) error = differs(c, base + z.data_end, z.high - z.data_end, NULL, guard, &high);
        if (error) return kli_cuda_fail(c, reply, error, "comparing input `%s`", t->name);
        if (data) return kli_reply_fault(reply, KL_FAULT_INPUT, 0, "wrote to input `%s`", t->name);
        /* A zone between two inputs is seen from both: the end of the first is the likelier story,
         * and comes first. */
        if (high)
            return kli_reply_fault(reply, KL_FAULT_GUARD, 0, "wrote past the end of input `%s`",
                                   t->name);
        if (low)
            return kli_reply_fault(reply, KL_FAULT_GUARD, 0,
                                   "wrote before the beginning of input `%s`", t->name);
    }
    return 0;
}

int kli_cuda_check_inputs(kli_runner_ctx *c, uint32_t set, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    uint64_t now = 0;
    if (!r->inputs) return 0;
    if (!r->digest) return find_changed_input(c, set, reply);
    kl_cu_result error = take_digest(c, set, &now);
    if (error) return kli_cuda_fail(c, reply, error, "checking input set %u", set);
    if (now == r->digests[set]) return 0;
    if (find_changed_input(c, set, reply)) return 1;
    return kli_reply_fault(reply, KL_FAULT_INPUT, 0,
                           "wrote to input set %u while it was being checked", set);
}

/* ---- slots ------------------------------------------------------------------------------- */

/* The same `bytes` at `offset` of n slots: one call for all, since hundreds of small fills would
 * take longer than the batch. */
static kl_cu_result runner_cuda_memory_fill_rows(const kli_cuda *r, kl_cu_ptr base, uint64_t pitch,
                                                 uint64_t offset, uint64_t bytes, uint32_t n,
                                                 uint8_t value) {
    return bytes ? r->api->fill_rows(base + offset, pitch, value, bytes, n, r->stream) : KL_CU_OK;
}

static kl_cu_result restore_mutable(kli_runner_ctx *c, uint32_t tensor, uint32_t first,
                                    uint32_t n) {
    kl_cu_result error = KL_CU_OK;
    for (uint32_t slot = first; slot < first + n && !error; slot++)
        error = kli_cuda_of(c)->api->copy_in(kli_cuda_tensor(c, tensor, 0, slot),
                                             kli_ctx_tensor(c, tensor, 0, slot),
                                             c->plan.tensors[tensor].bytes, kli_cuda_of(c)->stream);
    return error;
}

/* Poison in the tensors, its opposite in everything between them. */
static kl_cu_result prepare_outputs(kli_runner_ctx *c, uint32_t first, uint32_t n, uint8_t poison) {
    kli_cuda *r = kli_cuda_of(c);
    const uint64_t pitch = c->layout.slot_bytes;
    const kl_cu_ptr base = r->outputs + pitch * first;
    uint64_t at = 0;
    kl_cu_result error = KL_CU_OK;
    for (uint32_t i = 0; i < c->plan.n_tensors && !error; i++) {
        const kl_plan_tensor *t = &c->plan.tensors[i];
        if (!lives_in_slot(t)) continue;
        const uint64_t offset = c->layout.tensor_offset[i];
        error = runner_cuda_memory_fill_rows(r, base, pitch, at, offset - at, n, poison ^ 0xFF);
        if (!error && t->role == KLI_ROLE_OUTPUT)
            error = runner_cuda_memory_fill_rows(r, base, pitch, offset, t->bytes, n, poison);
        if (!error && t->role == KLI_ROLE_MUTABLE && t->bytes)
            error = restore_mutable(c, i, first, n);
        at = offset + t->bytes;
    }
    return error || !r->outputs
               ? error
               : runner_cuda_memory_fill_rows(r, base, pitch, at, pitch - at, n, poison ^ 0xFF);
}

static kl_cu_result prepare_scratch(kli_runner_ctx *c, uint32_t first, uint32_t n, uint8_t poison) {
    kli_cuda *r = kli_cuda_of(c);
    const uint64_t pitch = c->layout.scratch_bytes;
    const kl_cu_ptr base = r->scratch + pitch * first;
    uint64_t at = 0;
    kl_cu_result error = KL_CU_OK;
    for (uint32_t i = 0; i < c->plan.n_buffers && !error; i++) {
        const kl_plan_buffer *b = &c->plan.buffers[i];
        const uint64_t offset = c->layout.buffer_offset[i];
        error = runner_cuda_memory_fill_rows(r, base, pitch, at, offset - at, n, poison ^ 0xFF);
        if (!error)
            error = runner_cuda_memory_fill_rows(r, base, pitch, offset, b->bytes, n,
                                                 b->zero ? 0 : poison);
        at = offset + b->bytes;
    }
    return error || !r->scratch
               ? error
               : runner_cuda_memory_fill_rows(r, base, pitch, at, pitch - at, n, poison ^ 0xFF);
}

int kli_cuda_prepare_slots(kli_runner_ctx *c, uint32_t first, uint32_t n, uint8_t poison,
                           kl_msg_reply *reply) {
    for (uint32_t done = 0; done < n;) { /* slots wrap around */
        const uint32_t slot = (first + done) % c->layout.n_slots, rest = c->layout.n_slots - slot;
        const uint32_t run = n - done < rest ? n - done : rest;
        kl_cu_result error = prepare_outputs(c, slot, run, poison);
        if (!error) error = prepare_scratch(c, slot, run, poison);
        if (error) return kli_cuda_fail(c, reply, error, "preparing output slots from %u", slot);
        done += run;
    }
    return 0;
}

int kli_cuda_fetch_slot(kli_runner_ctx *c, uint32_t slot, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = KL_CU_OK;
    for (uint32_t i = 0; i < c->plan.n_tensors && !error; i++) {
        const kl_plan_tensor *t = &c->plan.tensors[i];
        if (!lives_in_slot(t) || t->bytes == 0) continue;
        error = r->api->copy_out(kli_ctx_tensor(c, i, 0, slot), kli_cuda_tensor(c, i, 0, slot),
                                 t->bytes, r->stream);
    }
    if (!error) error = r->api->stream_sync(r->stream);
    return error ? kli_cuda_fail(c, reply, error, "bringing back output slot %u", slot) : 0;
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

static int check_zone(kli_runner_ctx *c, kl_cu_ptr base, kli_zone z, uint8_t value,
                      const char *name, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    guard_copy copy;
    KL_ASSERT(z.data - z.low <= sizeof copy.low && z.high - z.data_end <= sizeof copy.high);
    kl_cu_result error = r->api->copy_out(copy.low, base + z.low, z.data - z.low, r->stream);
    if (!error)
        error = r->api->copy_out(copy.high, base + z.data_end, z.high - z.data_end, r->stream);
    if (!error) error = r->api->stream_sync(r->stream);
    if (error) return kli_cuda_fail(c, reply, error, "reading the guards of `%s`", name);
    if (!runner_cuda_memory_whole(copy.high, z.high - z.data_end, value))
        return kli_reply_fault(reply, KL_FAULT_GUARD, 0, "wrote past the end of `%s`", name);
    if (!runner_cuda_memory_whole(copy.low, z.data - z.low, value))
        return kli_reply_fault(reply, KL_FAULT_GUARD, 0, "wrote before the beginning of `%s`",
                               name);
    return 0;
}

int kli_cuda_check_guards(kli_runner_ctx *c, uint32_t slot, uint8_t poison, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    uint8_t value = (uint8_t)(poison ^ 0xFF);
    for (uint32_t i = 0; i < c->plan.n_tensors; i++) {
        const kl_plan_tensor *t = &c->plan.tensors[i];
        if (!lives_in_slot(t)) continue;
        kli_zone z = kli_zone_of(c->layout.tensor_offset[i], t->bytes);
        if (check_zone(c, r->outputs + c->layout.slot_bytes * slot, z, value, t->name, reply))
            return 1;
    }
    for (uint32_t i = 0; i < c->plan.n_buffers; i++) {
        const kl_plan_buffer *b = &c->plan.buffers[i];
        kli_zone z = kli_zone_of(c->layout.buffer_offset[i], b->bytes);
        if (check_zone(c, r->scratch + c->layout.scratch_bytes * slot, z, value, b->name, reply))
            return 1;
    }
    return 0;
}

int kli_cuda_fetch(kli_runner_ctx *c, const kl_msg_fetch *m, kl_msg_reply *reply) {
    return kli_cuda_check_guards(c, m->slot, (uint8_t)m->poison, reply) ||
           kli_cuda_fetch_slot(c, m->slot, reply);
}

/* ---- cache ------------------------------------------------------------------------------- */

/* The value alternates, so that no line is written with what it holds already. */
int kli_cuda_flush(kli_runner_ctx *c, kl_msg_reply *reply) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = r->api->fill(r->flush, r->flush_byte ^= 0xFF, r->flush_bytes, r->stream);
    return error ? kli_cuda_fail(c, reply, error, "flushing the cache") : 0;
}
