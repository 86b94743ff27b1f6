/* digest.c - every call of every timed batch of the candidate is looked at.
 *
 *   batch -> a digest per slot: outputs and the guards around them (hashed in the shared pages, or
 * on the device by our own code)
 *         -> known: the oracle found a slot of this input set with these very bits right nothing to
 * do
 *         -> not known: compared in full with the oracle right: known from now on
 *
 * After the first batches every set of a deterministic kernel is known, and a call that was
 * skipped, cut short or answered from another call's slot is seen in the batch in which it happens.
 * A kernel whose bits differ from call to call (atomics) is compared in full again and again, which
 * is slower and no accusation: comparing ends for a batch where it took its share of the
 * comparison, and goes on with a few calls drawn at random.  A slot that still holds poison is
 * never left out.
 *
 * A timed answer that is wrong is asked for once more outside the clock: wrong there too, the
 * kernel is wrong on these inputs; right there, it works when it is looked at. Deliberately not
 * here: how a batch is timed (benchmark.c), arithmetic (compare.c).  SPDX-License-Identifier:
 * Apache-2.0 */
#include "gate_impl.h"

#include "base/fs.h"
#include "base/hash.h"

#include <string.h>

static const int64_t FREE_NS =
                         100000000, /* comparing and asking the oracle: so much at once, ... */
    FREE_THERE_NS = 75000000;       /* as many calls where the oracle works on a device, ... */
static const int64_t DIGEST_SHARE =
    4; /* ... and this part of the time that the comparison has taken */
static const uint64_t KEPT_BYTES =
    1ull << 30; /* of the oracle's answers; what goes is asked for again */
static const uint64_t TOGETHER_BYTES = 16u << 20;       /* of outputs that are asked for at once */
static const int64_t CONFIRM_NS = 120ll * 1000000000ll; /* the run that confirms a wrong answer */

void kli_digests_begin(kli_digests *d, kli_evaluation *c, const char *name) {
    *d = (kli_digests){.draws = {kli_seed_derive(c->schedule.key, name, 1)},
                       .start_ns = kli_now_ns()};
}

static uint32_t kind_of(uint8_t poison) { return poison == KL_POISON_NAN; }
static uint32_t digest_slot_of(const kli_problem *s, const kli_batch *b, uint32_t call) {
    return (b->first + call) % s->n_slots;
}
static uint32_t digest_set_of(const kli_problem *s, const kli_batch *b, uint32_t call) {
    return (b->first + call) % s->n_sets;
}

/* Where there are more calls than slots, the last ones are what lies in them. */
static bool still_there(const kli_problem *s, const kli_batch *b, uint32_t call) {
    return call + s->n_slots >= b->calls;
}

static uint64_t digest_of(const kli_problem *s, const kli_batch *b, uint32_t call) {
    const uint64_t bytes = s->memory.layout.slot_bytes;
    if (b->digests) return b->digests[call];
    return kli_hash_bulk(s->memory.outputs + bytes * digest_slot_of(s, b, call), bytes);
}

static bool digest_is_known(const kli_digests *d, const kli_problem *s, const kli_batch *b,
                            uint32_t call, uint64_t digest) {
    KL_ASSERT(call < b->calls);
    const uint32_t set = digest_set_of(s, b, call), kind = kind_of(b->poison);
    return d->known[kind][set] && d->good[kind][set] == digest;
}

static bool is_all(const uint8_t *data, uint8_t byte, uint64_t bytes) {
    return data[0] == byte && memcmp(data, data + 1, bytes - 1) == 0;
}

/* An output of which no byte was written, here. */
static bool holds_poison(const kli_problem *s, uint32_t slot, uint8_t poison) {
    for (uint32_t i = 0; i < s->plan.n_tensors; i++) {
        const kl_plan_tensor *t = &s->plan.tensors[i];
        if (t->role == KL_ROLE_OUTPUT && t->bytes &&
            is_all(kli_memory_output(&s->memory, &s->plan, i, slot), poison, t->bytes))
            return true;
    }
    return false;
}

/* A call that wrote nothing.  A right answer may look so, therefore it is compared and not
 * condemned. */
static bool is_blank(const kli_problem *s, const kli_batch *b, uint32_t call) {
    if (b->here) return holds_poison(s, digest_slot_of(s, b, call), b->poison);
    return b->blank && digest_of(s, b, call) == b->blank;
}

