/* gate_impl.h - what the gate's files share: executables (a kernel in its runner), problems (a
 * shape with its inputs and expectations).
 *
 *   problem   one workload, n_sets fresh inputs, the oracle's answers for them (in this process
 * alone), shared pages executable   one compiled kernel, plugin or script in one runner process,
 * moved from problem to problem
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_GATE_IMPL_H
#define KL_GATE_IMPL_H
#include <klineage/gate.h>
#include "backend/backend.h"
#include "backend/compare_job.h"
#include "base/draw.h"
#include "base/memory.h"
#include "base/rng.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

typedef struct kli_executable {
    kl_str name; /* "candidate", "oracle", baseline's name */
    bool trusted;
    bool plugin;             /* host plugin or script: no launches of its own */
    const kl_kernel *kernel; /* NULL for plugins and scripts */
    kl_artefact artefact;
    kl_runner *runner;
    kl_plan plan;
    uint64_t problem; /* id of the problem it is bound to; 0: none */
    kl_resources resources[KL_MAX_LAUNCHES];
} kli_executable;

enum {
    KL_FEW_ANSWERS = 8,              /* that stay on a device at once; others are asked for again */
    KL_MAX_ANSWERS = KL_FETCH_SLOTS, /* likewise, where they are small */
};

/* What the last run, or look, left in a slot. */
typedef struct {
    kl_runner *made_by; /* on whose device it stays; NULL: the shared pages hold it */
    uint8_t poison;     /* of its guards */
    bool has_print;     /* by the device */
    uint64_t print;
    uint32_t found_of; /* 1 + the set with whose answer the oracle's device has compared it; 0: with
                          none */
    kli_compare_found found;
} kli_output;

typedef struct kli_problem {
    uint64_t id;
    const kl_task *task;
    const kl_workload *workload;
    kl_plan plan;            /* the candidate's: tensors of the task in the workload's dtypes */
    kl_plan oracle_plan;     /* same tensors, wider float outputs */
    kl_memory memory;        /* inputs, candidate's and baselines' outputs */
    kl_memory oracle_memory; /* oracle's outputs; inputs are those of `memory` */
    uint32_t n_sets, n_slots;
    bool pages_seen; /* kernels can reach `memory`: they work in it, or a device can read it */
    uint64_t seeds[KL_MAX_SETS];
    double scale;
    kl_memory generated;            /* what the task's own Python made last; no candidate maps it */
    kli_draw draws[KL_MAX_TENSORS]; /* inputs that a device draws; KLI_DRAW_NONE: drawn here */
    bool is_drawn;                  /* any of them */
    bool in_pages[KL_MAX_SETS];     /* the shared pages hold all of the set */
    uint32_t proof;                 /* the set whose bytes a device must have drawn like us, */
    bool has_proof;                 /* and whose ends the shared pages hold */
    void *expected[KL_MAX_SETS]
                  [KL_MAX_TENSORS];      /* heap; NULL until asked for; in oracle_plan's dtypes */
    bool answers_stay;                   /* with the oracle, on its device; see answers.c */
    uint32_t n_answers;                  /* slots of the oracle */
    uint32_t answer_of[KL_MAX_ANSWERS];  /* 1 + the set whose answer lies there; 0: none's */
    bool is_given;                       /* the oracle's process has the inputs of all sets */
    kli_output outputs[KL_MAX_SETS + 1]; /* by slot */
    bool is_right[KL_MAX_SETS];          /* by set: outputs with this print, over any poison */
    uint64_t right_print[KL_MAX_SETS];
    double naive_error[KL_MAX_SETS][KL_MAX_TENSORS]; /* the naive kernel's relative RMS error; < 0:
                                                        not measured */
    double reference_error[KL_MAX_TENSORS];      /* the same, of sets that it was not measured on */
    bool paired[KL_MAX_SETS];                    /* it was measured on this very set */
    void *pristine[KL_MAX_SETS][KL_MAX_TENSORS]; /* mutable inputs as drawn */
    int64_t oracle_ns;                           /* longest oracle run seen here */
} kli_problem;

