/* verdict.c - what a verdict costs beyond compile and the kernel's own runs, and what a journaled
 * one costs.
 *
 *   bench_verdict [--debug] [--fresh] TASK KERNEL [WORKLOAD] [COUNT] [AGAINST]
 *
 * One gate, COUNT verdicts of the same kernel (warm oracle, baselines and compile cache; the
 * candidate's process is new every time), then COUNT look-ups of the same verdict in a journal.
 * With --fresh each text has a last line of its own, so that it is compiled: then `beyond_ms` is
 * from a source nobody has seen to its verdict, without its runs, in a running gate.
 * With --debug every exchange with a process is said on stderr, with the milliseconds since the one
 * before.
 * With AGAINST the kernel is compared with that one instead of a baseline.  Prints one JSON object;
 * its `rows` are the verdicts, one by one, with the time of each stage; "next" is the wait for
 * processes that come up for later ones.  SPDX-License-Identifier: Apache-2.0 */
#include <klineage/klineage.h>

#include "kernel/kernel.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COUNT = 1000 };

typedef struct {
    kl_gate *gate;
    const kl_task *task;
    const kl_kernel *kernel;
    kl_gate_opts opts;
    int count;
    bool fresh;
} bench;

static void say_since(void *last_ns, kl_log_level level, const char *line) {
    int64_t *last = last_ns;
    const int64_t now = kli_now_ns();
    (void)level;
    fprintf(stderr, "%9.3f %s\n", *last ? (double)(now - *last) * 1e-6 : 0, line);
    *last = now;
}

static KL_NORETURN void die(const kl_error *e) {
    kl_buf b = {0};
    kl_error_render(e, &b);
    fputs(b.ptr, stderr);
    exit(2);
}

static void put_interval(json_t *o, const char *key, const double *x, int n) {
    json_t *i = json_object();
    json_object_set_new(i, "median", json_real(kli_median(x, (size_t)n)));
    json_object_set_new(i, "p95", json_real(kli_quantile(x, (size_t)n, 0.95)));
    json_object_set_new(o, key, i);
}

/* By name, in the order in which they ended; what a name took more than once is added up, and what
 * lies in no stage is "none". */
static json_t *stages_ms(const kl_verdict *v) {
    json_t *o = json_object();
    int64_t none_ns = v->total_ns;
    for (int i = 0; i < v->n_stages; i++) {
        const char *name = v->stages[i].name.ptr;
        const double before = json_number_value(json_object_get(o, name));
        json_object_set_new(o, name, json_real(before + (double)v->stages[i].ns * 1e-6));
        none_ns -= v->stages[i].ns;
    }
    json_object_set_new(o, "none", json_real((double)none_ns * 1e-6));
    return o;
}

static json_t *row_of(const kl_verdict *v) {
    KL_ASSERT(v->n_comparisons > 0);
    const kl_comparison *c = &v->comparisons[0];
    json_t *o = json_pack("{s:s, s:f, s:f, s:f, s:i}", "outcome", kl_outcome_name(v->outcome),
                          "ratio", c->ratio, "low", c->low, "high", c->high, "pairs", c->pairs);
    json_object_set_new(o, "overhead_ms", json_real((double)v->overhead_ns * 1e-6));
    json_t *stages = stages_ms(v);
    json_object_set_new(o, "profile_ms",
                        json_real(json_number_value(json_object_get(stages, "profile"))));
    json_object_set_new(o, "total_ms", json_real((double)v->total_ns * 1e-6));
    json_object_set_new(o, "stages_ms", stages);
    return o;
}

static bool is_timed(const kl_verdict *v) {
    return (v->outcome == KL_OUTCOME_PASS || v->outcome == KL_OUTCOME_UNSTABLE) &&
           v->n_comparisons > 0;
}

static const kl_kernel *variant(const bench *b, kl_arena *a, int i) {
    kl_error e = {0};
    kl_kernel *k;
    const kl_surface *s = b->kernel->surface;
    const char *comment = strcmp(s->comment, "#!") == 0 ? "#" : "//";
    if (!b->fresh) return b->kernel;
    const kl_str text = kl_arena_printf(a, "%.*s\n%s %" PRId64 ".%d\n",
                                        KL_STR_ARG(b->kernel->source), comment, kli_now_ns(), i);
    if (kl_kernel_parse(&k, a, text, b->kernel->path, s, NULL, &e)) die(&e);
    return k;
}

