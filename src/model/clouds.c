/* clouds.c - the models of Anthropic where Google and Amazon sell them: the Messages shape behind
 * other doors.
 *
 *   vertex:REGION/MODEL    POST
 * {base}/v1/projects/{project}/locations/{place}/publishers/anthropic/
 * models/{model}:streamRawPredict    events as those of Messages; the key is an access token
 *   bedrock:REGION/MODEL   POST {base}/model/{model}/invoke    the whole message as one object; the
 * key is an API key of Bedrock
 *
 * The model is in the URL instead of the body, and the version in the body instead of a header.
 * Bedrock streams in a binary framing of its own, so the call without a stream is made; a reply
 * that broke off there shows nothing of what was generated, and counts as long as it may be.  Read
 * in "Claude on Vertex AI" (platform.claude.com), "Use an Amazon Bedrock API key" and "Anthropic
 * Claude Messages API: Request and Response" (Amazon Bedrock user guide). Not here: tokens that
 * renew themselves, signatures of AWS, other makers' models. SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"

static json_t *cloud_body(const char *version, const kl_request *q) {
    json_t *o = json_pack("{ss}", "anthropic_version", version);
    kli_anthropic_turns(o, q);
    return o;
}

static json_t *vertex_body(const char *model, const kl_request *q) {
    json_t *o = cloud_body("vertex-2023-10-16", q);
    (void)model; /* stands in the URL, here and below */
    json_object_set_new(o, "stream", json_true());
    return o;
}

static json_t *bedrock_body(const char *model, const kl_request *q) {
    (void)model;
    return cloud_body("bedrock-2023-05-31", q);
}

/* {"type": "message", "content": [{"type": "text", "text"}], "stop_reason", "usage", "model"} */
static void bedrock_event(kli_stream *s, const json_t *data) {
    const json_t *content = json_object_get(data, "content"),
                 *usage = json_object_get(data, "usage");
    const kl_str reason = kli_json_text_or(data, "stop_reason", (kl_str){0});
    if (!json_is_array(content)) return;
    s->begun = true;
    kli_stream_model(s, json_object_get(data, "model"));
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i);
        kli_stream_count(s, part);
        if (kl_str_eq(kli_json_text_or(part, "type", (kl_str){0}), KL_S("text")))
            kl_buf_add(&s->text, kli_json_text_or(part, "text", (kl_str){0}));
    }
    s->stop = kli_anthropic_stop(reason);
    s->ended = s->finished = reason.len > 0;
    kli_anthropic_usage(s, usage);
    if (kli_tokens(&s->usage.output, usage, "output_tokens")) s->has_output = true;
}

static const kli_shape VERTEX_SHAPE = {
    .name = "vertex",
    .key_variable = "CLOUDSDK_AUTH_ACCESS_TOKEN",
    .key_file_variable = "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE",
    .base_variable = "VERTEX_BASE_URL",
    .project_variable = "GOOGLE_CLOUD_PROJECT",
    .base = "https://{place-}aiplatform.googleapis.com",
    .path = "/v1/projects/{project}/locations/{place}/publishers/anthropic/models/"
            "{model}:streamRawPredict",
    .key_header = "authorization: Bearer ",
    .placed = true,
    .body = vertex_body,
    .event = kli_anthropic_event,
};

static const kli_shape BEDROCK_SHAPE = {
    .name = "bedrock",
    .key_variable = "AWS_BEARER_TOKEN_BEDROCK",
    .key_file_variable = "AWS_BEARER_TOKEN_BEDROCK_FILE",
    .base_variable = "BEDROCK_BASE_URL",
    .base = "https://bedrock-runtime.{place}.amazonaws.com",
    .path = "/model/{model}/invoke",
    .key_header = "authorization: Bearer ",
    .placed = true,
    .whole = true,
    .body = bedrock_body,
    .event = bedrock_event,
};

static kl_err vertex_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    return kli_http_open(self, a, &VERTEX_SHAPE, rest, e);
}

static bool vertex_ready(kl_str *found, kl_arena *a) {
    return kli_http_ready(found, a, &VERTEX_SHAPE);
}

static kl_err bedrock_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    return kli_http_open(self, a, &BEDROCK_SHAPE, rest, e);
}

static bool bedrock_ready(kl_str *found, kl_arena *a) {
    return kli_http_ready(found, a, &BEDROCK_SHAPE);
}

const kl_provider kli_vertex = {
    .name = "vertex",
    .spec = "vertex:REGION/MODEL",
    .doc = "models of Anthropic on Google Cloud, with the account of GOOGLE_CLOUD_PROJECT and an "
           "access token",
    .example = "vertex:global/claude-opus-4-6",
    .name_at = KL_NAME_REST,
    .open = vertex_open,
    .ask = kli_http_ask,
    .model_name = kli_http_model_name,
    .ready = vertex_ready,
};

const kl_provider kli_bedrock = {
    .name = "bedrock",
    .spec = "bedrock:REGION/MODEL",
    .doc = "models of Anthropic on Amazon Bedrock, with an API key of Bedrock",
    .example = "bedrock:us-east-1/global.anthropic.claude-opus-4-6-v1",
    .name_at = KL_NAME_REST,
    .open = bedrock_open,
    .ask = kli_http_ask,
    .model_name = kli_http_model_name,
    .ready = bedrock_ready,
};
