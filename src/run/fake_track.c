/* fake_track.c - see fake_track.h.  Tests of this folder and of later ones link it, and nothing
 * else does. SPDX-License-Identifier: Apache-2.0 */
#include "fake_track.h"
#include "base/hash.h"
#include "base/rng.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASELINE_NS 1000.0

void fake_track_close(fake_track *t) {
    for (size_t i = 0; i < KL_COUNT(t->said); i++) kl_buf_fini(&t->said[i]);
    kl_buf_fini(&t->slots);
}

static fake_reply *add(fake_track *t) {
    KL_ASSERT(t->n_replies < (int)KL_COUNT(t->replies));
    return &t->replies[t->n_replies++];
}

void fake_says(fake_track *t, kl_str text) { add(t)->text = kl_arena_copy(t->base.arena, text); }
void fake_fails(fake_track *t, kl_err err) { add(t)->err = err; }

void fake_answers(fake_track *t, fake_answer *answer, void *ctx) {
    t->answer = answer;
    t->answer_ctx = ctx;
}

static bool fails(const fake_track *t, int n, int from) {
    return from >= 0 && n >= from && t->fails;
}

static fake_track *fake_of(kl_track *t) { return (fake_track *)t; } /* base comes first */

static const char *fake_model(const kl_track *t) { return ((const fake_track *)t)->model; }
static uint64_t fake_seed(const kl_track *t, const char *name) {
    return (void)t, kli_stream_of(1, name).key;
}
static void fake_say(kl_track *t, const char *text) { (void)t, (void)text; }

/* Tests write the recording as a list of slots; what was asked last is counted as src/run counts
 * it. */
static const char *fake_recorded_next(kl_track *base, const char *slot) {
    const fake_track *t = fake_of(base);
    const char *asked = slot ? slot : t->slot;
    if (!t->recorded[0] || !asked[0]) return NULL;
    for (int i = 0; t->recorded[i]; i++)
        if (strcmp(t->recorded[i], asked) == 0) return t->recorded[i + 1] ? t->recorded[i + 1] : "";
    return NULL;
}

/* The slot of a call, and one more of its kind. */
static void note_slot(fake_track *t, const kl_request *q) {
    char base[32];
    int n = 0;
    snprintf(base, sizeof base, "%.15s %.8s/", q->purpose, q->place ? q->place : "");
    for (const char *at = t->slots.ptr; at && (at = strstr(at, base)); at++) n++;
    kl_buf_printf(&t->slots, "%s ", base);
    snprintf(t->slot, sizeof t->slot, "%s%d", base, n);
}

static void listen(fake_track *t, const kl_request *q) {
    const int which = strcmp(q->purpose, "rederive") == 0;
    t->said[which].len = 0;
    t->turns[which] = q->n;
    for (int i = 0; i < q->n; i++) {
        const kl_role wanted = i == 0 ? KL_ROLE_SYSTEM : i % 2 ? KL_ROLE_USER : KL_ROLE_ASSISTANT;
        KL_ASSERT(q->messages[i].role == wanted &&
                  (q->messages[i].text.len > 0 || wanted == KL_ROLE_ASSISTANT));
        kl_buf_add(&t->said[which], q->messages[i].text);
        kl_buf_add(&t->said[which], KL_S("\n"));
    }
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, kl_str_of(t->heard));
    kli_hasher_add(&h, kl_str_of(q->purpose));
    kli_hasher_add(&h, kl_buf_str(&t->said[which]));
    memcpy(t->heard, kli_hasher_end(&h).hex, sizeof t->heard);
}

/* From the list or the function; the list ends as a recording does. */
static kl_err next_reply(fake_reply *out, fake_track *t, const kl_request *q, kl_error *e) {
    *out = (fake_reply){0};
    if (!t->answer && t->next == t->n_replies)
        return kl_fail(e, KL_ENOENT, "fake",
                       "the recording has no answer for this: the recording ended");
    if (fails(t, t->next, t->ask_fails)) return kl_fail(e, t->fails, "fake", "as told");
    if (t->answer)
        t->answer(out, &t->base, q, t->next, t->answer_ctx);
    else
        *out = t->replies[t->next];
    t->next++;
    return out->err ? kl_fail(e, out->err, "fake", "as told") : KL_OK;
}

