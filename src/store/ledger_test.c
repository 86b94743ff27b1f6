/* ledger_test.c - money: states of a charge, caps, many processes at one cap, crashes and full
 * disks; what is no matter of files holds over every member of the store.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "store/members.h"
#include "store/sqlite_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static kl_store_charge charge(const char *name, const char *track, int64_t microusd) {
    return (kl_store_charge){.effect = key_of(name),
                             .run = KL_S("run"),
                             .track = kl_str_of(track),
                             .workload = KL_S("w"),
                             .policy = KL_S("p"),
                             .phase = KL_S("walk"),
                             .model = KL_S("m"),
                             .priced_as = KL_S("m"),
                             .reserved_microusd = microusd};
}

static kl_err reserve(const char *name, const char *track, int64_t microusd, bool repeatable,
                      int64_t cap, int64_t run_cap) {
    kl_store_charge c = charge(name, track, microusd);
    return kl_store_reserve(s, &c, repeatable, cap, run_cap, &e);
}

static kl_err settle(const char *name, int64_t microusd) {
    kl_store_charge c = charge(name, "t", 0);
    c.settled_microusd = microusd;
    c.input = 7;
    c.output = 5;
    kl_store_effect f = {.key = c.effect,
                         .run = c.run,
                         .track = c.track,
                         .kind = KL_S("ask"),
                         .purpose = KL_S("x"),
                         .request = KL_S("{}"),
                         .answer = KL_S("{}")};
    return kl_store_settle(s, &f, &c, &e);
}

/* "0:settled:40 1:reserved:100": attempts of an effect, with what they take from the cap */
static kl_str ledger(const char *name) {
    kl_store_charge *rows;
    size_t n;
    kl_buf b = {0};
    assert_ok(kl_store_charge_list(&rows, &n, s, arena, "run", &e));
    for (size_t i = 0; i < n; i++) {
        if (!kl_str_eq(rows[i].effect, key_of(name))) continue;
        int64_t amount = kl_str_eq(rows[i].state, KL_S("settled")) ? rows[i].settled_microusd
                                                                   : rows[i].reserved_microusd;
        kl_buf_printf(&b, "%s%lld:%.*s:%lld", b.len ? " " : "", (long long)rows[i].attempt,
                      KL_STR_ARG(rows[i].state), (long long)amount);
    }
    kl_str text = kl_arena_copy(arena, kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

/* ---- states -------------------------------------------------------------------------- */

/* r reserve, R reserve by a provider that repeats for nothing, s settle, x release, l lose; then
 * the ledger. */
static void test_ledger__every_path_through_the_states(void **state) {
    (void)state;
    static const struct {
        const char *path, *wanted;
    } rows[] = {
        {"r", "0:reserved:100"},
        {"rs", "0:settled:40"},
        {"rx", "0:released:100"},
        {"rxr", "0:reserved:100"}, /* what was released is free to be reserved again */
        {"rxrs", "0:settled:40"},
        {"rl", "0:lost:100"},
        {"rlrs", "0:lost:100 1:settled:40"},
        {"rr", "0:lost:100 1:reserved:100"}, /* a crash between the two: perhaps it was charged */
        {"rrrs", "0:lost:100 1:lost:100 2:settled:40"},
        {"RR", "0:reserved:100"}, /* a crash, but asking again costs nothing */
        {"RRs", "0:settled:40"},
        {"rss", "0:settled:40"}, /* the first answer stands */
        {"rsx", "0:settled:40"}, /* a settled charge is never left */
        {"rsl", "0:settled:40"},
        {"rls", "0:settled:40"}, /* it was answered after all */
    };
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        const char *name = rows[i].path;
        for (const char *p = name; *p; p++) {
            if (*p == 'r' || *p == 'R') assert_ok(reserve(name, name, 100, *p == 'R', 10000, 0));
            if (*p == 's') assert_ok(settle(name, 40));
            if (*p == 'x') assert_ok(kl_store_release(s, key_of(name).ptr, &e));
            if (*p == 'l') assert_ok(kl_store_lose(s, key_of(name).ptr, &e));
        }
        kl_str got = ledger(name);
        if (!kl_str_eq(got, kl_str_of(rows[i].wanted)))
            fail_msg("%s: %s, not %s", name, got.ptr, rows[i].wanted);
    }
}

static void test_ledger__what_makes_no_sense_is_refused(void **state) {
    (void)state;
    assert_err(KL_EINVAL, settle("never reserved", 40));
    assert_ok(reserve("a", "t", 100, false, 1000, 0));
    assert_ok(kl_store_release(s, key_of("a").ptr, &e));
    assert_err(KL_EINVAL, settle("a", 40));
    assert_ok(reserve("b", "t", 100, false, 1000, 0));
    assert_ok(settle("b", 40));
    assert_err(KL_EINVAL, reserve("b", "t", 100, false, 1000, 0));
    assert_err(KL_EINVAL, reserve("c", "t", -5, false, 1000, 0));
    assert_ok(kl_store_release(s, key_of("unknown").ptr, &e));
    kl_store_effect got;
    assert_err(KL_ENOENT, kl_store_effect_get(&got, s, arena, key_of("a").ptr,
                                              &e)); /* nothing half-done was kept */
}

/* ---- caps ---------------------------------------------------------------------------- */

static void test_ledger__a_cap_is_reached_and_never_passed(void **state) {
    (void)state;
    assert_ok(reserve("a", "t", 60, false, 100, 0));
    assert_err(KL_EBUDGET, reserve("b", "t", 41, false, 100, 0));
    assert_contains(e.hint, "--budget");
    assert_ok(reserve("b", "t", 40, false, 100, 0)); /* to the last micro-dollar */
    assert_err(KL_EBUDGET, reserve("c", "t", 1, false, 100, 0));
    assert_ok(reserve("c", "t", 0, false, 100, 0)); /* what costs nothing always fits */
    assert_ok(settle("a", 10));
    assert_ok(reserve("d", "t", 50, false, 100, 0)); /* settled for less: the rest is free again */
    assert_ok(settle("b", 70)); /* the truth, though it is above what was reserved */
    assert_err(KL_EBUDGET, reserve("f", "t", 1, false, 100, 0));
    assert_ok(reserve("g", "other track", 100, false, 100, 0));
    assert_str(ledger("b"), "0:settled:70");
}

static void test_ledger__a_lost_call_counts_in_full(void **state) {
    (void)state;
    assert_ok(reserve("a", "t", 60, false, 100, 0));
    assert_err(KL_EBUDGET, reserve("a", "t", 60, false, 100,
                                   0));   /* after a crash: 60 may be gone, 60 more are too much */
    assert_str(ledger("a"), "0:lost:60"); /* which is true whatever happens next */
    assert_ok(reserve("a", "t", 40, false, 100, 0));
    assert_str(ledger("a"), "0:lost:60 1:reserved:40");
}

static void test_ledger__zero_allows_what_costs_nothing(void **state) {
    (void)state;
    assert_ok(reserve("a", "t", 0, true, 0, 0));
    assert_err(KL_EBUDGET, reserve("b", "t", 1, true, 0, 0));
}

static void test_ledger__the_run_has_a_cap_over_its_tracks(void **state) {
    (void)state;
    assert_ok(reserve("a", "t1", 60, false, 100, 150));
    assert_ok(reserve("b", "t2", 60, false, 100, 150));
    assert_err(KL_EBUDGET, reserve("c", "t3", 60, false, 100, 150));
    assert_contains(e.message, "run");
    assert_ok(reserve("c", "t3", 30, false, 100, 150));
}

static void test_ledger__huge_amounts_do_not_wrap(void **state) {
    (void)state;
    assert_ok(reserve("a", "t", INT64_MAX - 1, false, INT64_MAX, 0));
    assert_err(KL_EBUDGET, reserve("b", "t", INT64_MAX - 1, false, INT64_MAX, 0));
    assert_err(KL_EBUDGET, reserve("c", "t", INT64_MAX, false, 100, 0));
}

/* ---- many processes, crashes, full disks --------------------------------------------- */

enum { PROCESSES = 6, EACH = 12, AMOUNT = 7, CAP = 200 };

static int spend(int who) {
    int paid = 0;
    for (int i = 0; i < EACH; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d/%d", who, i);
        kl_err err = reserve(name, "t", AMOUNT, false, CAP, 0);
        if (err && err != KL_EBUDGET) _exit(101);
        if (!err && settle(name, AMOUNT)) _exit(102);
        paid += !err;
    }
    kl_store_close(s);
    return paid;
}

static void test_ledger__processes_cannot_pass_a_cap_together(void **state) {
    (void)state;
    pid_t pids[PROCESSES];
    int paid = 0;
    for (int p = 0; p < PROCESSES; p++)
        if ((pids[p] = kl_store_fork(s)) == 0) _exit(spend(p));
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 100);
        paid += WEXITSTATUS(status);
    }
    assert_int_equal(paid, CAP / AMOUNT); /* everything that fits, and not one more */
}

