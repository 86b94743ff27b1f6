/* question.c - a batch as a client sends it, as the journal keeps it and as a judge reads it.
 *
 *   body -> batch of questions -> the key of each: sha256 over tenant, task's version, surface,
 *           shape, baseline, source, opponent, what may be left out, assurance that is required
 *
 * What the tenant's name is doing there: two tenants that ask the same have two questions, so
 * neither can tell from an id or from a quick answer what the other one asked.  A batch's id is
 * over its questions and the client's names for them: sent again, it is the same batch.
 * Not here: a kernel's own text, which the gate parses and of which it gives a verdict.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"
#include "base/hash.h"
#include "base/json.h"
#include "kernel/kernel.h"
#include <stdlib.h>
#include <string.h>

/* ---- one question ----------------------------------------------------------------------- */

typedef struct {
    const char *key;
    size_t offset; /* of a kl_str */
    size_t most;   /* bytes */
} text_field;

#define TEXT(key, most)                                                                            \
    { #key, offsetof(kli_question, key), most }
static const text_field TEXTS[] = {
    TEXT(id, KLI_REWARD_NAME),          TEXT(task, KLI_REWARD_NAME),
    TEXT(surface, KLI_REWARD_NAME),     TEXT(workload, KLI_REWARD_NAME),
    TEXT(baseline, KLI_REWARD_NAME),    TEXT(kernel, KL_MAX_SOURCE_BYTES),
    TEXT(against, KL_MAX_SOURCE_BYTES),
};
#undef TEXT

static kl_str *question_text(kli_question *q, const text_field *f) {
    return (kl_str *)(void *)((char *)q + f->offset);
}

static kl_err read_text(kli_question *q, const text_field *f, const json_t *value, kl_error *e) {
    const char *text = json_string_value(value);
    if (!text) return kl_fail(e, KL_EPARSE, "request", "\"%s\" is a text", f->key);
    if (json_string_length(value) > f->most)
        return kl_fail(e, KL_ELIMIT, "request", "\"%s\" has %zu bytes; the limit is %zu", f->key,
                       json_string_length(value), f->most);
    *question_text(q, f) = (kl_str){text, json_string_length(value)};
    return KL_OK;
}

static kl_err read_flag(bool *out, const char *key, const json_t *value, kl_error *e) {
    *out = json_is_true(value);
    return json_is_boolean(value)
               ? KL_OK
               : kl_fail(e, KL_EPARSE, "request", "\"%s\" is true or false", key);
}

static kl_err read_member(kli_question *q, const char *key, const json_t *value, kl_error *e) {
    for (size_t i = 0; i < KL_COUNT(TEXTS); i++)
        if (strcmp(TEXTS[i].key, key) == 0) return read_text(q, &TEXTS[i], value, e);
    if (strcmp(key, "check_only") == 0) return read_flag(&q->check_only, key, value, e);
    if (strcmp(key, "quick") == 0) return read_flag(&q->quick, key, value, e);
    return kl_fail(e, KL_EPARSE, "request", "a kernel has no \"%.80s\"", key);
}

kl_err kli_question_read(kli_question *out, const json_t *o, kl_error *e) {
    const char *key;
    json_t *value;
    kl_err err = KL_OK;
    *out = (kli_question){.surface = KL_S("c")};
    if (!json_is_object(o))
        return kl_fail(e, KL_EPARSE, "request", "a kernel of the batch is an object");
    json_object_foreach((json_t *)(uintptr_t)o, key, value) {
        if ((err = read_member(out, key, value, e))) return err;
    }
    if (!out->id.len) return kl_fail(e, KL_EPARSE, "request", "a kernel has no \"id\"");
    if (!out->task.len)
        return kl_fail(e, KL_EPARSE, "request", "kernel '%.*s' has no \"task\"",
                       KL_STR_ARG(out->id));
    return KL_OK;
}

json_t *kli_question_json(const kli_question *q) {
    json_t *o = json_object();
    for (size_t i = 0; i < KL_COUNT(TEXTS); i++) {
        const kl_str *text = question_text((kli_question *)(uintptr_t)q, &TEXTS[i]);
        if (text->ptr) json_object_set_new(o, TEXTS[i].key, kli_json_str(*text));
    }
    if (q->check_only) json_object_set_new(o, "check_only", json_true());
    if (q->quick) json_object_set_new(o, "quick", json_true());
    return o;
}

kl_str kli_question_line(kl_arena *a, const kli_question *q, kl_str tenant) {
    json_t *o =
        json_pack("{ss so so ss so}", "key", q->key, "tenant", kli_json_str(tenant), "path",
                  kli_json_str(q->path), "version", q->version, "question", kli_question_json(q));
    const kl_str text = kli_json_dump(a, o, false);
    json_decref(o);
    return kl_arena_printf(a, "%.*s\n", KL_STR_ARG(text));
}

/* ---- what can be asked ------------------------------------------------------------------ */

static void question_key(kli_question *q, const kli_tenant *tenant, const kl_task *t) {
    const char assurance[2] = {tenant->require_assurance, 0};
    const kl_str parts[] = {KL_S("klineage/reward/1"),
                            tenant->name,
                            kl_str_of(t->hash),
                            q->surface,
                            q->workload,
                            q->baseline,
                            q->kernel,
                            q->against,
                            q->check_only ? KL_S("check") : KL_S("time"),
                            q->quick ? KL_S("quick") : KL_S("full"),
                            kl_str_of(assurance)};
    memcpy(q->key, kli_hash_parts(parts, KL_COUNT(parts)).hex, sizeof q->key);
    memcpy(q->version, t->hash, sizeof q->version);
}

static bool names_shape(const kl_task *t, const kli_question *q, kl_host_kind on) {
    return !q->workload.len || memchr(q->workload.ptr, '=', q->workload.len) ||
           kl_task_workload(t, q->workload, on);
}

static bool names_baseline(const kl_task *t, kl_str name) {
    for (int i = 0; i < t->n_baselines; i++)
        if (kl_str_eq(t->baselines[i].name, name)) return true;
    return !name.len || kl_str_eq(name, KL_S("none"));
}

/* What a judge would say after it was asked is said here, before anything is queued. */
static kl_err check_question(kli_question *q, kli_tenant *tenant, kl_error *e) {
    const kl_task *t;
    const kl_surface *s = kl_surface_by_name(q->surface);
    const kl_err err = kli_tenant_task(&t, &q->path, tenant, q->task, e);
    if (err) return err;
    if (!s) return kl_fail(e, KL_EINVAL, NULL, "no surface '%.*s'", KL_STR_ARG(q->surface));
    if (!q->kernel.ptr) return kl_fail(e, KL_EINVAL, NULL, "no kernel was sent");
    if (q->against.len && q->baseline.len)
        return kl_fail(e, KL_EINVAL, NULL, "either \"against\" or \"baseline\"");
    if (!names_shape(t, q, s->on))
        return kl_fail(e, KL_EINVAL, NULL, "task %.*s has no workload '%.*s' for surface %s",
                       KL_STR_ARG(t->name), KL_STR_ARG(q->workload), s->name);
    if (!names_baseline(t, q->baseline))
        return kl_fail(e, KL_EINVAL, NULL, "task %.*s has no baseline '%.*s'", KL_STR_ARG(t->name),
                       KL_STR_ARG(q->baseline));
    question_key(q, tenant, t);
    return KL_OK;
}

/* ---- a batch ---------------------------------------------------------------------------- */

static void batch_id(kli_batch *b) {
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, KL_S("klineage/reward/batch/1"));
    kli_hasher_add(&h, b->tenant->name);
    kli_hasher_add(&h, kl_str_of(b->formula->name));
    kli_hasher_add(&h, b->verdicts ? KL_S("verdicts") : KL_S(""));
    for (size_t i = 0; i < b->n; i++) {
        const kli_question *q = &b->questions[i];
        kli_hasher_add(&h, q->id);
        kli_hasher_add(&h, kl_str_of(q->fail.code ? q->fail.message : q->key));
    }
    memcpy(b->id, kli_hasher_end(&h).hex, sizeof b->id);
}

