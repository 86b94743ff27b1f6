/* evolve.c - policies evolve and evolve-cards: a population on islands, one child a round, kept
 * when it is better than what is known of its kind.
 *
 * evolve, source: Kernel-Smith (arXiv 2603.28342), on the program that it is built on, OpenEvolve.
 * Of Kernel-Smith: 40 rounds, a MAP-Elites archive over kernel complexity and overall score,
 * islands, prompts with the whole execution feedback and programs from the top and from diverse
 * regions, EVOLVE-BLOCK ranges.  Of OpenEvolve: exploitation .7, exploration .2, 3 top programs and
 * 2 diverse ones, share .1 migrates. Deviations, each for a reason:
 *   - Edges are fixed: size in half powers of two of the tokens, score relative to the start
 * (SCORES).  Ranges that follow what was seen move programs from cell to cell after the fact.
 *   - 3 islands, and a generation is one round of one island: migration every 8 of them, so that
 * there is some within 40.
 *   - A program that loses its cell is not in its island; what became of it is told to its parent's
 * next prompt.  Clones are never added.
 *   - Parents: the best quarter of the island, the cells least often drawn from, or any member.
 * Never from another island.
 *   - The start has passed the gate, so something correct always exists.  Repairing (FIX) is what
 * happens to a failed parent; it is drawn like any other, and with p_fix while an island has
 * nothing correct but the start.  Failures are ordered by how far they came.
 *   - Other programs, correct ones alone, are shown as differences to the parent, bounded.
 * Temperature and top-p are the provider's.
 *   - Rounds end early at the roof, the goal or the money; patience counts only when it was asked
 * for.
 *   - With axes 1, compiled features stand in for size: width of vectors (or matrix units) and
 * level of the memory hierarchy.
 *
 * evolve-cards: the same with skills as mutation operators.  The cards that fit the parent are
 * drawn from by expected gain per dollar, less those that failed in this track; a patch that
 * applies verbatim is tried first, for nothing; every failure with a card is shown as its risk from
 * then on.
 *
 * Not here: the archive (archive.c), enforcement of ranges (blocks.c), measures over runs (the
 * report).  SPDX-License-Identifier: Apache-2.0 */
#include "archive.h"
#include "peers.h"
#include <math.h>
#include <string.h>

#define MAX_FREE 64 /* patches of one track: they cost nothing, and they must end */
#define EVOLVE_MAX_RISKS 8
#define SHOWN_BYTES 2400  /* of another program */
#define FAILED_BYTES 1500 /* of the verdict and of the difference of a child that was not kept */
#define EVOLVE_WHY_BYTES 240
#define SCORE_WRONG 0.05
#define SCORE_CORRECT 0.1 /* the least of a correct one */
#define SCORE_STAGE 0.02  /* between a failure at the first stage and one at the last */

static const double EVOLVE_SIZES[] = {6,  7,    7.5, 8,    8.5, 9,  9.5,
                                      10, 10.5, 11,  11.5, 12,  13, 14}; /* log2 of tokens */
static const double SCORES[] = {0.025, 0.075, 0.5, 0.8,
                                1,     1.2,   2}; /* failed, wrong, then speed over the start's */
static const double EVOLVE_LEVELS[] = {1, 2, 3};
static const kli_axis SIZE_AXES[] = {{"size", EVOLVE_SIZES, KL_COUNT(EVOLVE_SIZES)},
                                     {"score", SCORES, KL_COUNT(SCORES)}};
static const kli_axis FEATURE_AXES[] = {{"vectors", EVOLVE_LEVELS, KL_COUNT(EVOLVE_LEVELS)},
                                        {"memory", EVOLVE_LEVELS, KL_COUNT(EVOLVE_LEVELS)},
                                        {"score", SCORES, KL_COUNT(SCORES)}};

