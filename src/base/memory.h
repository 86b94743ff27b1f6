/* memory.h - how much memory there is to be had.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_MEMORY_H
#define KL_BASE_MEMORY_H
#include <stdint.h>

/* Bytes, with the control group's limits on this process as well as the machine's; INT64_MAX where
 * the system does not say. */
typedef struct {
    int64_t total;     /* could ever be had */
    int64_t available; /* can be had now, without swapping */
} kli_memory_room;

kli_memory_room kli_memory_room_now(void);

/* The parts of it, for tests: texts of /proc/meminfo and of a control group's memory.stat. */
int64_t kli_meminfo(const char *text,
                    const char *key); /* "MemAvailable:", in bytes; -1: no such line */
int64_t kli_memory_stat(const char *text,
                        const char *key); /* "inactive_file", in bytes; 0: no such line */

#endif
