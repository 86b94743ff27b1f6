/* verdict.c - the verdict as JSON, as text for a terminal, as an exit code.  Its fields are the
 * rows of gate.def; formats: docs/formats/verdict.md, docs/formats/records.md and docs/schema/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/hash.h"
#include "base/record.h"

#include <math.h>
#include <string.h>

static const char *const OUTCOME_NAMES[] = {
#define KL_DEF_OUTCOME(id, name, exit_status) [id] = name,
#include <klineage/gate.def>
};
static const int EXIT_STATUS[] = {
#define KL_DEF_OUTCOME(id, name, exit_status) [id] = exit_status,
#include <klineage/gate.def>
};
static const char *const STAGE_NAMES[] = {
#define KL_DEF_STAGE(id, name) [id] = name,
#include <klineage/gate.def>
};
static const char *const VERDICT_CALL_NAMES[] = {
#define KL_DEF_CALL(id, name) [id] = name,
#include <klineage/gate.def>
};
_Static_assert(KL_COUNT(EXIT_STATUS) == KL_COUNT(OUTCOME_NAMES), "an outcome has both");
_Static_assert(KL_COUNT(VERDICT_CALL_NAMES) == KL_DECISION_UNDECIDED + 1, "every decision has one");
static const char *const CACHE_NAMES[] = {"warm", "cold"};
static const kli_names OUTCOMES = KL_NAMES(OUTCOME_NAMES), STAGES = KL_NAMES(STAGE_NAMES),
                       CACHES = KL_NAMES(CACHE_NAMES);
static const kli_names CALLS = KL_NAMES(VERDICT_CALL_NAMES);

const char *kl_outcome_name(kl_outcome o) { return kli_name_of(&OUTCOMES, (int)o); }
const char *kl_stage_name(kl_stage s) { return kli_name_of(&STAGES, (int)s); }
const char *kl_decision_name(kl_decision c) { return kli_name_of(&CALLS, (int)c); }
int kl_verdict_exit_code(const kl_verdict *v) {
    KL_ASSERT((size_t)v->outcome < KL_COUNT(EXIT_STATUS));
    return EXIT_STATUS[v->outcome];
}

/* ---- the record -------------------------------------------------------------------------- */

static bool has_bad(const void *check) { return ((const kl_check_result *)check)->first_bad >= 0; }
static bool is_timed(const void *verdict) { return ((const kl_verdict *)verdict)->median_ns != 0; }

static json_t *assurance_json(const void *verdict) {
    const char letter = ((const kl_verdict *)verdict)->assurance;
    return json_stringn(letter ? &letter : "C", 1);
}

/* Text from elsewhere claims nothing that is not one of the letters. */
static bool read_assurance(void *verdict, kl_arena *a, const json_t *value) {
    const char *text = json_string_value(value);
    (void)a;
    ((kl_verdict *)verdict)->assurance =
        text && (!strcmp(text, "A") || !strcmp(text, "B")) ? *text : 'C';
    return true;
}

static const kli_codec ASSURANCE = {assurance_json, read_assurance,
                                    "{\"enum\": [\"A\", \"B\", \"C\"]}"};

/* A failed check that does not say how large its error was had the largest. */
static const kl_check_result CHECK_DEFAULTS = {
    .scale = 1, .rms_error = INFINITY, .max_abs_error = INFINITY, .first_bad = -1};
#define KL_RECORD kl_check_result
static const kl_record CHECK_RECORD = {KL_RECORD_HEAD("check", "One output of one checked run."),
                                       .defaults = &CHECK_DEFAULTS,
                                       KL_ROWS{
#define KL_DEF_CHECK KL_ROW
#include <klineage/gate.def>
                                           KL_ROWS_END}};
#undef KL_RECORD

