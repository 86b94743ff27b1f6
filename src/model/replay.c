/* replay.c - answers out of a recording: by their place in the run, or by their question.
 *
 *   replay:FILE          scripted: the call in the same slot (track/purpose/ordinal) gets the
 * recorded answer, whatever is asked.  The gate runs live: a script shows what today's gate makes
 * of old proposals. The order of its calls tells what was decided then: next_slot.
 *   replay:exact:FILE    the call with the same key gets the recorded answer; a changed prompt has
 * none.
 *
 * A recording is JSONL, docs/formats/recording.md.  It is read once and checked as a whole: who
 * replays half a file learns it before the first gate run.  Asking costs nothing; the recorded
 * tokens are there for --priced-as. SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "model_impl.h"
#include <stdio.h>
#include <string.h>

#define REPLAY_OF "replay of " /* and the name of the model that was recorded */

#define MAX_CALLS 100000

typedef struct {
    const char *path, *name;
    kl_str model;
    bool exact, counts; /* `counts`: the provider that answered then knew a prompt's tokens */
    json_t *calls;      /* by slot or by key */
} record_ctx;

static kl_err bad_line(const record_ctx *r, size_t line, const char *what, kl_error *e) {
    char where[256];
    snprintf(where, sizeof where, "%.200s:%zu", r->path, line);
    return kl_fail(e, KL_EPARSE, where, "%s", what);
}

/* Who counts has no name of a model beside its own, and so the recorded name tells. */
static bool replay_counts(kl_str model) {
    const kl_provider *p;
    for (kl_str of; (of = kl_model_replayed(model)).len;) model = of;
    for (int i = 0; (p = kl_provider_each(i)); i++)
        if (p->counted && !p->model_name && kl_str_eq(model, kl_str_of(p->name))) return true;
    return false;
}

static kl_err take_head(record_ctx *r, kl_arena *a, const json_t *o, kl_error *e) {
    if (!kl_str_eq(kli_json_text_or(o, "schema", (kl_str){0}), KL_S("klineage/recording")))
        return bad_line(
            r, 1, "not a recording: its first line says \"schema\": \"klineage/recording\"", e);
    const int64_t version = kli_json_int_or(o, "version", 0);
    if (version != 1) {
        kl_fail(e, KL_EPARSE, r->path, "a recording of version %lld; this klineage reads version 1",
                (long long)version);
        return kl_hint(e, "write it again with this klineage: klineage run record RUN");
    }
    r->model = kli_tame(a, kli_json_text_or(o, "model", KL_S("unknown")), 100);
    r->name = kl_arena_printf(a, REPLAY_OF "%.*s", KL_STR_ARG(r->model)).ptr;
    r->counts = replay_counts(r->model);
    return KL_OK;
}

static kl_err take_call(record_ctx *r, json_t *o, size_t line, kl_error *e) {
    kl_stop stop;
    const char *field = r->exact ? "key" : "slot";
    const kl_str name = kli_json_text_or(o, field, (kl_str){0});
    if (!json_is_object(o) || !json_is_string(json_object_get(o, "text")))
        return bad_line(r, line, "a call has a \"text\"", e);
    if (!name.len)
        return bad_line(r, line, r->exact ? "a call has a \"key\"" : "a call has a \"slot\"", e);
    if (!kl_stop_parse(&stop, kli_json_text_or(o, "stop", KL_S("end"))))
        return bad_line(r, line, "\"stop\" is end, truncated or refused", e);
    if (json_string_length(json_object_get(o, "text")) > KL_MAX_REPLY_BYTES)
        return bad_line(r, line, "the text is larger than a reply may be", e);
    if (json_object_get(r->calls, name.ptr))
        return bad_line(r, line,
                        r->exact ? "this key was there before" : "this slot was there before", e);
    if (json_object_size(r->calls) >= MAX_CALLS)
        return bad_line(r, line, "too many calls for one recording", e);
    json_object_set(r->calls, name.ptr, o);
    return KL_OK;
}

static kl_err read_lines(record_ctx *r, kl_arena *a, kl_str text, kl_error *e) {
    kl_err err = KL_OK;
    size_t line = 0;
    while (!err && text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        const kl_str one = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        json_t *o = NULL;
        text = end ? (kl_str){end + 1, text.len - one.len - 1} : (kl_str){0};
        line++;
        if (!kl_str_trim(one).len) continue;
        if (kli_json_parse(&o, one, kl_arena_printf(a, "%s, line %zu", r->path, line), e))
            return KL_EPARSE;
        err = r->name ? take_call(r, o, line, e) : take_head(r, a, o, e);
        json_decref(o);
    }
    return !err && !r->name ? bad_line(r, 1, "an empty file is no recording", e) : err;
}

static void replay_close(void *self) { json_decref(((record_ctx *)self)->calls); }

static kl_err replay_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    record_ctx *r = KL_NEW(a, record_ctx);
    kl_str text;
    const bool exact = !strncmp(rest, "exact:", 6);
    *r = (record_ctx){.path = rest + (exact ? 6 : 0), .exact = exact};
    kl_err err = kli_fs_read(&text, a, r->path, KL_MAX_JSON_BYTES, e);
    if (err == KL_ENOENT) kl_hint(e, "a recording is written by: klineage run record RUN");
    if (err) return err;
    r->calls = json_object();
    err = read_lines(r, a, text, e);
    if (err) replay_close(r);
    *self = r;
    return err;
}