static kl_err fake_ask(kl_reply *out, kl_track *base, kl_arena *a, const kl_request *q,
                       kl_error *e) {
    fake_track *t = fake_of(base);
    KL_ASSERT((q->subject || strcmp(q->purpose, "lift") == 0) &&
              q->messages[q->n - 1].role == KL_ROLE_USER);
    fake_reply r;
    listen(t, q);
    const kl_err err = next_reply(&r, t, q, e);
    if (err) return err;
    note_slot(t, q);
    base->spent_microusd += 1000;
    *out = (kl_reply){.text = kl_arena_copy(a, r.text),
                      .stop = r.stop,
                      .model = kl_str_of(t->model),
                      .billed_microusd = -1};
    return KL_OK;
}

/* ---- the gate ---------------------------------------------------------------------------- */

/* The word after `name` in the source. */
static kl_str word_after(kl_str source, const char *name, const char *otherwise) {
    const char *at = memmem(source.ptr, source.len, name, strlen(name));
    if (!at) return kl_str_of(otherwise);
    at += strlen(name);
    size_t n = 0;
    while (at + n < source.ptr + source.len && !isspace((unsigned char)at[n])) n++;
    return (kl_str){at, n};
}

static double ns_of(const kl_kernel *k) {
    return strtod(word_after(k->source, "// ns ", "300").ptr, NULL);
}

static kl_outcome outcome_of(const kl_kernel *k) {
    const kl_str word = word_after(k->source, "// outcome ", "pass");
    for (int o = KL_OUTCOME_PASS; o <= KL_OUTCOME_REFUSED; o++)
        if (kl_str_eq(word, kl_str_of(kl_outcome_name((kl_outcome)o)))) return (kl_outcome)o;
    return KL_OUTCOME_PASS;
}

static void key_of(char key[65], const char *kernel, const char *against) {
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, kl_str_of(kernel));
    kli_hasher_add(&h, kl_str_of(against));
    memcpy(key, kli_hasher_end(&h).hex, 65);
}

static void sign(kl_verdict *v, fake_track *t, const char *kernel, const char *against) {
    key_of(t->base.verdict_key, kernel, against);
    t->came_true += strcmp(t->base.verdict_key, t->ahead) == 0;
    memcpy(v->receipt, kli_hash_of(kl_str_of(t->base.verdict_key)).hex, sizeof v->receipt);
}

static void fill(kl_verdict *v, fake_track *t, const kl_task *task) {
    *v = (kl_verdict){.task = task->name,
                      .task_hash = kl_str_of(task->hash),
                      .platform = kl_str_of(t->judged++ < t->moves_at ? "fake" : "elsewhere"),
                      .toolchain = KL_S("none"),
                      .created = KL_S("2026-01-31T12:00:00Z"),
                      .why = KL_S("as the source says")};
}

static void fake_foresee(kl_track *base, const kl_gate_job *j) {
    fake_track *t = fake_of(base);
    t->prefetched++;
    key_of(t->ahead, j->kernel->hash, j->opts.against ? j->opts.against->hash : "");
}

