/* fake_track.c - see fake_track.h.  It stands in for src/run in tests of this folder and of later ones, and is linked nowhere else.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fake_track.h"
#include "base/hash.h"
#include "base/rng.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASELINE_NS 1000.0

void fake_track_open(kl_track *t, kl_arena *a) {
    *t = (kl_track){.arena = a, .model = "fake", .moves_at = 1 << 30, .ask_fails = -1, .judge_fails = -1};
}

void fake_track_close(kl_track *t) {
    for (size_t i = 0; i < KL_COUNT(t->said); i++) kl_buf_fini(&t->said[i]);
    kl_buf_fini(&t->slots);
}

static fake_reply *add(kl_track *t) {
    KL_ASSERT(t->n_replies < (int)KL_COUNT(t->replies));
    return &t->replies[t->n_replies++];
}

void fake_says(kl_track *t, kl_str text) { add(t)->text = kl_arena_copy(t->arena, text); }
void fake_fails(kl_track *t, kl_err err) { add(t)->err = err; }

void fake_answers(kl_track *t, fake_answer *answer, void *ctx) {
    t->answer = answer;
    t->answer_ctx = ctx;
}

static bool fails(const kl_track *t, int n, int from) { return from >= 0 && n >= from && t->fails; }

kl_arena *kl_track_arena(kl_track *t) { return t->arena; }
const char *kl_track_model(const kl_track *t) { return t->model; }
const char *kl_track_verdict_key(const kl_track *t) { return t->key; }
const kl_gate_opts *kl_track_gate_opts(const kl_track *t) { return &t->opts; }
int64_t kl_track_spent(const kl_track *t) { return 1000 * t->next; }
int64_t kl_track_budget(const kl_track *t) { return t->budget; }
uint64_t kl_track_seed(const kl_track *t, const char *name) { return (void)t, kl_stream_of(1, name).key; }
void kl_track_phase(kl_track *t, const char *phase) { (void)t, (void)phase; }
void kl_track_say(kl_track *t, const char *fmt, ...) { (void)t, (void)fmt; }
void kl_track_best(kl_track *t, double ratio) { (void)t, (void)ratio; }

/* Tests write the recording as a list of slots; what was asked last is counted as src/run counts it. */
const char *kl_track_recorded_next(kl_track *t, const char *slot) {
    const char *asked = slot ? slot : t->slot;
    if (!t->recorded[0] || !asked[0]) return NULL;
    for (int i = 0; t->recorded[i]; i++)
        if (strcmp(t->recorded[i], asked) == 0) return t->recorded[i + 1] ? t->recorded[i + 1] : "";
    return NULL;
}

/* The slot of a call, and one more of its kind. */
static void note_slot(kl_track *t, const kl_request *q) {
    char base[32];
    int n = 0;
    snprintf(base, sizeof base, "%.15s %.8s/", q->purpose, q->place ? q->place : "");
    for (const char *at = t->slots.ptr; at && (at = strstr(at, base)); at++) n++;
    kl_buf_printf(&t->slots, "%s ", base);
    snprintf(t->slot, sizeof t->slot, "%s%d", base, n);
}

static void listen(kl_track *t, const kl_request *q) {
    const int which = strcmp(q->purpose, "rederive") == 0;
    t->said[which].len = 0;
    t->turns[which] = q->n;
    for (int i = 0; i < q->n; i++) {
        const kl_role wanted = i == 0 ? KL_ROLE_SYSTEM : i % 2 ? KL_ROLE_USER : KL_ROLE_ASSISTANT;
        KL_ASSERT(q->messages[i].role == wanted && (q->messages[i].text.len > 0 || wanted == KL_ROLE_ASSISTANT));
        kl_buf_add(&t->said[which], q->messages[i].text);
        kl_buf_add(&t->said[which], KL_S("\n"));
    }
    kl_hasher h;
    kl_hasher_init(&h);
    kl_hasher_add(&h, kl_str_of(t->heard));
    kl_hasher_add(&h, kl_str_of(q->purpose));
    kl_hasher_add(&h, kl_buf_str(&t->said[which]));
    memcpy(t->heard, kl_hasher_end(&h).hex, sizeof t->heard);
}

