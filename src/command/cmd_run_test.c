/* cmd_run_test.c - cost, run list, run show and run record over a run that a scripted model
 * answered; then the recording repeats it. SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "command/command.h"
#include "kit/fake_provider.h"
#include "kit/kit.h"
#include <stdlib.h>

static const char *dir, *log_path;
static kl_run_opts opts;
static char run_id[65];

/* What a line of a walk would do: three questions, one of which gets no answer, and two steps. */
static kl_err body(kl_track *t, void *ctx, kl_error *error) {
    kl_reply r;
    kl_buf *heard = ctx;
    const char *const questions[] = {"one", "!silent two", "!bytes three"};
    heard->len = 0;
    for (size_t i = 0; i < KL_COUNT(questions); i++) {
        kl_track_phase(t, i < 2 ? "walk" : "rederive");
        kl_err err = fake_question(&r, t, questions[i], error);
        if (err) return err;
        kl_buf_add(heard, r.text);
    }
    kl_reply unused;
    (void)!fake_question(&unused, t, "!eio", kl_ignored());
    const kl_step s = {.phase = KL_S("walk"),
                       .action = KL_S("unroll\x1b[2J"),
                       .outcome = KL_S("pass"),
                       .ratio = 1.25,
                       .accepted = true,
                       .best = true,
                       .why = KL_S("it said \x1b]0;evil\x07")};
    kl_err err = kl_track_step(t, &s, KL_S("source"), error);
    return err ? err
               : kl_track_step(t, &(kl_step){.phase = KL_S("walk"), .outcome = KL_S("no_edit")},
                               (kl_str){0}, error);
}

static kl_err do_run(kl_buf *heard) {
    kl_run *r;
    const kl_track_spec track = {
        .name = "gemm/walk", .workload = "gemm", .policy = "walk", .body = body, .ctx = heard};
    kl_err err = kl_run_open(&r, &opts, &e);
    if (err) return err;
    memcpy(run_id, kl_run_id(r), sizeof run_id);
    err = kl_run_tracks(r, &track, 1, NULL, &e);
    kl_run_close(r);
    return err;
}

static kl_buf heard_first;

static int set_up(void **state) {
    kit_set_up(state);
    heard_first = (kl_buf){0};
    dir = kit_folder();
    log_path = kli_fs_join(arena, dir, "calls").ptr;
    opts = (kl_run_opts){.command = "walk",
                         .store = kli_fs_join(arena, dir, "k.db").ptr,
                         .priced_as = "claude-opus-4-6",
                         .model = kl_arena_printf(arena, "fake:%s", log_path).ptr,
                         .provider = &fake_paid,
                         .budget_microusd = 10000000};
    assert_ok(do_run(&heard_first));
    return 0;
}

static int tear_down(void **state) {
    kl_buf_fini(&heard_first);
    return kit_tear_down(state);
}

/* The command's result; its text in the arena. */
static json_t *ask(kl_str *text,
                   kl_err (*command)(kli_context *, const kli_args *, kli_command_result *,
                                     kl_error *),
                   const char *word, const char *out) {
    kli_context c = {.arena = arena};
    kli_args args = {.n_words = word ? 1 : 0, .words = {word}};
    kli_command_result result = {0};
    args.values[KL_OPTION_STORE] = opts.store;
    args.values[KL_OPTION_OUT] = out;
    assert_ok(command(&c, &args, &result, &e));
    *text = kl_arena_copy(arena, kl_buf_str(&result.text));
    for (size_t i = 0; i < text->len; i++)
        assert_true((unsigned char)text->ptr[i] >= 0x20 || text->ptr[i] == '\n');
    json_t *o = json_incref(result.json);
    assert_non_null(o);
    kli_result_fini(&result);
    return o;
}