static const kl_comparison COMPARISON_DEFAULTS = {.call = KL_DECISION_UNDECIDED};
#define KL_RECORD kl_comparison
static const kl_record COMPARISON_RECORD = {
    KL_RECORD_HEAD("comparison", "The candidate against one baseline, timed interleaved."),
    .defaults = &COMPARISON_DEFAULTS,
    KL_ROWS{
#define KL_DEF_COMPARISON KL_ROW
#include <klineage/gate.def>
        KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_feature
static const kl_record FEATURE_RECORD = {
    KL_RECORD_HEAD("feature", ""),
    KL_ROWS{KL_ROW(TEXT, name, "name", "") KL_ROW(REAL, value, "value", "") KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_stage_time
static const kl_record STAGE_TIME_RECORD = {
    KL_RECORD_HEAD("stage", ""),
    KL_ROWS{KL_ROW(TEXT, name, "name", "") KL_ROW(I64, ns, "ns", "") KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_resources
static const kl_record RESOURCES_RECORD = {
    KL_RECORD_HEAD("resources", "What one launch takes; zero where the device does not say."),
    KL_ROWS{
#define KL_DEF_RESOURCES KL_ROW
#include <klineage/backend.def>
        KL_ROWS_END}};
#undef KL_RECORD

static const kl_verdict VERDICT_DEFAULTS = {.outcome = (kl_outcome)-1, .stage = (kl_stage)-1};
#define KL_RECORD kl_verdict
const kl_record KL_VERDICT = {KL_RECORD_HEAD("verdict", "The result of the gate for one kernel."),
                              .defaults = &VERDICT_DEFAULTS, .document = true,
                              .rules =
                                  "{\"if\": {\"properties\": {\"outcome\": {\"const\": \"pass\"}}},"
                                  " \"then\": {\"properties\": {\"stage\": {\"const\": \"done\"}, "
                                  "\"why\": {\"const\": \"\"}}},"
                                  " \"else\": {\"properties\": {\"why\": {\"minLength\": 1}, "
                                  "\"stage\": {\"not\": {\"const\": \"done\"}}}}}",
                              KL_ROWS{
#define KL_DEF_VERDICT KL_ROW
#include <klineage/gate.def>
                                  KL_ROWS_END}};
#undef KL_RECORD

/* The receipt covers what was found, not whether it was read back from a journal. */
json_t *kl_verdict_json(const kl_verdict *v) {
    json_t *o = kli_record_json(&KL_VERDICT, v);
    if (v->journaled && v->receipt[0]) return o;
    kl_arena *a = kl_arena_new();
    json_object_del(o, "receipt");
    json_object_del(o, "journaled");
    const kl_hash receipt = kli_hash_of(kli_json_dump(a, o, false));
    kl_arena_free(a);
    json_object_set_new(o, "receipt", json_string(receipt.hex));
    json_object_set_new(o, "journaled", json_boolean(v->journaled));
    return o;
}

kl_err kl_verdict_parse(kl_verdict *out, kl_arena *a, kl_str json, kl_str name, kl_error *e) {
    json_t *o;
    *out = (kl_verdict){0};
    kl_err err = kli_json_parse(&o, json, name, e);
    if (err) return err;
    err = kli_record_read(out, &KL_VERDICT, a, o, name, e);
    if (!err && (out->outcome == VERDICT_DEFAULTS.outcome || out->stage == VERDICT_DEFAULTS.stage))
        err = kl_fail(e, KL_EPARSE, name.ptr, "a verdict without an outcome or a stage");
    if (err)
        *out = (kl_verdict){0};
    else
        out->journaled = true;
    json_decref(o);
    return err;
}

/* ---- for people -------------------------------------------------------------------------- */

/* Text that a source or another host may have had a hand in: control characters must not reach a
 * terminal. */
static void verdict_add_plain(kl_buf *b, kl_str s) {
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        const bool plain = (unsigned char)c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t';
        kl_buf_add(b, (kl_str){plain ? &c : " ", 1});
    }
}

static const char *verdict_paint(bool colour, const char *code) { return colour ? code : ""; }

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
    kl_buf_printf(b, ": %.4gx [%.4g, %.4g] %s", m->ratio, m->low, m->high,
                  kl_decision_name(m->call));
    kl_buf_printf(b, "  (%d pairs", m->pairs);
    if (m->processes > 1) kl_buf_printf(b, " in %d processes", m->processes);
    if (m->left_out) kl_buf_printf(b, ", %d left out", m->left_out);
    if (m->controls || m->noise > 0) kl_buf_printf(b, ", A/A noise %.2f %%", 100 * m->noise);
    if (m->recorded > 0) kl_buf_printf(b, " of this host's record");
    if (m->aa_spread > 0)
        kl_buf_printf(b, ", spread %.2f %%, cv %.2f %%", 100 * m->aa_spread, 100 * m->aa_cv);
    kl_buf_printf(b, "%s)\n", m->stable ? "" : ", not stable");
}

/* What to type after a measurement that told too little. */
static void render_next(kl_buf *b, const kl_verdict *v) {
    const bool busy = !v->n_comparisons || kl_comparison_busy(&v->comparisons[0]);
    if (v->outcome != KL_OUTCOME_UNSTABLE) return;
    kl_buf_printf(b, "  next: klineage gate %.*s %.*s%s%.*s%s%s\n", KL_STR_ARG(v->task),
                  KL_STR_ARG(v->kernel_path), v->workload.len ? " --workload " : "",
                  KL_STR_ARG(v->workload), busy ? " --wait-quiet" : " --check-only",
                  busy ? "   once less else runs here"
                       : "   it may be correct; its time depends on its data or its pages");
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
        kl_buf_printf(b,
                      "  checks %d of %d passed; tightest: relative RMS error %.2g of %.2g allowed "
                      "(%.*s, %.*s)\n",
                      ok, v->n_checks, worst->rms_error, worst->budget, KL_STR_ARG(worst->workload),
                      KL_STR_ARG(worst->output));
}

void kl_verdict_render(const kl_verdict *v, kl_buf *out, bool colour) {
    kl_buf text = {0};
    kl_buf_printf(
        out, "%s%s%s",
        verdict_paint(colour, v->outcome == KL_OUTCOME_PASS ? "\033[1;32m" : "\033[1;31m"),
        kl_outcome_name(v->outcome), verdict_paint(colour, "\033[0m"));
    kl_buf_printf(&text, "  %.*s  %.*s%s%.*s", KL_STR_ARG(v->kernel_path), KL_STR_ARG(v->task),
                  v->workload.len ? "  " : "", KL_STR_ARG(v->workload));
    if (v->platform.len) kl_buf_printf(&text, "  assurance %c", v->assurance ? v->assurance : 'C');
    kl_buf_printf(&text, "%s\n", v->journaled ? "  (journaled)" : "");
    if (v->why.len)
        kl_buf_printf(&text, "  %s: %.*s\n", kl_stage_name(v->stage), KL_STR_ARG(v->why));
    if (v->detail.len)
        kl_buf_printf(&text, "%.*s%s", KL_STR_ARG(v->detail),
                      kl_str_ends(v->detail, KL_S("\n")) ? "" : "\n");
    render_worst(&text, v);
    if (v->median_ns) {
        kl_buf_printf(&text, "  time ");
        duration(&text, (double)v->median_ns);
        kl_buf_printf(&text, "  (%.*s; cache %s)\n", KL_STR_ARG(v->method),
                      v->cache_cold ? "cold" : "warm");
    }
    for (int i = 0; i < v->n_comparisons; i++) render_comparison(&text, &v->comparisons[i]);
    for (int i = 0; i < v->n_degradations; i++)
        kl_buf_printf(&text, "  degraded: %.*s\n", KL_STR_ARG(v->degradations[i]));
    render_next(&text, v);
    if (v->platform.len) /* without one nothing ever ran */
        kl_buf_printf(&text, "  on %.*s (%.*s), %.2f s in all, %.0f ms beyond compile and runs\n",
                      KL_STR_ARG(v->device), KL_STR_ARG(v->platform), (double)v->total_ns * 1e-9,
                      (double)v->overhead_ns * 1e-6);
    verdict_add_plain(out, kl_buf_str(&text));
    kl_buf_fini(&text);
}

void kl_verdict_refused(kl_verdict *out, kl_arena *a, const kl_task *t, const char *path,
                        const kl_error *why) {
    kl_buf b = {0};
    *out = (kl_verdict){.outcome = KL_OUTCOME_REFUSED,
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
