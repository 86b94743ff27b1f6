/* models.c - the table of providers, and the one door through which every question goes.
 *
 * What holds for all of them is checked here: a conversation that makes sense on the way in, text
 * of a bearable size on the way out. Not here: whether a call may be paid (run/), what a reply
 * means (rewrite/). SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/log.h"
#include "model_impl.h"
#include <string.h>

static const kl_provider *const PROVIDERS[] = {
    &kli_anthropic, &kli_openai,  &kli_gemini,  &kli_openrouter, &kli_vertex,  &kli_bedrock,
    &kli_local,     &kli_command, &kli_mailbox, &kli_replay,     &kli_builtin, &kli_mutate};

struct kl_model {
    kl_arena *arena;
    const kl_provider *provider;
    void *self;
};

const kl_provider *kl_provider_each(int i) {
    return i >= 0 && (size_t)i < KL_COUNT(PROVIDERS) ? PROVIDERS[i] : NULL;
}

static const kl_provider *models_find(kl_str name) {
    for (size_t i = 0; i < KL_COUNT(PROVIDERS); i++)
        if (kl_str_eq(name, kl_str_of(PROVIDERS[i]->name))) return PROVIDERS[i];
    return NULL;
}

/* Which provider was meant by somebody who wrote the model's name alone. */
static const char *guess(const char *spec) {
    static const struct {
        const char *starts, *provider;
    } FAMILIES[] = {{"claude ", "command"},    {"codex", "command"},
                    {"gemini ", "command"},    {"opencode", "command"},
                    {"claude", "anthropic"},   {"gpt", "openai"},
                    {"gemini", "gemini"},      {"anthropic/", "openrouter"},
                    {"openai/", "openrouter"}, {"google/", "openrouter"},
                    {"./", "command"},         {"/", "mailbox"}};
    for (size_t i = 0; i < KL_COUNT(FAMILIES); i++)
        if (!strncmp(spec, FAMILIES[i].starts, strlen(FAMILIES[i].starts)))
            return FAMILIES[i].provider;
    return NULL;
}

static kl_err models_unknown(const char *spec, kl_str name, kl_error *e) {
    kl_buf list = {0};
    for (size_t i = 0; i < KL_COUNT(PROVIDERS); i++)
        kl_buf_printf(&list, "%s%s", i ? ", " : "", PROVIDERS[i]->spec);
    kl_fail(e, KL_EINVAL, "--model", "unknown model provider '%.*s'; known: %s", KL_STR_ARG(name),
            list.ptr);
    kl_buf_fini(&list);
    const char *meant = guess(spec);
    for (size_t i = 0; !meant && name.len >= 2 && i < KL_COUNT(PROVIDERS); i++)
        if (!strncmp(PROVIDERS[i]->name, name.ptr, 2)) {
            const char *colon = strchr(spec, ':');
            return kl_hint(e, "did you mean --model '%s%s'?", PROVIDERS[i]->name,
                           colon ? colon : "");
        }
    if (meant && !strchr(spec, ':'))
        return kl_hint(e, "did you mean --model '%s:%s'?", meant, spec);
    return kl_hint(e, "without a network or a key: --model builtin");
}

/* The rows of the price table for those that cost nothing are named after providers. */
static kl_err check_name(const kl_provider *p, const char *rest, kl_error *e) {
    const kl_str first = {rest, strcspn(rest, ":")};
    if (p->name_at != KL_NAME_REST || !(models_find(first) || kl_str_starts(first, KL_S("replay"))))
        return KL_OK;
    kl_fail(e, KL_EINVAL, "--model", "'%s:%.200s' would be priced as what it is not", p->name,
            rest);
    return kl_hint(
        e, "a name on a wire may not begin with a provider's; --model '%.200s' asks that", rest);
}

const char *kl_model_stated(const char *spec) {
    const char *colon = strchr(spec, ':');
    const kl_provider *p = colon ? models_find((kl_str){spec, (size_t)(colon - spec)}) : NULL;
    if (!p || !colon[1] || p->name_at == KL_NAME_INSIDE) return NULL;
    return p->name_at == KL_NAME_SPEC ? spec : colon + 1;
}