/* From the list or the function; the list ends as a recording does. */
static kl_err next_reply(fake_reply *out, kl_track *t, const kl_request *q, kl_error *e) {
    *out = (fake_reply){0};
    if (!t->answer && t->next == t->n_replies)
        return kl_fail(e, KL_ENOENT, "fake", "the recording has no answer for this: the recording ended");
    if (fails(t, t->next, t->ask_fails)) return kl_fail(e, t->fails, "fake", "as told");
    if (t->answer)
        t->answer(out, t, q, t->next, t->answer_ctx);
    else
        *out = t->replies[t->next];
    t->next++;
    return out->err ? kl_fail(e, out->err, "fake", "as told") : KL_OK;
}

kl_err kl_ask(kl_reply *out, kl_track *t, kl_arena *a, const kl_request *q, kl_error *e) {
    KL_ASSERT((q->subject || strcmp(q->purpose, "lift") == 0) && q->messages[q->n - 1].role == KL_ROLE_USER);
    fake_reply r;
    listen(t, q);
    const kl_err err = next_reply(&r, t, q, e);
    if (err) return err;
    note_slot(t, q);
    *out = (kl_reply){
        .text = kl_arena_copy(a, r.text), .stop = r.stop, .model = kl_str_of(t->model), .billed_microusd = -1};
    return KL_OK;
}

/* ---- the gate ------------------------------------------------------------------------------------------------ */

/* The word after `name` in the source. */
static kl_str word_after(kl_str source, const char *name, const char *otherwise) {
    const char *at = memmem(source.ptr, source.len, name, strlen(name));
    if (!at) return kl_str_of(otherwise);
    at += strlen(name);
    size_t n = 0;
    while (at + n < source.ptr + source.len && !isspace((unsigned char)at[n])) n++;
    return (kl_str){at, n};
}

static double ns_of(const kl_kernel *k) { return strtod(word_after(k->source, "// ns ", "300").ptr, NULL); }

static kl_outcome outcome_of(const kl_kernel *k) {
    const kl_str word = word_after(k->source, "// outcome ", "pass");
    for (int o = KL_PASS; o <= KL_REFUSED; o++)
        if (kl_str_eq(word, kl_str_of(kl_outcome_name((kl_outcome)o)))) return (kl_outcome)o;
    return KL_PASS;
}

static void key_of(char key[65], const char *kernel, const char *against) {
    kl_hasher h;
    kl_hasher_init(&h);
    kl_hasher_add(&h, kl_str_of(kernel));
    kl_hasher_add(&h, kl_str_of(against));
    memcpy(key, kl_hasher_end(&h).hex, 65);
}

static void sign(kl_verdict *v, kl_track *t, const char *kernel, const char *against) {
    key_of(t->key, kernel, against);
    t->came_true += strcmp(t->key, t->ahead) == 0;
    memcpy(v->receipt, kl_hash_of(kl_str_of(t->key)).hex, sizeof v->receipt);
}

static void fill(kl_verdict *v, kl_track *t, const kl_task *task) {
    *v = (kl_verdict){.task = task->name,
                      .task_hash = kl_str_of(task->hash),
                      .platform = kl_str_of(t->judged++ < t->moves_at ? "fake" : "elsewhere"),
                      .toolchain = KL_S("none"),
                      .created = KL_S("2026-01-31T12:00:00Z"),
                      .why = KL_S("as the source says")};
}

void kl_foresee(kl_track *t, const kl_task *task, const kl_kernel *k, const kl_gate_opts *o) {
    (void)task;
    t->foreseen++;
    key_of(t->ahead, k->hash, o->against ? o->against->hash : "");
}