#define COMMON_PARAMS                                                                              \
    {"rounds", 40, 1, KL_MAX_PROPOSALS,                                                            \
     "children that are asked for; --max-steps bounds them "                                       \
     "too"},                                                                                       \
        {"islands", 3, 1, KLI_MAX_ISLANDS,                                                         \
         "populations that know of each other by migration "                                       \
         "alone"},                                                                                 \
        {"migrate_every", 8, 1, KL_MAX_PROPOSALS, "rounds between migrations"},                    \
        {"migrate_share", 0.1, 0, 1, "of an island's programs, at least one"},                     \
        {"p_top", 0.7, 0, 1, "chance that a parent comes from the best of its island"},            \
        {"p_diverse", 0.2, 0, 1,                                                                   \
         "chance that it comes from the cells least often drawn from; "                            \
         "else any"},                                                                              \
        {"top_share", 0.25, 0, 1, "of an island's programs that count as its best"},               \
        {"p_fix", 0.5, 0, 1,                                                                       \
         "chance of a failed parent while an island has nothing correct but "                      \
         "the start"},                                                                             \
        {"top_programs", 3, 0, KLI_MAX_SHOWN, "shown beside the parent"},                          \
        {"diverse", 2, 0, KLI_MAX_SHOWN, "shown from cells far away"}, {                           \
        "axes", 0, 0, 1,                                                                           \
            "0: size and score; 1: vectors, memory and score, read from the "                      \
            "kernel's traits"                                                                      \
    }

const kl_policy_param kli_evolve_params[] = {COMMON_PARAMS, {NULL, 0, 0, 0, NULL}};
const kl_policy_param kli_evolve_cards_params[] = {
    COMMON_PARAMS,
    {"p_free", 0.3, 0, 1, "chance of a round without a card"},
    {NULL, 0, 0, 0, NULL}};

/* One that the archive knows, by its id. */
typedef struct {
    kli_point point; /* the kernel is there also when it failed */
    double score;
    bool correct;
    kl_str action;       /* that made it */
    kl_str prior, cards; /* actions and cards on the way from the start */
    kl_str patches;      /* cards whose patch was tried on it */
    kl_str failed;       /* its last child that was not kept, and why */
} evolve_program;

/* What a card did in this track. */
typedef struct {
    const kl_card *card;
    int tried, failed;
    kl_str why; /* of the last failure */
} evolve_record;

typedef struct {
    kl_search *s;
    bool with_cards;
    kli_archive *archive;
    evolve_program *at;
    int n;
    evolve_record *records;
    int n_records;
    kl_str system;
    kl_stream parents, fixes, operators; /* value i belongs to round i */
    int islands, every, round, patched;
    int done; /* rounds in a row in which the model said that nothing is left */
} evolution;

static double evolve_param(const evolution *v, const char *name) {
    return kli_search_param(v->s, name);
}
static int evolve_whole(const evolution *v, const char *name) {
    return (int)(evolve_param(v, name) + 0.5);
}

/* ---- where a program stands -------------------------------------------------------------- */

static double trait(const evolve_program *p, const char *name) {
    return kl_trait(&p->point.traits, kl_str_of(name));
}

/* Axis "vectors":  c: widest vector register that the compiled code uses, 0 none, 1 128 bits, 2
 * 256, 3 512. devices: 0 none, 1 vector accesses or types, 2 mma, 3 wgmma. */
static double vector_level(const evolve_program *p) {
    const double bits = trait(p, "code.vector_bits");
    if (bits > 0) return bits >= 512 ? 3 : bits >= 256 ? 2 : bits >= 128;
    if (trait(p, "code.wgmma") + trait(p, "source.wgmma") > 0) return 3;
    if (trait(p, "code.mma_sync") + trait(p, "source.mma") > 0) return 2;
    return trait(p, "code.vector128") + trait(p, "source.vector_types") > 0;
}

/* Axis "memory": 0 nothing, 1 blocked loops or arrays of a function's own, 2 buffers or shared
 * memory, 3 transfers that are started ahead or go around the caches. */
