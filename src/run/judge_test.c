/* judge_test.c - what is asked of an executor, and when it is not asked.  It is a stand-in: no
 * device, no compiler. SPDX-License-Identifier: Apache-2.0 */
#include "run/run_impl.h"
#include "run/verdicts.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/test.h"
#include <stdlib.h>
#include <unistd.h>

#define TASK KL_TEST_ROOT "/tasks/softmax"

/* ---- the stand-in ------------------------------------------------------------------------ */

static int gate_runs, submits;
static kl_outcome gate_script[8]; /* one after the other; past the end: pass */
static kl_err gate_error;
static kl_gate_job gate_job; /* the last one */
static bool kept_done;       /* of jobs that keep their verdicts */
static kl_outcome kept_says;
static char jobs[16][65]; /* ids as they were submitted, and those that were cancelled */
static size_t n_jobs;
static int cancels;

static kl_err fake_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    (void)a, (void)rest, (void)e;
    *self = NULL;
    return KL_OK;
}

/* What is asked of a device that is known here. */
static kl_err fake_key(char key[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e) {
    const char *workload = j->opts.workload ? j->opts.workload : "";
    (void)self;
    if (strcmp(workload, "nowhere") == 0)
        return kl_fail(e, KL_ENOENT, "gate", "no workload 'nowhere'");
    memcpy(
        key,
        kli_hash_of(kl_arena_printf(a, "%s %s %s", j->task->hash, j->kernel->hash, workload)).hex,
        65);
    return KL_OK;
}

static void fill(kl_verdict *out, const kl_task *t, const kl_kernel *k, kl_outcome outcome) {
    *out = (kl_verdict){.outcome = outcome,
                        .stage = KL_STAGE_DONE,
                        .assurance = 'B',
                        .task = t->name,
                        .kernel_hash = kl_str_of(k->hash),
                        .kernel_path = k->path,
                        .seed = (uint64_t)gate_runs + 1};
}

static void note_job(const char *id) {
    submits++;
    if (n_jobs < KL_COUNT(jobs)) memcpy(jobs[n_jobs++], id, 65);
}

static kl_err fake_submit(char id[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e) {
    const kl_err err = fake_key(id, self, a, j, e);
    gate_job = *j;
    if (!err) note_job(id);
    return err;
}

static kl_err fake_poll(kl_verdict *out, void *self, kl_arena *a, const char *id, kl_error *e) {
    (void)self, (void)a, (void)id;
    fill(out, gate_job.task, gate_job.kernel,
         gate_runs < (int)KL_COUNT(gate_script) ? gate_script[gate_runs] : KL_OUTCOME_PASS);
    gate_runs++;
    return gate_error ? kl_fail(e, gate_error, "gate", "as told") : KL_OK;
}

static kl_err fake_cancel(void *self, kl_arena *a, const char *id, kl_error *e) {
    (void)self, (void)a, (void)id, (void)e;
    cancels++;
    return KL_OK;
}

static int one(void *self) { return (void)self, 1; }
static int many(void *self) { return (void)self, 8; }
static kl_str nothing(void *self, kl_arena *a) { return (void)self, (void)a, KL_S("a stand-in"); }

static const kl_executor_ops MEASURES = {.name = "measures",
                                         .open = fake_open,
                                         .key = fake_key,
                                         .submit = fake_submit,
                                         .poll = fake_poll,
                                         .cancel = fake_cancel,
                                         .capacity = one,
                                         .describe = nothing};

/* Another host's: what is sent is the question, and another seed another job. */
static kl_err kept_key(char key[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e) {
    const kl_gate_opts *o = &j->opts;
    (void)self, (void)e;
    const kl_str text = kl_arena_printf(
        a, "%s %s %s %s %llu", j->task->hash, j->kernel->hash, o->workload ? o->workload : "",
        o->against ? o->against->hash : "", (unsigned long long)o->seed);
    memcpy(key, kli_hash_of(text).hex, 65);
    return KL_OK;
}

static kl_err kept_submit(char id[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e) {
    const kl_err err = kept_key(id, self, a, j, e);
    note_job(id);
    return err;
}

static const kl_task *kept_task;
static const kl_kernel *kept_kernel;

static kl_err kept_poll(kl_verdict *out, void *self, kl_arena *a, const char *id, kl_error *e) {
    kl_verdict made;
    (void)self;
    if (!kept_done) return kl_fail(e, KL_PENDING, "elsewhere", "job %.12s is not done yet", id);
    fill(&made, kept_task, kept_kernel, kept_says);
    memcpy(made.receipt, kli_hash_of(kl_str_of(id)).hex,
           sizeof made.receipt); /* another job, another receipt */
    made.created = KL_S("2026-01-31T12:00:00Z");
    json_t *o = kl_verdict_json(&made);
    const kl_err err =
        kl_verdict_parse(out, a, kli_json_dump(a, o, false), KL_S("verdict.json"), e);
    json_decref(o);
    return err;
}

static const kl_executor_ops KEEPS = {.name = "keeps",
                                      .keeps = true,
                                      .open = fake_open,
                                      .key = kept_key,
                                      .submit = kept_submit,
                                      .poll = kept_poll,
                                      .cancel = fake_cancel,
                                      .capacity = many,
                                      .describe = nothing};

/* ---- one track a test -------------------------------------------------------------------- */

static kl_arena *arena;
static kl_error e;
static const char *dir;
static kl_run *run;
static kl_run_opts opts;
static kli_track track;
static kl_task *task;
static kl_kernel *kernel;

static kl_err no_line(kl_track *t, void *ctx, kl_error *error) {
    (void)t, (void)ctx, (void)error;
    return KL_OK;
}

static const kl_track_spec spec = {
    .name = "softmax/walk", .workload = "cpu", .policy = "walk", .body = no_line};

static void open_run(void) {
    assert_ok(kl_run_open(&run, &opts, &e));
    kli_track_init(&track, run, &spec);
    kli_track_begin(&track);
}

static void again(void) {
    kli_track_fini(&track);
    kl_run_close(run);
    open_run();
}

static int set_up(void **state) {
    (void)state;
    kl_str folder;
    arena = kl_arena_new();
    e = (kl_error){0};
    gate_runs = submits = cancels = 0;
    gate_error = KL_OK;
    kept_done = false;
    kept_says = KL_OUTCOME_PASS;
    n_jobs = 0;
    memset(gate_script, 0, sizeof gate_script);
    KL_ASSERT(KL_OUTCOME_PASS == 0);
    if (kli_fs_temp_dir(&folder, arena, &e)) return -1;
    dir = folder.ptr;
    assert_ok(kl_task_load(&task, arena, TASK, &e));
    assert_ok(kl_kernel_load(&kernel, arena, TASK "/naive.c", NULL, &e));
    kept_task = task;
    kept_kernel = kernel;
    opts = (kl_run_opts){.command = "walk",
                         .store = kli_fs_join(arena, dir, "k.db").ptr,
                         .gate = {.baseline = "none"},
                         .executor_ops = &MEASURES};
    open_run();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kli_track_fini(&track);
    kl_run_close(run);
    kli_fs_remove_tree(dir);
    kl_arena_free(arena);
    return 0;
}

static kl_verdict judged(const kl_gate_opts *o) {
    kl_verdict v;
    assert_ok(kl_judge(&v, &track.base, arena, task, kernel, o, &e));
    return v;
}

static size_t effects(void) {
    kl_store_effect *rows;
    size_t n;
    assert_ok(kl_store_effect_list(&rows, &n, run->store, arena, run->id, NULL, &e));
    return n;
}

/* ---- here -------------------------------------------------------------------------------- */

static void test_run_judge__is_measured_once(void **state) {
    (void)state;
    kl_verdict first = judged(NULL);
    assert_false(first.journaled);
    assert_true(gate_job.opts.more_to_come);
    const char *key = kl_arena_copy(arena, kl_str_of(kl_track_verdict_key(&track.base))).ptr;
    assert_int_equal(strlen(key), 64);
    again();
    kl_verdict second = judged(NULL);
    assert_true(second.journaled);
    assert_string_equal(first.receipt[0] ? first.receipt : second.receipt, second.receipt);
    assert_string_equal(kl_track_verdict_key(&track.base), key);
    assert_int_equal(gate_runs, 1);
    assert_int_equal(effects(), 1);
}

static kl_noise measured(int left_out, double noise, const char *created) {
    char host[65] = "";
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    return (kl_noise){.host = kl_arena_copy(arena, kl_str_of(host)),
                      .device = KL_S("this"),
                      .length = KL_S("10us"),
                      .median = 1,
                      .noise = noise,
                      .pairs = 60,
                      .left_out = left_out,
                      .created = kl_str_of(created)};
}

/* It is in the journal for whoever opens it next, and every gate is told. */
static void test_run_judge__the_host_is_known_from_before(void **state) {
    (void)state;
    const kl_noise unsettled = measured(59, 0.9, kli_utc_now(arena).ptr),
                   now = measured(0, 0.01, kli_utc_now(arena).ptr),
                   old = measured(0, 0.5, "2026-01-01T00:00:00Z");
    kl_noise elsewhere = now;
    elsewhere.host = KL_S("another host");
    judged(NULL);
    assert_true(gate_job.opts.noise && gate_job.opts.noise->n == 0);
    assert_ok(kl_run_keep_noise(run, &unsettled, &e));
    assert_ok(kl_run_keep_noise(run, &elsewhere, &e));
    assert_int_equal(kl_run_noise(run)->n, 0);
    assert_ok(kl_run_keep_noise(run, &old, &e));
    assert_ok(kl_run_keep_noise(run, &now, &e));
    assert_ok(kl_run_keep_noise(run, &now, &e)); /* the same one is one */
    opts.trial = 2;
    opts.gate.workload = "M=2,N=2";
    again();
    judged(NULL);
    const kl_noise_record *known = gate_job.opts.noise;
    assert_true(known->n == 2 && known->fresh == 1);
    assert_true(known->noise > 0.009 && known->noise < 0.011);
    assert_str(known->device, "this");
}

static void test_run_judge__another_runs_verdict_is_free(void **state) {
    (void)state;
    judged(NULL);
    opts.trial = 2;
    again();
    assert_true(judged(NULL).journaled);
    assert_int_equal(gate_runs, 1);
    assert_int_equal(effects(), 1); /* of this run: it says which verdict it used */
}

static void
test_run_judge__a_resumed_run_keeps_its_verdict_whatever_was_measured_since(void **state) {
    (void)state;
    kl_verdict newer;
    char key[65];
    uint64_t first = judged(NULL).seed;
    fill(&newer, task, kernel, KL_OUTCOME_WRONG);
    newer.seed = 99;
    assert_ok(fake_key(key, NULL, arena, &(kl_gate_job){task, kernel, opts.gate}, &e));
    assert_ok(kli_verdicts_keep(key, run->store, arena, &newer, &e));
    again();
    assert_true(judged(NULL).seed == first);
    opts.trial = 2;
    again();
    assert_true(judged(NULL).seed == 99); /* another run takes the newest */
    assert_int_equal(gate_runs, 1);
}

static void test_run_judge__unstable_is_tried_once_more_and_then_kept(void **state) {
    (void)state;
    gate_script[0] = gate_script[1] = KL_OUTCOME_UNSTABLE;
    assert_int_equal(judged(NULL).outcome, KL_OUTCOME_UNSTABLE);
    assert_int_equal(gate_runs, 2);
    assert_int_equal(effects(), 0);                 /* nothing rests on it yet */
    assert_ok(kli_pending_check_write(&track, &e)); /* as the next question does, or a good end */
    assert_int_equal(effects(), 1);
    again();
    assert_int_equal(judged(NULL).outcome, KL_OUTCOME_UNSTABLE); /* this run goes on as it went */
    assert_int_equal(gate_runs, 2);
    opts.trial = 2;
    again();
    assert_int_equal(judged(NULL).outcome, KL_OUTCOME_PASS); /* another one asks again */
    assert_int_equal(gate_runs, 3);
}

static void test_run_judge__a_line_that_gave_up_on_unstable_measures_again(void **state) {
    (void)state;
    gate_script[0] = gate_script[1] = KL_OUTCOME_UNSTABLE;
    assert_int_equal(judged(NULL).outcome, KL_OUTCOME_UNSTABLE);
    again();
    assert_int_equal(judged(NULL).outcome, KL_OUTCOME_PASS);
    assert_int_equal(gate_runs, 3);
    assert_int_equal(effects(), 1);
}

static void test_run_judge__the_next_question_settles_a_doubt(void **state) {
    (void)state;
    gate_script[0] = gate_script[1] = KL_OUTCOME_UNSTABLE;
    judged(NULL);
    judged(&(kl_gate_opts){.baseline = "none", .workload = "other"});
    assert_int_equal(effects(), 2);
    again();
    assert_int_equal(judged(NULL).outcome, KL_OUTCOME_UNSTABLE);
    assert_int_equal(gate_runs, 3);
}

static void test_run_judge__options_that_matter_are_other_questions(void **state) {
    (void)state;
    judged(NULL);
    judged(&(kl_gate_opts){.baseline = "none",
                           .require_assurance = 'B'}); /* B is what the first one had */
    assert_int_equal(gate_runs, 1);
    judged(&(kl_gate_opts){.baseline = "none", .require_assurance = 'A'});
    assert_int_equal(gate_runs, 2);
    assert_int_equal(effects(), 3);
}

static void test_run_judge__the_worlds_failure_is_not_kept(void **state) {
    (void)state;
    kl_verdict v;
    gate_error = KL_EINTR;
    assert_err(KL_EINTR, kl_judge(&v, &track.base, arena, task, kernel, NULL, &e));
    assert_int_equal(track.n_failures, 1);
    assert_int_equal(effects(), 0);
    gate_error = KL_OK;
    again();
    judged(NULL);
    assert_int_equal(effects(), 1);
    assert_err(KL_ENOENT, kl_judge(&v, &track.base, arena, task, kernel,
                                   &(kl_gate_opts){.workload = "nowhere"}, &e));
    assert_contains(e.message, "no workload");
}

static void test_run_judge__the_journal_alone_measures_nothing(void **state) {
    (void)state;
    kl_verdict v;
    judged(NULL);
    again();
    track.journal_only = true;
    judged(NULL);
    assert_err(KL_EIO, kl_judge(&v, &track.base, arena, task, kernel, NULL,
                                &e)); /* a second time was never asked */
    assert_int_equal(gate_runs, 1);
}

/* ---- there ------------------------------------------------------------------------------- */

static void test_run_judge__elsewhere_is_pending_until_it_is_done(void **state) {
    (void)state;
    kl_verdict v;
    opts.executor_ops = &KEEPS;
    again();
    assert_err(KL_PENDING, kl_judge(&v, &track.base, arena, task, kernel, NULL, &e));
    assert_int_equal(track.n_failures, 0);
    assert_int_equal(effects(), 0);
    kept_done = true;
    again();
    assert_int_equal(judged(NULL).outcome, KL_OUTCOME_PASS);
    int puts = submits;
    again();
    judged(NULL);
    assert_int_equal(submits, puts); /* the folder may be gone by now */
    opts.trial = 2;
    again();
    judged(NULL);
    kl_store_verdict *rows;
    size_t n;
    assert_ok(
        kl_store_verdict_list(&rows, &n, run->store, arena, &(kl_store_verdict_query){0}, &e));
    assert_int_equal(n, 1); /* the same verdict is kept once */
    assert_int_equal(gate_runs, 0);
}

static void begin_elsewhere(void) {
    opts.executor_ops = &KEEPS;
    again();
}

static bool was_put(size_t i, const kl_gate_opts *o) {
    char id[65];
    assert_ok(kept_key(id, NULL, arena, &(kl_gate_job){task, kernel, *o}, &e));
    return i < n_jobs && strcmp(jobs[i], id) == 0;
}

static void test_run_judge__a_rival_is_another_question_elsewhere(void **state) {
    (void)state;
    begin_elsewhere();
    kept_done = true;
    judged(NULL);
    judged(&(kl_gate_opts){.baseline = "none", .against = kernel});
    assert_int_equal(effects(), 2);
    again();
    judged(NULL);
    judged(&(kl_gate_opts){.baseline = "none", .against = kernel});
    assert_int_equal(effects(), 2);
}

static void test_run_judge__what_is_foreseen_goes_with_what_waits(void **state) {
    (void)state;
    kl_verdict v;
    const kl_gate_opts race = {.against = kernel};
    kl_prefetch(&track.base, task, kernel, &race);
    judged(NULL);
    assert_int_equal(submits, 1); /* one after the other: there is nothing to gain */
    opts.trial = 2;
    n_jobs = 0;
    begin_elsewhere();
    kl_prefetch(&track.base, task, kernel, &race);
    assert_int_equal(n_jobs, 0); /* nobody waits yet */
    assert_err(KL_PENDING, kl_judge(&v, &track.base, arena, task, kernel, NULL, &e));
    assert_int_equal(n_jobs, 2);
    assert_true(was_put(0, &opts.gate) && was_put(1, &race));
    assert_err(KL_PENDING, kl_judge(&v, &track.base, arena, task, kernel, NULL, &e));
    assert_int_equal(n_jobs, 3); /* it is prefetched once */
    kept_done = true;
    again();
    kl_prefetch(&track.base, task, kernel, &race);
    judged(NULL);
    assert_int_equal(
        n_jobs,
        4); /* an answer that is there may be no good one: what was prefetched may never be asked */
}

static void test_run_judge__what_was_foreseen_in_vain_is_cancelled(void **state) {
    (void)state;
    kl_verdict v;
    const kl_gate_opts race = {.against = kernel};
    for (int asked = 0; asked < 2; asked++) {
        opts.trial = 2 + (uint64_t)asked;
        begin_elsewhere();
        for (int pass = 0; pass < 3; pass++) {
            kl_prefetch(&track.base, task, kernel, &race);
            assert_err(KL_PENDING, kl_judge(&v, &track.base, arena, task, kernel, NULL, &e));
        }
        if (asked)
            assert_err(KL_PENDING, kl_judge(&v, &track.base, arena, task, kernel, &race, &e));
        kli_ahead_cancel(&track); /* as a line that ended well does */
        assert_int_equal(cancels, 1);
    }
}

static void
test_run_judge__a_job_that_keeps_an_unstable_verdict_is_followed_by_another(void **state) {
    (void)state;
    kl_verdict v;
    begin_elsewhere();
    kept_done = true;
    kept_says = KL_OUTCOME_UNSTABLE;
    assert_int_equal(judged(NULL).outcome, KL_OUTCOME_UNSTABLE);
    assert_int_equal(n_jobs, 1);
    assert_int_equal(effects(), 0); /* as here: nothing rests on it yet */
    again();
    assert_int_equal(judged(NULL).outcome,
                     KL_OUTCOME_UNSTABLE); /* the line gave up on the first; this is the second */
    assert_int_equal(n_jobs, 3);
    assert_string_equal(jobs[0], jobs[1]);
    assert_string_not_equal(jobs[1], jobs[2]);
    assert_ok(kli_pending_check_write(&track, &e));
    again();
    judged(NULL); /* this line went on from it */
    assert_int_equal(n_jobs, 3);
    opts.trial = 2;
    kept_says = KL_OUTCOME_PASS;
    again();
    v = judged(NULL);
    assert_int_equal(v.outcome, KL_OUTCOME_PASS);
    const kl_gate_opts pinned = {.seed = 7};
    kept_says = KL_OUTCOME_UNSTABLE;
    judged(&pinned);
    again();
    n_jobs = 0;
    judged(NULL);
    judged(&pinned); /* whoever names the seed asks for this one */
    assert_int_equal(n_jobs, 1);
}

/* ---- text -------------------------------------------------------------------------------- */

static void test_run_judge_text__what_does_not_parse_is_refused_and_kept(void **state) {
    (void)state;
    const kl_surface *c = kl_surface_of_host(KL_ON_CPU);
    const kl_str texts[] = {KL_S(""), KL_S("//! lauch typo"), KL_S("\xff\xfe\x00\x01"),
                            KL_S("//! flags -include /etc/passwd\n")};
    kl_verdict v;
    kl_kernel *k;
    for (int pass = 0; pass < 2; pass++, again())
        for (size_t i = 0; i < KL_COUNT(texts); i++) {
            assert_ok(kl_judge_text(&v, &k, &track.base, arena, task, texts[i], c, NULL, &e));
            assert_null(k);
            assert_int_equal(v.outcome, KL_OUTCOME_REFUSED);
            assert_true(v.journaled == (pass == 1));
            kl_str json;
            assert_ok(kl_store_verdict_get(&json, run->store, arena,
                                           kl_track_verdict_key(&track.base), &e));
        }
    assert_int_equal(gate_runs, 0);
    kl_str text;
    assert_ok(kli_fs_read(&text, arena, TASK "/naive.c", 1 << 20, &e));
    assert_ok(kl_judge_text(&v, &k, &track.base, arena, task, text, c, NULL, &e));
    assert_non_null(k);
    assert_int_equal(v.outcome, KL_OUTCOME_PASS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_run_judge__is_measured_once),
        TEST(test_run_judge__the_host_is_known_from_before),
        TEST(test_run_judge__another_runs_verdict_is_free),
        TEST(test_run_judge__a_resumed_run_keeps_its_verdict_whatever_was_measured_since),
        TEST(test_run_judge__unstable_is_tried_once_more_and_then_kept),
        TEST(test_run_judge__a_line_that_gave_up_on_unstable_measures_again),
        TEST(test_run_judge__the_next_question_settles_a_doubt),
        TEST(test_run_judge__options_that_matter_are_other_questions),
        TEST(test_run_judge__the_worlds_failure_is_not_kept),
        TEST(test_run_judge__the_journal_alone_measures_nothing),
        TEST(test_run_judge__elsewhere_is_pending_until_it_is_done),
        TEST(test_run_judge__a_rival_is_another_question_elsewhere),
        TEST(test_run_judge__what_is_foreseen_goes_with_what_waits),
        TEST(test_run_judge__what_was_foreseen_in_vain_is_cancelled),
        TEST(test_run_judge__a_job_that_keeps_an_unstable_verdict_is_followed_by_another),
        TEST(test_run_judge_text__what_does_not_parse_is_refused_and_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
