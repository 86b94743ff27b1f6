/* log.c - words for whoever watches this thread.  SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include <stdio.h>
#include <stdlib.h>

static KL_PRINTF(2, 0) void say(kl_log_level level, const char *fmt, va_list args) {
    const kl_monitor *m = kl_monitor_use(NULL);
    char             *line;
    if (!m->log) return;
    if (vasprintf(&line, fmt, args) < 0) kl_oom(0);
    m->log(m->ctx, level, line);
    free(line);
}

#define SAY(level)                                                                                                     \
    va_list args;                                                                                                      \
    va_start(args, fmt);                                                                                               \
    say(level, fmt, args);                                                                                             \
    va_end(args)

void kl_say(const char *fmt, ...) { SAY(KL_LOG_INFO); }
void kl_warn(const char *fmt, ...) { SAY(KL_LOG_WARNING); }
void kl_debug(const char *fmt, ...) { SAY(KL_LOG_DEBUG); }

void kl_progress(const char *fmt, ...) {
    const kl_monitor *m = kl_monitor_use(NULL);
    char              line[512];
    va_list           args;
    if (!m->progress) return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < 0x20) *p = ' ';
    m->progress(m->ctx, line);
}

bool kl_interrupted(void) {
    const kl_monitor *m = kl_monitor_use(NULL);
    return m->cancelled && m->cancelled(m->ctx);
}
