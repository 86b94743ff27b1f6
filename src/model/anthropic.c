/* anthropic.c - the Messages wire shape, also spoken by vLLM, SGLang, llama.cpp and Ollama.
 *
 *   POST {base}/v1/messages    {"model", "max_tokens", "system": [blocks], "messages": [{"role",
 * "content": [blocks]}], "stream": true} message_start              usage of the prompt, model
 *   content_block_delta        delta.type text_delta: text; other deltas (thinking) are not the
 * answer message_delta              stop_reason, cumulative usage message_stop               the
 * end; ping, error at any time; what is unknown is ignored
 *
 * Keys are written in one order and nothing in the body depends on time or place, so that the
 * provider's prompt cache, which compares bytes, holds from turn to turn.  `input_tokens` is the
 * uncached rest of the prompt, as in kl_usage. Not here: tools, images, sampling parameters (the
 * newest models refuse them). SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"

#define MAX_BREAKPOINTS 4

/* Of the wishes for a breakpoint those are granted: the first, which is what all conversations
 * share, and the last three. */
bool kli_cache_granted(const kl_request *q, int turn) {
    int before = 0, wishes = 0;
    for (int i = 0; i < q->n; i++) {
        before += i < turn && q->messages[i].cache;
        wishes += q->messages[i].cache;
    }
    return q->messages[turn].cache && (before == 0 || before > wishes - MAX_BREAKPOINTS);
}

json_t *kli_text_block(kl_str text, bool cache) {
    json_t *o = json_pack("{ss so}", "type", "text", "text", kli_json_str(kli_said(text)));
    if (cache) json_object_set_new(o, "cache_control", json_pack("{ss}", "type", "ephemeral"));
    return o;
}

void kli_anthropic_turns(json_t *o, const kl_request *q) {
    json_t *system = json_array(), *messages = json_array();
    for (int i = 0; i < q->n; i++) {
        const kl_message *m = &q->messages[i];
        json_t *text = kli_text_block(m->text, kli_cache_granted(q, i));
        if (m->role == KL_ROLE_SYSTEM) {
            json_array_append_new(system, text);
            continue;
        }
        json_array_append_new(
            messages, json_pack("{ss s[o]}", "role", kli_role_name(m->role), "content", text));
    }
    json_object_set_new(o, "max_tokens", json_integer(q->max_tokens));
    if (json_array_size(system))
        json_object_set_new(o, "system", system);
    else
        json_decref(system);
    json_object_set_new(o, "messages", messages);
}

static json_t *anthropic_body(const char *model, const kl_request *q) {
    json_t *o = json_pack("{so}", "model", kli_json_str(kl_str_of(model)));
    kli_anthropic_turns(o, q);
    json_object_set_new(o, "stream", json_true());
    return o;
}

/* Cumulative: what a later event says replaces what an earlier one said. */
void kli_anthropic_usage(kli_stream *s, const json_t *usage) {
    if (kli_tokens(&s->usage.input, usage, "input_tokens")) s->has_input = true;
    (void)kli_tokens(&s->usage.cache_read, usage, "cache_read_input_tokens");
    kli_tokens_written(&s->usage, usage);
}

kl_stop kli_anthropic_stop(kl_str reason) {
    if (kl_str_eq(reason, KL_S("max_tokens")) ||
        kl_str_eq(reason, KL_S("model_context_window_exceeded")))
        return KL_STOP_TRUNCATED;
    return kl_str_eq(reason, KL_S("refusal")) ? KL_STOP_REFUSED : KL_STOP_END;
}

static void anthropic_on_error(kli_stream *s, const json_t *error) {
    static const char *const PASSING[] = {"overloaded_error", "rate_limit_error", "api_error",
                                          "timeout_error"};
    const kl_str type = kli_json_text_or(error, "type", KL_S("error"));
    kli_stream_error(s, error, type, PASSING, KL_COUNT(PASSING));
}

static void on_message_delta(kli_stream *s, const json_t *data) {
    const json_t *usage = json_object_get(data, "usage");
    const kl_str reason =
        kli_json_text_or(json_object_get(data, "delta"), "stop_reason", (kl_str){0});
    if (reason.len) {
        s->stop = kli_anthropic_stop(reason);
        s->finished = true;
    }
    kli_anthropic_usage(s, usage);
    if (kli_tokens(&s->usage.output, usage, "output_tokens")) s->has_output = true;
}

void kli_anthropic_event(kli_stream *s, const json_t *data) {
    const kl_str type = kli_json_text_or(data, "type", (kl_str){0});
    if (kl_str_eq(type, KL_S("message_start"))) {
        const json_t *message = json_object_get(data, "message");
        s->begun = true;
        kli_stream_model(s, json_object_get(message, "model"));
        kli_anthropic_usage(s, json_object_get(message, "usage"));
    } else if (kl_str_eq(type, KL_S("content_block_start")) ||
               kl_str_eq(type, KL_S("content_block_delta"))) {
        const json_t *part = json_object_get(data, type.len == 19 ? "delta" : "content_block");
        const kl_str kind = kli_json_text_or(part, "type", (kl_str){0});
        s->begun = true;
        kli_stream_count(s, part);
        if (kl_str_eq(kind, KL_S("text_delta")) || kl_str_eq(kind, KL_S("text")))
            kl_buf_add(&s->text, kli_json_text_or(part, "text", (kl_str){0}));
    } else if (kl_str_eq(type, KL_S("message_delta"))) {
        on_message_delta(s, data);
    } else if (kl_str_eq(type, KL_S("message_stop"))) {
        s->ended = s->begun && s->finished;
    } else if (kl_str_eq(type, KL_S("error"))) {
        anthropic_on_error(s, json_object_get(data, "error"));
    }
}

static const kli_shape ANTHROPIC_SHAPE = {
    .name = "anthropic",
    .key_variable = "ANTHROPIC_API_KEY",
    .key_file_variable = "ANTHROPIC_API_KEY_FILE",
    .base_variable = "ANTHROPIC_BASE_URL",
    .base = "https://api.anthropic.com",
    .path = "/v1/messages",
    .key_header = "x-api-key: ",
    .header = "anthropic-version: 2023-06-01",
    .body = anthropic_body,
    .event = kli_anthropic_event,
};

static kl_err anthropic_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    return kli_http_open(self, a, &ANTHROPIC_SHAPE, rest, e);
}

static bool anthropic_ready(kl_str *found, kl_arena *a) {
    return kli_http_ready(found, a, &ANTHROPIC_SHAPE);
}

const kl_provider kli_anthropic = {
    .name = "anthropic",
    .spec = "anthropic:MODEL",
    .doc = "the Messages API of Anthropic or of any server that speaks it (ANTHROPIC_BASE_URL)",
    .example = "anthropic:claude-opus-4-6",
    .name_at = KL_NAME_REST,
    .open = anthropic_open,
    .ask = kli_http_ask,
    .ready = anthropic_ready,
    .model_name = kli_http_model_name,
};
