/* gate_impl.h - what the gate's files share: actors (a kernel in its runner), scenes (a shape with its inputs and expectations).
 *
 *   scene   one workload, n_sets fresh inputs, the oracle's answers for them (in this process alone), shared pages
 *   actor   one compiled kernel, plugin or script in one runner process, moved from scene to scene
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_GATE_IMPL_H
#define KL_GATE_IMPL_H
#include <klineage/gate.h>
#include "base/memory.h"
#include "base/rng.h"

typedef struct kl_actor {
    kl_str name; /* "candidate", "oracle", baseline's name */
    bool trusted;
    bool plugin;             /* host plugin or script: no launches of its own */
    const kl_kernel *kernel; /* NULL for plugins and scripts */
    kl_artefact artefact;
    kl_runner *runner;
    kl_plan plan;
    uint64_t scene; /* id of the scene it is bound to; 0: none */
    kl_resources resources[KL_MAX_LAUNCHES];
} kl_actor;

typedef struct kl_scene {
    uint64_t id;
    const kl_task *task;
    const kl_workload *workload;
    kl_plan plan;            /* the candidate's: tensors of the task in the workload's dtypes */
    kl_plan oracle_plan;     /* same tensors, wider float outputs */
    kl_memory memory;        /* inputs, candidate's and baselines' outputs */
    kl_memory oracle_memory; /* oracle's outputs; inputs are those of `memory` */
    uint32_t n_sets, n_slots;
    uint64_t seeds[KL_MAX_SETS];
    double scale;
    void *expected[KL_MAX_SETS][KL_MAX_TENSORS];         /* heap; NULL until asked for; in oracle_plan's dtypes */
    double reference_error[KL_MAX_SETS][KL_MAX_TENSORS]; /* the naive kernel's relative RMS error; < 0: not measured */
    bool paired[KL_MAX_SETS];                            /* it was measured on this very set */
    void *pristine[KL_MAX_SETS][KL_MAX_TENSORS];         /* mutable inputs as drawn */
    int64_t oracle_ns;                                   /* longest oracle run seen here */
} kl_scene;

/* A place among the gates of this machine: see turn.c.  {0} has none yet. */
enum { KL_TURN_CORES = 64 };
typedef struct {
    int turnstile, places[KL_TURN_CORES], n; /* lock files; -1: not to be had */
} kl_turn_room;

typedef struct {
    kl_turn_room cores, gpu;       /* gpu.n is 0 for a gate of the CPU */
    char what[64];                 /* told to those who wait: "gate gemm" */
    char holder[128];              /* who was waited for last: "PID 12 (gate gemm), since 3 s" */
    int64_t limit_ns;              /* of waiting for one holder */
    int64_t shown_ns, said_ns;
    void (*progress)(void *ctx, kl_stage stage, const char *text); /* may be NULL */
    void *progress_ctx;
} kl_turn;

typedef enum { KL_TURN_TAKEN, KL_TURN_NO_LOCK, KL_TURN_TOO_LONG } kl_turn_state;

void kl_turn_open(kl_turn *t, const char *what, bool on_gpu);
kl_turn_state kl_turn_share(kl_turn *t); /* compile and check beside others */
kl_turn_state kl_turn_alone(kl_turn *t); /* time: nobody else compiles, checks or times on the same cores, or on the same GPU */
void kl_turn_release(kl_turn *t);
void kl_turn_close(kl_turn *t);

/* Everything one verdict needs while it is made. */
typedef struct kl_case {
    struct kl_gate *gate;
    kl_arena *arena;
    const kl_task *task;
    const kl_kernel *kernel;
    const kl_gate_opts *opts;
    kl_verdict *verdict;
    const kl_device *device;
    const kl_backend *backend;
    const kl_workload *workload; /* the real shape */
    kl_actor candidate;
    kl_actor *oracle;    /* borrowed from the gate */
    kl_actor *reference; /* the task's naive kernel: its error is what the budget multiplies; NULL: none */
    uint64_t root;       /* of the inputs; written into the verdict */
    kl_stream schedule;  /* order of pairs, poisons, what is looked at: a key that no input leads to */
    uint64_t scenes;     /* opened so far: names the substreams of their inputs */
    int64_t run_ns; /* time inside kernels (candidate, oracle, baselines), for the overhead figure */
    int64_t clock;  /* start of the current stage */
    kl_turn turn;   /* shared while it checks, alone while it times */
} kl_case;

