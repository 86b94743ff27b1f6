/* price.c - what tokens cost: a dated table, the user's own in front of it, and nothing when
 * neither knows.
 *
 *   {"schema": "klineage/prices", "version": 1, "date": "2026-11-20", "unit": "dollars per million
 * tokens", "rows": [
 *     {"model": GLOB, "valid_from": DAY, "max_prompt_tokens": N, "input": 5, "cache_read": .5,
 * "cache_write_5m": 6.25, "cache_write_1h": 10, "output": 25, "source": URL, "note": TEXT}]}
 *
 * Which row: the longest glob that matches the model (a snapshot's date at its end, -20251001 or
 * -2025-10-01, does not make another model), under its own name or its maker's (price_name.c); of
 * its rows those of the latest day that has come; of these the smallest tier into which the prompt
 * fits.  Every rate must be there: a class without a price is a class that would be free by
 * mistake.  Costs are integers and round up. Not here: batch, region and speed multipliers, because
 * no request asks for any of them. SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "model_impl.h"
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const unsigned char kl_model_prices[];
extern const size_t kl_model_prices_bytes;

#define MAX_TABLE_BYTES (1u << 20)
#define PRICE_MAX_DOLLARS                                                                          \
    100000.0 /* per million tokens: a hundred times the dearest known; more is a slip of the unit  \
              */
#define TURN_TOKENS 16 /* the frame around one turn: role, separators, tags */
#define FALLBACK_DATE "undated"
#define REGIONAL_SHARE 10 /* a cloud's endpoint in one region costs a tenth more */

/* ---- rows -------------------------------------------------------------------------------- */

typedef struct {
    const char *key;
    size_t offset;
} rate_key;

static const rate_key RATES[] = {{"input", offsetof(kl_price, input)},
                                 {"cache_read", offsetof(kl_price, cache_read)},
                                 {"cache_write_5m", offsetof(kl_price, cache_write_5m)},
                                 {"cache_write_1h", offsetof(kl_price, cache_write_1h)},
                                 {"output", offsetof(kl_price, output)}};

static int64_t *rate_at(kl_price *p, size_t i) {
    return (int64_t *)(void *)((char *)p + RATES[i].offset);
}

static bool glob_fits(const char *glob, const char *model) {
    char bare[256];
    size_t len = strlen(model);
    if (fnmatch(glob, model, 0) == 0) return true;
    if (len >= sizeof bare) return false;
    memcpy(bare, model, len + 1);
    static const char *const DATES[] = {"-20[0-9][0-9][0-9][0-9][0-9][0-9]",
                                        "-20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]"};
    static const size_t LENGTHS[] = {9, 11};
    for (size_t i = 0; i < KL_COUNT(DATES); i++)
        if (len > LENGTHS[i] && fnmatch(DATES[i], bare + len - LENGTHS[i], 0) == 0) {
            bare[len - LENGTHS[i]] = '\0';
            return fnmatch(glob, bare, 0) == 0;
        }
    return false;
}

static const char *text_in(const json_t *row, const char *key) {
    const char *s = json_string_value(json_object_get(row, key));
    return s ? s : "";
}

static int64_t tier_of(const json_t *row) {
    const int64_t n = kli_json_int_or(row, "max_prompt_tokens", INT64_MAX);
    return n > 0 ? n : INT64_MAX;
}

/* The glob and the day that count for `model`; a clock behind the whole table gets the oldest row.
 * `renamed`: the row is that of the maker's name. */
static const json_t *governing(bool *renamed, const json_t *rows, const char *model,
                               const kli_maker_name *maker, const char *day) {
    const json_t *best = NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *glob = text_in(row, "model"), *from = text_in(row, "valid_from");
        const bool own = glob_fits(glob, model);
        if (!own && !(maker->bare[0] && glob_fits(glob, maker->bare))) continue;
        const char *best_from = best ? text_in(best, "valid_from") : "";
        const size_t len = strlen(glob), best_len = best ? strlen(text_in(best, "model")) : 0;
        const bool has_come = strcmp(from, day) <= 0,
                   best_has = best && strcmp(best_from, day) <= 0;
        const bool newer = has_come != best_has ? has_come
                           : has_come           ? strcmp(from, best_from) > 0
                                                : strcmp(from, best_from) < 0;
        if (!best || len > best_len || (len == best_len && newer)) best = row, *renamed = !own;
    }
    return best;
}

