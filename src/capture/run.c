/* run.c - a program on our own streams, with libklineage-capture.so in front of its driver.
 * SPDX-License-Identifier: Apache-2.0 */
#include "capture/capture.h"
#include "base/fs.h"
#include "base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    MOST_VARIABLES = 8192,
    ASKED_MS = 1000,   /* from ^C, which a terminal sends to both, until a program is asked by us */
    PATIENCE_MS = 6000 /* until it is killed */
};

static kl_err find_shim(kl_str *out, kl_arena *a, kl_error *e) {
    char real[PATH_MAX];
    const kl_str path = kli_fs_find_part(a, "libklineage-capture.so");
    if (realpath(path.ptr, real)) return *out = kl_arena_copy(a, kl_str_of(real)), KL_OK;
    kl_fail(e, KL_ENODEV, path.ptr, "the library that watches a driver is not there");
    return kl_hint(e, "build or install klineage again: it lies beside the program");
}

/* Ours before what is preloaded already. */
static char **capture_environment(kl_arena *a, kl_str shim, const char *folder) {
    const char *before = getenv("LD_PRELOAD");
    char **env = KL_ARRAY(a, char *, MOST_VARIABLES + 3);
    int n = 0;
    for (char **v = environ; *v && n < MOST_VARIABLES; v++)
        if (strncmp(*v, "LD_PRELOAD=", 11) != 0 && strncmp(*v, "KLINEAGE_CAPTURE=", 17) != 0)
            env[n++] = *v;
    env[n++] =
        (char *)(uintptr_t)kl_arena_printf(a, "LD_PRELOAD=%s%s%s", shim.ptr,
                                           before && *before ? ":" : "", before ? before : "")
            .ptr;
    env[n] = (char *)(uintptr_t)kl_arena_printf(a, "KLINEAGE_CAPTURE=%s", folder).ptr;
    return env;
}

/* As from a shell: what we ignore, it does not. */
static int capture_spawn(pid_t *pid, const char *const *argv, char **env, const char *output) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&how);
    (void)posix_spawnattr_setsigdefault(&how, &defaults);
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
    if (output) {
        (void)posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output,
                                               O_WRONLY | O_CREAT | O_APPEND, 0600);
        (void)posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    }
    const int error = posix_spawnp(pid, argv[0], &files, &how, (char *const *)(uintptr_t)argv, env);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&how);
    return error;
}

/* Who does not end by ^C is asked once more, then killed. A ^C reaches the program too: it may
 * have ended by it before it is looked for here, so it is looked for once more at the end. */
static int await_end(pid_t pid, bool *interrupted) {
    const struct timespec nap = {.tv_nsec = 5000000};
    int status = 0, waited_ms = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        (void)nanosleep(&nap, NULL);
        if (!kli_interrupted()) continue;
        waited_ms += 5;
        if (waited_ms == ASKED_MS) (void)kill(pid, SIGINT);
        if (waited_ms == PATIENCE_MS) (void)kill(pid, SIGKILL);
    }
    *interrupted = kli_interrupted();
    return status;
}

kl_err kli_capture_run(kli_capture_end *end, kl_arena *a, const char *const *argv,
                       const char *folder, const char *output, kl_error *e) {
    kl_str shim;
    pid_t pid;
    *end = (kli_capture_end){0};
    kl_err err = find_shim(&shim, a, e);
    if (err) return err;
    const int error = capture_spawn(&pid, argv, capture_environment(a, shim, folder), output);
    if (error == ENOENT) {
        kl_fail(e, KL_ENOENT, argv[0], "there is no such program");
        return kl_hint(e, "klineage capture -- PROGRAM ARGS: a name on PATH, or a path");
    }
    if (error) return kl_fail(e, KL_ESPAWN, argv[0], "it cannot be run: %s", strerror(error));
    const int status = await_end(pid, &end->interrupted);
    end->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return KL_OK;
}
