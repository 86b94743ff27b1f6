/* conformance_test.c - what every executor owes, whoever judges for it: the same verdicts on the
 * same kernels, ids that name one job, answers that wait to be fetched.  Rows of the table, and 64
 * simulated workers.
 *
 * A new row is tested by being one; where a worker is needed, open_row says who.  A row that needs
 * a cluster is tested with KL_TEST_EXECUTOR=NAME, by an entry of its own. SPDX-License-Identifier:
 * Apache-2.0 */
#include "simulated.h"
#include "base/fs.h"
#include "kit/server.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TASK KL_TEST_ROOT "/tasks/gemm"
#define KERNELS KL_TEST_ROOT "/tests/flow/kernels"
enum { LONGEST_SECONDS = 60, MOMENT_NS = 20000000, MANY = 256 };

static struct {
    kl_arena *arena;
    const char *dir;
    kl_task *task;
    kl_kernel *right, *wrong, *broken;
    kl_executor *x;
    const kl_executor_ops *ops;
    pid_t worker; /* 0: none */
} s;

/* ---- who works for whom ------------------------------------------------------------------ */

/* A worker that does what comes until it is ended. */
static void work_on_spool(const char *dir) {
    kl_executor *here;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        int done, failed;
        kl_error own = {0};
        if (kli_fs_is_dir(dir) && !kl_executor_open(&here, "local", &own)) {
            (void)!kl_spool_work(dir, here, &done, &failed, &own);
            kl_executor_close(here);
        }
        nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
    }
}

/* Rows for which the test starts more than a process, and what with. */
static const struct {
    const char *name, *script;
} CLUSTERS[] = {{"slurm", "slurm.py"}, {"ssh", "sshd.py"}};

static const char *script_of(const char *row) {
    for (size_t i = 0; i < KL_COUNT(CLUSTERS); i++)
        if (strcmp(row, CLUSTERS[i].name) == 0) return CLUSTERS[i].script;
    return NULL;
}

/* Is it the turn of this row? */
static bool is_tested(const kl_executor_ops *ops) {
    const char *named = getenv("KL_TEST_EXECUTOR");
    return named ? strcmp(named, ops->name) == 0 : !script_of(ops->name);
}

/* Open a row in the test's own folder, with somebody to work for it. */
static void open_row(const kl_executor_ops *ops) {
    const bool folder = strchr(ops->spec, ':') != NULL;
    const char *dir = kli_fs_join(s.arena, s.dir, ops->name).ptr;
    setenv("KLINEAGE_CACHE", kli_fs_join(s.arena, s.dir, "cache").ptr, 1);
    if (strcmp(ops->name, "ssh") == 0) dir = kl_arena_printf(s.arena, "localhost:%s", dir).ptr;
    s.ops = ops;
    assert_ok(kl_executor_open_ops(&s.x, ops, folder ? dir : "", &e));
    if (strcmp(ops->name, "spool") != 0) return;
    s.worker = fork();
    if (s.worker == 0) work_on_spool(dir);
    assert_true(s.worker > 0);
}

static void close_row(void) {
    if (s.worker) {
        kill(s.worker, SIGKILL);
        waitpid(s.worker, NULL, 0);
    }
    s.worker = 0;
    kl_executor_close(s.x);
}

/* ---- jobs -------------------------------------------------------------------------------- */

static kl_gate_job job_of(const kl_kernel *k, uint64_t seed) {
    return (kl_gate_job){
        .task = s.task,
        .kernel = k,
        .opts = {.workload = "tiny", .check_only = true, .quick = true, .seed = seed}};
}

static void submit(char id[65], const kl_kernel *k, uint64_t seed) {
    const kl_gate_job j = job_of(k, seed);
    assert_ok(kl_executor_submit(id, s.x, s.arena, &j, &e));
    assert_int_equal(strspn(id, "0123456789abcdef"), 64);
}

/* Asked until there is an answer, which may be an error. */
static kl_err fetch(kl_verdict *v, const char *id) {
    const time_t until = time(NULL) + LONGEST_SECONDS;
    kl_err err;
    while ((err = kl_executor_poll(v, s.x, s.arena, id, &e)) == KL_PENDING && time(NULL) < until)
        if (s.ops->keeps) nanosleep(&(struct timespec){.tv_nsec = MOMENT_NS}, NULL);
    return err;
}

