/* ask.c - a question to a model: looked up, else reserved, asked, kept and settled, and only then
 * used.
 *
 *   key -> journal ----------------------------------------------> reply        a hit costs
 * nothing, and counts what it cost then
 *           '-> price -> reserve -> ask -> settle -> journal -----> reply        law 6, law 8
 *                           ^        |-> nothing was charged: release
 *                           |        |-> it broke off: counts for what arrived, and is asked again
 * (a reservation of its own)
 *                           '--------'-> perhaps charged: lost, counts in full
 *
 * A reply is always read back from the journal, also the first time, so that nobody can use one
 * that was not kept.  Messages and replies are blobs: a conversation that only grows is stored
 * once. Not here: prices, wires (model/), the sums against the caps (store/charge.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/run_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BUSY_TRIES 12 /* of 5 s each: many tracks may write at once, and an answer is paid for */
#define MAX_TOKENS_SAID (1 << 30) /* of one class; what is above is no count of tokens */
#define FIRST_PAUSE_NS                                                                             \
    500000000 /* before a reply that broke off is asked for again; twice as long each time */
#define ASK_SLICE_NS 50000000 /* ^C is seen this soon meanwhile */

typedef struct {
    kli_track *t;
    kl_request q;   /* with key, slot and the default of max_tokens */
    kl_str content; /* hash of what is asked */
    kl_str counted; /* purpose and place: what the slot says */
    kl_str purpose; /* the same, as a thing to count */
    int64_t ordinal;
    int64_t longest; /* tokens of the reply that the line asks for; what is sent may say less */
    char key[65];
} ask_question;

static const char *const ROLES[] = {"system", "user", "assistant"};
_Static_assert(KL_COUNT(ROLES) == KL_ROLE_ASSISTANT + 1, "a name for every role");

/* ---- what is asked ----------------------------------------------------------------------- */

static kl_str ask_content_of(kl_arena *a, const kl_request *q) {
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, kl_str_of(q->purpose));
    kli_hasher_add(&h, kl_arena_printf(a, "%lld", (long long)q->max_tokens));
    for (int i = 0; i < q->n; i++) {
        kli_hasher_add(&h, kl_str_of(ROLES[q->messages[i].role]));
        kli_hasher_add(&h, q->messages[i].cache ? KL_S("cache") : KL_S(""));
        kli_hasher_add(&h, q->messages[i].text);
    }
    return kl_arena_copy(a, kl_str_of(kli_hasher_end(&h).hex));
}

static ask_question question_of(kli_track *t, const kl_request *q) {
    ask_question c = {.t = t, .q = *q};
    if (!c.q.max_tokens) c.q.max_tokens = KL_MODEL_MAX_TOKENS;
    if (!c.q.purpose) c.q.purpose = "";
    c.longest = c.q.max_tokens;
    c.content = ask_content_of(t->base.arena, &c.q);
    c.counted = kl_arena_printf(t->base.arena, "%s%s%s", c.q.purpose, c.q.place ? " " : "",
                                c.q.place ? c.q.place : "");
    c.purpose = kl_arena_printf(t->base.arena, "purpose %s", c.counted.ptr);
    c.ordinal = kli_count_of(t, c.purpose);
    kli_effect_key(c.key, t, "ask", c.content);
    c.q.key = kl_arena_copy(t->base.arena, kl_str_of(c.key)).ptr;
    c.q.slot = kl_arena_printf(t->base.arena, "%s/%s/%lld", t->spec->name, c.counted.ptr,
                               (long long)c.ordinal)
                   .ptr;
    return c;
}

static kl_err keep_request(kl_str *json, const ask_question *c, kl_error *e) {
    json_t *messages = json_array();
    kl_err err = KL_OK;
    for (int i = 0; !err && i < c->q.n; i++) {
        char hash[65] = "";
        const kl_message *m = &c->q.messages[i];
        err = kl_store_blob_put(hash, c->t->run->store, m->text, e);
        json_t *turn = json_pack("{ss ss}", "role", ROLES[m->role], "text", hash);
        if (m->cache) json_object_set_new(turn, "cache", json_true());
        json_array_append_new(messages, turn);
    }
    json_t *o = json_pack("{so sI so}", "purpose", kli_json_str(kl_str_of(c->q.purpose)),
                          "max_tokens", (json_int_t)c->q.max_tokens, "messages", messages);
    *json = kli_json_dump(c->t->base.arena, o, false);
    json_decref(o);
    return err;
}