/* A disk without room, played by a limit on pages. */
static void test_ledger__without_room_the_reservation_stays(void **state) {
    (void)state;
    char *filler = KL_ARRAY(arena, char, 1 << 20);
    memset(filler, 'x', 1 << 20);
    assert_ok(reserve("a", "t", 60, false, 100, 0));
    sqlite3 *db = ((kli_sqlite_file *)s->self)->db;
    sqlite3_exec(db, "PRAGMA max_page_count = 30", NULL, NULL, NULL);
    kl_store_charge c = charge("a", "t", 0);
    kl_store_effect f = {.key = c.effect,
                         .run = c.run,
                         .track = c.track,
                         .kind = KL_S("ask"),
                         .request = KL_S("{}"),
                         .answer = {filler, 1 << 20}};
    assert_err(KL_EIO, kl_store_settle(s, &f, &c, &e));
    assert_contains(e.hint, "space left");
    assert_str(ledger("a"), "0:reserved:60");
    sqlite3_exec(db, "PRAGMA max_page_count = 100000", NULL, NULL, NULL);
    assert_ok(kl_store_settle(s, &f, &c, &e)); /* and goes on once there is room */
    assert_str(ledger("a"), "0:settled:0");
}

/* ---- any order of anything ----------------------------------------------------------- */

