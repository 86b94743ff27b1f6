/* effort_test.c - what is typed of money, counts and places is taken as it was meant or refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/effort.h"
#include "kit/kit.h"

static kli_args args;

static int set_up(void **state) {
    args = (kli_args){.command = KL_COMMAND_OPTIMIZE};
    return kit_set_up(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

/* ---- numbers ------------------------------------------------------------------------------ */

static kl_err real(double *out, const char *typed) {
    e = (kl_error){0};
    args.values[KL_OPTION_GOAL] = typed;
    return kli_effort_real(out, &args, KL_OPTION_GOAL, 0.75, &e);
}

static void test_effort_real__is_a_finite_number_of_zero_or_more(void **state) {
    static const char *const REFUSED[] = {"", "x", "1.5x", "1,5", "-0.5", "nan", "inf", "1e999"};
    double r = 0;
    (void)state;
    assert_ok(real(&r, NULL));
    assert_true(r == 0.75);
    assert_ok(real(&r, "1.5"));
    assert_true(r == 1.5);
    assert_ok(real(&r, "25e-1"));
    assert_true(r == 2.5);
    for (size_t i = 0; i < KL_COUNT(REFUSED); i++) {
        assert_err(KL_EINVAL, real(&r, REFUSED[i]));
        assert_contains(e.message, "--goal takes a number of 0 or more");
    }
}

static kl_err dollars(int64_t *out, const char *typed) {
    e = (kl_error){0};
    args.values[KL_OPTION_BUDGET] = typed;
    return kli_effort_dollars(out, &args, KL_OPTION_BUDGET, 1234567, &e);
}

static void test_effort_dollars__are_rounded_to_a_millionth(void **state) {
    static const struct {
        const char *typed;
        int64_t microusd;
    } ROWS[] = {{NULL, 1234567},  {"0", 0},         {"5", 5000000},  {"0.25", 250000},
                {"1e-6", 1},      {"0.0000004", 0}, {"0.1", 100000}, {"1000000", 1000000000000},
                {"0.29", 290000}, {"1.1", 1100000}};
    int64_t microusd;
    (void)state;
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        assert_ok(dollars(&microusd, ROWS[i].typed));
        assert_int_equal(microusd, ROWS[i].microusd);
    }
}

/* What was refused leaves no budget behind. */
static void test_effort_dollars__a_mistake_is_no_budget(void **state) {
    static const char *const REFUSED[] = {"", "five", "$5", "5usd", "-1", "nan", "inf", "1000001"};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(REFUSED); i++) {
        int64_t microusd = 7;
        assert_err(KL_EINVAL, dollars(&microusd, REFUSED[i]));
        assert_int_equal(microusd, 0);
        assert_contains(e.hint, "--budget 0.25");
    }
}

/* A number is what was typed or refused, never what is left of it in a few bits. */
static void test_effort_count__is_not_wrapped(void **state) {
    static const char *const REFUSED[] = {"0", "31", "256", "4294967297", "18446744073709551615"};
    int n;
    (void)state;
    assert_ok(kli_effort_count(&n, &args, KL_OPTION_TRIES, 3, KL_MAX_TRIES, &e));
    assert_int_equal(n, 3);
    args.values[KL_OPTION_TRIES] = "30";
    assert_ok(kli_effort_count(&n, &args, KL_OPTION_TRIES, 3, KL_MAX_TRIES, &e));
    assert_int_equal(n, 30);
    for (size_t i = 0; i < KL_COUNT(REFUSED); i++) {
        args.values[KL_OPTION_TRIES] = REFUSED[i];
        assert_err(KL_EINVAL, kli_effort_count(&n, &args, KL_OPTION_TRIES, 3, KL_MAX_TRIES, &e));
        assert_contains(e.message, "--tries");
    }
}

/* ---- tracks ------------------------------------------------------------------------------- */

static void test_effort_jobs__are_at_least_one_and_bounded(void **state) {
    (void)state;
    assert_ok(kli_effort_jobs(&args, &e));
    assert_int_equal(kli_effort_tracks(&args).jobs, 1);
    assert_false(kli_effort_tracks(&args).once);
    args.values[KL_OPTION_JOBS] = "8";
    args.values[KL_OPTION_ONCE] = "";
    assert_ok(kli_effort_jobs(&args, &e));
    assert_int_equal(kli_effort_tracks(&args).jobs, 8);
    assert_true(kli_effort_tracks(&args).once);
    args.values[KL_OPTION_JOBS] = "256";
    assert_int_equal(kli_effort_tracks(&args).jobs, 256);
    args.values[KL_OPTION_JOBS] = "4294967300";
    assert_int_equal(kli_effort_tracks(&args).jobs, 256);
    args.values[KL_OPTION_JOBS] = "0";
    assert_err(KL_EINVAL, kli_effort_jobs(&args, &e));
    assert_contains(e.message, "--jobs is at least 1");
}

static void test_effort_executor__is_here_unless_a_spool_is_named(void **state) {
    (void)state;
    assert_string_equal(kli_effort_executor(arena, &args), "local");
    args.values[KL_OPTION_SPOOL] = "/mnt/jobs";
    assert_string_equal(kli_effort_executor(arena, &args), "spool:/mnt/jobs");
}

