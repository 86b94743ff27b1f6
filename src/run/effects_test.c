/* effects_test.c - what every row of effects owes a line, and that a line does not see who judges
 * for it. SPDX-License-Identifier: Apache-2.0 */
#include "executor/simulated.h"
#include "run/fake_track.h"
#include "run/run_impl.h"
#include "base/fs.h"
#include "base/test.h"
#include <stdio.h>

#define TASK KL_TEST_ROOT "/tasks/gemm"
#define KERNELS KL_TEST_ROOT "/tests/flow/kernels"

static struct {
    kl_arena *arena;
    const char *dir;
    kl_task *task;
    kl_kernel *kernels[3]; /* right, wrong, broken */
} s;
static kl_error e;

static const kl_gate_opts QUICK = {.workload = "tiny", .check_only = true, .quick = true};

static int set_up(void **state) {
    (void)state;
    static const char *const files[] = {TASK "/naive.c", KERNELS "/gemm_wrong.c",
                                        KERNELS "/gemm_syntax.c"};
    kl_str dir;
    s.arena = kl_arena_new();
    e = (kl_error){0};
    assert_ok(kli_fs_temp_dir(&dir, s.arena, &e));
    s.dir = dir.ptr;
    assert_ok(kl_task_load(&s.task, s.arena, TASK, &e));
    for (size_t i = 0; i < KL_COUNT(files); i++)
        assert_ok(kl_kernel_load(&s.kernels[i], s.arena, files[i], NULL, &e));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kli_fs_remove_tree(s.dir);
    kl_arena_free(s.arena);
    return 0;
}

/* ---- what every row owes ----------------------------------------------------------------- */

static void seeds_are_named(const kl_track *t) {
    const uint64_t seed = kl_track_seed(t, "draws");
    assert_true(seed != 0 && seed == kl_track_seed(t, "draws"));
    assert_true(seed != kl_track_seed(t, "other draws"));
}

static void asking_is_counted(kl_track *t) {
    const kl_message messages[] = {{KL_ROLE_SYSTEM, KL_S("rules"), true},
                                   {KL_ROLE_USER, KL_S("question"), false}};
    const kl_request q = {.messages = messages,
                          .n = 2,
                          .max_tokens = 100,
                          .purpose = "deoptimize",
                          .subject = s.kernels[0]};
    kl_reply r;
    assert_int_equal(kl_track_spent(t), 0);
    assert_ok(kl_ask(&r, t, kl_track_arena(t), &q, &e));
    assert_str(r.text, "an answer");
    assert_true(kl_track_spent(t) > 0 && kl_track_spent(t) <= kl_track_budget(t));
    assert_true(kl_track_model(t)[0] != '\0');
    assert_null(kl_track_recorded_next(t, NULL)); /* nothing is replayed */
}

static const char *judged(kl_track *t, const kl_kernel *k, kl_outcome outcome) {
    kl_verdict v;
    kl_prefetch(t, s.task, k, &QUICK);
    assert_ok(kl_judge(&v, t, kl_track_arena(t), s.task, k, &QUICK, &e));
    assert_int_equal(v.outcome, outcome);
    assert_int_equal(strspn(kl_track_verdict_key(t), "0123456789abcdef"), 64);
    return kl_arena_copy(s.arena, kl_str_of(kl_track_verdict_key(t))).ptr;
}

static void verdicts_have_keys(kl_track *t) {
    const char *first = judged(t, s.kernels[0], KL_OUTCOME_PASS), *other;
    kl_verdict v;
    kl_kernel *k;
    assert_string_equal(judged(t, s.kernels[0], KL_OUTCOME_PASS), first);
    assert_ok(kl_judge_text(&v, &k, t, kl_track_arena(t), s.task, KL_S("//! lauch typo"),
                            s.kernels[0]->surface, &QUICK, &e));
    assert_null(k);
    assert_int_equal(v.outcome, KL_OUTCOME_REFUSED);
    assert_true(v.why.len > 0);
    other = kl_arena_copy(s.arena, kl_str_of(kl_track_verdict_key(t))).ptr;
    assert_string_not_equal(other, first);
    assert_ok(kl_judge_text(&v, &k, t, kl_track_arena(t), s.task, s.kernels[0]->source,
                            s.kernels[0]->surface, &QUICK, &e));
    assert_non_null(k);
    assert_string_equal(kl_track_verdict_key(t), first);
}

static void steps_are_taken(kl_track *t) {
    const kl_step step = {
        .phase = KL_S("walk"), .outcome = KL_S("pass"), .kernel = kl_str_of(s.kernels[0]->hash)};
    for (int i = 0; i < 3; i++) assert_ok(kl_track_step(t, &step, s.kernels[0]->source, &e));
    kl_track_phase(t, "walk");
    kl_track_best(t, 1.5);
    kl_track_log(t, "%d steps \x1b[2J", 3);
}