static void keep_texts(kli_question *q, kl_arena *a) {
    for (size_t i = 0; i < KL_COUNT(TEXTS); i++) {
        kl_str *text = question_text(q, &TEXTS[i]);
        if (text->ptr) *text = kl_arena_copy(a, *text); /* an empty kernel is one that is refused */
    }
}

static bool repeats_id(const kli_batch *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (kl_str_eq(b->questions[i].id, b->questions[n].id)) return true;
    return false;
}

static kl_err read_kernels(kli_batch *b, const json_t *list, kl_error *e) {
    if (!json_is_array(list) || !json_array_size(list))
        return kl_fail(e, KL_EPARSE, "request", "\"kernels\" is a list of at least one");
    if (json_array_size(list) > KLI_REWARD_BATCH)
        return kl_fail(e, KL_ELIMIT, "request", "%zu kernels; a batch has at most %d",
                       json_array_size(list), KLI_REWARD_BATCH);
    b->questions = KL_ARRAY(b->arena, kli_question, json_array_size(list));
    for (; b->n < json_array_size(list); b->n++) {
        kli_question *q = &b->questions[b->n];
        const kl_err err = kli_question_read(q, json_array_get(list, b->n), e);
        if (err) return err;
        if (repeats_id(b, b->n))
            return kl_fail(e, KL_EPARSE, "request", "two kernels have the id '%.*s'",
                           KL_STR_ARG(q->id));
        keep_texts(q, b->arena);
        b->bytes += q->kernel.len + q->against.len;
        if (!check_question(q, b->tenant, &q->fail)) b->open++;
    }
    return KL_OK;
}

