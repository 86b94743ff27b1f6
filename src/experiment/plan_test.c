/* plan_test.c - experiment files, good and bad: what is wrong is told with its line, and nothing of
 * it is taken. SPDX-License-Identifier: Apache-2.0 */
#include "experiment_impl.h"
#include "base/fs.h"
#include "kit/kit.h"
#include <stdio.h>
#include <stdlib.h>

static const char *dir, *file;

static int set_up(void **state) {
    kit_set_up(state);
    setenv("KLINEAGE_TASKS", KL_TEST_ROOT "/tasks", 1);
    unsetenv("KLINEAGE_PRICES");
    dir = kit_folder();
    file = kli_fs_join(arena, dir, "x.yaml").ptr;
    return 0;
}

static kl_err load(kl_experiment *x, kl_str text) {
    assert_ok(kli_fs_write(file, text, &e));
    e = (kl_error){0};
    kl_experiment *made;
    const kl_err err = kl_experiment_load(&made, arena, file, &e);
    *x = *made;
    return err;
}

#define HEAD "schema: klineage/experiment\nversion: 1\n" /* two lines */
#define ROWS "policies: [generate]\nworkloads: [softmax]\n"

/* ---- what a file says -------------------------------------------------------------------- */

static const char whole[] = HEAD "title: Does it help?\n"
                                 "model: builtin\n"
                                 "priced-as: claude-opus-4-6\n"
                                 "budget: 1.5\n"
                                 "budget-total: 40\n"
                                 "policies:\n"
                                 "  - generate\n"
                                 "  - {policy: bestofn, name: more, trials: 3, max-steps: 40}\n"
                                 "trials: 2 # also of the policies above\n"
                                 "patience: 5\n"
                                 "max-steps: 12\n"
                                 "quick: true\n"
                                 "workloads:\n"
                                 "  - softmax\n"
                                 "  - {task: softmax, kernel: start.c, reference: start.c, "
                                 "recover: 0.9, name: again, goal: 2}\n";

static void copy_naive(const char *name) {
    kl_str source;
    assert_ok(kli_fs_read(&source, arena, KL_TEST_ROOT "/tasks/softmax/naive.c", 1 << 20, &e));
    assert_ok(kli_fs_write(kli_fs_join(arena, dir, name).ptr, source, &e));
}

static void test_experiment_plan__says_what_the_file_says(void **state) {
    (void)state;
    kl_experiment x;
    copy_naive("start.c");
    assert_ok(load(&x, kl_str_of(whole)));
    assert_str(x.title, "Does it help?");
    assert_str(x.model, "builtin");
    assert_str(x.priced_as, "claude-opus-4-6");
    assert_int_equal(x.budget_microusd, 1500000);
    assert_int_equal(x.total_microusd, 40000000);
    assert_true(x.quick);
    assert_int_equal(x.n_policies, 2);
    assert_str(x.policies[0].name, "generate");
    assert_int_equal(x.policies[0].trials, 2);
    assert_int_equal(x.policies[0].max_steps, 12);
    assert_int_equal(x.policies[0].patience, 5);
    assert_str(x.policies[1].name, "more");
    assert_string_equal(x.policies[1].policy->name, "bestofn");
    assert_int_equal(x.policies[1].trials, 3);
    assert_int_equal(x.policies[1].max_steps, 40);
    assert_int_equal(x.n_workloads, 2);
    assert_str(x.workloads[0].name, "softmax");
    assert_null(x.workloads[0].target_kernel);
    assert_str(x.workloads[1].name, "again");
    assert_true(x.workloads[1].recover > 0.89 && x.workloads[1].recover < 0.91 &&
                x.workloads[1].goal > 1.9);
    assert_string_equal(x.workloads[1].start->hash, x.workloads[1].target_kernel->hash);
}

static void test_experiment_plan__tracks_are_workloads_times_policies_times_trials(void **state) {
    (void)state;
    int n;
    kl_experiment x;
    kl_experiment_track *tracks;
    copy_naive("start.c");
    assert_ok(load(&x, kl_str_of(whole)));
    assert_ok(kl_experiment_tracks(&tracks, &n, arena, &x, &e));
    assert_int_equal(n, 2 * (2 + 3));
    assert_string_equal(tracks[0].name, "softmax/generate/1");
    assert_string_equal(tracks[4].name, "softmax/more/3");
    assert_string_equal(tracks[9].name, "again/more/3");
    assert_int_equal(tracks[9].opts.max_steps, 40);
    assert_ptr_equal(tracks[9].opts.target_kernel, x.workloads[1].target_kernel);
    assert_int_equal(kl_experiment_most(&x, n), 15000000);
    x.total_microusd = 7;
    assert_int_equal(kl_experiment_most(&x, n), 7);
    x.policies[0].trials = KL_MAX_TRACKS;
    assert_err(KL_ELIMIT, kl_experiment_tracks(&tracks, &n, arena, &x, &e));
}

