/* screen.c - which cards of an index a target refuses, without reading one of them.
 *
 * A contract is kept as lines, one condition each, and cards share lines: of a hundred thousand
 * contracts there are some hundred different ones.  A line is asked once a retrieval, by the words
 * of contract.c on a card that has nothing else, and what a contract says follows from its lines'
 * answers: the worst of what it needs, excludes and lists, and the best of what it brings, because
 * only all of that together is there already.  Not here: reasons; a card that is offered is asked
 * itself (retrieve.c).  SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <string.h>

enum { REFUSED = 1, OFFERED }; /* 0: not asked yet */

/* A line's first word says what it is; a predicate has none of these. */
static const char *const words[] = {"needs ",    "excludes ", "brings ",
                                    "requires ", "provides ", "conflicts "};
enum { NEEDS, EXCLUDES, BRINGS, REQUIRES, PROVIDES, CONFLICTS, PREDICATE };
_Static_assert(KL_COUNT(words) == PREDICATE, "a word for each kind of line but one");

/* ---- lines ------------------------------------------------------------------------------- */

static void screen_add_words(kl_buf *b, int kind, kl_str text) {
    if (!text.len) return;
    kl_buf_printf(b, "%s", words[kind]);
    for (kl_str w; kli_next_word(&w, &text);) kl_buf_printf(b, "%.*s ", KL_STR_ARG(w));
    kl_buf_add(b, KL_S("\n"));
}

static void add_clauses(kl_buf *b, int kind, const kl_str *clauses, int n) {
    for (int i = 0; i < n; i++) screen_add_words(b, kind, clauses[i]);
}

/* The lists of the first generation are not asked where there are clauses. */
kl_str kli_contract_lines(kl_arena *a, const kl_card *c) {
    kl_buf b = {0};
    add_clauses(&b, NEEDS, c->needs, c->n_needs);
    add_clauses(&b, EXCLUDES, c->excludes, c->n_excludes);
    add_clauses(&b, BRINGS, c->brings, c->n_brings);
    if (!b.len) {
        screen_add_words(&b, REQUIRES, c->required);
        screen_add_words(&b, PROVIDES, c->provides);
        screen_add_words(&b, CONFLICTS, c->conflicts);
    }
    for (int i = 0; i < c->n_pre; i++) {
        kl_predicate bare = c->pre[i];
        bare.prose = KL_S("");
        if (bare.fact.len) kli_predicates_render(&b, &bare, 1);
    }
    return kli_buf_keep(&b, a);
}

static int line_kind(kl_str *line) {
    int kind = 0;
    while (kind < PREDICATE && !kl_str_starts(*line, kl_str_of(words[kind]))) kind++;
    if (kind < PREDICATE) *line = kl_str_trim(kli_from(*line, strlen(words[kind])));
    return kind;
}

/* A card that has this condition and no other. */
static kl_card card_of_line(kl_arena *a, int kind, kl_str *rest) {
    kl_card c = {.status = KL_CARD_ADMITTED};
    KL_ASSERT(kind >= 0 && kind <= PREDICATE);
    if (kind == NEEDS) c.needs = rest, c.n_needs = 1;
    if (kind == EXCLUDES) c.excludes = rest, c.n_excludes = 1;
    if (kind == BRINGS) c.brings = rest, c.n_brings = 1;
    if (kind == REQUIRES) c.required = *rest;
    if (kind == PROVIDES) c.provides = *rest;
    if (kind == CONFLICTS) c.conflicts = *rest;
    if (kind == PREDICATE) c.n_pre = kli_predicates_parse(&c.pre, a, *rest);
    return c;
}

/* ---- one retrieval ----------------------------------------------------------------------- */

typedef struct {
    uint8_t kind, asked;
    uint8_t fit;
} line_answer;

/* What cards of one surface are answered: of a fact that a surface cannot have nothing is asked. */
typedef struct {
    kl_str surface; /* empty: of none */
    line_answer *lines;
} shelf;

typedef struct {
    const shelf *shelf; /* NULL: not looked at yet */
    bool foreign, covered;
} screen_scope;

struct kli_screen {
    kl_arena *arena;
    const kl_card_index *index;
    const kli_candidates *from;
    const kl_target *target;
    screen_scope *scopes;
    shelf **shelves;
    int n_shelves;
    char *terms; /* REFUSED, OFFERED */
};

