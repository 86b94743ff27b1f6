/* compile_server.c - who asks the process that compile_server.py is.
 *
 *   gate                            server: its jail, its process namespace, process 1 there
 *   a job = request, answer, log --> child: takes them as 0, 1 and 2, and is the compiler
 *   status <------------------------ once nothing of the child is left
 *
 * The three are files in memory that the gate made, so that the jail needs no place to write, and
 * the two that are written are sealed to a size: a flood ends at its own error. A server has one
 * job at a time; who finds all of them at work starts another. One whose job has to be given up, or
 * that does not answer, is ended, and the next job starts its successor. Not here: what a script
 * does. SPDX-License-Identifier: Apache-2.0 */
#include "compile_server.h"
#include "compile.h"
#include "isolation.h"
#include "base/fs.h"
#include "base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif
#define MAX_ANSWER_BYTES ((size_t)64 << 20) /* eight times the longest PTX seen */
#define MAX_LOG_BYTES ((size_t)16 << 20)
#define LOOK_MS 100   /* an interrupt is seen this much later */
#define NOWHERE "/"   /* working and temporary folder of who may write nowhere */
#define FIXED_WORDS 6 /* of a command line, before its modules */

enum { REQUEST, ANSWER, LOG, DESCRIPTORS };
enum { SERVERS = 8, MODULES = 16, JOBS_FD = 3 };

/* ---- starting one ------------------------------------------------------------------------ */

typedef struct {
    const kli_compile_script *script; /* NULL: free */
    pid_t pid, owner;                 /* a forked copy of its owner may not talk to it */
    int socket;
    bool busy;
} compile_server;

static compile_server servers[SERVERS];
static pthread_mutex_t servers_lock = PTHREAD_MUTEX_INITIALIZER;

static void make_words(const char **words, kl_arena *a, const kli_compile_script *s,
                       const char *how) {
    const char *const fixed[FIXED_WORDS] = {
        s->python, "-I", "-B", kli_fs_find_part(a, KLI_COMPILE_SERVER).ptr, how, s->site};
    int n = FIXED_WORDS;
    memcpy(words, fixed, sizeof fixed);
    words[n++] = s->script;
    for (const char *const *m = s->modules; *m && n < FIXED_WORDS + MODULES; m++) words[n++] = *m;
    words[n] = NULL;
}

/* Async-signal-safe calls only.  The jail ties it to the thread that started it; its socket, which
 * lasts as long as the process, takes the place of that. */
static KL_NORETURN void become_server(const char *const *words, const char *const *env,
                                      kli_jail *jail, int socket) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC), high = fcntl(socket, F_DUPFD, 10);
    const bool joined = dup2(nowhere, 0) == 0 && dup2(nowhere, 1) == 1 && dup2(nowhere, 2) == 2 &&
                        dup2(high, JOBS_FD) == JOBS_FD && chdir(NOWHERE) == 0;
    (void)syscall(SYS_close_range, JOBS_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC);
    if (joined && kli_jail_enter(jail) == 0 && prctl(PR_SET_PDEATHSIG, 0) == 0 &&
        kli_set_limit(RLIMIT_MSGQUEUE, 0)) /* a queue would outlast the job that made it */
        execve(words[0], (char *const *)(uintptr_t)words, (char *const *)(uintptr_t)env);
    _exit(126);
}

/* Whatever would let one job meet another is asked for, not hoped for. */
static const char *clone_server(compile_server *s, const kli_compile_script *script, int socket) {
    const char *words[FIXED_WORDS + MODULES + 2], *env[KLI_COMPILE_ENVIRONMENT];
    kli_jail jail;
    kl_arena *a = kl_arena_new();
    make_words(words, a, script, "serve");
    kli_compile_environment(env, a, NOWHERE);
    kli_jail_open(&jail, NULL, script->readable);
    const bool confined = jail.ruleset >= 0 && jail.filter.program.len > 0;
    s->pid = confined ? (pid_t)syscall(SYS_clone, kli_namespace_flags() | SIGCHLD, NULL, NULL, NULL,
                                       NULL)
                      : -1;
    if (s->pid == 0) become_server(words, env, &jail, socket);
    kli_jail_close(&jail);
    kl_arena_free(a);
    return !confined    ? "no Landlock or no system call filter here"
           : s->pid < 0 ? "no process namespace here"
                        : NULL;
}

