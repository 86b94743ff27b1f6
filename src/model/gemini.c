/* gemini.c - the generateContent wire shape of Google's Gemini API.
 *
 *   POST {base}/models/{model}:streamGenerateContent?alt=sse    {"systemInstruction": {"parts": [
 * {"text"}]}, "contents": [{"role": "user" or "model", "parts"}], "generationConfig":
 * {"maxOutputTokens"}} data: {"candidates": [{"content": {"parts": [{"text", "thought"}]},
 * "finishReason"}], "promptFeedback": {"blockReason"}, "usageMetadata", "modelVersion"}
 *
 * There is no end mark: a stream is whole when a finishReason came and the transfer ended well.
 * Every event brings the counts so far; only those beside a finishReason are final.
 * cachedContentTokenCount is inside promptTokenCount, and thoughtsTokenCount beside
 * candidatesTokenCount; both are charged as output.  Caching needs no marks.  Read in "Generating
 * content" of the Gemini API reference (ai.google.dev/api/generate-content). Not here: its
 * OpenAI-compatible face (OPENAI_BASE_URL), Gemini on Vertex AI, tools, settings of thinking and
 * safety. SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"

static json_t *gemini_parts(kl_str text) {
    return json_pack("[{so}]", "text", kli_json_str(kli_said(text)));
}

static json_t *gemini_body(const char *model, const kl_request *q) {
    json_t *o = json_object(), *system = json_array(), *contents = json_array();
    (void)model; /* stands in the URL */
    for (int i = 0; i < q->n; i++) {
        const kl_message *m = &q->messages[i];
        json_t *parts = gemini_parts(m->text);
        if (m->role == KL_ROLE_SYSTEM) {
            json_array_extend(system, parts);
            json_decref(parts);
            continue;
        }
        json_array_append_new(contents, json_pack("{ss so}", "role",
                                                  m->role == KL_ROLE_USER ? "user" : "model",
                                                  "parts", parts));
    }
    if (json_array_size(system))
        json_object_set_new(o, "systemInstruction", json_pack("{so}", "parts", system));
    else
        json_decref(system);
    json_object_set_new(o, "contents", contents);
    json_object_set_new(o, "generationConfig",
                        json_pack("{sI}", "maxOutputTokens", (json_int_t)q->max_tokens));
    return o;
}

/* Counts only grow: what broke off cost at least what the last event said. */
static void gemini_usage(kli_stream *s, const json_t *usage, bool last) {
    int64_t prompt, cached = 0, tools = 0, answer = 0, thoughts = 0;
    if (!kli_tokens(&prompt, usage, "promptTokenCount")) return;
    (void)kli_tokens(&cached, usage, "cachedContentTokenCount");
    (void)kli_tokens(&tools, usage, "toolUsePromptTokenCount");
    const bool said = kli_tokens(&answer, usage, "candidatesTokenCount"),
               thought = kli_tokens(&thoughts, usage, "thoughtsTokenCount");
    if (cached > prompt) cached = prompt;
    s->usage.cache_read = cached;
    s->usage.input = prompt - cached + tools;
    s->usage.output = answer + thoughts;
    s->has_input = true;
    s->has_output = last && (said || thought);
}

static kl_stop gemini_stop(kl_str reason) {
    if (kl_str_eq(reason, KL_S("STOP"))) return KL_STOP_END;
    return kl_str_eq(reason, KL_S("MAX_TOKENS")) ? KL_STOP_TRUNCATED : KL_STOP_REFUSED;
}

static void on_candidate(kli_stream *s, const json_t *candidate) {
    const json_t *parts = json_object_get(json_object_get(candidate, "content"), "parts");
    const kl_str reason = kli_json_text_or(candidate, "finishReason", (kl_str){0});
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        kli_stream_count(s, part);
        if (!kli_json_bool_or(part, "thought", false))
            kl_buf_add(&s->text, kli_json_text_or(part, "text", (kl_str){0}));
    }
    if (!reason.len) return;
    s->stop = gemini_stop(reason);
    s->finished = true;
}

static void gemini_on_error(kli_stream *s, const json_t *error) {
    static const char *const PASSING[] = {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL",
                                          "DEADLINE_EXCEEDED"};
    const kl_str status = kli_json_text_or(error, "status", KL_S("error"));
    kli_stream_error(s, error, status, PASSING, KL_COUNT(PASSING));
}

static void gemini_event(kli_stream *s, const json_t *data) {
    const json_t *error = json_object_get(data, "error"),
                 *candidates = json_object_get(data, "candidates"),
                 *feedback = json_object_get(data, "promptFeedback");
    if (!data) {
        s->ended = s->finished;
        return;
    }
    if (json_is_object(error)) {
        gemini_on_error(s, error);
        return;
    }
    if (!json_is_array(candidates) && !json_is_object(feedback) &&
        !json_is_object(json_object_get(data, "usageMetadata")))
        return;
    s->begun = true;
    kli_stream_model(s, json_object_get(data, "modelVersion"));
    if (json_array_size(candidates)) on_candidate(s, json_array_get(candidates, 0));
    if (kli_json_text_or(feedback, "blockReason", (kl_str){0}).len) {
        s->stop = KL_STOP_REFUSED;
        s->finished = true;
    }
    gemini_usage(s, json_object_get(data, "usageMetadata"), s->finished);
}

static const kli_shape GEMINI_SHAPE = {
    .name = "gemini",
    .key_variable = "GEMINI_API_KEY",
    .key_file_variable = "GEMINI_API_KEY_FILE",
    .base_variable = "GEMINI_BASE_URL",
    .base = "https://generativelanguage.googleapis.com/v1beta",
    .path = "/models/{model}:streamGenerateContent?alt=sse",
    .key_header = "x-goog-api-key: ",
    .closes = true,
    .body = gemini_body,
    .event = gemini_event,
};

static kl_err gemini_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    return kli_http_open(self, a, &GEMINI_SHAPE, rest, e);
}

static bool gemini_ready(kl_str *found, kl_arena *a) {
    return kli_http_ready(found, a, &GEMINI_SHAPE);
}

const kl_provider kli_gemini = {
    .name = "gemini",
    .spec = "gemini:MODEL",
    .doc = "the Gemini API of Google (GEMINI_BASE_URL)",
    .example = "gemini:gemini-3.5-flash",
    .name_at = KL_NAME_REST,
    .open = gemini_open,
    .ask = kli_http_ask,
    .model_name = kli_http_model_name,
    .ready = gemini_ready,
};