static void test_effort_replays__only_a_recording(void **state) {
    (void)state;
    assert_true(kli_effort_replays("replay:walk.jsonl"));
    assert_true(kli_effort_replays("replay:exact:walk.jsonl"));
    assert_false(kli_effort_replays("replayed"));
    assert_false(kli_effort_replays("builtin"));
    assert_false(kli_effort_replays(NULL));
}

/* ---- a run -------------------------------------------------------------------------------- */

static void test_effort_run__is_what_was_typed(void **state) {
    kl_run_opts o;
    (void)state;
    args.values[KL_OPTION_MODEL] = "builtin";
    args.values[KL_OPTION_PRICED_AS] = "some-model";
    args.values[KL_OPTION_BUDGET] = "0.5";
    args.values[KL_OPTION_BUDGET_TOTAL] = "2";
    args.values[KL_OPTION_TRIAL] = "7";
    args.values[KL_OPTION_STORE] = "k.db";
    args.values[KL_OPTION_SPOOL] = "jobs";
    args.values[KL_OPTION_ARCH] = "sm_90a";
    args.values[KL_OPTION_QUICK] = "";
    assert_ok(kli_effort_run(&o, arena, &args, "optimize", &e));
    assert_string_equal(o.command, "optimize");
    assert_string_equal(o.model, "builtin");
    assert_string_equal(o.priced_as, "some-model");
    assert_string_equal(o.store, "k.db");
    assert_string_equal(o.executor, "spool:jobs");
    assert_string_equal(o.gate.arch, "sm_90a");
    assert_true(o.gate.quick);
    assert_int_equal(o.trial, 7);
    assert_int_equal(o.budget_microusd, 500000);
    assert_int_equal(o.total_microusd, 2000000);
}

static void test_effort_run__what_was_not_typed_has_a_default(void **state) {
    kl_run_opts o;
    (void)state;
    args.values[KL_OPTION_MODEL] = "builtin";
    assert_ok(kli_effort_run(&o, arena, &args, "walk", &e));
    assert_int_equal(o.trial, 1);
    assert_int_equal(o.budget_microusd, 10000000);
    assert_int_equal(o.total_microusd, 0); /* the tracks' caps alone */
    assert_false(o.gate.quick);
    assert_null(o.store);
    assert_null(o.priced_as);
}

/* A cap that rounds to nothing would be no cap at all. */
static void test_effort_run__refuses_what_would_be_no_cap(void **state) {
    static const char *const REFUSED[] = {"0", "0.0", "0.0000001"};
    kl_run_opts o;
    (void)state;
    args.values[KL_OPTION_MODEL] = "builtin";
    for (size_t i = 0; i < KL_COUNT(REFUSED); i++) {
        args.values[KL_OPTION_BUDGET_TOTAL] = REFUSED[i];
        assert_err(KL_EINVAL, kli_effort_run(&o, arena, &args, "walk", &e));
        assert_contains(e.message, "--budget-total must be above 0");
    }
}

static void test_effort_run__a_model_is_needed_and_the_kinds_are_named(void **state) {
    kl_run_opts o;
    (void)state;
    assert_err(KL_EINVAL, kli_effort_run(&o, arena, &args, "walk", &e));
    assert_contains(e.message, "no model given");
    for (int i = 0; kl_provider_each(i); i++) assert_contains(e.hint, kl_provider_each(i)->name);
    assert_ok(kli_effort_gates(&o, arena, &args, "lineage judge", &e)); /* it asks none */
}

/* ---- a quiet machine ---------------------------------------------------------------------- */

/* Where kernels run elsewhere, and where nobody asked to wait, nothing is measured here: an
 * interrupt that stands would end a measurement. */
static void test_effort_quiet__is_not_looked_at_for_others(void **state) {
    kl_noise_record record;
    (void)state;
    assert_ok(kli_effort_host(&record, arena, &args, NULL, &e));
    args.values[KL_OPTION_SPOOL] = "jobs";
    args.values[KL_OPTION_WAIT_QUIET] = "1";
    assert_ok(kli_effort_host(&record, arena, &args, NULL, &e));
    assert_ok(kli_effort_quiet(&args, NULL, &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_effort_real__is_a_finite_number_of_zero_or_more),
        TEST(test_effort_dollars__are_rounded_to_a_millionth),
        TEST(test_effort_dollars__a_mistake_is_no_budget),
        TEST(test_effort_count__is_not_wrapped),
        TEST(test_effort_jobs__are_at_least_one_and_bounded),
        TEST(test_effort_executor__is_here_unless_a_spool_is_named),
        TEST(test_effort_replays__only_a_recording),
        TEST(test_effort_run__is_what_was_typed),
        TEST(test_effort_run__what_was_not_typed_has_a_default),
        TEST(test_effort_run__refuses_what_would_be_no_cap),
        TEST(test_effort_run__a_model_is_needed_and_the_kinds_are_named),
        TEST(test_effort_quiet__is_not_looked_at_for_others),
    };
    return cmocka_run_group_tests_name("effort", tests, NULL, NULL);
}
