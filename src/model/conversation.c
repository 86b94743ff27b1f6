/* conversation.c - a conversation as text, and the words for what came back.
 *
 * The text is for people and for agents that read a page instead of JSON.  It depends on nothing
 * but the turns, so that the same question is the same bytes. Not here: the wire formats
 * (anthropic.c, openai.c), what any of it means. SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"
#include <math.h>

static const char *const ROLE_NAMES[] = {"system", "user", "assistant"};

const char *kli_role_name(kl_role r) {
    KL_ASSERT((size_t)r < KL_COUNT(ROLE_NAMES));
    return ROLE_NAMES[r];
}

kl_str kli_said(kl_str text) { return kl_str_trim(text).len ? text : KL_S("(nothing)"); }

void kli_conversation_text(kl_buf *out, const kl_request *q) {
    for (int i = 0; i < q->n; i++) {
        const kl_str text = kli_said(q->messages[i].text);
        kl_buf_printf(out, "# Turn %d of %d: %s\n\n", i + 1, q->n,
                      kli_role_name(q->messages[i].role));
        kl_buf_add(out, text);
        kl_buf_add(out, kl_str_ends(text, KL_S("\n")) ? KL_S("\n") : KL_S("\n\n"));
    }
}

kl_str kli_tame(kl_arena *a, kl_str s, size_t max) {
    if (s.len > max) s.len = max;
    kl_str kept = kl_arena_copy(a, s);
    char *bytes = (char *)(uintptr_t)kept.ptr; /* our own copy */
    for (size_t i = 0; i < kept.len; i++)
        if ((unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f) bytes[i] = ' ';
    return kl_str_trim(kept);
}

static const char *const STOPS[] = {
    [KL_STOP_END] = "end", [KL_STOP_TRUNCATED] = "truncated", [KL_STOP_REFUSED] = "refused"};

_Static_assert(KL_COUNT(STOPS) == KL_STOP_REFUSED + 1, "a name for every stop");

const char *kl_stop_name(kl_stop s) {
    KL_ASSERT((size_t)s < KL_COUNT(STOPS));
    return STOPS[s];
}

bool kl_stop_parse(kl_stop *out, kl_str name) {
    for (size_t i = 0; i < KL_COUNT(STOPS); i++)
        if (kl_str_eq(name, kl_str_of(STOPS[i]))) {
            *out = (kl_stop)i;
            return true;
        }
    return false;
}

/* The price table uses the same names for the same classes. */
json_t *kl_usage_json(const kl_usage *u) {
    return json_pack("{sI sI sI sI sI sb}", "input", (json_int_t)u->input, "cache_read",
                     (json_int_t)u->cache_read, "cache_write_5m", (json_int_t)u->cache_write_5m,
                     "cache_write_1h", (json_int_t)u->cache_write_1h, "output",
                     (json_int_t)u->output, "estimated", u->estimated);
}

#define MOST_TOKENS                                                                                \
    1000000000 /* of one class in one call: far above any context window, far below overflow when  \
                  priced */

bool kli_tokens(int64_t *out, const json_t *o, const char *key) {
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > MOST_TOKENS)
        return false;
    *out = json_integer_value(v);
    return true;
}

bool kli_billed(int64_t *out, double dollars) {
    if (!(dollars >= 0 && dollars < 1e6)) return false;
    *out = (int64_t)ceil(dollars * 1e6 - 1e-6); /* 0.1 is not above 100000 */
    return true;
}

void kli_tokens_written(kl_usage *out, const json_t *usage) {
    int64_t written;
    if (!kli_tokens(&written, usage, "cache_creation_input_tokens")) return;
    (void)kli_tokens(&out->cache_write_1h, json_object_get(usage, "cache_creation"),
                     "ephemeral_1h_input_tokens");
    if (out->cache_write_1h > written) out->cache_write_1h = written;
    out->cache_write_5m = written - out->cache_write_1h;
    KL_ASSERT(out->cache_write_5m >= 0);
}

void kl_usage_parse(kl_usage *out, const json_t *o) {
    *out = (kl_usage){.estimated = kli_json_bool_or(o, "estimated", false)};
    (void)kli_tokens(&out->input, o, "input");
    (void)kli_tokens(&out->cache_read, o, "cache_read");
    (void)kli_tokens(&out->cache_write_5m, o, "cache_write_5m");
    (void)kli_tokens(&out->cache_write_1h, o, "cache_write_1h");
    (void)kli_tokens(&out->output, o, "output");
}

int64_t kl_usage_prompt(const kl_usage *u) {
    return u->input + u->cache_read + u->cache_write_5m + u->cache_write_1h;
}

#define LEAST_CACHED 1024 /* tokens: a shorter prefix is not kept by any provider */

/* Tokens of turns [from, to), from their bytes. */
static int64_t tokens_of(const kl_request *q, int from, int to) {
    int64_t bytes = 0;
    for (int i = from; i < to; i++) bytes += (int64_t)q->messages[i].text.len;
    return (bytes + 3) / 4;
}

kl_usage kl_usage_estimate(const kl_request *q, kl_str reply) {
    return (kl_usage){
        .input = tokens_of(q, 0, q->n), .output = ((int64_t)reply.len + 3) / 4, .estimated = true};
}

kl_usage kl_usage_estimate_cached(const kl_request *q, kl_str reply) {
    /* A conversation only grows: all but its last two turns were there. */
    int marked = 0, sent = q->n > 2 ? q->n - 2 : q->system_sent;
    for (int i = 0; i < q->n; i++)
        if (q->messages[i].cache) marked = i + 1;
    if (sent > marked) sent = marked;
    KL_ASSERT(sent >= 0 && marked <= q->n);
    if (tokens_of(q, 0, sent) < LEAST_CACHED) sent = 0;
    if (tokens_of(q, 0, marked) < LEAST_CACHED) marked = 0;
    kl_usage u = kl_usage_estimate(q, reply);
    u.cache_read = tokens_of(q, 0, sent);
    u.cache_write_5m = tokens_of(q, sent, marked);
    u.input = tokens_of(q, marked, q->n);
    return u;
}
