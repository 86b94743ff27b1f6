/* proc.c - run a program to its end with limits.
 *
 *   parent                         child (own process group, dies with the parent)
 *   input -> memfd --------------> stdin     a file, not a pipe: no deadlock, no SIGPIPE, nothing
 * to poll poll  <- pipe <--------------- stdout poll  <- pipe <--------------- stderr read  <- pipe
 * (close on exec)  errno of a failed exec; end of file means it runs
 *
 * The group is killed before its leader is reaped, so its number cannot have been given to somebody
 * else; whatever the program left running in the background ends with it.  A grandchild that left
 * the group and holds a pipe open is not waited for. Should we be killed, the kernel kills the
 * program, but not what it started (the compiler proper behind a compiler's driver).  A guard in
 * the same group does: a second child that does nothing but learn of our end. Not here: confinement
 * (the caller's hook), resource limits, terminals. SPDX-License-Identifier: Apache-2.0 */
#include "base/proc.h"
#include "base/fs.h"
#include "base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif
#define DEFAULT_OUTPUT ((size_t)1 << 20)
#define LONGEST_POLL_MS 100 /* a signal that lands just before poll() is seen this much later */
#define BLIND_POLL_MS                                                                              \
    2 /* where pidfd_open is missing, the end of a silent program is looked for this often */

extern char **environ;

/* ---- descriptors ------------------------------------------------------------------------- */

static void proc_close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* Above 2, so that dup2 onto 0..2 in the child never meets one of its own sources. */
static int above_standard(int fd) {
    if (fd < 0 || fd > 2) return fd;
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return moved;
}

static bool make_pipe(int *read_end, int *write_end) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    *read_end = above_standard(ends[0]);
    *write_end = above_standard(ends[1]);
    return *read_end >= 0 && *write_end >= 0;
}

static int proc_make_input(kl_str input) {
    if (!input.len) return above_standard(open("/dev/null", O_RDONLY | O_CLOEXEC));
    int fd = above_standard(memfd_create("stdin", MFD_CLOEXEC));
    if (fd >= 0 && (!kli_fs_write_all(fd, input) || lseek(fd, 0, SEEK_SET) != 0))
        proc_close_fd(&fd);
    return fd;
}

/* ---- child ------------------------------------------------------------------------------- */

typedef struct {
    int input, out_write, err_write, exec_write; /* handed to the child */
    int out_read, err_read, exec_read, pidfd;    /* ours */
    pid_t pid, parent, guard;                    /* guard -1: none could be started */
} proc_process;

enum { STAGE_CHDIR = 1, STAGE_EXEC };
typedef struct {
    int stage, error;
} exec_failure;

static KL_NORETURN void child_fails(int fd, int where) {
    exec_failure failure = {where, errno};
    (void)!write(fd, &failure, sizeof failure);
    _exit(127);
}

/* Async-signal-safe calls only: the parent may have threads, and one of them may hold malloc's
 * lock. */
static KL_NORETURN void become_program(const proc_process *p, const kli_proc_spec *spec,
                                       const char *program) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p->parent) _exit(127); /* the parent was gone before the line above */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL); /* an ignored signal stays ignored across exec */
    signal(SIGXFSZ, SIG_DFL);
    bool joined =
        dup2(p->input, 0) >= 0 && dup2(p->out_write, 1) >= 0 && dup2(p->err_write, 2) >= 0;
    if (!joined) child_fails(p->exec_write, STAGE_EXEC);
    (void)syscall(SYS_close_range, 3u, ~0u,
                  CLOSE_RANGE_CLOEXEC); /* also what we inherited ourselves; Linux 5.11 */
    if (spec->cwd && chdir(spec->cwd) != 0) child_fails(p->exec_write, STAGE_CHDIR);
    if (spec->confine && spec->confine(spec->confine_ctx) != 0) _exit(126);
    execve(program, (char *const *)(uintptr_t)spec->argv,
           spec->envp ? (char *const *)(uintptr_t)spec->envp : environ);
    child_fails(p->exec_write, STAGE_EXEC);
}