static double memory_level(const evolve_program *p) {
    if (trait(p, "code.cp_async") + trait(p, "code.tma") + trait(p, "source.async_copies") +
            trait(p, "source.tma") + trait(p, "code.prefetch") + trait(p, "code.store_nt") >
        0)
        return 3;
    if (trait(p, "source.shared_arrays") + trait(p, "source.buffers") > 0) return 2;
    return trait(p, "source.blocked_loops") + trait(p, "source.local_arrays") > 0;
}

/* Failures by how far they came, wrong results above them, correct ones by their speed over the
 * start's. */
static double evolve_score_of(const evolution *v, const evolve_program *p) {
    const kl_verdict *verdict = &p->point.verdict;
    const bool nearly =
        verdict->outcome == KL_OUTCOME_WRONG || verdict->outcome == KL_OUTCOME_UNSTABLE;
    const double speed = v->s->start.ratio > 0 ? p->point.ratio / v->s->start.ratio : 0;
    if (!p->correct)
        return (nearly ? SCORE_WRONG : 0) + SCORE_STAGE * (double)verdict->stage / KL_STAGE_DONE;
    if (verdict->outcome != KL_OUTCOME_PASS) return SCORE_CORRECT; /* and not timed */
    return speed > SCORE_CORRECT ? speed : SCORE_CORRECT;          /* not NaN either */
}

static kli_member member_of(const evolution *v, const evolve_program *p) {
    const double tokens = trait(p, "source.tokens");
    kli_member m = {.score = p->score};
    memcpy(m.hash, p->point.kernel->hash, sizeof m.hash);
    if (evolve_whole(v, "axes"))
        memcpy(m.feature, (double[]){vector_level(p), memory_level(p), p->score},
               3 * sizeof *m.feature);
    else
        memcpy(m.feature, (double[]){log2(tokens + 1), p->score}, 2 * sizeof *m.feature);
    return m;
}

/* The archive numbers what it knows from 0, one after the other. */
static void evolve_remember(evolution *v, int id, const evolve_program *p) {
    KL_ASSERT(id == v->n);
    *KL_PUSH(v->s->arena, v->at, v->n) = *p;
}

/* ---- prompts ----------------------------------------------------------------------------- */

static kl_str evolve_cut(const evolution *v, kl_str text, size_t most) {
    const kl_str clean = kli_prose_clean(v->s->arena, text, most);
    return text.len > most ? kl_arena_printf(v->s->arena, "%.*s\n[cut]", KL_STR_ARG(clean)) : clean;
}

/* Without the names of files: a start may lie anywhere on this machine. */
static kl_str difference(const evolution *v, const evolve_program *from, const evolve_program *to) {
    const kl_str diff = kl_kernel_diff(v->s->arena, from->point.kernel, to->point.kernel);
    const char *hunk = diff.len ? memmem(diff.ptr, diff.len, "\n@@", 3) : NULL;
    return hunk ? (kl_str){hunk + 1, (size_t)(diff.ptr + diff.len - hunk) - 1} : KL_S("");
}

/* From one program to another, or the other itself where that is shorter. */
static void add_difference(const evolution *v, kl_buf *b, const evolve_program *from,
                           const evolve_program *to) {
    const kl_str diff = difference(v, from, to), text = to->point.kernel->source;
    const bool shorter = diff.len && diff.len < text.len;
    const kl_str tag = shorter ? KL_S("diff") : kli_search_tag(v->s);
    kl_buf_printf(b, " %s:\n\n```%.*s\n%.*s\n```\n",
                  shorter ? "From the current program to it" : "Its source", KL_STR_ARG(tag),
                  KL_STR_ARG(evolve_cut(v, shorter ? diff : text, SHOWN_BYTES)));
}

static kl_str evolve_standing(const evolution *v, const evolve_program *p) {
    const kl_verdict *verdict = &p->point.verdict;
    if (!p->correct)
        return kl_arena_printf(v->s->arena, "It fails the gate: %s.",
                               kl_outcome_name(verdict->outcome));
    return kl_arena_printf(v->s->arena, "%.4g x the start's speed; %.*s.", p->score,
                           KL_STR_ARG(kli_search_describe(v->s, &p->point)));
}