kli_screen *kli_screen_new(kl_arena *a, const kli_candidates *from, const kl_target *target) {
    kli_screen *s = KL_NEW(a, kli_screen);
    KL_ASSERT(from->index);
    *s = (kli_screen){.arena = a,
                      .index = from->index,
                      .from = from,
                      .target = target,
                      .scopes = KL_ARRAY(a, screen_scope, from->n_scopes + 1),
                      .terms = KL_ARRAY(a, char, from->n_terms + 1)};
    return s;
}

static const shelf *shelf_of(kli_screen *s, kl_str surface) {
    for (int i = 0; i < s->n_shelves; i++)
        if (kl_str_eq(s->shelves[i]->surface, surface)) return s->shelves[i];
    shelf *made = KL_NEW(s->arena, shelf);
    *made = (shelf){surface, KL_ARRAY(s->arena, line_answer, kli_index_lines(s->index) + 1)};
    return *KL_PUSH(s->arena, s->shelves, s->n_shelves) = made;
}

static const screen_scope *scope_at(kli_screen *s, int at) {
    const int number = s->from->at[at].scope;
    screen_scope *x = &s->scopes[number];
    if (x->shelf) return x;
    const kl_names *own = &kli_candidate_scope(s->from, at)->surfaces;
    const kl_str here = s->target->surface;
    x->shelf = shelf_of(s, own->n ? own->at[0] : KL_S(""));
    x->foreign = here.len && own->n && !kli_names_have(own, here);
    x->covered =
        x->foreign && kli_candidates_cover(s->from, here, kli_index_action(s->index, number));
    return x;
}

#define LEFT_OUT (KL_FIT_VIOLATED + 1) /* it cannot be asked */

static int fit_of_line(const kli_screen *s, const shelf *on, int kind, kl_str rest) {
    kl_str why = {0};
    kl_card c = card_of_line(s->arena, kind, &rest);
    kli_names_add(&c.verified.surfaces, s->arena, on->surface);
    if (kind == BRINGS && kl_card_faults(s->arena, &c).len) return LEFT_OUT;
    return (int)(kind == PREDICATE ? kli_card_fits(&c, s->target, s->arena, &why)
                                   : kli_contract_fits(&c, s->target, s->arena, &why));
}

static line_answer answer_of(const kli_screen *s, const shelf *on, int line) {
    KL_ASSERT(line >= 0 && line < kli_index_lines(s->index));
    line_answer *x = &on->lines[line];
    if (x->asked) return *x;
    kl_str text = kli_index_line(s->index, line);
    x->asked = true;
    x->kind = (uint8_t)line_kind(&text);
    x->fit = (uint8_t)fit_of_line(s, on, x->kind, text);
    return *x;
}

static int worse(int a, int b) { return a > b ? a : b; }

/* As retrieve.c judges the card itself. */
static bool refuses(kli_screen *s, int at) {
    const screen_scope *x = scope_at(s, at);
    int n, worst = KL_FIT_MET, predicates = KL_FIT_MET, brings = LEFT_OUT;
    bool clauses = false;
    const int32_t *lines = kli_index_contract(s->index, s->from->at[at].terms, &n);
    for (int i = 0; i < n && worst != KL_FIT_VIOLATED; i++) {
        const line_answer y = answer_of(s, x->shelf, lines[i]);
        clauses |= y.kind <= BRINGS;
        if (y.kind == BRINGS)
            brings = y.fit < brings ? y.fit : brings;
        else if (y.kind == PREDICATE)
            predicates = worse(predicates, y.fit);
        else
            worst = worse(worst, y.fit);
    }
    if (brings != LEFT_OUT) worst = worse(worst, brings);
    if (x->foreign && clauses) return worst != KL_FIT_MET || x->covered;
    return worse(worst, predicates) == KL_FIT_VIOLATED;
}

bool kli_screen_refuses(kli_screen *s, int at) {
    KL_ASSERT(at >= 0 && at < s->from->n);
    char *known = &s->terms[s->from->at[at].terms];
    if (!*known) *known = refuses(s, at) ? REFUSED : OFFERED;
    return *known == REFUSED;
}