static const char *server_start(compile_server *s, const kli_compile_script *script) {
    int pair[2];
    KL_ASSERT(!s->script);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return "no socket";
    const char *why = clone_server(s, script, pair[1]);
    close(pair[1]);
    if (why) {
        close(pair[0]);
        return why;
    }
    s->script = script;
    s->owner = getpid();
    s->socket = pair[0];
    return NULL;
}

static void server_end(compile_server *s) {
    KL_ASSERT(s->script && s->pid > 1);
    close(s->socket);
    if (s->owner == getpid()) {
        kill(s->pid, SIGKILL); /* and with it all of its namespace */
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    *s = (compile_server){0};
}

/* One that has nothing to do, else a new one; NULL: `*why`. */
static compile_server *server_take(const kli_compile_script *script, const char **why) {
    compile_server *found = NULL, *unused = NULL;
    *why = "every server is at work";
    pthread_mutex_lock(&servers_lock);
    for (int i = 0; i < SERVERS; i++) {
        compile_server *s = &servers[i];
        if (s->script && s->owner != getpid()) server_end(s);
        if (s->script == script && !s->busy) found = s;
        if (!s->script) unused = s;
    }
    if (!found && unused && !(*why = server_start(unused, script))) found = unused;
    if (found) found->busy = true;
    pthread_mutex_unlock(&servers_lock);
    return found;
}

static void server_give_back(compile_server *s, bool usable) {
    pthread_mutex_lock(&servers_lock);
    KL_ASSERT(s->busy);
    s->busy = false;
    if (!usable) server_end(s);
    pthread_mutex_unlock(&servers_lock);
}

/* ---- one job ----------------------------------------------------------------------------- */

static bool open_job(int fds[DESCRIPTORS], kl_str request) {
    static const size_t room[DESCRIPTORS] = {[ANSWER] = MAX_ANSWER_BYTES, [LOG] = MAX_LOG_BYTES};
    bool ok = true;
    for (int i = 0; i < DESCRIPTORS; i++) {
        fds[i] = memfd_create("job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        ok = ok && fds[i] >= 0 && ftruncate(fds[i], (off_t)room[i]) == 0;
    }
    ok = ok && kli_fs_write_all(fds[REQUEST], request) && lseek(fds[REQUEST], 0, SEEK_SET) == 0;
    for (int i = 0; ok && i < DESCRIPTORS; i++)
        ok = fcntl(fds[i], F_ADD_SEALS,
                   F_SEAL_SEAL | F_SEAL_GROW | F_SEAL_SHRINK | (i == REQUEST ? F_SEAL_WRITE : 0)) ==
             0;
    return ok;
}

static void close_job(const int fds[DESCRIPTORS]) {
    for (int i = 0; i < DESCRIPTORS; i++)
        if (fds[i] >= 0) close(fds[i]);
}

static bool send_job(const compile_server *s, const int fds[DESCRIPTORS]) {
    char byte = 'j';
    struct iovec text = {&byte, 1};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
    } control = {0};
    const struct msghdr message = {.msg_iov = &text,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof control};
    control.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                    .cmsg_type = SCM_RIGHTS,
                                    .cmsg_len = CMSG_LEN(DESCRIPTORS * sizeof(int))};
    memcpy(CMSG_DATA(&control.head), fds, DESCRIPTORS * sizeof(int));
    return sendmsg(s->socket, &message, MSG_NOSIGNAL) == 1;
}

typedef enum { ENDED, LOST, TIMED_OUT, INTERRUPTED } job_finish;

