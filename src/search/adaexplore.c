/* adaexplore.c - policy adaexplore: a tree of kernels, large steps that write anew, small steps
 * that edit, and rules learned from failures.
 *
 * Source: AdaExplore (arXiv 2604.16625) and its release; defaults as released.
 *
 *   root (no kernel) -- large --> K1 -- small --> K2 -- small --> K3        choose(): down the tree
 * by UCB; stop where widening is worth more
 *         '--------- large --> K4 ...                                       step():   one child
 * there, its reward to every ancestor
 *
 *   reward   0 when it does not compile, 0.05 when it is not correct, else 0.4 + 1.2 (clip(speedup,
 * 0.1, 10) - 0.1) / 9.9 Q        alpha max + (1 - alpha) mean        widen   best child's Q + c
 * ratio sqrt(ln visits / children^2)
 *
 * A large step shows the pool: for every large step on the path the best correct kernel among it
 * and the small steps from it.  A small step shows the rounds since the last large step; a reviewer
 * names improvements (unless nothing there is correct), and they are written as edits. Failures
 * become rules "You cannot ...", which stand in later prompts as pitfalls.
 *
 * Deviations.  Rules are learned at once and forgotten with the track, injected from their first
 * sight on (the release learns after a run, and its threshold of 3 with an empty memory would show
 * none); duplicates are found by their words, not by a judge model.  Speed is that over the start,
 * by ratios to the same baseline.  The kernel before the first large step is the start.  A step
 * without a usable edit makes no child (the release evaluates an unchanged one); then the other
 * kind of step is tried.  A time that did not settle counts as not correct: nothing was measured.
 * No temperature, no one-shot example: the surface's rules take its place. SPDX-License-Identifier:
 * Apache-2.0 */
#include "peers.h"
#include "base/rng.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

#define ROOT 0
#define NONE (-1)
#define SOFTMAX_TEMPERATURE 1.0
#define MAX_RULES 256           /* kept: more failures than any budget buys */
#define ADAEXPLORE_MAX_SHOWN 64 /* in one prompt: 4k tokens */
#define MAX_RULE_BYTES 240      /* one sentence; what is longer explains or generalises */

const kl_policy_param kli_adaexplore_params[] = {
    {"exploration", 0.3, 0, 10, "weight of the bonus for kernels that were tried seldom"},
    {"expand_ratio", 1, 0, 100, "weight of widening against going deeper"},
    {"reward_alpha", 0, 0, 1, "share of the best reward in a kernel's value, against the mean"},
    {"small_step_limit", 2, 0, 64, "small steps from one kernel before it takes large ones alone"},
    {"p_large", 0.2, 0, 1, "chance of a large step where a small one is possible"},
    {"pool_size", 5, 1, 16, "kernels shown to a large step"},
    {"pool_extra", 0, 0, 16, "further kernels at most, from other parts of the tree"},
    {"geometric", 0.6, 0, 1, "how fast the number of further kernels falls off"},
    {"memory_rounds", 5, 1, 16, "rounds shown to a small step"},
    {"rule_threshold", 1, 1, 1000, "failures that make a rule a pitfall; 3 in the release"},
    {"rule_wrong", 0, 0, 1, "1: wrong results become rules too"},
    {"reviser", 1, 0, 1, "0: small steps without a reviewer"},
    {NULL, 0, 0, 0, NULL}};

/* One kernel of the tree. */
typedef struct {
    int parent, first, last, next; /* first and last child, next sibling; NONE */
    int home;                      /* the large step that it stands on; itself when it is one */
    int depth;                     /* small steps since home */
    int children, small_children;
    bool compiled, correct;
    double speedup; /* over the start; 0 unless correct */
    int visits;
    double total, max; /* rewards of it and everything below */
    kli_point *point;  /* NULL: the root */
} node;

typedef struct {
    kl_str text, words; /* as it is shown; as it is compared */
    int score;
} rule;

typedef struct {
    kl_search *s;
    node *nodes;
    int n;
    rule rules[MAX_RULES];
    int n_rules;
    kl_stream stream;
    uint64_t draws;
    double exploration, expand_ratio, alpha;
} explorer;

static double adaexplore_param(const explorer *x, const char *name) {
    return kli_search_param(x->s, name);
}
static int adaexplore_whole(const explorer *x, const char *name) {
    return (int)adaexplore_param(x, name);
}
static double adaexplore_draw(explorer *x) { return kli_stream_uniform(x->stream, x->draws++); }

/* ---- the tree ---------------------------------------------------------------------------- */