/* ---- what came back ---------------------------------------------------------------------- */

static kl_err ask_read_answer(kl_reply *out, int64_t *cost, kli_track *t, kl_arena *a,
                              const kl_store_effect *f, kl_error *e) {
    json_t *o;
    kl_str text;
    kl_err err = kli_json_parse(&o, f->answer, KL_S("journal"), e);
    if (err) return err;
    *out = (kl_reply){.model = kl_arena_copy(a, kli_json_text_or(o, "model", (kl_str){0})),
                      .billed_microusd = kli_json_int_or(o, "billed_microusd", -1),
                      .wall_ns = kli_json_int_or(o, "wall_ns", 0)};
    *cost = kli_json_int_or(o, "cost_microusd", 0);
    kl_usage_parse(&out->usage, json_object_get(o, "usage"));
    if (!kl_stop_parse(&out->stop, kli_json_text_or(o, "stop", (kl_str){0})))
        err =
            kl_fail(e, KL_EPARSE, "journal", "effect %.12s has no stop that is known", f->key.ptr);
    if (!err) err = kli_json_text(&text, o, "text", KL_S("journal"), e);
    if (!err) err = kl_store_blob_get(&out->text, t->run->store, a, text, e);
    json_decref(o);
    return err;
}

/* Errors: KL_ENOENT when it was not answered yet. */
static kl_err ask_from_journal(kl_reply *out, ask_question *c, kl_arena *a, kl_error *e) {
    kl_store_effect f;
    int64_t cost = 0;
    kl_err err = kl_store_effect_get(&f, c->t->run->store, c->t->base.arena, c->key, e);
    if (err) return err;
    err = ask_read_answer(out, &cost, c->t, a, &f, e);
    if (err == KL_ENOENT)
        err = kl_fail(e, KL_EIO, "journal", "effect %.12s was answered, but its text is gone",
                      c->key);
    if (err) return err;
    kli_count_up(c->t, c->content);
    kli_count_up(c->t, c->purpose);
    c->t->base.spent_microusd += cost;
    return KL_OK;
}

static kl_str answer_json(kl_arena *a, const kl_reply *r, const char *text, int64_t cost) {
    json_t *o = json_pack("{ss ss so so sI sI sI}", "text", text, "stop", kl_stop_name(r->stop),
                          "model", kli_json_str(r->model), "usage", kl_usage_json(&r->usage),
                          "billed_microusd", (json_int_t)r->billed_microusd, "cost_microusd",
                          (json_int_t)cost, "wall_ns", (json_int_t)r->wall_ns);
    kl_str json = kli_json_dump(a, o, false);
    json_decref(o);
    return json;
}

/* ---- who answers ------------------------------------------------------------------------- */

static kl_err ask_open_own(kli_track *t, kl_error *e) {
    const char *colon = t->run->opts.model ? strchr(t->run->opts.model, ':') : NULL;
    const kl_provider *p = t->run->opts.provider;
    if (t->own_open) return KL_OK;
    kl_err err = p->open ? p->open(&t->own, t->keep, colon ? colon + 1 : "", e) : KL_OK;
    t->own_open = err == KL_OK;
    return err;
}

static kl_err open_model(kli_track *t, kl_error *e) {
    if (t->run->opts.provider) return ask_open_own(t, e);
    if (t->model) return KL_OK;
    if (t->no_model->code) return *e = *t->no_model, e->code;
    if (!t->run->opts.model) {
        kl_fail(e, KL_EINVAL, t->spec->name, "this step needs a model, and none was named");
        return kl_hint(e, "--model anthropic:NAME, or without a network or a key: --model builtin; "
                          "klineage help models");
    }
    return kl_model_open(&t->model, t->run->opts.model, e);
}

static const kl_provider *provider_of(const kli_track *t) {
    return t->run->opts.provider ? t->run->opts.provider : kl_model_provider(t->model);
}

static const char *ask_model_name(const kli_track *t) {
    const kl_provider *p = t->run->opts.provider;
    if (!p) return kl_model_name(t->model);
    return p->model_name ? p->model_name(t->own) : p->name;
}

