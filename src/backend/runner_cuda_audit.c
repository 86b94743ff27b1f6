/* runner_cuda_audit.c - what a run or a batch left behind, looked at on the device when it is over.
 *
 *   guards   one launch over all of them counts the bytes that are not as they were set
 *   inputs   one launch takes the digests of all sets
 *   outputs  stay where they are, but for the slots that the gate asks for
 *
 * All of it is enqueued before the one wait.  A finding is explained by the slow way, which brings
 * back what it looks at and so knows names; where our device code cannot run, that way looks at
 * everything.  Nothing here happens before the calls have ended, and no call is told what will: the
 * table of guards is written anew each time, since device code could find it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_cuda.h"
#include <string.h>

#define GUARD_THREADS 256u

/* The bytes between the pieces of a region, before the first and behind the last. */
static uint32_t list_guards(const kli_runner_ctx *c, kli_region region, kli_cuda_span *out) {
    const uint64_t pitch = kli_region_stride(&c->layout, region);
    const kl_cu_ptr base = kli_cuda_of(c)->pages[region].base;
    uint64_t at = 0;
    uint32_t n = 0;
    if (!base) return 0;
    for (kli_piece p = {0}; kli_piece_next(&p, &c->plan, &c->layout);) {
        if (p.region != region) continue;
        out[n++] = (kli_cuda_span){base + at, p.zone.data - at, pitch};
        at = p.zone.data_end;
    }
    out[n++] = (kli_cuda_span){base + at, pitch - at, pitch};
    return n;
}

kl_cu_result kli_cuda_count_damage(const kli_cuda *r, uint32_t n_spans, uint32_t first, uint32_t n,
                                   uint32_t copies, uint8_t value) {
    kl_cu_ptr spans = r->guard_spans, sum = r->digest_sum;
    uint64_t from = first, all = copies, wanted = value;
    void *arguments[] = {&spans, &from, &all, &wanted, &sum};
    kli_cu_launch_config config = {
        .grid = {n_spans, n, 1}, .block = {GUARD_THREADS, 1, 1}, .stream = r->stream};
    KL_ASSERT(n_spans <= KLI_CUDA_SPANS && copies > 0);
    return n_spans && n ? r->api->launch(&config, r->guards, arguments, NULL) : KL_CU_OK;
}

/* Nothing is counted yet. */
static kl_cu_result begin_count(const kli_runner_ctx *c, uint32_t *n_spans) {
    static kli_cuda_span spans[KLI_CUDA_SPANS]; /* the copy may still be under way */
    const kli_cuda *r = kli_cuda_of(c);
    *n_spans = list_guards(c, KLI_OUTPUTS, spans);
    *n_spans += list_guards(c, KLI_SCRATCH, spans + *n_spans);
    KL_ASSERT(*n_spans <= KLI_CUDA_SPANS);
    kl_cu_result error =
        r->api->copy_in(r->guard_spans, spans, *n_spans * sizeof *spans, r->stream);
    return error ? error : r->api->fill(r->digest_sum, 0, sizeof(uint64_t), r->stream);
}

static kl_cu_result read_count(const kli_cuda *r, uint64_t *damaged) {
    return r->api->copy_out(damaged, r->digest_sum, sizeof *damaged, r->stream);
}

static kl_cu_result enqueue_guards(kli_runner_ctx *c, const kli_cuda_left *left,
                                   uint64_t *damaged) {
    kli_cuda *r = kli_cuda_of(c);
    uint32_t n_spans = 0;
    *damaged = !r->guards; /* by the slow way */
    if (!r->guards) return KL_CU_OK;
    kl_cu_result error = begin_count(c, &n_spans);
    if (!error)
        error = kli_cuda_count_damage(r, n_spans, left->slot, left->n_slots, c->layout.n_slots,
                                      left->poison ^ 0xFF);
    return error ? error : read_count(r, damaged);
}

