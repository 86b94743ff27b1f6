/* crash_test.c - laws 6 and 8 where it hurts: 64 tracks in 64 processes spend from one cap while
 * they, and the database under them, are killed at any moment.
 *
 * The provider is a file: who "asks" appends a line to it, which nothing takes back.  Afterwards
 * every line has its row in the ledger, no call was asked again once its answer was kept, and at no
 * look was more committed than the caps allow.  SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "store/members.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    TRACKS = 64,
    CALLS = 5,
    MOST = 90,
    TRACK_CAP = 300,
    RUN_CAP = TRACKS * 80, /* less than all of them want */
    KILLS = 60,
    OVER_BUDGET = 3
};

static const char *provider; /* the file */

static void nap_us(uint64_t us) { nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL); }

static kl_store_charge charge_of(int track, int call) {
    const kl_stream draws = kli_stream_of((uint64_t)track, "amount");
    return (kl_store_charge){.effect = key_of(kl_arena_printf(arena, "%d/%d", track, call).ptr),
                             .run = KL_S("run"),
                             .track = kl_arena_printf(arena, "%d", track),
                             .model = KL_S("m"),
                             .reserved_microusd =
                                 1 + (int64_t)kli_stream_below(draws, (uint64_t)call, MOST)};
}

/* ---- a track ----------------------------------------------------------------------------- */

static void pay(const kl_store_charge *c) {
    const kl_str line = kl_arena_printf(arena, "%s\n", c->effect.ptr);
    const int fd = open(provider, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd < 0 || write(fd, line.ptr, line.len) != (ssize_t)line.len) _exit(9);
    close(fd);
}

/* The world failing is waited out: a writer that is slow, a server that comes back. */
static bool passes(kl_err err, int *tries) {
    if (err != KL_EBUSY && err != KL_EIO) return false;
    nap_us(20000);
    return ++*tries < 2000;
}

static kl_err reserve_patiently(kl_store_charge *c, kl_lease **lease, const char *name) {
    char owner[KL_LEASE_OWNER_BYTES];
    kl_err err;
    int tries = 0;
    do {
        err = *lease ? KL_OK : kl_lease_take(lease, s, name, owner, &e);
        c->lease = *lease;
        if (!err) err = kl_store_reserve(s, c, false, TRACK_CAP, RUN_CAP, &e);
    } while (passes(err, &tries));
    return err;
}

static kl_err settle_patiently(const kl_store_charge *c) {
    const kl_store_effect f = {.key = c->effect,
                               .run = c->run,
                               .track = c->track,
                               .kind = KL_S("ask"),
                               .request = KL_S("{}"),
                               .answer = KL_S("{}")};
    kl_err err;
    int tries = 0;
    do err = kl_store_settle(s, &f, c, &e);
    while (passes(err, &tries));
    return err;
}

static kl_err known(const kl_store_charge *c) {
    kl_store_effect got;
    kl_err err;
    int tries = 0;
    do err = kl_store_effect_get(&got, s, arena, c->effect.ptr, &e);
    while (passes(err, &tries));
    return err;
}

/* As run/ask.c does it: looked up, else reserved, paid, settled. */
static void be_track(int track, int life) {
    const kl_stream naps = kli_stream_of((uint64_t)(track * 1000 + life), "nap");
    const char *name = kl_arena_printf(arena, "run/%d", track).ptr;
    kl_lease *lease = NULL;
    for (int call = 0; call < CALLS; call++) {
        kl_store_charge c = charge_of(track, call);
        const kl_err there = known(&c);
        if (!there) continue;
        if (there != KL_ENOENT) _exit(4);
        const kl_err err = reserve_patiently(&c, &lease, name);
        if (err == KL_EBUDGET) _exit(OVER_BUDGET);
        if (err) _exit(5);
        nap_us(kli_stream_below(naps, (uint64_t)(2 * call), 3000));
        pay(&c);
        nap_us(kli_stream_below(naps, (uint64_t)(2 * call + 1), 3000));
        c.settled_microusd = c.reserved_microusd / 2;
        if (settle_patiently(&c)) _exit(6);
    }
    _exit(0);
}

/* ---- who kills --------------------------------------------------------------------------- */

static struct {
    pid_t pid; /* 0: ended by itself */
    int lives;
} tracks[TRACKS];
static int over_budget; /* tracks that were told to stop */