/* What a charge is and costs, kept beside the store by the rules of charge.c's picture alone. */
typedef struct {
    const char *state; /* NULL: none */
    int64_t reserved, settled;
} attempt;

enum {
    CALLS = 24,
    TRACKS = 2,
    ATTEMPTS = 64,
    TURNS = 300,
    MOST = 90,
    TRACK_CAP = 300,
    RUN_CAP = 450
};

typedef struct {
    attempt of[CALLS][ATTEMPTS];
    int last[CALLS]; /* -1: none */
} model;

static int64_t taken(const attempt *a) {
    if (!a->state || !strcmp(a->state, "released")) return 0;
    return strcmp(a->state, "settled") ? a->reserved : a->settled;
}

/* Of all tracks where `track` is below 0; without the newest attempt of `but`. */
static int64_t committed(const model *m, int track, int but, bool anew) {
    int64_t sum = 0;
    for (int c = 0; c < CALLS; c++)
        for (int i = 0; i <= m->last[c]; i++)
            if ((track < 0 || c % TRACKS == track) && !(anew && c == but && i == m->last[c]))
                sum += taken(&m->of[c][i]);
    return sum;
}

static attempt *newest(model *m, int call) {
    return m->last[call] < 0 ? NULL : &m->of[call][m->last[call]];
}

static bool in_state(const attempt *a, const char *state) {
    return a && strcmp(a->state, state) == 0;
}

/* What the caps leave of it, or -1. */
static int64_t fitting(const model *m, int call, bool anew, int64_t amount, int64_t least) {
    const int64_t of_track = TRACK_CAP - committed(m, call % TRACKS, call, anew);
    const int64_t of_run = RUN_CAP - committed(m, -1, call, anew);
    const int64_t left = of_track < of_run ? of_track : of_run;
    if (amount <= 0 || amount <= left) return amount;
    return least > 0 && least <= left ? left : -1;
}

static void model_reserve(model *m, int call, kl_store_charge *c, bool repeatable) {
    attempt *a = newest(m, call);
    if (in_state(a, "settled")) {
        assert_err(KL_EINVAL, kl_store_reserve(s, c, repeatable, TRACK_CAP, RUN_CAP, &e));
        return;
    }
    if (in_state(a, "reserved") && !repeatable) a->state = "lost";
    const bool next = !a || in_state(a, "lost");
    const int64_t fits = fitting(m, call, !next, c->reserved_microusd, c->least_microusd);
    if (fits < 0) {
        assert_err(KL_EBUDGET, kl_store_reserve(s, c, repeatable, TRACK_CAP, RUN_CAP, &e));
        return;
    }
    assert_ok(kl_store_reserve(s, c, repeatable, TRACK_CAP, RUN_CAP, &e));
    assert_int_equal(c->reserved_microusd, fits);
    m->last[call] += next;
    assert_true(m->last[call] < ATTEMPTS);
    *newest(m, call) = (attempt){"reserved", fits, 0};
}

static void model_settle(model *m, int call, const kl_store_charge *c) {
    attempt *a = newest(m, call);
    const kl_store_effect f = {
        .key = c->effect, .run = c->run, .track = c->track, .kind = KL_S("ask")};
    if (!a || in_state(a, "released")) {
        assert_err(KL_EINVAL, kl_store_settle(s, &f, c, &e));
        return;
    }
    assert_ok(kl_store_settle(s, &f, c, &e));
    if (!in_state(a, "settled")) *a = (attempt){"settled", a->reserved, c->settled_microusd};
}

static void model_break_off(model *m, int call, const kl_store_charge *c) {
    attempt *a = newest(m, call);
    assert_ok(kl_store_break_off(s, c, &e));
    if (!in_state(a, "reserved")) return;
    a->state = "lost";
    if (c->settled_microusd < a->reserved) a->reserved = c->settled_microusd;
}

