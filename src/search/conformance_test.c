/* conformance_test.c - what every policy of the table owes, whatever it proposes: ends that are
 * ends, no best without a verdict, a journal without gaps, errors passed on, and the same steps for
 * the same answers.
 *
 * Proposers are functions: policies ask for plans, kernels and rules in orders of their own, so no
 * list of replies would fit them all.  No policy is named here: a new row is tested by being one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include "run/fake_track.h"
#include "base/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    "//! launch gemm args(x, weight, y, M, N, K)\n"                                                \
    "void gemm(const float *x, const float *weight, float *y, int M, int N, int K) { (void)x; }\n"

enum {
    STEPS = 24,
    MAX_PARAMS = 32,
    MAX_ASKS = 60 * STEPS /* plans, summaries and reviews included */
};

typedef enum { DEFAULTS, LEAST, MOST, SETTINGS } settings;

/* One search from its beginning to its end. */
typedef struct {
    kl_arena *arena;
    settings settings; /* where each of the policy's own numbers stands */
    fake_track track;
    kl_search_result result;
    kl_err err;
    kl_error error;
} trip;

static struct {
    kl_arena *arena;
    kl_task *task;
    kl_kernel *start;
    kl_library library;
    kl_str rules;
    char what[200]; /* which row, which proposer */
} s;

