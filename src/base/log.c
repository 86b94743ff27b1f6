/* log.c - what a person watching sees.  The one mutable global of base besides the interrupt flag: how much to say.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

static kl_log_level current_level = KL_LOG_NORMAL;
static bool         progress_shown;

void kl_log_set_level(kl_log_level level) { current_level = level; }

static void clear_progress(void) {
    if (progress_shown) fputs("\r\033[K", stderr);
    progress_shown = false;
}

static KL_PRINTF(2, 0) void say(const char *prefix, const char *fmt, va_list args) {
    flockfile(stderr);
    clear_progress();
    fputs(prefix, stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    funlockfile(stderr);
}

void kl_say(const char *fmt, ...) {
    if (current_level == KL_LOG_QUIET) return;
    va_list args;
    va_start(args, fmt);
    say("", fmt, args);
    va_end(args);
}

void kl_warn(const char *fmt, ...) {
    if (current_level == KL_LOG_QUIET) return;
    va_list args;
    va_start(args, fmt);
    say("klineage: warning: ", fmt, args);
    va_end(args);
}

void kl_debug(const char *fmt, ...) {
    if (current_level != KL_LOG_VERBOSE) return;
    va_list args;
    va_start(args, fmt);
    say("klineage: ", fmt, args);
    va_end(args);
}

/* A line longer than the terminal wraps, and "\r" then rewrites only its last part. */
static size_t terminal_columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? (size_t)size.ws_col - 1 : 79;
}

void kl_progress(const char *fmt, ...) {
    if (current_level == KL_LOG_QUIET || !isatty(STDERR_FILENO)) return;
    va_list args;
    va_start(args, fmt);
    char text[512];
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20) *p = ' ';
    flockfile(stderr);
    clear_progress();
    if (text[0]) {
        fprintf(stderr, "%.*s", (int)terminal_columns(), text);
        progress_shown = true;
    }
    fflush(stderr);
    funlockfile(stderr);
}