static int add_node(explorer *x, const node *as) {
    *KL_PUSH(x->s->arena, x->nodes, x->n) = *as;
    return x->n - 1;
}

/* Behind its elder siblings, so that the first of equals is the eldest. */
static int add_child(explorer *x, int parent, bool large, node child) {
    KL_ASSERT(parent >= 0 && parent < x->n);
    child.parent = parent;
    child.first = child.last = child.next = NONE;
    child.home = large ? x->n : x->nodes[parent].home;
    child.depth = large ? 0 : x->nodes[parent].depth + 1;
    const int at = add_node(x, &child);
    node *p = &x->nodes[parent];
    if (p->last != NONE) x->nodes[p->last].next = at;
    if (p->first == NONE) p->first = at;
    p->last = at;
    p->children++;
    p->small_children += !large;
    return at;
}

static double reward(const node *n) {
    if (!n->compiled) return 0;
    if (!n->correct) return 0.05;
    return 0.4 + 1.2 * (fmin(fmax(n->speedup, 0.1), 10) - 0.1) / 9.9;
}

static double adaexplore_value(const explorer *x, const node *n) {
    return x->alpha * n->max + (1 - x->alpha) * n->total / n->visits;
}

static double ucb(const explorer *x, const node *n) {
    return adaexplore_value(x, n) +
           x->exploration * sqrt(log(x->nodes[n->parent].visits) / n->visits);
}

/* What one more child of `n` promises; it has some. */
static double adaexplore_widen(const explorer *x, const node *n) {
    double best = -INFINITY;
    for (int c = n->first; c != NONE; c = x->nodes[c].next)
        best = fmax(best, adaexplore_value(x, &x->nodes[c]));
    return best + x->exploration * x->expand_ratio * sqrt(log(n->visits)) / n->children;
}

static int best_child(const explorer *x, const node *n) {
    int best = n->first;
    for (int c = n->first; c != NONE; c = x->nodes[c].next)
        if (ucb(x, &x->nodes[c]) > ucb(x, &x->nodes[best])) best = c;
    return best;
}

/* The kernel to go on from. */
static int adaexplore_choose(const explorer *x) {
    int at = ROOT;
    while (x->nodes[at].first != NONE) {
        const int child = best_child(x, &x->nodes[at]);
        if (adaexplore_widen(x, &x->nodes[at]) > ucb(x, &x->nodes[child])) break;
        at = child;
    }
    return at;
}

static void back_propagate(explorer *x, int child) {
    const double r = reward(&x->nodes[child]);
    KL_ASSERT(r >= 0 && r <= 1.6);
    for (int at = child; at != NONE; at = x->nodes[at].parent) {
        node *n = &x->nodes[at];
        n->visits++;
        n->total += r;
        n->max = fmax(n->max, r);
    }
}

/* ---- the pool of a large step ------------------------------------------------------------ */

/* The best correct kernel on a large step and the small ones from it. */
static int best_at_home(const explorer *x, int home) {
    int best = NONE;
    for (int i = home; i < x->n; i++) {
        const node *n = &x->nodes[i];
        if (n->home == home && n->correct && (best == NONE || n->speedup > x->nodes[best].speedup))
            best = i;
    }
    return best;
}

static bool on_path(const explorer *x, int home, int at) {
    while (x->nodes[at].home != ROOT && x->nodes[at].home != home)
        at = x->nodes[x->nodes[at].home].parent;
    return x->nodes[at].home == home;
}

/* The best of every large step that is on the way to `at`, or of every one that is not; eldest
 * first. */
static int bests(const explorer *x, int *out, int at, bool wanted) {
    int n = 0;
    for (int home = 1; home < x->n; home++) {
        if (x->nodes[home].home != home || on_path(x, home, at) != wanted) continue;
        const int best = best_at_home(x, home);
        if (best != NONE) out[n++] = best;
    }
    return n;
}

/* Keeps `most` of them, every choice as likely as any other, in their order (Knuth's algorithm S).
 */
static int adaexplore_sample(explorer *x, int *at, int n, int most) {
    int kept = 0;
    for (int i = 0; i < n && kept < most; i++)
        if (adaexplore_draw(x) * (n - i) < most - kept) at[kept++] = at[i];
    return kept;
}

/* 0..most with chances falling off geometrically. */
static int how_many(explorer *x, int most) {
    const double q = 1 - adaexplore_param(x, "geometric");
    double sum = 0;
    for (int k = 0; k <= most; k++) sum += pow(q, k);
    double left = adaexplore_draw(x) * sum;
    for (int k = 0; k < most; k++)
        if ((left -= pow(q, k)) < 0) return k;
    return most;
}

