/* cmd_cost.c - `klineage cost`: the ledger, by workload, policy and phase.
 *
 * Every number is a sum over rows of the ledger.  What may have been charged and was never answered
 * (lost) stands apart: it is what a cap was held against, not what is known to be spent.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "base/json.h"
#include <klineage/model.h>
#include <string.h>

typedef struct {
    kl_str run, workload, policy, phase;
    int64_t calls, billed, lost,
        open; /* billed: of the calls, those whose cost the provider named */
    kl_usage used;
    int64_t settled_microusd, lost_microusd, open_microusd;
} sum;

typedef struct {
    kl_arena *arena;
    sum *rows;
    size_t n;
    sum total;
} cmd_cost_ledger;

/* ---- sums -------------------------------------------------------------------------------- */

static sum *row_for(cmd_cost_ledger *l, const kl_store_charge *c, bool by_run) {
    sum key = {.run = c->run};
    if (!by_run) {
        key.workload = c->workload;
        key.policy = c->policy;
        key.phase = c->phase;
    }
    for (size_t i = 0; i < l->n; i++) {
        sum *s = &l->rows[i];
        if (kl_str_eq(s->run, key.run) && kl_str_eq(s->workload, key.workload) &&
            kl_str_eq(s->policy, key.policy) && kl_str_eq(s->phase, key.phase))
            return s;
    }
    sum *row = KL_PUSH(l->arena, l->rows, l->n);
    *row = key;
    return row;
}

static void cmd_cost_add(sum *s, const kl_store_charge *c) {
    bool settled = kl_str_eq(c->state, KL_S("settled"));
    bool lost = kl_str_eq(c->state, KL_S("lost")), reserved = kl_str_eq(c->state, KL_S("reserved"));
    s->calls += settled;
    s->lost += lost;
    s->open += reserved;
    s->lost_microusd += lost ? c->reserved_microusd : 0;
    s->open_microusd += reserved ? c->reserved_microusd : 0;
    if (!settled) return;
    s->billed += kl_str_eq(c->price_date, KL_S("billed"));
    s->settled_microusd += c->settled_microusd;
    s->used.input += c->input;
    s->used.cache_read += c->cache_read;
    s->used.cache_write_5m += c->cache_write_5m;
    s->used.cache_write_1h += c->cache_write_1h;
    s->used.output += c->output;
    s->used.estimated |= c->estimated;
}

/* Share of the prompts that came out of the provider's cache. */
static double hit_rate(const sum *s) {
    const kl_usage *u = &s->used;
    const int64_t prompt = kl_usage_prompt(u);
    return prompt > 0 ? (double)u->cache_read / (double)prompt : 0;
}

/* ---- showing ----------------------------------------------------------------------------- */

static kl_str described(kl_arena *a, const sum *s, bool by_run) {
    if (by_run) return kl_arena_printf(a, "%.12s", s->run.ptr);
    return kl_arena_printf(a, "%-16.*s %-10.*s %-12.*s", KL_STR_ARG(s->workload),
                           KL_STR_ARG(s->policy), KL_STR_ARG(s->phase));
}

static void show_row(kl_buf *out, kl_str what, int width, const sum *s) {
    const kl_usage *u = &s->used;
    kl_buf_printf(out, "%-*.*s %6lld %10lld %10lld %10lld %9lld %5.0f%%  %s$%.4f", width,
                  KL_STR_ARG(what), (long long)s->calls, (long long)u->input,
                  (long long)u->cache_read, (long long)(u->cache_write_5m + u->cache_write_1h),
                  (long long)u->output, 100 * hit_rate(s), u->estimated ? "~" : "",
                  (double)s->settled_microusd * 1e-6);
    if (s->lost)
        kl_buf_printf(out, "  + %lld lost, up to $%.4f", (long long)s->lost,
                      (double)s->lost_microusd * 1e-6);
    if (s->open)
        kl_buf_printf(out, "  + %lld open, up to $%.4f", (long long)s->open,
                      (double)s->open_microusd * 1e-6);
    kl_buf_printf(out, "\n");
}

