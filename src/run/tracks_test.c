/* tracks_test.c - lines in processes of their own: killed anywhere, stopped, out of money, waiting,
 * at the same time. SPDX-License-Identifier: Apache-2.0 */
#include "kit/fake_provider.h"
#include "run/run_impl.h"
#include "base/terminal.h"
#include "base/rng.h"
#include "kit/kit.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define MAX_TRACKS 4

static const char *dir, *log_path;
static kl_run_opts opts;
static pid_t test_process;

static int set_up(void **state) {
    kit_set_up(state);
    test_process = getpid();
    dir = kit_folder();
    log_path = kli_fs_join(arena, dir, "calls").ptr;
    opts = (kl_run_opts){.command = "optimize",
                         .store = kli_fs_join(arena, dir, "k.db").ptr,
                         .model = kl_arena_printf(arena, "fake:%s", log_path).ptr,
                         .priced_as = "claude-opus-4-6",
                         .provider = &fake_repeatable,
                         .budget_microusd = 100000000};
    return 0;
}

static int calls(void) { return fake_calls(arena, log_path); }

/* ---- lines ------------------------------------------------------------------------------- */

enum { CALLS = 6 };

typedef struct {
    int answers; /* what a line leaves behind */
    int64_t spent;
    kl_err stopped;
    bool here; /* was it this process? */
    kl_str last;
} result;

/* Each question quotes the answer before it; a step is written for each. */
static kl_err chain(kl_track *t, void *ctx, kl_error *error) {
    result *out = ctx;
    *out = (result){.here = getpid() == test_process};
    kl_str before = KL_S("start");
    for (int i = 0; i < CALLS; i++) {
        kl_reply r;
        kl_err err = fake_question(
            &r, t, kl_arena_printf(kl_track_arena(t), "%d %.*s", i, KL_STR_ARG(before)).ptr, error);
        if (err == KL_EBUDGET) {
            out->stopped = err;
            break;
        }
        if (err) return err;
        before = r.text;
        const kl_step s = {
            .phase = KL_S("walk"), .outcome = KL_S("pass"), .kernel = r.text, .accepted = i % 2};
        err = kl_track_step(t, &s, r.text, error);
        if (err) return err;
        out->answers++;
        kl_track_log(t, "%d of %d", i + 1, CALLS);
    }
    out->last = before;
    out->spent = kl_track_spent(t);
    return KL_OK;
}

static kl_err dies(kl_track *t, void *ctx, kl_error *error) {
    (void)t, (void)ctx, (void)error;
    signal(SIGSEGV, SIG_DFL); /* also where a sanitizer would catch it */
    raise(SIGSEGV);
    return KL_OK;
}

static kl_err fails(kl_track *t, void *ctx, kl_error *error) {
    (void)ctx;
    kl_reply r;
    return fake_question(&r, t, "!eio", error);
}

static kl_err fickle(kl_track *t, void *ctx, kl_error *error) {
    (void)ctx;
    kl_reply r;
    return fake_question(&r, t, kl_arena_printf(kl_track_arena(t), "I am %d", (int)getpid()).ptr,
                         error);
}

/* ctx: what to ask */
static kl_err asks(kl_track *t, void *ctx, kl_error *error) {
    kl_reply r;
    return fake_question(&r, t, ctx, error);
}

static void *asked(const char *text) { return (void *)(uintptr_t)text; } /* a ctx is not const */

static kl_track_spec spec_of(const char *name, kl_err (*body)(kl_track *, void *, kl_error *),
                             void *ctx) {
    return (kl_track_spec){
        .name = name, .workload = "gemm", .policy = "generate", .body = body, .ctx = ctx};
}

static kl_err run_all(const kl_track_spec *specs, int n, int jobs, bool once) {
    kl_run *r;
    kl_err err = kl_run_open(&r, &opts, &e);
    if (err) return err;
    err = kl_run_tracks(r, specs, n, &(kl_track_opts){.jobs = jobs, .once = once}, &e);
    kl_run_close(r);
    return err;
}