static job_finish await_status(const compile_server *s, int *status) {
    const int64_t deadline_ns = kli_now_ns() + KL_COMPILE_WALL_SECONDS * 1000000000ll;
    struct pollfd ready = {s->socket, POLLIN, 0};
    while (poll(&ready, 1, LOOK_MS) <= 0) {
        if (kli_interrupted()) return INTERRUPTED;
        if (kli_now_ns() >= deadline_ns) return TIMED_OUT;
    }
    return recv(s->socket, status, sizeof *status, 0) == (ssize_t)sizeof *status ? ENDED : LOST;
}

/* Its end is where the child stopped writing, and a child may say what it likes of that. */
static kl_str written(kl_arena *a, int fd, size_t most) {
    const off_t end = lseek(fd, 0, SEEK_CUR);
    const size_t n = end < 0 ? 0 : (size_t)end < most ? (size_t)end : most;
    char *text = KL_ARRAY(a, char, n + 1);
    const ssize_t got = pread(fd, text, n, 0);
    KL_ASSERT(got <= (ssize_t)n);
    text[got < 0 ? 0 : got] = '\0';
    return (kl_str){text, got < 0 ? 0 : (size_t)got};
}

static job_finish server_job(kli_proc_result *out, kl_arena *a, const compile_server *s,
                             kl_str request) {
    int fds[DESCRIPTORS], status = 0;
    cpu_set_t cores;
    const int64_t began = kli_now_ns();
    /* A child is where its server is, and that should be where we are. */
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        (void)sched_setaffinity(s->pid, sizeof cores, &cores);
    const bool sent = open_job(fds, request) && send_job(s, fds);
    const job_finish how = sent ? await_status(s, &status) : LOST;
    *out = (kli_proc_result){.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                             .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                             .timed_out = how == TIMED_OUT,
                             .out = written(a, fds[ANSWER], MAX_ANSWER_BYTES),
                             .err = written(a, fds[LOG], MAX_LOG_BYTES),
                             .wall_ns = kli_now_ns() - began};
    close_job(fds);
    return how;
}

static kl_err run_cold(kli_proc_result *out, kl_arena *a, const kli_compile_script *script,
                       const char *how, kl_str request, kl_error *e) {
    const char *words[FIXED_WORDS + MODULES + 2];
    make_words(words, a, script, how);
    return kli_compile_run_on(out, a, words, request, NOWHERE, script->readable, MAX_ANSWER_BYTES,
                              e);
}

static kl_str last_line(kl_str text) {
    text = kl_str_trim(text);
    size_t from = text.len;
    while (from && text.ptr[from - 1] != '\n') from--;
    return (kl_str){text.ptr + from, text.len - from};
}

/* Whether it is the compiler that fails is asked without a kernel: one could have any status. */
static kl_err ask_cold(kli_proc_result *out, kl_arena *a, const kli_compile_script *script,
                       kl_str request, kl_error *e) {
    kli_proc_result bare;
    kl_err code = run_cold(out, a, script, "once", request, e);
    if (code || (out->exit_code == 0 && !out->signal)) return code;
    code = run_cold(&bare, a, script, "load", KL_S(""), e);
    if (code || (bare.exit_code == 0 && !bare.signal)) return code;
    const kl_str said = last_line(bare.err);
    kl_fail(e, KL_ENODEV, script->script, "its compiler does not load: %.*s", KL_STR_ARG(said));
    return kl_hint(e, "klineage doctor tells which package %s has", script->python);
}

kl_err kli_compile_ask(kli_proc_result *out, kl_str *cold, kl_arena *a,
                       const kli_compile_script *script, kl_str request, kl_error *e) {
    const char *why;
    KL_ASSERT(script->python && script->site && script->script && request.len);
    compile_server *s = server_take(script, &why);
    const job_finish how = s ? server_job(out, a, s, request) : LOST;
    if (s) server_give_back(s, how == ENDED);
    if (s && how == LOST) why = "the warm process ended";
    *cold =
        how == LOST ? kl_arena_printf(a, "compiled by a process of its own: %s", why) : (kl_str){0};
    if (how == LOST) return ask_cold(out, a, script, request, e);
    if (how == INTERRUPTED) return kl_fail(e, KL_EINTR, script->script, "interrupted");
    return kli_compile_blame(out, script->python, e);
}
