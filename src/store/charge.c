/* charge.c - the ledger; nothing else writes it.
 *
 *   (none) --reserve--> reserved --settle--> settled   the answer and its price in one transaction
 *                          |---release--> released     nothing was sent, or it cost nothing
 *                          |---lose-----> lost         sent and never answered: counts in full
 *                          |---break off> lost         answered in part: counts for what arrived
 *                          '---reserve--> taken over (repeatable), or lost and the next attempt
 *
 * What was released counts 0 and may be reserved again; what was lost stays, and the next attempt
 * is a new row.
 *
 * Reading, summing and writing are one transaction in which nobody else writes, so processes that
 * reserve at the same moment see each other, and no cap is passed, not by one call and not across a
 * crash (law 6).  The states and the sums are here and not in a member, so this holds for each of
 * them.
 * Not here: prices (model/), whether to ask at all (run/ask.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include <string.h>

static const kl_str RESERVED = {"reserved", 8}, SETTLED = {"settled", 7}, LOST = {"lost", 4},
                    RELEASED = {"released", 8};

static bool charge_is(const kl_store_charge *c, kl_str state) { return kl_str_eq(c->state, state); }

/* The newest attempt of an effect; without a state where there is none. */
static kl_err last_attempt(kl_store_charge *last, kl_store *s, kl_arena *a, kl_str effect,
                           kl_error *e) {
    const kli_query q = {
        .table = &kli_charges, .match = {{"effect", .text = effect}}, .order = KLI_NEWEST_FIRST};
    *last = (kl_store_charge){.effect = effect};
    const kl_err err = kli_first(last, s, a, &q, e);
    return err == KL_ENOENT ? KL_OK : err;
}

/* ---- what is committed --------------------------------------------------------------- */

/* What a charge takes from the caps: nobody knows what a lost call cost, so what is still reserved
 * for it counts. */
static int64_t counts_for(const kl_store_charge *c) {
    return charge_is(c, SETTLED)    ? c->settled_microusd
           : charge_is(c, RELEASED) ? 0
                                    : c->reserved_microusd;
}

typedef struct {
    const kl_store_charge *but; /* this attempt is about to be written anew */
    int64_t track, run;
} sums;

/* Amounts are not negative.  What calls cost may be above every cap: a sum ends, not wraps. */
static void charge_add(int64_t *sum, int64_t amount) {
    *sum = amount > INT64_MAX - *sum ? INT64_MAX : *sum + amount;
}

static kl_err charge_add_charge(void *ctx, const void *row) {
    sums *so_far = ctx;
    const kl_store_charge *c = row, *but = so_far->but;
    if (c->attempt == but->attempt && kl_str_eq(c->effect, but->effect)) return KL_OK;
    const int64_t amount = counts_for(c) > 0 ? counts_for(c) : 0; /* no row makes room for others */
    charge_add(&so_far->run, amount);
    if (kl_str_eq(c->track, but->track)) charge_add(&so_far->track, amount);
    return KL_OK;
}

static kl_err sum_committed(sums *out, kl_store *s, const kl_store_charge *but, kl_error *e) {
    const kli_query q = {.table = &kli_charges, .match = {{"run", .text = but->run}}};
    *out = (sums){.but = but};
    return s->ops->each(s->self, &q, charge_add_charge, out, e);
}

/* What it cost and for what, into the row that was reserved. */
static void charge_take_cost(kl_store_charge *row, const kl_store_charge *c) {
    row->settled_microusd = c->settled_microusd;
    row->input = c->input;
    row->cache_read = c->cache_read;
    row->cache_write_5m = c->cache_write_5m;
    row->cache_write_1h = c->cache_write_1h;
    row->output = c->output;
    row->estimated = c->estimated;
    row->price_date = c->price_date;
}

/* ---- reserve ------------------------------------------------------------------------- */