static void test_cost__sums_the_ledger_by_phase(void **state) {
    (void)state;
    kl_str text;
    json_t *o = ask(&text, kli_cmd_cost, run_id, NULL);
    json_t *rows = json_object_get(o, "rows");
    assert_int_equal(json_array_size(rows), 2);
    const json_t *walk = json_array_get(rows, 0), *rederive = json_array_get(rows, 1),
                 *total = json_object_get(o, "total");
    assert_str(kli_json_text_or(walk, "phase", (kl_str){0}), "walk");
    assert_int_equal(kli_json_int_or(walk, "calls", -1), 2);
    assert_int_equal(kli_json_int_or(rederive, "lost", -1), 1);
    assert_true(kli_json_int_or(rederive, "lost_microusd", 0) > 0);
    assert_int_equal(kli_json_int_or(total, "microusd", 0),
                     kli_json_int_or(walk, "microusd", 0) +
                         kli_json_int_or(rederive, "microusd", 0));
    assert_true(kli_json_bool_or(json_object_get(walk, "usage"), "estimated", false));
    assert_true(kli_json_real_or(walk, "hit_rate", 0) > 0);
    assert_contains(text.ptr, "~$");
    assert_contains(text.ptr, "1 lost");
    json_decref(o);
    o = ask(&text, kli_cmd_cost, NULL, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "rows")), 1); /* a line for each run */
    json_decref(o);
}

static void test_run_list_and_show__say_what_was_done(void **state) {
    (void)state;
    kl_str text;
    json_t *o = ask(&text, kli_cmd_run_list, NULL, NULL);
    const json_t *row = json_array_get(json_object_get(o, "runs"), 0);
    assert_str(kli_json_text_or(row, "id", (kl_str){0}), run_id);
    assert_int_equal(kli_json_int_or(row, "calls", 0), 3);
    json_decref(o);
    o = ask(&text, kli_cmd_run_show, kl_arena_printf(arena, "%.8s", run_id).ptr, NULL);
    assert_int_equal(json_array_size(json_object_get(o, "steps")), 2);
    assert_int_equal(json_array_size(json_object_get(o, "open")), 1);
    assert_contains(text.ptr, "1.250x");
    assert_contains(text.ptr, "of gemm/walk (rederive) to fake, lost in transit");
    assert_contains(text.ptr, "it said  ]0;evil"); /* as data */
    json_decref(o);
}

static void test_run_record__repeats_the_run_for_nothing(void **state) {
    (void)state;
    kl_str text;
    const char *file = kli_fs_join(arena, dir, "calls.jsonl").ptr;
    json_t *o = ask(&text, kli_cmd_run_record, run_id, file);
    assert_int_equal(kli_json_int_or(o, "calls", 0), 3);
    assert_contains(text.ptr, "--model replay:");
    json_decref(o);
    kl_buf heard = {0};
    int calls = fake_calls(arena, log_path);
    opts.store = kli_fs_join(arena, dir, "other.db").ptr;
    opts.model = kl_arena_printf(arena, "replay:%s", file).ptr;
    opts.provider = NULL;
    opts.priced_as = NULL;
    opts.budget_microusd = 0;
    assert_ok(do_run(
        &heard)); /* the fourth question is not in the recording, and the line goes on as it did */
    assert_int_equal(fake_calls(arena, log_path), calls);
    assert_true(heard.len >= 20 && memcmp(heard.ptr, heard_first.ptr, 20) == 0);
    o = ask(&text, kli_cmd_cost, NULL, NULL);
    assert_int_equal(kli_json_int_or(json_object_get(o, "total"), "microusd", -1), 0);
    json_decref(o);
    kl_buf_fini(&heard);
}

static void test_run_record__wants_a_place(void **state) {
    (void)state;
    kli_context c = {.arena = arena};
    kli_args args = {.n_words = 1, .words = {run_id}};
    kli_command_result result = {0};
    args.values[KL_OPTION_STORE] = opts.store;
    assert_err(KL_EINVAL, kli_cmd_run_record(&c, &args, &result, &e));
    assert_contains(e.hint, "--out");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_cost__sums_the_ledger_by_phase),
        TEST(test_run_list_and_show__say_what_was_done),
        TEST(test_run_record__repeats_the_run_for_nothing),
        TEST(test_run_record__wants_a_place),
    };
    unsetenv("KLINEAGE_PRICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
