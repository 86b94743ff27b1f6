/* gate.h - compile, check and time a kernel: parse -> compile -> inspect -> check -> profile,
 * stopping at the first failure.
 *
 * Owns the verdict and its evidence.  Never runs candidate code in this process, never calls a
 * model, never writes a store.  A rejected kernel is a result, not an error.  Protocol and
 * thresholds: docs/gate.md.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_GATE_H
#define KLINEAGE_GATE_H

#include <jansson.h>
#include <klineage/backend.h>
#include <klineage/record.h>

KL_API_BEGIN

/* Enums and records of the gate are declared in gate.def, with the meaning of each field. */
typedef enum {
#define KL_DEF_OUTCOME(id, name, exit_status) id,
#include <klineage/gate.def>
} kl_outcome;

typedef enum {
#define KL_DEF_STAGE(id, name) id,
#include <klineage/gate.def>
} kl_stage;

typedef enum {
#define KL_DEF_CALL(id, name) id,
#include <klineage/gate.def>
} kl_decision;

/* What a ratio's 95 % interval [low, high] means beside the A/A noise of its own run (half-width
 * around 1; 0: not measured): faster when `low` clears 1 + max(1 %, 2 x floor), slower as its
 * mirror, same when neither and the interval `settled` (became as narrow as was asked), else
 * undecided.  An interval that did not settle decides only beside a known floor.  Every faster or
 * slower in the program is this one's. */
kl_decision kl_decide(double low, double high, double noise, bool settled);
double kl_decide_margin(double noise); /* max(1 %, 2 x floor) */

/* Is it the machine that keeps a comparison from settling?  A wide A/A noise or many pairs left
 * out; else it is the kernel's own time. */
typedef struct kl_comparison kl_comparison;
bool kl_comparison_busy(const kl_comparison *m);
/* "load 5.2 on 2 cores" */
const char *kl_host_load(char *text, size_t n);

/* What identical code differs by on this machine now: its A/A noise.  With a kernel of klineage's
 * own, through the sandbox and the runner of every kernel, in less than a second. */
typedef struct {
#define KL_DEF_NOISE KL_MEMBER
#include <klineage/gate.def>
} kl_noise;
extern const kl_record KL_NOISE;
#define KL_NOISY 0.03 /* 6 % of difference are needed then */
/* "A/A noise 0.4 % (spread 1.6 %, cv 0.3 %), 0 of 60 pairs disturbed, load 0.2 on 2 cores" */
const char *kl_noise_text(const kl_noise *n, char *text, size_t room);
/* Texts in the arena.  Errors as kl_gate_run. */
KL_MUST_USE kl_err kl_gate_noise(kl_noise *out, kl_arena *a, kl_error *e);

/* What a host was like before, from measurements that settled (enough pairs kept their core). */
typedef struct {
#define KL_DEF_NOISE_RECORD KL_MEMBER
#include <klineage/gate.def>
} kl_noise_record;
extern const kl_record KL_NOISE_RECORD;
enum { KL_NOISE_MEASUREMENTS = 100 }; /* in a record, at most */
bool kl_noise_settled(const kl_noise *n);
/* `rows`: of one host, newest first; those of another device than the first one's do not count.
 * `fresh_from`: UTC. */
void kl_noise_sum_up(kl_noise_record *out, const kl_noise *rows, int n, kl_str fresh_from);

const char *kl_outcome_name(kl_outcome o); /* "pass" "no_compile" ... as in the JSON */
const char *kl_stage_name(kl_stage s);
const char *kl_decision_name(kl_decision c);

/* One output of one checked run.  `first_bad` is -1 when there is none. */
typedef struct {
#define KL_DEF_CHECK KL_MEMBER
#include <klineage/gate.def>
} kl_check_result;

/* Candidate against one baseline, interleaved. ratio > 1: the candidate is faster. */
struct kl_comparison {
#define KL_DEF_COMPARISON KL_MEMBER
#include <klineage/gate.def>
};

typedef struct {
    kl_str name;
    int64_t ns;
} kl_stage_time;

/* comparisons[0] is the primary baseline; median_ns is 0 unless it was timed. */
typedef struct {
#define KL_DEF_VERDICT KL_MEMBER
#include <klineage/gate.def>
} kl_verdict;
extern const kl_record KL_VERDICT;

typedef struct kl_variant kl_variant;   /* below, with tune */
typedef struct kl_gate_job kl_gate_job; /* below the options */

