/* runner_ops.h - the inside of a runner: one table row per thing that can execute kernels.
 * src/backend/worker.c owns the socket loop and calls these; it validates every message before a
 * slot sees it.
 *
 * Slots return 0, or nonzero after filling `c->reply->fault` and `c->reply->text`; they never print
 * and never exit.  All may block; the gate kills the process when it waited long enough.  Memory
 * passed in stays owned by the loop until the process ends. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_RUNNER_OPS_H
#define KL_BACKEND_RUNNER_OPS_H
#include "layout.h"
#include "wire.h"

/* What the loop knows; a row keeps its own state behind `state`. */
typedef struct {
    bool trusted;
    int cpu, threads;
    kl_plan plan;
    kl_layout layout;
    /* Inputs are mapped read-only; scratch for shared-memory backends alone, else NULL. */
    char *pages[KLI_REGIONS];
    size_t page_bytes[KLI_REGIONS];
    int outputs_fd;  /* shared-memory backends only: a private view of the outputs can be made */
    int artefact_fd; /* sealed memfd or file, opened read-only */
    uint32_t artefact_kind;
    bool same_artefact; /* as the one that LOAD asked for before, which was loaded */
    kl_control *control;
    kl_msg_reply *reply; /* to the request in flight */
    kl_arena *arena;     /* of the request in flight */
    void *state;
} kli_runner_ctx;

typedef struct {
    const char *name;   /* "cpu" "opencl" "cuda" */
    bool shared_memory; /* kernels work on the mappings themselves: candidates get PROT_NONE guard
                           pages, the gate poisons outputs */
    /* Print the device as one JSON object on stdout (fields of kl_device); exit status. May load
     * drivers. */
    int (*probe)(void);
    int (*open)(kli_runner_ctx *c); /* device context; nothing of a candidate yet */
    int (*load)(kli_runner_ctx *c); /* artefact + plan -> launches ready, resources filled */
    int (*bind)(kli_runner_ctx *c); /* layout and mappings are set; allocate device memory */
    int (*upload)(kli_runner_ctx *c,
                  const kl_msg_upload *m);                /* NULL: inputs are in the shared pages */
    int (*draw)(kli_runner_ctx *c, const kl_msg_draw *m); /* NULL: this one cannot */
    int (*run)(kli_runner_ctx *c, const kl_msg_run *m);
    int (*time)(kli_runner_ctx *c, const kl_msg_time *m);
    /* After a batch; NULL: outputs are in the shared pages, where the gate looks itself. */
    int (*audit)(kli_runner_ctx *c, const kl_msg_audit *m);
    int (*fetch)(kli_runner_ctx *c, const kl_msg_fetch *m);
    /* An output that another runner brought with an answer on this device; NULL: this one cannot.
     */
    int (*compare)(kli_runner_ctx *c, const kl_msg_compare *m, const char *pages);
} kli_runner_ops;

const kli_runner_ops *kli_runner_ops_each(int i); /* NULL past the end; src/backend/runners.c */

/* A number as a kernel's parameter has it, in the low bytes of `bits`, the rest zero; returns how
 * many, 0 for an argument that is no number. */
size_t kli_ctx_number(const kli_runner_ctx *c, const kl_value *v, uint64_t *bits);

/* Fill the reply's fault and return 1. */
int kli_fault(const kli_runner_ctx *c, kl_fault_kind kind, const char *fmt, ...) KL_PRINTF(3, 4);

/* Address of a tensor or buffer for (set, slot) in the mappings above. */
char *kli_ctx_tensor(const kli_runner_ctx *c, uint32_t tensor, uint32_t set, uint32_t slot);
char *kli_ctx_buffer(const kli_runner_ctx *c, uint32_t buffer, uint32_t slot);
char *kli_ctx_copy(const kli_runner_ctx *c, kli_region r, uint32_t copy); /* its first byte */
#define KLI_MAX_ARTEFACT_BYTES ((size_t)1 << 30)
/* All bytes of an artefact with a NUL behind them; false: it is empty, above the limit, or cannot
 * be read. */
bool kli_artefact_read(kl_str *out, kl_arena *a, int fd, size_t most_bytes);

/* A guard page is more than a canary: reading it ends the kernel too.  Only the first copies have
 * them: each splits a mapping, and the hundreds of a timed batch would make every fork slow. Shapes
 * are checked on a few copies before they are timed on many. */
#define KLI_FORBIDDEN_COPIES 8

/* Shared-memory rows.  Scratch of the slots of `calls` calls from `first` on: poison (or zero) it
 * and set its canaries; and look at them afterwards: nonzero after filling the reply with
 * KL_FAULT_GUARD and the buffer's name. */
void kli_ctx_scratch_fill(const kli_runner_ctx *c, uint32_t first, uint32_t calls, uint32_t poison);
int kli_ctx_scratch_check(const kli_runner_ctx *c, uint32_t first, uint32_t calls, uint32_t poison);
/* What an address that a kernel stumbled over belongs to: fills the reply with KL_FAULT_GUARD,
 * KL_FAULT_INPUT or KL_FAULT_CRASH. */
int kli_ctx_fault_at(const kli_runner_ctx *c, int sig, uintptr_t address, bool is_write);
/* Was the fault that a handler was called for, with this context, a write? */
bool kli_fault_is_write(const void *context);

/* BATCH handshake, the runner's side: say that all is ready and wait for the gate; say that the
 * calls are done. */
void kli_control_arm(kl_control *c, uint32_t sequence, bool spin);
void kli_control_done(kl_control *c, uint32_t sequence, bool spin);

#endif