bool kli_slot_is_ready(const kli_problem *s, uint32_t set, uint32_t slot, uint8_t poison) {
    KL_ASSERT(set < s->n_sets && slot < s->n_slots);
    for (uint32_t i = 0; i < s->plan.n_tensors; i++) {
        const uint64_t bytes = s->plan.tensors[i].bytes;
        if (!kli_is_output(&s->plan, i) || !bytes) continue;
        const uint8_t *data = kli_memory_output(&s->memory, &s->plan, i, slot);
        const bool as_it_was = kli_is_mutable(&s->plan, i)
                                   ? memcmp(data, s->pristine[set][i], bytes) == 0
                                   : is_all(data, poison, bytes);
        if (!as_it_was) return false;
    }
    return kli_memory_guard_damage(&s->memory, &s->plan, slot, poison) < 0;
}

/* The calls whose digest is not known and whose outputs are there: in random order, blank ones
 * first. */
static uint32_t list_unknown(uint32_t *calls, uint32_t *n_blank, kli_digests *d,
                             const kli_problem *s, const kli_batch *b) {
    uint32_t n = 0;
    *n_blank = 0;
    for (uint32_t j = 0; j < b->calls; j++)
        if (still_there(s, b, j) && !digest_is_known(d, s, b, j, digest_of(s, b, j)))
            calls[n++] = j;
    KL_ASSERT(n <= b->calls && n <= s->n_slots); /* a slot holds one answer */
    kli_stream_shuffle((kl_stream){kli_stream_u64(d->draws, d->batches)}, calls, n);
    for (uint32_t k = 0; k < n; k++) {
        if (!is_blank(s, b, calls[k])) continue;
        const uint32_t blank = calls[k];
        calls[k] = calls[*n_blank];
        calls[(*n_blank)++] = blank;
    }
    return n;
}

static uint64_t answer_bytes(const kli_problem *s) {
    uint64_t all = 0;
    for (uint32_t set = 0; set < s->n_sets; set++)
        for (uint32_t i = 0; i < s->plan.n_tensors; i++)
            if (s->expected[set][i]) all += s->oracle_plan.tensors[i].bytes;
    return all;
}

/* The same inputs, the same slot, no clock. */
static kl_err confirm(kli_evaluation *c, kli_problem *s, uint32_t set, uint32_t slot,
                      uint8_t poison, kli_check_outcome *f, kl_error *e) {
    kli_check_outcome again = {.ok = true};
    kl_fault fault = {0};
    int64_t wall = 0;
    kli_problem_ready_slot(s, set, slot, poison);
    kl_err err = kli_output_run(s, &c->candidate, &(kli_run){set, slot, poison, CONFIRM_NS}, &fault,
                                &wall, e);
    if (!err && !fault.kind) err = kli_check_slot(c, s, set, slot, poison, false, &again, e);
    if (err) return err;
    if (!fault.kind && again.ok) {
        f->why = kl_arena_printf(
            c->arena, "a timed run went wrong where the checked runs were right: %s", f->why.ptr);
        if (f->outcome == KL_OUTCOME_WRONG) f->outcome = KL_OUTCOME_CHEAT;
    } else {
        f->why =
            kl_arena_printf(c->arena, "on inputs that were drawn for the profile: %s", f->why.ptr);
    }
    return KL_OK;
}

/* The data of a right answer over the other poison: only the guards are new. */
static bool is_right_as_before(const kli_evaluation *c, const kli_problem *s, uint32_t set,
                               uint32_t slot, uint8_t poison) {
    if (!s->is_right[set] || s->right_print[set] != kli_slot_print(s, slot)) return false;
    return !c->backend->shared_memory ||
           kli_memory_guard_damage(&s->memory, &s->plan, slot, poison) < 0;
}

/* The outputs of so many calls are asked for at once. */
static uint32_t together(const kli_problem *s) {
    const uint64_t fit = TOGETHER_BYTES / s->memory.layout.slot_bytes;
    return fit < KLI_LEAST_CALLS  ? KLI_LEAST_CALLS
           : fit > KL_FETCH_SLOTS ? KL_FETCH_SLOTS
                                  : (uint32_t)fit;
}

/* Those whose answers are not known by their prints: found right or not where they lie. */
static kl_err foresee(kli_evaluation *c, kli_problem *s, const kli_batch *b, const uint32_t *calls,
                      uint32_t n, kl_error *e) {
    uint32_t sets[KL_FETCH_SLOTS], slots[KL_FETCH_SLOTS], k = 0;
    for (uint32_t i = 0; i < n; i++) {
        sets[k] = digest_set_of(s, b, calls[i]);
        slots[k] = digest_slot_of(s, b, calls[i]);
        k += !is_right_as_before(c, s, sets[k], slots[k], b->poison);
    }
    return kli_answers_foresee(s, c, sets, slots, k, e);
}

