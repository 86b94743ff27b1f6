/* server.h - a server for the tests of one process: a script of tests/kit that says `ready`,
 * answers a line for each line, and ends when its input does.  SPDX-License-Identifier: Apache-2.0
 */
#ifndef KIT_SERVER_H
#define KIT_SERVER_H
#include "kit/kit.h"

/* "postgresql.py"; `words`: what it is given, ends with NULL; NULL: nothing.  False: what it needs
 * is not installed, which it said. */
bool kit_server_start(const char *script, const char *const *words);
const char *kit_server_ready(void); /* what came behind `ready` */
/* What it answers, in the arena of the test. */
const char *kit_server_ask(const char *line);

#endif