#define ARM "workloads: [softmax]\npolicies:\n  - {policy: klineage, name: placebo, "

static void test_experiment_plan__arms_are_keys_of_a_row(void **state) {
    (void)state;
    kl_str *plain, *arm;
    int n;
    kl_experiment x;
    assert_ok(load(&x, KL_S(HEAD ARM "cards: shuffled, mask: 0.25}\n")));
    assert_int_equal(x.policies[0].arm, KLI_ARM_SHUFFLED);
    assert_true(x.policies[0].mask > 0.24 && x.policies[0].mask < 0.26);
    kl_experiment_identity(&arm, &n, arena, &x);
    assert_ok(load(&x, KL_S(HEAD ARM "trials: 1}\n")));
    kl_experiment_identity(&plain, &n, arena, &x);
    assert_contains(arm[1].ptr, plain[1].ptr); /* of a row without an arm it is as before */
    assert_contains(arm[1].ptr, " cards shuffled mask 0.25");
    assert_err(KL_EINVAL, load(&x, KL_S(HEAD ARM "cards: some}\n")));
    assert_contains(e.message, "ours, names, all, shuffled, elsewhere");
    assert_err(KL_EINVAL, load(&x, KL_S(HEAD ARM "cards: ours, mask: 1}\n")));
    assert_err(KL_EINVAL, load(&x, KL_S(HEAD ARM "mask: 0.5}\n")));
    assert_contains(e.message, "needs cards");
    assert_err(KL_EINVAL, load(&x, KL_S(HEAD "workloads: [softmax]\npolicies:\n"
                                             "  - {policy: generate, cards: ours}\n")));
    assert_contains(e.message, "policy klineage");
}

static void test_experiment_plan__several_surfaces_are_told_apart(void **state) {
    (void)state;
    int n;
    kl_experiment x;
    kl_experiment_track *tracks;
    assert_ok(
        load(&x, KL_S(HEAD "surfaces: [c, opencl]\npolicies: [generate]\nworkloads: [softmax]\n")));
    assert_ok(kl_experiment_tracks(&tracks, &n, arena, &x, &e));
    assert_int_equal(n, 2);
    assert_string_equal(tracks[0].name, "softmax-c/generate/1");
    assert_string_equal(tracks[1].name, "softmax-opencl/generate/1");
    assert_string_equal(tracks[1].opts.start->surface->name, "opencl");
}

static void test_experiment_plan__a_shape_by_label_and_by_sizes(void **state) {
    (void)state;
    kl_experiment x;
    assert_ok(load(
        &x,
        KL_S(HEAD "policies: [generate]\nworkloads:\n  - {task: gemm, workload: 'M=64,N=64,K=64'}\n"
                  "  - {task: gemm, workload: cpu, name: labelled}\n")));
    assert_int_equal(x.workloads[0].workload->axes[kl_task_axis(x.workloads[0].task, KL_S("M"))],
                     64);
    assert_str(x.workloads[1].workload->label, "cpu");
}

/* ---- what makes it this one -------------------------------------------------------------- */

static kl_str identity_of(kl_str text) {
    int n;
    kl_str *parts;
    kl_experiment x;
    kl_buf b = {0};
    assert_ok(load(&x, text));
    kl_experiment_identity(&parts, &n, arena, &x);
    for (int i = 0; i < n; i++) kl_buf_printf(&b, "%s\n", parts[i].ptr);
    kl_str all = kl_arena_copy(arena, kl_buf_str(&b));
    kl_buf_fini(&b);
    return all;
}