static void expect(const char *id, const kl_kernel *k, kl_outcome outcome) {
    kl_verdict v;
    assert_ok(fetch(&v, id));
    if (v.outcome != outcome)
        fail_msg("%s: %s, not %s: %.*s", s.ops->name, kl_outcome_name(v.outcome),
                 kl_outcome_name(outcome), KL_STR_ARG(v.why));
    assert_str(v.kernel_hash, k->hash);
    assert_str(v.task, "gemm");
}

/* ---- what every row owes ----------------------------------------------------------------- */

static void keys_name_the_question(void) {
    const kl_gate_job jobs[] = {job_of(s.right, 1), job_of(s.wrong, 1), job_of(s.right, 2)};
    char keys[KL_COUNT(jobs)][65], again[65];
    for (size_t i = 0; i < KL_COUNT(jobs); i++) {
        assert_ok(kl_executor_key(keys[i], s.x, s.arena, &jobs[i], &e));
        assert_ok(kl_executor_key(again, s.x, s.arena, &jobs[i], &e));
        assert_string_equal(keys[i], again);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(keys[i], keys[k]);
    }
}

static void verdicts_are_the_gates(void) {
    char right[65], wrong[65], broken[65];
    submit(right, s.right, 1);
    submit(wrong, s.wrong, 1);
    submit(broken, s.broken, 1);
    expect(broken, s.broken, KL_OUTCOME_NO_COMPILE); /* not in the order of submission */
    expect(wrong, s.wrong, KL_OUTCOME_WRONG);
    expect(right, s.right, KL_OUTCOME_PASS);
}

static void one_job_however_often_it_is_submitted(void) {
    char first[65], second[65];
    kl_verdict v, w;
    submit(first, s.right, 3);
    submit(second, s.right, 3);
    assert_string_equal(first, second);
    assert_ok(fetch(&v, first));
    assert_int_equal(v.outcome, KL_OUTCOME_PASS);
    if (!s.ops->keeps) {
        assert_err(KL_ENOENT,
                   kl_executor_poll(&w, s.x, s.arena, first, &e)); /* the next one measures anew */
        return;
    }
    assert_ok(kl_executor_poll(&w, s.x, s.arena, first, &e));
    assert_string_equal(v.receipt, w.receipt);
    submit(second, s.right, 3);
    assert_ok(kl_executor_poll(&w, s.x, s.arena, second, &e));
    assert_string_equal(v.receipt, w.receipt);
}

static void cancelled_jobs_can_be_submitted_again(void) {
    char id[65], unknown[65];
    submit(id, s.wrong, 4);
    assert_ok(kl_executor_cancel(s.x, s.arena, id, &e));
    assert_ok(kl_executor_cancel(s.x, s.arena, id, &e));
    memset(unknown, 'a', 64);
    unknown[64] = '\0';
    assert_ok(kl_executor_cancel(s.x, s.arena, unknown, &e));
    submit(id, s.wrong, 4);
    expect(id, s.wrong, KL_OUTCOME_WRONG);
}

static void what_no_gate_can_answer_is_an_error(void) {
    kl_gate_job j = job_of(s.right, 5);
    kl_verdict v;
    char id[65];
    j.opts.workload = "nowhere";
    kl_err err = kl_executor_submit(id, s.x, s.arena, &j, &e);
    if (!err) err = fetch(&v, id);
    assert_err(KL_ENOENT, err);
    assert_contains(e.message, "nowhere");
}

static void describes_itself(void) {
    const kl_str text = kl_executor_describe(s.x, s.arena);
    assert_true(text.len > 0 && kl_executor_capacity(s.x) >= 1);
    for (size_t i = 0; i < text.len; i++) assert_true((unsigned char)text.ptr[i] >= ' ');
    assert_true(s.ops->doc[0] && kl_str_starts(kl_str_of(s.ops->spec), kl_str_of(s.ops->name)));
}

static void a_verdict_outlives_its_executor(void) {
    char id[65];
    kl_verdict v;
    submit(id, s.broken, 6);
    assert_ok(fetch(&v, id));
    close_row();
    assert_str(v.kernel_hash, s.broken->hash);
    assert_true(v.why.len > 0 && v.detail.len > 0);
    open_row(s.ops);
}

