/* verdict.c - the verdict as JSON, as text for a terminal, as an exit code.  Format: docs/formats/verdict.md and docs/schema/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/hash.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

enum { MAX_CHECKS = 65536, MAX_FEATURES = 1024 }; /* of a verdict that is read; a gate's own has some dozens */

static const char *const OUTCOMES[] = {"pass", "no_compile", "wrong", "cheat", "hang", "crash", "unstable", "refused"};
static const char *const STAGES[] = {"parse", "compile", "inspect", "tiny", "hidden",
                                     "real",  "profile", "after",   "done"};
static const char *const CALLS[] = {"same", "faster", "slower", "undecided"};
static const int EXIT_CODES[] = {0, 3, 4, 6, 5, 9, 14, 10}; /* in the order of kl_outcome */

const char *kl_outcome_name(kl_outcome o) { return OUTCOMES[o]; }
const char *kl_stage_name(kl_stage s) { return STAGES[s]; }
const char *kl_call_name(kl_call c) { return CALLS[c]; }
int kl_verdict_exit_code(const kl_verdict *v) { return EXIT_CODES[v->outcome]; }

/* ---- to JSON ----------------------------------------------------------------------------------------------------- */

static void put(json_t *o, const char *key, json_t *value) { json_object_set_new(o, key, value); }
static void put_str(json_t *o, const char *key, kl_str s) { put(o, key, kl_json_str(s)); }
static void put_real(json_t *o, const char *key, double v) { put(o, key, kl_json_real(v)); }
static void put_int(json_t *o, const char *key, int64_t v) { put(o, key, json_integer(v)); }
static void put_bool(json_t *o, const char *key, bool v) { put(o, key, json_boolean(v)); }

/* A 64-bit seed does not fit JSON's safe integers: it travels as text. */
static void put_seed(json_t *o, const char *key, uint64_t seed) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    put(o, key, json_string(text));
}

static json_t *check_json(const kl_check_result *r) {
    json_t *o = json_object();
    put_str(o, "workload", r->workload);
    put_str(o, "output", r->output);
    put_seed(o, "seed", r->seed);
    put_real(o, "scale", r->scale);
    put_bool(o, "ok", r->ok);
    put_real(o, "rms_error", r->rms_error);
    put_real(o, "budget", r->budget);
    put_real(o, "max_abs_error", r->max_abs_error);
    put_int(o, "bad", r->bad);
    if (r->first_bad >= 0) {
        put_int(o, "first_bad", r->first_bad);
        put_real(o, "got", r->got);
        put_real(o, "expected", r->expected);
    }
    return o;
}

static json_t *comparison_json(const kl_comparison *m) {
    json_t *o = json_object();
    put_str(o, "baseline", m->baseline);
    put_str(o, "described", m->described);
    put_real(o, "baseline_ns", m->baseline_ns);
    put_real(o, "candidate_ns", m->candidate_ns);
    put_real(o, "ratio", m->ratio);
    put_real(o, "low", m->low);
    put_real(o, "high", m->high);
    put_real(o, "floor", m->floor);
    put_real(o, "aa_low", m->aa_low);
    put_real(o, "aa_high", m->aa_high);
    put_int(o, "pairs", m->pairs);
    put_int(o, "controls", m->controls);
    put_int(o, "left_out", m->left_out);
    put_real(o, "handshake", m->handshake);
    put(o, "call", json_string(kl_call_name(m->call)));
    put_bool(o, "stable", m->stable);
    put_bool(o, "bimodal", m->bimodal);
    return o;
}

static json_t *time_json(const kl_verdict *v) {
    if (!v->median_ns) return json_null();
    json_t *o = json_object(), *versus = json_array();
    put_int(o, "median_ns", v->median_ns);
    put_int(o, "floor_ns", v->floor_ns);
    put_str(o, "method", v->method);
    put(o, "cache", json_string(v->cache_cold ? "cold" : "warm"));
    put_int(o, "n_sets", v->n_sets);
    put_int(o, "n_slots", v->n_slots);
    put_int(o, "calls", v->calls);
    for (int i = 0; i < v->n_comparisons; i++) json_array_append_new(versus, comparison_json(&v->comparisons[i]));
    put(o, "vs", versus);
    return o;
}

static json_t *resource_json(const kl_resources *r) {
    json_t *o = json_object();
    put_int(o, "registers", r->registers);
    put_int(o, "static_smem", r->static_smem);
    put_int(o, "local_bytes", r->local_bytes);
    put_int(o, "max_threads", r->max_threads);
    return o;
}

