/* command_reply.c - what agent programs print: text, a result object, or a line of JSON per event.
 *
 *   claude -p --output-format json    {"type": "result", "is_error", "result", "total_cost_usd",
 * "usage", "modelUsage"} (stream-json, --verbose)  the same object as the last line, or the last of
 * an array codex exec --json    {"type": "item.completed", "item": {"type": "agent_message",
 * "text"}}
 *                        {"type": "turn.completed", "usage": {"input_tokens",
 * "cached_input_tokens", "output_tokens"}}
 *                        {"type": "turn.failed", "error": {"message"}}
 *   anything else        is the answer, byte for byte
 *
 * Costs that it names round up.  In codex' usage the cached tokens are inside the input, in
 * claude's they are beside it. SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"
#include <math.h>
#include <string.h>

static bool type_is(const json_t *o, const char *type) {
    return kl_str_eq(kli_json_text_or(o, "type", (kl_str){0}), kl_str_of(type));
}

/* ---- claude ------------------------------------------------------------------------------ */

/* Of several models that worked on it, the one that cost most. */
static kl_str dearest_model(const json_t *models) {
    const char *name = NULL, *best = NULL;
    double most = -1;
    json_t *m;
    json_object_foreach((json_t *)(uintptr_t)models, name, m) {
        const double cost = kli_json_real_or(m, "costUSD", 0);
        if (cost > most) {
            best = name;
            most = cost;
        }
    }
    return kl_str_of(best);
}

static void claude_usage(kl_reply *out, const json_t *usage, const kl_request *q) {
    out->usage = (kl_usage){0};
    const bool input = kli_tokens(&out->usage.input, usage, "input_tokens"),
               output = kli_tokens(&out->usage.output, usage, "output_tokens");
    (void)kli_tokens(&out->usage.cache_read, usage, "cache_read_input_tokens");
    kli_tokens_written(&out->usage, usage);
    if (!input || !output) out->usage = kl_usage_bound(q, out->text.len);
}

static kl_err claude_result(kl_reply *out, kl_arena *a, const json_t *o, const kl_request *q,
                            kl_error *e) {
    const kl_str text = kli_json_text_or(o, "result", (kl_str){0});
    const double dollars = kli_json_real_or(o, "total_cost_usd", -1);
    if (dollars >= 0 && dollars < 1e6)
        out->billed_microusd = (int64_t)ceil(dollars * 1e6 - 1e-6); /* 0.1 is not above 100000 */
    if (kli_json_bool_or(o, "is_error", false) || !json_is_string(json_object_get(o, "result"))) {
        const kl_str why = kli_tame(
            a, text.len ? text : kli_json_text_or(o, "subtype", KL_S("no reason given")), 400);
        out->billed_microusd = -1; /* what a failed call cost, the reservation covers */
        return kl_fail(e, KL_EMODEL, "command", "the agent failed: %.*s", KL_STR_ARG(why));
    }
    out->text = kl_arena_copy(a, text);
    out->model = kli_tame(a, dearest_model(json_object_get(o, "modelUsage")), 128);
    out->stop = kl_str_eq(kli_json_text_or(o, "stop_reason", (kl_str){0}), KL_S("max_tokens"))
                    ? KL_STOP_TRUNCATED
                : kl_str_eq(kli_json_text_or(o, "stop_reason", (kl_str){0}), KL_S("refusal"))
                    ? KL_STOP_REFUSED
                    : KL_STOP_END;
    claude_usage(out, json_object_get(o, "usage"), q);
    return KL_OK;
}

/* ---- codex ------------------------------------------------------------------------------- */

typedef struct {
    kl_str text, failure; /* in the arena */
    kl_usage usage;
    bool has_text, has_usage, seen;
} codex;