static void add_shown(const evolution *v, kl_buf *b, const evolve_program *parent, const int *ids,
                      int n, const char *what) {
    for (int i = 0; i < n; i++) {
        const evolve_program *p = &v->at[ids[i]];
        kl_buf_printf(b, "\n%s. %.*s", what, KL_STR_ARG(evolve_standing(v, p)));
        if (p->action.len) kl_buf_printf(b, " Made by `%.*s`.", KL_STR_ARG(p->action));
        add_difference(v, b, parent, p);
    }
}

static kl_str others_text(evolution *v, int island, int parent) {
    kli_search_shown shown;
    kl_buf b = {0};
    kli_archive_show(&shown, v->archive, island, parent, SCORE_CORRECT,
                     evolve_whole(v, "top_programs"), evolve_whole(v, "diverse"));
    if (!shown.n_top && !shown.n_diverse) return KL_S("");
    kl_buf_printf(&b, "\n# Other programs of the population\n");
    add_shown(v, &b, &v->at[parent], shown.top, shown.n_top, "Among the fastest");
    add_shown(v, &b, &v->at[parent], shown.diverse, shown.n_diverse, "Built differently");
    return kl_buf_take(&b, v->s->arena);
}

static kl_str failed_text(const evolution *v, const evolve_program *p) {
    if (!p->failed.len) return KL_S("");
    return kl_arena_printf(v->s->arena, "\n# Its last child that was not kept\n\n%.*s",
                           KL_STR_ARG(p->failed));
}

static void add_risks(const evolution *v, kl_buf *b) {
    int n = 0;
    for (int i = 0; i < v->n_records && n < EVOLVE_MAX_RISKS; i++) {
        const evolve_record *r = &v->records[i];
        if (!r->failed) continue;
        if (!n++) kl_buf_printf(b, "\n# Risks of cards, seen in this search\n\n");
        kl_buf_printf(b, "- %.*s: failed %d of %d times; the last time: %.*s\n",
                      KL_STR_ARG(r->card->name), r->failed, r->tried, KL_STR_ARG(r->why));
    }
}

static kl_str card_text(evolution *v, const kl_match *m) {
    kl_buf b = {0};
    if (m) {
        const kl_str card = kl_card_prompt(v->s->arena, m->card);
        const kl_str why =
            m->why.len ? kl_arena_printf(v->s->arena, "\nOf its fit: %.*s\n", KL_STR_ARG(m->why))
                       : KL_S("");
        const kl_str shown =
            kl_arena_printf(v->s->arena, "%.*s\n%.*s", KL_STR_ARG(why), KL_STR_ARG(card));
        kl_prompt_value values[] = {{"name", m->card->name}, {"text", shown}};
        kl_buf_add(&b, kl_prompt(v->s->arena, "evolve_card", values, (int)KL_COUNT(values)));
    }
    add_risks(v, &b);
    return kl_buf_take(&b, v->s->arena);
}

static kl_str evolve_question(evolution *v, int island, int parent, const kl_match *card) {
    const evolve_program *p = &v->at[parent];
    kl_prompt_value values[] = {
        {"goal",
         p->correct
             ? KL_S("Make the current program faster.")
             : KL_S("The current program fails the gate. Repair it, and keep what makes it fast.")},
        {"state", kl_arena_printf(v->s->arena, "%.*s The best of this search: %.*s.",
                                  KL_STR_ARG(evolve_standing(v, p)),
                                  KL_STR_ARG(kli_search_describe(v->s, &v->s->best)))},
        {"failed", failed_text(v, p)},
        {"others", others_text(v, island, parent)},
        {"card", v->with_cards ? card_text(v, card) : KL_S("")}};
    return kli_search_prompt(v->s, "evolve", &p->point, values, KL_COUNT(values));
}