/* Tensor `i` of a plan.  A mutable input is an output too: what a run leaves there is judged. */
static inline kl_dtype kli_type_of(const kl_plan *p, uint32_t i) {
    return (kl_dtype)p->tensors[i].dtype;
}
static inline int64_t kli_elements_of(const kl_plan *p, uint32_t i) {
    return (int64_t)(p->tensors[i].bytes / kl_dtype_bytes(kli_type_of(p, i)));
}
static inline bool kli_is_input(const kl_plan *p, uint32_t i) {
    return p->tensors[i].role == KL_ROLE_INPUT;
}
static inline bool kli_is_mutable(const kl_plan *p, uint32_t i) {
    return p->tensors[i].role == KL_ROLE_MUTABLE;
}
static inline bool kli_is_output(const kl_plan *p, uint32_t i) {
    return p->tensors[i].role == KL_ROLE_OUTPUT || kli_is_mutable(p, i);
}

/* A place among the gates of this machine: see machine_lock.c.  {0} has none yet. */
enum { KL_MACHINE_LOCK_CORES = 64 };
typedef struct {
    int turnstile, places[KL_MACHINE_LOCK_CORES], n; /* lock files; -1: not to be had */
} kli_machine_lock_set;

typedef struct {
    kli_machine_lock_set cores, gpu; /* gpu.n is 0 for a gate of the CPU */
    char what[64];                   /* told to those who wait: "gate gemm" */
    char holder[128];                /* who was waited for last: "PID 12 (gate gemm), since 3 s" */
    int64_t limit_ns;                /* of waiting for one holder */
    int64_t shown_ns, said_ns;
    void (*progress)(void *ctx, kl_stage stage, const char *text); /* may be NULL */
    void *progress_ctx;
} kli_machine_lock;

typedef enum {
    KL_MACHINE_LOCK_TAKEN,
    KL_MACHINE_LOCK_NO_LOCK,
    KL_MACHINE_LOCK_TOO_LONG
} kl_machine_lock_state;

void kli_machine_lock_open(kli_machine_lock *t, const char *what, bool on_gpu);
kl_machine_lock_state
kli_machine_lock_shared(kli_machine_lock *t); /* compile and check beside others */
kl_machine_lock_state kli_machine_lock_exclusive(
    kli_machine_lock
        *t); /* time: nobody else compiles, checks or times on the same cores, or on the same GPU */
void kli_machine_lock_release(kli_machine_lock *t);
void kli_machine_lock_close(kli_machine_lock *t);

/* Work on a thread of its own; the arena that it uses is nobody else's meanwhile. */
typedef struct kli_aside {
    void (*work)(struct kli_aside *s);
    const char *what;    /* told to gates that wait */
    int64_t patience_ns; /* behind a gate that times on these cores, then it is left undone; 0: that
                            of every gate, then it is done */
    int core;            /* of runners; -1: there is no other, and no thread */
    pthread_t thread;
    bool running;
    atomic_bool unwanted; /* the verdict ends without an answer */
} kli_aside;

/* What the candidate's artefact holds for readers, while the kernel is checked. */
typedef struct {
    kli_aside aside; /* first */
    kl_arena *arena; /* NULL: there is nothing to wait for */
    const kl_kernel *kernel;
    kl_artefact artefact;
} kli_description;

/* Code for the shapes that this verdict checks later. */
typedef struct {
    kli_aside aside; /* first */
    kl_arena *arena; /* NULL: there is nothing to wait for */
    const struct kli_evaluation *of;
} kli_shapes;

/* What the verdict after this one will find done. */
typedef struct {
    kli_aside aside; /* first */
    kl_arena *arena;
    kl_gate_job job;
    const kl_device *device;
    const kl_workload *workload;
} kli_next;