static int64_t left_of(int64_t cap, int64_t spent) { return cap > spent ? cap - spent : 0; }

/* What is left may do, where it is not less than the least. */
static kl_err fit_cap(kl_store_charge *c, int64_t spent, int64_t cap, const char *whose,
                      kl_error *e) {
    const int64_t asked = c->reserved_microusd, left = left_of(cap, spent);
    if (asked <= left) return KL_OK;
    if (c->least_microusd > 0 && c->least_microusd <= left) {
        c->reserved_microusd = left;
        return KL_OK;
    }
    kl_fail(e, KL_EBUDGET, NULL,
            "the next call could cost $%.4f, and of the %s's $%.2f only $%.4f is left",
            (double)asked * 1e-6, whose, (double)cap * 1e-6, (double)left * 1e-6);
    return kl_hint(e,
                   "re-run with a larger --budget to continue; completed calls are not repeated");
}

static kl_err fit_caps(kl_store_charge *c, kl_store *s, int64_t track_cap, int64_t run_cap,
                       kl_error *e) {
    sums so_far;
    kl_err err = sum_committed(&so_far, s, c, e);
    if (!err) err = fit_cap(c, so_far.track, track_cap, "track", e);
    if (!err && run_cap > 0) err = fit_cap(c, so_far.run, run_cap, "run", e);
    if (err) return err;
    KL_ASSERT(c->reserved_microusd <= left_of(track_cap, so_far.track)); /* law 6 */
    KL_ASSERT(run_cap <= 0 || c->reserved_microusd <= left_of(run_cap, so_far.run));
    return KL_OK;
}

/* The edges of the drawing above. */
static bool may_become(const kl_store_charge *c, kl_str state) {
    if (!c->state.len || charge_is(c, RELEASED)) return kl_str_eq(state, RESERVED);
    if (charge_is(c, LOST)) return kl_str_eq(state, RESERVED) || kl_str_eq(state, SETTLED);
    return charge_is(c, RESERVED);
}

static kl_err put_state(kl_store *s, kl_store_charge *c, kl_str state, kl_error *e) {
    if (!may_become(c, state)) /* law 8: a settled call is never paid again */
        return kl_fail(e, KL_EIO, "journal", "a charge cannot go from '%.*s' to '%.*s'",
                       KL_STR_ARG(c->state), KL_STR_ARG(state));
    c->state = state;
    return kli_put(s, &kli_charges, c, e);
}

static kl_err charge_reserve(kl_store *s, kl_arena *a, kl_store_charge *c, bool repeatable,
                             int64_t track_cap, int64_t run_cap, kl_error *e) {
    kl_store_charge last;
    kl_err err = c->lease ? kli_lease_check(s, c->lease, e) : KL_OK;
    if (!err) err = last_attempt(&last, s, a, c->effect, e);
    if (err) return err;
    if (charge_is(&last, SETTLED))
        return kl_fail(e, KL_EINVAL, s->where, "the call %.*s was answered already",
                       KL_STR_ARG(c->effect));
    if (charge_is(&last, RESERVED) && !repeatable) err = put_state(s, &last, LOST, e);
    kl_store_charge next = *c;
    charge_take_cost(
        &next, &(kl_store_charge){.price_date = c->price_date}); /* of an attempt before, if any */
    next.attempt = last.attempt + charge_is(&last, LOST);
    if (!err) err = fit_caps(&next, s, track_cap, run_cap, e);
    next.state = last.state;
    KL_ASSERT(next.attempt >= last.attempt);
    if (!err) err = put_state(s, &next, RESERVED, e);
    if (!err) c->reserved_microusd = next.reserved_microusd;
    return err;
}