static void owes(const kl_executor_ops *ops) {
    open_row(ops);
    describes_itself();
    keys_name_the_question();
    verdicts_are_the_gates();
    one_job_however_often_it_is_submitted();
    cancelled_jobs_can_be_submitted_again();
    what_no_gate_can_answer_is_an_error();
    a_verdict_outlives_its_executor();
    close_row();
}

static void test_executor__every_row_keeps_its_promises(void **state) {
    (void)state;
    const kl_executor_ops *ops;
    for (int i = 0; (ops = kl_executor_each(i)); i++)
        if (is_tested(ops)) owes(ops);
}

static void test_executor__so_do_64_simulated_workers(void **state) {
    (void)state;
    owes(&executor_simulated);
}

static void test_executor__jobs_share_64_workers_and_each_is_answered(void **state) {
    (void)state;
    static char ids[MANY][65];
    open_row(&executor_simulated);
    const simulated_cluster *c = simulated_last;
    for (int i = 0; i < MANY; i++) submit(ids[i], i % 3 ? s.right : s.wrong, (uint64_t)i + 1);
    for (int i = MANY - 1; i >= 0; i--)
        expect(ids[i], i % 3 ? s.right : s.wrong, i % 3 ? KL_OUTCOME_PASS : KL_OUTCOME_WRONG);
    assert_int_equal(c->most_running, SIMULATED_WORKERS);
    assert_int_equal(c->n, MANY);
    assert_int_equal(c->n_answers, 2);
    close_row();
}

static void test_executor__specs_name_rows(void **state) {
    (void)state;
    kl_executor *x;
    const kl_executor_ops *ops;
    for (int i = 0; (ops = kl_executor_each(i)); i++) {
        const bool takes = strchr(ops->spec, ':') != NULL;
        const kl_str spec = kl_arena_printf(s.arena, "%s%s%s", ops->name, takes ? ":" : "",
                                            !takes                     ? ""
                                            : strcmp(ops->name, "ssh") ? s.dir
                                                                       : "localhost");
        assert_ok(kl_executor_open(&x, spec.ptr, &e));
        assert_ptr_equal(kl_executor_ops_of(x), ops);
        kl_executor_close(x);
    }
    assert_ok(kl_executor_open(&x, NULL, &e));
    assert_string_equal(kl_executor_ops_of(x)->name, "local");
    kl_executor_close(x);
    assert_err(KL_EINVAL, kl_executor_open(&x, "slum:here", &e));
    assert_contains(e.message, "local, spool:DIR");
    assert_err(KL_EINVAL, kl_executor_open(&x, "spool", &e));
    assert_err(KL_EINVAL, kl_executor_open(&x, "local:here", &e));
}

static int set_up(void **state) {
    (void)state;
    kl_str dir;
    s.arena = arena = kl_arena_new();
    e = (kl_error){0};
    assert_ok(kli_fs_temp_dir(&dir, s.arena, &e));
    s.dir = dir.ptr;
    assert_ok(kl_task_load(&s.task, s.arena, TASK, &e));
    assert_ok(kl_kernel_load(&s.right, s.arena, TASK "/naive.c", NULL, &e));
    assert_ok(kl_kernel_load(&s.wrong, s.arena, KERNELS "/gemm_wrong.c", NULL, &e));
    assert_ok(kl_kernel_load(&s.broken, s.arena, KERNELS "/gemm_syntax.c", NULL, &e));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (s.worker) close_row();
    kli_fs_remove_tree(s.dir);
    kl_arena_free(s.arena);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void reach_by_ssh(void) {
    kl_arena *a = kl_arena_new();
    setenv("KLINEAGE_SSH", kit_server_ready(), 1);
    setenv("KLINEAGE_SSH_WORKER", kli_fs_find_part(a, "klineage-worker").ptr, 1);
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_executor__specs_name_rows),
        TEST(test_executor__every_row_keeps_its_promises),
        TEST(test_executor__so_do_64_simulated_workers),
        TEST(test_executor__jobs_share_64_workers_and_each_is_answered),
    };
    const char *row = getenv("KL_TEST_EXECUTOR"), *script = row ? script_of(row) : NULL;
    if (script && !kit_server_start(script, NULL)) return 77;
    if (script) cmocka_set_test_filter("test_executor__every_row*");
    if (script && strcmp(row, "slurm") == 0) setenv("SLURM_CONF", kit_server_ready(), 1);
    if (script && strcmp(row, "ssh") == 0) reach_by_ssh();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
