/* noise.c - how far apart does this machine put two timings of one and the same code?
 *
 * A small kernel of ours goes the way of every candidate (compiler, sandbox, runner, handshake,
 * watch) and is timed against itself for less than a second.  The interval of the pairs' ratios
 * around 1 is the A/A noise that a gate would find now: nothing is decided below twice that.  What
 * many such measurements of a host say is its record.  Not here: where they are kept (run/noise.c),
 * what is done about it (command/effort.c, benchmark.c).  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/record.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_NOISE_PAIRS = 200,
    ENOUGH_PAIRS = 60,
    TRIED_PAIRS = 4,
    N_FLOATS = 16384,
    N_CALLS = 16,
    STEPS = 64
};

static const double NOISE_SECONDS =
    0.6; /* of pairs; what comes before takes the rest of a second */
static const int64_t MACHINE_LOCK_NS = 5ll * 1000000000ll;
static const int64_t NOISE_PATIENCE_NS = 5ll * 1000000000ll;

static const char SOURCE[] = "//! launch steady args(x, y, N)\n"
                             "void steady(const float *restrict x, float *restrict y, int n) {\n"
                             "    for (int i = 0; i < n; i++) {\n"
                             "        float v = x[i];\n"
                             "        for (int k = 0; k < 64; k++) v = v * 0.5f + 1.0f;\n"
                             "        y[i] = v;\n"
                             "    }\n"
                             "}\n";

const char *kl_host_load(char *text, size_t n) {
    double load[1] = {0};
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (getloadavg(load, 1) == 1)
        snprintf(text, n, "load %.1f on %ld core%s", load[0], cores, cores == 1 ? "" : "s");
    else
        snprintf(text, n, "%ld core%s", cores, cores == 1 ? "" : "s");
    return text;
}

const char *kl_noise_text(const kl_noise *n, char *text, size_t room) {
    char noise[32] = "above 100 %", host[64];
    if (n->noise <= 1) snprintf(noise, sizeof noise, "%.2g %%", 100 * n->noise);
    snprintf(text, room, "A/A noise %s (spread %.2g %%, cv %.2g %%), %d of %d pairs disturbed, %s",
             noise, 100 * n->spread, 100 * n->cv, n->left_out, n->pairs,
             kl_host_load(host, sizeof host));
    return text;
}

/* ---- the record -------------------------------------------------------------------------- */

