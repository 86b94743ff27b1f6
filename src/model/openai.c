/* openai.c - the Chat Completions wire shape, spoken by nearly every server of models: OpenAI's
 * own, OpenRouter's, those of this machine.
 *
 *   POST {base}/chat/completions   {"model", "messages": [{"role", "content"}],
 * "max_completion_tokens", "stream": true, "stream_options": {"include_usage": true}} data:
 * {"choices": [{"delta": {"content"}, "finish_reason"}], "usage": null} data: {"choices": [],
 * "usage": {...}}     once, last, because it was asked for data: [DONE]
 *
 * `cached_tokens` and `cache_write_tokens` are inside `prompt_tokens`, unlike in kl_usage, so they
 * are taken out here. Caching needs no marks: the provider compares prefixes, and the body's bytes
 * are stable.
 *
 * OpenRouter ("Usage Accounting", "Provider Routing" of its documentation): usage.cost is what was
 * charged, usage.is_byok and cost_details.upstream_inference_cost what a key of one's own is
 * charged elsewhere, provider.max_price the dearest seller that may answer. Not here: the Responses
 * API, tools, sampling parameters. SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"
#include <string.h>

/* `marks`: breakpoints for the cache, in the words of Anthropic, whose models want them. */
static json_t *openai_messages(const kl_request *q, bool marks) {
    json_t *messages = json_array();
    for (int i = 0; i < q->n; i++) {
        const kl_message *m = &q->messages[i];
        json_t *text = marks && kli_cache_granted(q, i)
                           ? json_pack("[o]", kli_text_block(m->text, true))
                           : kli_json_str(kli_said(m->text));
        json_array_append_new(
            messages, json_pack("{ss so}", "role", kli_role_name(m->role), "content", text));
    }
    return messages;
}

/* `limit`: what this server calls the longest answer. */
static json_t *chat_body(const char *model, const kl_request *q, const char *limit, bool marks) {
    return json_pack("{so so sI sb s{sb}}", "model", kli_json_str(kl_str_of(model)), "messages",
                     openai_messages(q, marks), limit, (json_int_t)q->max_tokens, "stream", 1,
                     "stream_options", "include_usage", 1);
}

static json_t *openai_body(const char *model, const kl_request *q) {
    return chat_body(model, q, "max_completion_tokens", false);
}

static json_t *local_body(const char *model, const kl_request *q) {
    return chat_body(model, q, "max_tokens", false);
}

/* Rates above those that were reserved for are refused by the router itself: of the sellers of a
 * model, dearer ones are not asked. */
static json_t *most_to_pay(const char *model, const kl_request *q) {
    const kl_usage most = kl_usage_bound(q, 0);
    kl_price p;
    if (kl_price_of(&p, q->priced_as ? q->priced_as : model, kl_usage_prompt(&most), kl_ignored()))
        return NULL;
    return json_pack("{s{so so}}", "max_price", "prompt", kli_json_real((double)p.input / 1e6),
                     "completion", kli_json_real((double)p.output / 1e6));
}

static json_t *openrouter_body(const char *model, const kl_request *q) {
    json_t *o = chat_body(model, q, "max_tokens", !strncmp(model, "anthropic/", 10));
    json_t *most = most_to_pay(model, q);
    json_object_set_new(o, "usage", json_pack("{sb}", "include", 1));
    if (most) json_object_set_new(o, "provider", most);
    return o;
}

static int64_t at_most(int64_t v, int64_t most) { return v < most ? v : most; }

static void openai_take_usage(kli_stream *s, const json_t *usage) {
    const json_t *details = json_object_get(usage, "prompt_tokens_details");
    int64_t prompt, cached = 0, written = 0;
    if (kli_tokens(&s->usage.output, usage, "completion_tokens")) s->has_output = true;
    if (!kli_tokens(&prompt, usage, "prompt_tokens")) return;
    (void)kli_tokens(&cached, details, "cached_tokens");
    (void)kli_tokens(&written, details, "cache_write_tokens");
    s->usage.cache_read = at_most(cached, prompt);
    s->usage.cache_write_5m = at_most(written, prompt - s->usage.cache_read);
    s->usage.input = prompt - s->usage.cache_read - s->usage.cache_write_5m;
    s->has_input = true;
}

/* OpenRouter: what was charged, in dollars.  With a key of the user's own at the seller, that is
 * the router's share alone, and the seller's bill stands beside it. */
static void take_bill(kli_stream *s, const json_t *usage) {
    const double charged = kli_json_real_or(usage, "cost", -1);
    const bool own_key = kli_json_bool_or(usage, "is_byok", false);
    const double beside = own_key ? kli_json_real_or(json_object_get(usage, "cost_details"),
                                                     "upstream_inference_cost", -1)
                                  : 0;
    if (charged < 0 || beside < 0) return;
    s->billed = kli_billed(&s->billed_microusd, charged + beside);
}

static void on_choice(kli_stream *s, const json_t *choice) {
    const json_t *delta = json_object_get(choice, "delta");
    const kl_str reason = kli_json_text_or(choice, "finish_reason", (kl_str){0});
    kli_stream_count(s, delta);
    kl_buf_add(&s->text, kli_json_text_or(delta, "content", (kl_str){0}));
    if (kli_json_text_or(delta, "refusal", (kl_str){0}).len ||
        kl_str_eq(reason, KL_S("content_filter")))
        s->stop = KL_STOP_REFUSED;
    else if (kl_str_eq(reason, KL_S("length")))
        s->stop = KL_STOP_TRUNCATED;
    if (reason.len) s->finished = true;
}