static void test_experiment_plan__identity_is_what_is_compared(void **state) {
    (void)state;
    const char *const same[] = {
        HEAD ROWS "title: Another\nbudget: 3\nbudget-total: 9\nmodel: builtin\n",
        HEAD "workloads:\n- task: softmax\npolicies:\n- {policy: generate}\n",
        HEAD ROWS "trials: 1\nquick: false\nsurfaces: [c]\n# a remark\n"};
    const char *const other[] = {
        HEAD ROWS "trials: 2\n",
        HEAD ROWS "quick: true\n",
        HEAD ROWS "max-steps: 3\n",
        HEAD "policies: [bestofn]\nworkloads: [softmax]\n",
        HEAD "policies: [generate]\nworkloads: [gemm]\n",
        HEAD "policies: [{policy: generate, name: other}]\nworkloads: [softmax]\n",
        HEAD "policies: [generate]\nworkloads: [{task: softmax, goal: 2}]\n"};
    kl_str base = identity_of(KL_S(HEAD ROWS));
    for (size_t i = 0; i < KL_COUNT(same); i++)
        assert_str(identity_of(kl_str_of(same[i])), base.ptr);
    for (size_t i = 0; i < KL_COUNT(other); i++)
        assert_false(kl_str_eq(identity_of(kl_str_of(other[i])), base));
    assert_str(
        identity_of(KL_S(HEAD "policies: [generate, bestofn]\nworkloads: [softmax, gemm]\n")),
        identity_of(KL_S(HEAD "policies: [bestofn, generate]\nworkloads: [gemm, softmax]\n")).ptr);
}

/* ---- what is wrong ----------------------------------------------------------------------- */

static const struct {
    const char *text;
    int line;
    const char *message;
} wrong[] = {
    {"", 0, "mapping"},
    {"- a\n- b\n", 1, "mapping"},
    {"just words\n", 1, "mapping"},
    {"{}\n", 0, "missing header"},
    {"schema: klineage/experiment\nversion: 2\n", 2, "unsupported version"},
    {"schema: klineage/card\nversion: 1\n", 1, "not a klineage/experiment"},
    {"version: 1\n" ROWS, 1, "schema: klineage/experiment"},
    {HEAD "polices: [generate]\n", 3, "no key 'polices' here: there are schema, version"},
    {HEAD "trials: 2\ntrials: 3\n" ROWS, 4, "duplicate"},
    {HEAD "workloads: [softmax]\n", 1, "no policies"},
    {HEAD "policies: [generate]\n", 1, "no workloads"},
    {HEAD "policies: []\nworkloads: [softmax]\n", 3, "empty"},
    {HEAD "policies: generate\nworkloads: [softmax]\n", 3, "expected a list"},
    {HEAD "policies:\nworkloads: [softmax]\n", 3, "expected a list"},
    {HEAD "policies: [generate, greedy]\nworkloads: [softmax]\n", 3,
     "no policy named 'greedy': there are klineage, klineage-gain, generate"},
    {HEAD "policies: [generate, generate]\nworkloads: [softmax]\n", 3,
     "two policies named 'generate'"},
    {HEAD "policies:\n- {name: x, trials: 1}\nworkloads: [softmax]\n", 4, "missing key policy"},
    {HEAD "policies:\n- policy: generate\n  warmth: 3\nworkloads: [softmax]\n", 5,
     "has no parameter 'warmth'"},
    {HEAD "policies:\n- policy: generate\n  trials: 0\nworkloads: [softmax]\n", 5,
     "whole number from 1"},
    {HEAD "policies:\n- policy: generate\n  name: ../x\nworkloads: [softmax]\n", 5, "a name is"},
    {HEAD "policies:\n- policy: generate\n  name: .hidden\nworkloads: [softmax]\n", 5, "a name is"},
    {HEAD "policies: [generate]\nworkloads: [softmex]\n", 4, "no task named 'softmex'"},
    {HEAD "policies: [generate]\nworkloads: [softmax, softmax]\n", 4,
     "two workloads named 'softmax'"},
    {HEAD "policies: [generate]\nworkloads:\n- workload: cpu\n", 5, "missing key task"},
    {HEAD "policies: [generate]\nworkloads:\n- task: softmax\n  shape: cpu\n", 6,
     "no key 'shape' here: there are task, workload"},
    {HEAD "policies: [generate]\nworkloads:\n- task: softmax\n  workload: vast\n", 6,
     "no workload 'vast' for a cpu: there are"},
    {HEAD "policies: [generate]\nworkloads:\n- task: softmax\n  workload: Q=3\n", 6, "Q"},
    {HEAD "policies: [generate]\nworkloads:\n- task: softmax\n  kernel: none.c\n", 6,
     "no kernel there"},
    {HEAD "policies: [generate]\nworkloads:\n- task: softmax\n  kernel: x.yaml\n", 6,
     "extension of a kernel file"},
    {HEAD "policies: [generate]\nworkloads:\n- task: softmax\n  reference: none.c\n", 6,
     "no kernel there"},
    {HEAD "policies: [generate]\nworkloads:\n- task: softmax\n  recover: 0.9\n", 6,
     "recover needs reference"},
    {HEAD "policies: [generate]\nworkloads:\n- task: softmax\n  goal: fast\n", 6,
     "'fast' is not a number"},
    {HEAD "policies: [generate]\nworkloads:\n- task: softmax\n  goal: -1\n", 6, "above 0"},
    {HEAD "surfaces: [c, brainfuck]\n" ROWS, 3, "no surface named 'brainfuck'"},
    {HEAD "surfaces: [c, c]\n" ROWS, 3, "duplicate surface"},
    {HEAD "trials: 0\n" ROWS, 3, "whole number from 1"},
    {HEAD "trials: 1.5\n" ROWS, 3, "whole number from 1"},
    {HEAD "trials: many\n" ROWS, 3, "not a number"},
    {HEAD "trials:\n" ROWS, 3, "empty"},
    {HEAD "trials: [1]\n" ROWS, 3, "a single value"},
    {HEAD "budget: -1\n" ROWS, 3, "dollars from 0"},
    {HEAD "budget: nan\n" ROWS, 3, "not a number"},
    {HEAD "budget: 1e300\n" ROWS, 3, "dollars from 0"},
    {HEAD "budget-total: 0\n" ROWS, 3, "above 0"},
    {HEAD "quick: maybe\n" ROWS, 3, "true or false"},
    {HEAD "library: nowhere\n" ROWS, 3, "no such folder"},
    {HEAD "title: \"a\\u001b[31mb\"\n" ROWS, 3, "control characters"},
    {HEAD "title: &a x\nmodel: *a\n" ROWS, 4, "aliases"},
    {HEAD "? [a, b]\n: c\n" ROWS, 3, "a single value"},
    {HEAD "policies: [generate\nworkloads: [softmax]\n", 0, ""},
    {HEAD "\tpolicies: x\n", 2, ""},
};

