/* predicate.c - questions about facts, with three answers and a reason.
 *
 *     predicate = conjunction { "or" conjunction }
 *     conjunction = negation { "and" negation }
 *     negation  = "not" negation | "(" predicate ")" | part | comparison
 *     part      = ("any" | "all") "(" NAME ":" predicate ")"      NAME l: loops, b: memories
 *     comparison = FACT [ OP VALUE ]                              no OP: a truth
 *     OP        = == != < <= > >= in                              in: { WORD WORD }
 *     VALUE     = NUMBER | WORD | FACT [ "*" NUMBER ]
 *
 * What nobody knows is unknown, and makes unknown what depends on it alone.  A predicate that
 * cannot be read, or asks for a fact that there is not, is named and left out by who holds it.
 * Parsed and answered in one go: a predicate is a line of text, and cards hold few.
 * SPDX-License-Identifier: Apache-2.0 */
#include "predicate.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { PREDICATE_MAX_DEPTH = 32 };

typedef struct {
    kl_str text;
    size_t at;
    const kli_question *q;
    kl_arena *arena;
    kl_error *e;
    const kl_fact *part; /* of the loop or memory that is asked about; NULL: none */
    kl_fact_scope scope;
    kl_str name; /* l of any(l: ...) */
    int depth;
    bool failed;
} asker;

typedef kli_answer answer;

static const answer UNKNOWN = {.fit = KL_FIT_UNKNOWN};

static answer ask_any(asker *a);

static answer wrong(asker *a, const char *what) {
    if (!a->failed)
        kl_fail(a->e, KL_EPARSE, NULL, "%s at \"%.*s\"", what,
                KL_STR_ARG(kli_cut(kli_from(a->text, a->at), 40)));
    a->failed = true;
    return UNKNOWN;
}

/* ---- words ------------------------------------------------------------------------------- */

static void skip_blanks(asker *a) {
    KL_ASSERT(a->at <= a->text.len);
    while (a->at < a->text.len && isspace((unsigned char)a->text.ptr[a->at])) a->at++;
}

static bool is_part_of_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-' || c == '/';
}

static kl_str next_part(asker *a) {
    skip_blanks(a);
    const size_t begin = a->at;
    size_t end = begin;
    while (end < a->text.len && is_part_of_word(a->text.ptr[end])) end++;
    if (end == begin && end < a->text.len) end++;
    while (end == begin + 1 && end < a->text.len && strchr("=!<>", a->text.ptr[begin]) &&
           a->text.ptr[end] == '=')
        end++;
    return (kl_str){a->text.ptr + begin, end - begin};
}

static bool take(asker *a, const char *word) {
    const kl_str w = next_part(a);
    if (!kl_str_eq(w, kl_str_of(word))) return false;
    a->at = (size_t)(w.ptr + w.len - a->text.ptr);
    return true;
}

static kl_str take_part(asker *a) {
    const kl_str w = next_part(a);
    a->at = (size_t)(w.ptr + w.len - a->text.ptr);
    return w;
}

/* ---- facts ------------------------------------------------------------------------------- */

typedef struct {
    kl_fact fact;
    kl_fact_kind kind;
    bool exists;
    kl_str name; /* as a reason says it */
} asked_fact;

static asked_fact fact_of_part(const asker *a, kl_str name) {
    const int i = kl_fact_find(a->scope, kli_from(name, a->name.len + 1));
    asked_fact f = {.exists = i >= 0, .name = name};
    if (i < 0) return f;
    f.kind = kl_fact_each(a->scope, i)->kind;
    if (a->part) f.fact = a->part[i];
    return f;
}

static asked_fact fact_named(const asker *a, kl_str name) {
    const bool of_part = a->name.len && name.len > a->name.len + 1 &&
                         kl_str_starts(name, a->name) && name.ptr[a->name.len] == '.';
    if (of_part) return fact_of_part(a, name);
    asked_fact f = {.name = name};
    const int i = kl_fact_find(KL_FACT_OF_STATE, name);
    f.exists = i >= 0 || kl_str_starts(name, KL_S("source.")) ||
               kl_str_starts(name, KL_S("code.")) || kli_one_of(name, KLI_TARGET_FACTS);
    f.kind = i >= 0 ? kl_fact_each(KL_FACT_OF_STATE, i)->kind : KL_FACT_NUMBER;
    if (kli_one_of(name, "arch case dtype language platform")) f.kind = KL_FACT_TEXT;
    if (a->q->facts && !kli_one_of(name, KLI_TARGET_FACTS)) f.fact = kl_fact_of(a->q->facts, name);
    if (kli_one_of(name, KLI_TARGET_FACTS) && a->q->target)
        f.fact = kli_target_fact(a->q->target, name);
    return f;
}

