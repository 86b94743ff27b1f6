/* cpu_child.h - a forked process in which one candidate's code runs.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_BACKEND_CPU_CHILD_H
#define KL_BACKEND_CPU_CHILD_H
#include "cpu_load.h"
#include "isolation.h"
#include "runner_ops.h"
#include <sys/types.h>

/* One page that a child shares with its runner.  The kernel could write it: it decides what a fault
 * is called, nothing else. */
typedef struct {
    _Atomic uint32_t finished; /* sequence of the request whose calls all returned */
    uint32_t signal, code, is_write;
    uint64_t address;
    int64_t wall_ns;
} kli_child_report;

kli_child_report *kli_child_report_open(void);
/* Handlers that write the report; children inherit them.  `contained`: the process may just end;
 * else it dies of the signal. */
void kli_child_catch(kli_child_report *report, bool contained);

/* Fork; the child's end follows the runner's. */
pid_t kli_child_fork(kli_child_report *report);
/* In the child: let go of every descriptor. */
void kli_child_enter(void);
/* Wait for the end and say how it went: nonzero after filling the reply. `sequence` must have been
 * finished. */
int kli_child_wait(const kli_runner_ctx *c, pid_t child, const kli_child_report *report,
                   uint32_t sequence);

/* In the child, before the handshake: make every page it will touch present, so that no fault lands
 * in the timed interval.  Of libraries those that the object calls, or all. */
void kli_child_settle_code(const kli_object *o);
void kli_child_settle_data(const kli_runner_ctx *c, uint32_t first, uint32_t calls);
/* The last part of it, for a process whose pages are present: read each line of them. */
void kli_child_touch(const kli_runner_ctx *c, uint32_t first, uint32_t calls);

#endif
