/* proc.h - run a program to its end with limits, and collect what it says.
 * No shell anywhere: argv goes to execve as it is.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_PROC_H
#define KL_BASE_PROC_H
#include <klineage/base.h>

typedef struct {
    const char *const *argv; /* argv[0] is a path or found on PATH; NULL-terminated */
    const char *const *envp; /* NULL: inherit */
    const char *cwd;         /* NULL: inherit */
    kl_str input;            /* fed to stdin; empty: /dev/null */
    int64_t timeout_ns;      /* 0: none; past it the whole process group is killed */
    size_t max_output;       /* bytes kept of stdout+stderr together; 0: 1 MiB; the rest is read and
                                dropped */
    /* Called in the child after fork, before exec, to confine it; nonzero return makes the child
     * exit 126. Must be async-signal-safe where the parent has threads. */
    int (*confine)(void *ctx);
    void *confine_ctx;
} kli_proc_spec;

typedef struct {
    int exit_code; /* 0..255, or -1 when a signal ended it */
    int signal;    /* 0 unless a signal ended it */
    bool timed_out;
    kl_str out; /* stdout, in the arena, NUL-terminated */
    kl_str err; /* stderr, in the arena, NUL-terminated */
    int64_t wall_ns;
} kli_proc_result;

/* Errors: KL_ENOENT (no such program), KL_ESPAWN, KL_EINTR. A program that fails is KL_OK with its
 * exit code. */
KL_MUST_USE kl_err kli_proc_run(kli_proc_result *out, kl_arena *a, const kli_proc_spec *spec,
                                kl_error *e);
#endif