/* ---- guard ------------------------------------------------------------------------------- */

static void on_parent_gone(int signal_number) {
    (void)signal_number;
    kill(0, SIGKILL);
}

/* Holds nothing open: a lock or a pipe of ours must end when we let go of it.  Async-signal-safe
 * calls only, as above. */
static KL_NORETURN void be_guard(const proc_process *p) {
    sigset_t none;
    if (setpgid(0, p->pid) != 0) _exit(0); /* the program is gone already */
    (void)syscall(SYS_close_range, 0u, ~0u, 0u);
    signal(SIGTERM, on_parent_gone);
    signal(SIGINT, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != p->parent) on_parent_gone(SIGTERM);
    for (;;) pause();
}

/* ---- parent ------------------------------------------------------------------------------ */

/* A path is meant from here, not from the child's folder. */
static const char *program_path(kl_arena *a, const kli_proc_spec *spec) {
    kl_str found = kli_fs_find_program(a, spec->argv[0]);
    if (!found.len) return NULL;
    if (found.ptr[0] == '/' || !spec->cwd) return found.ptr;
    char *here = getcwd(NULL, 0);
    const char *path = here ? kli_fs_join(a, here, found.ptr).ptr : found.ptr;
    free(here);
    return path;
}

static bool open_descriptors(proc_process *p, kl_str input) {
    p->input = proc_make_input(input);
    return p->input >= 0 && make_pipe(&p->out_read, &p->out_write) &&
           make_pipe(&p->err_read, &p->err_write) && make_pipe(&p->exec_read, &p->exec_write) &&
           fcntl(p->out_read, F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(p->err_read, F_SETFL, O_NONBLOCK) == 0;
}

static void close_child_ends(proc_process *p) {
    proc_close_fd(&p->input);
    proc_close_fd(&p->out_write);
    proc_close_fd(&p->err_write);
    proc_close_fd(&p->exec_write);
}

static void close_all(proc_process *p) {
    close_child_ends(p);
    proc_close_fd(&p->out_read);
    proc_close_fd(&p->err_read);
    proc_close_fd(&p->exec_read);
    proc_close_fd(&p->pidfd);
}

static int proc_reap(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/* Kill whatever is left of the group, then reap the leader. */
static int proc_end_group(const proc_process *p) {
    KL_ASSERT(p->pid > 1); /* 0 and -1 would be our own group, and everybody */
    kill(-p->pid, SIGKILL);
    kill(p->pid, SIGKILL); /* should it not have reached setpgid */
    if (p->guard > 0) kill(p->guard, SIGKILL);
    if (p->guard > 0) proc_reap(p->guard);
    return proc_reap(p->pid);
}

/* Waits for exec: end of file when it worked. */
static kl_err exec_outcome(proc_process *p, const kli_proc_spec *spec, kl_error *e) {
    exec_failure failure = {0};
    ssize_t n;
    do n = read(p->exec_read, &failure, sizeof failure);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof failure) return KL_OK;
    proc_end_group(p);
    if (failure.stage == STAGE_CHDIR)
        return kl_fail(e, KL_ESPAWN, spec->argv[0], "cannot enter the folder %s: %s", spec->cwd,
                       strerror(failure.error));
    return kl_fail(e, KL_ESPAWN, spec->argv[0], "cannot be started: %s", strerror(failure.error));
}

static kl_err proc_start(proc_process *p, const kli_proc_spec *spec, const char *program,
                         kl_error *e) {
    if (!open_descriptors(p, spec->input))
        return kl_fail(e, KL_ESPAWN, spec->argv[0], "no descriptors for its input and output: %s",
                       strerror(errno));
    p->parent = getpid();
    p->pid = fork();
    if (p->pid < 0) return kl_fail(e, KL_ESPAWN, spec->argv[0], "cannot fork: %s", strerror(errno));
    if (p->pid == 0) become_program(p, spec, program);
    setpgid(p->pid, p->pid); /* both sides do it: whoever comes first, no kill can miss */
    p->guard = fork();
    if (p->guard == 0) be_guard(p);
    close_child_ends(p);
    p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
    return exec_outcome(p, spec, e);
}

/* Takes what is there.  Closes `*fd` at end of file; keeps at most `*room` bytes and drops the
 * rest. */
static void drain(int *fd, kl_buf *text, size_t *room) {
    char block[16 << 10];
    while (*fd >= 0) {
        ssize_t n = read(*fd, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) {
            proc_close_fd(fd);
            return;
        }
        size_t keep = (size_t)n < *room ? (size_t)n : *room;
        kl_buf_add(text, (kl_str){block, keep});
        *room -= keep;
        if ((size_t)n < sizeof block)
            return; /* let poll decide: endless output must still meet its timeout */
    }
}

static bool has_ended(pid_t pid) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

static int poll_slice_ms(const proc_process *p, int64_t deadline_ns) {
    int64_t slice = p->pidfd < 0 ? BLIND_POLL_MS : LONGEST_POLL_MS;
    if (deadline_ns) {
        int64_t left = (deadline_ns - kli_now_ns() + 999999) / 1000000;
        if (left < slice) slice = left < 0 ? 0 : left;
    }
    return (int)slice;
}

typedef enum { ENDED, TIMED_OUT, INTERRUPTED } proc_finish;

static proc_finish watch(proc_process *p, int64_t deadline_ns, kl_buf *out, kl_buf *err,
                         size_t *room) {
    for (;;) {
        if (has_ended(p->pid)) return ENDED;
        if (kli_interrupted()) return INTERRUPTED;
        if (deadline_ns && kli_now_ns() >= deadline_ns) return TIMED_OUT;
        struct pollfd fds[] = {
            {p->out_read, POLLIN, 0}, {p->err_read, POLLIN, 0}, {p->pidfd, POLLIN, 0}};
        /* Negative descriptors are skipped. */
        if (poll(fds, KL_COUNT(fds), poll_slice_ms(p, deadline_ns)) <= 0) continue;
        if (fds[0].revents) drain(&p->out_read, out, room);
        if (fds[1].revents) drain(&p->err_read, err, room);
    }
}

/* What the dead left in the pipes: at most their capacity, so this ends even if a stray grandchild
 * goes on writing. */
static void drain_rest(int *fd, kl_buf *text, size_t *room) {
    for (int i = 0; *fd >= 0 && i < 256; i++) {
        struct pollfd ready = {*fd, POLLIN, 0};
        if (poll(&ready, 1, 0) <= 0) return;
        drain(fd, text, room);
    }
}

static void proc_describe(kli_proc_result *result, int status) {
    result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

kl_err kli_proc_run(kli_proc_result *result, kl_arena *a, const kli_proc_spec *spec, kl_error *e) {
    KL_ASSERT(spec->argv && spec->argv[0]);
    *result = (kli_proc_result){.exit_code = -1};
    if (kli_interrupted()) return kl_fail(e, KL_EINTR, spec->argv[0], "interrupted");
    const char *program = program_path(a, spec);
    if (!program) return kl_fail(e, KL_ENOENT, spec->argv[0], "no such program");
    proc_process p = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, -1};
    int64_t began = kli_now_ns();
    kl_buf out = {0}, err = {0};
    size_t room = spec->max_output ? spec->max_output : DEFAULT_OUTPUT;
    kl_err code = proc_start(&p, spec, program, e);
    if (code) goto done;
    proc_finish how = watch(&p, spec->timeout_ns ? began + spec->timeout_ns : 0, &out, &err, &room);
    proc_describe(result, proc_end_group(&p));
    result->wall_ns = kli_now_ns() - began;
    result->timed_out = how == TIMED_OUT;
    drain_rest(&p.out_read, &out, &room);
    drain_rest(&p.err_read, &err, &room);
    result->out = kl_arena_copy(a, kl_buf_str(&out));
    result->err = kl_arena_copy(a, kl_buf_str(&err));
    if (how == INTERRUPTED) code = kl_fail(e, KL_EINTR, spec->argv[0], "interrupted");
done:
    close_all(&p);
    kl_buf_fini(&out);
    kl_buf_fini(&err);
    return code;
}