static void codex_usage(codex *c, const json_t *usage) {
    int64_t input, cached = 0, output;
    if (!kli_tokens(&input, usage, "input_tokens") || !kli_tokens(&output, usage, "output_tokens"))
        return;
    (void)kli_tokens(&cached, usage, "cached_input_tokens");
    if (cached > input) cached = input;
    c->usage.input += input - cached;
    c->usage.cache_read += cached;
    c->usage.output += output;
    c->has_usage = true;
}

static void codex_event(codex *c, kl_arena *a, const json_t *o) {
    if (type_is(o, "thread.started") || type_is(o, "turn.started")) c->seen = true;
    if (type_is(o, "item.completed")) {
        const json_t *item = json_object_get(o, "item");
        if (type_is(item, "agent_message")) {
            c->text = kl_arena_copy(
                a, kli_json_text_or(item, "text", (kl_str){0})); /* the last one is the answer */
            c->seen = c->has_text = true;
        }
    } else if (type_is(o, "turn.completed")) {
        codex_usage(c, json_object_get(o, "usage"));
    } else if (type_is(o, "turn.failed")) {
        c->failure = kli_tame(
            a, kli_json_text_or(json_object_get(o, "error"), "message", KL_S("no reason given")),
            400);
        c->seen = true;
    }
}

static kl_err codex_reply(kl_reply *out, const codex *c, const kl_request *q, kl_error *e) {
    if (c->failure.len || !c->has_text)
        return kl_fail(e, KL_EMODEL, "command", "the agent failed: %.*s",
                       KL_STR_ARG(c->failure.len ? c->failure : KL_S("it gave no message")));
    out->text = c->text;
    out->usage = c->has_usage ? c->usage : kl_usage_bound(q, c->text.len);
    return KL_OK;
}

/* ---- which of them ----------------------------------------------------------------------- */

/* Takes the last result object; `*found` when there was one. */
static kl_err from_value(kl_reply *out, bool *found, kl_arena *a, const json_t *v,
                         const kl_request *q, kl_error *e) {
    if (type_is(v, "result")) {
        *found = true;
        return claude_result(out, a, v, q, e);
    }
    for (size_t i = json_array_size(v); i-- > 0;)
        if (type_is(json_array_get(v, i), "result"))
            return from_value(out, found, a, json_array_get(v, i), q, e);
    return KL_OK;
}

/* Line by line; a line that is no JSON is some other program's talk between the events. */
static kl_err from_lines(kl_reply *out, bool *found, kl_arena *a, kl_str text, const kl_request *q,
                         kl_error *e) {
    codex c = {0};
    kl_err err = KL_OK;
    while (text.len && !*found) {
        const char *end = memchr(text.ptr, '\n', text.len);
        const kl_str line = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
        json_t *o = NULL;
        text = (kl_str){text.ptr + line.len, text.len - line.len};
        if (end) text = (kl_str){text.ptr + 1, text.len - 1};
        if (!kl_str_starts(kl_str_trim(line), KL_S("{")) ||
            kli_json_parse(&o, line, KL_S("line"), kl_ignored()))
            continue;
        err = from_value(out, found, a, o, q, e);
        if (!*found) codex_event(&c, a, o);
        json_decref(o);
    }
    if (*found || !c.seen) return err;
    *found = true;
    return codex_reply(out, &c, q, e);
}

kl_err kli_command_reply(kl_reply *out, kl_arena *a, kl_str output, const kl_request *q,
                         kl_error *e) {
    const kl_str text = kl_str_trim(output);
    json_t *whole = NULL;
    bool found = false;
    kl_err err = KL_OK;
    if ((kl_str_starts(text, KL_S("{")) || kl_str_starts(text, KL_S("["))) &&
        kli_json_parse(&whole, text, KL_S("output"), kl_ignored()) == KL_OK)
        err = from_value(out, &found, a, whole, q, e);
    json_decref(whole);
    if (!found && kl_str_starts(text, KL_S("{"))) err = from_lines(out, &found, a, text, q, e);
    if (found) return err;
    out->text = kl_arena_copy(a, output);
    out->usage = kl_usage_bound(q, out->text.len);
    return KL_OK;
}