/* Takes one of `from`, the faster the likelier, and closes the gap. */
static int take_by_speed(explorer *x, int *from, int *n) {
    double most = 0, sum = 0;
    int i = 0;
    for (int k = 0; k < *n; k++) most = fmax(most, x->nodes[from[k]].speedup);
    for (int k = 0; k < *n; k++)
        sum += exp((x->nodes[from[k]].speedup - most) / SOFTMAX_TEMPERATURE);
    double left = adaexplore_draw(x) * sum;
    while (i < *n - 1 &&
           (left -= exp((x->nodes[from[i]].speedup - most) / SOFTMAX_TEMPERATURE)) >= 0)
        i++;
    const int taken = from[i];
    memmove(from + i, from + i + 1, (size_t)(--*n - i) * sizeof *from);
    return taken;
}

static int add_others(explorer *x, int *pool, int n, int at, int room) {
    int *others = KL_ARRAY(x->s->arena, int, x->n);
    int left = bests(x, others, at, false);
    int most = adaexplore_whole(x, "pool_extra");
    if (most > room) most = room;
    if (most > left) most = left;
    for (int k = most ? how_many(x, most) : 0; k > 0; k--)
        pool[n++] = take_by_speed(x, others, &left);
    return n;
}

/* `pool` has room for every node. */
static int pool_of(explorer *x, int *pool, int at) {
    const int size = adaexplore_whole(x, "pool_size"), n = bests(x, pool, at, true);
    if (n > size) return adaexplore_sample(x, pool, n, size);
    return adaexplore_whole(x, "pool_extra") ? add_others(x, pool, n, at, size - n) : n;
}

/* ---- rules ------------------------------------------------------------------------------- */

/* Faults of the machine that may come in a kernel's verdict: what they teach is wrong elsewhere. */
static bool of_the_machine(explorer *x, kl_str text) {
    static const char *const signs[] = {"no space left on device",
                                        "cannot allocate memory",
                                        "too many open files",
                                        "resource temporarily unavailable",
                                        "connection refused",
                                        "connection reset",
                                        "http",
                                        "the compiler was ended by",
                                        "cuda-capable device",
                                        "read-only file system"};
    const char *terminated = text.len ? kl_arena_copy(x->s->arena, text).ptr : "";
    for (size_t i = 0; i < KL_COUNT(signs); i++)
        if (strcasestr(terminated, signs[i])) return true;
    return false;
}

static bool adaexplore_teaches(explorer *x, const kl_verdict *v) {
    switch (v->outcome) {
    case KL_OUTCOME_NO_COMPILE:
    case KL_OUTCOME_CRASH:
    case KL_OUTCOME_HANG:
    case KL_OUTCOME_CHEAT:
    case KL_OUTCOME_REFUSED:
        return !of_the_machine(x, v->why) && !of_the_machine(x, v->detail);
    case KL_OUTCOME_WRONG:
        return adaexplore_whole(x, "rule_wrong") != 0;
    case KL_OUTCOME_PASS:
    case KL_OUTCOME_UNSTABLE:
        break;
    }
    return false;
}

/* "You cannot ..." up to its full stop: a new sentence begins with a capital.  Empty when the line
 * is none. */
static kl_str sentence_of(kl_str line) {
    while (line.len && strchr("-*>\"` \t", *line.ptr)) line = (kl_str){line.ptr + 1, line.len - 1};
    if (!kl_str_starts(line, KL_S("You cannot "))) return (kl_str){0};
    for (size_t i = 0; i + 2 < line.len; i++)
        if (strchr(".!?", line.ptr[i]) && line.ptr[i + 1] == ' ' &&
            isupper((unsigned char)line.ptr[i + 2]))
            line.len = i + 1;
    while (line.len && strchr("\"` \t", line.ptr[line.len - 1])) line.len--;
    return line.len <= MAX_RULE_BYTES ? line : (kl_str){0};
}

static kl_str rule_in(kl_str text) {
    kl_str line, found = {0};
    while (!found.len && kl_str_cut(&line, &text, '\n')) found = sentence_of(line);
    return found;
}

/* Its words in lower case, one space between them. */
static kl_str adaexplore_words_of(kl_arena *a, kl_str text) {
    kl_buf b = {0};
    bool gap = false;
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        const bool part = isalnum(c) || c == '_' || c >= 0x80;
        if (part && gap && b.len) kl_buf_add(&b, KL_S(" "));
        if (part) kl_buf_printf(&b, "%c", tolower(c));
        gap = !part;
    }
    return kl_buf_take(&b, a);
}