const char *kli_effect_model(const kl_track *base) {
    const kli_track *t = kli_of_const(base);
    const char *spec = t->run->opts.model;
    kl_model *m = NULL;
    if (!spec) return "";
    if (t->model || t->own_open) return ask_model_name(t);
    if (t->run->opts.provider) return t->run->opts.provider->name;
    if (kl_model_stated(spec)) return kl_model_stated(spec);
    if (kl_model_open(&m, spec, t->no_model))
        return kl_arena_printf(t->keep, "%.*s", (int)strcspn(spec, ":"), spec).ptr;
    const char *name = kl_arena_copy(t->keep, kl_str_of(kl_model_name(m))).ptr;
    kl_model_close(m);
    return name;
}

static bool prompt_counted(kl_usage *out, const kli_track *t, const kl_request *q) {
    const kl_provider *own = t->run->opts.provider;
    if (!own) return kl_model_counted(out, t->model, q);
    return own->counted && own->counted(out, t->own, q);
}

static kl_err ask_provider(kl_reply *out, ask_question *c, kl_error *e) {
    const kl_provider *own = c->t->run->opts.provider;
    if (!own) return kl_model_ask(out, c->t->model, c->t->base.arena, &c->q, e);
    *out = (kl_reply){.billed_microusd = -1};
    return own->ask(out, c->t->own, c->t->base.arena, &c->q, e);
}

/* ---- what the provider has in its cache --------------------------------------------------- */

/* What says that a system turn was answered to in this run: providers keep prefixes, whoever sends
 * them.  A blob, so that it holds across processes and is found at once. */
static kl_str system_mark(const ask_question *q) {
    const kl_hash h = kli_hash_of(q->q.messages[0].text);
    return kl_arena_printf(q->t->base.arena, "system turn of run %s: %s", q->t->run->id, h.hex);
}

static bool system_was_sent(const ask_question *q) {
    kl_str unused;
    const kl_hash mark = kli_hash_of(system_mark(q));
    return kl_store_blob_get(&unused, q->t->run->store, q->t->base.arena, kl_str_of(mark.hex),
                             kl_ignored()) == KL_OK;
}

static kl_err mark_system_sent(const ask_question *q, kl_error *e) {
    char hash[65];
    return kl_store_blob_put(hash, q->t->run->store, system_mark(q), e);
}

/* ---- money ------------------------------------------------------------------------------- */

static void clamp(int64_t *n) { *n = *n < 0 ? 0 : *n > MAX_TOKENS_SAID ? MAX_TOKENS_SAID : *n; }

/* What a provider says of itself is checked: an answer without a single token would be free by
 * mistake. */
static void mend_usage(kl_reply *r, const kl_request *q) {
    kl_usage *u = &r->usage;
    int64_t *classes[] = {&u->input, &u->cache_read, &u->cache_write_5m, &u->cache_write_1h,
                          &u->output};
    int64_t sum = 0;
    for (size_t i = 0; i < KL_COUNT(classes); i++) {
        clamp(classes[i]);
        sum += *classes[i];
    }
    if (!sum) *u = kl_usage_bound(q, r->text.len);
    if (r->billed_microusd < -1) r->billed_microusd = -1;
}

/* The provider's own bill, else the table; what was reserved where neither can be had; the row says
 * which.  `price` outlives the charge. */
static int64_t ask_cost_of(kl_store_charge *c, const kl_reply *r, kl_price *price) {
    const kl_usage *u = &r->usage;
    c->price_date = KL_S("billed");
    if (r->billed_microusd >= 0) return r->billed_microusd;
    kl_err err = kl_price_of(price, c->priced_as.ptr, kl_usage_prompt(u), kl_ignored());
    c->price_date = err ? (kl_str){0} : kl_str_of(price->date);
    return err ? c->reserved_microusd : kl_price_cost(price, u);
}

static kl_err bound_of(int64_t *microusd, const ask_question *q, const kl_store_charge *c,
                       int64_t tokens, kl_error *e) {
    kl_request r = q->q;
    kl_usage prompt;
    r.max_tokens = tokens;
    return prompt_counted(&prompt, q->t, &r)
               ? kl_price_bound_counted(microusd, c->priced_as.ptr, &prompt, &r, e)
               : kl_price_bound(microusd, c->priced_as.ptr, &r, e);
}

/* The longest reply that was asked for, or as long a one as the money left pays for: a bound grows
 * evenly with its tokens. */