#define KL_RECORD kl_noise
const kl_record KL_NOISE = {
    KL_RECORD_HEAD("noise", "A kernel of klineage's own timed against itself (A/A)."),
    .document = true,
    KL_ROWS{
#define KL_DEF_NOISE KL_ROW
#include <klineage/gate.def>
        KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_noise_record
const kl_record KL_NOISE_RECORD = {
    KL_RECORD_HEAD("noise-record", "What the A/A measurements of one host say together."),
    .document = true,
    KL_ROWS{
#define KL_DEF_NOISE_RECORD KL_ROW
#include <klineage/gate.def>
        KL_ROWS_END}};
#undef KL_RECORD

bool kl_noise_settled(const kl_noise *n) {
    KL_ASSERT(n->left_out >= 0 && n->left_out <= n->pairs);
    return n->pairs - n->left_out >= KL_NOISE_LEAST_PAIRS;
}

void kl_noise_sum_up(kl_noise_record *out, const kl_noise *rows, int n, kl_str fresh_from) {
    double medians[KL_NOISE_MEASUREMENTS], fresh[KL_NOISE_MEASUREMENTS];
    *out = (kl_noise_record){0};
    if (n > 0) out->host = rows[0].host, out->device = rows[0].device;
    for (int i = 0; i < n && out->n < KL_NOISE_MEASUREMENTS; i++) {
        if (!kl_str_eq(rows[i].device, out->device)) continue;
        if (strcmp(rows[i].created.ptr, fresh_from.ptr) >= 0)
            fresh[out->fresh++] = rows[i].noise; /* dates sort as texts */
        medians[out->n++] = rows[i].median;
        out->since = rows[i].created;
    }
    KL_ASSERT(out->fresh <= out->n && out->n <= n);
    if (!out->n) return;
    out->median = kli_median(medians, (size_t)out->n);
    out->spread = kli_relative_spread(medians, (size_t)out->n);
    out->cv = kli_cv(medians, (size_t)out->n);
    if (out->fresh) out->noise = kli_median(fresh, (size_t)out->fresh);
}

/* ---- one measurement --------------------------------------------------------------------- */

typedef struct {
    kl_arena *arena;
    kl_task task;
    kl_workload workload;
    kl_device device;
    kl_plan plan;
    kl_artefact artefact;
    kl_memory memory;
    kl_runner *runner;
    double whole[MAX_NOISE_PAIRS], all[MAX_NOISE_PAIRS], call_ns[MAX_NOISE_PAIRS];
    int n_whole, n_all;
} bench;

static kl_tensor noise_line(const char *name, bool output) {
    return (kl_tensor){.name = kl_str_of(name),
                       .dtype = KL_F32,
                       .is_output = output,
                       .ndim = 1,
                       .dims = {KL_S("N")}};
}

static kl_err noise_build(bench *b, kl_error *e) {
    kl_kernel *k;
    b->task = (kl_task){.name = KL_S("noise"), .n_axes = 1, .n_inputs = 1, .n_tensors = 2};
    b->task.axes[0] = (kl_axis){.name = KL_S("N"), .kind = KL_AXIS_VAR};
    b->task.tensors[0] = noise_line("x", false);
    b->task.tensors[1] = noise_line("y", true);
    b->workload = (kl_workload){.axes = {N_FLOATS}, .dtypes = {KL_F32, KL_F32}};
    kl_err err = kl_device_probe(&b->device, b->arena, KL_BACKEND_CPU, e);
    if (!err)
        err = kl_kernel_parse(&k, b->arena, kl_str_of(SOURCE), KL_S("noise.c"), NULL, NULL, e);
    if (!err) err = kli_kernel_plan(&b->plan, k, &b->task, &b->workload, &b->device.limits, e);
    if (!err)
        err = kli_compile(&b->artefact, b->arena, &b->device, k, &b->task, &b->workload, NULL, e);
    if (!err && !b->artefact.ok)
        err = kl_fail(e, KL_ENODEV, "noise", "%.300s", b->artefact.log.ptr);
    return err;
}

static kl_err fault_error(const kl_fault *fault, kl_error *e) {
    return kl_fail(e, KL_ESPAWN, "noise", "a kernel of klineage's own failed: %s", fault->text);
}

static kl_err noise_start(bench *b, kl_error *e) {
    const kl_runner_opts how = {.backend = KL_BACKEND_CPU, .cpu = -1, .threads = 1};
    kl_layout layout;
    kl_fault fault = {0};
    kl_err err = kli_runner_start(&b->runner, &how, e);
    if (!err) err = kli_layout_make(&layout, &b->plan, N_CALLS, N_CALLS + 1, e);
    if (!err) err = kli_memory_open(&b->memory, &layout, e);
    if (!err) err = kli_runner_place(b->runner, kli_last_core(), 1, e);
    if (!err) err = kli_runner_load(b->runner, &fault, NULL, &b->artefact, &b->plan, e);
    if (!err && !fault.kind) err = kli_runner_bind(b->runner, &fault, &b->memory, e);
    return err || !fault.kind ? err : fault_error(&fault, e);
}

/* Nothing is timed that was not checked, this neither: 64 steps towards the fixed point 2 leave
 * nothing of x = 0. */
static kl_err noise_check(bench *b, kl_error *e) {
    kl_fault fault = {0};
    int64_t wall;
    kl_err err =
        kli_runner_run(b->runner, &fault, 0, 0, KL_POISON_NAN, NOISE_PATIENCE_NS, &wall, e);
    if (err || fault.kind) return err ? err : fault_error(&fault, e);
    const float *y = kli_memory_output(&b->memory, &b->plan, 1, 0);
    for (int i = 0; i < N_FLOATS; i++)
        if (!(fabsf(y[i] - 2) < 1e-5f))
            return kl_fail(e, KL_ESPAWN, "noise", "a kernel of klineage's own computed %g",
                           (double)y[i]);
    return KL_OK;
}

static kl_err pair(bench *b, kl_error *e) {
    const kl_time_request q = {
        .method = KL_TIME_BATCH, .calls = N_CALLS, .warm = 1, .poison = KL_POISON_NAN};
    double ns[2] = {0};
    bool whole = true;
    for (int half = 0; half < 2; half++) {
        kl_fault fault = {0};
        const kl_err err = kli_runner_time(b->runner, &fault, &ns[half], &q, NOISE_PATIENCE_NS, e);
        if (err || fault.kind) return err ? err : fault_error(&fault, e);
        const kl_sample clock = kli_runner_sample(b->runner);
        whole &= !clock.preempted && !clock.late && !clock.stolen;
    }
    if (!(ns[0] > 0) || !(ns[1] > 0)) return KL_OK;
    KL_ASSERT(b->n_whole <= b->n_all && b->n_all < MAX_NOISE_PAIRS);
    b->call_ns[b->n_all] = fmin(ns[0], ns[1]);
    b->all[b->n_all++] = ns[0] / ns[1];
    if (whole) b->whole[b->n_whole++] = ns[0] / ns[1];
    return KL_OK;
}

/* Pairs that kept their core tell the floor; where there are hardly any, all do, and that alone is
 * noisy. */
void kli_noise_judge(kl_noise *out, const double *whole, int n_whole, const double *all,
                     int n_all) {
    const bool enough = n_whole >= KL_NOISE_LEAST_PAIRS;
    KL_ASSERT(n_whole >= 0 && n_whole <= n_all && n_all > 0);
    const double *told = enough ? whole : all;
    const size_t n = (size_t)(enough ? n_whole : n_all);
    const kl_interval aa = kli_bootstrap_median(told, n, 1000, 0.95, kli_stream_of(1, "noise"));
    out->noise = fmax(fabs(aa.low - 1), fabs(aa.high - 1));
    out->median = aa.median;
    out->spread = kli_relative_spread(told, n);
    out->cv = kli_cv(told, n);
    out->pairs = n_all;
    out->left_out = n_all - n_whole;
    out->noisy = out->noise > KL_NOISY || !enough;
}

static kl_err noise_measure(kl_noise *out, bench *b, kl_error *e) {
    const int64_t begin = kli_now_ns();
    kl_err err = KL_OK;
    while (!err && b->n_all < MAX_NOISE_PAIRS && b->n_whole < ENOUGH_PAIRS &&
           (b->n_all < TRIED_PAIRS || (double)(kli_now_ns() - begin) < NOISE_SECONDS * 1e9)) {
        err = pair(b, e);
        if (kli_interrupted()) return kl_fail(e, KL_EINTR, "noise", "interrupted");
    }
    if (!err) kli_noise_judge(out, b->whole, b->n_whole, b->all, b->n_all);
    return err;
}

/* By decades. */
static const char *length_class(double call_ns) {
    static const char *const CLASSES[] = {"1us", "10us", "100us", "1ms", "10ms"};
    size_t i = 0;
    for (double most = 1e4; call_ns >= most && i + 1 < KL_COUNT(CLASSES); most *= 10) i++;
    return CLASSES[i];
}

static void describe_place(kl_noise *out, kl_arena *a, const bench *b) {
    char host[65] = "";
    double load = 0;
    (void)gethostname(host, sizeof host - 1);
    out->host = kl_arena_copy(a, kl_str_of(host));
    out->device = kl_arena_copy(a, b->device.name);
    out->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    out->load = getloadavg(&load, 1) == 1 ? load : 0;
    out->length = kl_str_of(length_class(b->n_all ? kli_median(b->call_ns, (size_t)b->n_all) : 0));
    out->created = kli_utc_now(a);
}

kl_err kl_gate_noise(kl_noise *out, kl_arena *a, kl_error *e) {
    bench *b = calloc(1, sizeof *b);
    kli_machine_lock machine_lock;
    if (!b) kl_oom(sizeof *b);
    *out = (kl_noise){0};
    b->arena = kl_arena_new();
    b->memory.inputs_fd = -1;
    kli_machine_lock_open(&machine_lock, "noise", false);
    machine_lock.limit_ns = MACHINE_LOCK_NS;
    kl_err err = noise_build(b, e);
    if (!err) err = noise_start(b, e);
    if (!err) err = noise_check(b, e);
    (void)kli_machine_lock_exclusive(
        &machine_lock); /* a gate that works on meanwhile is part of what this machine is like */
    if (!err) err = noise_measure(out, b, e);
    if (!err) describe_place(out, a, b);
    kli_machine_lock_close(&machine_lock);
    kli_runner_stop(b->runner);
    if (b->memory.inputs_fd >= 0) kli_memory_close(&b->memory);
    kl_arena_free(b->arena);
    free(b);
    return err;
}
