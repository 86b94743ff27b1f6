/* lift.c - a group of edges becomes a candidate card.
 *
 * What can be computed is computed: contract, scope, expected gain, births, patch, the table of
 * what failed.  What only words can say (intent, anchor, the carrier's explanation, prose of
 * preconditions and risks) comes from the model; where it says nothing, the walk's own words stand.
 * Source: KLineage paper, section 3.3.  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

#define MAX_CARRIER 16000 /* bytes; a card stays below 5000 tokens */
#define LIFT_MAX_PROSE 4000
#define LIFT_MAX_RISKS 12000 /* prose and the attempts that failed */
#define MAX_DESCRIPTION 1024
#define LIFT_MAX_CONTEXT 24000 /* of one birth's code in the prompt */

typedef struct {
    kl_arena *arena;
    const kl_group *group;
    kl_card *card;
} lift_ctx;

static const kl_lineage *lineage_of(const lift_ctx *l, int i) {
    return l->group->births[i].lineage;
}
static const kl_edge *edge_of(const lift_ctx *l, int i) {
    return &lineage_of(l, i)->edges[l->group->births[i].edge];
}

/* The birth with the largest gain: its edit is the carrier. */
static int best_birth(const lift_ctx *l) {
    KL_ASSERT(l->group->n_births > 0);
    int best = 0;
    for (int i = 1; i < l->group->n_births; i++)
        if (edge_of(l, i)->gain > edge_of(l, best)->gain) best = i;
    return best;
}

/* ---- contract ---------------------------------------------------------------------------- */

/* Traits that rose in every birth; "+" where one had it before. */
static kl_str provides(const lift_ctx *l) {
    kl_str words = {0}, rest = l->group->raised;
    for (kl_str w; kli_next_word(&w, &rest);) {
        bool before = false;
        for (int i = 0; i < l->group->n_births; i++)
            before |= kl_trait(&edge_of(l, i)->before, w) > 0;
        words = kli_words_with(l->arena, words,
                               before ? kl_arena_printf(l->arena, "%.*s+", KL_STR_ARG(w)) : w);
    }
    return words;
}

static bool in_every_start(const lift_ctx *l, kl_str trait) {
    for (int i = 0; i < l->group->n_births; i++)
        if (!(kl_trait(&edge_of(l, i)->before, trait) > 0)) return false;
    return true;
}

/* Witnesses of the actions that usually come before, as far as every birth had them: what this one
 * was seen to build on. */
static kl_str requires_of(const lift_ctx *l) {
    kl_str words = {0}, after = kl_str_of(l->group->action ? l->group->action->after : "");
    for (kl_str id; kli_next_word(&id, &after);) {
        const kl_action *earlier = kl_action_find(id);
        kl_str witness = kl_str_of(earlier ? earlier->witness : "");
        for (kl_str w; kli_next_word(&w, &witness);)
            if (kl_str_starts(w, KL_S("source.")) && in_every_start(l, w))
                words = kli_words_with(l->arena, words, w);
    }
    return words;
}

/* ---- scope ------------------------------------------------------------------------------- */

static void scope_of_births(const lift_ctx *l, kl_scope *s) {
    for (int i = 0; i < l->group->n_births; i++) {
        const kl_lineage *from = lineage_of(l, i);
        kli_names_add(&s->cases, l->arena, from->case_name);
        kli_names_add(&s->surfaces, l->arena, from->surface);
        kli_names_add(&s->platforms, l->arena, from->platform);
        for (int j = 0; j < l->group->births[i].edge; j++)
            kli_names_add(&s->prior, l->arena, from->edges[j].action);
    }
}

/* Lower-case letters, digits, '_' and '-': what cases are called. */
static bool is_case_name(kl_str w) {
    for (size_t i = 0; i < w.len; i++)
        if (!islower((unsigned char)w.ptr[i]) && !isdigit((unsigned char)w.ptr[i]) &&
            w.ptr[i] != '_' && w.ptr[i] != '-')
            return false;
    return w.len <= KL_MAX_NAME;
}

