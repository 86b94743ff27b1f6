/* monitor.c - who watches what this thread calls.  Of a thread, not of the process: two calls in
 * one process have two watchers, and functions without options (a parser that warns) find theirs as
 * well. SPDX-License-Identifier: Apache-2.0 */
#include <klineage/base.h>

static const kl_monitor MONITOR_NOBODY = {0};
static _Thread_local const kl_monitor *current = &MONITOR_NOBODY;

const kl_monitor *kl_monitor_use(const kl_monitor *m) {
    const kl_monitor *before = current;
    if (m) current = m;
    return before;
}