#define REPLAY_NOTHING "the recording has no answer for "

kl_str kl_model_replayed(kl_str name) {
    const size_t n = sizeof REPLAY_OF - 1;
    return kl_str_starts(name, KL_S(REPLAY_OF)) ? (kl_str){name.ptr + n, name.len - n}
                                                : (kl_str){0};
}

bool kl_model_recording_ended(const kl_error *e) {
    return e->code == KL_ENOENT && !strncmp(e->message, REPLAY_NOTHING, sizeof REPLAY_NOTHING - 1);
}

/* A place that is a path may have been recorded from another folder: "t/materialize
 * experts/gemm/k.c/0" answers "t/materialize gemm/k.c/0". */
static const json_t *replay_same_place(const record_ctx *r, const char *slot) {
    const char *space = strchr(slot, ' '), *recorded;
    const size_t head = space ? (size_t)(space - slot) + 1 : 0, tail = strlen(slot) - head;
    json_t *calls = r->calls, *o;
    if (!space) return NULL;
    json_object_foreach(calls, recorded, o) {
        const size_t n = strlen(recorded);
        if (n > head + tail && !strncmp(recorded, slot, head) && recorded[n - tail - 1] == '/' &&
            !strcmp(recorded + n - tail, slot + head))
            return o;
    }
    return NULL;
}

static const char *replay_wanted(const record_ctx *r, const kl_request *q) {
    return r->exact ? q->key : q->slot;
}

static const json_t *replay_find(const record_ctx *r, const kl_request *q) {
    const char *wanted = replay_wanted(r, q);
    const json_t *o = wanted ? json_object_get(r->calls, wanted) : NULL;
    return o || !wanted || r->exact ? o : replay_same_place(r, wanted);
}

static kl_usage replay_usage(const json_t *call, const kl_request *q, kl_str reply) {
    kl_usage u = kl_usage_estimate(q, reply);
    if (json_is_object(json_object_get(call, "usage")))
        kl_usage_parse(&u, json_object_get(call, "usage"));
    return u;
}

/* What was reserved then is what was counted then, whatever prompts look like today.  A call that
 * is not recorded is one that the recorded provider would count today. */
static bool replay_counted(kl_usage *out, const void *self, const kl_request *q) {
    const record_ctx *r = self;
    const json_t *call = replay_find(r, q);
    *out = call ? replay_usage(call, q, KL_S("")) : kl_usage_estimate_cached(q, KL_S(""));
    return r->counts && kl_usage_prompt(out) > 0;
}

static const char *replay_name(const void *self) { return ((const record_ctx *)self)->name; }

static kl_err replay_ask(kl_reply *out, void *self, kl_arena *a, const kl_request *q, kl_error *e) {
    const record_ctx *r = self;
    const char *wanted = replay_wanted(r, q);
    const json_t *o = replay_find(r, q);
    out->billed_microusd = 0;
    if (!o) {
        kl_fail(e, KL_ENOENT, r->path, REPLAY_NOTHING "%s %.120s (%.60s)",
                r->exact ? "the key" : "the slot", wanted ? wanted : "of a call outside of a run",
                q->slot && r->exact ? q->slot : q->purpose);
        if (r->exact)
            kl_hint(
                e, "prompts or options have changed; --model replay:%.200s matches by slot instead",
                r->path);
        else
            kl_hint(e, "it has %zu calls of %.100s; use its original options, or a live model",
                    json_object_size(r->calls), r->name + 10);
        return KL_ENOENT;
    }
    (void)kl_stop_parse(&out->stop,
                        kli_json_text_or(o, "stop", KL_S("end"))); /* checked when it was read */
    out->text = kl_arena_copy(a, kli_json_text_or(o, "text", (kl_str){0}));
    out->model = kli_tame(a, kli_json_text_or(o, "model", r->model), 128);
    out->usage = replay_usage(o, q, out->text);
    out->billed_microusd =
        -1; /* what it cost then is not what it costs now: nothing, or its tokens at --priced-as */
    return KL_OK;
}

/* jansson keeps the members of an object in the order in which they were put, which is that of the
 * file. */
static const char *replay_next_slot(const void *self, const char *track, const char *slot) {
    const record_ctx *r = self;
    void *at = r->exact ? NULL : json_object_iter_at(r->calls, slot);
    const size_t len = strlen(track);
    if (!at) return NULL;
    while ((at = json_object_iter_next(r->calls, at))) {
        const char *name = json_object_iter_key(at);
        if (strncmp(name, track, len) == 0 && name[len] == '/') return name;
    }
    return "";
}

const kl_provider kli_replay = {
    .name = "replay",
    .spec = "replay:[exact:]FILE",
    .doc = "answers from a recording, by slot or (exact) by key; the gate runs live",
    .example = "replay:calls.jsonl",
    .repeatable = true,
    .open = replay_open,
    .ask = replay_ask,
    .close = replay_close,
    .model_name = replay_name,
    .next_slot = replay_next_slot,
    .counted = replay_counted,
};