/* The same bytes for the whole search: rules, cards, how it works, the task. */
static kl_str evolve_system_text(evolution *v) {
    const kl_str rules = kli_search_rules(v->s), cards = kli_cards_text(v->s);
    const kl_str how = kli_search_prompt(v->s, "evolve_system", &v->s->start, NULL, 0);
    return kl_arena_printf(v->s->arena, "%.*s\n%.*s\n%.*s", KL_STR_ARG(rules), KL_STR_ARG(cards),
                           KL_STR_ARG(how));
}

/* ---- cards as operators ------------------------------------------------------------------ */

static evolve_record *evolve_record_of(evolution *v, const kl_card *card) {
    for (int i = 0; i < v->n_records; i++)
        if (v->records[i].card == card) return &v->records[i];
    evolve_record *r = KL_PUSH(v->s->arena, v->records, v->n_records);
    r->card = card;
    return r;
}

static double weight(evolution *v, const kl_match *m, double least) {
    const double score = m->score > least ? m->score : least;
    return (m->fit == KL_FIT_MET ? 1 : 0.5) * score / (1 + evolve_record_of(v, m->card)->failed);
}

/* Values 2 round and 2 round + 1 of the stream.  No card is below a twentieth of the best one's
 * chance: estimates are what they are. */
static bool draw_card(evolution *v, kl_match *out, int parent) {
    kl_match *m;
    const uint64_t at = 2 * (uint64_t)v->round;
    double total = 0, least = 0;
    if (!v->with_cards || !v->at[parent].correct) return false; /* what fails is repaired first */
    if (kli_stream_uniform(v->operators, at) < evolve_param(v, "p_free")) return false;
    const int n = kli_cards_match(v->s, &m, &v->at[parent].point, v->at[parent].prior);
    for (int i = 0; i < n; i++) least = fmax(least, m[i].score / 20);
    if (!(least > 0)) least = 1;
    for (int i = 0; i < n; i++) total += weight(v, &m[i], least);
    double left = kli_stream_uniform(v->operators, at + 1) * total;
    for (int i = 0; i < n; i++) {
        *out = m[i];
        if ((left -= weight(v, &m[i], least)) < 0) break;
    }
    return n > 0;
}

/* The card that a proposal applied: the one that it names, else the one that it was asked to apply
 * when it did the same action. */
static const kl_card *card_of(const evolution *v, const kli_outcome *o, const kl_card *asked) {
    const kl_card *named = v->with_cards ? kli_cards_named(v->s, o->proposal.card) : NULL;
    return named ? named : asked && kl_str_eq(o->proposal.action, asked->action) ? asked : NULL;
}

static void note(evolution *v, const kl_card *card, const kli_outcome *o) {
    if (!card || o->ended == KLI_NO_EDIT) return;
    evolve_record *r = evolve_record_of(v, card);
    r->tried++;
    if (o->ended != KLI_FAILED) return;
    kl_str why, rest = kli_prose_clean(v->s->arena, o->verdict.why, EVOLVE_WHY_BYTES);
    if (!kl_str_cut(&why, &rest, '\n')) why = rest;
    r->failed++;
    r->why = kl_arena_printf(v->s->arena, "%s: %.*s", kl_outcome_name(o->verdict.outcome),
                             KL_STR_ARG(why));
}

/* ---- what becomes of a child ------------------------------------------------------------- */

/* The parent's next prompt tells of it; `child` NULL: nothing was made. */
static void evolve_reject(evolution *v, int parent, const kli_outcome *o,
                          const evolve_program *child, const char *why) {
    kl_buf b = {0};
    const kl_proposal *p = &o->proposal;
    const kl_str feedback = evolve_cut(v, o->feedback, FAILED_BYTES);
    if (p->action.len) kl_buf_printf(&b, "`%.*s`: ", KL_STR_ARG(p->action));
    kl_buf_printf(&b, "%s\n\n%.*s\n", why, KL_STR_ARG(kli_prose_quote(v->s->arena, feedback)));
    if (child) {
        const kl_str diff = evolve_cut(v, difference(v, &v->at[parent], child), FAILED_BYTES);
        kl_buf_printf(&b, "\n```diff\n%.*s\n```\n", KL_STR_ARG(diff));
    }
    v->at[parent].failed = kl_buf_take(&b, v->s->arena);
}

