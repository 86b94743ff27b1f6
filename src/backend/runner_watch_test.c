/* runner_watch_test.c - a runner beside programs that want its core: what is subtracted, what is
 * noticed, what is never a hang. SPDX-License-Identifier: Apache-2.0 */
#include "runner_fixture.h"
#include "runner_impl.h"
#include "base/fs.h"
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#define HEAD                                                                                       \
    "//! launch scale args(x, s, y, N)\nvoid scale(const float *x, float s, float *y, int n) "
#define WORK                                                                                       \
    "{ for (volatile int i = 0; i < ROUNDS; i++) { } for (int i = 0; i < n; i++) y[i] = s * "      \
    "x[i]; }\n"

enum { CORE = 1, HOGS = 3 }; /* the fixture pins its runner to core 1 */

/* Processes that do nothing but want core 1; they end with this one. */
static void hogs_start(pid_t *hogs) {
    for (int i = 0; i < HOGS; i++) {
        hogs[i] = fork();
        assert_true(hogs[i] >= 0);
        if (hogs[i]) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(CORE, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
        alarm(60);
        for (volatile int k = 0;; k = k + 1) {
        }
    }
}

static void hogs_end(const pid_t *hogs) {
    for (int i = 0; i < HOGS; i++) {
        kill(hogs[i], SIGKILL);
        waitpid(hogs[i], NULL, 0);
    }
}

static bool two_cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET(CORE, &set) &&
           CPU_COUNT(&set) > 1;
}

/* ---- what is subtracted ------------------------------------------------------------------ */

static void test_runner_time__the_handshake_never_eats_a_batch(void **state) {
    (void)state;
    static const struct {
        double interval, handshake, net;
    } ROWS[] = {
        {5e6, 300, 5e6 - 300}, /* as measured */
        {1000, 300, 950},      /* a twentieth at most */
        {16e6, 20e6, 15.2e6},  /* an exchange that somebody interrupted */
    };
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        kl_sample s = {0};
        assert_true(fabs(kli_runner_net(&s, ROWS[i].interval, ROWS[i].handshake) - ROWS[i].net) <
                    1e-6);
        assert_false(s.late);
        assert_true(fabs(s.handshake_share - ROWS[i].handshake / ROWS[i].interval) < 1e-9);
    }
    kl_sample s = {0};
    assert_true(kli_runner_net(&s, 0, 300) == 0.0);
    assert_true(s.late); /* no time at all, and said so */
}

/* ---- what is noticed --------------------------------------------------------------------- */

static int disturbed_of(fixture *f, int rounds) {
    const kl_time_request q = {.method = KL_TIME_BATCH, .calls = 4, .poison = 0xA5};
    int disturbed = 0;
    double ns;
    kl_error e = {0};
    for (int i = 0; i < rounds; i++) {
        assert_ok(kli_runner_time(f->runner, &f->fault, &ns, &q, 20 * SECOND, &e));
        if (f->fault.kind) fail_msg("%s", f->fault.text);
        const kl_sample s = kli_runner_sample(f->runner);
        disturbed += s.preempted || s.late || s.stolen;
        assert_true(ns > 0);
    }
    return disturbed;
}

static void test_runner_watch__a_batch_that_lost_its_core_is_noticed(void **state) {
    fixture f;
    pid_t hogs[HOGS];
    (void)state;
    if (!two_cores()) skip();
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, "#define ROUNDS 20000000\n" HEAD WORK,
                  false); /* tens of milliseconds: longer than any slice */
    hogs_start(hogs);
    const int among_hogs = disturbed_of(&f, 4);
    hogs_end(hogs);
    assert_int_equal(among_hogs, 4);
    fixture_close(&f);
}