static void model_leave(model *m, int call, const kl_store_charge *c, bool lost) {
    attempt *a = newest(m, call);
    assert_ok(lost ? kl_store_lose(s, c->effect.ptr, &e) : kl_store_release(s, c->effect.ptr, &e));
    if (in_state(a, "reserved")) a->state = lost ? "lost" : "released";
}

/* The ledger is the model, row by row, and nothing was answered that is not settled. */
static void compare(model *m, const char *run) {
    kl_store_charge *rows;
    kl_store_effect got;
    size_t n, wanted = 0;
    assert_ok(kl_store_charge_list(&rows, &n, s, arena, run, &e));
    for (int c = 0; c < CALLS; c++) wanted += (size_t)(m->last[c] + 1);
    assert_int_equal(n, wanted);
    for (size_t i = 0; i < n; i++) {
        const int call = atoi(rows[i].model.ptr);
        const attempt *a = &m->of[call][rows[i].attempt];
        if (!kl_str_eq(rows[i].state, kl_str_of(a->state)) ||
            rows[i].reserved_microusd != a->reserved || rows[i].settled_microusd != a->settled)
            fail_msg("%s: call %d attempt %d: %s %d %d, not %s %d %d", run, call,
                     (int)rows[i].attempt, rows[i].state.ptr, (int)rows[i].reserved_microusd,
                     (int)rows[i].settled_microusd, a->state, (int)a->reserved, (int)a->settled);
        const kl_err answered = kl_store_effect_get(&got, s, arena, rows[i].effect.ptr, &e);
        assert_int_equal(answered == KL_OK, in_state(newest(m, call), "settled"));
    }
}

/* Answers cost at most what was reserved. */
static void take_turn(model *m, kl_stream draws, uint64_t turn, const char *run) {
    const int call = (int)kli_stream_below(draws, 4 * turn, CALLS);
    const int64_t amount = (int64_t)kli_stream_below(draws, 4 * turn + 1, MOST);
    const attempt *a = newest(m, call);
    kl_store_charge c =
        charge(kl_arena_printf(arena, "%s/%d", run, call).ptr, call % TRACKS ? "t1" : "t0", amount);
    c.run = kl_str_of(run);
    c.model = kl_arena_printf(arena, "%d", call);
    c.least_microusd = amount % 3 ? 0 : amount / 2;
    c.settled_microusd = a && amount > a->reserved ? a->reserved : amount;
    switch (kli_stream_below(draws, 4 * turn + 2, 12)) {
    case 0:
        model_settle(m, call, &c);
        break;
    case 1:
        model_break_off(m, call, &c);
        break;
    case 2:
        model_leave(m, call, &c, true);
        break;
    case 3:
    case 4:
        model_leave(m, call, &c, false);
        break;
    default:
        model_reserve(m, call, &c, kli_stream_below(draws, 4 * turn + 3, 2));
        break;
    }
}

/* Law 6: whoever does what in which order, with crashes between (a reservation that nobody settles,
 * and another that follows), through two handles: what is committed never passes a cap, at no
 * moment. */
static void test_ledger__no_order_of_anything_passes_a_cap(void **state) {
    (void)state;
    kl_store *const handles[] = {s, opened()};
    for (uint64_t seed = 0; seed < 3; seed++) {
        const char *run = kl_arena_printf(arena, "run %d", (int)seed).ptr;
        model *m = KL_NEW(arena, model);
        for (int c = 0; c < CALLS; c++) m->last[c] = -1;
        for (uint64_t turn = 0; turn < TURNS; turn++) {
            s = handles[turn % 2];
            take_turn(m, kli_stream_of(seed, "ledger"), turn, run);
            for (int t = 0; t < TRACKS; t++) assert_true(committed(m, t, 0, false) <= TRACK_CAP);
            assert_true(committed(m, -1, 0, false) <= RUN_CAP);
        }
        compare(m, run);
    }
    s = handles[0];
    kl_store_close(handles[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER_MEMBERS(test_ledger__every_path_through_the_states),
        OVER_MEMBERS(test_ledger__what_makes_no_sense_is_refused),
        OVER_MEMBERS(test_ledger__a_cap_is_reached_and_never_passed),
        OVER_MEMBERS(test_ledger__a_lost_call_counts_in_full),
        OVER_MEMBERS(test_ledger__zero_allows_what_costs_nothing),
        OVER_MEMBERS(test_ledger__the_run_has_a_cap_over_its_tracks),
        OVER_MEMBERS(test_ledger__huge_amounts_do_not_wrap),
        OVER_MEMBERS(test_ledger__no_order_of_anything_passes_a_cap),
        OVER_PROCESSES(test_ledger__processes_cannot_pass_a_cap_together),
        ON_SQLITE(test_ledger__without_room_the_reservation_stays),
    };
    return RUN_MEMBERS(tests);
}