static void test_experiment_plan__what_is_wrong_is_told_with_its_line(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(wrong); i++) {
        kl_experiment x;
        const kl_err err = load(&x, kl_str_of(wrong[i].text));
        const char *at = strrchr(e.where, '/');
        int line = 0;
        if (at) (void)sscanf(at, "/x.yaml:%d:", &line);
        if (!err || !strstr(e.message, wrong[i].message) ||
            (wrong[i].line && line != wrong[i].line) || !e.hint[0])
            fail_msg("%s\ngave %s: %s: %s (%s), not line %d: %s", wrong[i].text, kl_err_name(err),
                     e.where, e.message, e.hint, wrong[i].line, wrong[i].message);
    }
}

/* The first policy of the table that has parameters speaks for all. */
static void test_experiment_plan__parameters_are_known_and_within_bounds(void **state) {
    (void)state;
    const kl_policy *p = NULL;
    kl_experiment x;
    for (int i = 0; !p && kl_policy_each(i); i++)
        if (kl_policy_each(i)->params && kl_policy_each(i)->params->name) p = kl_policy_each(i);
    if (!p) return;
    const kl_policy_param *q = p->params;
    const char *form = HEAD "workloads: [softmax]\npolicies:\n- policy: %s\n  %s: %s\n";
    assert_ok(load(&x, kl_arena_printf(arena, form, p->name, q->name,
                                       kl_arena_printf(arena, "%g", q->most).ptr)));
    assert_int_equal(x.policies[0].n_settings, 1);
    assert_true(x.policies[0].settings[0].value >= q->most &&
                x.policies[0].settings[0].value <= q->most);
    assert_err(KL_EINVAL,
               load(&x, kl_arena_printf(arena, form, p->name, q->name,
                                        kl_arena_printf(arena, "%g", 2 * q->most + 1).ptr)));
    assert_contains(e.message, "must be from");
    assert_contains(e.where, "x.yaml:6:");
    assert_err(KL_EINVAL, load(&x, kl_arena_printf(arena, form, p->name, q->name, "lots")));
    assert_contains(e.message, "is a number");
    assert_err(KL_EINVAL, load(&x, kl_arena_printf(arena, form, p->name, "nonsense", "1")));
    assert_contains(e.hint, q->name);
}

static void
test_experiment_plan__a_start_that_does_not_parse_is_told_with_its_own_line(void **state) {
    (void)state;
    kl_experiment x;
    assert_ok(kli_fs_write(kli_fs_join(arena, dir, "bad.c").ptr,
                           KL_S("//! launch softmax args(x, y\nvoid softmax(void) {}\n"), &e));
    assert_int_not_equal(
        load(&x, KL_S(HEAD "policies: [generate]\nworkloads:\n- {task: softmax, kernel: bad.c}\n")),
        KL_OK);
    assert_contains(e.where, "bad.c:1");
}

