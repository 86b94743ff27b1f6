/* compile.h - what the compile and inspect slots of every surface use.
 *
 * kli_compile (compile.c) makes the private folder of a kl_compile_job, calls the slot, and moves
 * the artefact into the cache; what a slot owes it stands in kernel/surface.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_COMPILE_H
#define KL_BACKEND_COMPILE_H
#include "backend/backend.h"
#include "base/hash.h"
#include "base/proc.h"

#define KLI_LOG_BYTES (16u << 10)
#define KLI_MAX_OBJECTS 32 /* code objects of one artefact that are looked into */

/* A command line in the making.  A word more than it holds is dropped, and the program refuses what
 * is left. */
typedef struct {
    const char *words[512];
    int n;
} kli_command;
void kli_command_add(kli_command *c, const char *word);
void kli_command_add_all(kli_command *c,
                         const char *const *words); /* NULL-terminated; NULL: none */

/* Run one program confined: no network, nothing writable but `dir`, readable only the system's
 * programs, libraries and headers and `readable` (NULL-terminated, may be NULL), limits of
 * limits.h.  `dir` is its working and temporary folder. `max_output`: bytes kept, 0 for 1 MiB.  A
 * program that fails is KL_OK with its exit code.  Errors: KL_ENODEV (no such program), KL_EIO. */
KL_MUST_USE kl_err kli_compile_run(kli_proc_result *out, kl_arena *a, const char *const *argv,
                                   const char *dir, const char *const *readable, size_t max_output,
                                   kl_error *e);
/* The same with `input` on its stdin and nothing writable: `dir` is where it starts. */
KL_MUST_USE kl_err kli_compile_run_on(kli_proc_result *out, kl_arena *a, const char *const *argv,
                                      kl_str input, const char *dir, const char *const *readable,
                                      size_t max_output, kl_error *e);
/* A compiler sees no more of our environment than where programs and libraries are. */
enum { KLI_COMPILE_ENVIRONMENT = 8 }; /* words, with the NULL at their end */
void kli_compile_environment(const char **env, kl_arena *a, const char *dir);
/* The same for a verb of klineage-worker, which enters the jail itself (a jail may hide the folder
 * it is started from). */
KL_MUST_USE kl_err kli_compile_run_worker(kli_proc_result *out, kl_arena *a,
                                          const char *const *argv, const char *dir, kl_error *e);
kl_str kli_worker_path(kl_arena *a);
/* KL_EBUSY where the machine stopped a compiler (too little of a core, or of memory); KL_OK: what
 * it says is its own word. */
kl_err kli_compile_blame(const kli_proc_result *r, const char *program, kl_error *e);
/* stderr then stdout of a compiler with `dir` and everything before it removed, at most
 * KLI_LOG_BYTES; says so when it was killed. */
kl_str kli_compile_log(kl_arena *a, const kli_proc_result *r, const char *dir);
/* What a compiler that ended left: out->path is `makes` in `dir`, ok when it is there, and the log,
 * which is never empty when it is not. */
void kli_compile_took(kl_artefact *out, kl_arena *a, const kli_proc_result *r, const char *dir,
                      const char *makes);
/* The cache's key; `confined` counts unless the cache is carried. */
kl_hash kli_compile_key(const kl_compile_job *job, const kl_isolation *confined, bool carried);
/* The most shared memory of one block, in bytes; 0: not known of this architecture. */
int64_t kli_arch_smem_max(kl_str arch);
/* Dropped when the table is full; replaces a feature of the same name. */
void kli_feature_set(kl_artefact *out, kl_arena *a, const char *name, double value);
double kli_feature_get(const kl_artefact *out, const char *name); /* 0 when absent */

/* The next line of `rest`, without its end; false when nothing is left. */
bool kli_code_line(kl_str *line, kl_str *rest);

/* Disassemble objects of this host in the folder of out->path and set the features of their
 * instructions; marks what no kernel may hold as suspicious.  `names` are file names there,
 * NULL-terminated (native_code.c). */
kl_err kli_inspect_code(kl_artefact *out, kl_arena *a, const char *const *names, kl_error *e);
/* memory or arithmetic function of the C library that any kernel may call */
bool kli_symbol_is_harmless(const char *name);
bool kli_symbol_is_openmp(const char *name);

/* A trusted plugin's C source to a shared object in `dir` (cc.c). */
kl_err kli_plugin_compile(kl_artefact *out, kl_arena *a, kl_str source, const char *dir,
                          kl_error *e);

#endif
