/* log.h - words for whoever watches this thread (kl_monitor), and whether they want it to stop.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_LOG_H
#define KL_BASE_LOG_H
#include <klineage/base.h>

void kli_say(const char *fmt, ...) KL_PRINTF(1, 2);
void kli_warn(const char *fmt, ...) KL_PRINTF(1, 2);
void kli_debug(const char *fmt, ...) KL_PRINTF(1, 2);
/* One line that replaces the one before; an empty text clears it. */
void kli_base_progress(const char *fmt, ...) KL_PRINTF(1, 2);
bool kli_interrupted(void); /* long loops look at it, and end with KL_EINTR */
#endif