/* "cases: gemm conv2d" lines that the model adds to what is declared; verified scope is never asked
 * for. */
static void declared_by_model(const lift_ctx *l, kl_str text) {
    kl_scope *s = &l->card->declared;
    for (kl_str line; kli_next_line(&line, &text);) {
        line = kl_str_trim(line);
        if (kl_str_starts(line, KL_S("- "))) line = kli_from(line, 2);
        if (!kl_str_starts(line, KL_S("cases:"))) continue;
        kl_str rest = kli_from(line, 6);
        for (kl_str w; kli_next_word(&w, &rest) && s->cases.n < 32;)
            if (is_case_name(w)) kli_names_add(&s->cases, l->arena, w);
    }
}

/* ---- evidence ---------------------------------------------------------------------------- */

/* The gain is that of K_to over K_from, so these two and the verdict that timed one against the
 * other are named. */
static kl_trial_record birth_record(const lift_ctx *l, int i) {
    const kl_lineage *from = lineage_of(l, i);
    const kl_edge *edge = edge_of(l, i);
    return (kl_trial_record){.kind = KL_S("birth"),
                             .task = from->task,
                             .workload = from->workload,
                             .surface = from->surface,
                             .platform = from->platform,
                             .model = from->model,
                             .start_hash = from->states[edge->from].hash,
                             .start_name =
                                 kl_arena_printf(l->arena, "%.*s/%.*s", KL_STR_ARG(from->name),
                                                 KL_STR_ARG(from->states[edge->from].name)),
                             .result_hash = from->states[edge->to].hash,
                             .verdict_key = edge->gain_verdict_key,
                             .receipt = edge->gain_receipt,
                             .accepted = true,
                             .outcome = KL_S("pass"),
                             .gain = edge->gain,
                             .low = edge->gain_low,
                             .high = edge->gain_high,
                             .noise = edge->noise,
                             .call = kl_str_of(kl_decision_name(edge->call)),
                             .expected = edge->gain,
                             .tries = 1,
                             .estimated = from->estimated,
                             .created = from->created};
}

static void births(const lift_ctx *l) {
    kl_card *c = l->card;
    c->expected_gain = INFINITY;
    for (int i = 0; i < l->group->n_births; i++) {
        kl_trial_record r = birth_record(l, i);
        kli_card_add_trial(c, l->arena, &r);
        c->lineages = kli_words_with(l->arena, c->lineages, lineage_of(l, i)->id);
        if (r.gain < c->expected_gain) c->expected_gain = r.gain;
    }
    KL_ASSERT(isfinite(c->expected_gain));
}

/* ---- words ------------------------------------------------------------------------------- */

static void list_rejections(kl_buf *out, const kl_rejection *r, int n) {
    for (int i = 0; i < n; i++)
        kl_buf_printf(out, "- seen: %.*s at %.*s: %.*s\n", KL_STR_ARG(r[i].action),
                      KL_STR_ARG(r[i].locus), KL_STR_ARG(r[i].symptom));
}

static kl_str lift_taken(kl_arena *a, kl_buf *b) {
    kl_str text = kl_arena_copy(a, kl_str_trim(kl_buf_str(b)));
    kl_buf_fini(b);
    return text;
}

static kl_str risks(const lift_ctx *l, kl_str prose) {
    kl_buf b = {0};
    kl_buf_printf(&b, "%.*s\n\n", KL_STR_ARG(prose));
    if (l->group->action && *l->group->action->risks)
        kl_buf_printf(&b, "- codes: %s (docs/method.md)\n", l->group->action->risks);
    for (int i = 0; i < l->group->n_births; i++)
        list_rejections(&b, edge_of(l, i)->rejections, edge_of(l, i)->n_rejections);
    return kli_section_clean(l->arena, lift_taken(l->arena, &b),
                             LIFT_MAX_RISKS); /* a lineage may come from elsewhere */
}