typedef struct {
    const char *workload; /* label, uuid, or "M=64,N=64"; NULL: the first real shape for the host */
    const char *baseline; /* name; "all"; "none"; NULL: the primary */
    const kl_kernel *against; /* compare with this kernel instead of a baseline: same sandbox, same
                                 checks; NULL: none */
    const char *through;    /* a trusted plugin or script that wraps the kernel, as an export of it
                               does: checked wherever the kernel is, and timed instead of a baseline;
                               NULL: none.  Not part of kl_gate_key, and no spool carries it */
    char require_assurance; /* 'A', 'B' or 0 */
    bool check_only;        /* stop before profile */
    bool quick; /* one seed and a short profile: for tune and search; the verdict says so in
                   `degradations` */
    double min_pairs, min_seconds, max_seconds,
        half_width;       /* 0: 30, 0.3, KL_PROFILE_SECONDS, 0.005 */
    double abandon_below; /* stop as soon as the ratio to the primary baseline is surely below this;
                             0: never */
    const char *arch;     /* spool: device to compile for when this host has none; NULL: sm_90a */
    int threads;          /* for inputs and oracle; 0: all cores */
    bool more_to_come;    /* start the next candidate's process ahead */
    const kl_gate_job *next;      /* likely asked next, borrowed for the call: device code of it is
                                     compiled meanwhile, and the processes of its task, of its own
                                     `next`'s and so on come up; NULL: not known */
    const kl_noise_record *noise; /* of this host, borrowed; what it says of the device that is used
                                     may widen a comparison's A/A noise; NULL: none */
    uint64_t seed;                /* 0: fresh */
    kl_compile_opts compile;
    const kl_monitor
        *monitor; /* of kl_gate_run and kl_gate_tune; borrowed; NULL: the thread's own */
    void (*progress)(void *ctx, kl_stage stage, const char *text);
    void (*tried)(void *ctx, const kl_variant *t, int n,
                  int most); /* tune: trial `n` of at most `most` is done; may be NULL */
    void *progress_ctx;
} kl_gate_opts;

/* One question to a gate. */
struct kl_gate_job {
    const kl_task *task;
    const kl_kernel *kernel;
    kl_gate_opts opts;
};

/* A gate holds what may be reused between verdicts: probed devices, compiled oracles and baselines,
 * their warm runners. */
typedef struct kl_gate kl_gate;
KL_MUST_USE kl_err kl_gate_open(kl_gate **out, kl_error *e);
void kl_gate_close(kl_gate *g);

/* Take kernel `k` through the gate for `t`.  The verdict's text lives in the arena.
 * Errors: KL_ENODEV (no device or compiler for the surface), KL_EISOLATION, KL_EINTR, KL_EBASELINE.
 */
KL_MUST_USE kl_err kl_gate_run(kl_verdict *out, kl_gate *g, kl_arena *a, const kl_task *t,
                               const kl_kernel *k, const kl_gate_opts *o, kl_error *e);
/* The journal key of such a run: sha256 over task version, kernel identity, workload, baseline
 * choice, platform and toolchain. */
KL_MUST_USE kl_err kl_gate_key(char key[65], kl_gate *g, kl_arena *a, const kl_task *t,
                               const kl_kernel *k, const kl_gate_opts *o, kl_error *e);
/* Verdict of a kernel that does not even parse: outcome refused, stage parse. */
void kl_verdict_refused(kl_verdict *out, kl_arena *a, const kl_task *t, const char *path,
                        const kl_error *why);
kl_str kl_first_error(kl_arena *a, kl_str log); /* the line of a compiler's log that says why */

/* JSON as docs/schema/verdict.schema.json describes; caller json_decref's. */
json_t *kl_verdict_json(const kl_verdict *v);
/* From JSON (journal, spool). Errors: KL_EPARSE. */
KL_MUST_USE kl_err kl_verdict_parse(kl_verdict *out, kl_arena *a, kl_str json, kl_str name,
                                    kl_error *e);
/* A few lines for a terminal. */
void kl_verdict_render(const kl_verdict *v, kl_buf *out, bool colour);
int kl_verdict_exit_code(
    const kl_verdict *v); /* docs/reference: 0 pass, 3 no_compile, 4 wrong, ... */

/* ---- task admission: is the check itself strong enough? ---------------------------------- */

typedef struct {
    kl_str name; /* "tiny: zeros in C", "naive.c" */
    bool expected_pass, passed;
    kl_str why;
} kl_admission_row;
/* Zeros, ones, a copy of an input, the mean and a permuted output must fail; the naive kernels must
 * pass. `*n` rows. */
KL_MUST_USE kl_err kl_gate_admit_task(kl_admission_row **rows, int *n, kl_gate *g, kl_arena *a,
                                      const kl_task *t, kl_host_kind on, kl_error *e);

/* ---- tune: search over params ------------------------------------------------------------ */

struct kl_variant {
    kl_str params; /* "BM=64 BN=128" */
    kl_outcome outcome;
    double ratio;   /* to the primary baseline; 0 when it never ran */
    bool abandoned; /* surely slower than the best so far: its profile was cut short */
    double seconds; /* spent on it */
    kl_str why;
};
typedef struct {
    kl_variant *trials;
    int n_trials;
    kl_str best;         /* params of the winner */
    kl_verdict verdict;  /* full verdict of the winner */
    int64_t grid;        /* points of the full grid, for comparison */
    double over_default; /* the winner's ratio over that of the values in the file; 0: one of them
                            has none */
    double seconds;
} kl_tuning;
/* Coordinate search over the params' values, each variant raced against the best so far with early
 * abort; at most `max_trials` (0: 64). `pinned` ("BM=64" ..., NULL at the end; or NULL): params
 * that are not searched.  Errors as kl_gate_run. */
KL_MUST_USE kl_err kl_gate_tune(kl_tuning *out, kl_gate *g, kl_arena *a, const kl_task *t,
                                const char *kernel_path, const char *const *pinned,
                                const kl_gate_opts *o, int max_trials, kl_error *e);

KL_API_END
#endif