static kl_cu_result enqueue_inputs(kli_runner_ctx *c, const kli_cuda_left *left, uint64_t *now) {
    kli_cuda *r = kli_cuda_of(c);
    if (!r->digest || !r->pages[KLI_INPUTS].base || !left->n_sets) return KL_CU_OK;
    kl_cu_result error = kli_cuda_digest_copies(c, KLI_INPUTS, left->set, left->n_sets, 0);
    return error ? error
                 : r->api->copy_out(now, r->slot_digests, left->n_sets * sizeof *now, r->stream);
}

/* Which guard of these slots it is. */
static int name_damage(kli_runner_ctx *c, uint32_t first, uint32_t n, uint8_t poison) {
    for (uint32_t j = 0; j < n; j++)
        if (kli_cuda_check_guards(c, (first + j) % c->layout.n_slots, poison)) return 1;
    return kli_cuda_of(c)->guards
               ? kli_fault(c, KL_FAULT_GUARD, "wrote to a guard while it was being checked")
               : 0;
}

static int compare_inputs(kli_runner_ctx *c, const kli_cuda_left *left, const uint64_t *now) {
    const kli_cuda *r = kli_cuda_of(c);
    for (uint32_t j = 0; r->pages[KLI_INPUTS].base && j < left->n_sets; j++) {
        const uint32_t set = (left->set + j) % c->layout.n_sets;
        if (r->digest && now[j] == r->digests[set]) continue;
        if (kli_cuda_check_inputs(c, set)) return 1;
        if (r->digest)
            return kli_fault(c, KL_FAULT_INPUT, "wrote to input set %u while it was being checked",
                             set);
    }
    return 0;
}

int kli_cuda_look_over(kli_runner_ctx *c, const kli_cuda_left *left) {
    kli_cuda *r = kli_cuda_of(c);
    uint64_t now[KL_MAX_SETS], damaged = 0;
    KL_ASSERT(left->n_slots <= c->layout.n_slots && left->n_sets <= c->layout.n_sets);
    kl_cu_result error = enqueue_guards(c, left, &damaged);
    if (!error) error = enqueue_inputs(c, left, now);
    if (!error) error = kli_cuda_wait(r);
    if (kli_cuda_check(c, error, "looking over %u slots and %u input sets", left->n_slots,
                       left->n_sets))
        return 1;
    return (damaged && name_damage(c, left->slot, left->n_slots, left->poison)) ||
           compare_inputs(c, left, now);
}

static uint32_t audit_most(uint32_t n, uint32_t most) { return n < most ? n : most; }

int kli_cuda_audit(kli_runner_ctx *c, const kl_msg_audit *m) {
    const kl_layout *l = &c->layout;
    const kli_cuda_left left = {m->first % l->n_slots, audit_most(m->calls, l->n_slots),
                                m->first % l->n_sets, audit_most(m->calls, l->n_sets),
                                (uint8_t)m->poison};
    return kli_cuda_look_over(c, &left);
}

/* ---- prints ------------------------------------------------------------------------------ */

enum { PAIR_BYTES = 16 }; /* what the digest's kernel loads at once */
typedef struct {
    uint64_t bytes[2];
} last_pair; /* of a piece, zeros behind its end */

static bool is_printed(const kli_piece *p) { return p->region == KLI_OUTPUTS && p->bytes; }

/* Of the data alone, one word for each piece. */
static kl_cu_result enqueue_print(kli_runner_ctx *c, uint32_t slot, kl_cu_ptr word,
                                  last_pair *last) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = KL_CU_OK;
    for (kli_piece p = {0}; !error && kli_piece_next(&p, &c->plan, &c->layout);) {
        if (!is_printed(&p)) continue;
        const kl_cu_ptr data = kli_cuda_copy(c, KLI_OUTPUTS, slot) + p.zone.data;
        const uint64_t whole = p.bytes / PAIR_BYTES * PAIR_BYTES;
        const kli_cuda_rows row = {data, word, whole / PAIR_BYTES, 0, 1};
        error = kli_cuda_digest(r, &row);
        if (!error && whole < p.bytes)
            error = r->api->copy_out(last, data + whole, p.bytes - whole, r->stream);
        word += sizeof(uint64_t), last++;
    }
    return error;
}