static json_t *cmd_cost_row_json(const sum *s, bool by_run) {
    json_t *o = json_object();
    json_object_set_new(o, "run", kli_json_str(s->run));
    if (!by_run) {
        json_object_set_new(o, "workload", kli_json_str(s->workload));
        json_object_set_new(o, "policy", kli_json_str(s->policy));
        json_object_set_new(o, "phase", kli_json_str(s->phase));
    }
    json_object_set_new(o, "calls", json_integer(s->calls));
    json_object_set_new(o, "billed", json_integer(s->billed));
    json_object_set_new(o, "usage", kl_usage_json(&s->used));
    json_object_set_new(o, "hit_rate", kli_json_real(hit_rate(s)));
    json_object_set_new(o, "microusd", json_integer(s->settled_microusd));
    json_object_set_new(o, "lost", json_integer(s->lost));
    json_object_set_new(o, "lost_microusd", json_integer(s->lost_microusd));
    json_object_set_new(o, "open", json_integer(s->open));
    json_object_set_new(o, "open_microusd", json_integer(s->open_microusd));
    return o;
}

static void cmd_cost_show(kli_command_result *out, const cmd_cost_ledger *l, bool by_run) {
    int width = by_run ? 12 : 40;
    json_t *rows = json_array();
    if (!l->n)
        kl_buf_printf(&out->text,
                      "no model calls; klineage walk, lift, admit and optimize make them\n");
    else
        kl_buf_printf(&out->text, "%-*s %6s %10s %10s %10s %9s %6s  %s\n", width,
                      by_run ? "run" : "workload, policy, phase", "calls", "input", "cached",
                      "written", "output", "hits", "dollars");
    for (size_t i = 0; i < l->n; i++) {
        show_row(&out->text, described(l->arena, &l->rows[i], by_run), width, &l->rows[i]);
        json_array_append_new(rows, cmd_cost_row_json(&l->rows[i], by_run));
    }
    if (l->n > 1) show_row(&out->text, KL_S("total"), width, &l->total);
    if (l->total.used.estimated)
        kl_buf_printf(&out->text,
                      "~ partly estimated from bytes: the provider did not report tokens\n");
    if (l->total.billed)
        kl_buf_printf(
            &out->text,
            "%lld of %lld calls cost what the provider said; the others, tokens times the "
            "price table\n",
            (long long)l->total.billed, (long long)l->total.calls);
    if (l->total.lost)
        kl_buf_printf(
            &out->text,
            "lost: sent but not answered completely (crash, broken connection); counted at the "
            "maximum cost\n");
    out->json = json_pack("{ss si so so}", "schema", "klineage/cost", "version", 1, "rows", rows,
                          "total", cmd_cost_row_json(&l->total, true));
}

kl_err kli_cmd_cost(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    kl_store *store = NULL;
    kl_store_run run = {0};
    kl_store_charge *rows = NULL;
    size_t n = 0;
    bool by_run = args->n_words == 0;
    kl_err err = kli_journal_open(&store, c->arena, args, e);
    if (!err && !by_run) err = kl_store_run_find(&run, store, c->arena, args->words[0], e);
    if (!err) err = kl_store_charge_list(&rows, &n, store, c->arena, by_run ? NULL : run.id.ptr, e);
    kl_store_close(store);
    if (err) return err;
    cmd_cost_ledger l = {.arena = c->arena};
    for (size_t i = 0; i < n; i++) {
        cmd_cost_add(row_for(&l, &rows[i], by_run), &rows[i]);
        cmd_cost_add(&l.total, &rows[i]);
    }
    KL_ASSERT(l.n <= n);
    cmd_cost_show(out, &l, by_run);
    return KL_OK;
}