static bool make_child(evolution *v, evolve_program *out, int parent, const kli_outcome *o,
                       const kl_card *card) {
    const evolve_program *p = &v->at[parent];
    *out = (evolve_program){
        .point = o->point, .correct = o->ended != KLI_FAILED, .action = o->proposal.action};
    if (!out->correct) {
        if (!kli_point_failed(v->s, &out->point, o, &p->point)) return false;
        kl_traits_of(&out->point.traits, v->s->arena, out->point.kernel, &o->verdict);
    }
    out->score = evolve_score_of(v, out);
    out->prior = kli_with_word(v->s->arena, p->prior, out->action);
    out->cards = card ? kli_with_word(v->s->arena, p->cards, card->name) : p->cards;
    return true;
}

/* Into the island of its parent.  Returns whether it is correct, kept, and faster than its parent.
 */
static bool evolve_settle(evolution *v, int island, int parent, const kli_outcome *o,
                          const kl_card *asked) {
    evolve_program child;
    int id;
    const kl_card *card = card_of(v, o, asked);
    note(v, card, o);
    if (o->ended == KLI_NO_EDIT || !make_child(v, &child, parent, o, card))
        return evolve_reject(v, parent, o, NULL, "nothing could be gated"), false;
    const kli_member m = member_of(v, &child);
    const kli_archive_change place = kli_archive_add(v->archive, island, &m, &id);
    if (place == KLI_KNOWN)
        evolve_reject(v, parent, o, &child, "it is a program that is known already");
    else
        evolve_remember(v, id, &child);
    if (o->ended == KLI_BETTER) v->s->out->cards = child.cards;
    if (!child.correct)
        evolve_reject(v, parent, o, &child, "rejected by the gate");
    else if (place == KLI_LOST)
        evolve_reject(v, parent, o, &child,
                      "correct, and no better than what is known of its kind");
    return child.correct && place >= KLI_FIRST && child.score > v->at[parent].score;
}

/* ---- a round ----------------------------------------------------------------------------- */

/* The start alone is correct on this island: one of its failed programs, now and then. */
static int failed_parent(evolution *v, int island) {
    const uint64_t at = 2 * (uint64_t)v->round;
    const int n = kli_archive_size(v->archive, island);
    int failed = 0;
    for (int i = 0; i < n; i++) {
        const int id = kli_archive_at(v->archive, island, i);
        if (v->at[id].correct && id > 0) return -1;
        failed += !v->at[id].correct;
    }
    if (!failed || kli_stream_uniform(v->fixes, at) >= evolve_param(v, "p_fix")) return -1;
    return kli_archive_at(v->archive, island,
                          n - 1 - (int)kli_stream_below(v->fixes, at + 1, (uint64_t)failed));
}

static int draw_parent(evolution *v, int island) {
    const kli_mix mix = {.top = evolve_param(v, "p_top"),
                         .diverse = evolve_param(v, "p_diverse"),
                         .share = evolve_param(v, "top_share")};
    const int failed = failed_parent(v, island);
    return failed >= 0
               ? failed
               : kli_archive_parent(v->archive, island, &mix, v->parents, (uint64_t)v->round);
}

static bool evolve_has_word(kl_str words, kl_str word) {
    kl_str one;
    while (kl_str_cut(&one, &words, ' '))
        if (kl_str_eq(one, word)) return true;
    return false;
}

/* A card's patch as a proposal for the parent; false when it does not apply verbatim, or was tried
 * on it. */
static bool evolve_patched(evolution *v, kli_outcome *o, kl_str *source, int parent,
                           const kl_card *card) {
    evolve_program *p = &v->at[parent];
    if (v->patched == MAX_FREE || evolve_has_word(p->patches, card->name)) return false;
    p->patches = kli_with_word(v->s->arena, p->patches, card->name);
    return kli_cards_patch(v->s, o, source, &p->point, card);
}