static bool is_given(const asker *a, kl_str name) {
    const bool part = a->name.len && kl_str_starts(name, a->name);
    return !a->q->own || kl_fact_given(part ? a->scope : KL_FACT_OF_STATE, name, a->q->own);
}

/* ---- answers ----------------------------------------------------------------------------- */

static kl_str shown(asker *a, const asked_fact *f) {
    if (!f->fact.known) return KL_S("unknown");
    if (f->kind == KL_FACT_TEXT) return f->fact.text;
    if (f->kind == KL_FACT_TRUTH) return f->fact.number ? KL_S("true") : KL_S("false");
    return kl_arena_printf(a->arena, "%.4g", f->fact.number);
}

static kl_str reason(asker *a, const asked_fact *f) {
    const kl_str value = shown(a, f);
    const kl_str line =
        f->fact.line ? kl_arena_printf(a->arena, ", line %d", f->fact.line) : KL_S("");
    return kl_arena_printf(a->arena, "%.*s is %.*s%.*s%s%.*s", KL_STR_ARG(f->name),
                           KL_STR_ARG(value), KL_STR_ARG(line), f->fact.from.len ? ": " : "",
                           KL_STR_ARG(f->fact.from));
}

static answer answered(asker *a, const asked_fact *f, bool met) {
    if (!f->fact.known) return (answer){.fit = KL_FIT_UNKNOWN, .why = reason(a, f)};
    return (answer){.fit = met ? KL_FIT_MET : KL_FIT_VIOLATED, .why = reason(a, f)};
}

static bool compares(kl_str op, double x, double y) {
    if (kl_str_eq(op, KL_S("=="))) return x == y;
    if (kl_str_eq(op, KL_S("!="))) return x != y;
    return (x < y && *op.ptr == '<') || (x > y && *op.ptr == '>') ||
           (x == y && kl_str_ends(op, KL_S("=")));
}

/* { a b c } */
static answer ask_in(asker *a, const asked_fact *f) {
    bool any = false;
    if (!take(a, "{")) return wrong(a, "a list in braces is missing");
    while (!a->failed && !take(a, "}")) {
        const kl_str w = take_part(a);
        if (!w.len) return wrong(a, "the list does not end");
        any = any || kl_str_eq(w, f->fact.text);
    }
    return answered(a, f, any);
}

/* A number, or another fact, times a number. */
static kl_fact ask_value(asker *a, kl_str word) {
    char *end = NULL;
    const kl_str copy = kl_arena_copy(a->arena, word);
    kl_fact v = {.known = true, .number = strtod(copy.ptr, &end)};
    if (end == copy.ptr || *end) {
        const asked_fact other = fact_named(a, word);
        if (!other.exists) return wrong(a, "neither a number nor a fact"), v;
        v = other.fact;
    }
    if (take(a, "*")) v.number *= strtod(kl_arena_copy(a->arena, take_part(a)).ptr, NULL);
    return v;
}

static bool same_word(const asked_fact *f, kl_str a, kl_str b) {
    kl_dtype x, y;
    const bool types =
        kl_str_eq(f->name, KL_S("dtype")) && kl_dtype_parse(&x, a) && kl_dtype_parse(&y, b);
    return types ? x == y : kl_str_eq(a, b);
}

static answer ask_comparison(asker *a) {
    const kl_str name = take_part(a), op = next_part(a);
    if (!name.len || !isalpha((unsigned char)*name.ptr)) return wrong(a, "a fact is missing");
    const asked_fact f = fact_named(a, name);
    if (!f.exists) {
        a->at = (size_t)(name.ptr - a->text.ptr);
        return wrong(a, "no fact is called so:");
    }
    if (!is_given(a, name)) {
        a->at = (size_t)(name.ptr - a->text.ptr);
        return wrong(a, "a fact that the card's surface does not give:");
    }
    if (!kli_one_of(op, "== != < <= > >= in")) {
        if (f.kind == KL_FACT_TEXT) return wrong(a, "a text is compared with nothing");
        return answered(a, &f, f.fact.number != 0);
    }
    take_part(a);
    if (kl_str_eq(op, KL_S("in"))) return ask_in(a, &f);
    const kl_str word = take_part(a);
    if (!word.len) return wrong(a, "a value is missing");
    if (f.kind != KL_FACT_TEXT) {
        const kl_fact v = ask_value(a, word);
        if (!v.known) return UNKNOWN;
        return answered(a, &f, compares(op, f.fact.number, v.number));
    }
    if (!kli_one_of(op, "== !=")) return wrong(a, "texts have no order");
    return answered(a, &f, same_word(&f, f.fact.text, word) == kl_str_eq(op, KL_S("==")));
}

/* ---- loops and memories ------------------------------------------------------------------ */