static kl_err fake_judge(kl_verdict *out, kl_track *base, kl_arena *a, const kl_gate_job *j,
                         kl_error *e) {
    fake_track *t = fake_of(base);
    const kl_gate_opts *o = &j->opts;
    const kl_kernel *k = j->kernel;
    (void)a;
    KL_ASSERT(o->workload);
    if (fails(t, t->judged, t->judge_fails)) return kl_fail(e, t->fails, "fake", "as told");
    fill(out, t, j->task);
    sign(out, t, k->hash, o->against ? o->against->hash : "");
    out->outcome = outcome_of(k);
    const double wide = o->against ? strtod(word_after(k->source, "// wide ", "0").ptr, NULL) : 0;
    if (wide > 0 && out->outcome == KL_OUTCOME_PASS) out->outcome = KL_OUTCOME_UNSTABLE;
    if (out->outcome != KL_OUTCOME_PASS && out->outcome != KL_OUTCOME_UNSTABLE) return KL_OK;
    const double ratio = (o->against ? ns_of(o->against) : BASELINE_NS) / ns_of(k);
    const double own = strtod(word_after(k->source, "// spread ", "0.002").ptr, NULL);
    const double spread = wide > 0 ? wide : o->against ? 0.002 : own;
    out->comparisons[0] =
        (kl_comparison){.baseline = word_after(k->source, "// baseline ", "blas"),
                        .ratio = ratio,
                        .low = ratio * (1 - spread),
                        .high = ratio * (1 + spread),
                        .noise = strtod(word_after(k->source, "// floor ", "0.001").ptr, NULL),
                        .stable = out->outcome == KL_OUTCOME_PASS};
    kl_comparison *c = &out->comparisons[0];
    c->call = kl_decide(c->low, c->high, c->noise, c->stable);
    out->n_comparisons = 1;
    out->median_ns = (int64_t)ns_of(k);
    return KL_OK;
}

static kl_err fake_refuse(kl_verdict *out, kl_track *base, kl_arena *a, const kl_task *task,
                          kl_str source, kl_str path, const kl_error *why, kl_error *e) {
    fake_track *t = fake_of(base);
    (void)path;
    if (fails(t, t->judged, t->judge_fails)) return kl_fail(e, t->fails, "fake", "as told");
    fill(out, t, task);
    sign(out, t, "refused", kli_hash_of(source).hex);
    out->outcome = KL_OUTCOME_REFUSED;
    out->why = kl_arena_copy(a, kl_str_of(why->message));
    return KL_OK;
}

static void keep(fake_track *t, const kl_step *s) {
    if (t->steps == t->cap_rows) {
        t->cap_rows = t->cap_rows ? 2 * t->cap_rows : 64;
        fake_step *more = KL_ARRAY(t->base.arena, fake_step, t->cap_rows);
        if (t->steps) memcpy(more, t->rows, sizeof *more * (size_t)t->steps);
        t->rows = more;
    }
    fake_step *row = &t->rows[t->steps];
    *row = (fake_step){.ratio = s->ratio, .best = s->best};
    snprintf(row->outcome, sizeof row->outcome, "%.*s", KL_STR_ARG(s->outcome));
    snprintf(row->action, sizeof row->action, "%.*s", KL_STR_ARG(s->action));
    snprintf(row->locus, sizeof row->locus, "%.*s", KL_STR_ARG(s->locus));
    snprintf(row->kernel, sizeof row->kernel, "%.*s", KL_STR_ARG(s->kernel));
    snprintf(row->verdict_key, sizeof row->verdict_key, "%.*s", KL_STR_ARG(s->verdict));
}

static kl_err fake_step_keep(kl_track *base, const kl_step *s, kl_str kernel_source, kl_error *e) {
    fake_track *t = fake_of(base);
    (void)kernel_source, (void)e;
    const int letter = s->accepted ? toupper((unsigned char)*s->phase.ptr) : *s->phase.ptr;
    keep(t, s);
    t->phases = kl_arena_printf(t->base.arena, "%.*s%c", KL_STR_ARG(t->phases), letter);
    t->steps++;
    t->accepted += s->accepted;
    return KL_OK;
}

static const kli_run_effects fake_effects = {
    .name = "fake",
    .ask = fake_ask,
    .judge = fake_judge,
    .refuse = fake_refuse,
    .prefetch = fake_foresee,
    .step = fake_step_keep,
    .seed = fake_seed,
    .say = fake_say,
    .model = fake_model,
    .recorded_next = fake_recorded_next,
};

void fake_track_open(fake_track *t, kl_arena *a) {
    *t = (fake_track){.model = "fake", .moves_at = 1 << 30, .ask_fails = -1, .judge_fails = -1};
    t->base = (kl_track){.effects = &fake_effects, .arena = a, .gate = &t->opts, .phase = ""};
}