static void owes(kl_track *t) {
    assert_non_null(kl_track_arena(t));
    assert_non_null(kl_track_gate_opts(t));
    assert_true(t->effects->name[0]);
    seeds_are_named(t);
    asking_is_counted(t);
    verdicts_have_keys(t);
    steps_are_taken(t);
}

/* ---- the rows ---------------------------------------------------------------------------- */

static kl_err answers(kl_reply *out, void *self, kl_arena *a, const kl_request *q,
                      kl_error *error) {
    (void)self, (void)a, (void)q, (void)error;
    out->text = KL_S("an answer");
    out->usage = (kl_usage){.input = 20, .output = 50};
    return KL_OK;
}

static const kl_provider PROVIDER = {
    .name = "answers", .spec = "answers", .repeatable = true, .ask = answers};

static kl_err no_line(kl_track *t, void *ctx, kl_error *error) {
    return (void)t, (void)ctx, (void)error, KL_OK;
}

static void test_run_effects__journaled(void **state) {
    (void)state;
    const kl_run_opts o = {.command = "walk",
                           .store = kli_fs_join(s.arena, s.dir, "k.db").ptr,
                           .provider = &PROVIDER,
                           .priced_as = "claude-opus-4-6",
                           .budget_microusd = 1000000};
    const kl_track_spec spec = {
        .name = "gemm/walk", .workload = "tiny", .policy = "walk", .body = no_line};
    kl_run *run;
    kli_track t;
    for (int pass = 0; pass < 2; pass++) { /* once live, once out of the journal */
        assert_ok(kl_run_open(&run, &o, &e));
        kli_track_init(&t, run, &spec);
        t.journal_only = pass == 1;
        kli_track_begin(&t);
        owes(&t.base);
        kli_track_fini(&t);
        kl_run_close(run);
    }
}

static void test_run_effects__fake(void **state) {
    (void)state;
    fake_track t;
    fake_track_open(&t, s.arena);
    t.base.budget_microusd = 1000000;
    fake_says(&t, KL_S("an answer"));
    owes(&t.base);
    assert_int_equal(t.steps, 3);
    fake_track_close(&t);
}

/* ---- who judges is not seen -------------------------------------------------------------- */

enum { TRACKS = 2 };

typedef struct {
    int n;
    kl_outcome outcomes[KL_COUNT(s.kernels)];
    char kernels[KL_COUNT(s.kernels)][65];
} findings;

static kl_err judge_all(kl_track *t, void *ctx, kl_error *error) {
    findings *f = ctx;
    for (f->n = 0; f->n < (int)KL_COUNT(s.kernels); f->n++) {
        kl_verdict v;
        const kl_err err =
            kl_judge(&v, t, kl_track_arena(t), s.task, s.kernels[f->n], &QUICK, error);
        if (err) return err;
        f->outcomes[f->n] = v.outcome;
        snprintf(f->kernels[f->n], sizeof f->kernels[0], "%.*s", KL_STR_ARG(v.kernel_hash));
    }
    return KL_OK;
}

static void run_on(findings found[TRACKS], const char *store, const kl_executor_ops *ops) {
    const kl_run_opts o = {
        .command = "walk", .store = kli_fs_join(s.arena, s.dir, store).ptr, .executor_ops = ops};
    kl_track_spec specs[TRACKS];
    kl_run *run;
    memset(found, 0, TRACKS * sizeof *found);
    for (int i = 0; i < TRACKS; i++)
        specs[i] = (kl_track_spec){.name = kl_arena_printf(s.arena, "gemm/%d", i).ptr,
                                   .workload = "tiny",
                                   .policy = "walk",
                                   .body = judge_all,
                                   .ctx = &found[i]};
    assert_ok(kl_run_open(&run, &o, &e));
    assert_ok(
        kl_run_tracks(run, specs, TRACKS, &(kl_track_opts){.jobs = TRACKS, .quiet = true}, &e));
    kl_run_close(run);
}

static void test_run_effects__a_line_is_the_same_here_and_on_64_workers(void **state) {
    (void)state;
    findings here[TRACKS], there[TRACKS];
    run_on(here, "here.db", NULL);
    run_on(there, "there.db", &executor_simulated);
    assert_memory_equal(here, there, sizeof here);
    for (int i = 0; i < TRACKS; i++) {
        assert_int_equal(here[i].n, KL_COUNT(s.kernels));
        assert_int_equal(here[i].outcomes[0], KL_OUTCOME_PASS);
        assert_int_equal(here[i].outcomes[1], KL_OUTCOME_WRONG);
        assert_int_equal(here[i].outcomes[2], KL_OUTCOME_NO_COMPILE);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_run_effects__journaled),
        TEST(test_run_effects__fake),
        TEST(test_run_effects__a_line_is_the_same_here_and_on_64_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