static void put_identity(json_t *o, const kl_verdict *v) {
    json_t *task = json_object(), *kernel = json_object(), *platform = json_object();
    put_str(task, "name", v->task);
    put_str(task, "hash", v->task_hash);
    put_str(kernel, "path", v->kernel_path);
    put_str(kernel, "hash", v->kernel_hash);
    put_str(kernel, "surface", v->surface);
    put_str(platform, "name", v->platform);
    put_str(platform, "device", v->device);
    put_str(platform, "toolchain", v->toolchain);
    put_str(platform, "driver", v->driver);
    put_str(platform, "isolation", v->isolation);
    put(o, "task", task);
    put(o, "kernel", kernel);
    put_str(o, "workload", v->workload);
    put(o, "platform", platform);
}

static void put_evidence(json_t *o, const kl_verdict *v) {
    json_t *checks = json_array(), *features = json_object(), *resources = json_array(), *degradations = json_array();
    for (int i = 0; i < v->n_checks; i++) json_array_append_new(checks, check_json(&v->checks[i]));
    for (int i = 0; i < v->n_features; i++) put_real(features, v->features[i].name.ptr, v->features[i].value);
    for (int i = 0; i < v->n_resources; i++) json_array_append_new(resources, resource_json(&v->resources[i]));
    for (int i = 0; i < v->n_degradations; i++) json_array_append_new(degradations, kl_json_str(v->degradations[i]));
    put_seed(o, "seed", v->seed);
    put(o, "checks", checks);
    put(o, "time", time_json(v));
    put(o, "features", features);
    put(o, "resources", resources);
    put(o, "degradations", degradations);
    put_str(o, "artefact", v->artefact_hash);
}

static json_t *without_receipt(const kl_verdict *v) {
    json_t *o = json_object(), *stages = json_object();
    const char assurance[2] = {v->assurance ? v->assurance : 'C', 0};
    put(o, "schema", json_string("klineage/verdict"));
    put_int(o, "version", 1);
    put(o, "outcome", json_string(kl_outcome_name(v->outcome)));
    put(o, "stage", json_string(kl_stage_name(v->stage)));
    put_str(o, "why", v->why);
    put_str(o, "detail", v->detail);
    put(o, "assurance", json_string(assurance));
    put_identity(o, v);
    put_evidence(o, v);
    for (int i = 0; i < v->n_stages; i++) put_int(stages, v->stages[i].name.ptr, v->stages[i].ns);
    put(o, "stages_ns", stages);
    put_int(o, "overhead_ns", v->overhead_ns);
    put_int(o, "total_ns", v->total_ns);
    put_str(o, "created", v->created);
    return o;
}

/* The receipt covers what was found, not whether it was read back from a journal. */
json_t *kl_verdict_json(const kl_verdict *v) {
    json_t *o = without_receipt(v);
    kl_arena *a = kl_arena_new();
    const kl_hash receipt = kl_hash_of(kl_json_dump(a, o, false));
    kl_arena_free(a);
    put(o, "receipt", json_string(v->journaled && v->receipt[0] ? v->receipt : receipt.hex));
    put_bool(o, "journaled", v->journaled);
    return o;
}

/* ---- from JSON ----------------------------------------------------------------------------------------------------- */

static int index_of(const char *const *names, size_t n, kl_str s) {
    for (size_t i = 0; i < n; i++)
        if (kl_str_eq(kl_str_of(names[i]), s)) return (int)i;
    return -1;
}

static kl_str text(kl_arena *a, const json_t *o, const char *key) {
    return kl_arena_copy(a, kl_json_text_or(o, key, (kl_str){0}));
}

static uint64_t seed_of(const json_t *o, const char *key) {
    const kl_str s = kl_json_text_or(o, key, KL_S("0"));
    uint64_t v = 0;
    for (size_t i = 0; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++) v = v * 10 + (uint64_t)(s.ptr[i] - '0');
    return v;
}

static void parse_identity(kl_verdict *v, kl_arena *a, const json_t *o) {
    const json_t *task = json_object_get(o, "task"), *kernel = json_object_get(o, "kernel"),
                 *platform = json_object_get(o, "platform");
    v->task = text(a, task, "name");
    v->task_hash = text(a, task, "hash");
    v->kernel_path = text(a, kernel, "path");
    v->kernel_hash = text(a, kernel, "hash");
    v->surface = text(a, kernel, "surface");
    v->platform = text(a, platform, "name");
    v->device = text(a, platform, "device");
    v->toolchain = text(a, platform, "toolchain");
    v->driver = text(a, platform, "driver");
    v->isolation = text(a, platform, "isolation");
    v->workload = text(a, o, "workload");
}