static kl_err ask_reserve(kl_store_charge *c, ask_question *q, kl_error *e) {
    const kl_run_opts *o = &q->t->run->opts;
    const int64_t most = q->longest,
                  least = most < KL_MODEL_LEAST_TOKENS ? most : KL_MODEL_LEAST_TOKENS;
    int64_t full = 0;
    kl_err err = bound_of(&full, q, c, most, e);
    if (!err) err = bound_of(&c->least_microusd, q, c, least, e);
    if (err) return err;
    c->reserved_microusd = full;
    err = KL_EBUSY;
    for (int i = 0; err == KL_EBUSY && i < BUSY_TRIES; i++)
        err = kl_store_reserve(q->t->run->store, c, provider_of(q->t)->repeatable,
                               o->budget_microusd, o->total_microusd, e);
    const double share = full > c->least_microusd
                             ? (double)(c->reserved_microusd - c->least_microusd) /
                                   (double)(full - c->least_microusd)
                             : 1;
    q->q.max_tokens = least + (int64_t)(share * (double)(most - least));
    KL_ASSERT(err || (c->reserved_microusd >= 0 && c->reserved_microusd <= full)); /* law 6 */
    KL_ASSERT(q->q.max_tokens <= most);
    return err;
}

/* What the call used and cost.  `price` outlives the charge. */
static void ask_take_cost(kl_store_charge *c, const ask_question *q, kl_reply *r, kl_price *price) {
    mend_usage(r, &q->q);
    c->settled_microusd = ask_cost_of(c, r, price);
    c->input = r->usage.input;
    c->cache_read = r->usage.cache_read;
    c->cache_write_5m = r->usage.cache_write_5m;
    c->cache_write_1h = r->usage.cache_write_1h;
    c->output = r->usage.output;
    c->estimated = r->usage.estimated;
}

static kl_err ask_settle(ask_question *q, kl_store_charge *c, kl_reply *r, kl_str request,
                         kl_error *e) {
    char text[65];
    kl_price price;
    kli_track *t = q->t;
    kl_err err = KL_EBUSY;
    ask_take_cost(c, q, r, &price);
    kl_store_effect f = {.key = kl_str_of(q->key),
                         .run = c->run,
                         .track = c->track,
                         .kind = KL_S("ask"),
                         .purpose = q->counted,
                         .ordinal = q->ordinal,
                         .request = request};
    for (int i = 0; err == KL_EBUSY && i < BUSY_TRIES; i++) {
        err = kl_store_blob_put(text, t->run->store, r->text, e);
        if (!err) err = mark_system_sent(q, e);
        if (err) continue;
        f.answer = answer_json(t->base.arena, r, text, c->settled_microusd);
        err = kl_store_settle(t->run->store, &f, c, e);
    }
    if (err && !e->hint[0])
        kl_hint(e, "the answer was paid for but could not be stored; its reservation remains");
    return err;
}

/* ---- asking ------------------------------------------------------------------------------ */

static bool used_something(const kl_usage *u) { return kl_usage_prompt(u) + u->output > 0; }

/* The call failed.  What surely was not charged goes; where it is known what arrived, the most that
 * this can have cost stays; else all. */
static kl_err let_go(const ask_question *q, kl_store_charge *c, kl_err why, kl_reply *r,
                     kl_error *e) {
    kl_price price;
    kl_store *s = q->t->run->store;
    if (why == KL_PENDING || provider_of(q->t)->repeatable || r->billed_microusd == 0)
        return kl_store_release(s, q->key, e);
    if (!used_something(&r->usage)) return kl_store_lose(s, q->key, e);
    ask_take_cost(c, q, r, &price);
    return kl_store_break_off(s, c, e);
}

/* Twice, since a disk that was full for a moment must not leave money reserved that nobody owes. */
static void give_up(const ask_question *q, kl_store_charge *c, kl_err why, kl_reply *r) {
    kl_error unused = {0};
    kl_err err = let_go(q, c, why, r, &unused);
    if (err) err = let_go(q, c, why, r, &unused);
    if (err)
        kli_debug("%s: %s", unused.where,
                  unused.message); /* still reserved, which is the careful side */
}