/* The outputs of these calls, where they lie on a device, and not before the batch is over. */
static kl_err bring(kli_evaluation *c, kli_problem *s, const kli_batch *b, const uint32_t *calls,
                    uint32_t n, kli_check_outcome *f, kl_error *e) {
    uint32_t slots[KL_FETCH_SLOTS];
    kl_fault fault = {0};
    KL_ASSERT(n >= 1 && n <= KL_FETCH_SLOTS);
    if (b->here) return KL_OK;
    for (uint32_t i = 0; i < n; i++) slots[i] = digest_slot_of(s, b, calls[i]);
    const kl_err err = kli_output_fetch(s, &c->candidate, slots, n, b->poison, &fault, e);
    if (!err) kli_check_outcome_of_fault(f, c, &fault, "while it was timed");
    return err || !f->ok ? err : foresee(c, s, b, calls, n, e);
}

/* Have the oracle answer for the inputs of a call whose outputs are here, compare. */
static kl_err compare_call(kli_digests *d, kli_evaluation *c, kli_problem *s, const kli_batch *b,
                           uint32_t call, kli_check_outcome *f, kl_error *e) {
    const uint32_t set = digest_set_of(s, b, call), slot = digest_slot_of(s, b, call),
                   kind = kind_of(b->poison);
    const uint64_t digest =
        digest_of(s, b, call); /* before the oracle runs: nothing it does may be in there */
    KL_ASSERT(f->ok && set < s->n_sets && slot < s->n_slots);
    if (!is_right_as_before(c, s, set, slot, b->poison)) {
        kl_err err = kli_problem_answer(s, c, set, e);
        if (!err) err = kli_check_slot(c, s, set, slot, b->poison, false, f, e);
        if (err) return err;
        if (!f->ok) return confirm(c, s, set, slot, b->poison, f, e);
        s->right_print[set] = kli_slot_print(s, slot);
        s->is_right[set] = true;
    }
    d->good[kind][set] = digest;
    d->known[kind][set] = true;
    if (set > 0 && answer_bytes(s) > KEPT_BYTES) kli_problem_forget(s, set);
    return KL_OK;
}

/* Of all calls where all were brought, else of these. */
static void hide_outputs(kli_problem *s, const kli_evaluation *c, const kli_batch *b,
                         const uint32_t *brought, uint32_t n) {
    for (uint32_t i = 0; i < (b->here ? b->calls : n); i++) {
        const uint32_t call = b->here ? i : brought[i];
        kli_problem_hide_slot(s, c, digest_set_of(s, b, call), digest_slot_of(s, b, call));
    }
}

static bool may_go_on(const kli_digests *d, bool here) {
    const int64_t benchmark_ns = kli_now_ns() - d->start_ns - d->spent_ns;
    return d->spent_ns < (here ? FREE_NS : FREE_THERE_NS) + benchmark_ns / DIGEST_SHARE;
}

kl_err kli_digests_judge(kli_digests *d, kli_evaluation *c, kli_problem *s, const kli_batch *b,
                         kli_check_outcome *f, kl_error *e) {
    uint32_t unknown[KL_MAX_SETS], n_blank;
    KL_ASSERT(b->calls <= KL_MAX_SETS && (b->digests || b->here));
    KL_ASSERT(s->n_sets >= 1 && s->n_sets <= KL_MAX_SETS && s->n_slots >= 1);
    KL_ASSERT(b->poison == KL_POISON_NAN || b->poison == KL_POISON_BITS);
    if (!c->oracle) return KL_OK;
    if (d->problem != s) memset(d->known, 0, sizeof d->known); /* other inputs, same numbers */
    d->problem = s;
    const uint32_t n = list_unknown(unknown, &n_blank, d, s, b), most = together(s);
    d->batches++;
    uint32_t k = 0, brought = 0;
    for (; k < n && f->ok; k++) {
        if (k >= KLI_LEAST_CALLS && k >= n_blank && !may_go_on(d, b->here)) break;
        const int64_t start = kli_now_ns();
        kl_err err = KL_OK;
        if (k == brought) {
            brought = n - k < most ? n : k + most;
            err = bring(c, s, b, unknown + k, brought - k, f, e);
        }
        if (!err && f->ok) err = compare_call(d, c, s, b, unknown[k], f, e);
        d->spent_ns += kli_now_ns() - start;
        if (err) return err;
    }
    for (uint32_t j = 0; j < b->calls && f->ok && !d->differs; j++)
        d->differs = !still_there(s, b, j) && !digest_is_known(d, s, b, j, digest_of(s, b, j));
    hide_outputs(s, c, b, unknown, brought);
    return KL_OK;
}