static void parse_checks(kl_verdict *v, kl_arena *a, const json_t *checks) {
    v->n_checks = (int)json_array_size(checks);
    v->checks = KL_ARRAY(a, kl_check_result, v->n_checks + 1);
    for (int i = 0; i < v->n_checks; i++) {
        const json_t *o = json_array_get(checks, (size_t)i);
        kl_check_result *r = &v->checks[i];
        *r = (kl_check_result){.workload = text(a, o, "workload"),
                               .output = text(a, o, "output"),
                               .seed = seed_of(o, "seed"),
                               .scale = kl_json_real_or(o, "scale", 1),
                               .ok = kl_json_bool_or(o, "ok", false),
                               .rms_error = kl_json_real_or(o, "rms_error", INFINITY),
                               .budget = kl_json_real_or(o, "budget", 0),
                               .max_abs_error = kl_json_real_or(o, "max_abs_error", INFINITY),
                               .bad = kl_json_int_or(o, "bad", 0),
                               .first_bad = kl_json_int_or(o, "first_bad", -1),
                               .got = kl_json_real_or(o, "got", 0),
                               .expected = kl_json_real_or(o, "expected", 0)};
    }
}

static kl_comparison parse_comparison(kl_arena *a, const json_t *o) {
    const int call = index_of(CALLS, KL_COUNT(CALLS), kl_json_text_or(o, "call", (kl_str){0}));
    return (kl_comparison){.baseline = text(a, o, "baseline"),
                           .described = text(a, o, "described"),
                           .baseline_ns = kl_json_real_or(o, "baseline_ns", 0),
                           .candidate_ns = kl_json_real_or(o, "candidate_ns", 0),
                           .ratio = kl_json_real_or(o, "ratio", 0),
                           .low = kl_json_real_or(o, "low", 0),
                           .high = kl_json_real_or(o, "high", 0),
                           .floor = kl_json_real_or(o, "floor", 0),
                           .aa_low = kl_json_real_or(o, "aa_low", 0),
                           .aa_high = kl_json_real_or(o, "aa_high", 0),
                           .pairs = (int)kl_json_int_or(o, "pairs", 0),
                           .controls = (int)kl_json_int_or(o, "controls", 0),
                           .left_out = (int)kl_json_int_or(o, "left_out", 0),
                           .handshake = kl_json_real_or(o, "handshake", 0),
                           .call = call < 0 ? KL_UNDECIDED : (kl_call)call,
                           .stable = kl_json_bool_or(o, "stable", false),
                           .bimodal = kl_json_bool_or(o, "bimodal", false)};
}

static void parse_time(kl_verdict *v, kl_arena *a, const json_t *o) {
    v->median_ns = kl_json_int_or(o, "median_ns", 0);
    v->floor_ns = kl_json_int_or(o, "floor_ns", 0);
    v->method = text(a, o, "method");
    v->cache_cold = kl_str_eq(kl_json_text_or(o, "cache", (kl_str){0}), KL_S("cold"));
    v->n_sets = (int)kl_json_int_or(o, "n_sets", 0);
    v->n_slots = (int)kl_json_int_or(o, "n_slots", 0);
    v->calls = (int)kl_json_int_or(o, "calls", 0);
    const json_t *versus = json_object_get(o, "vs");
    for (size_t i = 0; i < json_array_size(versus) && i < KL_COUNT(v->comparisons); i++)
        v->comparisons[v->n_comparisons++] = parse_comparison(a, json_array_get(versus, i));
}

static void parse_numbers(kl_verdict *v, kl_arena *a, json_t *o) {
    const char *key;
    json_t *value, *features = json_object_get(o, "features"), *stages = json_object_get(o, "stages_ns");
    v->features = KL_ARRAY(a, kl_feature, json_object_size(features) + 1);
    json_object_foreach(features, key, value) v->features[v->n_features++] =
        (kl_feature){kl_arena_copy(a, kl_str_of(key)), kl_json_real_or(features, key, 0)};
    json_object_foreach(stages, key, value) {
        if (v->n_stages == (int)KL_COUNT(v->stages)) break;
        v->stages[v->n_stages].name = kl_arena_copy(a, kl_str_of(key));
        v->stages[v->n_stages++].ns = json_integer_value(value);
    }
}