static void start_track(int track) {
    const pid_t pid = kl_store_fork(s);
    if (pid == 0) be_track(track, tracks[track].lives);
    assert_true(pid > 0);
    tracks[track].pid = pid;
    tracks[track].lives++;
}

static void reap(int track, int options) {
    int status;
    if (!tracks[track].pid || waitpid(tracks[track].pid, &status, options) != tracks[track].pid)
        return;
    tracks[track].pid = 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        start_track(track);
    else if (WIFEXITED(status) && WEXITSTATUS(status) == OVER_BUDGET)
        over_budget++;
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("track %d ended with %#x", track, status);
}

static int64_t amount_of(const kl_store_charge *c) {
    return kl_str_eq(c->state, KL_S("settled"))    ? c->settled_microusd
           : kl_str_eq(c->state, KL_S("released")) ? 0
                                                   : c->reserved_microusd;
}

static size_t rows_within_caps(kl_store_charge **rows) {
    int64_t run = 0, of_track[TRACKS] = {0};
    size_t n;
    assert_ok(kl_store_charge_list(rows, &n, s, arena, "run", &e));
    for (size_t i = 0; i < n; i++) {
        run += amount_of(&(*rows)[i]);
        of_track[atoi((*rows)[i].track.ptr)] += amount_of(&(*rows)[i]);
    }
    assert_true(run <= RUN_CAP);
    for (int t = 0; t < TRACKS; t++) assert_true(of_track[t] <= TRACK_CAP);
    return n;
}

/* ---- what must be true afterwards -------------------------------------------------------- */

static size_t payments_of(const char *paid, kl_str effect) {
    size_t n = 0;
    for (const char *at = paid; (at = strstr(at, effect.ptr)); at++) n++;
    return n;
}

/* Every payment has a row of its own, and a settled call was asked by its settled attempt last. */
static void books_balance(void) {
    kl_store_charge *rows;
    const size_t n = rows_within_caps(&rows);
    const char *paid = kit_read(provider);
    size_t settled = 0, lost = 0;
    assert_true(n >= TRACKS);
    for (int t = 0; t < TRACKS; t++)
        for (int call = 0; call < CALLS; call++) {
            const kl_str effect = charge_of(t, call).effect;
            size_t of_call = 0, answers = 0;
            for (size_t i = 0; i < n; i++) {
                if (!kl_str_eq(rows[i].effect, effect)) continue;
                of_call++;
                answers += kl_str_eq(rows[i].state, KL_S("settled"));
                lost += kl_str_eq(rows[i].state, KL_S("lost"));
            }
            settled += answers;
            if (answers > 1 || payments_of(paid, effect) > of_call)
                fail_msg("call %d/%d: %zu rows, %zu settled, %zu paid", t, call, of_call, answers,
                         payments_of(paid, effect));
        }
    assert_true(settled > TRACKS && lost > 0); /* it was work, and it was interrupted */
    assert_true(over_budget > 0);              /* and the cap was reached */
}

static void spend_and_kill(bool server_too) {
    const kl_stream draws = kli_stream_of(1, "kill");
    kl_store_charge *rows;
    provider = kit_path("provider");
    over_budget = 0;
    for (int t = 0; t < TRACKS; t++) tracks[t].lives = 0, start_track(t);
    for (uint64_t k = 0; k < KILLS; k++) {
        const int victim = (int)kli_stream_below(draws, k, TRACKS);
        nap_us(5000);
        if (tracks[victim].pid) kill(tracks[victim].pid, SIGKILL);
        if (server_too && k % 20 == 10) {
            assert_string_equal(kit_server_ask("kill"), "killed");
            assert_string_equal(kit_server_ask("start"), "ready");
        }
        (void)rows_within_caps(&rows);
        for (int t = 0; t < TRACKS; t++) reap(t, WNOHANG);
    }
    for (int t = 0; t < TRACKS; t++)
        while (tracks[t].pid) reap(t, 0);
    books_balance();
}

static void test_crash__64_tracks_killed_anywhere_keep_the_books(void **state) {
    (void)state;
    spend_and_kill(false);
}

static void test_crash__so_they_do_when_the_server_is_killed(void **state) {
    (void)state;
    spend_and_kill(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER_PROCESSES(test_crash__64_tracks_killed_anywhere_keep_the_books),
        ON_POSTGRESQL(test_crash__so_they_do_when_the_server_is_killed),
    };
    return RUN_MEMBERS(tests);
}
