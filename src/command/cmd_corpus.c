/* cmd_corpus.c - `klineage corpus`: packages' sources as task folders, and the funnel on the way.
 *
 * Reading and trying are Python's business (src/task/corpus), in a process that shows its progress
 * on our stderr and prints one line of JSON at its end: what it has to say, or what went wrong.  It
 * calls this program for every `task check`, so that a task is admitted by the one rule there is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/request.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    FEWEST_ARGUMENTS = 16,
    ASKED_MS = 1000,    /* from ^C, which a terminal sends to both, until it is asked by us */
    PATIENCE_MS = 15000 /* until it is killed */
};
#define MOST_SAID ((size_t)64 << 20)

/* ---- the other process ------------------------------------------------------------------- */

static kl_err corpus_arguments(const char ***out, kl_arena *a, const kli_args *args, kl_error *e) {
    const char *chosen = getenv("KLINEAGE_PYTHON");
    const kl_str python = kli_fs_find_program(a, chosen && *chosen ? chosen : "python3");
    if (!python.len) {
        kl_fail(e, KL_ENODEV, "corpus", "no Python to read packages with");
        return kl_hint(e, "install python3, or name one in KLINEAGE_PYTHON"), KL_ENODEV;
    }
    const char **argv = KL_ARRAY(a, const char *, KL_MAX_WORDS + FEWEST_ARGUMENTS);
    const struct {
        kli_option_id id;
        const char *word;
    } passed[] = {{KL_OPTION_OUT, "--out"},
                  {KL_OPTION_HELD_OUT, "--held-out"},
                  {KL_OPTION_JOBS, "--jobs"},
                  {KL_OPTION_MOST, "--most"}};
    int n = 0;
    argv[n++] = python.ptr;
    argv[n++] = "-B";
    argv[n++] = kli_fs_find_part(a, "task_corpus").ptr;
    for (size_t i = 0; i < KL_COUNT(passed); i++)
        if (args->values[passed[i].id]) {
            argv[n++] = passed[i].word;
            argv[n++] = args->values[passed[i].id];
        }
    if (kli_args_has(args, KL_OPTION_QUIET)) argv[n++] = "--quiet";
    if (kli_args_has(args, KL_OPTION_JSON) || kli_args_has(args, KL_OPTION_JSON_PRETTY))
        argv[n++] = "--as-json";
    argv[n++] = "--"; /* no source is an option */
    for (int i = 0; i < args->n_words; i++) argv[n++] = args->words[i];
    KL_ASSERT(n < KL_MAX_WORDS + FEWEST_ARGUMENTS && !argv[n]);
    *out = argv;
    return KL_OK;
}

/* As from a shell, but what it says at its end is ours to read. */
static int corpus_spawn(pid_t *pid, const char *const *argv, int said) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&how);
    (void)posix_spawnattr_setsigdefault(&how, &defaults);
    (void)posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, said, STDOUT_FILENO);
    const int error =
        posix_spawn(pid, argv[0], &files, &how, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&how);
    return error;
}

/* Who does not end by ^C is asked once more, then killed; candidates end with it. */
static int corpus_await(pid_t pid) {
    const struct timespec nap = {.tv_nsec = 5000000};
    int status = 0, waited_ms = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        (void)nanosleep(&nap, NULL);
        if (!kli_interrupted()) continue;
        waited_ms += 5;
        if (waited_ms == ASKED_MS) (void)kill(pid, SIGINT);
        if (waited_ms == PATIENCE_MS) (void)kill(pid, SIGKILL);
    }
    return status;
}

/* What it printed, as JSON. */
static kl_err corpus_said(json_t **out, kl_arena *a, int said, kl_error *e) {
    kl_str text = {0};
    const kl_str path = kl_arena_printf(a, "/proc/self/fd/%d", said);
    kl_err err = kli_fs_read(&text, a, path.ptr, MOST_SAID, e);
    if (!err && !text.len) return kl_fail(e, KL_EIO, "corpus", "the reader of packages failed");
    return err ? err : kli_json_parse(out, text, KL_S("task_corpus"), e);
}

static kl_err corpus_run(json_t **out, kl_arena *a, const kli_args *args, kl_error *e) {
    const char **argv;
    pid_t pid;
    kl_err err = corpus_arguments(&argv, a, args, e);
    if (err) return err;
    (void)setenv("KLINEAGE_PROGRAM", kli_fs_join(a, kli_fs_self_dir(a).ptr, "klineage").ptr, true);
    const int said = memfd_create("corpus", MFD_CLOEXEC);
    if (said < 0) return kl_fail(e, KL_EIO, "corpus", "no memory file: %s", strerror(errno));
    const int error = corpus_spawn(&pid, argv, said);
    if (error)
        err = kl_fail(e, KL_ESPAWN, argv[0], "it cannot be run: %s", strerror(error));
    else
        (void)corpus_await(pid);
    if (!err && kli_interrupted()) {
        kl_fail(e, KL_EINTR, "corpus", "interrupted; every candidate that was done is kept");
        err = kl_hint(e, "the same command goes on where this one was");
    }
    if (!err) err = corpus_said(out, a, said, e);
    close(said);
    return err;
}

/* ---- what it says ------------------------------------------------------------------------ */

static kl_err corpus_error(kl_arena *a, const json_t *said, kl_error *e) {
    const kl_str message = kli_json_text_or(said, "error", KL_S("")),
                 hint = kli_json_text_or(said, "hint", KL_S(""));
    const bool lacks = json_is_true(json_object_get(said, "missing"));
    const kl_err code =
        kl_fail(e, lacks ? KL_ENODEV : KL_EINVAL, "corpus", "%s", kl_arena_copy(a, message).ptr);
    if (hint.len) (void)kl_hint(e, "%s", kl_arena_copy(a, hint).ptr);
    return code;
}

kl_err kli_cmd_corpus(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    json_t *said = NULL;
    if (!args->values[KL_OPTION_OUT]) {
        kl_fail(e, KL_EINVAL, args->words[0], "where to? there is no --out");
        return kl_hint(e, "klineage corpus %.64s --out corpus", args->words[0]);
    }
    kl_err err = corpus_run(&said, c->arena, args, e);
    if (!err && json_object_get(said, "error"))
        err = corpus_error(c->arena, said, e);
    else if (!err) {
        kl_buf_printf(&out->text, "%s",
                      kl_arena_copy(c->arena, kli_json_text_or(said, "text", KL_S(""))).ptr);
        out->json = json_incref(json_object_get(said, "result"));
        out->exit_code = (int)json_integer_value(json_object_get(said, "exit_code"));
    }
    json_decref(said);
    return err;
}