static void parse_lists(kl_verdict *v, kl_arena *a, const json_t *o) {
    const json_t *resources = json_object_get(o, "resources"), *degradations = json_object_get(o, "degradations");
    for (size_t i = 0; i < json_array_size(resources) && i < KL_COUNT(v->resources); i++) {
        const json_t *r = json_array_get(resources, i);
        v->resources[v->n_resources++] = (kl_resources){.registers = (uint32_t)kl_json_int_or(r, "registers", 0),
                                                        .static_smem = (uint32_t)kl_json_int_or(r, "static_smem", 0),
                                                        .local_bytes = (uint32_t)kl_json_int_or(r, "local_bytes", 0),
                                                        .max_threads = (uint32_t)kl_json_int_or(r, "max_threads", 0)};
    }
    for (size_t i = 0; i < json_array_size(degradations) && i < KL_COUNT(v->degradations); i++)
        v->degradations[v->n_degradations++] =
            kl_arena_copy(a, kl_str_of(json_string_value(json_array_get(degradations, i))));
}

kl_err kl_verdict_parse(kl_verdict *out, kl_arena *a, kl_str json, kl_str name, kl_error *e) {
    json_t *o;
    kl_str outcome, stage;
    kl_err err = kl_json_parse(&o, json, name, e);
    if (err) return err;
    *out = (kl_verdict){0};
    err = kl_json_text(&outcome, o, "outcome", name, e);
    if (!err) err = kl_json_text(&stage, o, "stage", name, e);
    const int oi = err ? -1 : index_of(OUTCOMES, KL_COUNT(OUTCOMES), outcome),
              si = err ? -1 : index_of(STAGES, KL_COUNT(STAGES), stage);
    if (!err && (oi < 0 || si < 0 || kl_json_int_or(o, "version", 0) != 1))
        err = kl_fail(e, KL_EPARSE, name.ptr, "not a verdict of version 1");
    if (!err && (json_array_size(json_object_get(o, "checks")) > MAX_CHECKS ||
                 json_object_size(json_object_get(o, "features")) > MAX_FEATURES))
        err = kl_fail(e, KL_EPARSE, name.ptr, "more checks or features than any gate writes");
    if (!err) {
        const kl_str assurance = kl_json_text_or(o, "assurance", KL_S("C"));
        *out = (kl_verdict){.outcome = (kl_outcome)oi,
                            .stage = (kl_stage)si,
                            .why = text(a, o, "why"),
                            .detail = text(a, o, "detail"),
                            .assurance = assurance.len == 1 && assurance.ptr[0] >= 'A' && assurance.ptr[0] < 'C'
                                             ? assurance.ptr[0]
                                             : 'C',
                            .seed = seed_of(o, "seed"),
                            .artefact_hash = text(a, o, "artefact"),
                            .overhead_ns = kl_json_int_or(o, "overhead_ns", 0),
                            .total_ns = kl_json_int_or(o, "total_ns", 0),
                            .created = text(a, o, "created"),
                            .journaled = true};
        snprintf(out->receipt, sizeof out->receipt, "%s", text(a, o, "receipt").ptr);
        parse_identity(out, a, o);
        parse_checks(out, a, json_object_get(o, "checks"));
        parse_time(out, a, json_object_get(o, "time"));
        parse_numbers(out, a, o);
        parse_lists(out, a, o);
    }
    json_decref(o);
    return err;
}

/* ---- for people ------------------------------------------------------------------------------------------------------ */

/* Text that a source or another host may have had a hand in: control characters must not reach a terminal. */
static void add_plain(kl_buf *b, kl_str s) {
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        const bool plain = (unsigned char)c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t';
        kl_buf_add(b, (kl_str){plain ? &c : " ", 1});
    }
}

static const char *paint(bool colour, const char *code) { return colour ? code : ""; }

static void duration(kl_buf *b, double ns) {
    if (ns < 1e3)
        kl_buf_printf(b, "%.0f ns", ns);
    else if (ns < 1e6)
        kl_buf_printf(b, "%.3g us", ns * 1e-3);
    else if (ns < 1e9)
        kl_buf_printf(b, "%.4g ms", ns * 1e-6);
    else
        kl_buf_printf(b, "%.4g s", ns * 1e-9);
}

static void render_comparison(kl_buf *b, const kl_comparison *m) {
    kl_buf_printf(b, "  vs %.*s ", KL_STR_ARG(m->baseline));
    duration(b, m->baseline_ns);
    kl_buf_printf(b, ": %.4gx [%.4g, %.4g] %s", m->ratio, m->low, m->high, kl_call_name(m->call));
    kl_buf_printf(b, "  (%d pairs", m->pairs);
    if (m->left_out) kl_buf_printf(b, ", %d left out", m->left_out);
    if (m->controls || m->floor > 0) kl_buf_printf(b, ", A/A noise %.2f %%", 100 * m->floor);
    kl_buf_printf(b, "%s)\n", m->stable ? "" : ", not stable");
}