/* Everything one verdict needs while it is made. */
typedef struct kli_evaluation {
    struct kl_gate *gate;
    kl_arena *arena;
    kli_executable *generator; /* of inputs that the task's own Python makes */
    const kl_task *task;
    const kl_kernel *kernel;
    const kl_gate_opts *opts;
    kl_verdict *verdict;
    const kl_device *device;
    const kl_backend *backend;
    const kl_workload *workload; /* the real shape */
    kli_executable candidate;
    kli_executable *oracle;       /* borrowed from the gate */
    kli_executable *naive_kernel; /* the task's naive kernel: its error is what the budget
                                     multiplies; NULL: none */
    kli_executable *through;      /* of opts->through, borrowed from the gate; NULL: none */
    bool answers_here;            /* somebody else than compare.c reads what the oracle says */
    uint64_t root;                /* of the inputs; written into the verdict */
    kl_stream
        schedule; /* order of pairs, poisons, what is looked at: a key that no input leads to */
    uint64_t problems;   /* opened so far: names the substreams of their inputs */
    int64_t checked_ns;  /* the candidate's shortest checked run at the real shape; 0: none yet */
    bool unrepeated;     /* the primary comparison: no time was left for other processes */
    bool stress_is_left; /* at the real shape, since the kernel is slow there */
    int64_t
        run_ns;    /* time inside kernels (candidate, oracle, baselines), for the overhead figure */
    int64_t clock; /* start of the current stage */
    kli_machine_lock machine_lock; /* shared while it checks, alone while it times */
    kli_description description;
    kli_shapes shapes;
    kli_next next;
} kli_evaluation;

/* The largest error of a naive kernel that was seen for one task, shape and scale. */
typedef struct {
    kl_str key;
    double rms[KL_MAX_TENSORS]; /* per output; below 0: none */
    int draws;                  /* input sets it was measured on */
} kli_naive_error;

enum { KL_MAX_SPARES = 4 };

struct kl_gate {
    kl_arena *arena;
    kl_device devices[4];
    bool probed[4];
    int core; /* of its runners: kli_last_core when it was opened */
    kl_isolation isolation;
    kli_executable *executables[64]; /* trusted, warm, found by key */
    kl_str executable_keys[64];
    int n_executables;
    kl_runner *spares[4][KL_MAX_SPARES]; /* candidates' runners started ahead, by backend */
    int n_spares[4];
    int n_candidates[4];  /* that took a runner so far */
    kl_runner *ending[4]; /* of candidates that were judged */
    int n_ending;
    kli_naive_error errors[256]; /* of naive kernels, found by key */
    int n_errors;
    uint64_t problems; /* last problem id */
};

/* executable.c */
kl_err kli_gate_device(const kl_device **out, kl_gate *g, kl_backend_id id, kl_error *e);
/* A trusted file of the task in a warm runner; `*out` NULL with KL_OK and a reason when it is not
 * available here. */
kl_err kli_executable_trusted(kli_executable **out, kl_str *why_not, kli_evaluation *c, kl_str name,
                              kl_str file, const kl_workload *w, kl_error *e);
/* The same, and no process is started: entering it does. */
kl_err kli_executable_find(kli_executable **out, kl_str *why_not, kli_evaluation *c, kl_str name,
                           kl_str file, const kl_workload *w, kl_error *e);
void kli_executable_load_ahead(kli_executable *a, const kli_evaluation *c);
/* Load it for this problem, unless that was done, and bring input sets [first, first + n) to it. */
kl_err kli_executable_enter(kli_executable *a, kli_problem *s, kli_evaluation *c, uint32_t first,
                            uint32_t n, kl_fault *fault, kl_error *e);
kl_err kli_executable_plan(kl_plan *out, kli_executable *a, kli_evaluation *c, const kl_workload *w,
                           kl_error *e);
kl_err kli_executable_restart(kli_executable *a, kli_evaluation *c, kl_error *e);
void kli_executable_stop(kli_executable *a);
void kli_executable_leave(kli_executable *a,
                          kl_gate *g); /* its process ends, and is waited for ... */
void kli_gate_reap(kl_gate *g);        /* ... here: its memory is free */
kl_err kli_gate_start_ahead(kl_gate *g, kl_backend_id id,
                            kl_error *e); /* a runner for a candidate that is not known yet */
/* -1: no core of its own: it has threads, or the device keeps its time. */
int kli_runner_core(const kl_gate *g, const kl_backend *b, const kl_plan *plan);
int kli_last_core(void); /* that this thread may use; -1 when there is but one */

/* inputs.c */
void kli_inputs_plan(kli_problem *s, const kli_evaluation *c); /* what is drawn where */
/* A set by its seed: what no device draws. */
kl_err kli_inputs_begin(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e);
/* The rest of it, unless the shared pages hold it. */
kl_err kli_inputs_fill(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e);
/* Sets [first, first + n) to where the kernels of an executable, which is bound, read them. */
kl_err kli_inputs_send(kli_problem *s, kli_evaluation *c, kli_executable *a, uint32_t first,
                       uint32_t n, kl_fault *fault, kl_error *e);

