/* python.h - what surfaces share whose compilers are Python packages, driven without torch, driver
 * or GPU.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SURFACE_PYTHON_H
#define KL_SURFACE_PYTHON_H
#include "backend/backend.h"
#include "backend/compile_server.h"

/* Where a package is; strings live as long as the process.  `version` empty: `missing` says what to
 * do. */
typedef struct {
    kl_arena *arena; /* of the strings */
    kl_str version;  /* "3.6.0" */
    kl_str site;     /* folder that holds the package */
    kl_str missing;
    kli_compile_script script; /* the front end */
} kli_python_package;

/* Asks $KLINEAGE_PYTHON, else python3: it looks for the package and does not import it.  `script`
 * lies beside the programs; `modules` are what it needs of the package (NULL-terminated). */
void kli_python_look(kli_python_package *out, const char *name, const char *script,
                     const char *const *modules);

typedef struct {
    const kli_python_package *package;
    const char *name, *title; /* "triton", "Triton" */
    const char *makes[3];     /* files that it leaves, the artefact first; NULL-terminated */
} kli_python_front;

/* Version and front end, for the compile key; empty where there is none. */
kl_str kli_python_toolchain(kl_arena *a, const kli_python_front *f);
/* The arguments of every launch, as far as a compiler is told of them. */
kl_str kli_python_specialize(kl_arena *a, const kl_kernel *k, const kl_plan *plan);
/* Run the front end, confined: sets out->path to what it makes, and ok, log, toolchain and
 * completion. */
kl_err kli_python_compile(kl_artefact *out, const kl_compile_job *job, const kli_python_front *f,
                          kl_error *e);

#endif