/* What to type after a measurement that told too little. */
static void render_next(kl_buf *b, const kl_verdict *v) {
    const bool busy = !v->n_comparisons || kl_comparison_busy(&v->comparisons[0]);
    if (v->outcome != KL_UNSTABLE) return;
    kl_buf_printf(
        b, "  next: klineage gate %.*s %.*s%s%.*s%s%s\n", KL_STR_ARG(v->task), KL_STR_ARG(v->kernel_path),
        v->workload.len ? " --workload " : "", KL_STR_ARG(v->workload), busy ? " --wait-quiet" : " --check-only",
        busy ? "   once less else runs here" : "   it may be correct; its time depends on its data or its pages");
}

static double used(const kl_check_result *r) {
    return r->budget > 0 ? r->rms_error / r->budget : r->rms_error > 0 ? INFINITY : 0;
}

static void render_worst(kl_buf *b, const kl_verdict *v) {
    const kl_check_result *worst = NULL;
    int ok = 0;
    for (int i = 0; i < v->n_checks; i++) {
        ok += v->checks[i].ok;
        if (!worst || used(&v->checks[i]) > used(worst)) worst = &v->checks[i];
    }
    if (worst)
        kl_buf_printf(b, "  checks %d of %d passed; tightest: relative RMS error %.2g of %.2g allowed (%.*s, %.*s)\n",
                      ok, v->n_checks, worst->rms_error, worst->budget, KL_STR_ARG(worst->workload),
                      KL_STR_ARG(worst->output));
}

void kl_verdict_render(const kl_verdict *v, kl_buf *out, bool colour) {
    kl_buf text = {0};
    kl_buf_printf(out, "%s%s%s", paint(colour, v->outcome == KL_PASS ? "\033[1;32m" : "\033[1;31m"),
                  kl_outcome_name(v->outcome), paint(colour, "\033[0m"));
    kl_buf_printf(&text, "  %.*s  %.*s%s%.*s", KL_STR_ARG(v->kernel_path), KL_STR_ARG(v->task),
                  v->workload.len ? "  " : "", KL_STR_ARG(v->workload));
    if (v->platform.len) kl_buf_printf(&text, "  assurance %c", v->assurance ? v->assurance : 'C');
    kl_buf_printf(&text, "%s\n", v->journaled ? "  (journaled)" : "");
    if (v->why.len) kl_buf_printf(&text, "  %s: %.*s\n", kl_stage_name(v->stage), KL_STR_ARG(v->why));
    if (v->detail.len)
        kl_buf_printf(&text, "%.*s%s", KL_STR_ARG(v->detail), kl_str_ends(v->detail, KL_S("\n")) ? "" : "\n");
    render_worst(&text, v);
    if (v->median_ns) {
        kl_buf_printf(&text, "  time ");
        duration(&text, (double)v->median_ns);
        kl_buf_printf(&text, "  (%.*s; cache %s)\n", KL_STR_ARG(v->method), v->cache_cold ? "cold" : "warm");
    }
    for (int i = 0; i < v->n_comparisons; i++) render_comparison(&text, &v->comparisons[i]);
    for (int i = 0; i < v->n_degradations; i++)
        kl_buf_printf(&text, "  degraded: %.*s\n", KL_STR_ARG(v->degradations[i]));
    render_next(&text, v);
    if (v->platform.len) /* without one nothing ever ran */
        kl_buf_printf(&text, "  on %.*s (%.*s), %.2f s in all, %.0f ms beyond compile and runs\n",
                      KL_STR_ARG(v->device), KL_STR_ARG(v->platform), (double)v->total_ns * 1e-9,
                      (double)v->overhead_ns * 1e-6);
    add_plain(out, kl_buf_str(&text));
    kl_buf_fini(&text);
}

void kl_verdict_refused(kl_verdict *out, kl_arena *a, const kl_task *t, const char *path, const kl_error *why) {
    kl_buf b = {0};
    *out = (kl_verdict){.outcome = KL_REFUSED,
                        .stage = KL_STAGE_PARSE,
                        .assurance = 'C',
                        .kernel_path = kl_arena_copy(a, kl_str_of(path))};
    if (t) {
        out->task = kl_arena_copy(a, t->name);
        out->task_hash = kl_arena_copy(a, kl_str_of(t->hash));
    }
    kl_error_render(why, &b);
    out->why = kl_arena_copy(a, kl_str_of(why->message));
    out->detail = kl_arena_copy(a, kl_buf_str(&b));
    kl_buf_fini(&b);
}