static answer better(answer x, answer y, bool any) {
    return (any ? y.fit < x.fit : y.fit > x.fit) ? y : x;
}

static int parts_of(const asker *a) {
    KL_ASSERT(a->scope == KL_FACT_OF_LOOP || a->scope == KL_FACT_OF_BUFFER);
    if (!a->q->facts) return 0;
    return a->scope == KL_FACT_OF_LOOP ? a->q->facts->n_loops : a->q->facts->n_buffers;
}

static const kl_fact *part_at(const asker *a, int i) {
    return a->scope == KL_FACT_OF_LOOP ? a->q->facts->loops[i].at : a->q->facts->buffers[i].at;
}

/* What is answered where no part decides: none has it, or all have it. */
static answer undecided(asker *a, bool any, kl_str question) {
    const char *what = a->scope == KL_FACT_OF_LOOP ? "loop" : "memory";
    if (!a->q->facts || !a->q->facts->nests)
        return (answer){.fit = KL_FIT_UNKNOWN, .why = KL_S("loops and memories are not known")};
    return (answer){.fit = any ? KL_FIT_VIOLATED : KL_FIT_MET,
                    .why = kl_arena_printf(a->arena, "%s %s has %.*s", any ? "no" : "every", what,
                                           KL_STR_ARG(question))};
}

/* Of two that do not have it, the one that has more of it. */
static answer nearer(answer x, answer y) {
    return y.fit == KL_FIT_VIOLATED && (!x.why.len || y.met > x.met) ? y : x;
}

static answer ask_parts(asker *a, bool any) {
    const asker outer = *a;
    if (!take(a, "(")) return wrong(a, "a bracket is missing");
    a->name = take_part(a);
    a->scope = kl_str_eq(a->name, KL_S("l")) ? KL_FACT_OF_LOOP : KL_FACT_OF_BUFFER;
    if (outer.name.len || !kli_one_of(a->name, "l b") || !take(a, ":"))
        return wrong(a, "what is asked of loops begins with l:, of memories with b:");
    const size_t begin = a->at;
    const int n = parts_of(a);
    a->part = NULL;
    ask_any(a); /* for its grammar, and where it ends */
    answer near = {0},
           all = undecided(a, any,
                           kl_str_trim(kli_between(a->text.ptr + begin, a->text.ptr + a->at)));
    for (int i = 0; i < n && !a->failed; i++) {
        a->at = begin;
        a->part = part_at(a, i);
        const answer one = ask_any(a);
        near = nearer(near, one);
        all = better(all, one, any);
    }
    if (any && all.fit == KL_FIT_VIOLATED && near.why.len)
        all.why = kl_arena_printf(a->arena, "%.*s; nearest: %.*s", KL_STR_ARG(all.why),
                                  KL_STR_ARG(near.why));
    all.met = 0;
    const size_t end = a->at;
    const bool failed = a->failed;
    *a = outer;
    a->at = end;
    a->failed = failed;
    if (!take(a, ")")) return wrong(a, "a bracket does not close");
    return all;
}

/* ---- grammar ----------------------------------------------------------------------------- */

static answer ask_not(asker *a) {
    if (++a->depth > PREDICATE_MAX_DEPTH) return wrong(a, "too many brackets");
    answer x;
    if (take(a, "not")) {
        x = ask_not(a);
        if (x.fit != KL_FIT_UNKNOWN) x.fit = x.fit == KL_FIT_MET ? KL_FIT_VIOLATED : KL_FIT_MET;
    } else if (take(a, "(")) {
        x = ask_any(a);
        if (!take(a, ")")) x = wrong(a, "a bracket does not close");
    } else if (take(a, "any"))
        x = ask_parts(a, true);
    else if (take(a, "all"))
        x = ask_parts(a, false);
    else
        x = ask_comparison(a);
    KL_ASSERT(a->depth > 0);
    a->depth--;
    return x;
}

static answer ask_all(asker *a) {
    answer x = ask_not(a);
    int met = x.fit == KL_FIT_MET;
    while (!a->failed && take(a, "and")) {
        const answer y = ask_not(a);
        met += y.fit == KL_FIT_MET;
        x = better(x, y, false);
    }
    x.met = met;
    return x;
}

static answer ask_any(asker *a) {
    answer x = ask_all(a);
    while (!a->failed && take(a, "or")) x = better(x, ask_all(a), true);
    return x;
}

kl_err kli_predicate_ask(kli_answer *out, kl_arena *arena, kl_str text, const kli_question *q,
                         kl_error *e) {
    asker a = {.text = text, .q = q, .arena = arena, .e = e};
    *out = ask_any(&a);
    skip_blanks(&a);
    if (!a.failed && a.at < text.len) *out = wrong(&a, "nothing more was expected");
    return a.failed ? KL_EPARSE : KL_OK;
}