/* Seen before: counts once more. */
static void adaexplore_remember(explorer *x, kl_str text) {
    const kl_str words = adaexplore_words_of(x->s->arena, text);
    for (int i = 0; i < x->n_rules; i++)
        if (kl_str_eq(x->rules[i].words, words)) {
            x->rules[i].score++;
            return;
        }
    if (x->n_rules < MAX_RULES)
        x->rules[x->n_rules++] = (rule){.text = text, .words = words, .score = 1};
}

static kl_str pitfalls(const explorer *x) {
    kl_buf b = {0};
    int shown = 0;
    for (int i = 0; i < x->n_rules && shown < ADAEXPLORE_MAX_SHOWN; i++) {
        if (x->rules[i].score < adaexplore_whole(x, "rule_threshold")) continue;
        kl_buf_printf(&b, "- %.*s\n", KL_STR_ARG(x->rules[i].text));
        shown++;
    }
    kl_prompt_value values[] = {{"rules", kl_str_trim(kl_buf_take(&b, x->s->arena))}};
    return shown ? kl_prompt(x->s->arena, "adaexplore_pitfalls", values, 1) : KL_S("");
}

static kl_str kernel_text(const explorer *x, const kli_point *p) {
    kl_buf b = {0};
    kli_show_kernel(x->s, &b, p);
    return kl_str_trim(kl_buf_take(&b, x->s->arena));
}

/* A rule that comes after the last step helps nobody. */
static kl_err adaexplore_learn(explorer *x, int child, kl_error *e) {
    const kli_point *p = x->nodes[child].point;
    kl_str text;
    if (x->nodes[child].correct || !adaexplore_teaches(x, &p->verdict) || kli_search_over(x->s))
        return KL_OK;
    kl_prompt_value values[] = {{"kernel", kernel_text(x, p)}};
    kl_err err = kli_prose_ask(x->s, &text, "rule", "adaexplore_rule", p, values, 1, e);
    const kl_str found = err ? (kl_str){0} : rule_in(text);
    if (found.len && !of_the_machine(x, found)) adaexplore_remember(x, found);
    return err;
}

/* ---- steps ------------------------------------------------------------------------------- */

/* What a question brings as a child of `parent`; `*child` is NONE when nothing could be gated. */
static kl_err adaexplore_propose(explorer *x, int *child, int parent, bool large, kl_str question,
                                 const kli_point *base, kl_error *e) {
    kli_outcome o;
    kli_point *p = KL_NEW(x->s->arena, kli_point);
    *child = NONE;
    kl_err err = kli_code_propose(x->s, &o, large ? "large_step" : "small_step", question, base, e);
    if (err || o.done || o.ended == KLI_NO_EDIT) return err;
    node made = {.point = p,
                 .compiled = o.verdict.outcome != KL_OUTCOME_NO_COMPILE &&
                             o.verdict.outcome != KL_OUTCOME_REFUSED};
    if (o.ended == KLI_FAILED) {
        if (!kli_point_failed(x->s, p, &o, base)) return KL_OK;
    } else {
        *p = o.point;
        made.correct = true;
        made.speedup = o.verdict.outcome != KL_OUTCOME_PASS ? 1
                       : x->s->start.ratio > 0              ? p->ratio / x->s->start.ratio
                                                            : p->ratio;
    }
    *child = add_child(x, parent, large, made);
    return KL_OK;
}

/* Before there is a pool, the start is what has to be outperformed.  `*base`: what edits of a reply
 * that has them refer to. */
static kl_str pool_text(explorer *x, int at, const kli_point **base) {
    kl_buf b = {0};
    int *pool = KL_ARRAY(x->s->arena, int, x->n);
    const int n = pool_of(x, pool, at);
    *base = n ? x->nodes[pool[0]].point : &x->s->start;
    for (int i = 0; i < n || i == 0; i++) {
        const kli_point *p = n ? x->nodes[pool[i]].point : &x->s->start;
        if (p->ratio > (*base)->ratio) *base = p;
        kl_buf_printf(&b, "%s## Kernel %d: %.*s\n\n", i ? "\n" : "", i + 1,
                      KL_STR_ARG(kli_search_describe(x->s, p)));
        kli_show_kernel(x->s, &b, p);
    }
    return kl_str_trim(kl_buf_take(&b, x->s->arena));
}

static kl_err large_step(explorer *x, int *child, int at, kl_error *e) {
    const kli_point *base;
    kl_prompt_value values[] = {{"pitfalls", pitfalls(x)}, {"pool", pool_text(x, at, &base)}};
    kl_track_log(x->s->track, "large step %d", x->s->out->proposals + 1);
    const kl_str question =
        kli_search_prompt(x->s, "adaexplore_large", base, values, KL_COUNT(values));
    return adaexplore_propose(x, child, at, true, question, base, e);
}

