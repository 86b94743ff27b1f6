/* benchmark_impl.h - one comparison in the making, between benchmark.c, rounds.c, profile.c and
 * their test.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_GATE_BENCHMARK_IMPL_H
#define KL_GATE_BENCHMARK_IMPL_H
#include "gate_impl.h"
#include "base/stats.h"

enum {
    MAX_PAIRS = 4096,
    CAP_PAIRS = 10, /* at the cap, so many pairs within CAP_HALF_WIDTH are enough: slow kernels get
                       no further */
    CROWDED_PAIRS =
        8, /* after so many pairs, three in four of them left out, batches are shortened */
    SHORT_BATCHES = 4, /* of the candidate in one comparison: a graph of its own for each */
    SHORT_BATCHES_QUICK = 2
};
#define SHORTEST_BATCH_NS 2e5 /* below this the exchange with the runner begins to show */
#define SHARED_BYTES                                                                               \
    (256ull << 20) /* host pages: every input is drawn, every output poisoned by this process */
#define PROFILE_PATIENCE_NS (120ll * 1000000000ll)      /* the most for one request ... */
#define PROFILE_PATIENCE_LEAST_NS (10ll * 1000000000ll) /* ... and the least */

typedef struct {
    kli_executable *executable;
    uint32_t calls;
    double estimate_ns;
} kli_side;

typedef struct {
    kli_evaluation *c;
    kli_problem *problem;
    kli_side candidate, baseline;
    kl_time_method method;
    kl_stream order;
    kli_digests digests;
    double recorded; /* A/A noise of this host and device, from before; 0: not known */
    double *ratios, *controls, *candidate_ns, *baseline_ns;
    bool *led, *control_led; /* the candidate's half, or the first of a control, came first */
    int pairs, n_controls;
    double *left_ratios, *left_candidate_ns, *left_baseline_ns; /* pairs that were left out */
    int left_out;
    double *left_controls;
    int n_left_controls;
    bool disturbed; /* a sample of this pair had not its core to itself */
    double timed_ns;
    uint32_t pair_index; /* rotates sets and slots from pair to pair */
    uint32_t shorts;     /* batches that ended early ... */
    int next_short;      /* ... and the pair after which the next one comes */
    bool undigested;     /* this device gives no digests */
    int64_t start_ns;
    bool checked_last;
    bool clear; /* it ended early, since the difference is */
} kli_benchmark;

typedef enum { GO_ON, ENOUGH, CLEAR, GIVE_UP } kli_advice;

/* The whole: choose method and batch, run the pairs, conclude into `m`. */
kl_err kli_benchmark_compare(kli_evaluation *c, kli_problem *real, kli_executable *baseline,
                             kl_comparison *m, kli_check_outcome *f, kl_error *e);

/* Its parts, in the order in which they are taken. */
kli_benchmark kli_benchmark_new(kli_evaluation *c, kli_problem *problem, kli_executable *baseline,
                                kl_time_method method);
kl_err kli_benchmark_estimate(kli_benchmark *r, kli_side *s, kli_check_outcome *f, kl_error *e);
double kli_batch_ns(const kl_backend *b, double handshake_ns); /* how long a batch is */
uint32_t kli_calls_for(double batch_ns, double one_ns, uint32_t most);
/* Of calls with so many bytes each, those whose data are soon prepared; some always follow one
 * another. */
uint32_t kli_calls_within(uint32_t calls, uint64_t bytes);
/* How much of its data a batch finds in the caches depends on how much it has: of two kernels that
 * are nearly as fast both make as many calls. */
void kli_even_out(uint32_t *one, uint32_t *other);
/* Fresh physical pages after so many pairs, unless many sets lie on pages enough of their own: no
 * comparison ends on one placement alone. */
bool kli_pages_are_due(int tried, uint32_t n_sets);
uint32_t kli_sets_for(double longest_ns, double one_ns, uint32_t calls, uint32_t most);
/* A part of a device's memory, where that is known, and no more than `most`. */
uint64_t kli_device_room(int64_t memory, uint64_t most, int part);
/* How many copies of the inputs (role 0) or of the rest fit into `room`; at least 4. */
uint32_t kli_copies_that_fit(const kl_plan *p, bool inputs, uint64_t room, uint32_t most);
/* Ratios of pairs that one side led and of those that the other did, two by two: in their geometric
 * means nothing is left of what a half gains by being the second.  How many. */
size_t kli_couples(double *out, const double *ratios, const bool *led, int n);
/* Couples, or single pairs where those agree better with one another: a wild pair spoils its
 * couple. How many. */
size_t kli_steadier(double *out, const double *ratios, const bool *led, int n);
kl_err kli_benchmark_run(kli_benchmark *r, bool *stable, kli_check_outcome *f, kl_error *e);
/* One side's half of a pair; `check`: on a device all its guards and inputs are looked at. */
kl_err kli_benchmark_half(kli_benchmark *r, const kli_side *s, uint32_t first, bool check,
                          double *ns, kli_check_outcome *f, kl_error *e);
/* A batch of the candidate that ends early; no sample. */
kl_err kli_benchmark_short(kli_benchmark *r, kli_check_outcome *f, kl_error *e);
/* One with a call for every input set, where those of a pair have fewer; no sample. */
kl_err kli_benchmark_long(kli_benchmark *r, kli_check_outcome *f, kl_error *e);
/* Load both sides for the problem and bring them all input sets, unless that was done. */
kl_err kli_benchmark_enter(kli_benchmark *r, kli_check_outcome *f, kl_error *e);
kl_err kli_benchmark_pair(kli_benchmark *r, bool last, kli_check_outcome *f, kl_error *e);
void kli_benchmark_make_way(kli_benchmark *r);
kli_advice kli_benchmark_advice(const kli_benchmark *r, const kl_gate_opts *o);
void kli_benchmark_conclude(kli_benchmark *r, kl_comparison *m, bool stable);

/* rounds.c */
enum { ROUNDS = 5, ROUNDS_QUICK = 3, FEW_PROCESSES = 3 };
/* What so many processes say, by the median ratio of each; `first`: what the first said alone.
 * `one_stays`: only one side's are fresh. */
kl_interval kli_rounds_interval(const double *ratios, int n, kl_interval first, bool one_stays);
/* A close call on a device, asked again in fresh processes of both sides; else nothing. */
kl_err kli_rounds_repeat(kli_benchmark *r, kl_comparison *m, kli_check_outcome *f, kl_error *e);

/* profile.c: what is said of a time that did not settle, and of one that no device reaches. */
void kli_profile_unsettled(kli_evaluation *c, const kl_comparison *m, kli_check_outcome *f);
void kli_profile_impossible(kli_evaluation *c, kli_check_outcome *f);
#endif