/* A library that takes some milliseconds in its runner's own process, on core 1. */
static void library_ready(fixture *f) {
    static const char SOURCE[] =
        "#include <klineage/plugin.h>\n"
        "int kl_plugin_open(void **s, char *w, size_t n) { (void)s, (void)w, (void)n; return 0; }\n"
        "int kl_plugin_prepare(void *s, const kl_plugin_call *c, char *w, size_t n)\n"
        "{ (void)s, (void)c, (void)w, (void)n; return 0; }\n"
        "int kl_plugin_run(void *s, const kl_plugin_call *c)\n"
        "{ (void)s, (void)c; for (volatile int i = 0; i < 4000000; i++) { } return 0; }\n"
        "const char *kl_plugin_describe(void *s) { (void)s; return \"busy\"; }\n";
    const kl_compile_opts compile = {.cache_dir = "cache"};
    kl_error e = {0};
    fixture_open(f, KL_BACKEND_CPU);
    fixture_compile_for(f, "#define ROUNDS 1\n" HEAD WORK, true);
    f->plan.n_launches = 0;
    assert_ok(kli_fs_write("busy.c", kl_str_of(SOURCE), &e));
    assert_ok(kli_compile_plugin(&f->artefact, f->arena, &f->device, "busy.c", &compile, &e));
    fixture_start(f, true);
    fixture_load(f);
    if (f->fault.kind) fail_msg("%s", f->fault.text);
}

static void test_runner_watch__a_library_says_what_it_lost(void **state) {
    fixture f;
    pid_t hogs[HOGS];
    (void)state;
    if (!two_cores()) skip();
    library_ready(&f);
    hogs_start(hogs);
    const int among_hogs = disturbed_of(&f, 4);
    hogs_end(hogs);
    assert_int_equal(among_hogs, 4);
    assert_false(kli_watch_lost(1000000, 6000)); /* half a percent and the clock's own error */
    assert_true(kli_watch_lost(1000000, 8000));
    fixture_close(&f);
}

static void test_runner_watch__a_short_batch_on_a_free_core_is_left_alone(void **state) {
    fixture f;
    (void)state;
    if (!two_cores()) skip();
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, "#define ROUNDS 1\n" HEAD WORK, false);
    assert_true(disturbed_of(&f, 100) <
                100); /* microseconds: even beside many other programs some are whole */
    fixture_close(&f);
}

/* ---- what is never a hang ---------------------------------------------------------------- */

static void test_runner_watch__waiting_for_a_core_is_no_hang(void **state) {
    fixture f;
    pid_t hogs[HOGS];
    kl_error e = {0};
    int64_t wall;
    (void)state;
    if (!two_cores()) skip();
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(&f, "#define ROUNDS 200000000\n" HEAD WORK, false);
    assert_ok(kli_runner_run(f.runner, &f.fault, 0, 0, 0xA5, 60 * SECOND, &wall, &e));
    assert_int_equal(f.fault.kind, KL_FAULT_NONE);
    hogs_start(hogs);
    const kl_err code = kli_runner_run(f.runner, &f.fault, 0, 0, 0xA5, wall * 3 / 2, &wall, &e);
    hogs_end(hogs);
    if (f.fault.kind) fail_msg("fault %d: %s", f.fault.kind, f.fault.text);
    if (code) assert_err(KL_EBUSY, code); /* four times as long was not enough either */
    fixture_close(&f);
}

static void test_runner_watch__a_kernel_that_sleeps_hangs(void **state) {
    fixture f;
    kl_error e = {0};
    int64_t wall;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_ready(
        &f, "#include <unistd.h>\n" HEAD "{ (void)x; (void)s; (void)n; (void)y; sleep(60); }\n",
        true);
    assert_ok(kli_runner_run(f.runner, &f.fault, 0, 0, 0xA5, SECOND / 5, &wall, &e));
    fixture_expect_fault(&f, KL_FAULT_HANG, 0, "time allowed");
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runner_time__the_handshake_never_eats_a_batch),
        cmocka_unit_test(test_runner_watch__a_batch_that_lost_its_core_is_noticed),
        cmocka_unit_test(test_runner_watch__a_library_says_what_it_lost),
        cmocka_unit_test(test_runner_watch__a_short_batch_on_a_free_core_is_left_alone),
        cmocka_unit_test(test_runner_watch__waiting_for_a_core_is_no_hang),
        cmocka_unit_test(test_runner_watch__a_kernel_that_sleeps_hangs),
    };
    kli_fs_remove_tree("cache");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
