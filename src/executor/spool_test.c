/* spool_test.c - jobs that are carried, shared, interrupted, abandoned and forged.  Who judges is a
 * stand-in, and so is nvcc; there is no compiler for C. SPDX-License-Identifier: Apache-2.0 */
#include "executors.h"
#include "spool_impl.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TASK KL_TEST_ROOT "/tasks/softmax"

/* ---- who judges -------------------------------------------------------------------------- */

static kl_err gate_says;    /* KL_OK: pass */
static int unstable;        /* so many times before it */
static char gate_log[4096]; /* one line a run, shared by the workers of a test */
static char spool_dir[4096];
static bool take_over;    /* the job goes back to todo while it is judged */
static double taken_age;  /* seconds since the last sign of life when judging began */
static kl_gate_job asked; /* the last job */
static struct {
    uint64_t seed, next; /* of the job, of the one that it was told comes next; 0: none */
    int later, tasks;    /* jobs that it was told of; their tasks and its own */
} order[8];
static size_t n_asked;
static char opponent_hash[65]; /* of its `against`; empty: none */
static char opponent_path[256];

static kl_err judge_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    (void)a, (void)rest, (void)e;
    *self = &asked;
    return KL_OK;
}

static kl_err judge_submit(char id[65], void *self, kl_arena *a, const kl_gate_job *j,
                           kl_error *e) {
    (void)self, (void)a, (void)e;
    asked = *j;
    memcpy(id, j->kernel->hash, 65);
    return KL_OK;
}

/* The folder of the only job that is taken. */
static kl_str taken_folder(kl_arena *a) {
    const char *taken = kli_fs_join(a, spool_dir, "taken").ptr;
    kl_str *names;
    size_t n;
    kl_error e = {0};
    assert_ok(kli_fs_list(&names, &n, a, taken, &e));
    return n == 1 ? kli_fs_join(a, taken, names[0].ptr) : (kl_str){0};
}

static void meddle(kl_arena *a) {
    const kl_str mine = taken_folder(a);
    struct stat st;
    if (!mine.len) return;
    if (stat(mine.ptr, &st) == 0) taken_age = difftime(time(NULL), st.st_mtime);
    if (!take_over) return;
    take_over = false;
    const kl_str id = {strrchr(mine.ptr, '/') + 1, 64};
    (void)rename(mine.ptr, kl_arena_printf(a, "%s/todo/%.*s", spool_dir, KL_STR_ARG(id)).ptr);
}

static void note_run(void) {
    const int fd = open(gate_log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0) return;
    (void)!write(fd, ".\n", 2);
    close(fd);
}

static void note_later(const kl_gate_job *j) {
    const size_t at = n_asked % KL_COUNT(order);
    bool other = false;
    order[at].later = 0;
    for (const kl_gate_job *k = j->opts.next; k; k = k->opts.next) {
        order[at].later++;
        other = other || strcmp(k->task->hash, j->task->hash) != 0;
    }
    order[at].tasks = 1 + other;
}

static kl_err judge_poll(kl_verdict *out, void *self, kl_arena *a, const char *id, kl_error *e) {
    const kl_kernel *opponent = asked.opts.against;
    (void)self, (void)id;
    snprintf(opponent_hash, sizeof opponent_hash, "%s", opponent ? opponent->hash : "");
    if (opponent) snprintf(opponent_path, sizeof opponent_path, "%.*s", KL_STR_ARG(opponent->path));
    order[n_asked % KL_COUNT(order)].seed = asked.opts.seed;
    order[n_asked % KL_COUNT(order)].next = asked.opts.next ? asked.opts.next->opts.seed : 0;
    note_later(&asked);
    n_asked++;
    meddle(a);
    asked.opts.progress(asked.opts.progress_ctx, KL_STAGE_TINY, NULL);
    usleep(2000);
    note_run();
    *out = (kl_verdict){.outcome = unstable-- > 0 ? KL_OUTCOME_UNSTABLE : KL_OUTCOME_PASS,
                        .stage = KL_STAGE_DONE,
                        .assurance = 'B',
                        .task = asked.task->name,
                        .kernel_hash = kl_str_of(asked.kernel->hash),
                        .kernel_path = asked.kernel->path};
    if (gate_says) kl_hint(e, "hint%d", (int)kl_fail(e, gate_says, "test", "as told"));
    return gate_says;
}

static const kl_executor_ops JUDGE = {.name = "judge",
                                      .open = judge_open,
                                      .key = judge_submit,
                                      .submit = judge_submit,
                                      .poll = judge_poll};

static size_t runs(void) {
    struct stat st;
    return stat(gate_log, &st) ? 0 : (size_t)st.st_size / 2;
}

/* ---- one spool a test -------------------------------------------------------------------- */

