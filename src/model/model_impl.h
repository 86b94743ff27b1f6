/* model_impl.h - what the files of src/model share.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_MODEL_IMPL_H
#define KL_MODEL_IMPL_H
#include "kernel/kernel.h"
#include "base/json.h"
#include <klineage/limits.h>
#include <klineage/model.h>

extern const kl_provider kli_anthropic, kli_openai, kli_gemini, kli_openrouter, kli_vertex,
    kli_bedrock, kli_local, kli_command, kli_mailbox, kli_replay, kli_builtin, kli_mutate;

/* ---- conversation.c ---------------------------------------------------------------------- */

/* What a provider is told where a turn has no text: the wire formats refuse an empty one. */
kl_str kli_said(kl_str text);
const char *kli_role_name(kl_role r); /* "system" "user" "assistant" */
/* Every turn under a heading, byte-stable, for those who read text instead of JSON. */
void kli_conversation_text(kl_buf *out, const kl_request *q);
/* Control characters become spaces, at most `max` bytes: text of a stranger on its way into a
 * message or a name. */
kl_str kli_tame(kl_arena *a, kl_str s, size_t max);

/* ---- sse.c: server-sent events, one piece of any size at a time -------------------------- */

/* Calls back for every complete event; a nonzero return stops and is returned. */
typedef struct {
    kl_err (*event)(void *ctx, kl_str name, kl_str data);
    void *ctx;
    kl_buf line, name, data;
    bool has_data, skip_newline, started;
} kli_sse;

kl_err
kli_sse_feed(kli_sse *s,
             kl_str piece); /* KL_ELIMIT when a line or an event is larger than a reply may be */
void kli_sse_fini(kli_sse *s);

/* ---- http.c: a POST and its stream, the same for all wire shapes -------------------------- */

/* A reply while it comes in. */
typedef struct {
    kl_buf text;
    kl_stop stop;
    kl_usage usage;
    bool has_input, has_output; /* the provider said how many tokens */
    bool billed;                /* it said what they cost: */
    int64_t billed_microusd;
    size_t arrived;       /* bytes of what it said and thought */
    bool finished;        /* it said why it stopped */
    bool begun;           /* it has begun to answer: from here on the call may cost */
    bool ended;           /* it said that this was all; without it nothing counts */
    bool failed, passing; /* it reported an error; `passing`: one that asking again may mend */
    char error[512];
    char model[128];
} kli_stream;

/* What tells the wire shapes apart.  In `base` and `path` stand {model}, {place} (what is before
 * the first slash of the name), {place-} (the same with a dash behind it, nothing for "global") and
 * {project} (what `project_variable` holds). */
typedef struct {
    const char *name; /* of the provider */
    const char *key_variable, *key_file_variable, *base_variable;
    const char *project_variable; /* NULL: no URL needs one */
    const char *base, *path;      /* default base URL, and what is appended to any */
    const char *key_header;       /* "x-api-key: " */
    const char *header;           /* one more, NULL: none */
    bool placed;                  /* the name is PLACE/MODEL */
    bool local;                   /* on this machine and nowhere else; wants no key */
    bool whole;                   /* the answer is one object instead of a stream of events */
    bool closes;                  /* its end mark is the end of the transfer */
    json_t *(*body)(const char *model, const kl_request *q);
    /* `data` NULL: the shape's own end mark, [DONE], or with `closes` a transfer that ended well.
     */
    void (*event)(kli_stream *s, const json_t *data);
} kli_shape;

KL_MUST_USE kl_err kli_http_open(void **self, kl_arena *a, const kli_shape *shape, const char *rest,
                                 kl_error *e);
KL_MUST_USE kl_err kli_http_ask(kl_reply *out, void *self, kl_arena *a, const kl_request *q,
                                kl_error *e);
const char *kli_http_model_name(const void *self);
/* For doctor: can it be asked, by which variable's key?  Never what a variable holds. */
bool kli_http_ready(kl_str *found, kl_arena *a, const kli_shape *shape);

void kli_stream_fail(kli_stream *s, bool passing, kl_str type, kl_str message);
/* An error that the server reports inside the stream; asking again may mend those in `passing`. */
void kli_stream_error(kli_stream *s, const json_t *error, kl_str type, const char *const *passing,
                      size_t n);
void kli_stream_model(kli_stream *s, const json_t *name);
void kli_stream_count(kli_stream *s,
                      const json_t *part); /* every text in it was generated, and is charged */
/* An integer that can be a number of tokens; false leaves `out` alone. */
bool kli_tokens(int64_t *out, const json_t *o, const char *key);
/* Dollars that a provider names, in micro-dollars, rounded up; false where it is no amount. */
bool kli_billed(int64_t *out, double dollars);
/* What went into the cache, by how long it stays, in the words of Anthropic. */
void kli_tokens_written(kl_usage *out, const json_t *usage);

/* ---- anthropic.c: what the clouds share with it ------------------------------------------- */

json_t *kli_text_block(kl_str text, bool cache);          /* {"type": "text", ...} */
bool kli_cache_granted(const kl_request *q, int turn);    /* a breakpoint behind this turn? */
void kli_anthropic_turns(json_t *o, const kl_request *q); /* max_tokens, system, messages */
void kli_anthropic_event(kli_stream *s, const json_t *data);
void kli_anthropic_usage(kli_stream *s, const json_t *usage);
kl_stop kli_anthropic_stop(kl_str reason);

/* ---- price_name.c: a model under another seller's name ------------------------------------ */

typedef struct {
    char bare[256]; /* as its maker writes it; empty: the name is the maker's already */
    bool regional;  /* a cloud's endpoint in one region, which costs more */
} kli_maker_name;
kli_maker_name kli_price_name(const char *model);

/* ---- price.c ----------------------------------------------------------------------------- */

/* As kl_price_of, from one table's text on one day ("2026-01-31").  `peak`: each rate is the
 * dearest of the tiers that a prompt up to that size can fall into.  Errors: KL_ENOENT when the
 * model is not in the table, KL_EPARSE. */
KL_MUST_USE kl_err kli_price_in(kl_price *out, kl_str table, kl_str file, const char *model,
                                int64_t prompt_tokens, const char *day, bool peak, kl_error *e);

/* ---- command_reply.c: what agent programs print ------------------------------------------ */

/* The reply in the output of `claude -p --output-format json`, `codex exec --json`, `gemini
 * --output-format json` or `opencode run --format json`; any other output is the reply. Errors:
 * KL_EMODEL when the agent says that it failed. */
KL_MUST_USE kl_err kli_command_reply(kl_reply *out, kl_arena *a, kl_str output, const kl_request *q,
                                     kl_error *e);

#endif
