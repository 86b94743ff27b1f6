/* openai.c - the Chat Completions wire shape, spoken by nearly every server of models.
 *
 *   POST {base}/chat/completions   {"model", "messages": [{"role", "content"}],
 * "max_completion_tokens", "stream": true, "stream_options": {"include_usage": true}} data:
 * {"choices": [{"delta": {"content"}, "finish_reason"}], "usage": null} data: {"choices": [],
 * "usage": {...}}     once, last, because it was asked for data: [DONE]
 *
 * `cached_tokens` and `cache_write_tokens` are inside `prompt_tokens`, unlike in kl_usage, so they
 * are taken out here. Caching needs no marks: the provider compares prefixes, and the body's bytes
 * are stable. Not here: the Responses API, tools, sampling parameters. SPDX-License-Identifier:
 * Apache-2.0 */
#include "model_impl.h"

static json_t *openai_body(const char *model, const kl_request *q) {
    json_t *messages = json_array();
    for (int i = 0; i < q->n; i++)
        json_array_append_new(messages,
                              json_pack("{ss so}", "role", kli_role_name(q->messages[i].role),
                                        "content", kli_json_str(kli_said(q->messages[i].text))));
    return json_pack("{so so sI sb s{sb}}", "model", kli_json_str(kl_str_of(model)), "messages",
                     messages, "max_completion_tokens", (json_int_t)q->max_tokens, "stream", 1,
                     "stream_options", "include_usage", 1);
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
    kli_stream_error(s, error, type, PASSING, KL_COUNT(PASSING));
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

static kl_err openai_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    return kli_http_open(self, a, &OPENAI_SHAPE, rest, e);
}

const kl_provider kli_openai = {
    .name = "openai",
    .spec = "openai:MODEL",
    .doc = "the Chat Completions API of OpenAI or of any server that speaks it (OPENAI_BASE_URL)",
    .open = openai_open,
    .ask = kli_http_ask,
    .model_name = kli_http_model_name,
};