static void run_verdicts(const bench *b, json_t *o, kl_verdict *last, kl_arena *keep) {
    static double overhead[MAX_COUNT], total[MAX_COUNT], beyond[MAX_COUNT];
    json_t *rows = json_array();
    const int64_t start = kli_now_ns();
    for (int i = 0; i <= b->count; i++) { /* the first warms the caches and is not counted */
        kl_error e = {0};
        kl_arena *a = i == b->count ? keep : kl_arena_new();
        if (kl_gate_run(last, b->gate, a, b->task, variant(b, a, i), &b->opts, &e)) die(&e);
        if (!is_timed(last)) {
            fprintf(stderr, "not timed: %s: %s\n", kl_outcome_name(last->outcome), last->why.ptr);
            exit(1);
        }
        if (i) {
            overhead[i - 1] = (double)last->overhead_ns * 1e-6;
            total[i - 1] = (double)last->total_ns * 1e-6;
            json_t *row = row_of(last);
            const json_t *stages = json_object_get(row, "stages_ms");
            beyond[i - 1] = overhead[i - 1] + json_number_value(json_object_get(stages, "compile"));
            json_array_append_new(rows, row);
        }
        if (a != keep) kl_arena_free(a);
    }
    json_object_set_new(o, "verdicts_per_minute",
                        json_real(60e9 * (b->count + 1) / (double)(kli_now_ns() - start)));
    put_interval(o, "overhead_ms", overhead, b->count);
    if (b->fresh) put_interval(o, "beyond_ms", beyond, b->count);
    put_interval(o, "total_ms", total, b->count);
    json_object_set_new(o, "rows", rows);
}

static void run_journal(const bench *b, json_t *o, const kl_verdict *v) {
    static double us[MAX_COUNT];
    kl_error e = {0};
    kl_arena *a = kl_arena_new();
    kl_store *store;
    kl_str dir, text;
    char key[65];
    if (kli_fs_temp_dir(&dir, a, &e) ||
        kl_store_open(&store, kli_fs_join(a, dir.ptr, "bench.db").ptr, &e))
        die(&e);
    json_t *json = kl_verdict_json(v);
    if (kl_gate_key(key, b->gate, a, b->task, b->kernel, &b->opts, &e)) die(&e);
    const kl_store_verdict row = {.key = kl_str_of(key),
                                  .task = v->task,
                                  .kernel = v->kernel_hash,
                                  .platform = v->platform,
                                  .outcome = kl_str_of(kl_outcome_name(v->outcome)),
                                  .json = kli_json_dump(a, json, false),
                                  .created = v->created};
    if (kl_store_verdict_put(store, &row, &e)) die(&e);
    for (int i = 0; i < b->count; i++) {
        kl_arena *scratch = kl_arena_new();
        kl_verdict found;
        const int64_t start = kli_now_ns();
        if (kl_gate_key(key, b->gate, scratch, b->task, b->kernel, &b->opts, &e) ||
            kl_store_verdict_get(&text, store, scratch, key, &e) ||
            kl_verdict_parse(&found, scratch, text, KL_S("journal"), &e))
            die(&e);
        us[i] = (double)(kli_now_ns() - start) * 1e-3;
        kl_arena_free(scratch);
    }
    put_interval(o, "journaled_us", us, b->count);
    json_decref(json);
    kl_store_close(store);
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(a);
}

int main(int argc, char **argv) {
    kl_error e = {0};
    int64_t last_ns = 0;
    const kl_monitor watch = {.log = say_since, .ctx = &last_ns};
    kl_arena *a = kl_arena_new();
    kl_str path;
    kl_task *task;
    kl_kernel *kernel, *against = NULL;
    const bool debug = argc > 1 && strcmp(argv[1], "--debug") == 0;
    argc -= debug;
    argv += debug;
    if (debug) (void)kl_monitor_use(&watch);
    const bool fresh = argc > 1 && strcmp(argv[1], "--fresh") == 0;
    argc -= fresh;
    argv += fresh;
    bench b = {.opts.more_to_come = true, .count = argc > 4 ? atoi(argv[4]) : 20, .fresh = fresh};
    kl_verdict *v = KL_NEW(a, kl_verdict);
    if (argc < 3 || b.count < 1 || b.count > MAX_COUNT) {
        fprintf(stderr,
                "usage: bench_verdict [--debug] [--fresh] TASK KERNEL [WORKLOAD] [COUNT up to %d] "
                "[AGAINST]\n",
                MAX_COUNT);
        return 2;
    }
    b.opts.workload = argc > 3 ? argv[3] : NULL;
    if (kl_task_find(&path, a, argv[1], &e) || kl_task_load(&task, a, path.ptr, &e) ||
        kl_kernel_load(&kernel, a, argv[2], NULL, &e) ||
        (argc > 5 && kl_kernel_load(&against, a, argv[5], NULL, &e)) || kl_gate_open(&b.gate, &e))
        die(&e);
    b.opts.against = against;
    b.task = task;
    b.kernel = kernel;
    json_t *o = json_object();
    json_object_set_new(o, "task", kli_json_str(task->name));
    json_object_set_new(o, "count", json_integer(b.count));
    run_verdicts(&b, o, v, a);
    json_object_set_new(o, "workload", kli_json_str(v->workload));
    json_object_set_new(o, "platform", kli_json_str(v->platform));
    run_journal(&b, o, v);
    puts(kli_json_dump(a, o, true).ptr);
    json_decref(o);
    kl_gate_close(b.gate);
    kl_arena_free(a);
    return 0;
}