/* generate.c */
bool kli_inputs_are_generated(const kli_problem *s); /* some of them, by the task's own Python */
/* Into the pages of a set, or where its mutable inputs are kept. */
kl_err kli_inputs_generate(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e);

/* answers.c */
/* May they stay where the oracle computes them? */
bool kli_answers_can_stay(const kli_problem *s, const kli_evaluation *c);
static inline uint32_t kli_answer_slot(const kli_problem *s, uint32_t set) {
    return set % s->n_answers;
}
/* So many of this layout, at least one, as leave room on a device with so much memory. */
uint32_t kli_answers_that_fit(const kl_layout *l, int64_t memory);
bool kli_answer_is_held(const kli_problem *s, uint32_t set);
/* May outputs of this executable stay on its device?  Small ones are as soon brought. */
bool kli_outputs_can_stay(const kli_problem *s, const kli_executable *a);
/* kli_runner_run, which says where the output lies. */
typedef struct {
    uint32_t set, slot;
    uint8_t poison;
    int64_t timeout_ns;
} kli_run;
kl_err kli_output_run(kli_problem *s, kli_executable *a, const kli_run *q, kl_fault *fault,
                      int64_t *wall_ns, kl_error *e);
/* The candidate's of a batch that is over: looked at there, or brought. */
kl_err kli_output_fetch(kli_problem *s, kli_executable *a, const uint32_t *slots, uint32_t n,
                        uint8_t poison, kl_fault *fault, kl_error *e);
/* To the shared pages, unless it is there. */
kl_err kli_output_bring(kli_problem *s, uint32_t slot, kl_error *e);
/* What the oracle's device finds of outputs that were fetched, all at once: kept for the
 * comparisons that follow.  Nothing is done where each has to be looked at by itself. */
kl_err kli_answers_foresee(kli_problem *s, kli_evaluation *c, const uint32_t *sets,
                           const uint32_t *slots, uint32_t n, kl_error *e);
/* Compare output `i` in a slot with the answer for a set.  `*sure`: it is right, and `r` says how
 * right; else nothing is known, and the answer is on the heap for whoever looks next. */
kl_err kli_answers_compare(bool *sure, kl_check_result *r, kli_problem *s, kli_evaluation *c,
                           uint32_t i, uint32_t set, uint32_t slot, const kl_check *how,
                           kl_error *e);

/* problem.c */
kl_err kli_problem_ask_oracle(kli_problem *s, kli_evaluation *c, uint32_t set, kl_error *e);
/* Output `i` in a slot with the answer for a set, which was asked for; `r->budget` is set. */
kl_err kli_problem_compare(kl_check_result *r, kli_problem *s, kli_evaluation *c, uint32_t i,
                           uint32_t set, uint32_t slot, const kl_check *how, kl_error *e);
void kli_problem_keep_answer(kli_problem *s, uint32_t set); /* from the oracle's pages */
kl_err kli_trusted_fault(kli_executable *a, const kl_fault *fault, kl_error *e);
kl_err kli_problem_open(kli_problem *s, kli_evaluation *c, const kl_workload *w, uint32_t n_sets,
                        uint32_t n_slots, double scale, kl_error *e);
/* The largest error of several draws counts.  One that overflowed says nothing: a finite one stays,
 * and replaces it. */
void kli_reference_remember(kli_naive_error *m, const double *rms);
/* At the real shape; then it is at the others, as a rule. */
bool kli_reference_is_known(kli_evaluation *c);
/* As text of the cache, and back; false: the text is none. */
kl_str kli_reference_text(kl_arena *a, const kli_naive_error *m);
bool kli_reference_read(kli_naive_error *m, kl_str text);
kl_err kli_problem_renew(
    kli_problem *s, kli_evaluation *c,
    kl_error *e); /* same inputs on fresh physical pages; every executable must enter again */
kl_err kli_problem_expect(kli_problem *s, kli_evaluation *c, uint32_t set,
                          kl_error *e); /* run the oracle and the reference for one set */
void kli_problem_ready_slot(kli_problem *s, uint32_t set, uint32_t slot,
                            uint8_t poison); /* poison pages that kernels can reach, restore mutable
                                                inputs; a device's own memory its runner poisons */