/* For nothing; `*kept`: it gave a faster program, so that nobody has to be asked. */
static kl_err try_patch(evolution *v, int island, int parent, const kl_card *card, bool *kept,
                        kl_error *e) {
    kli_outcome o = {0};
    kl_str source;
    if (!evolve_patched(v, &o, &source, parent, card)) return KL_OK;
    v->patched++;
    kl_track_phase(v->s->track, "materialize");
    kl_err err = kli_search_gate(v->s, &o, source, &v->at[parent].point, card->name, e);
    if (!err) *kept = evolve_settle(v, island, parent, &o, card);
    return err;
}

static kl_err evolve_ask(evolution *v, int island, int parent, const kl_match *card, kl_error *e) {
    kli_outcome o;
    kli_search_dialog talk = {0};
    const evolve_program *p = &v->at[parent];
    const char *purpose = !p->correct ? "repair" : card ? "materialize" : "generate";
    kl_track_phase(v->s->track, purpose);
    kl_track_log(v->s->track, "asking for child %d, island %d", v->s->out->proposals + 1,
                 island + 1);
    kli_search_dialog_add(&talk, v->s->arena, KL_ROLE_SYSTEM, v->system);
    kli_search_dialog_add(&talk, v->s->arena, KL_ROLE_USER,
                          evolve_question(v, island, parent, card));
    const kl_err err = kli_search_propose(v->s, &o, &talk, purpose, &p->point, e);
    if (err) return err;
    v->done = o.done ? v->done + 1 : 0;
    if (!o.done) evolve_settle(v, island, parent, &o, card ? card->card : NULL);
    return KL_OK;
}

static kl_err live(evolution *v, kl_error *e) {
    kl_match match;
    bool kept = false;
    kl_err err = KL_OK;
    const int island = v->round % v->islands, parent = draw_parent(v, island);
    const kl_match *card = draw_card(v, &match, parent) ? &match : NULL;
    if (card) err = try_patch(v, island, parent, card->card, &kept, e);
    if (!err && !kept) err = evolve_ask(v, island, parent, card, e);
    if (err) return err;
    if (++v->round % v->every == 0)
        kli_archive_migrate(v->archive, evolve_param(v, "migrate_share"));
    return KL_OK;
}

/* ---- the line ---------------------------------------------------------------------------- */

/* Every island begins with the start. */
static void settle_start(evolution *v) {
    evolve_program start = {.point = v->s->start, .correct = true};
    start.score = evolve_score_of(v, &start);
    const kli_member m = member_of(v, &start);
    evolve_remember(v, kli_archive_seed(v->archive, &m), &start);
}

static void open_evolution(evolution *v) {
    const uint64_t seed = kl_track_seed(v->s->track, "evolve");
    const int rounds = evolve_whole(v, "rounds");
    const bool features = evolve_whole(v, "axes");
    if (v->s->o.max_steps > rounds) v->s->o.max_steps = rounds;
    v->parents = kli_stream_of(seed, "parents");
    v->fixes = kli_stream_of(seed, "fixes");
    v->operators = kli_stream_of(seed, "operators");
    v->islands = evolve_whole(v, "islands");
    v->every = evolve_whole(v, "migrate_every");
    v->archive =
        features ? kli_archive_new(v->s->arena, FEATURE_AXES, KL_COUNT(FEATURE_AXES), v->islands)
                 : kli_archive_new(v->s->arena, SIZE_AXES, KL_COUNT(SIZE_AXES), v->islands);
    v->system = evolve_system_text(v);
    settle_start(v);
}

/* evolve-cards is the same line with a library. */
kl_err kli_policy_evolve(kl_search *s, kl_error *e) {
    evolution v = {.s = s, .with_cards = s->o.library != NULL};
    kl_err err = KL_OK;
    open_evolution(&v);
    while (!err && v.done < v.islands && !kli_search_over(s)) err = live(&v, e);
    if (!err && v.done == v.islands) s->out->stopped = KL_S("model says done");
    return err;
}