static kl_err read_rates(kl_price *out, const json_t *row, kl_str file, kl_error *e) {
    for (size_t i = 0; i < KL_COUNT(RATES); i++) {
        const double dollars = kli_json_real_or(row, RATES[i].key, -1);
        if (!(dollars >= 0 && dollars <= PRICE_MAX_DOLLARS)) {
            char where[256];
            snprintf(where, sizeof where, "%.*s", KL_STR_ARG(file));
            return kl_fail(e, KL_EPARSE, where,
                           "the row \"%s\" needs \"%s\": dollars per million tokens, 0 to %.0f",
                           text_in(row, "model"), RATES[i].key, PRICE_MAX_DOLLARS);
        }
        *rate_at(out, i) = (int64_t)(dollars * 1e6 + 0.5);
    }
    return KL_OK;
}

static bool same_price(const json_t *a, const json_t *b) {
    return !strcmp(text_in(a, "model"), text_in(b, "model")) &&
           !strcmp(text_in(a, "valid_from"), text_in(b, "valid_from"));
}

/* The tier of `tokens`; with `peak` the dearest rates of that tier and of those below it. */
static kl_err read_tiers(kl_price *out, const json_t *rows, const json_t *chosen, int64_t tokens,
                         bool peak, kl_str file, kl_error *e) {
    const json_t *fit = NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (same_price(row, chosen) && tier_of(row) >= tokens &&
            (!fit || tier_of(row) < tier_of(fit)))
            fit = row;
    }
    if (!fit) return KL_ENOENT;
    kl_err err = read_rates(out, fit, file, e);
    for (size_t i = 0; !err && peak && i < json_array_size(rows); i++) {
        kl_price lower;
        const json_t *row = json_array_get(rows, i);
        if (!same_price(row, chosen) || tier_of(row) >= tier_of(fit)) continue;
        err = read_rates(&lower, row, file, e);
        for (size_t r = 0; !err && r < KL_COUNT(RATES); r++)
            if (*rate_at(&lower, r) > *rate_at(out, r)) *rate_at(out, r) = *rate_at(&lower, r);
    }
    return err;
}

static kl_err check_table(const json_t *table, kl_str file, kl_error *e) {
    char where[256];
    snprintf(where, sizeof where, "%.*s", KL_STR_ARG(file));
    if (!kl_str_eq(kli_json_text_or(table, "schema", (kl_str){0}), KL_S("klineage/prices")))
        return kl_fail(e, KL_EPARSE, where,
                       "not a price table: \"schema\" must be \"klineage/prices\"");
    if (kli_json_int_or(table, "version", 0) != 1)
        return kl_fail(e, KL_EPARSE, where, "a price table of another version than 1");
    if (!json_is_array(json_object_get(table, "rows")))
        return kl_fail(e, KL_EPARSE, where, "a price table has \"rows\", an array");
    return KL_OK;
}

kl_err kli_price_in(kl_price *out, kl_str text, kl_str file, const char *model,
                    int64_t prompt_tokens, const char *day, bool peak, kl_error *e) {
    json_t *table;
    kl_err err = kli_json_parse(&table, text, file, e);
    if (err) return err;
    *out = (kl_price){0};
    err = check_table(table, file, e);
    const json_t *rows = json_object_get(table, "rows");
    const kli_maker_name maker = kli_price_name(model);
    bool renamed = false;
    const json_t *row = err ? NULL : governing(&renamed, rows, model, &maker, day);
    if (!err) err = row ? read_tiers(out, rows, row, prompt_tokens, peak, file, e) : KL_ENOENT;
    if (!err && renamed && maker.regional)
        for (size_t i = 0; i < KL_COUNT(RATES); i++)
            *rate_at(out, i) += (*rate_at(out, i) + REGIONAL_SHARE - 1) / REGIONAL_SHARE;
    if (!err) {
        const char *date = text_in(table, "date");
        snprintf(out->model, sizeof out->model, "%s", text_in(row, "model"));
        snprintf(out->date, sizeof out->date, "%.10s", *date ? date : FALLBACK_DATE);
    }
    json_decref(table);
    return err;
}

/* ---- tables ------------------------------------------------------------------------------ */

/* The user's own table; an empty text when there is none.  A file that is named must be there. */
static kl_err own_table(kl_str *text, kl_str *path, kl_arena *a, kl_error *e) {
    const char *named = getenv("KLINEAGE_PRICES"), *config = getenv("XDG_CONFIG_HOME"),
               *home = getenv("HOME");
    *text = (kl_str){0};
    if (named && *named) {
        *path = kl_str_of(named);
        const kl_err err = kli_fs_read(text, a, named, MAX_TABLE_BYTES, e);
        if (err) kl_hint(e, "KLINEAGE_PRICES names this file; unset it to use the built-in table");
        return err == KL_ENOENT ? KL_EIO : err; /* not "unknown model" */
    }
    if (config && *config)
        *path = kl_arena_printf(a, "%s/klineage/prices.json", config);
    else
        *path = kl_arena_printf(a, "%s/.config/klineage/prices.json", home ? home : "");
    return kli_fs_exists(path->ptr) ? kli_fs_read(text, a, path->ptr, MAX_TABLE_BYTES, e) : KL_OK;
}

