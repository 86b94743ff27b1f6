/* terminal.c - the monitor of a program that a person started.  Its state belongs to the process,
 * as stderr and signals do.  SPDX-License-Identifier: Apache-2.0 */
#include "base/terminal.h"
#include "base/json.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

static kl_verbosity said;
static bool as_json, progress_followed; /* by a program that started this one */
static bool progress_shown;
static volatile sig_atomic_t interrupt_seen;

static void clear_progress(void) {
    if (progress_shown) fputs("\r\033[K", stderr);
    progress_shown = false;
}

static void put_json(const char *level, const char *line) {
    kl_arena *a = kl_arena_new();
    json_t *o = json_pack("{ss si ss so}", "schema", "klineage/message", "version", 1, "level",
                          level, "text", kli_json_str(kl_str_of(line)));
    fprintf(stderr, "%s\n", kli_json_dump(a, o, false).ptr);
    json_decref(o);
    kl_arena_free(a);
}

static void log_line(void *ctx, kl_log_level level, const char *line) {
    static const char *const LEVEL[] = {
        [KL_LOG_DEBUG] = "debug", [KL_LOG_INFO] = "info", [KL_LOG_WARNING] = "warning"};
    static const char *const PREFIX[] = {[KL_LOG_DEBUG] = "klineage: ",
                                         [KL_LOG_INFO] = "",
                                         [KL_LOG_WARNING] = "klineage: warning: "};
    (void)ctx;
    KL_ASSERT((size_t)level < KL_COUNT(PREFIX));
    if (said == KL_QUIET || (level == KL_LOG_DEBUG && said != KL_VERBOSE)) return;
    flockfile(stderr);
    clear_progress();
    if (as_json)
        put_json(LEVEL[level], line);
    else
        fprintf(stderr, "%s%s\n", PREFIX[level], line);
    funlockfile(stderr);
}

/* A line longer than the terminal wraps, and "\r" then rewrites only its last part. */
static int terminal_columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

static void terminal_show_progress(void *ctx, const char *line) {
    (void)ctx;
    if (said == KL_QUIET || (as_json ? !progress_followed : !isatty(STDERR_FILENO))) return;
    flockfile(stderr);
    if (as_json) {
        if (line[0]) put_json("progress", line);
        funlockfile(stderr);
        return;
    }
    clear_progress();
    if (line[0]) {
        fprintf(stderr, "%.*s", terminal_columns(), line);
        progress_shown = true;
    }
    fflush(stderr);
    funlockfile(stderr);
}

static bool terminal_interrupted(void *ctx) {
    (void)ctx;
    return interrupt_seen != 0;
}

static const kl_monitor TERMINAL = {
    .log = log_line, .progress = terminal_show_progress, .cancelled = terminal_interrupted};

void kli_terminal_json(bool on) {
    const char *wanted = getenv("KLINEAGE_PROGRESS");
    as_json = on;
    progress_followed = wanted && *wanted;
}

void kli_terminal_watch(kl_verbosity verbosity) {
    said = verbosity;
    kl_monitor_use(&TERMINAL);
}

/* ---- interrupt --------------------------------------------------------------------------- */

static void on_interrupt(int signal_number) {
    if (interrupt_seen) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    interrupt_seen = 1;
}

/* Without SA_RESTART: a blocking call must come back and look. */
void kli_interrupt_install(void) {
    struct sigaction action = {.sa_handler = on_interrupt}, before;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 &&
        before.sa_handler != SIG_IGN) /* nohup: go on without a terminal */
        sigaction(SIGHUP, &action, NULL);
}