static kl_str effect(const lift_ctx *l, kl_str prose) {
    kl_buf b = {0};
    kl_buf_printf(&b, "%.*s\n\n", KL_STR_ARG(prose));
    for (int i = 0; i < l->group->n_births; i++) {
        const kl_edge *edge = edge_of(l, i);
        kl_buf_printf(
            &b, "- %.*s on %.*s, %.*s: %.3gx [%.3g, %.3g] over the state before; rose: %.*s\n",
            KL_STR_ARG(lineage_of(l, i)->task), KL_STR_ARG(lineage_of(l, i)->platform),
            KL_STR_ARG(lineage_of(l, i)->workload), edge->gain, edge->gain_low, edge->gain_high,
            KL_STR_ARG(edge->raised));
    }
    return lift_taken(l->arena, &b);
}

static kl_str carrier(const lift_ctx *l, kl_str prose) {
    int best = best_birth(l);
    const kl_edge *edge = edge_of(l, best);
    bool fits =
        edge->forward.len <= MAX_CARRIER && !memmem(edge->forward.ptr, edge->forward.len, "```", 3);
    kl_str forward = fits ? edge->forward : KL_S("(longer than a card can hold: see the lineage)");
    kl_buf b = {0};
    kl_buf_printf(&b, "%.*s\n\nThe edit as it was gated, from %.*s of %.*s:\n\n```\n%.*s\n```",
                  KL_STR_ARG(prose), KL_STR_ARG(lineage_of(l, best)->states[edge->from].name),
                  KL_STR_ARG(lineage_of(l, best)->name), KL_STR_ARG(forward));
    return lift_taken(l->arena, &b);
}

/* What and when, key words first, as Agent Skills asks. */
static kl_str description(const lift_ctx *l) {
    const kl_card *c = l->card;
    kl_str intent = kli_text_cut(kli_before(c->intent, '\n'), 600);
    kl_str text = kl_arena_printf(
        l->arena,
        "%.*s Use it on %.*s kernels such as %.*s; measured %.3gx at least where it was learned.",
        KL_STR_ARG(intent), KL_STR_ARG(l->group->surface),
        KL_STR_ARG(kli_names_text(l->arena, &c->verified.cases)), c->expected_gain);
    return kli_text_cut(text, MAX_DESCRIPTION);
}

static kl_str said_or(const lift_ctx *l, kl_str reply, const char *name, kl_str otherwise) {
    kl_str said = kli_section(reply, name);
    return kli_section_clean(l->arena, said.len ? said : otherwise, LIFT_MAX_PROSE);
}

static void write_up(const lift_ctx *l, kl_str reply) {
    kl_card *c = l->card;
    const kl_action *action = l->group->action;
    const kl_edge *best = edge_of(l, best_birth(l));
    kl_str carrier_prose = kli_section(reply, "Carrier");
    c->intent = said_or(l, reply, "Intent", action ? kl_str_of(action->forward) : best->why);
    c->anchor = said_or(l, reply, "Anchor", best->locus);
    c->carrier = carrier(l, kli_section_clean(l->arena, carrier_prose, MAX_CARRIER / 2));
    c->effect = effect(l, said_or(l, reply, "Effect", KL_S("")));
    c->risks = risks(l, said_or(l, reply, "Risks", KL_S("")));
    c->n_pre = kli_predicates_parse(&c->pre, l->arena, kli_section(reply, "Preconditions"));
    if (!c->n_pre && action) {
        c->pre = KL_NEW(l->arena, kl_predicate);
        c->pre[c->n_pre++] =
            (kl_predicate){.kind = KL_PRE_PIPELINE, .prose = kl_str_of(action->needs)};
    }
    declared_by_model(l, kli_section(reply, "Scope"));
    c->description = description(l);
}

/* ---- the model --------------------------------------------------------------------------- */