kl_err kl_model_open(kl_model **out, const char *spec, kl_error *e) {
    const char *colon = strchr(spec, ':');
    const kl_str name = {spec, colon ? (size_t)(colon - spec) : strlen(spec)};
    const kl_provider *p = models_find(name);
    if (!p) return models_unknown(spec, name, e);
    const bool wants_rest = strchr(p->spec, ':') != NULL;
    if (wants_rest && (!colon || !colon[1]))
        return kl_fail(e, KL_EINVAL, "--model", "'%s' is incomplete; the form is %s", spec,
                       p->spec);
    if (!wants_rest && colon)
        return kl_fail(e, KL_EINVAL, "--model", "nothing follows '%s'", p->name);
    if (colon && check_name(p, colon + 1, e)) return KL_EINVAL;
    kl_arena *a = kl_arena_new();
    kl_model *m = KL_NEW(a, kl_model);
    *m = (kl_model){.arena = a, .provider = p};
    const kl_err err =
        p->open(&m->self, a, kl_arena_copy(a, kl_str_of(colon ? colon + 1 : "")).ptr, e);
    if (err)
        kl_arena_free(a);
    else
        *out = m;
    return err;
}

void kl_model_close(kl_model *m) {
    if (!m) return;
    if (m->provider->close) m->provider->close(m->self);
    kl_arena_free(m->arena);
}

const kl_provider *kl_model_provider(const kl_model *m) { return m->provider; }

const char *kl_model_name(const kl_model *m) {
    return m->provider->model_name ? m->provider->model_name(m->self) : m->provider->name;
}

const char *kl_model_next_slot(const kl_model *m, const char *track, const char *slot) {
    return m->provider->next_slot ? m->provider->next_slot(m->self, track, slot) : NULL;
}

bool kl_model_counted(kl_usage *out, const kl_model *m, const kl_request *q) {
    return m->provider->counted && m->provider->counted(out, m->self, q);
}

/* A caller that gets this wrong has a bug; the text of the turns is nobody's fault. */
static void check_request(const kl_request *q) {
    KL_ASSERT(q->n > 0 && q->messages);
    KL_ASSERT(q->messages[q->n - 1].role == KL_ROLE_USER);
    KL_ASSERT(q->max_tokens >= 0);
    bool talking = false;
    for (int i = 0; i < q->n; i++) {
        KL_ASSERT(q->messages[i].role != KL_ROLE_SYSTEM || !talking);
        talking = talking || q->messages[i].role != KL_ROLE_SYSTEM;
    }
}

static kl_err check_reply(const kl_model *m, const kl_reply *r, kl_error *e) {
    if (r->text.len > KL_MAX_REPLY_BYTES)
        return kl_fail(e, KL_ELIMIT, m->provider->name,
                       "the reply has %zu bytes; at most %u are taken", r->text.len,
                       KL_MAX_REPLY_BYTES);
    if (r->text.len && memchr(r->text.ptr, '\0', r->text.len))
        return kl_fail(e, m->provider->slow ? KL_EINVAL : KL_EMODEL, m->provider->name,
                       "the reply is no text: it has NUL bytes");
    return KL_OK;
}

kl_err kl_model_ask(kl_reply *out, kl_model *m, kl_arena *a, const kl_request *q, kl_error *e) {
    check_request(q);
    kl_request asked = *q;
    if (!asked.max_tokens) asked.max_tokens = KL_MODEL_MAX_TOKENS;
    if (!asked.purpose) asked.purpose = "";
    const int64_t began = kli_now_ns();
    *out = (kl_reply){.billed_microusd = -1};
    if (kli_interrupted() &&
        !m->provider->repeatable) { /* nothing was sent, so nothing is charged */
        out->billed_microusd = 0;
        return kl_fail(e, KL_EINTR, m->provider->name, "interrupted before the model was asked");
    }
    kl_err err = m->provider->ask(out, m->self, a, &asked, e);
    if (!err) err = check_reply(m, out, e);
    if (err) /* a part of a reply is no reply */
        *out = (kl_reply){
            .usage = out->usage, .billed_microusd = out->billed_microusd, .again = out->again};
    out->wall_ns = kli_now_ns() - began;
    return err;
}

static bool models_is_free(const kl_price *p) {
    return !p->input && !p->output && !p->cache_read && !p->cache_write_5m && !p->cache_write_1h;
}

kl_err kl_model_check(const char *spec, const char *priced_as, int64_t budget_microusd,
                      kl_error *e) {
    kl_model *m = NULL;
    kl_price price;
    kl_err err = kl_model_open(&m, spec, e);
    if (err) return err;
    const char *name = priced_as ? priced_as : kl_model_name(m);
    err = kl_price_of(&price, name, 0, e);
    if (!err && !models_is_free(&price) && budget_microusd <= 0) {
        err = kl_fail(e, KL_EINVAL, "--budget", "%s charges for calls, and the budget is $0", name);
        kl_hint(e, "--budget 5 spends at most five dollars");
    }
    kl_model_close(m);
    return err;
}
