/* counts.h - how often each launch of a process was seen, and in which order: a file that the shim
 * maps and klineage reads.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_CAPTURE_COUNTS_H
#define KL_CAPTURE_COUNTS_H
#include <stdint.h>

enum {
    CAPTURE_MOST_LAUNCHES = 4096, /* distinct ones of a process */
    CAPTURE_MOST_ORDER = 1 << 20  /* launches whose order is kept: the first of them */
};

typedef struct {
    uint64_t all;                         /* launches, those included that were too many to keep */
    uint64_t seen[CAPTURE_MOST_LAUNCHES]; /* by number */
    uint32_t order[CAPTURE_MOST_ORDER];   /* numbers; CAPTURE_MOST_LAUNCHES: one of the too many */
} capture_counts;

#endif