static kl_str edges_text(const lift_ctx *l) {
    kl_buf b = {0};
    for (int i = 0; i < l->group->n_births && i < 4; i++) {
        const kl_edge *edge = edge_of(l, i);
        const kl_lineage *from = lineage_of(l, i);
        kl_buf_printf(
            &b, "### Transition %d: %.*s, %.*s, %.*s\n\nlocus: %.*s\nwhy (of the undoing): %.*s\n",
            i + 1, KL_STR_ARG(from->task), KL_STR_ARG(from->surface), KL_STR_ARG(from->platform),
            KL_STR_ARG(edge->locus), KL_STR_ARG(edge->why));
        kl_buf_printf(&b,
                      "gain: %.3gx [%.3g, %.3g]; traits that rose: %.*s\nrejected on the way:\n",
                      edge->gain, edge->gain_low, edge->gain_high, KL_STR_ARG(edge->raised));
        list_rejections(&b, edge->rejections, edge->n_rejections);
        kl_buf_printf(&b, "\nbefore:\n```\n%.*s\n```\n\nforward edit:\n```\n%.*s\n```\n\n",
                      KL_STR_ARG(kli_cut(from->states[edge->from].source, LIFT_MAX_CONTEXT)),
                      KL_STR_ARG(kli_cut(edge->forward, LIFT_MAX_CONTEXT)));
    }
    return lift_taken(l->arena, &b);
}

#define FACTS                                                                                      \
    "dtype case language platform arch simd_bits cores, and traits such as source.vector_types"

static kl_err lift_ask(const lift_ctx *l, kl_track *t, kl_str *text, kl_error *e) {
    kl_arena *a = l->arena;
    const kl_action *action = l->group->action;
    kl_prompt_value values[] = {
        {"action", l->group->id},
        {"forward", kl_str_of(action ? action->forward : "an action outside of the vocabulary")},
        {"needs", kl_str_of(action ? action->needs : "unknown")},
        {"risks", kl_str_of(action ? action->risks : "unknown")},
        {"facts", KL_S(FACTS)},
        {"edges", edges_text(l)}};
    kl_message messages[] = {
        {KL_ROLE_SYSTEM, kl_prompt(a, "lift_rules", values, 0), true},
        {KL_ROLE_USER, kl_prompt(a, "lift", values, (int)KL_COUNT(values)), false}};
    kl_request q = {.messages = messages, .n = 2, .max_tokens = 4000, .purpose = "lift"};
    kl_reply reply;
    kl_err err = kl_ask(&reply, t, a, &q, e);
    if (err && e && kl_model_recording_ended(e)) {
        kl_track_log(t, "%.*s: no recorded reply; using the text of the walk",
                     KL_STR_ARG(l->group->name));
        return *text = KL_S(""), KL_OK;
    }
    *text = !err && reply.stop == KL_STOP_END ? reply.text : KL_S("");
    return err;
}

kl_err kl_skill_lift(kl_card **out, kl_track *t, const kl_group *g, kl_error *e) {
    kl_arena *a = kl_track_arena(t);
    kl_card *c = *out = KL_NEW(a, kl_card);
    lift_ctx l = {.arena = a, .group = g, .card = c};
    kl_str reply = {0};
    *c = (kl_card){.name = g->name, .action = g->id, .status = KL_CARD_LIFTED};
    kl_track_phase(t, "lift");
    kl_track_log(t, "lifting %.*s from %d transitions", KL_STR_ARG(g->name), g->n_births);
    kl_err err = lift_ask(&l, t, &reply, e);
    if (err) return err;
    c->required = requires_of(&l);
    c->provides = provides(&l);
    c->patch = edge_of(&l, best_birth(&l))->forward;
    c->before = edge_of(&l, best_birth(&l))->before;
    births(&l);
    kli_contract_of_births(c, l.arena, g);
    scope_of_births(&l, &c->verified);
    scope_of_births(&l, &c->declared);
    write_up(&l, reply);
    return KL_OK;
}
