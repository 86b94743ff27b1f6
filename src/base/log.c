/* log.c - words for whoever watches this thread.  SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include <stdio.h>
#include <stdlib.h>

static KL_PRINTF(2, 0) void log_say(kl_log_level level, const char *fmt, va_list args) {
    const kl_monitor *m = kl_monitor_use(NULL);
    char *line;
    if (!m->log) return;
    if (vasprintf(&line, fmt, args) < 0) kl_oom(0);
    m->log(m->ctx, level, line);
    free(line);
}

#define LOG_SAY(level)                                                                             \
    va_list args;                                                                                  \
    va_start(args, fmt);                                                                           \
    log_say(level, fmt, args);                                                                     \
    va_end(args)

void kli_say(const char *fmt, ...) { LOG_SAY(KL_LOG_INFO); }
void kli_warn(const char *fmt, ...) { LOG_SAY(KL_LOG_WARNING); }
void kli_debug(const char *fmt, ...) { LOG_SAY(KL_LOG_DEBUG); }

void kli_base_progress(const char *fmt, ...) {
    const kl_monitor *m = kl_monitor_use(NULL);
    char line[512];
    va_list args;
    if (!m->progress) return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < 0x20) *p = ' ';
    m->progress(m->ctx, line);
}

bool kli_interrupted(void) {
    const kl_monitor *m = kl_monitor_use(NULL);
    return m->cancelled && m->cancelled(m->ctx);
}
