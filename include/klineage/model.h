/* model.h - asking a language model: one request, one reply, what it used, what that costs.
 *
 * Owns providers and the price table.  Never reads the journal, never decides whether a call may be
 * paid (run.h does), and treats every byte that comes back as data (law 7).  A provider is a row of
 * src/model/models.c: anthropic, openai, gemini, openrouter, vertex, bedrock, local, command,
 * mailbox, replay, builtin, mutate. SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_MODEL_H
#define KLINEAGE_MODEL_H

#include <klineage/rewrite.h>

KL_API_BEGIN

typedef enum { KL_ROLE_SYSTEM, KL_ROLE_USER, KL_ROLE_ASSISTANT } kl_role;

/* One turn.  `cache`: a breakpoint for the provider's prompt cache goes behind it (at most 4 in a
 * conversation). */
typedef struct {
    kl_role role;
    kl_str text;
    bool cache;
} kl_message;

typedef struct {
    const kl_message *messages;
    int n; /* system first, then user and assistant in turns, user last; append-only over a
              conversation */
    int64_t max_tokens; /* of the reply; 0: KL_MODEL_MAX_TOKENS */
    const char
        *purpose; /* "deoptimize", "rederive", "lift", "materialize", "generate": what it is for */
    const char *place; /* where in the line, "3"; part of the slot, so that a scripted replay finds
                          its way back after a detour; NULL: none */
    /* What builtin and mutate work on instead of the prose; the others ignore it. */
    const kl_kernel *subject;
    /* Where in the run it stands; set by kl_ask.  `key` is its content hash, `slot` "track/purpose
     * place/3". */
    const char *key, *slot;
    const char *priced_as; /* likewise: whose price was reserved; NULL: the model's own */
    bool system_sent; /* likewise: the system turn was answered to in this run before, by this track
                         or another, so a provider's cache has it */
} kl_request;

typedef enum { KL_STOP_END, KL_STOP_TRUNCATED, KL_STOP_REFUSED } kl_stop;

/* Tokens by the class they are billed in.  Classes do not overlap: the prompt is their sum without
 * `output`. */
typedef struct {
    int64_t input, cache_read, cache_write_5m, cache_write_1h, output;
    bool estimated; /* counted from bytes because the provider did not say */
} kl_usage;

typedef struct {
    kl_str text;
    kl_stop stop;
    kl_usage usage;
    kl_str model; /* as the provider names the one that answered */
    /* What the provider itself says it cost; -1: it does not say.  After an error: 0 where it is
     * certain that nothing was charged (turned away, never sent, not answered yet), else -1.  Then
     * `usage`, where its sum is not 0, is the most that what arrived can have cost. */
    int64_t billed_microusd;
    bool again; /* after an error: asking once more may mend it */
    int64_t wall_ns;
} kl_reply;

typedef struct kl_model kl_model;

/* Where the name for prices and the journal stands: in what it opens, behind the colon of --model,
 * or it is all that --model says. */
typedef enum { KL_NAME_INSIDE, KL_NAME_REST, KL_NAME_SPEC } kl_name_at;

typedef struct {
    const char *name; /* "anthropic" */
    const char *spec; /* "anthropic:MODEL": how --model is written */
    const char *doc;
    const char *example; /* "anthropic:claude-opus-4-6" */
    kl_name_at name_at;
    bool
        repeatable; /* asking again after a crash costs nothing: mailbox, replay, builtin, mutate */
    bool slow;      /* may answer KL_PENDING and be asked again later */
    /* `rest` is what follows the colon.  Errors: KL_EINVAL, KL_ENOENT (file, key), KL_ENODEV (no
     * libcurl, no program). */
    kl_err (*open)(void **self, kl_arena *a, const char *rest, kl_error *e);
    /* May block up to KL_MODEL_SECONDS.  Errors: KL_PENDING, KL_EMODEL (provider said no for good;
     * message says what to do), KL_EINTR, KL_EIO (the network or a file failed; a part of a reply
     * is never kept), KL_ELIMIT (a reply above KL_MAX_REPLY_BYTES), KL_EINVAL (mailbox: the answer
     * is no text), KL_ENOENT (replay: nothing recorded for this). */
    kl_err (*ask)(kl_reply *out, void *self, kl_arena *a, const kl_request *q, kl_error *e);
    void (*close)(void *self); /* NULL: nothing beyond the arena */
    const char *(*model_name)(
        const void *self); /* for prices and the journal; NULL: the provider's own name */
    /* Which slot was recorded after `slot`, among those that begin with `track` and a slash: what
     * was decided then shows in it.  "": it is the last; NULL: it is not recorded, or this is no
     * script.  The op is NULL for a provider that replays nothing. */
    const char *(*next_slot)(const void *self, const char *track, const char *slot);
    /* The tokens of a prompt, exactly as `ask` will report them; false: they are not known before
     * it is sent.  The op is NULL for a provider that never knows them. */
    bool (*counted)(kl_usage *out, const void *self, const kl_request *q);
    /* Can it be asked on this machine?  `found` says with which key or program, or what is missing:
     * variables by name, never what they hold.  The op is NULL for one that needs nothing. */
    bool (*ready)(kl_str *found, kl_arena *a);
} kl_provider;

const kl_provider *kl_provider_each(int i); /* NULL past the end */