/* What was brought from a device that can read these pages: no later call finds it there. */
void kli_problem_hide_slot(kli_problem *s, const kli_evaluation *c, uint32_t set, uint32_t slot);
kl_err kli_problem_answer(kli_problem *s, kli_evaluation *c, uint32_t set,
                          kl_error *e); /* the oracle alone; touches no slot */
/* The budget of a set on which the reference was not run: never what failures on another drew. */
void kli_problem_take_error(kli_problem *s, uint32_t set);
void kli_problem_forget(kli_problem *s,
                        uint32_t set); /* the oracle's answer, until it is asked for again */
/* Measure the reference on this very set, if that was not done; outputs that lie in slots stay.
 * `*wider`: the budget may have grown. */
kl_err kli_problem_pair(kli_problem *s, kli_evaluation *c, uint32_t set, bool *wider, kl_error *e);
void kli_problem_close(kli_problem *s);

/* check.c */
typedef struct {
    bool ok;
    kl_outcome outcome;
    kl_str why;
} kli_check_outcome;
kl_err kli_check_stages(kli_evaluation *c, kli_problem *real, kli_check_outcome *f, kl_error *e);
/* After the profile: what a slow kernel was spared is checked where its timed calls are not slow,
 * since it knows which runs are timed. */
bool kli_check_has_rest(const kli_evaluation *c);
kl_err kli_check_rest(kli_evaluation *c, kli_problem *real, kli_check_outcome *f, kl_error *e);
/* Compare the outputs of a slot with the expectations of a set; appends to the verdict's checks
 * (all, or failures only). */
kl_err kli_check_slot(kli_evaluation *c, kli_problem *s, uint32_t set, uint32_t slot,
                      uint8_t poison, bool record, kli_check_outcome *f, kl_error *e);
uint64_t kli_slot_print(const kli_problem *s,
                        uint32_t slot); /* a digest of the outputs, without guards */
void kli_check_outcome_of_fault(kli_check_outcome *f, kli_evaluation *c, const kl_fault *fault,
                                const char *when);

/* digest.c */
#define KL_POISON_NAN 0xFF /* every float type reads it as a NaN, every integer as -1 */
#define KL_POISON_BITS 0xA5
enum { KLI_LEAST_CALLS = 4 }; /* compared in any batch, if so many are not known */

/* What is known of the candidate's outputs in one race. */
typedef struct {
    const kli_problem *problem;
    bool known[2][KL_MAX_SETS]; /* by poison and input set: the oracle found a slot with this digest
                                   right */
    uint64_t good[2][KL_MAX_SETS];
    kl_stream draws; /* which calls are compared where not all can be */
    uint64_t batches;
    int64_t start_ns, spent_ns;
    bool differs; /* a call whose slot was used again gave other bits: only batches without such
                     calls can be looked at */
} kli_digests;

/* A batch of the candidate that just ran. */
typedef struct {
    uint32_t first, calls;
    uint8_t poison;
    bool here;               /* its outputs lie in the shared pages */
    const uint64_t *digests; /* by call, from the device; NULL: of the shared pages */
    uint64_t blank; /* on the device, the digest of a slot that nobody wrote; 0: not known */
} kli_batch;

/* Nothing was written there since kli_problem_ready_slot: outputs, mutable inputs and the guards
 * around them. */
bool kli_slot_is_ready(const kli_problem *s, uint32_t set, uint32_t slot, uint8_t poison);
void kli_digests_begin(kli_digests *d, kli_evaluation *c, const char *name);
kl_err kli_digests_judge(kli_digests *d, kli_evaluation *c, kli_problem *s, const kli_batch *b,
                         kli_check_outcome *f, kl_error *e);

/* compare.c */
void kli_gate_compare(kl_check_result *out, kl_dtype got_type, const void *got, kl_dtype want_type,
                      const void *want, int64_t n, const kl_check *how);
bool kli_compare_topk(kl_check_result *out, kl_arena *a, const kl_plan *plan, int values,
                      int indices, int input, const void *got_values, const void *got_indices,
                      kl_dtype want_type, const void *want_values, const void *ranked);

/* profile.c */
#define KLI_THROUGH_NAME                                                                           \
    "its export" /* as a verdict's baseline; src/export/find.c passes over it */
