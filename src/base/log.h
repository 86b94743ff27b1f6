/* log.h - what a person watching sees: progress and warnings on stderr, nothing on stdout.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_LOG_H
#define KL_BASE_LOG_H
#include <klineage/base.h>

typedef enum { KL_LOG_QUIET, KL_LOG_NORMAL, KL_LOG_VERBOSE } kl_log_level;
void kl_log_set_level(kl_log_level level);
void kl_say(const char *fmt, ...) KL_PRINTF(1, 2);      /* a plain line unless quiet */
void kl_warn(const char *fmt, ...) KL_PRINTF(1, 2);     /* "klineage: warning: ..." unless quiet */
void kl_debug(const char *fmt, ...) KL_PRINTF(1, 2);    /* verbose only */
/* One line that is rewritten in place on a terminal, dropped elsewhere; an empty text clears it. */
void kl_progress(const char *fmt, ...) KL_PRINTF(1, 2);
#endif
