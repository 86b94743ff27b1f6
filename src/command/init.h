/* init.h - `klineage init`: what was asked for, what came of it, and who reads what.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_INIT_H
#define KL_COMMAND_INIT_H
#include "base/proc.h"
#include "command/command.h"

typedef struct {
    kl_str task; /* name or path */
    kl_str in;   /* folder that the sources' paths begin in */
    kl_str function, arguments, launch, flags, library_flags, require, upstream, licence, with;
    kl_str sources[16];
    int n_sources;
} kli_init_asked;

typedef struct {
    kli_context *context;
    const kli_args *args;
    kli_init_asked asked;
    kl_task *task;
    json_t *made; /* the reader's answer */
    kl_kernel *kernel,
        *library;              /* the slice; the library's own sources, NULL: they cannot be run */
    kl_verdict alone, verdict; /* of the library, checked alone; of the slice beside it */
    json_t *differences;       /* kinds of instructions that one of them lacks */
    kl_str compiled_for;       /* no device is here: this architecture, and nothing was judged */
    kl_buf refused;
} kli_init;

/* The recipe that --recipe names, and what options say instead or besides.  A recipe is lines
 * `key: value`; docs/how-to/init.md has the keys.  Errors: KL_EPARSE with the line, KL_EINVAL. */
KL_MUST_USE kl_err kli_init_read(kli_init_asked *out, kl_arena *a, const kli_args *args,
                                 kl_error *e);
/* A path that holds in another folder too; as it is where there is nothing. */
kl_str kli_init_whole_path(kl_arena *a, kl_str path);

/* Both kernels through the gate, and what they are made of; where no device is here the slice is
 * compiled.  Errors as kl_gate_run. */
KL_MUST_USE kl_err kli_init_judge(kli_init *x, kl_error *e);

/* Text, JSON and exit status; writes the file where it is good.  Errors: those of writing. */
KL_MUST_USE kl_err kli_init_answer(kli_init *x, kli_command_result *out, kl_error *e);
void kli_init_refuse(kli_command_result *out, const kli_init *x);

/* The reader of Triton (cmd_extract.c): exit status 0 with the file, 1 with why not. */
KL_MUST_USE kl_err kli_extract_triton(kli_proc_result *r, kl_arena *a, const char *what,
                                      const char *arch, kl_str definition, kl_error *e);
#endif
