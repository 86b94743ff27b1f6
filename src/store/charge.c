/* charge.c - the ledger; nothing else writes it.
 *
 *   (none) --reserve--> reserved --settle--> settled      the answer and its price in one transaction
 *                          |  \--release--> released      nothing was sent, or it cost nothing: counts 0, may be reserved again
 *                          |---lose-------> lost          sent and never answered: counts in full, the next attempt is a new row
 *                          |---break off--> lost          an answer began: counts for the most that what arrived can have cost
 *                          '---reserve----> taken over (repeatable), or lost and the next attempt
 *
 * The sum and the new row are one transaction that may write from its beginning on, so processes that reserve at the same
 * moment see each other, and no cap is passed, not by one call and not across a crash (law 6).
 * Not here: prices (model/), whether to ask at all (run/ask.c).  SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"

/* ---- reserve ------------------------------------------------------------------------------------------------------ */

typedef enum { NONE, RESERVED, SETTLED, LOST, RELEASED } charge_state;

static charge_state state_of(kl_str name) {
    if (kl_str_eq(name, KL_S("reserved"))) return RESERVED;
    if (kl_str_eq(name, KL_S("settled"))) return SETTLED;
    return kl_str_eq(name, KL_S("lost")) ? LOST : RELEASED;
}

/* The newest attempt of an effect. */
static kl_err last_attempt(charge_state *state, int64_t *attempt, kl_store *s, kl_str effect, kl_error *e) {
    sqlite3_stmt *last;
    kl_err err = kli_store_statement(&last, s, KLI_CHARGE_LAST, e);
    *state = NONE;
    *attempt = 0;
    if (err) return err;
    kli_store_bind(last, 1, effect);
    int step = sqlite3_step(last);
    if (step == SQLITE_ROW) {
        *attempt = sqlite3_column_int64(last, 0);
        *state = state_of(kli_store_column(last, 1));
    } else if (step != SQLITE_DONE) {
        err = kli_store_fail(s, "read the ledger", e);
    }
    kli_store_release(last);
    return err;
}

static kl_err set_state(kl_store *s, kl_str effect, int64_t attempt, kl_str state, kl_error *e) {
    sqlite3_stmt *set;
    kl_err err = kli_store_statement(&set, s, KLI_CHARGE_STATE, e);
    if (err) return err;
    kli_store_bind(set, 1, effect);
    sqlite3_bind_int64(set, 2, attempt);
    kli_store_bind(set, 3, state);
    return kli_store_do(s, set, "write the ledger", e);
}

/* What the track and the run have committed, without this attempt. */
static kl_err committed(int64_t *track, int64_t *run, kl_store *s, const kl_store_charge *c, int64_t attempt,
                        kl_error *e) {
    sqlite3_stmt *sums;
    kl_err err = kli_store_statement(&sums, s, KLI_CHARGE_SUMS, e);
    if (err) return err;
    kli_store_bind(sums, 1, c->run);
    kli_store_bind(sums, 2, c->track);
    kli_store_bind(sums, 3, c->effect);
    sqlite3_bind_int64(sums, 4, attempt);
    if (sqlite3_step(sums) == SQLITE_ROW) {
        *track = sqlite3_column_int64(sums, 0);
        *run = sqlite3_column_int64(sums, 1);
    } else {
        err = kli_store_fail(s, "sum the ledger", e);
    }
    kli_store_release(sums);
    return err;
}

/* By subtraction: a sum of two large numbers could wrap, their difference cannot.  What is left may do, where it is not less than the least. */
static kl_err fit_cap(kl_store_charge *c, int64_t spent, int64_t cap, const char *whose, kl_error *e) {
    const int64_t asked = c->reserved_microusd, left = cap > spent ? cap - spent : 0;
    if (asked <= 0 || asked <= left) return KL_OK;
    if (c->least_microusd > 0 && c->least_microusd <= left) return c->reserved_microusd = left, KL_OK;
    kl_fail(e, KL_EBUDGET, NULL, "the next call could cost $%.4f, and of the %s's $%.2f only $%.4f is left",
            (double)asked * 1e-6, whose, (double)cap * 1e-6, (double)left * 1e-6);
    return kl_hint(e, "re-run with a larger --budget to continue; completed calls are not repeated");
}