/* ---- what is on disk --------------------------------------------------------------------- */

/* Everything but dates and lost attempts, as one text: two stores are the same when these are. */
static kl_str rows_of(const char *store, int *lost) {
    kl_store *s;
    kl_store_run *runs;
    kl_store_effect *effects;
    kl_store_charge *charges;
    kl_store_step *steps;
    size_t n;
    kl_buf b = {0};
    *lost = 0;
    assert_ok(kl_store_open(&s, store, &e));
    assert_ok(kl_store_run_list(&runs, &n, s, arena, &e));
    assert_int_equal(n, 1);
    const char *id = runs[0].id.ptr;
    assert_ok(kl_store_effect_list(&effects, &n, s, arena, id, NULL, &e));
    for (size_t i = 0; i < n; i++)
        kl_buf_printf(&b, "%s %s %s %lld %s %s\n", effects[i].key.ptr, effects[i].track.ptr,
                      effects[i].purpose.ptr, (long long)effects[i].ordinal, effects[i].request.ptr,
                      effects[i].answer.ptr);
    assert_ok(kl_store_step_list(&steps, &n, s, arena, id, &e));
    for (size_t i = 0; i < n; i++)
        kl_buf_printf(&b, "%s %lld %s\n", steps[i].track.ptr, (long long)steps[i].n,
                      steps[i].json.ptr);
    assert_ok(kl_store_charge_list(&charges, &n, s, arena, id, &e));
    for (size_t i = 0; i < n; i++) {
        bool settled = kl_str_eq(charges[i].state, KL_S("settled"));
        *lost += !settled;
        if (settled)
            kl_buf_printf(&b, "%s %lld %lld %lld\n", charges[i].effect.ptr,
                          (long long)charges[i].reserved_microusd,
                          (long long)charges[i].settled_microusd, (long long)charges[i].input);
    }
    kl_store_close(s);
    kl_str text = kl_arena_copy(arena, kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

/* ---- kill -9 ----------------------------------------------------------------------------- */

static int64_t one_run(int64_t kill_after_ns, int *status) {
    int64_t began = kli_now_ns();
    pid_t pid = fork();
    if (pid == 0) {
        result got;
        kl_track_spec s = spec_of("gemm/generate/1", chain, &got);
        kl_err err = run_all(&s, 1, 1, false);
        _exit(err ? 1 : got.answers == CALLS ? 0 : 2);
    }
    if (kill_after_ns >= 0) {
        nanosleep(&(struct timespec){.tv_nsec = kill_after_ns}, NULL);
        kill(pid, SIGKILL);
    }
    assert_int_equal(waitpid(pid, status, 0), pid);
    return kli_now_ns() - began;
}

/* Killed at random moments until it is through, on a fresh store; the rows must be those of a run
 * that nobody disturbed. */
static void kill_and_compare(const kl_provider *provider, const char *what) {
    int status, lost, kills = 0;
    opts.provider = provider;
    opts.store = kli_fs_join(arena, dir, kl_arena_printf(arena, "%s-calm.db", what).ptr).ptr;
    int64_t whole_ns = one_run(-1, &status);
    assert_int_equal(status, 0);
    kl_str calm = rows_of(opts.store, &lost);
    assert_int_equal(lost, 0);
    kl_stream random = kli_stream_of(7, what);
    for (int round = 0; round < 5; round++) {
        opts.store =
            kli_fs_join(arena, dir, kl_arena_printf(arena, "%s-%d.db", what, round).ptr).ptr;
        unlink(log_path);
        for (int i = 0; i < 8; i++, kills++)
            one_run((int64_t)kli_stream_below(random, (uint64_t)kills, (uint64_t)whole_ns),
                    &status);
        one_run(-1, &status);
        assert_int_equal(status, 0);
        kl_str rows = rows_of(opts.store, &lost);
        if (!kl_str_eq(rows, calm))
            fail_msg("%s, round %d:\n%s\nis not\n%s", what, round, rows.ptr, calm.ptr);
        if (provider->repeatable)
            assert_int_equal(lost, 0);
        else
            assert_true(calls() <=
                        CALLS + lost); /* the ledger never knows of less than was asked */
    }
}

static void test_run__killed_anywhere_it_ends_with_the_same_rows(void **state) {
    (void)state;
    kill_and_compare(&fake_repeatable, "repeatable");
    kill_and_compare(&fake_paid, "paid");
}

/* Between the question and its answer: perhaps it was charged, so it counts, unless asking again
 * costs nothing. */
static void test_run__killed_while_it_asks_the_money_stays_counted(void **state) {
    (void)state;
    const kl_provider *const providers[] = {&fake_paid, &fake_repeatable};
    kl_track_spec s = spec_of("a", asks, asked("!slow"));
    for (int i = 0; i < 2; i++) {
        int lost;
        opts.provider = providers[i];
        opts.store = kli_fs_join(arena, dir, kl_arena_printf(arena, "%d.db", i).ptr).ptr;
        unlink(log_path);
        pid_t pid = fork();
        if (pid == 0) _exit(run_all(&s, 1, 1, false) ? 1 : 0);
        for (int waited = 0; calls() == 0 && waited < 10000; waited++) usleep(1000);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_ok(run_all(&s, 1, 1, false));
        assert_int_equal(calls(), 2);
        rows_of(opts.store, &lost);
        assert_int_equal(lost, providers[i]->repeatable ? 0 : 1);
    }
}

static void test_run__killed_with_children_it_ends_with_the_same_rows(void **state) {
    (void)state;
    result got[3] = {0};
    kl_track_spec specs[] = {spec_of("a", chain, &got[0]), spec_of("b", chain, &got[1]),
                             spec_of("c", chain, &got[2])};
    for (int i = 0; i < 6; i++) {
        pid_t pid = fork();
        if (pid == 0) _exit(run_all(specs, 3, 2, false) ? 1 : 0);
        nanosleep(&(struct timespec){.tv_nsec = 15000000L * (i + 1)}, NULL);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    kl_err err = KL_EBUSY;
    for (int i = 0; err == KL_EBUSY && i < 100; i++, usleep(50000))
        err = run_all(specs, 3, 2, false); /* orphans end soon */
    assert_ok(err);
    int lost;
    assert_true(rows_of(opts.store, &lost).len > 0);
    assert_int_equal(lost, 0);
    for (int i = 0; i < 3; i++) assert_int_equal(got[i].answers, CALLS);
}

/* ---- several at a time ------------------------------------------------------------------- */

static void test_run_tracks__bring_their_results_home(void **state) {
    (void)state;
    result apart[3] = {0}, again[3] = {0};
    const char *const names[] = {"a", "b", "c"};
    kl_track_spec specs[3];
    for (int i = 0; i < 3; i++) specs[i] = spec_of(names[i], chain, &apart[i]);
    assert_ok(run_all(specs, 3, 2, false));
    assert_int_equal(calls(), 3 * CALLS);
    for (int i = 0; i < 3; i++) specs[i].ctx = &again[i];
    assert_ok(run_all(specs, 3, 1, false));
    assert_int_equal(calls(), 3 * CALLS); /* nothing twice */
    for (int i = 0; i < 3; i++) {
        assert_true(apart[i].here && apart[i].answers == CALLS);
        assert_int_equal(apart[i].spent, again[i].spent);
    }
}

static void test_run_tracks__out_of_money_a_line_stops_at_the_same_place_here(void **state) {
    (void)state;
    result got[2] = {0}, more[2] = {0};
    kl_track_spec specs[] = {spec_of("a", chain, &got[0]), spec_of("b", chain, &got[1])};
    opts.provider = &fake_paid;
    opts.budget_microusd = 4700; /* a call is reserved with some 2700 and settles for less */
    assert_ok(run_all(specs, 2, 2, false));
    int paid = calls();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(got[i].stopped, KL_EBUDGET);
        assert_true(got[i].here && got[i].answers > 0 && got[i].answers < CALLS);
        assert_true(got[i].spent <= opts.budget_microusd);
    }
    assert_int_equal(got[0].answers + got[1].answers, paid);
    opts.budget_microusd *= 100;
    specs[0].ctx = &more[0];
    specs[1].ctx = &more[1];
    assert_ok(run_all(specs, 2, 2, false)); /* with more money it goes on where it stopped */
    assert_int_equal(more[0].answers, CALLS);
    assert_int_equal(calls(), 2 * CALLS);
}

static void test_run_tracks__share_the_cap_of_the_run(void **state) {
    (void)state;
    result got[MAX_TRACKS] = {0};
    const char *const names[] = {"a", "b", "c", "d"};
    kl_track_spec specs[MAX_TRACKS];
    for (int i = 0; i < MAX_TRACKS; i++) specs[i] = spec_of(names[i], chain, &got[i]);
    opts.provider = &fake_paid;
    opts.total_microusd = 9000;
    assert_ok(run_all(specs, MAX_TRACKS, MAX_TRACKS, false));
    int64_t spent = 0;
    for (int i = 0; i < MAX_TRACKS; i++) spent += got[i].spent;
    assert_true(spent > 0 && spent <= opts.total_microusd);
    assert_true(calls() < MAX_TRACKS * CALLS);
}

static void test_run_tracks__a_crash_is_the_crash_of_one_track(void **state) {
    (void)state;
    result got = {0};
    kl_track_spec specs[] = {spec_of("bad", dies, NULL), spec_of("good", chain, &got)};
    assert_err(KL_EIO, run_all(specs, 2, 2, false));
    assert_contains(e.message, "SIGSEGV");
    assert_string_equal(e.where, "bad");
    assert_int_equal(got.answers, CALLS);
}

static void test_run_tracks__an_error_comes_with_its_words(void **state) {
    (void)state;
    result got = {0};
    kl_track_spec specs[] = {spec_of("good", chain, &got), spec_of("bad", fails, NULL)};
    opts.provider = &fake_paid;
    assert_err(KL_EIO, run_all(specs, 2, 2, false));
    assert_contains(e.message, "the stream was cut");
    assert_contains(e.where, "bad");
    assert_int_equal(got.answers, CALLS);
}

static void test_run_tracks__each_track_is_told_apart(void **state) {
    (void)state;
    result got = {0}, alone = {0};
    kl_error told[3] = {{.code = KL_EINVAL}, {0}, {0}};
    kl_track_spec specs[] = {spec_of("good", chain, &got), spec_of("bad", fails, NULL),
                             spec_of("dead", dies, NULL)};
    for (int i = 0; i < 3; i++) specs[i].result = &told[i];
    opts.provider = &fake_paid;
    assert_err(KL_EIO, run_all(specs, 3, 3, false));
    assert_int_equal(told[0].code, KL_OK);
    assert_int_equal(got.answers, CALLS);
    assert_int_equal(told[1].code, KL_EIO);
    assert_contains(told[1].message, "the stream was cut");
    assert_int_equal(told[2].code, KL_EIO);
    assert_contains(told[2].message, "SIGSEGV");
    specs[0].ctx = &alone; /* one track runs in this process, and is told the same way */
    told[0].code = KL_EINVAL;
    assert_ok(run_all(specs, 1, 1, false));
    assert_int_equal(told[0].code, KL_OK);
    assert_err(KL_EIO, run_all(&specs[1], 1, 1, false));
    assert_int_equal(told[1].code, KL_EIO);
}

typedef struct {
    kl_store *store;
    int ticks, waiting, running, ended;
    size_t most; /* steps seen */
} watch;

static void look(void *ctx, const kl_track_state *states, int n) {
    watch *w = ctx;
    kl_store_run *runs;
    kl_store_step *steps;
    size_t n_runs, n_steps;
    for (int i = 0; i < n; i++) {
        w->waiting += states[i] == KL_TRACK_WAITS;
        w->running += states[i] == KL_TRACK_RUNS;
        w->ended += states[i] == KL_TRACK_ENDED;
    }
    w->ticks++;
    assert_ok(kl_store_run_list(&runs, &n_runs, w->store, arena, &e));
    assert_ok(kl_store_step_list(&steps, &n_steps, w->store, arena, runs[0].id.ptr, &e));
    if (n_steps > w->most) w->most = n_steps;
}

static void test_run_tracks__the_parent_may_look_at_the_journal_meanwhile(void **state) {
    (void)state;
    result got[3] = {0};
    watch w = {0};
    kl_run *r;
    kl_track_spec specs[] = {spec_of("a", chain, &got[0]), spec_of("b", chain, &got[1]),
                             spec_of("c", chain, &got[2])};
    assert_ok(kl_run_open(&r, &opts, &e));
    w.store = kl_run_store(r);
    assert_ok(kl_run_tracks(
        r, specs, 3, &(kl_track_opts){.jobs = 1, .quiet = true, .tick = look, .tick_ctx = &w}, &e));
    kl_run_close(r);
    assert_true(w.ticks > 2 && w.waiting > 0 && w.running > 0 && w.ended > 0 && w.most > CALLS);
    for (int i = 0; i < 3; i++) assert_int_equal(got[i].answers, CALLS);
    int lost;
    rows_of(opts.store, &lost);
    assert_int_equal(lost, 0);
}

static void test_run_tracks__a_line_that_depends_on_more_than_answers_is_caught(void **state) {
    (void)state;
    result got = {0};
    kl_track_spec specs[] = {spec_of("fickle", fickle, NULL), spec_of("good", chain, &got)};
    assert_err(KL_EIO, run_all(specs, 2, 1, false));
    assert_contains(e.message, "did not ask for it the first time");
}

/* ---- waiting, stopping, meeting ---------------------------------------------------------- */

static void test_run_tracks__pump_returns_what_is_waited_for(void **state) {
    (void)state;
    kl_str mail = kli_fs_join(arena, dir, "mail");
    result got = {0};
    const char *question = kl_arena_printf(arena, "!wait %s", mail.ptr).ptr;
    kl_track_spec specs[] = {spec_of("waits", asks, asked(question)), spec_of("good", chain, &got)};
    assert_err(KL_PENDING, run_all(specs, 1, 1, true));
    assert_contains(e.message, "mailbox");
    assert_err(KL_PENDING, run_all(specs, 2, 2, true));
    assert_int_equal(got.answers, CALLS); /* the others go on */
    assert_int_equal(calls(), CALLS);
    assert_ok(kli_fs_write(mail.ptr, KL_S("x"), &e));
    assert_ok(run_all(specs, 2, 2, true));
    assert_int_equal(calls(), CALLS + 1);
}

static void test_run_tracks__without_pump_it_waits(void **state) {
    (void)state;
    kl_str mail = kli_fs_join(arena, dir, "mail");
    kl_track_spec s =
        spec_of("waits", asks, asked(kl_arena_printf(arena, "!wait %s", mail.ptr).ptr));
    pid_t pid = fork();
    if (pid == 0) {
        usleep(500000);
        _exit(kli_fs_write(mail.ptr, KL_S("x"), &e) ? 1 : 0);
    }
    assert_ok(run_all(&s, 1, 1, false));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(calls(), 1);
}

static void test_run_tracks__an_interrupt_is_passed_on_and_loses_nothing(void **state) {
    (void)state;
    kl_track_spec specs[] = {spec_of("a", asks, asked("!slow one")),
                             spec_of("b", asks, asked("!slow two")),
                             spec_of("c", asks, asked("!slow three"))};
    pid_t pid = fork();
    if (pid == 0) {
        kli_terminal_watch(KL_QUIET);
        kli_interrupt_install();
        kl_err err = run_all(specs, 3, 1, false);
        _exit(err == KL_EINTR && strstr(e.hint, "resume") ? 0 : 1);
    }
    int status;
    usleep(150000);
    kill(pid, SIGINT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_true(calls() < 3);
    assert_ok(run_all(specs, 3, 3, false));
    int lost;
    rows_of(opts.store, &lost);
    assert_int_equal(lost, 0);
    assert_true(calls() <=
                4); /* a call that was cut off is asked again; a repeatable one costs nothing */
}

static void test_run_tracks__two_processes_do_not_work_on_one_track(void **state) {
    (void)state;
    kl_track_spec s = spec_of("a", asks, asked("!slow"));
    pid_t pid = fork();
    if (pid == 0) _exit(run_all(&s, 1, 1, false) ? 1 : 0);
    int status;
    usleep(150000);
    assert_ok(run_all(&s, 1, 1, false)); /* it waits, and finds what the other one did */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(calls(), 1);
}

/* One that does not end is named; one that was killed is no reason to be turned away. */
static void test_run_tracks__a_track_that_stays_taken_is_refused_by_its_process(void **state) {
    (void)state;
    kl_track_spec s = spec_of("a", asks, asked("hello"));
    kl_run *r;
    kli_track t;
    int ready[2];
    char mark;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (kl_run_open(&r, &opts, &e)) _exit(1);
        kli_track_init(&t, r, &s);
        if (kli_track_lease(&t, &e) || write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ready[0], &mark, 1), 1);
    assert_err(KL_EBUSY, run_all(&s, 1, 1, false));
    assert_contains(e.message,
                    kl_arena_printf(arena, "process %d is running this track", (int)pid).ptr);
    assert_contains(e.hint, "klineage run show");
    kill(pid, SIGKILL);
    assert_ok(run_all(&s, 1, 1, false));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(calls(), 1);
}

static void test_run__two_runs_share_a_store(void **state) {
    (void)state;
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        if ((pids[i] = fork()) != 0) continue;
        result got[2] = {0};
        opts.trial = (uint64_t)i;
        kl_track_spec specs[] = {spec_of("a", chain, &got[0]), spec_of("b", chain, &got[1])};
        kl_err err = run_all(specs, 2, 2, false);
        _exit(err ? 1 : got[0].answers + got[1].answers == 2 * CALLS ? 0 : 2);
    }
    for (int i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(calls(), 4 * 2 * CALLS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_run__killed_anywhere_it_ends_with_the_same_rows),
        TEST(test_run__killed_while_it_asks_the_money_stays_counted),
        TEST(test_run__killed_with_children_it_ends_with_the_same_rows),
        TEST(test_run_tracks__bring_their_results_home),
        TEST(test_run_tracks__out_of_money_a_line_stops_at_the_same_place_here),
        TEST(test_run_tracks__share_the_cap_of_the_run),
        TEST(test_run_tracks__a_crash_is_the_crash_of_one_track),
        TEST(test_run_tracks__an_error_comes_with_its_words),
        TEST(test_run_tracks__each_track_is_told_apart),
        TEST(test_run_tracks__the_parent_may_look_at_the_journal_meanwhile),
        TEST(test_run_tracks__a_line_that_depends_on_more_than_answers_is_caught),
        TEST(test_run_tracks__pump_returns_what_is_waited_for),
        TEST(test_run_tracks__without_pump_it_waits),
        TEST(test_run_tracks__an_interrupt_is_passed_on_and_loses_nothing),
        TEST(test_run_tracks__a_track_that_stays_taken_is_refused_by_its_process),
        TEST(test_run_tracks__two_processes_do_not_work_on_one_track),
        TEST(test_run__two_runs_share_a_store),
    };
    unsetenv("KLINEAGE_PRICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