static kl_err find_price(kl_price *out, const char *model, int64_t tokens, bool peak, kl_error *e) {
    kl_arena *a = kl_arena_new();
    kl_str own, path, day = kli_utc_now(a);
    const kl_str built_in = {(const char *)kl_model_prices, kl_model_prices_bytes};
    const char *today = kl_arena_copy(a, (kl_str){day.ptr, day.len < 10 ? day.len : 10}).ptr;
    kl_err err = own_table(&own, &path, a, e);
    if (!err)
        err = own.len ? kli_price_in(out, own, path, model, tokens, today, peak, e) : KL_ENOENT;
    if (err == KL_ENOENT)
        err = kli_price_in(out, built_in, KL_S("prices.json"), model, tokens, today, peak, e);
    if (err == KL_ENOENT) {
        kl_fail(e, KL_ENOENT, "prices",
                "the price of '%.100s' is not known for a prompt of %lld tokens", model,
                (long long)tokens);
        kl_hint(
            e,
            "name a known model with --priced-as, or add a row to %s; a server on this machine: "
            "--model local:NAME",
            path.ptr);
    }
    kl_arena_free(a);
    return err;
}

kl_err kl_price_of(kl_price *out, const char *model, int64_t prompt_tokens, kl_error *e) {
    return find_price(out, model, prompt_tokens, false, e);
}

/* ---- costs ------------------------------------------------------------------------------- */

/* Rates are micro-dollars per million tokens; the products of five classes do not fit 64 bits for
 * hostile numbers. */
int64_t kl_price_cost(const kl_price *p, const kl_usage *u) {
    KL_ASSERT(p->input >= 0 && p->output >= 0); /* no call earns money */
    const __int128 sum = (__int128)p->input * u->input + (__int128)p->cache_read * u->cache_read +
                         (__int128)p->cache_write_5m * u->cache_write_5m +
                         (__int128)p->cache_write_1h * u->cache_write_1h +
                         (__int128)p->output * u->output;
    const __int128 cost = (sum + 999999) / 1000000;
    return cost > INT64_MAX ? INT64_MAX : cost < 0 ? 0 : (int64_t)cost;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t longest_reply(const kl_request *q) {
    return q->max_tokens ? q->max_tokens : KL_MODEL_MAX_TOKENS;
}

kl_err kl_price_bound_counted(int64_t *microusd, const char *model, const kl_usage *prompt,
                              const kl_request *q, kl_error *e) {
    kl_usage u = *prompt;
    kl_price p;
    const kl_err err = kl_price_of(&p, model, kl_usage_prompt(prompt), e);
    if (err) return err;
    u.output = longest_reply(q);
    *microusd = kl_price_cost(&p, &u);
    return KL_OK;
}

/* Turns [from, to): no tokenizer makes more of text than a token of every two bytes. */
static int64_t most_tokens(const kl_request *q, int from, int to) {
    int64_t tokens = 0;
    for (int i = from; i < to; i++)
        tokens += ((int64_t)q->messages[i].text.len + 1) / 2 + TURN_TOKENS;
    return tokens;
}

kl_err kl_price_bound(int64_t *microusd, const char *model, const kl_request *q, kl_error *e) {
    const int64_t tokens = most_tokens(q, 0, q->n);
    kl_price p;
    const kl_err err = find_price(&p, model, tokens, true, e);
    if (err) return err;
    p.input = larger(larger(p.input, p.cache_read), p.cache_write_5m);
    const kl_usage most = {.input = tokens, .output = longest_reply(q)};
    *microusd = kl_price_cost(&p, &most);
    return KL_OK;
}

kl_usage kl_usage_bound(const kl_request *q, size_t reply_bytes) {
    const int64_t longest = longest_reply(q), output = ((int64_t)reply_bytes + 1) / 2;
    int marked = 0;
    for (int i = 0; i < q->n; i++)
        if (q->messages[i].cache) marked = i + 1;
    return (kl_usage){.input = most_tokens(q, marked, q->n),
                      .cache_write_5m = most_tokens(q, 0, marked),
                      .output = output < longest ? output : longest,
                      .estimated = true};
}
_Static_assert(KL_COUNT(RATES) == 5, "a rate for every class of kl_usage");