typedef struct {
    kl_arena *arena;
    kl_error error;
    kl_task *task;
    kl_kernel *kernel;
    const char *dir;
    kl_gate_opts opts;
    kl_executor *judge;
    char id[65];
} fixture;
#define e (f->error)

static int setup(void **state) {
    static fixture shared;
    fixture *f = &shared;
    kl_str dir;
    *f = (fixture){.arena = kl_arena_new()};
    assert_ok(kli_fs_temp_dir(&dir, f->arena, &e));
    f->dir = dir.ptr;
    assert_ok(kl_task_load(&f->task, f->arena, TASK, &e));
    assert_ok(kl_kernel_load(&f->kernel, f->arena, TASK "/naive.c", NULL, &e));
    assert_ok(kl_executor_open_ops(&f->judge, &JUDGE, "", &e));
    snprintf(spool_dir, sizeof spool_dir, "%s", f->dir);
    snprintf(gate_log, sizeof gate_log, "%s/log", f->dir);
    gate_says = KL_OK;
    unstable = 0;
    n_asked = 0;
    take_over = false;
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    kl_executor_close(f->judge);
    kli_fs_remove_tree(f->dir);
    kl_arena_free(f->arena);
    return 0;
}

static kl_err try_put(fixture *f) {
    return kl_spool_put(f->id, f->dir, f->arena, &(kl_gate_job){f->task, f->kernel, f->opts}, &e);
}

static void put(fixture *f) { assert_ok(try_put(f)); }

static const char *at(fixture *f, const char *folder, const char *name) {
    return kl_arena_printf(f->arena, "%s/%s/%s", f->dir, folder, name).ptr;
}
static const char *file(fixture *f, const char *name) {
    return kli_fs_join(f->arena, at(f, "todo", f->id), name).ptr;
}

static size_t count(fixture *f, const char *folder) {
    kl_str *names;
    size_t n;
    assert_ok(kli_fs_list(&names, &n, f->arena, kli_fs_join(f->arena, f->dir, folder).ptr, &e));
    return n;
}

static void work(fixture *f, int want_done, int want_failed) {
    int done, failed;
    assert_ok(kl_spool_work(f->dir, f->judge, &done, &failed, &e));
    assert_int_equal(done, want_done);
    assert_int_equal(failed, want_failed);
}

static void overwrite(fixture *f, const char *path, const char *text) {
    assert_ok(kli_fs_write(path, kl_str_of(text), &e));
}

/* ---- putting and getting ----------------------------------------------------------------- */

