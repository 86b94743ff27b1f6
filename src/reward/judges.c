/* judges.c - the processes that judge, as the server sees them: a line in, a line out.
 *
 *   not started --start--> idle --give--> judging --take--> idle ...
 *        ^                   '------------end (stdin closed, or it died)---------'
 *
 * A judge is this program again (`klineage serve --reward --judge`), in a process group of its own,
 * so that ^C at a terminal is the server's business; it is killed with its server, since a verdict
 * that nobody waits for would be judged a second time by the next one.
 * Not here: what it does (judge.c), which question it gets (desk.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"
#include "base/fs.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN_NS INT64_C(1000000000) /* one that ends at once is not started in a circle */

/* ---- its process ------------------------------------------------------------------------ */

static void become_judge(int in, int out, const char *const *argv, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(1);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

static kl_err fork_judge(kli_judge *j, const char *const *argv, kl_error *e) {
    int in[2], out[2];
    const pid_t parent = getpid();
    if (pipe2(in, O_CLOEXEC)) return kl_fail(e, KL_ESPAWN, "judge", "%s", strerror(errno));
    if (pipe2(out, O_CLOEXEC)) {
        close(in[0]), close(in[1]);
        return kl_fail(e, KL_ESPAWN, "judge", "%s", strerror(errno));
    }
    const pid_t pid = fork();
    if (pid == 0) become_judge(in[0], out[1], argv, parent);
    close(in[0]), close(out[1]);
    if (pid < 0) {
        close(in[1]), close(out[0]);
        return kl_fail(e, KL_ESPAWN, "judge", "cannot start: %s", strerror(errno));
    }
    (void)fcntl(in[1], F_SETFL, O_NONBLOCK);
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    j->pid = pid, j->in = in[1], j->out = out[0];
    return KL_OK;
}

kl_err kli_judge_start(kli_judge *j, const kli_judges *all, kl_error *e) {
    kl_arena *a = kl_arena_new();
    const char *argv[12] = {kli_fs_join(a, kli_fs_self_dir(a).ptr, "klineage").ptr, "serve",
                            "--reward", "--judge"};
    const char assurance[2] = {all->require_assurance, 0};
    size_t n = 4;
    KL_ASSERT(!j->pid && !j->n_jobs);
    if (all->store) argv[n++] = "--store", argv[n++] = all->store;
    if (strncmp(all->executor, "spool:", 6) == 0)
        argv[n++] = "--spool", argv[n++] = all->executor + 6;
    if (assurance[0]) argv[n++] = "--require-assurance", argv[n++] = assurance;
    const kl_err err = fork_judge(j, argv, e);
    kl_arena_free(a);
    return err;
}

static void wait_for_end(pid_t pid, bool gently) {
    for (int tenths = 0; gently && tenths < 20; tenths++) { /* it was idle: it ends at once */
        if (waitpid(pid, NULL, WNOHANG) != 0) return;
        usleep(100000);
    }
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

kli_job *kli_judge_end(kli_judge *j, bool gently) {
    kli_job *left = j->jobs;
    if (!j->pid) return NULL;
    close(j->in);
    close(j->out);
    wait_for_end(j->pid, gently);
    kl_buf_fini(&j->to);
    kl_buf_fini(&j->from);
    *j = (kli_judge){.not_before_ns = kli_now_ns() + AGAIN_NS};
    return left;
}

/* ---- lines ------------------------------------------------------------------------------ */

void kli_judge_flush(kli_judge *j) {
    while (j->sent < j->to.len) {
        const ssize_t n = write(j->in, j->to.ptr + j->sent, j->to.len - j->sent);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return; /* full, or it has ended: then reading says so */
        j->sent += (size_t)n;
    }
    kl_buf_fini(&j->to);
    j->sent = 0;
}

void kli_judge_give(kli_judge *j, kli_job *job) {
    job->next = j->jobs;
    j->jobs = job;
    j->n_jobs++;
    job->given_ns = kli_now_ns();
    kl_buf_add(&j->to, job->line);
    kli_judge_flush(j);
}

kli_job *kli_judge_take(kli_judge *j, const char *key) {
    for (kli_job **at = &j->jobs; *at; at = &(*at)->next)
        if (strcmp((*at)->key, key) == 0) {
            kli_job *taken = *at;
            *at = taken->next;
            taken->next = NULL;
            j->n_jobs--;
            return taken;
        }
    return NULL;
}

bool kli_judge_read(kli_judge *j) {
    char bytes[16384];
    for (;;) {
        const ssize_t n = read(j->out, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN;
        if (n == 0 || j->from.len > KLI_REWARD_LINE) return false;
        kl_buf_add(&j->from, (kl_str){bytes, (size_t)n});
    }
}

bool kli_judge_line(kl_str *line, kl_arena *a, kli_judge *j) {
    const char *end = j->from.len ? memchr(j->from.ptr, '\n', j->from.len) : NULL;
    if (!end) return false;
    const size_t n = (size_t)(end - j->from.ptr);
    *line = kl_arena_copy(a, (kl_str){j->from.ptr, n});
    j->from.len -= n + 1;
    memmove(j->from.ptr, end + 1, j->from.len + 1); /* with its NUL */
    return true;
}