/* The kernel and up to memory_rounds before it, back to the large step, eldest first. */
static int rounds_of(const explorer *x, int *out, int at) {
    int n = x->nodes[at].depth + 1;
    if (n > adaexplore_whole(x, "memory_rounds")) n = adaexplore_whole(x, "memory_rounds");
    for (int i = n - 1; i >= 0; i--, at = x->nodes[at].parent) out[i] = at;
    return n;
}

static kl_str rounds_text(const explorer *x, const int *rounds, int n) {
    kl_buf b = {0};
    for (int i = 0; i < n; i++) {
        kl_buf_printf(&b, "%s## Round %d of %d\n\n", i ? "\n" : "", i + 1, n);
        kli_show_kernel(x->s, &b, x->nodes[rounds[i]].point);
    }
    return kl_str_trim(kl_buf_take(&b, x->s->arena));
}

/* What to improve: a reviewer's words, where there is something correct to review. */
static kl_err guidance(explorer *x, kl_str *out, const int *rounds, int n, kl_error *e) {
    kl_str text;
    bool any = false;
    const kli_point *p = x->nodes[rounds[n - 1]].point;
    *out = kl_str_trim(kl_prompt(x->s->arena, "adaexplore_fix", NULL, 0));
    for (int i = 0; i < n; i++) any |= x->nodes[rounds[i]].correct;
    if (!any || !adaexplore_whole(x, "reviser")) return KL_OK;
    kl_prompt_value values[] = {{"kernel", kernel_text(x, p)}};
    kl_err err = kli_prose_ask(x->s, &text, "review", "adaexplore_review", p, values, 1, e);
    if (!err && text.len)
        *out = kl_arena_printf(x->s->arena, "A reviewer says:\n\n%.*s",
                               KL_STR_ARG(kli_prose_quote(x->s->arena, text)));
    return err;
}

static kl_err small_step(explorer *x, int *child, int at, kl_error *e) {
    kl_str guide;
    int *rounds = KL_ARRAY(x->s->arena, int, adaexplore_whole(x, "memory_rounds"));
    const int n = rounds_of(x, rounds, at);
    const kli_point *base = x->nodes[at].point;
    kl_track_log(x->s->track, "small step %d", x->s->out->proposals + 1);
    kl_err err = guidance(x, &guide, rounds, n, e);
    if (err) return err;
    kl_prompt_value values[] = {
        {"pitfalls", pitfalls(x)}, {"rounds", rounds_text(x, rounds, n)}, {"guidance", guide}};
    const kl_str question =
        kli_search_prompt(x->s, "adaexplore_small", base, values, KL_COUNT(values));
    return adaexplore_propose(x, child, at, false, question, base, e);
}

/* ---- the line ---------------------------------------------------------------------------- */

static kl_err adaexplore_expand(explorer *x, int *child, int at, bool large, kl_error *e) {
    return large ? large_step(x, child, at, e) : small_step(x, child, at, e);
}

static kl_err adaexplore_step(explorer *x, kl_error *e) {
    int child;
    const int at = adaexplore_choose(x);
    const bool large = at == ROOT ||
                       x->nodes[at].small_children >= adaexplore_whole(x, "small_step_limit") ||
                       adaexplore_draw(x) < adaexplore_param(x, "p_large");
    kl_err err = adaexplore_expand(x, &child, at, large, e);
    if (!err && child == NONE && at != ROOT && !kli_search_over(x->s))
        err = adaexplore_expand(x, &child, at, !large, e);
    if (err || child == NONE) return err;
    back_propagate(x, child);
    return adaexplore_learn(x, child, e);
}

static void open_tree(explorer *x) {
    x->stream = kli_stream_of(kl_track_seed(x->s->track, "adaexplore"), "tree");
    x->exploration = adaexplore_param(x, "exploration");
    x->expand_ratio = adaexplore_param(x, "expand_ratio");
    x->alpha = adaexplore_param(x, "reward_alpha");
    add_node(x, &(node){.parent = NONE, .first = NONE, .last = NONE, .next = NONE, .home = ROOT});
}

kl_err kli_policy_adaexplore(kl_search *s, kl_error *e) {
    explorer *x = KL_NEW(s->arena, explorer);
    kl_err err = KL_OK;
    x->s = s;
    open_tree(x);
    while (!err && !kli_search_over(s)) err = adaexplore_step(x, e);
    return err;
}