/* The largest error of a naive kernel that was seen for one task, shape and scale. */
typedef struct {
    kl_str key;
    double rms[KL_MAX_TENSORS]; /* per output; below 0: none */
    int draws;                  /* input sets it was measured on */
} kl_reference_error;

struct kl_gate {
    kl_arena *arena;
    kl_device devices[4];
    bool probed[4];
    int core; /* of its runners: kl_last_core when it was opened */
    kl_isolation isolation;
    kl_actor *actors[64]; /* trusted, warm, found by key */
    kl_str actor_keys[64];
    int n_actors;
    kl_runner *spare[4];            /* candidate runner started ahead, by backend */
    kl_reference_error errors[256]; /* of naive kernels, found by key */
    int n_errors;
    uint64_t scenes; /* last scene id */
};

/* actor.c */
kl_err kl_gate_device(const kl_device **out, kl_gate *g, kl_backend_id id, kl_error *e);
/* A trusted file of the task in a warm runner; `*out` NULL with KL_OK and a reason when it is not available here. */
kl_err kl_actor_trusted(kl_actor **out, kl_str *why_not, kl_case *c, kl_str name, kl_str file, const kl_workload *w,
                        kl_error *e);
kl_err kl_actor_enter(kl_actor *a, kl_scene *s, kl_case *c, kl_fault *fault, kl_error *e);
const kl_device_limits *kl_actor_limits(const kl_actor *a, const kl_case *c);
kl_err kl_actor_plan(kl_plan *out, kl_actor *a, kl_case *c, const kl_workload *w, kl_error *e);
kl_err kl_actor_restart(kl_actor *a, kl_case *c, kl_error *e);
void kl_actor_stop(kl_actor *a);
kl_err kl_gate_start_ahead(kl_gate *g, kl_backend_id id,
                           kl_error *e);  /* a runner for a candidate that is not known yet */
int kl_runner_core(const kl_gate *g, const kl_plan *plan); /* -1: of no core's own, since it has threads */
int kl_last_core(void); /* that this thread may use; -1 when there is but one */

/* scene.c */
kl_err kl_scene_open(kl_scene *s, kl_case *c, const kl_workload *w, uint32_t n_sets, uint32_t n_slots, double scale,
                     kl_error *e);
/* The largest error of several draws counts.  One that overflowed says nothing: a finite one stays, and replaces it. */
void kl_reference_remember(kl_reference_error *m, const double *rms);
kl_err kl_scene_renew(kl_scene *s, kl_case *c,
                      kl_error *e); /* same inputs on fresh physical pages; every actor must enter again */
kl_err kl_scene_expect(kl_scene *s, kl_case *c, uint32_t set,
                       kl_error *e);                  /* run the oracle and the reference for one set */
void kl_scene_ready_slot(kl_scene *s, uint32_t set, uint32_t slot, uint8_t poison); /* poison, restore mutable inputs */
kl_err kl_scene_answer(kl_scene *s, kl_case *c, uint32_t set, kl_error *e); /* the oracle alone; touches no slot */
bool kl_scene_answered(const kl_scene *s, uint32_t set);
void kl_scene_forget(kl_scene *s, uint32_t set); /* the oracle's answer, until it is asked for again */
/* Measure the reference on this very set, if that was not done; outputs that lie in slots stay.  `*wider`: the budget may have grown. */
kl_err kl_scene_pair(kl_scene *s, kl_case *c, uint32_t set, bool *wider, kl_error *e);
void kl_scene_close(kl_scene *s);

/* check.c */
typedef struct {
    bool ok;
    kl_outcome outcome;
    kl_str why;
} kl_finding;
kl_err kl_check_stages(kl_case *c, kl_scene *real, kl_finding *f, kl_error *e);
/* Compare the outputs of a slot with the expectations of a set; appends to the verdict's checks (all, or failures only). */
kl_err kl_check_slot(kl_case *c, kl_scene *s, uint32_t set, uint32_t slot, uint8_t poison, bool record, kl_finding *f,
                     kl_error *e);