/* Before the next try.  Errors: KL_EINTR. */
static kl_err pause_before(const kli_track *t, int tries, kl_error *e) {
    const int64_t until = kli_now_ns() + ((int64_t)FIRST_PAUSE_NS << (tries - 1));
    kl_err err;
    while (!(err = kli_check_interrupt(t, e)) && kli_now_ns() < until)
        nanosleep(&(struct timespec){.tv_nsec = ASK_SLICE_NS}, NULL);
    return err;
}

/* Each try has a reservation of its own, so no number of them passes a cap. */
static kl_err ask_until_whole(ask_question *q, kl_store_charge *c, kl_str request, kl_error *e) {
    for (int tries = 1;; tries++) {
        kl_reply reply;
        kl_err err = ask_reserve(c, q, e);
        if (err) return err;
        err = ask_provider(&reply, q, e);
        if (!err) return ask_settle(q, c, &reply, request, e);
        give_up(q, c, err, &reply);
        if (!reply.again || tries > KL_MODEL_RETRIES) return err;
        kl_track_log(&q->t->base, "%s; asking again (%d of %d)", e->message, tries,
                     KL_MODEL_RETRIES);
        err = pause_before(q->t, tries, e);
        if (err) return err;
        *e = (kl_error){0};
    }
}

static kl_err ask_live(ask_question *q, kl_error *e) {
    kli_track *t = q->t;
    kl_str request;
    KL_ASSERT(!t->journal_only); /* law 8: who goes through a line again asks nobody */
    kl_err err = kli_check_interrupt(t, e);
    if (!err) err = kli_pending_check_write(t, e);
    if (!err) err = open_model(t, e);
    if (err) return err;
    const kl_run_opts *o = &t->run->opts;
    kl_store_charge charge = {.effect = kl_str_of(q->key),
                              .run = kl_str_of(t->run->id),
                              .track = kl_str_of(t->spec->name),
                              .workload = kl_str_of(t->spec->workload),
                              .policy = kl_str_of(t->spec->policy),
                              .phase = kl_str_of(t->base.phase),
                              .model = kl_str_of(ask_model_name(t)),
                              .lease = t->lease};
    charge.priced_as = o->priced_as ? kl_str_of(o->priced_as) : charge.model;
    q->q.priced_as = charge.priced_as.ptr;
    q->q.system_sent = system_was_sent(q);
    err = keep_request(&request, q, e);
    return err ? err : ask_until_whole(q, &charge, request, e);
}

kl_err kli_effect_ask(kl_reply *out, kl_track *base, kl_arena *a, const kl_request *q,
                      kl_error *e) {
    kli_track *t = kli_of(base);
    kl_error local = {0};
    ask_question c = question_of(t, q);
    kl_err err = ask_from_journal(out, &c, a, &local);
    if (err == KL_ENOENT) {
        local = (kl_error){0};
        if (t->journal_only) return kli_fail_recall(t, c.key, e);
        t->live = true;
        err = ask_live(&c, &local);
        if (err)
            kli_fail_remember(t, c.key, err, &local);
        else
            err = ask_from_journal(out, &c, a, &local);
    }
    if (!err) t->slot = c.q.slot;
    if (err && e) *e = local;
    return err;
}

/* ---- what a recording shows -------------------------------------------------------------- */

/* Providers that replay nothing are not opened for it: a key may be missing where the journal
 * answers everything. */
static bool may_replay(const kli_track *t) {
    const char *spec = t->run->opts.model;
    const kl_provider *p = t->run->opts.provider;
    if (p) return p->next_slot != NULL;
    for (int i = 0; spec && (p = kl_provider_each(i)); i++)
        if (kl_str_eq(kl_str_of(p->name), (kl_str){spec, strcspn(spec, ":")}))
            return p->next_slot != NULL;
    return false;
}

const char *kli_effect_recorded_next(kl_track *base, const char *slot) {
    kli_track *t = kli_of(base);
    const char *track = t->spec->name, *next;
    const size_t behind = strlen(track) + 1;
    if (!may_replay(t) || !(slot || t->slot) || open_model(t, kl_ignored())) return NULL;
    const char *asked = slot ? kl_arena_printf(t->base.arena, "%s/%s", track, slot).ptr : t->slot;
    if (t->run->opts.provider)
        next = t->run->opts.provider->next_slot(t->own, track, asked);
    else
        next = kl_model_next_slot(t->model, track, asked);
    return next && *next ? next + behind : next;
}
