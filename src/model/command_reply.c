/* command_reply.c - what agent programs print: text, a result object, or a line of JSON per event.
 *
 *   claude -p --output-format json    {"type": "result", "is_error", "result", "total_cost_usd",
 * "usage", "modelUsage"} (stream-json, --verbose)  the same object as the last line, or the last of
 * an array codex exec --json    {"type": "item.completed", "item": {"type": "agent_message",
 * "text"}}
 *                        {"type": "turn.completed", "usage": {"input_tokens",
 * "cached_input_tokens", "output_tokens"}}
 *                        {"type": "turn.failed", "error": {"message"}}
 *   gemini --output-format json       {"response", "stats": {"models": {NAME: {"tokens": {"prompt",
 * "candidates", "cached", "thoughts"}}}}, "error": {"message"}}
 *   opencode run --format json        {"type": "text", "part": {"text"}}
 *                        {"type": "step_finish", "part": {"tokens": {"input", "output",
 * "reasoning", "cache": {"read", "write"}}, "cost"}}
 *                        {"type": "error", "error": {"name", "data": {"message"}}}
 *   anything else        is the answer, byte for byte
 *
 * Costs that it names round up.  Cached tokens are inside the input for codex and gemini, beside it
 * for claude and opencode; thoughts are beside the answer for gemini and opencode.  opencode says
 * $0 for what it knows no price of, so that is no cost.  Read in "Headless mode reference" (Gemini
 * CLI) and the threads on `run --format json` (opencode). SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"
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
    (void)kli_billed(&out->billed_microusd, dollars);
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

/* ---- gemini ------------------------------------------------------------------------------ */

static void gemini_tokens(kl_usage *sum, const json_t *tokens) {
    int64_t prompt = 0, cached = 0, answer = 0, thoughts = 0;
    (void)kli_tokens(&prompt, tokens, "prompt");
    (void)kli_tokens(&cached, tokens, "cached");
    (void)kli_tokens(&answer, tokens, "candidates");
    (void)kli_tokens(&thoughts, tokens, "thoughts");
    if (cached > prompt) cached = prompt;
    sum->input += prompt - cached;
    sum->cache_read += cached;
    sum->output += answer + thoughts;
}

/* Several models may have worked on it; named is the one with the most tokens. */
static kl_err gemini_result(kl_reply *out, kl_arena *a, const json_t *o, const kl_request *q,
                            kl_error *e) {
    const json_t *models = json_object_get(json_object_get(o, "stats"), "models"),
                 *error = json_object_get(o, "error");
    const char *name, *most = "";
    json_t *m;
    int64_t least = 0;
    if (json_is_object(error)) {
        const kl_str why =
            kli_tame(a, kli_json_text_or(error, "message", KL_S("no reason given")), 400);
        return kl_fail(e, KL_EMODEL, "command", "the agent failed: %.*s", KL_STR_ARG(why));
    }
    out->text = kl_arena_copy(a, kli_json_text_or(o, "response", (kl_str){0}));
    out->usage = (kl_usage){0};
    json_object_foreach((json_t *)(uintptr_t)models, name, m) {
        kl_usage own = {0};
        gemini_tokens(&own, json_object_get(m, "tokens"));
        gemini_tokens(&out->usage, json_object_get(m, "tokens"));
        if (kl_usage_prompt(&own) + own.output <= least) continue;
        least = kl_usage_prompt(&own) + own.output;
        most = name;
    }
    if (!least) out->usage = kl_usage_bound(q, out->text.len);
    out->model = kli_tame(a, kl_str_of(most), 128);
    return KL_OK;
}

/* ---- opencode ---------------------------------------------------------------------------- */

typedef struct {
    kl_buf text; /* of the last step that said something */
    kl_str failure;
    kl_usage usage;
    double dollars;
    bool new_step, has_usage, seen;
} opencode;

static void opencode_step(opencode *c, const json_t *part) {
    const json_t *tokens = json_object_get(part, "tokens"),
                 *cache = json_object_get(tokens, "cache");
    int64_t input, output, thoughts = 0, read = 0, written = 0;
    const double cost = kli_json_real_or(part, "cost", 0);
    if (cost > 0) c->dollars += cost;
    if (!kli_tokens(&input, tokens, "input") || !kli_tokens(&output, tokens, "output")) return;
    (void)kli_tokens(&thoughts, tokens, "reasoning");
    (void)kli_tokens(&read, cache, "read");
    (void)kli_tokens(&written, cache, "write");
    c->usage.input += input;
    c->usage.cache_read += read;
    c->usage.cache_write_5m += written;
    c->usage.output += output + thoughts;
    c->has_usage = true;
}