#define CHECK(cond)                                                                                \
    do                                                                                             \
        if (!(cond)) fail_msg("%s: %s", s.what, #cond);                                            \
    while (0)

/* ---- proposers --------------------------------------------------------------------------- */

static bool wants_code(const kl_request *q) {
    return q->subject && kl_str_starts(q->messages[0].text, s.rules);
}

/* The line of the subject that says how fast it is. */
static kl_str line_of(const kl_request *q) {
    const kl_str text = q->subject->source;
    const char *at = memmem(text.ptr, text.len, "// ns ", 6);
    KL_ASSERT(at);
    const char *end = memchr(at, '\n', text.len - (size_t)(at - text.ptr));
    return (kl_str){at, end ? (size_t)(end - at) : text.len - (size_t)(at - text.ptr)};
}

/* That line becomes another one; the number makes every kernel another one. */
static kl_str edit(kl_track *t, const kl_request *q, int n, double ns, const char *rest) {
    return kl_arena_printf(kl_track_arena(t),
                           "ACTION: unroll\nLOCUS: the last line\nWHY: test\n<<<<<<< "
                           "SEARCH\n%.*s\n=======\n// ns %.4f %s // try "
                           "%d\n>>>>>>> REPLACE\n",
                           KL_STR_ARG(line_of(q)), ns, rest, n);
}

static void talks(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    (void)t, (void)q, (void)n, (void)ctx;
    out->text = KL_S("I would rather talk about the weather.\n");
}

static void says_nothing(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    (void)out, (void)t, (void)q, (void)n, (void)ctx;
}

static void is_cut_off(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    (void)ctx;
    out->stop = KL_STOP_TRUNCATED;
    out->text = edit(t, q, n, 10, "");
}

static void is_refused(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    (void)ctx;
    out->stop = KL_STOP_REFUSED;
    out->text = edit(t, q, n, 10, "");
}

static void is_done(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    (void)t, (void)q, (void)n, (void)ctx;
    out->text = KL_S("DONE: nothing is left\n");
}

/* Fast and worth nothing: `ctx` is what the gate finds.  Also where a sentence was asked for. */
static void is_never_right(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    out->text = edit(t, q, n, 10, ctx);
}

static void does_not_parse(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    (void)ctx;
    out->text = edit(t, q, n, 10, "\n//! nonsense here\n");
}

static void says_the_same(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    (void)t, (void)q, (void)n, (void)ctx;
    out->text = KL_S("ACTION: unroll\nWHY: test\n<<<<<<< SEARCH\n// ns 300\n=======\n// ns 300 // "
                     "again\n>>>>>>> REPLACE\n");
}

/* A model as they are: better, wrong, slower, idle, broken.  Times are powers of 0.8 of the
 * start's, so that none is nearly as fast as another. */
static void varies(fake_reply *out, kl_track *t, const kl_request *q, int n, void *ctx) {
    (void)ctx;
    if (!wants_code(q)) {
        out->text = kl_arena_printf(kl_track_arena(t), "Keep the sums in registers, idea %d.\n", n);
        return;
    }
    const double ns = strtod(line_of(q).ptr + 6, NULL);
    switch (n * 5 % 7) {
    case 0:
    case 3:
        out->text = edit(t, q, n, ns * 0.8, "");
        break;
    case 1:
        out->text = edit(t, q, n, ns * 0.1, "// outcome wrong");
        break;
    case 2:
        out->text = edit(t, q, n, ns / 0.8, "");
        break;
    case 4:
        out->text = KL_S("Let me think about it.\n");
        break;
    case 5:
        out->text = edit(t, q, n, ns * 0.1, "// outcome cheat");
        break;
    default:
        out->text = edit(t, q, n, ns * 0.8 * 0.8, "");
    }
}

static const struct {
    const char *name;
    fake_answer *answer;
    const char *gets;
} NEVER_BETTER[] = {
    {"talks", talks, NULL},
    {"says nothing", says_nothing, NULL},
    {"is cut off", is_cut_off, NULL},
    {"is refused", is_refused, NULL},
    {"is done", is_done, NULL},
    {"is always wrong", is_never_right, "// outcome wrong"},
    {"never compiles", is_never_right, "// outcome no_compile"},
    {"always cheats", is_never_right, "// outcome cheat"},
    {"always hangs", is_never_right, "// outcome hang"},
    {"is never stable", is_never_right, "// outcome unstable"},
    {"does not parse", does_not_parse, NULL},
    {"always says the same", says_the_same, NULL},
};

/* ---- a search ---------------------------------------------------------------------------- */

static void set_out(trip *r, const kl_policy *p, fake_answer *answer, const char *gets) {
    *r = (trip){.arena = kl_arena_new()};
    fake_track_open(&r->track, r->arena);
    fake_answers(&r->track, answer, (void *)(uintptr_t)gets);
    snprintf(s.what, sizeof s.what, "policy %s", p->name);
}

static int all_at(kl_setting *out, const kl_policy *p, settings where) {
    int n = 0;
    for (const kl_policy_param *q = p->params; where != DEFAULTS && q && q->name; q++)
        out[n++] = (kl_setting){kl_str_of(q->name), where == LEAST ? q->least : q->most};
    return n;
}

/* Ends that are none: a policy that asks for ever is stopped by an error, and then fails its test.
 */
static void go(trip *r, const kl_policy *p) {
    kl_setting numbers[MAX_PARAMS];
    const int n_numbers = all_at(numbers, p, r->settings);
    const kl_search_opts o = {.task = s.task,
                              .settings = numbers,
                              .n_settings = n_numbers,
                              .workload = kl_task_workload(s.task, KL_S("tiny"), KL_ON_CPU),
                              .start = s.start,
                              .library = p->uses_library ? &s.library : NULL,
                              .max_steps = STEPS};
    r->track.base.budget_microusd = 10000000;
    if (r->track.ask_fails < 0) {
        r->track.ask_fails = MAX_ASKS;
        r->track.fails = r->track.fails ? r->track.fails : KL_EMODEL;
    }
    r->err = kl_policy_run(p, &r->result, &r->track.base, &o, &r->error);
}

static void come_back(trip *r) {
    fake_track_close(&r->track);
    kl_arena_free(r->arena);
}

/* The last row says why it ended and what was reached, and is no proposal. */
static void check_end(const trip *r) {
    const fake_step *end = &r->track.rows[r->track.steps - 1];
    CHECK(strcmp(end->action, "end") == 0 && !end->best &&
          strcmp(end->kernel, r->result.best->hash) == 0);
    CHECK(r->result.best == s.start ||
          (end->verdict_key[0] && end->ratio >= r->result.gain && end->ratio <= r->result.gain));
}

/* Every gated proposal has its row and no row comes from nowhere; best only rises, and is the
 * fastest that passed. */
static void check_journal(const trip *r) {
    const kl_search_result *out = &r->result;
    const fake_step *rows = r->track.rows;
    int no_edit = 0, passed = 0, bests = 0, last = 0;
    double best = 0, fastest = 0;
    CHECK(r->track.steps > 1 && rows[0].best);
    check_end(r);
    for (int i = 0; i < r->track.steps - 1; i++) {
        const bool pass = strcmp(rows[i].outcome, "pass") == 0,
                   edited = strcmp(rows[i].outcome, "no_edit") != 0 &&
                            strcmp(rows[i].outcome, "done") != 0;
        no_edit += !edited;
        passed += pass;
        CHECK(edited == (rows[i].verdict_key[0] != '\0'));
        if (pass && rows[i].ratio > fastest) fastest = rows[i].ratio;
        if (!rows[i].best) continue;
        CHECK(pass && rows[i].ratio > best);
        best = rows[i].ratio;
        last = i;
        bests++;
    }
    CHECK(r->track.steps == 2 + out->gated + no_edit);
    CHECK(passed == 1 + out->passed);
    CHECK(bests == 1 + out->improved);
    CHECK(best >= fastest);
    CHECK(out->best && strcmp(out->best->hash, rows[last].kernel) == 0);
}

static const kl_policy *row(int i) { return kl_policy_each(i); }

/* ---- what every row owes ----------------------------------------------------------------- */

static void test_search_policies__a_row_is_complete(void **state) {
    (void)state;
    const kl_policy *p;
    for (int i = 0; (p = row(i)); i++) {
        snprintf(s.what, sizeof s.what, "policy %s", p->name);
        CHECK(*p->name && *p->doc && *p->source && p->line);
        CHECK(kl_policy_find(kl_str_of(p->name)) == p);
        for (const char *c = p->name; *c; c++)
            CHECK((*c >= 'a' && *c <= 'z') || *c == '-'); /* part of names of tracks and files */
        for (const kl_policy_param *q = p->params; q && q->name; q++) {
            CHECK(q - p->params < MAX_PARAMS && *q->doc && q->least <= q->otherwise &&
                  q->otherwise <= q->most);
            CHECK(kli_policy_param_find(p, kl_str_of(q->name)) == q);
        }
    }
    assert_null(kl_policy_each(-1));
}

static void test_search_policies__a_proposer_that_is_never_better_leaves_the_start(void **state) {
    (void)state;
    const kl_policy *p;
    for (int i = 0; (p = row(i)); i++)
        for (size_t n = 0; n < KL_COUNT(NEVER_BETTER); n++) {
            trip r;
            set_out(&r, p, NEVER_BETTER[n].answer, NEVER_BETTER[n].gets);
            snprintf(s.what, sizeof s.what, "policy %s, a model that %s", p->name,
                     NEVER_BETTER[n].name);
            go(&r, p);
            if (r.err) fail_msg("%s: %s: %s", s.what, kl_err_name(r.err), r.error.message);
            check_journal(&r);
            CHECK(r.result.best == s.start && r.result.improved == 0 && r.result.stopped.len > 0);
            CHECK(r.result.gain >= 1 && r.result.gain <= 1 && r.result.gain_low >= 1 &&
                  r.result.gain_high <= 1);
            CHECK(r.result.proposals <= STEPS && r.track.next > 0);
            come_back(&r);
        }
}

static void test_search_policies__best_is_what_the_verdicts_say(void **state) {
    (void)state;
    const kl_policy *p;
    for (int i = 0; (p = row(i)); i++) {
        trip r;
        set_out(&r, p, varies, NULL);
        go(&r, p);
        if (r.err) fail_msg("%s: %s: %s", s.what, kl_err_name(r.err), r.error.message);
        check_journal(&r);
        CHECK(r.result.improved > 0 && r.result.gain > 1.2 && r.result.best != s.start);
        CHECK(r.result.proposals == STEPS && kl_str_eq(r.result.stopped, KL_S("steps")));
        CHECK(r.result.spent_microusd == kl_track_spent(&r.track.base));
        come_back(&r);
    }
}

static bool same_rows(const trip *x, const trip *y, int n) {
    if (x->track.steps < n || y->track.steps < n) return false;
    return n == 0 || memcmp(x->track.rows, y->track.rows, (size_t)n * sizeof(fake_step)) == 0;
}

static void check_twins(const kl_policy *p, settings where) {
    trip one, two;
    set_out(&one, p, varies, NULL);
    set_out(&two, p, varies, NULL);
    snprintf(s.what, sizeof s.what, "policy %s, settings %d", p->name, (int)where);
    one.settings = two.settings = where;
    go(&one, p);
    go(&two, p);
    if (one.err) fail_msg("%s: %s: %s", s.what, kl_err_name(one.err), one.error.message);
    check_journal(&one);
    CHECK(one.track.steps == two.track.steps && same_rows(&one, &two, one.track.steps));
    CHECK(strcmp(one.track.heard, two.track.heard) == 0); /* and the same questions */
    CHECK(strcmp(one.result.best->hash, two.result.best->hash) == 0);
    come_back(&one);
    come_back(&two);
}

/* With its own numbers at both ends of what they may be as well. */
static void test_search_policies__the_same_answers_give_the_same_steps(void **state) {
    (void)state;
    const kl_policy *p;
    for (int i = 0; (p = row(i)); i++)
        for (settings where = DEFAULTS; where < SETTINGS; where++) check_twins(p, where);
}

/* How many calls of each sort a search of `varies` makes. */
static void measure(const kl_policy *p, trip *whole) {
    set_out(whole, p, varies, NULL);
    go(whole, p);
    CHECK(whole->err == KL_OK);
}

static void test_search_policies__money_that_ends_is_an_end(void **state) {
    (void)state;
    const kl_policy *p;
    for (int i = 0; (p = row(i)); i++) {
        trip whole;
        measure(p, &whole);
        for (int n = 0; n < whole.track.next; n++) {
            trip r;
            set_out(&r, p, varies, NULL);
            r.track.ask_fails = n;
            r.track.fails = KL_EBUDGET;
            go(&r, p);
            snprintf(s.what, sizeof s.what, "policy %s, no money for call %d", p->name, n);
            if (r.err) fail_msg("%s: %s: %s", s.what, kl_err_name(r.err), r.error.message);
            CHECK(kl_str_eq(r.result.stopped, KL_S("budget")) && r.error.code == KL_OK);
            CHECK(r.track.next == n);
            check_journal(&r);
            CHECK(same_rows(&r, &whole,
                            r.track.steps - 1)); /* what was paid for was put to the same use */
            come_back(&r);
        }
        come_back(&whole);
    }
}

/* Whatever is not an end is handed up as it is: the line is gone through again, or the run says
 * what happened. */
static void test_search_policies__errors_are_passed_on(void **state) {
    (void)state;
    static const kl_err ERRORS[] = {KL_PENDING, KL_EINTR, KL_EMODEL};
    const kl_policy *p;
    for (int i = 0; (p = row(i)); i++) {
        trip whole;
        measure(p, &whole);
        for (int n = 0; n < whole.track.next + whole.track.judged; n++)
            for (size_t k = 0; k < KL_COUNT(ERRORS); k++) {
                trip r;
                const bool ask = n < whole.track.next;
                set_out(&r, p, varies, NULL);
                if (ask)
                    r.track.ask_fails = n;
                else
                    r.track.judge_fails = n - whole.track.next;
                r.track.fails = ERRORS[k];
                go(&r, p);
                snprintf(s.what, sizeof s.what, "policy %s, %s at %s %d", p->name,
                         kl_err_name(ERRORS[k]), ask ? "question" : "verdict",
                         ask ? n : n - whole.track.next);
                CHECK(r.err == ERRORS[k]);
                CHECK(r.error.code == ERRORS[k]);
                CHECK(same_rows(&r, &whole, r.track.steps));
                come_back(&r);
            }
        come_back(&whole);
    }
}

/* ---- the scene --------------------------------------------------------------------------- */

static void make_library(void) {
    static kl_str cases[] = {{"gemm", 4}}, surfaces[] = {{"c", 1}}, platforms[] = {{"fake", 4}};
    kl_card *c = KL_NEW(s.arena, kl_card);
    *c = (kl_card){
        .name = KL_S("unroll-c"),
        .action = KL_S("unroll"),
        .status = KL_CARD_ADMITTED,
        .intent = KL_S("the intent of the card"),
        .expected_gain = 1.5,
        .verified = {.cases = {cases, 1}, .surfaces = {surfaces, 1}, .platforms = {platforms, 1}}};
    s.library = (kl_library){.cards = c, .n_cards = 1};
}

static int set_up(void **state) {
    (void)state;
    kl_error e = {0};
    s.arena = kl_arena_new();
    assert_ok(kl_task_load(&s.task, s.arena, KL_TEST_ROOT "/tasks/gemm", &e));
    assert_ok(kl_kernel_parse(&s.start, s.arena, KL_S(HEAD "// ns 300\n"), KL_S("start.c"), NULL,
                              NULL, &e));
    s.rules = kl_prompt_rules(s.arena, s.start->surface);
    make_library();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kl_arena_free(s.arena);
    return 0;
}

int main(void) {
#define TEST(name) cmocka_unit_test(test_search_policies__##name)
    const struct CMUnitTest tests[] = {
        TEST(a_row_is_complete),
        TEST(a_proposer_that_is_never_better_leaves_the_start),
        TEST(best_is_what_the_verdicts_say),
        TEST(the_same_answers_give_the_same_steps),
        TEST(money_that_ends_is_an_end),
        TEST(errors_are_passed_on),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
