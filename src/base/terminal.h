/* terminal.h - the monitor of a program that a person started: words on stderr, ^C cancels.  For
 * main files and tests; the libraries do not have it.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_TERMINAL_H
#define KL_BASE_TERMINAL_H
#include <klineage/base.h>

typedef enum { KL_QUIET, KL_NORMAL, KL_VERBOSE } kl_verbosity;

/* The terminal watches this thread: warnings and plain lines unless quiet, debug lines when
 * verbose, progress in one line that is rewritten where stderr is a terminal. */
void kli_terminal_watch(kl_verbosity verbosity);
/* Each message is an object of schema klineage/message on a line of its own, and there is no
 * progress. */
void kli_terminal_json(bool on);
/* The first SIGINT, SIGTERM or SIGHUP cancels what this thread does from then on; the second kills.
 */
void kli_interrupt_install(void);
#endif
