/* isolation.h - what compilers and runners call to confine themselves; isolation.c and filters.c
 * implement it, apart from the rest of the folder: libklineage has its own copy of both
 * (kl_confine).
 *
 *   compile child   kli_jail_open in the gate, kli_jail_enter between fork and exec
 *   runner          kli_confine_runner once, before it is told of any artefact
 *   kernel          kli_filter_enter in the process that will call it, as the last thing before the
 * call SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_ISOLATION_H
#define KL_BACKEND_ISOLATION_H
#include "backend/backend.h"
#include <linux/filter.h>

/* ---- system call filters (filters.c) ----------------------------------------------------- */

typedef enum {
    KLI_FILTER_KERNEL,  /* native kernels: memory and exit, nothing else; a violation is SIGSYS */
    KLI_FILTER_THREADS, /* the same with futex and the thread pool that exists already */
    KLI_FILTER_DRIVER,  /* a runtime library and its kernels in one process: reads files, never
                           starts programs */
    KLI_FILTER_COMPILE  /* everything but what a compiler has no business with */
} kli_filter_kind;

typedef struct {
    struct sock_fprog program;
} kli_filter;

bool kli_filter_build(kli_filter *out, kli_filter_kind kind); /* allocates; not async-signal-safe */
bool kli_filter_enter(const kli_filter *f); /* two system calls; every thread of the process */
void kli_filter_fini(kli_filter *f);

/* ---- files (Landlock) -------------------------------------------------------------------- */

int kli_landlock_abi(void); /* 0: not here */
/* A ruleset that lets read and execute below `readable`, and everything below `writable`
 * (NULL-terminated; missing paths are skipped). */
int kli_landlock_ruleset(const char *const *readable,
                         const char *const *writable); /* descriptor or -1 */
bool kli_landlock_enter(int ruleset);

/* ---- a compiler, between fork and exec --------------------------------------------------- */

typedef struct {
    int ruleset;
    kli_filter filter;
    bool switch_user;
    uint64_t cpu_seconds, memory_bytes, file_bytes;
} kli_jail;

/* `dir` is the one folder that may be written (NULL: none); it is given to the user the jail
 * switches to.
 * `more`: readable besides the system's programs, libraries and headers; NULL-terminated, may be
 * NULL. */
void kli_jail_open(kli_jail *j, const char *dir, const char *const *more);
int kli_jail_enter(void *jail); /* kli_proc_spec.confine */
void kli_jail_close(kli_jail *j);

bool kli_set_limit(int which, uint64_t value); /* soft and hard */
bool kli_become_nobody(void);

/* ---- a runner ---------------------------------------------------------------------------- */

/* Flags for clone(2) that give a child its own namespaces here; 0 when none can be had. */
int kli_namespace_flags(void);
/* In the runner itself.  Fills what holds now; seccomp and namespaces are the caller's to add. */
void kli_confine_runner(kl_isolation *applied, const char *const *readable,
                        const char *const *writable);

#define KLI_NOBODY 65534u
#define KLI_STACK_BYTES                                                                            \
    (64ull << 20) /* of a native kernel: a few large arrays on the stack are honest */

#endif