/* `spec` "PROVIDER:REST": anthropic:claude-opus-4-6, openai:gpt-5.6-sol, gemini:gemini-3.5-flash,
 * openrouter:VENDOR/MODEL, vertex:REGION/MODEL, bedrock:REGION/MODEL, local:MODEL, command:claude
 * -p, mailbox:DIR, replay:FILE, replay:exact:FILE, builtin, mutate:SEED. Errors: KL_EINVAL (no such
 * provider, nothing behind the colon, a name that is priced as another provider's) beside those of
 * `open`. */
KL_MUST_USE kl_err kl_model_open(kl_model **out, const char *spec, kl_error *e);
void kl_model_close(kl_model *m); /* accepts NULL */
const kl_provider *kl_model_provider(const kl_model *m);
const char *kl_model_name(
    const kl_model *m); /* for prices and the journal: "claude-opus-4-6", "mailbox"; borrowed */
/* The name that `spec` itself states, so that neither key nor program is needed to read it; NULL
 * where it has to be opened. */
const char *kl_model_stated(const char *spec);
/* The model that a recording was made with, of the name of a provider that answers from it; empty
 * for every other name. */
kl_str kl_model_replayed(kl_str name);
const char *kl_model_next_slot(const kl_model *m, const char *track,
                               const char *slot); /* as the provider's; NULL without one */
bool kl_model_counted(kl_usage *out, const kl_model *m,
                      const kl_request *q); /* as the provider's; false without one */
KL_MUST_USE kl_err kl_model_ask(kl_reply *out, kl_model *m, kl_arena *a, const kl_request *q,
                                kl_error *e);

/* Can `spec` be asked and paid for?  Opens it (key, recording, program, library), asks nothing, and
 * finds the price of `priced_as` (NULL: of the model's own name).  Errors: those of kl_model_open,
 * KL_ENOENT (no price), KL_EINVAL (it costs money, and `budget_microusd` is 0). */
KL_MUST_USE kl_err kl_model_check(const char *spec, const char *priced_as, int64_t budget_microusd,
                                  kl_error *e);

/* ---- words for what came back: the journal, recordings and reports use the same ---------- */

const char *kl_stop_name(kl_stop s); /* "end" "truncated" "refused" */
bool kl_stop_parse(kl_stop *out, kl_str name);
json_t *
kl_usage_json(const kl_usage *u); /* {"input": 12, "cache_read": 0, ..., "estimated": false} */
void kl_usage_parse(kl_usage *out,
                    const json_t *o); /* what is missing, negative or no integer is 0 */

int64_t kl_usage_prompt(const kl_usage *u); /* its tokens of every class */

/* One model call as a recording keeps it: docs/formats/recording.md. */
typedef struct {
    kl_str slot, key, purpose, text, model;
    kl_stop stop;
    kl_usage usage;
    int64_t billed_microusd; /* -1: unknown */
} kl_recorded;

/* Did this call fail because a recording holds no answer for it?  A line that replays ends there,
 * in order. */
bool kl_model_recording_ended(const kl_error *e);

/* Write a recording that `replay:` answers from.  Slots must differ.  Errors: KL_EINVAL, KL_EIO. */
KL_MUST_USE kl_err kl_recording_write(const char *path, const char *model, const char *command,
                                      const char *note, const kl_recorded *calls, int n,
                                      kl_error *e);

/* ---- money ------------------------------------------------------------------------------- */

/* Micro-dollars per million tokens, of one model at one prompt size on one day. */
typedef struct {
    char model[128]; /* the row's glob */
    char date[16];   /* of the table */
    int64_t input, cache_read, cache_write_5m, cache_write_1h, output;
} kl_price;

/* Prices of `model` for a prompt of `prompt_tokens`, from $KLINEAGE_PRICES or
 * $XDG_CONFIG_HOME/klineage/prices.json first, then the table that is built in
 * (src/model/prices.json, dated).  Errors: KL_ENOENT: unknown, and unknown refuses. */
KL_MUST_USE kl_err kl_price_of(kl_price *out, const char *model, int64_t prompt_tokens,
                               kl_error *e);
int64_t kl_price_cost(const kl_price *p, const kl_usage *u); /* micro-dollars, rounded up */
/* Upper bound of what a request can cost: every byte pair of the prompt a token (and 16 a turn for
 * its frame), all of them in the dearest class that is ever asked for (a cache of an hour is not),
 * and max_tokens of output, at the dearest tier that a prompt up to that size can fall into. */
KL_MUST_USE kl_err kl_price_bound(int64_t *microusd, const char *model, const kl_request *q,
                                  kl_error *e);
/* The same where the prompt's tokens are known before it is sent: exactly those, and max_tokens of
 * output. */
KL_MUST_USE kl_err kl_price_bound_counted(int64_t *microusd, const char *model,
                                          const kl_usage *prompt, const kl_request *q, kl_error *e);
/* The most that a reply of so many bytes can have used, by the rules of kl_price_bound, marked
 * estimated: what is charged where a provider does not say. */
kl_usage kl_usage_bound(const kl_request *q, size_t reply_bytes);
/* What such a reply is likely to have used: bytes / 4, everything uncached, marked estimated. */
kl_usage kl_usage_estimate(const kl_request *q, kl_str reply);
/* The same as a provider with a prompt cache would count it: up to the last breakpoint written, and
 * read where the conversation has been there before (all but its last two turns), or another of the
 * run with the same system turn.  No time to live is modelled. */
kl_usage kl_usage_estimate_cached(const kl_request *q, kl_str reply);

KL_API_END
#endif
