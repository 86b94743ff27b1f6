/* compile_server.h - compilers that are Python scripts, each asked in a process that has its
 * modules loaded.
 *
 * A script has `answer(request)`, both plain JSON, which prints its log to stderr and ends with
 * SystemExit(1) where it refuses; and may have `warm_up()`, which compiles something of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_COMPILE_SERVER_H
#define KL_BACKEND_COMPILE_SERVER_H
#include "base/proc.h"

#define KLI_COMPILE_SERVER "compile_server.py" /* beside the programs */

/* Lives as long as the process, which tells scripts apart by its address. */
typedef struct {
    const char *python, *site; /* interpreter; folder of packages that it has beside its own */
    const char *script;
    const char *const *modules; /* loaded before the first request; NULL-terminated */
    const char *const
        *readable; /* as of kli_compile_run; the folder of our programs is among them */
} kli_compile_script;

/* Run `script` on `request`: out->out is its answer, out->err its log, bounds as of
 * kli_compile_run; nothing is writable.  The process is a new child of one that never saw a request
 * and is alone in its namespace; where such a server cannot be had, one of its own, and `*cold`
 * says why (else empty).  Errors: as of kli_compile_run; KL_ENODEV also where the script or a
 * module of it does not load, which is found out without the request. */
KL_MUST_USE kl_err kli_compile_ask(kli_proc_result *out, kl_str *cold, kl_arena *a,
                                   const kli_compile_script *script, kl_str request, kl_error *e);
#endif