static uint64_t folded_print(kli_runner_ctx *c, const uint64_t *words, const last_pair *last) {
    const kli_cuda *r = kli_cuda_of(c);
    uint64_t h = 0;
    for (kli_piece p = {0}; kli_piece_next(&p, &c->plan, &c->layout);) {
        if (!is_printed(&p)) continue;
        const uint64_t whole = p.bytes / PAIR_BYTES * PAIR_BYTES,
                       rest = whole < p.bytes
                                  ? kli_cuda_digest_here(r, last->bytes, whole, PAIR_BYTES)
                                  : 0;
        h = h * 0x9E3779B97F4A7C15ull + *words++ + rest;
        last++;
    }
    return h;
}

kl_cu_result kli_cuda_print(kli_runner_ctx *c, const uint32_t *slots, uint32_t n, uint64_t *out) {
    static last_pair last[KL_FETCH_SLOTS * KL_MAX_TENSORS]; /* copies may be under way */
    static uint64_t words[KL_FETCH_SLOTS * KL_MAX_TENSORS];
    kli_cuda *r = kli_cuda_of(c);
    _Static_assert(KL_COUNT(words) <= KL_WIRE_MAX_SAMPLES, "there is a word for each");
    KL_ASSERT(n <= KL_FETCH_SLOTS);
    memset(last, 0, sizeof last);
    kl_cu_result error = r->api->fill(r->slot_digests, 0, sizeof words, r->stream);
    for (uint32_t i = 0; i < n && !error; i++)
        error = enqueue_print(c, slots[i], r->slot_digests + i * KL_MAX_TENSORS * sizeof(uint64_t),
                              last + i * KL_MAX_TENSORS);
    if (!error)
        error = kli_cuda_read(r, words, r->slot_digests, n * KL_MAX_TENSORS * sizeof *words);
    for (uint32_t i = 0; i < n && !error; i++)
        out[i] = folded_print(c, words + i * KL_MAX_TENSORS, last + i * KL_MAX_TENSORS);
    return error;
}

/* The slots need not lie side by side: a launch for each, counted together. */
static kl_cu_result count_slots(kli_runner_ctx *c, const uint32_t *slots, uint32_t n,
                                uint8_t poison, uint64_t *damaged) {
    kli_cuda *r = kli_cuda_of(c);
    uint32_t n_spans = 0;
    *damaged = !r->guards; /* by the slow way */
    kl_cu_result error = r->guards ? begin_count(c, &n_spans) : KL_CU_OK;
    for (uint32_t i = 0; i < n && r->guards && !error; i++)
        error = kli_cuda_count_damage(r, n_spans, slots[i], 1, c->layout.n_slots, poison ^ 0xFF);
    if (!error && r->guards) error = read_count(r, damaged);
    return error ? error : kli_cuda_wait(r);
}

int kli_cuda_check_slots(kli_runner_ctx *c, const uint32_t *slots, uint32_t n, uint8_t poison) {
    uint64_t damaged = 0;
    if (kli_cuda_check(c, count_slots(c, slots, n, poison, &damaged),
                       "looking at the guards of %u output slots", n))
        return 1;
    for (uint32_t i = 0; i < n && damaged; i++)
        if (kli_cuda_check_guards(c, slots[i], poison)) return 1;
    return damaged && kli_cuda_of(c)->guards
               ? kli_fault(c, KL_FAULT_GUARD, "wrote to a guard while it was being checked")
               : 0;
}

int kli_cuda_fetch(kli_runner_ctx *c, const kl_msg_fetch *m) {
    kl_cu_result error = KL_CU_OK;
    for (uint32_t i = 0; i < m->n && !m->stays && !error; i++)
        error = kli_cuda_bring(c, m->slots[i]);
    if (kli_cuda_check(c, error, "bringing back %u output slots", m->n)) return 1;
    if (m->stays && kli_cuda_check(c, kli_cuda_print(c, m->slots, m->n, c->reply->prints),
                                   "digests of %u output slots", m->n))
        return 1;
    return kli_cuda_check_slots(c, m->slots, m->n, (uint8_t)m->poison);
}