kl_err kl_store_reserve(kl_store *s, kl_store_charge *c, bool repeatable, int64_t track_cap,
                        int64_t run_cap, kl_error *e) {
    if (c->reserved_microusd < 0)
        return kl_fail(e, KL_EINVAL, s->where, "less than nothing cannot be reserved");
    kl_err err = kli_begin(s, "reserve money", e);
    if (err) return err;
    kl_arena *scratch = kl_arena_new();
    err = charge_reserve(s, scratch, c, repeatable, track_cap, run_cap, e);
    kl_arena_free(scratch);
    if (err != KL_EBUDGET) return kli_end(s, err, "reserve money", e);
    kl_error why = {0}; /* that an earlier attempt was lost is true, whatever this one may cost */
    const kl_err end = kli_end(s, KL_OK, "write the ledger", &why);
    if (end && e) *e = why;
    return end ? end : err;
}

/* ---- leaving `reserved` -------------------------------------------------------------- */

static kl_err charge_settle(kl_store *s, kl_arena *a, const kl_store_effect *f,
                            const kl_store_charge *c, kl_error *e) {
    kl_store_charge last;
    kl_err err = last_attempt(&last, s, a, c->effect, e);
    if (err || charge_is(&last, SETTLED))
        return err; /* somebody else was first; his answer stands */
    if (!charge_is(&last, RESERVED) &&
        !charge_is(&last, LOST)) /* lost: it was answered after all */
        return kl_fail(e, KL_EINVAL, s->where, "nothing is reserved for the call %.*s",
                       KL_STR_ARG(c->effect));
    charge_take_cost(&last, c);
    err = kl_store_effect_put(s, f, e);
    return err ? err : put_state(s, &last, SETTLED, e);
}

kl_err kl_store_settle(kl_store *s, const kl_store_effect *f, const kl_store_charge *c,
                       kl_error *e) {
    KL_ASSERT(kl_str_eq(f->key, c->effect));
    const kl_err err = kli_begin(s, "settle a call", e);
    if (err) return err;
    kl_arena *scratch = kl_arena_new();
    const kl_err settled = charge_settle(s, scratch, f, c, e);
    kl_arena_free(scratch);
    return kli_end(s, settled, "settle a call", e);
}

/* To another state; a charge that is not reserved is left alone.  `cost`: what a broken answer can
 * have cost; NULL: nothing is known. */
static kl_err charge_leave(kl_store *s, kl_str effect, kl_str state, const kl_store_charge *cost,
                           kl_error *e) {
    kl_store_charge last;
    kl_err err = kli_begin(s, "write the ledger", e);
    if (err) return err;
    kl_arena *scratch = kl_arena_new();
    err = last_attempt(&last, s, scratch, effect, e);
    if (!err && charge_is(&last, RESERVED)) {
        if (cost) {
            charge_take_cost(&last, cost);
            last.settled_microusd = 0;
            KL_ASSERT(cost->settled_microusd >= 0);
            if (cost->settled_microusd < last.reserved_microusd)
                last.reserved_microusd = cost->settled_microusd;
        }
        err = put_state(s, &last, state, e);
    }
    kl_arena_free(scratch);
    return kli_end(s, err, "write the ledger", e);
}

kl_err kl_store_release(kl_store *s, const char *effect, kl_error *e) {
    return charge_leave(s, kl_str_of(effect), RELEASED, NULL, e);
}

kl_err kl_store_lose(kl_store *s, const char *effect, kl_error *e) {
    return charge_leave(s, kl_str_of(effect), LOST, NULL, e);
}

kl_err kl_store_break_off(kl_store *s, const kl_store_charge *c, kl_error *e) {
    return charge_leave(s, c->effect, LOST, c, e);
}

/* ---- list ---------------------------------------------------------------------------- */

kl_err kl_store_charge_list(kl_store_charge **rows, size_t *n, kl_store *s, kl_arena *a,
                            const char *run, kl_error *e) {
    kli_query q = {.table = &kli_charges};
    if (run) q.match[0] = (kli_match){"run", .text = kl_str_of(run)};
    return kli_list(rows, n, s, a, &q, e);
}