kl_err kl_judge(kl_verdict *out, kl_track *t, kl_arena *a, const kl_task *task, const kl_kernel *k,
                const kl_gate_opts *o, kl_error *e) {
    (void)a;
    KL_ASSERT(o && o->workload);
    if (fails(t, t->judged, t->judge_fails)) return kl_fail(e, t->fails, "fake", "as told");
    fill(out, t, task);
    sign(out, t, k->hash, o->against ? o->against->hash : "");
    out->outcome = outcome_of(k);
    const double wide = o->against ? strtod(word_after(k->source, "// wide ", "0").ptr, NULL) : 0;
    if (wide > 0 && out->outcome == KL_PASS) out->outcome = KL_UNSTABLE;
    if (out->outcome != KL_PASS && out->outcome != KL_UNSTABLE) return KL_OK;
    const double ratio = (o->against ? ns_of(o->against) : BASELINE_NS) / ns_of(k);
    const double own = strtod(word_after(k->source, "// spread ", "0.002").ptr, NULL);
    const double spread = wide > 0 ? wide : o->against ? 0.002 : own;
    out->comparisons[0] = (kl_comparison){.baseline = word_after(k->source, "// baseline ", "blas"),
                                          .ratio = ratio,
                                          .low = ratio * (1 - spread),
                                          .high = ratio * (1 + spread),
                                          .floor = strtod(word_after(k->source, "// floor ", "0.001").ptr, NULL),
                                          .stable = out->outcome == KL_PASS};
    kl_comparison *c = &out->comparisons[0];
    c->call = kl_decide(c->low, c->high, c->floor, c->stable);
    out->n_comparisons = 1;
    out->median_ns = (int64_t)ns_of(k);
    return KL_OK;
}

kl_err kl_judge_text(kl_verdict *out, kl_kernel **k, kl_track *t, kl_arena *a, const kl_task *task, kl_str source,
                     const kl_surface *s, const kl_gate_opts *o, kl_error *e) {
    kl_error why = {0};
    *k = NULL;
    if (kl_kernel_parse(k, a, source, KL_S("candidate.c"), s, NULL, &why) == KL_OK)
        return kl_judge(out, t, a, task, *k, o, e);
    *k = NULL;
    if (fails(t, t->judged, t->judge_fails)) return kl_fail(e, t->fails, "fake", "as told");
    fill(out, t, task);
    sign(out, t, "refused", kl_hash_of(source).hex);
    out->outcome = KL_REFUSED;
    out->why = kl_arena_copy(a, kl_str_of(why.message));
    return KL_OK;
}

static void keep(kl_track *t, const kl_step *s) {
    if (t->steps == t->cap_rows) {
        t->cap_rows = t->cap_rows ? 2 * t->cap_rows : 64;
        fake_step *more = KL_ARRAY(t->arena, fake_step, t->cap_rows);
        if (t->steps) memcpy(more, t->rows, sizeof *more * (size_t)t->steps);
        t->rows = more;
    }
    fake_step *row = &t->rows[t->steps];
    *row = (fake_step){.ratio = s->ratio, .best = s->best};
    snprintf(row->outcome, sizeof row->outcome, "%.*s", KL_STR_ARG(s->outcome));
    snprintf(row->action, sizeof row->action, "%.*s", KL_STR_ARG(s->action));
    snprintf(row->kernel, sizeof row->kernel, "%.*s", KL_STR_ARG(s->kernel));
    snprintf(row->verdict_key, sizeof row->verdict_key, "%.*s", KL_STR_ARG(s->verdict_key));
}

kl_err kl_track_step(kl_track *t, const kl_step *s, kl_str kernel_source, kl_error *e) {
    (void)kernel_source, (void)e;
    const int letter = s->accepted ? toupper((unsigned char)s->phase[0]) : s->phase[0];
    keep(t, s);
    t->phases = kl_arena_printf(t->arena, "%.*s%c", KL_STR_ARG(t->phases), letter);
    t->steps++;
    t->accepted += s->accepted;
    return KL_OK;
}
