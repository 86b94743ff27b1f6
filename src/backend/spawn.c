/* spawn.c - how a runner process begins: its namespaces, its environment, its one socket.
 *
 * clone(2) is called directly: one call gives the child its own network, IPC and process-number
 * spaces, and the child is still a plain child of the gate.  As leader of its own process group it
 * can be killed with everything it started; as process 1 of its own number space it takes
 * everything along when it ends. Not here: what it does to itself once it runs (worker.c,
 * isolation.c).  SPDX-License-Identifier: Apache-2.0 */
#include "isolation.h"
#include "runner_impl.h"
#include "base/fs.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SCRIPT_SHARE 0.75

enum { ARGUMENTS = 8 }; /* of a runner, with the NULL at their end */

extern char **environ;

/* Settings that make a library choose a slower core than it would: a baseline must not be crippled
 * by its surroundings. */
static const char *const CRIPPLING[] = {"OPENBLAS_CORETYPE=",
                                        "OPENBLAS_L2_SIZE=",
                                        "BLIS_ARCH_TYPE=",
                                        "MKL_ENABLE_INSTRUCTIONS=",
                                        "DNNL_MAX_CPU_ISA=",
                                        "ONEDNN_MAX_CPU_ISA=",
                                        "NVPL_BLAS_DEBUG_CPU_TYPE=",
                                        "LD_PRELOAD=",
                                        "GLIBC_TUNABLES=",
                                        "OMP_",
                                        "GOMP_"};
/* All that native candidates get to see of the environment. */
static const char *const HARMLESS[] = {
    "PATH=", "LD_LIBRARY_PATH=", "OCL_ICD_VENDORS=", "OCL_ICD_FILENAMES=", "LANG="};

static bool spawn_begins_with_any(const char *text, const char *const *prefixes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

static char **spawn_make_environment(const kl_runner *r, kl_arena *a) {
    size_t n = 0, kept = 0;
    bool native = r->backend->shared_memory && !r->opts.trusted;
    while (environ[n]) n++;
    char **env = KL_ARRAY(a, char *, n + 2);
    for (size_t i = 0; i < n; i++) {
        bool keep = native ? spawn_begins_with_any(environ[i], HARMLESS, KL_COUNT(HARMLESS))
                           : !spawn_begins_with_any(environ[i], CRIPPLING, KL_COUNT(CRIPPLING));
        if (keep) env[kept++] = environ[i];
    }
    if (r->scratch_dir[0])
        env[kept++] =
            (char *)(uintptr_t)kl_arena_printf(a, "KLINEAGE_SCRATCH=%s", r->scratch_dir).ptr;
    return env;
}

/* Before exec: the new program's address space is laid out for it. */
static void allow_deep_stack(void) {
    struct rlimit now;
    if (getrlimit(RLIMIT_STACK, &now) != 0) return;
    now.rlim_cur = now.rlim_max == RLIM_INFINITY || now.rlim_max > KLI_STACK_BYTES ? KLI_STACK_BYTES
                                                                                   : now.rlim_max;
    (void)setrlimit(RLIMIT_STACK, &now);
}

/* Async-signal-safe calls only, as after any fork of a threaded process. */
static _Noreturn void become_runner(char *const *argv, char *const *env, int socket, pid_t gate,
                                    uint64_t most_bytes, bool deep_stack) {
    if (most_bytes) (void)setrlimit(RLIMIT_DATA, &(struct rlimit){most_bytes, most_bytes});
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (gate && getppid() != gate) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_DFL);
    if (deep_stack) allow_deep_stack();
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    int high = fcntl(socket, F_DUPFD, 10);
    if (high < 0 || dup2(nowhere, 0) < 0 || dup2(nowhere, 1) < 0 || dup2(high, KL_WIRE_FD) < 0)
        _exit(127);
    if (!getenv("KLINEAGE_WORKER_STDERR")) dup2(nowhere, 2);
    (void)close_range(KL_WIRE_FD + 1, ~0u, 0);
    execve(argv[0], argv, env);
    _exit(127);
}

/* A script takes what it likes for what lies between its inputs and its outputs, and a machine that
 * swaps measures nothing: so it gets a part of what is free.  Not on a GPU, whose driver maps more
 * than it uses. */
static uint64_t script_memory(const kl_runner *r) {
    if (!r->opts.script || !r->backend->shared_memory) return 0;
    const int64_t free_bytes = kli_memory_room_now().available;
    return free_bytes == INT64_MAX ? 0 : (uint64_t)((double)free_bytes * SCRIPT_SHARE);
}

/* The parent's process number is 0 as seen from a number space of one's own, so only plain children
 * can compare it. */
static pid_t clone_runner(kl_runner *r, char *const *argv, char *const *env, int socket) {
    bool native = r->backend->shared_memory && !r->opts.trusted;
    long flags = native ? kli_namespace_flags() : 0;
    const uint64_t most = script_memory(r);
    pid_t gate = getpid();
    long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid < 0 && flags) {
        flags = 0;
        pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    }
    if (pid == 0)
        become_runner(argv, env, socket, flags ? 0 : gate, most,
                      r->opts.backend == KL_BACKEND_CPU && !r->opts.script);
    r->namespaces = flags != 0;
    return (pid_t)pid;
}

static kl_err make_arguments(const char **argv, const kl_runner *r, kl_arena *a, kl_error *e) {
    int n = 0;
    if (r->opts.script) {
        const char *chosen = getenv("KLINEAGE_PYTHON");
        kl_str python = kli_fs_find_program(a, chosen && *chosen ? chosen : "python3");
        if (!python.len) return kl_fail(e, KL_ENODEV, "python3", "no Python for a script baseline");
        argv[n++] = python.ptr;
        argv[n++] = kli_fs_find_part(a, "runner_script.py").ptr;
    } else {
        argv[n++] = r->opts.worker ? r->opts.worker : kli_fs_find_part(a, "klineage-worker").ptr;
    }
    if (access(argv[n - 1], R_OK) != 0) {
        kl_fail(e, KL_ESPAWN, argv[n - 1], "the runner program is missing: %s", strerror(errno));
        return kl_hint(e, "klineage-worker must be in the same folder as klineage, or on PATH");
    }
    argv[n++] = "run";
    argv[n++] = r->backend->name;
    if (r->opts.trusted) argv[n++] = "--trusted";
    KL_ASSERT(n < ARGUMENTS && !argv[n]);
    return KL_OK;
}

kl_err kli_runner_spawn(kl_runner *r, kl_error *e) {
    const char *argv[ARGUMENTS] = {0};
    int pair[2];
    KL_ASSERT(r->pid < 0 && r->scratch_dir); /* no runner is left behind */
    kl_arena *a = kl_arena_new();
    kl_err code = make_arguments(argv, r, a, e);
    if (!code && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        code = kl_fail(e, KL_ESPAWN, argv[0], "no socket for a runner: %s", strerror(errno));
    if (!code) {
        char **env = spawn_make_environment(r, a);
        r->pid = clone_runner(r, (char *const *)(uintptr_t)argv, env, pair[1]);
        int cause = errno;
        close(pair[1]);
        r->socket = pair[0];
        if (r->pid > 0) setpgid(r->pid, r->pid);
        if (r->pid < 0) {
            close(pair[0]);
            code = kl_fail(e, KL_ESPAWN, argv[0], "cannot fork: %s", strerror(cause));
        }
    }
    kl_arena_free(a);
    return code;
}