static kl_err write_reservation(kl_store *s, const kl_store_charge *c, int64_t attempt, kl_error *e) {
    sqlite3_stmt *put;
    kl_err err = kli_store_statement(&put, s, KLI_CHARGE_RESERVE, e);
    if (err) return err;
    const kl_str columns[] = {c->effect, c->run,   c->track,     c->workload,  c->policy,
                              c->phase,  c->model, c->priced_as, c->price_date};
    for (size_t i = 0; i < KL_COUNT(columns); i++) kli_store_bind(put, (int)i + 1, columns[i]);
    sqlite3_bind_int64(put, 10, attempt);
    sqlite3_bind_int64(put, 11, c->reserved_microusd);
    return kli_store_do(s, put, "reserve money", e);
}

static kl_err reserve(kl_store *s, kl_store_charge *c, bool repeatable, int64_t track_cap, int64_t run_cap,
                      kl_error *e) {
    charge_state state;
    int64_t attempt, track = 0, run = 0;
    kl_err err = last_attempt(&state, &attempt, s, c->effect, e);
    if (err) return err;
    if (state == SETTLED)
        return kl_fail(e, KL_EINVAL, s->path, "the call %.*s was answered already", KL_STR_ARG(c->effect));
    if (state == RESERVED && !repeatable) {
        err = set_state(s, c->effect, attempt, KL_S("lost"), e);
        state = LOST;
    }
    if (state == LOST) attempt++;
    if (!err) err = committed(&track, &run, s, c, attempt, e);
    if (!err) err = fit_cap(c, track, track_cap, "track", e);
    if (!err && run_cap > 0) err = fit_cap(c, run, run_cap, "run", e);
    return err ? err : write_reservation(s, c, attempt, e);
}

kl_err kl_store_reserve(kl_store *s, kl_store_charge *c, bool repeatable, int64_t track_cap, int64_t run_cap,
                        kl_error *e) {
    kl_err err = kli_store_begin(s, "reserve money", e);
    if (err) return err;
    err = reserve(s, c, repeatable, track_cap, run_cap, e);
    if (err != KL_EBUDGET) return kli_store_end(s, err, "reserve money", e);
    kl_error unused = {0}; /* that an earlier attempt was lost is true, whatever this one may cost */
    kl_err end = kli_store_end(s, KL_OK, "write the ledger", &unused);
    if (end && e) *e = unused;
    return end ? end : err;
}

/* ---- settle, release, lose ------------------------------------------------------------------------------------------ */

/* What it cost and for what, by the statement that says which state that is. */
static kl_err write_cost(kl_store *s, kli_statement which, const kl_store_charge *c, int64_t attempt, kl_error *e) {
    sqlite3_stmt *put;
    kl_err err = kli_store_statement(&put, s, which, e);
    if (err) return err;
    kli_store_bind(put, 1, c->effect);
    const int64_t columns[] = {attempt,           c->settled_microusd, c->input,  c->cache_read,
                               c->cache_write_5m, c->cache_write_1h,   c->output, c->estimated};
    for (size_t i = 0; i < KL_COUNT(columns); i++) sqlite3_bind_int64(put, (int)i + 2, columns[i]);
    kli_store_bind(put, 10, c->price_date);
    return kli_store_do(s, put, "settle a call", e);
}

static kl_err settle(kl_store *s, const kl_store_effect *f, const kl_store_charge *c, kl_error *e) {
    charge_state state;
    int64_t attempt;
    kl_err err = last_attempt(&state, &attempt, s, c->effect, e);
    if (err || state == SETTLED) return err; /* somebody else was first; his answer stands */
    if (state != RESERVED && state != LOST)
        return kl_fail(e, KL_EINVAL, s->path, "nothing is reserved for the call %.*s", KL_STR_ARG(c->effect));
    err = kl_store_effect_put(s, f, e);
    return err ? err : write_cost(s, KLI_CHARGE_SETTLE, c, attempt, e);
}