/* through.c; both do nothing without opts->through.  Errors: KL_EBASELINE: it cannot be loaded. */
kl_err kli_through_start(kli_evaluation *c, kl_error *e);
kl_err kli_through_check(kli_evaluation *c, kli_problem *s, uint32_t set, kli_check_outcome *f,
                         kl_error *e);
void kli_profile_prepare(kli_evaluation *c); /* start the baseline's process ahead */
kl_err kli_profile(kli_evaluation *c, kli_problem *real, kli_check_outcome *f, kl_error *e);

/* The calling thread uses the others; `old`: those that it could use. */
void kli_leave_core(int cpu, cpu_set_t *old);

/* aside.c */
bool kli_aside_begin(kli_aside *s);            /* false: there is no thread */
void kli_aside_end(kli_aside *s, bool wanted); /* waits until it is done, or has ended early */

/* shapes.c */
void kli_shapes_begin(kli_evaluation *c);            /* before the real shape is compiled */
void kli_shapes_end(kli_evaluation *c, bool wanted); /* waits; again: nothing */

/* next.c */
void kli_next_begin(kli_evaluation *c); /* when this verdict's own processes are started */
/* Before it is timed: whatever was started for it is up. */
void kli_next_await(kli_evaluation *c);
/* While a sample is taken: what comes up for later verdicts stands still. */
void kli_next_hold(kli_evaluation *c);
void kli_next_go_on(kli_evaluation *c);
void kli_next_settle(kl_gate *g, size_t id); /* spares that are up, without those that failed */
void kli_next_end(kli_evaluation *c,
                  bool wanted); /* when it is done; a compiler is waited for, or ended */

/* fit.c */
enum { REAL_COPIES = 3 }; /* input sets and slots at the real shape */
typedef struct {
    double inputs, outputs, answers, scratch; /* bytes */
} kli_needs;
kli_needs kli_needs_of(const kl_plan *p, uint32_t copies, bool shared);
/* KL_OK with `*refused` set where it is the kernel's scratch alone that will never fit. */
kl_err kli_needs_fit(const kli_needs *n, const kli_memory_room *room, kl_arena *a,
                     const char *where, kl_str *refused, kl_error *e);
/* KL_ELIMIT: never on this machine; KL_EBUSY: not now; `*refused`: the kernel's own scratch is too
 * much. */
kl_err kli_evaluation_fit(kli_evaluation *c, const kl_plan *plan, kl_str *refused, kl_error *e);

/* noise.c */
enum { KL_NOISE_LEAST_PAIRS = 8 };
/* What ratios of pairs of identical code say: those that kept their core, where there are enough,
 * else all. */
void kli_noise_judge(kl_noise *out, const double *whole, int n_whole, const double *all, int n_all);

/* gate.c */
kl_err kli_evaluation_prepare(kli_evaluation *c, kl_gate_opts *opts,
                              kl_error *e); /* oracle, reference and seed, no candidate */
kl_err kli_evaluation_place(kli_evaluation *c, kl_gate_opts *opts,
                            kl_error *e); /* on which device, at which shape? */
/* What can be promised about a candidate: A device code only, B native code in a full sandbox, C
 * anything less. */
char kli_assurance_of(const kl_kernel *k, const kl_backend *b, const kl_device *d,
                      const kl_isolation *i);
/* Processes of the task's own kernels, those that are not warm. */
kl_err kli_evaluation_start_trusted(kli_evaluation *c, kl_error *e);
void kli_evaluation_seed(kli_evaluation *c, uint64_t given); /* 0: a fresh one */
kl_err kli_oracle_missing(const kli_evaluation *c, kl_str why,
                          kl_error *e); /* KL_ENODEV, with what mends it */
/* The definition's Python with `ending` behind it, as a file; empty: there is none. */
kl_str kli_evaluation_python_script(kli_evaluation *c, kl_str ending, kl_error *e);
void kli_evaluation_degrade(kli_evaluation *c, const char *fmt, ...) KL_PRINTF(2, 3);
void kli_evaluation_stage(kli_evaluation *c, kl_stage stage, const char *text);
void kli_evaluation_stage_end(kli_evaluation *c,
                              const char *name); /* closes the running stage's clock under a name */
#endif