/* Some servers report trouble inside the stream: {"error": {"message", "type", "code"}}. */
static void openai_on_error(kli_stream *s, const json_t *error) {
    static const char *const PASSING[] = {"server_error", "rate_limit_error", "rate_limit_exceeded",
                                          "overloaded_error", "overloaded"};
    const kl_str type =
        kli_json_text_or(error, "type", kli_json_text_or(error, "code", KL_S("error")));
    const int64_t code = kli_json_int_or(error, "code", 0); /* OpenRouter: as a status of HTTP */
    kli_stream_error(s, error, type, PASSING, KL_COUNT(PASSING));
    s->passing = s->passing || code == 408 || code == 429 || code >= 500;
}

static void openai_event(kli_stream *s, const json_t *data) {
    if (!data) {
        s->ended = s->finished;
        return;
    }
    const json_t *error = json_object_get(data, "error"),
                 *choices = json_object_get(data, "choices");
    if (json_is_object(error)) {
        openai_on_error(s, error);
        return;
    }
    if (!json_is_array(choices)) return;
    s->begun = true;
    kli_stream_model(s, json_object_get(data, "model"));
    if (json_array_size(choices)) on_choice(s, json_array_get(choices, 0));
    openai_take_usage(s, json_object_get(data, "usage"));
}

/* As OpenAI's, with a bill; nobody else's number of that name is believed. */
static void openrouter_event(kli_stream *s, const json_t *data) {
    openai_event(s, data);
    take_bill(s, json_object_get(data, "usage"));
}

static const kli_shape OPENAI_SHAPE = {
    .name = "openai",
    .key_variable = "OPENAI_API_KEY",
    .key_file_variable = "OPENAI_API_KEY_FILE",
    .base_variable = "OPENAI_BASE_URL",
    .base = "https://api.openai.com/v1",
    .path = "/chat/completions",
    .key_header = "authorization: Bearer ",
    .body = openai_body,
    .event = openai_event,
};

static const kli_shape OPENROUTER_SHAPE = {
    .name = "openrouter",
    .key_variable = "OPENROUTER_API_KEY",
    .key_file_variable = "OPENROUTER_API_KEY_FILE",
    .base_variable = "OPENROUTER_BASE_URL",
    .base = "https://openrouter.ai/api/v1",
    .path = "/chat/completions",
    .key_header = "authorization: Bearer ",
    .body = openrouter_body,
    .event = openrouter_event,
};

static const kli_shape LOCAL_SHAPE = {
    .name = "local",
    .key_variable = "LOCAL_API_KEY",
    .key_file_variable = "LOCAL_API_KEY_FILE",
    .base_variable = "LOCAL_BASE_URL",
    .base = "http://127.0.0.1:11434/v1", /* ollama's */
    .path = "/chat/completions",
    .key_header = "authorization: Bearer ",
    .local = true,
    .body = local_body,
    .event = openai_event,
};

static kl_err openai_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    return kli_http_open(self, a, &OPENAI_SHAPE, rest, e);
}

static bool openai_ready(kl_str *found, kl_arena *a) {
    return kli_http_ready(found, a, &OPENAI_SHAPE);
}

const kl_provider kli_openai = {
    .name = "openai",
    .spec = "openai:MODEL",
    .doc = "the Chat Completions API of OpenAI or of any server that speaks it (OPENAI_BASE_URL)",
    .example = "openai:gpt-5.6-sol",
    .name_at = KL_NAME_REST,
    .open = openai_open,
    .ask = kli_http_ask,
    .model_name = kli_http_model_name,
    .ready = openai_ready,
};

static kl_err openrouter_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    return kli_http_open(self, a, &OPENROUTER_SHAPE, rest, e);
}

static bool openrouter_ready(kl_str *found, kl_arena *a) {
    return kli_http_ready(found, a, &OPENROUTER_SHAPE);
}

const kl_provider kli_openrouter = {
    .name = "openrouter",
    .spec = "openrouter:VENDOR/MODEL",
    .doc = "models of many vendors behind one key; charged is what it says it cost, bounded by the "
           "price of the vendor",
    .example = "openrouter:anthropic/claude-opus-4.6",
    .name_at = KL_NAME_REST,
    .open = openrouter_open,
    .ask = kli_http_ask,
    .model_name = kli_http_model_name,
    .ready = openrouter_ready,
};

static kl_err local_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    return kli_http_open(self, a, &LOCAL_SHAPE, rest, e);
}

static bool local_ready(kl_str *found, kl_arena *a) {
    return kli_http_ready(found, a, &LOCAL_SHAPE);
}

const kl_provider kli_local = {
    .name = "local",
    .spec = "local:MODEL",
    .doc = "a server on this machine with the Chat Completions API, such as ollama, llama.cpp, "
           "vLLM or SGLang (LOCAL_BASE_URL); free",
    .example = "local:qwen3-coder:30b",
    .name_at = KL_NAME_SPEC,
    .open = local_open,
    .ask = kli_http_ask,
    .model_name = kli_http_model_name,
    .ready = local_ready,
};