kl_err kl_store_settle(kl_store *s, const kl_store_effect *f, const kl_store_charge *c, kl_error *e) {
    KL_ASSERT(kl_str_eq(f->key, c->effect));
    kl_err err = kli_store_begin(s, "settle a call", e);
    return err ? err : kli_store_end(s, settle(s, f, c, e), "settle a call", e);
}

/* Leave `reserved` for another state; a charge that is in none is left alone. */
static kl_err leave(kl_store *s, const char *effect, kl_str state, kl_error *e) {
    charge_state now;
    int64_t attempt;
    kl_err err = kli_store_begin(s, "write the ledger", e);
    if (err) return err;
    err = last_attempt(&now, &attempt, s, kl_str_of(effect), e);
    if (!err && now == RESERVED) err = set_state(s, kl_str_of(effect), attempt, state, e);
    return kli_store_end(s, err, "write the ledger", e);
}

kl_err kl_store_release(kl_store *s, const char *effect, kl_error *e) { return leave(s, effect, KL_S("released"), e); }

kl_err kl_store_lose(kl_store *s, const char *effect, kl_error *e) { return leave(s, effect, KL_S("lost"), e); }

kl_err kl_store_break_off(kl_store *s, const kl_store_charge *c, kl_error *e) {
    charge_state now;
    int64_t attempt;
    kl_err err = kli_store_begin(s, "write the ledger", e);
    if (err) return err;
    err = last_attempt(&now, &attempt, s, c->effect, e);
    if (!err && now == RESERVED) err = write_cost(s, KLI_CHARGE_BREAK_OFF, c, attempt, e);
    return kli_store_end(s, err, "write the ledger", e);
}

/* ---- list ----------------------------------------------------------------------------------------------------------- */

static kl_store_charge charge_of(kl_arena *a, sqlite3_stmt *row) {
    return (kl_store_charge){
        .effect = kli_store_copy(a, row, 0),
        .attempt = sqlite3_column_int64(row, 1),
        .run = kli_store_copy(a, row, 2),
        .track = kli_store_copy(a, row, 3),
        .workload = kli_store_copy(a, row, 4),
        .policy = kli_store_copy(a, row, 5),
        .phase = kli_store_copy(a, row, 6),
        .model = kli_store_copy(a, row, 7),
        .priced_as = kli_store_copy(a, row, 8),
        .price_date = kli_store_copy(a, row, 9),
        .state = kli_store_copy(a, row, 10),
        .reserved_microusd = sqlite3_column_int64(row, 11),
        .settled_microusd = sqlite3_column_int64(row, 12),
        .input = sqlite3_column_int64(row, 13),
        .cache_read = sqlite3_column_int64(row, 14),
        .cache_write_5m = sqlite3_column_int64(row, 15),
        .cache_write_1h = sqlite3_column_int64(row, 16),
        .output = sqlite3_column_int64(row, 17),
        .estimated = sqlite3_column_int64(row, 18) != 0,
        .created = kli_store_copy(a, row, 19),
    };
}

kl_err kl_store_charge_list(kl_store_charge **rows, size_t *n, kl_store *s, kl_arena *a, const char *run, kl_error *e) {
    sqlite3_stmt *list;
    size_t cap = 0;
    int step = SQLITE_DONE;
    *rows = NULL;
    *n = 0;
    kl_err err = kli_store_statement(&list, s, KLI_CHARGE_LIST, e);
    if (err) return err;
    if (run) kli_store_bind(list, 1, kl_str_of(run));
    while ((step = sqlite3_step(list)) == SQLITE_ROW) {
        *rows = kli_store_grow(a, *rows, *n, &cap, sizeof **rows);
        (*rows)[(*n)++] = charge_of(a, list);
    }
    if (step != SQLITE_DONE) err = kli_store_fail(s, "list the ledger", e);
    kli_store_release(list);
    return err;
}