static void test_executor_spool__carries_a_job_there_and_back(void **state) {
    fixture *f = *state;
    kl_verdict v;
    f->opts = (kl_gate_opts){.workload = "cpu",
                             .seed = UINT64_MAX,
                             .max_seconds = 2.5,
                             .require_assurance = 'B',
                             .check_only = true};
    put(f);
    assert_err(KL_PENDING, kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    work(f, 1, 0);
    assert_ok(kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    assert_int_equal(v.outcome, KL_OUTCOME_PASS);
    assert_str(v.kernel_hash, f->kernel->hash);
    assert_str(v.kernel_path, TASK "/naive.c");
    assert_true(asked.opts.seed == UINT64_MAX && asked.opts.max_seconds == 2.5 &&
                asked.opts.check_only && asked.opts.require_assurance == 'B');
    assert_int_equal(count(f, "todo") + count(f, "taken") + count(f, "tmp"), 0);
}

static void test_executor_spool__a_worker_says_what_comes_next(void **state) {
    fixture *f = *state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        f->opts.seed = seed;
        put(f);
    }
    work(f, 3, 0);
    assert_int_equal(n_asked, 3);
    for (int i = 0; i < 2; i++) assert_true(order[i].next == order[i + 1].seed);
    assert_true(order[2].next == 0 && !asked.opts.more_to_come);
}

/* One job of each task that the worker has not met: their processes come up together. */
static void test_executor_spool__a_worker_says_which_tasks_come(void **state) {
    fixture *f = *state;
    const kl_task *softmax = f->task;
    const kl_kernel *kernel = f->kernel;
    kl_task *saxpy;
    assert_ok(kl_task_load(&saxpy, f->arena, KL_TEST_ROOT "/tests/data/tasks/saxpy", &e));
    for (f->opts.seed = 1; f->opts.seed <= 6; f->opts.seed++) {
        assert_ok(kl_spool_put(f->id, f->dir, f->arena,
                               &(kl_gate_job){f->opts.seed % 2 ? softmax : saxpy, kernel, f->opts},
                               &e));
    }
    work(f, 6, 0);
    for (size_t i = 0; i + 1 < 6; i++) assert_true(order[i].next == order[i + 1].seed);
    /* Of the first job, the tasks of it and of what follows are both; then nothing is new. */
    assert_int_equal(order[0].tasks, 2);
    for (size_t i = 1; i < 6; i++) assert_true(order[i].later <= 1);
}

/* It was looked at and not taken: whoever judges it says what is wrong. */
static void test_executor_spool__an_odd_job_is_not_what_comes_next(void **state) {
    fixture *f = *state;
    for (f->opts.seed = 1; f->opts.seed <= 2; f->opts.seed++) {
        put(f);
        if (f->opts.seed == 2)
            overwrite(f, file(f, "kernel.c"),
                      kl_arena_printf(f->arena, "%s\n", f->kernel->source.ptr).ptr);
    }
    work(f, 1, 1);
    assert_int_equal(n_asked, 1);
    assert_true(order[0].next == 0);
}

static void test_executor_spool__putting_twice_is_one_job(void **state) {
    fixture *f = *state;
    put(f);
    put(f);
    assert_int_equal(count(f, "todo"), 1);
    assert_int_equal(
        rename(at(f, "todo", f->id),
               kl_arena_printf(f->arena, "%s/taken/%s@elsewhere@1", f->dir, f->id).ptr),
        0);
    put(f); /* while somebody has it */
    assert_int_equal(count(f, "todo"), 0);
    assert_int_equal(rename(kl_arena_printf(f->arena, "%s/taken/%s@elsewhere@1", f->dir, f->id).ptr,
                            at(f, "todo", f->id)),
                     0);
    work(f, 1, 0);
    put(f); /* after its answer */
    assert_int_equal(count(f, "todo"), 0);
}

static void test_executor_spool__the_id_is_what_is_asked_not_where_it_lay(void **state) {
    fixture *f = *state;
    char first[65];
    put(f);
    memcpy(first, f->id, sizeof first);
    f->kernel->path = KL_S("/somewhere/else.c");
    put(f);
    assert_string_equal(first, f->id);
    f->opts.quick = true;
    put(f);
    assert_string_not_equal(first, f->id);
    f->opts = (kl_gate_opts){.seed = 1};
    put(f);
    assert_string_not_equal(first, f->id);
    assert_int_equal(count(f, "todo"), 3);
}

/* The same sums over twice as many lines of comment: another kernel. */
static void oppose(fixture *f) {
    const kl_str source =
        kl_arena_printf(f->arena, "%.*s\n// a rival\n", KL_STR_ARG(f->kernel->source));
    kl_kernel *opponent;
    assert_ok(kl_kernel_parse(&opponent, f->arena, source, KL_S("old/rival.c"), f->kernel->surface,
                              NULL, &e));
    f->opts.against = opponent;
}

static void test_executor_spool__carries_a_rival(void **state) {
    fixture *f = *state;
    kl_verdict v;
    oppose(f);
    put(f);
    assert_true(kli_fs_exists(file(f, "against.c")));
    work(f, 1, 0);
    assert_ok(kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    assert_str(v.kernel_hash, f->kernel->hash);
    assert_string_equal(opponent_hash, f->opts.against->hash);
    assert_string_equal(opponent_path, "old/rival.c");
}

static void
test_executor_spool__a_rival_is_part_of_the_question_and_its_place_is_not(void **state) {
    fixture *f = *state;
    char alone[65], first[65];
    put(f);
    memcpy(alone, f->id, sizeof alone);
    oppose(f);
    put(f);
    memcpy(first, f->id, sizeof first);
    assert_string_not_equal(first, alone);
    ((kl_kernel *)f->opts.against)->path = KL_S("elsewhere.c");
    put(f);
    assert_string_equal(f->id, first);
    f->opts.against = f->kernel;
    put(f);
    assert_string_not_equal(f->id, first);
    assert_int_equal(count(f, "todo"), 3);
}

static void test_executor_spool__a_worker_that_knows_no_rivals_refuses_one(void **state) {
    fixture *f = *state;
    kl_str text;
    put(f);
    assert_ok(kli_fs_read(&text, f->arena, file(f, "job.json"), KLI_SPOOL_JOB_BYTES, &e));
    assert_contains(text.ptr, "\"version\": 1,");
    oppose(f);
    put(f);
    assert_ok(kli_fs_read(&text, f->arena, file(f, "job.json"), KLI_SPOOL_JOB_BYTES, &e));
    assert_contains(text.ptr, "\"version\": 2,");
}

static void test_executor_spool__a_rival_is_of_the_same_surface(void **state) {
    fixture *f = *state;
    kl_kernel *opponent;
    assert_ok(
        kl_kernel_load(&opponent, f->arena, KL_TEST_ROOT "/tasks/softmax/naive.cu", NULL, &e));
    f->opts.against = opponent;
    assert_err(KL_EINVAL, try_put(f));
}

/* A toolkit whose nvcc refuses everything. */
static void install_nvcc(fixture *f) {
    const char *home = kli_fs_join(f->arena, f->dir, "cuda").ptr;
    const char *bin = kli_fs_join(f->arena, home, "bin").ptr;
    assert_ok(kli_fs_mkdirs(bin, &e));
    const char *nvcc = kli_fs_join(f->arena, bin, "nvcc").ptr;
    overwrite(f, nvcc,
              "#!/bin/sh\n"
              "[ \"$1\" = --version ] && echo 'release 12.0, V12.0.1' && exit\n"
              "echo one >&2\n"
              "echo 'kernel.cu(2): error: expected an expression' >&2\n"
              "exit 1\n");
    const char *const seen[] = {f->dir, home, bin,
                                nvcc}; /* a compiler's jail may be another user's */
    for (size_t i = 0; i < KL_COUNT(seen); i++) assert_int_equal(chmod(seen[i], 0755), 0);
    setenv("CUDA_HOME", home, 1);
}

/* Nothing of it could run there: no visit is needed.  What a CPU's compiler says here, it says of
 * this CPU. */
static void
test_executor_spool__device_code_that_does_not_compile_is_answered_at_once(void **state) {
    fixture *f = *state;
    kl_verdict v;
    install_nvcc(f);
    put(f);
    assert_err(KL_PENDING, kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    f->opts.arch = "sm_90a";
    assert_ok(
        kl_kernel_load(&f->kernel, f->arena, KL_TEST_ROOT "/tasks/softmax/naive.cu", NULL, &e));
    put(f);
    unsetenv("CUDA_HOME");
    assert_ok(kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    assert_int_equal(v.outcome, KL_OUTCOME_NO_COMPILE);
    assert_str(v.why, "kernel.cu(2): error: expected an expression");
    work(f, 1, 0); /* the job of before alone */
}

static void put_for_hopper(fixture *f, const char *grid, const char *smem) {
    const char *path = at(f, "", "wide.cu");
    overwrite(f, path,
              kl_arena_printf(f->arena,
                              "//! launch f grid(%s) block(32) smem(%s) args(output)\n"
                              "extern \"C\" __global__ void f(void *output) {}\n",
                              grid, smem)
                  .ptr);
    f->opts.arch = "sm_90a";
    assert_ok(kl_kernel_load(&f->kernel, f->arena, path, NULL, &e));
    put(f);
}

/* Shared memory is the architecture's; how many multiprocessors there are only the device says. */
static void test_executor_spool__what_no_such_device_launches_is_answered_at_once(void **state) {
    fixture *f = *state;
    kl_verdict v;
    put_for_hopper(f, "sms", "232448");
    assert_err(KL_PENDING, kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    put_for_hopper(f, "1", "232448");
    assert_err(KL_PENDING, kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    put_for_hopper(f, "1", "232449");
    assert_ok(kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    assert_int_equal(v.outcome, KL_OUTCOME_REFUSED);
    assert_contains(v.why.ptr, "dynamic shared memory");
}

static void test_executor_spool__a_time_that_does_not_settle_is_taken_once_more(void **state) {
    fixture *f = *state;
    kl_verdict v;
    put(f);
    unstable = 1;
    work(f, 1, 0);
    assert_int_equal(runs(), 2);
    assert_ok(kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    assert_int_equal(v.outcome, KL_OUTCOME_PASS);
    f->opts.seed = 5;
    put(f);
    unstable = 3;
    work(f, 1, 0);
    assert_int_equal(runs(), 4);
    assert_ok(kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    assert_int_equal(v.outcome, KL_OUTCOME_UNSTABLE);
}

static void test_executor_spool__only_what_nobody_began_is_cancelled(void **state) {
    fixture *f = *state;
    kl_executor *x;
    kl_verdict v;
    assert_ok(kl_executor_open_ops(&x, &kli_executor_spool, f->dir, &e));
    put(f);
    assert_ok(kl_executor_cancel(x, f->arena, f->id, &e));
    assert_int_equal(count(f, "todo") + count(f, "tmp"), 0);
    put(f);
    assert_int_equal(rename(at(f, "todo", f->id), at(f, "taken", "x@elsewhere@1")), 0);
    assert_ok(kl_executor_cancel(x, f->arena, f->id, &e));
    assert_int_equal(count(f, "taken"), 1);
    assert_int_equal(rename(at(f, "taken", "x@elsewhere@1"), at(f, "todo", f->id)), 0);
    work(f, 1, 0);
    assert_ok(kl_executor_cancel(x, f->arena, f->id, &e));
    assert_ok(kl_executor_poll(&v, x, f->arena, f->id, &e));
    assert_err(KL_EINVAL, kl_executor_cancel(x, f->arena, "../taken", &e));
    kl_executor_close(x);
}

static void test_executor_spool__a_strange_id_is_no_path(void **state) {
    fixture *f = *state;
    kl_verdict v;
    assert_err(KL_EINVAL, kl_spool_get(&v, f->arena, f->dir, "../../etc/passwd", &e));
    assert_err(KL_EINVAL, kl_spool_get(&v, f->arena, f->dir, "", &e));
}

static void test_executor_spool__an_error_of_the_host_comes_back(void **state) {
    fixture *f = *state;
    kl_verdict v;
    put(f);
    gate_says = KL_ENODEV;
    work(f, 0, 1);
    assert_err(KL_ENODEV, kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    assert_contains(e.message, "as told");
    assert_contains(e.hint, "hint-5");
}

static void test_executor_spool__no_spool_is_said(void **state) {
    fixture *f = *state;
    int done, failed;
    assert_err(KL_ENOENT, kl_spool_work("/nonexistent/spool", f->judge, &done, &failed, &e));
}

/* ---- workers ----------------------------------------------------------------------------- */

static void test_executor_spool__two_workers_do_every_job_once(void **state) {
    enum { JOBS = 24, WORKERS = 2 };
    fixture *f = *state;
    pid_t child[WORKERS];
    int total = 0;
    for (int i = 1; i <= JOBS; i++) {
        f->opts.seed = (uint64_t)i;
        put(f);
    }
    for (int i = 0; i < WORKERS; i++)
        if ((child[i] = fork()) == 0) {
            int done, failed;
            kl_error own = {0};
            const kl_err err = kl_spool_work(f->dir, f->judge, &done, &failed, &own);
            _exit(err || failed ? 100 : done);
        }
    for (int i = 0; i < WORKERS; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 100);
        total += WEXITSTATUS(status);
    }
    assert_int_equal(total, JOBS);
    assert_int_equal(runs(), JOBS);
    assert_int_equal(count(f, "done"), JOBS);
    assert_int_equal(count(f, "todo") + count(f, "taken"), 0);
}

/* The job in the hands of `who`, seen alive `seconds` ago. */
static void hand_to(fixture *f, const char *host, long pid, time_t seconds) {
    const char *to = kl_arena_printf(f->arena, "%s/taken/%s@%s@%ld", f->dir, f->id, host, pid).ptr;
    const struct timespec then[2] = {{.tv_sec = time(NULL) - seconds},
                                     {.tv_sec = time(NULL) - seconds}};
    assert_int_equal(rename(at(f, "todo", f->id), to), 0);
    assert_int_equal(utimensat(AT_FDCWD, to, then, 0), 0);
}

static long dead_pid(void) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    return child;
}

static void host_name(char host[64]) {
    memset(host, 0, 64);
    (void)gethostname(host, 63);
    for (char *p = host; *p; p++)
        if (*p == '@' || *p == '/') *p = '-';
}

static void test_executor_spool__a_dead_workers_job_is_taken_back(void **state) {
    fixture *f = *state;
    char host[64];
    host_name(host);
    put(f);
    hand_to(f, host, dead_pid(), 0);
    work(f, 1, 0);
}

static void test_executor_spool__a_living_workers_job_is_left_alone(void **state) {
    fixture *f = *state;
    char host[64];
    host_name(host);
    put(f);
    hand_to(f, host, getpid(), 0);
    work(f, 0, 0);
    assert_int_equal(count(f, "taken"), 1);
}

static void test_executor_spool__another_hosts_job_is_taken_back_after_silence(void **state) {
    fixture *f = *state;
    put(f);
    hand_to(f, "elsewhere", 1, KLI_SPOOL_SILENT_SECONDS - 60);
    work(f, 0, 0);
    assert_int_equal(rename(kl_arena_printf(f->arena, "%s/taken/%s@elsewhere@1", f->dir, f->id).ptr,
                            at(f, "todo", f->id)),
                     0);
    hand_to(f, "elsewhere", 1, KLI_SPOOL_SILENT_SECONDS + 60);
    work(f, 1, 0);
}

static void test_executor_spool__a_job_that_waited_long_is_not_abandoned_when_taken(void **state) {
    fixture *f = *state;
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    put(f);
    assert_int_equal(utimensat(AT_FDCWD, at(f, "todo", f->id), old, 0), 0);
    work(f, 1, 0);
    assert_true(taken_age < KLI_SPOOL_SILENT_SECONDS / 2.0); /* a rename alone keeps the old time */
}

static void test_executor_spool__an_interrupted_worker_gives_its_job_back(void **state) {
    fixture *f = *state;
    int done, failed;
    put(f);
    gate_says = KL_EINTR;
    assert_err(KL_EINTR, kl_spool_work(f->dir, f->judge, &done, &failed, &e));
    assert_int_equal(done + failed, 0);
    assert_int_equal(count(f, "todo"), 1);
    gate_says = KL_OK;
    work(f, 1, 0);
}

static void test_executor_spool__a_slow_worker_that_lost_its_job_goes_on(void **state) {
    fixture *f = *state;
    put(f);
    take_over = true;
    work(f, 1, 0); /* judged twice, answered once */
    assert_int_equal(runs(), 2);
    assert_int_equal(count(f, "done"), 1);
}

static void
test_executor_spool__a_job_done_elsewhere_meanwhile_keeps_its_first_answer(void **state) {
    fixture *f = *state;
    put(f);
    assert_ok(kli_fs_mkdirs(at(f, "done", f->id), &e));
    overwrite(f, kli_fs_join(f->arena, at(f, "done", f->id), "verdict.json").ptr, "{}");
    work(f, 0, 0);
    assert_int_equal(runs(), 0);
    assert_int_equal(count(f, "todo") + count(f, "taken"), 0);
}

static void test_executor_spool__the_answer_of_a_worker_that_died_is_replaced(void **state) {
    fixture *f = *state;
    kl_verdict v;
    put(f);
    overwrite(f, file(f, "error.json"), "{\"code\": -5, \"message\": \"old\"}");
    work(f, 1, 0);
    assert_ok(kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    assert_int_equal(v.outcome, KL_OUTCOME_PASS);
}

/* ---- hostile content --------------------------------------------------------------------- */

static void test_executor_spool__odd_jobs_are_refused(void **state) {
    fixture *f = *state;
    char zeros[65] = {0};
    memset(zeros, '0', 64);
    static const char *const odd[] = {
        "",
        "[]",
        "1",
        "null",
        "{}",
        "{\"version\": 1}",
        "{\"version\": 2, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"c\"}",
        "{\"version\": 1, \"task\": \"../../etc\", \"kernel\": \"ID\", \"surface\": \"c\"}",
        "{\"version\": 1, \"task\": [\"ID\"], \"kernel\": \"ID\", \"surface\": \"c\"}",
        "{\"version\": 1, \"task\": \"ID\", \"kernel\": {}, \"surface\": \"c\"}",
        "{\"version\": 1, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"../c\"}",
        "{\"version\": 1, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": 3}",
        "{\"version\": 1, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"c\", "
        "\"require_assurance\": \"Z\"}",
        "{\"version\": 1, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"c\", \"against\": "
        "{\"kernel\": \"ID\", "
        "\"surface\": \"c\"}}",
        "{\"version\": 1, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"c\", \"against\": "
        "null}",
        "{\"version\": 2, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"c\", \"against\": "
        "null}",
        "{\"version\": 2, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"c\", \"against\": "
        "[]}",
        "{\"version\": 2, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"c\", \"against\": "
        "{\"kernel\": "
        "\"../x\", \"surface\": \"c\"}}",
        "{\"version\": 2, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"c\", \"against\": "
        "{\"kernel\": \"ID\"}}",
        "{\"version\": 2, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"c\", \"against\": "
        "{\"kernel\": \"ID\", "
        "\"surface\": \"cuda\"}}",
        "{\"version\": 3, \"task\": \"ID\", \"kernel\": \"ID\", \"surface\": \"c\", \"against\": "
        "{\"kernel\": \"ID\", "
        "\"surface\": \"c\"}}"};
    for (size_t i = 0; i < KL_COUNT(odd); i++) {
        carried_job j;
        kl_buf text = {0};
        for (const char *p = odd[i]; *p; p += 1 + (strncmp(p, "\"ID\"", 4) == 0 ? 3 : 0))
            if (strncmp(p, "\"ID\"", 4) == 0)
                kl_buf_printf(&text, "\"%s\"", zeros);
            else
                kl_buf_add(&text, (kl_str){p, 1});
        assert_err(KL_EPARSE, kli_spool_parse(&j, f->arena, kl_buf_str(&text), &e));
        kl_buf_fini(&text);
    }
}

static void test_executor_spool__odd_options_are_bounded(void **state) {
    fixture *f = *state;
    carried_job j;
    char id[65] = {0};
    memset(id, 'a', 64);
    const kl_str text = kl_arena_printf(
        f->arena,
        "{\"version\": 1, \"task\": \"%s\", \"kernel\": \"%s\", \"surface\": \"c\", "
        "\"max_seconds\": 1e300, \"min_seconds\": \"NaN\","
        " \"half_width\": -1, \"min_pairs\": [], \"seed\": \"18446744073709551615x\", "
        "\"params\": {\"a\": 1}, \"quick\": \"yes\"}",
        id, id);
    assert_ok(kli_spool_parse(&j, f->arena, text, &e));
    assert_true(j.opts.max_seconds == KLI_SPOOL_JOB_SECONDS && j.opts.min_seconds == 0 &&
                j.opts.half_width == 0 && j.opts.min_pairs == 0);
    assert_true(j.opts.seed == UINT64_MAX && !j.opts.quick);
    assert_null(j.kernel.params[0]);
}

static void test_executor_spool__what_job_json_says_is_what_put_wrote(void **state) {
    fixture *f = *state;
    carried_job j;
    kl_str text;
    f->opts = (kl_gate_opts){
        .workload = "cpu", .baseline = "all", .half_width = 0.01, .min_pairs = 12, .quick = true};
    put(f);
    assert_ok(kli_fs_read(&text, f->arena, file(f, "job.json"), KLI_SPOOL_JOB_BYTES, &e));
    assert_ok(kli_spool_parse(&j, f->arena, text, &e));
    assert_string_equal(j.id, f->id);
    assert_string_equal(j.opts.workload, "cpu");
    assert_string_equal(j.opts.baseline, "all");
    assert_true(j.opts.half_width == 0.01 && j.opts.min_pairs == 12 && j.opts.quick);
}

static void expect_refused(fixture *f, const char *words) {
    kl_verdict v;
    work(f, 0, 1);
    assert_int_equal(runs(), 0);
    const kl_err err = kl_spool_get(&v, f->arena, f->dir, f->id, &e);
    assert_true(err != KL_OK && err != KL_PENDING);
    assert_contains(e.message, words);
}

static void test_executor_spool__links_are_not_followed(void **state) {
    fixture *f = *state;
    put(f);
    unlink(file(f, "kernel.c"));
    assert_int_equal(symlink("/etc/passwd", file(f, "kernel.c")), 0);
    expect_refused(f, "not a plain file");
}

static void test_executor_spool__pipes_are_not_waited_for(void **state) {
    fixture *f = *state;
    put(f);
    unlink(file(f, "job.json"));
    assert_int_equal(mkfifo(file(f, "job.json"), 0600), 0);
    expect_refused(f, "not a plain file");
}

static void test_executor_spool__a_linked_folder_is_no_job(void **state) {
    fixture *f = *state;
    put(f);
    const char *aside = kli_fs_join(f->arena, f->dir, "aside").ptr;
    assert_int_equal(rename(at(f, "todo", f->id), aside), 0);
    assert_int_equal(symlink(aside, at(f, "todo", f->id)), 0);
    work(f, 0, 0);
    assert_int_equal(count(f, "aside"), 2); /* untouched: job.json and the kernel */
    assert_int_equal(count(f, "todo") + count(f, "taken"), 0);
}

static void test_executor_spool__strange_names_are_ignored(void **state) {
    fixture *f = *state;
    put(f);
    assert_ok(kli_fs_mkdirs(at(f, "todo", "not-an-id"), &e));
    assert_ok(kli_fs_mkdirs(at(f, "taken", "x@y@z"), &e));
    assert_ok(kli_fs_mkdirs(at(f, "taken", "@@@"), &e));
    work(f, 1, 0);
    assert_int_equal(count(f, "todo"), 1);
}

static void test_executor_spool__huge_files_are_refused(void **state) {
    fixture *f = *state;
    put(f);
    assert_int_equal(truncate(file(f, "job.json"), 64 << 20), 0);
    expect_refused(f, "limit");
}

static void test_executor_spool__a_changed_kernel_is_not_the_job(void **state) {
    fixture *f = *state;
    put(f);
    overwrite(f, file(f, "kernel.c"),
              kl_arena_printf(f->arena, "%s\nstatic int changed;\n", f->kernel->source.ptr).ptr);
    expect_refused(f, "the content of kernel.c");
}

static void test_executor_spool__a_changed_rival_is_not_the_job(void **state) {
    fixture *f = *state;
    oppose(f);
    put(f);
    overwrite(f, file(f, "against.c"), f->kernel->source.ptr);
    expect_refused(f, "the content of against.c");
}

static void test_executor_spool__a_rival_that_is_not_there_or_no_kernel_is_an_error_not_a_verdict(
    void **state) {
    fixture *f = *state;
    oppose(f);
    put(f);
    unlink(file(f, "against.c"));
    expect_refused(f, "cannot open");
    kli_fs_remove_tree(at(f, "done", f->id));
    put(f);
    overwrite(f, file(f, "against.c"), "//! lunch f\n");
    expect_refused(f, "lunch");
}

static void test_executor_spool__a_changed_job_is_not_the_job(void **state) {
    fixture *f = *state;
    kl_str text;
    put(f);
    assert_ok(kli_fs_read(&text, f->arena, file(f, "job.json"), KLI_SPOOL_JOB_BYTES, &e));
    char *quick = strstr(text.ptr, "\"quick\": false");
    assert_non_null(quick);
    memcpy(quick, "\"quick\": true ", 14);
    overwrite(f, file(f, "job.json"), text.ptr);
    expect_refused(f, "job's name");
}

static void test_executor_spool__a_changed_task_is_not_the_task(void **state) {
    fixture *f = *state;
    put(f);
    const char *oracle =
        kl_arena_printf(f->arena, "%s/tasks/%s/oracle.c", f->dir, f->task->hash).ptr;
    assert_true(kli_fs_exists(oracle));
    overwrite(f, oracle, "//! launch f args()\nvoid f(void) {}\n");
    expect_refused(f, "the task's content");
}

static void test_executor_spool__a_kernel_that_does_not_parse_is_a_verdict(void **state) {
    fixture *f = *state;
    kl_verdict v;
    put(f);
    overwrite(f, file(f, "kernel.c"), "//! lunch f\n");
    work(f, 1, 0);
    assert_ok(kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    assert_int_equal(v.outcome, KL_OUTCOME_REFUSED);
    assert_int_equal(v.stage, KL_STAGE_PARSE);
    assert_null(strstr(v.detail.ptr, f->dir)); /* the sender's path, not the worker's */
}

static void test_executor_spool__a_forged_answer_is_read_with_care(void **state) {
    fixture *f = *state;
    kl_verdict v;
    put(f);
    const char *done = at(f, "done", f->id);
    assert_ok(kli_fs_mkdirs(done, &e));
    assert_int_equal(symlink("/etc/passwd", kli_fs_join(f->arena, done, "verdict.json").ptr), 0);
    assert_err(KL_EINVAL, kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    unlink(kli_fs_join(f->arena, done, "verdict.json").ptr);
    overwrite(f, kli_fs_join(f->arena, done, "verdict.json").ptr, "{\"outcome\": \"pass\"}");
    assert_err(KL_EPARSE, kl_spool_get(&v, f->arena, f->dir, f->id, &e));
    overwrite(f, kli_fs_join(f->arena, done, "error.json").ptr, "{\"code\": 0, \"message\": [1]}");
    assert_err(KL_EIO, kl_spool_get(&v, f->arena, f->dir, f->id, &e)); /* never "ok" */
}

#define test_of(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        test_of(test_executor_spool__carries_a_job_there_and_back),
        test_of(test_executor_spool__a_worker_says_what_comes_next),
        test_of(test_executor_spool__a_worker_says_which_tasks_come),
        test_of(test_executor_spool__an_odd_job_is_not_what_comes_next),
        test_of(test_executor_spool__putting_twice_is_one_job),
        test_of(test_executor_spool__the_id_is_what_is_asked_not_where_it_lay),
        test_of(test_executor_spool__carries_a_rival),
        test_of(test_executor_spool__a_rival_is_part_of_the_question_and_its_place_is_not),
        test_of(test_executor_spool__a_worker_that_knows_no_rivals_refuses_one),
        test_of(test_executor_spool__a_rival_is_of_the_same_surface),
        test_of(test_executor_spool__device_code_that_does_not_compile_is_answered_at_once),
        test_of(test_executor_spool__what_no_such_device_launches_is_answered_at_once),
        test_of(test_executor_spool__a_time_that_does_not_settle_is_taken_once_more),
        test_of(test_executor_spool__only_what_nobody_began_is_cancelled),
        test_of(test_executor_spool__a_strange_id_is_no_path),
        test_of(test_executor_spool__an_error_of_the_host_comes_back),
        test_of(test_executor_spool__no_spool_is_said),
        test_of(test_executor_spool__two_workers_do_every_job_once),
        test_of(test_executor_spool__a_dead_workers_job_is_taken_back),
        test_of(test_executor_spool__a_living_workers_job_is_left_alone),
        test_of(test_executor_spool__another_hosts_job_is_taken_back_after_silence),
        test_of(test_executor_spool__a_job_that_waited_long_is_not_abandoned_when_taken),
        test_of(test_executor_spool__an_interrupted_worker_gives_its_job_back),
        test_of(test_executor_spool__a_slow_worker_that_lost_its_job_goes_on),
        test_of(test_executor_spool__a_job_done_elsewhere_meanwhile_keeps_its_first_answer),
        test_of(test_executor_spool__the_answer_of_a_worker_that_died_is_replaced),
        test_of(test_executor_spool__odd_jobs_are_refused),
        test_of(test_executor_spool__odd_options_are_bounded),
        test_of(test_executor_spool__what_job_json_says_is_what_put_wrote),
        test_of(test_executor_spool__links_are_not_followed),
        test_of(test_executor_spool__pipes_are_not_waited_for),
        test_of(test_executor_spool__a_linked_folder_is_no_job),
        test_of(test_executor_spool__strange_names_are_ignored),
        test_of(test_executor_spool__huge_files_are_refused),
        test_of(test_executor_spool__a_changed_kernel_is_not_the_job),
        test_of(test_executor_spool__a_changed_rival_is_not_the_job),
        test_of(
            test_executor_spool__a_rival_that_is_not_there_or_no_kernel_is_an_error_not_a_verdict),
        test_of(test_executor_spool__a_changed_job_is_not_the_job),
        test_of(test_executor_spool__a_changed_task_is_not_the_task),
        test_of(test_executor_spool__a_kernel_that_does_not_parse_is_a_verdict),
        test_of(test_executor_spool__a_forged_answer_is_read_with_care),
    };
    setenv("KLINEAGE_CC", "/nonexistent/cc", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