static void opencode_event(opencode *c, kl_arena *a, const json_t *o) {
    const json_t *part = json_object_get(o, "part"), *error = json_object_get(o, "error");
    if (type_is(o, "step_start") && part) {
        c->seen = c->new_step = true;
    } else if (type_is(o, "text") && part) {
        if (c->new_step) c->text.len = 0;
        c->new_step = false;
        kl_buf_add(&c->text, kli_json_text_or(part, "text", (kl_str){0}));
        c->seen = true;
    } else if (type_is(o, "step_finish") && part) {
        opencode_step(c, part);
        c->seen = true;
    } else if (type_is(o, "error") && json_object_get(o, "sessionID")) {
        c->failure =
            kli_tame(a,
                     kli_json_text_or(json_object_get(error, "data"), "message",
                                      kli_json_text_or(error, "name", KL_S("no reason given"))),
                     400);
        c->seen = true;
    }
}

static kl_err opencode_reply(kl_reply *out, kl_arena *a, const opencode *c, const kl_request *q,
                             kl_error *e) {
    if (c->failure.len || !c->text.len)
        return kl_fail(e, KL_EMODEL, "command", "the agent failed: %.*s",
                       KL_STR_ARG(c->failure.len ? c->failure : KL_S("it gave no text")));
    out->text = kl_arena_copy(a, kl_buf_str(&c->text));
    out->usage = c->has_usage ? c->usage : kl_usage_bound(q, c->text.len);
    if (c->dollars > 0) (void)kli_billed(&out->billed_microusd, c->dollars);
    return KL_OK;
}

/* ---- which of them ----------------------------------------------------------------------- */

/* It has no type.  What failed has no response. */
static bool is_gemini(const json_t *v) {
    const json_t *error = json_object_get(v, "error");
    if (json_object_get(v, "type")) return false;
    return json_is_string(json_object_get(v, "response")) && !error
               ? json_is_object(json_object_get(v, "stats"))
               : json_is_string(json_object_get(error, "message"));
}

/* Takes the last result object; `*found` when there was one. */
static kl_err from_value(kl_reply *out, bool *found, kl_arena *a, const json_t *v,
                         const kl_request *q, kl_error *e) {
    if (type_is(v, "result")) {
        *found = true;
        return claude_result(out, a, v, q, e);
    }
    if (is_gemini(v)) {
        *found = true;
        return gemini_result(out, a, v, q, e);
    }
    for (size_t i = json_array_size(v); i-- > 0;)
        if (type_is(json_array_get(v, i), "result"))
            return from_value(out, found, a, json_array_get(v, i), q, e);
    return KL_OK;
}

/* The next line of `text`, which is cut from it. */
static kl_str command_reply_line(kl_str *text) {
    const char *end = memchr(text->ptr, '\n', text->len);
    const kl_str line = {text->ptr, end ? (size_t)(end - text->ptr) : text->len};
    const size_t used = line.len + (end ? 1 : 0);
    *text = (kl_str){text->ptr + used, text->len - used};
    return line;
}

/* Line by line; a line that is no JSON is some other program's talk between the events. */
static kl_err from_lines(kl_reply *out, bool *found, kl_arena *a, kl_str text, const kl_request *q,
                         kl_error *e) {
    codex c = {0};
    opencode p = {0};
    kl_err err = KL_OK;
    while (text.len && !*found) {
        const kl_str line = command_reply_line(&text);
        json_t *o = NULL;
        if (!kl_str_starts(kl_str_trim(line), KL_S("{")) ||
            kli_json_parse(&o, line, KL_S("line"), kl_ignored()))
            continue;
        err = from_value(out, found, a, o, q, e);
        if (!*found) codex_event(&c, a, o);
        if (!*found) opencode_event(&p, a, o);
        json_decref(o);
    }
    if (!*found && (c.seen || p.seen)) {
        *found = true;
        err = p.seen ? opencode_reply(out, a, &p, q, e) : codex_reply(out, &c, q, e);
    }
    kl_buf_fini(&p.text);
    return err;
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