uint64_t kl_slot_print(const kl_scene *s, uint32_t slot); /* a digest of the outputs in the shared pages, without guards */
void kl_finding_of_fault(kl_finding *f, kl_case *c, const kl_fault *fault, const char *when);

/* digest.c */
#define KL_POISON_NAN 0xFF /* every float type reads it as a NaN, every integer as -1 */
#define KL_POISON_BITS 0xA5

/* What is known of the candidate's outputs in one race. */
typedef struct {
    const kl_scene *scene;
    bool known[2][KL_MAX_SETS];    /* by poison and input set: the oracle found a slot with this digest right */
    uint64_t good[2][KL_MAX_SETS];
    bool has_print[KL_MAX_SETS];   /* by input set: kl_slot_print of a right answer, whatever the poison */
    uint64_t print[KL_MAX_SETS];
    kl_stream draws;               /* which calls are compared where not all can be */
    uint64_t batches;
    int64_t start_ns, spent_ns;
    bool differs; /* a call whose slot was used again gave other bits: only batches without such calls can be looked at */
} kl_digests;

/* A batch of the candidate that just ran. */
typedef struct {
    uint32_t first, calls;
    uint8_t poison;
    bool here;               /* its outputs lie in the shared pages */
    const uint64_t *digests; /* by call, from the device; NULL: of the shared pages */
    uint64_t blank;          /* on the device, the digest of a slot that nobody wrote; 0: not known */
} kl_batch;

/* Nothing was written there since kl_scene_ready_slot: outputs, mutable inputs and the guards around them. */
bool kl_slot_is_ready(const kl_scene *s, uint32_t set, uint32_t slot, uint8_t poison);
void kl_digests_begin(kl_digests *d, kl_case *c, const char *name);
kl_err kl_digests_judge(kl_digests *d, kl_case *c, kl_scene *s, const kl_batch *b, kl_finding *f, kl_error *e);

/* compare.c */
void kl_compare(kl_check_result *out, kl_dtype got_type, const void *got, kl_dtype want_type, const void *want,
                int64_t n, const kl_check *how);
bool kl_compare_topk(kl_check_result *out, kl_arena *a, const kl_plan *plan, int values, int indices, int input,
                     const void *got_values, const void *got_indices, kl_dtype want_type, const void *want_values,
                     const void *ranked);

/* profile.c */
void kl_profile_prepare(kl_case *c); /* start the baseline's process ahead */
kl_err kl_profile(kl_case *c, kl_scene *real, kl_finding *f, kl_error *e);

/* fit.c */
enum { REAL_COPIES = 3 }; /* input sets and slots at the real shape */
typedef struct {
    double inputs, outputs, answers, scratch; /* bytes */
} kl_needs;
kl_needs kl_needs_of(const kl_plan *p, uint32_t copies, bool shared);
/* KL_OK with `*refused` set where it is the kernel's scratch alone that will never fit. */
kl_err kl_needs_fit(const kl_needs *n, const kl_memory_room *room, kl_arena *a, const char *where, kl_str *refused,
                    kl_error *e);
/* KL_ELIMIT: never on this machine; KL_EBUSY: not now; `*refused`: the kernel's own scratch is too much. */
kl_err kl_case_fit(kl_case *c, const kl_plan *plan, kl_str *refused, kl_error *e);

/* noise.c */
enum { KL_NOISE_LEAST_PAIRS = 8 };
/* What ratios of pairs of identical code say: those that kept their core, where there are enough, else all. */
void kl_noise_judge(kl_noise *out, const double *whole, int n_whole, const double *all, int n_all);

/* gate.c */
kl_err kl_case_prepare(kl_case *c, kl_gate_opts *opts, kl_error *e); /* oracle, reference and seed, no candidate */
void kl_case_seed(kl_case *c, uint64_t given); /* 0: a fresh one */
kl_err kl_oracle_missing(const kl_case *c, kl_str why, kl_error *e); /* KL_ENODEV, with what mends it */
kl_str kl_case_reference_script(kl_case *c, kl_error *e); /* the definition's Python as a file; empty: there is none */
void kl_case_degrade(kl_case *c, const char *fmt, ...) KL_PRINTF(2, 3);
void kl_case_stage(kl_case *c, kl_stage stage, const char *text);
void kl_case_lap(kl_case *c, const char *name); /* closes the running stage's clock under a name */
#endif