static void test_experiment_plan__hostile_files_end(void **state) {
    (void)state;
    kl_experiment x;
    kl_buf b = {0};
    for (int i = 0; i < 20000; i++) kl_buf_add(&b, KL_S("["));
    assert_int_not_equal(load(&x, kl_buf_str(&b)), KL_OK);
    b.len = 0;
    kl_buf_add(&b, KL_S(HEAD "title: "));
    for (int i = 0; i < 300000; i++) kl_buf_add(&b, KL_S("x"));
    assert_err(KL_ELIMIT, load(&x, kl_buf_str(&b)));
    b.len = 0;
    kl_buf_add(&b, KL_S(HEAD "a0: &a0 [x, x]\n"));
    for (int i = 1; i < 60; i++)
        kl_buf_printf(&b, "a%d: &a%d [*a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1, i - 1);
    assert_int_not_equal(load(&x, kl_buf_str(&b)), KL_OK);
    b.len = 0;
    kl_buf_add(&b, KL_S(HEAD "workloads: [softmax]\npolicies:\n"));
    for (int i = 0; i < 300; i++) kl_buf_printf(&b, "- {policy: generate, name: p%d}\n", i);
    assert_int_not_equal(load(&x, kl_buf_str(&b)), KL_OK);
    assert_contains(e.message, "at most");
    assert_int_not_equal(load(&x, (kl_str){"schema: klineage/experiment\0version: 1", 38}), KL_OK);
    assert_int_not_equal(load(&x, KL_S("\xff\xfe\x00\x80 \xc3(")), KL_OK);
    kl_buf_fini(&b);
    assert_err(KL_ENOENT,
               kl_experiment_load(&(kl_experiment *){0}, arena, "/nowhere/at/all.yaml", &e));
    assert_contains(e.hint, "examples/experiment.yaml");
}

/* ---- money ------------------------------------------------------------------------------- */

static void test_experiment_plan__no_call_without_a_price_and_a_budget(void **state) {
    (void)state;
    bool free_of_charge;
    kl_experiment x;
    assert_ok(load(&x, KL_S(HEAD ROWS)));
    assert_err(KL_EINVAL, kl_experiment_priced(&free_of_charge, &x, arena, &e));
    assert_contains(e.message, "no model given");
    assert_ok(load(&x, KL_S(HEAD ROWS "model: builtin\n")));
    assert_ok(kl_experiment_priced(&free_of_charge, &x, arena, &e));
    assert_true(free_of_charge);
    assert_ok(load(&x, KL_S(HEAD ROWS "model: anthropic:claude-opus-4-6\nbudget: 0.00\n")));
    assert_err(KL_EINVAL, kl_experiment_priced(&free_of_charge, &x, arena, &e));
    assert_contains(e.message, "no budget");
    assert_contains(e.where, "x.yaml:6:");
    x.budget_microusd = 1;
    assert_ok(kl_experiment_priced(&free_of_charge, &x, arena, &e));
    assert_false(free_of_charge);
    assert_ok(load(&x, KL_S(HEAD ROWS "model: builtin\npriced-as: claude-opus-4-6\n")));
    assert_err(KL_EINVAL, kl_experiment_priced(&free_of_charge, &x, arena, &e));
    assert_ok(load(&x, KL_S(HEAD ROWS "budget: 1\nmodel: openai:nobody-knows-it\n")));
    assert_err(KL_ENOENT, kl_experiment_priced(&free_of_charge, &x, arena, &e));
    assert_ok(load(&x, KL_S(HEAD ROWS "budget: 1\nmodel: oracle:delphi\n")));
    assert_err(KL_EINVAL, kl_experiment_priced(&free_of_charge, &x, arena, &e));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, kit_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_experiment_plan__says_what_the_file_says),
        TEST(test_experiment_plan__tracks_are_workloads_times_policies_times_trials),
        TEST(test_experiment_plan__arms_are_keys_of_a_row),
        TEST(test_experiment_plan__several_surfaces_are_told_apart),
        TEST(test_experiment_plan__a_shape_by_label_and_by_sizes),
        TEST(test_experiment_plan__identity_is_what_is_compared),
        TEST(test_experiment_plan__what_is_wrong_is_told_with_its_line),
        TEST(test_experiment_plan__parameters_are_known_and_within_bounds),
        TEST(test_experiment_plan__a_start_that_does_not_parse_is_told_with_its_own_line),
        TEST(test_experiment_plan__hostile_files_end),
        TEST(test_experiment_plan__no_call_without_a_price_and_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