static kl_err read_wait(kli_batch *b, const json_t *value, kl_error *e) {
    const double seconds = value ? json_number_value(value) : KLI_REWARD_DEFAULT_WAIT;
    if ((value && !json_is_number(value)) || !(seconds >= 0 && seconds <= KLI_REWARD_WAIT_SECONDS))
        return kl_fail(e, KL_EINVAL, "request", "\"wait_seconds\" is from 0 to %d",
                       KLI_REWARD_WAIT_SECONDS);
    b->wait_ns = (int64_t)(seconds * 1e9);
    return KL_OK;
}

static kl_err read_formula(kli_batch *b, const json_t *value, kl_error *e) {
    const char *name = value ? json_string_value(value) : "shaped";
    b->formula = name ? kli_formula_named(kl_str_of(name)) : NULL;
    if (b->formula) return KL_OK;
    kl_fail(e, KL_EINVAL, "request", "no formula '%.80s'", name ? name : "");
    return kl_hint(e, "shaped, speedup, fast or correct");
}

static kl_err batch_keys(const json_t *o, kl_error *e) {
    static const char *const KEYS[] = {"kernels", "formula", "wait_seconds", "verdicts"};
    const char *key;
    json_t *value;
    if (!json_is_object(o)) return kl_fail(e, KL_EPARSE, "request", "it is no object");
    json_object_foreach((json_t *)(uintptr_t)o, key, value) {
        size_t i = 0;
        while (i < KL_COUNT(KEYS) && strcmp(KEYS[i], key) != 0) i++;
        if (i == KL_COUNT(KEYS))
            return kl_fail(e, KL_EPARSE, "request", "a batch has no \"%.80s\"", key);
    }
    return KL_OK;
}

static kl_err read_batch(kli_batch *b, const json_t *o, kl_error *e) {
    const json_t *verdicts = json_object_get(o, "verdicts");
    kl_err err = batch_keys(o, e);
    if (!err && verdicts) err = read_flag(&b->verdicts, "verdicts", verdicts, e);
    if (!err) err = read_formula(b, json_object_get(o, "formula"), e);
    if (!err) err = read_wait(b, json_object_get(o, "wait_seconds"), e);
    if (!err) err = read_kernels(b, json_object_get(o, "kernels"), e);
    if (!err) batch_id(b);
    return err;
}

kl_err kli_batch_parse(kli_batch **out, kli_tenant *t, kl_str body, kl_error *e) {
    json_t *o = NULL;
    *out = NULL;
    kl_err err = kli_json_parse(&o, body, KL_S("request"), e);
    if (err) return err;
    kli_batch *b = calloc(1, sizeof *b);
    if (!b) kl_oom(sizeof *b);
    b->arena = kl_arena_new();
    b->tenant = t;
    err = read_batch(b, o, e);
    json_decref(o);
    if (err) return kli_batch_free(b), err;
    *out = b;
    return KL_OK;
}

void kli_batch_free(kli_batch *b) {
    if (!b) return;
    KL_ASSERT(!b->waiters);
    kl_arena_free(b->arena);
    free(b);
}

json_t *kli_batch_json(const kli_batch *b) {
    json_t *kernels = json_array();
    for (size_t i = 0; i < b->n; i++)
        json_array_append_new(kernels, kli_question_json(&b->questions[i]));
    json_t *o = json_pack("{ss so}", "formula", b->formula->name, "kernels", kernels);
    if (b->verdicts) json_object_set_new(o, "verdicts", json_true());
    return o;
}
