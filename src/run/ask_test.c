/* ask_test.c - one track and a model that does as it is told: what is asked, paid, kept and given
 * back. SPDX-License-Identifier: Apache-2.0 */
#include "kit/fake_provider.h"
#include "run/run_impl.h"
#include "kit/kit.h"
#include <klineage/limits.h>
#include <signal.h>
#include <stdlib.h>

#define BUDGET 1000000

static const char *dir, *log_path;
static kl_run *run;
static kl_run_opts opts;
static kli_track track;

static kl_err no_line(kl_track *t, void *ctx, kl_error *error) {
    (void)t, (void)ctx, (void)error;
    return KL_OK;
}

static const kl_track_spec spec = {
    .name = "gemm/generate/1", .workload = "gemm", .policy = "generate", .body = no_line};

static void open_run(void) {
    assert_ok(kl_run_open(&run, &opts, &e));
    kli_track_init(&track, run, &spec);
    kli_track_begin(&track);
    kl_track_phase(&track.base, "materialize");
}

static void close_run(void) {
    kli_track_fini(&track);
    kl_run_close(run);
    run = NULL;
}

/* The command is typed again. */
static void again(void) {
    close_run();
    open_run();
}

static int set_up(void **state) {
    kit_set_up(state);
    dir = kit_folder();
    log_path = kli_fs_join(arena, dir, "calls").ptr;
    opts = (kl_run_opts){.command = "optimize",
                         .store = kli_fs_join(arena, dir, "k.db").ptr,
                         .model = kl_arena_printf(arena, "fake:%s", log_path).ptr,
                         .priced_as = "claude-opus-4-6",
                         .provider = &fake_paid,
                         .budget_microusd = BUDGET};
    open_run();
    return 0;
}

static int tear_down(void **state) {
    if (run) close_run();
    return kit_tear_down(state);
}

static kl_store_charge *charges(size_t wanted) {
    kl_store_charge *rows;
    size_t n;
    assert_ok(kl_store_charge_list(&rows, &n, run->store, arena, run->id, &e));
    assert_int_equal(n, wanted);
    return rows;
}

static int calls(void) { return fake_calls(arena, log_path); }

/* ---- the journal ------------------------------------------------------------------------- */

static void test_run_ask__is_paid_once_and_found_again(void **state) {
    (void)state;
    kl_reply first, second;
    assert_ok(fake_question(&first, &track.base, "hello", &e));
    assert_str(first.text, "answer to hello");
    int64_t spent = kl_track_spent(&track.base);
    assert_true(spent > 0);
    again();
    assert_ok(fake_question(&second, &track.base, "hello", &e));
    assert_true(kl_str_eq(second.text, KL_S("answer to hello")));
    assert_int_equal(second.usage.output, 20);
    assert_str(second.model, "fake-1");
    assert_int_equal(kl_track_spent(&track.base),
                     spent); /* the line sees the numbers of the first time */
    assert_int_equal(calls(), 1);
    kl_store_charge *c = charges(1);
    assert_str(c->state, "settled");
    assert_int_equal(c->settled_microusd, spent);
    assert_true(c->reserved_microusd >= spent);
    assert_str(c->workload, "gemm");
    assert_str(c->policy, "generate");
    assert_str(c->phase, "materialize");
    assert_str(c->model, "fake");
    assert_str(c->priced_as, "claude-opus-4-6");
    assert_int_equal(c->price_date.len, 10);
}

static void test_run_ask__the_same_question_again_is_another_call(void **state) {
    (void)state;
    kl_reply r;
    kl_store_effect *rows;
    size_t n;
    for (int pass = 0; pass < 2; pass++, again())
        for (int i = 0; i < 3; i++)
            assert_ok(fake_question(&r, &track.base, i == 1 ? "other" : "same", &e));
    assert_int_equal(calls(), 3);
    assert_ok(kl_store_effect_list(&rows, &n, run->store, arena, run->id, spec.name, &e));
    assert_int_equal(n, 3);
    assert_int_equal(rows[2].ordinal, 2);
    assert_str(rows[2].purpose, "deoptimize");
    kl_str log;
    assert_ok(kli_fs_read(&log, arena, log_path, 1 << 20, &e));
    assert_str(log, "gemm/generate/1/deoptimize/0\ngemm/generate/1/deoptimize/1\ngemm/generate/1/"
                    "deoptimize/2\n");
}

static void test_run_ask__everything_that_is_said_makes_the_key(void **state) {
    (void)state;
    const kl_message base[] = {{KL_ROLE_SYSTEM, KL_S("ab"), false},
                               {KL_ROLE_USER, KL_S("c"), false}};
    const kl_message moved[] = {{KL_ROLE_SYSTEM, KL_S("a"), false},
                                {KL_ROLE_USER, KL_S("bc"), false}};
    const kl_message cached[] = {{KL_ROLE_SYSTEM, KL_S("ab"), true},
                                 {KL_ROLE_USER, KL_S("c"), false}};
    const kl_message roles[] = {{KL_ROLE_USER, KL_S("ab"), false},
                                {KL_ROLE_USER, KL_S("c"), false}};
    const kl_request requests[] = {
        {.messages = base, .n = 2, .purpose = "lift"},
        {.messages = moved, .n = 2, .purpose = "lift"},
        {.messages = cached, .n = 2, .purpose = "lift"},
        {.messages = roles, .n = 2, .purpose = "lift"},
        {.messages = base, .n = 2, .purpose = "generate"},
        {.messages = base, .n = 2, .purpose = "lift", .max_tokens = 9},
    };
    kl_reply r;
    for (size_t i = 0; i < KL_COUNT(requests); i++)
        assert_ok(kl_ask(&r, &track.base, arena, &requests[i], &e));
    assert_int_equal(calls(), KL_COUNT(requests));
    kli_track_begin(&track);
    const kl_request spelled = {
        .messages = base, .n = 2, .purpose = "lift", .max_tokens = KL_MODEL_MAX_TOKENS};
    assert_ok(kl_ask(&r, &track.base, arena, &spelled, &e)); /* the default, spelled out */
    assert_int_equal(calls(), KL_COUNT(requests));
}

static void test_run_ask__other_runs_and_tracks_ask_for_themselves(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(fake_question(&r, &track.base, "hello", &e));
    opts.trial = 2;
    again();
    assert_ok(fake_question(&r, &track.base, "hello", &e));
    assert_int_equal(calls(), 2);
    const kl_str identity[] = {KL_S("task v2")};
    opts.identity = identity;
    opts.n_identity = 1;
    again();
    assert_ok(fake_question(&r, &track.base, "hello", &e));
    assert_int_equal(calls(), 3);
    opts.budget_microusd *= 2; /* money is no part of what a run is */
    again();
    assert_ok(fake_question(&r, &track.base, "hello", &e));
    assert_int_equal(calls(), 3);
}

/* A provider keeps prefixes, whoever of a run sends them. */
static void test_run_ask__a_system_turn_is_sent_once_a_run(void **state) {
    (void)state;
    kl_reply r;
    kl_track_spec other = spec;
    other.name = "gemm/generate/2";
    assert_ok(fake_question(&r, &track.base, "!sent", &e));
    assert_str(r.text, "new");
    assert_ok(fake_question(&r, &track.base, "!sent again", &e));
    assert_str(r.text, "sent");
    close_run();
    assert_ok(kl_run_open(&run, &opts, &e));
    kli_track_init(&track, run, &other);
    kli_track_begin(&track);
    assert_ok(fake_question(&r, &track.base, "!sent", &e));
    assert_str(r.text, "sent");
    opts.trial = 2;
    again();
    assert_ok(fake_question(&r, &track.base, "!sent", &e));
    assert_str(r.text, "new");
}

/* ---- replies of every kind --------------------------------------------------------------- */

static void test_run_ask__an_unfinished_reply_is_kept_with_its_stop(void **state) {
    (void)state;
    kl_reply r;
    for (int pass = 0; pass < 2; pass++, again()) {
        assert_ok(fake_question(&r, &track.base, "!truncated", &e));
        assert_int_equal(r.stop, KL_STOP_TRUNCATED);
        assert_ok(fake_question(&r, &track.base, "!refused", &e));
        assert_int_equal(r.stop, KL_STOP_REFUSED);
    }
    assert_int_equal(calls(), 2);
}

static void test_run_ask__hostile_bytes_are_data(void **state) {
    (void)state;
    kl_reply r;
    for (int pass = 0; pass < 2; pass++, again()) {
        assert_ok(fake_question(&r, &track.base, "!bytes", &e));
        assert_true(kl_str_eq(
            r.text, KL_S("\xff\xfe'; DROP TABLE effect; -- \x1b[2J ../../etc/passwd \0 end")));
    }
    assert_int_equal(calls(), 1);
}

static void test_run_ask__what_the_provider_says_of_its_cost_is_checked(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(fake_question(&r, &track.base, "!silent", &e));
    assert_true(r.usage.estimated && r.usage.output > 0); /* never free by leaving it out */
    assert_ok(fake_question(&r, &track.base, "!bill", &e));
    assert_ok(fake_question(&r, &track.base, "!wild", &e));
    assert_int_equal(r.usage.input, 0);
    kl_store_charge *c = charges(3);
    assert_true(c[0].settled_microusd > 0 && c[0].estimated);
    assert_int_equal(c[1].settled_microusd, 777);
    assert_str(c[1].price_date, "billed"); /* and not of a table */
    assert_true(!kl_str_eq(c[0].price_date, KL_S("billed")));
    assert_true(c[2].settled_microusd > c[2].reserved_microusd); /* the truth ... */
    assert_err(KL_EBUDGET,
               fake_question(&r, &track.base, "hello", &e)); /* ... and the next one sees it */
}

/* ---- errors ------------------------------------------------------------------------------ */

static void test_run_ask__an_error_keeps_the_money_unless_it_surely_cost_nothing(void **state) {
    (void)state;
    static const struct {
        const char *text;
        kl_err err;
        const char *paid, *repeatable;
    } rows[] = {
        {"!eio", KL_EIO, "lost", "released"},
        {"!model", KL_EMODEL, "lost", "released"},
        {"!free", KL_EMODEL, "released", "released"},
        {"!wait /nonexistent", KL_PENDING, "released", "released"},
    };
    kl_reply r;
    for (int repeatable = 0; repeatable < 2; repeatable++) {
        opts.provider = repeatable ? &fake_repeatable : &fake_paid;
        opts.trial = 100 + (uint64_t)repeatable;
        again();
        for (size_t i = 0; i < KL_COUNT(rows); i++) {
            assert_err(rows[i].err, fake_question(&r, &track.base, rows[i].text, &e));
            kl_store_charge *c = charges(i + 1);
            assert_str(c[i].state, repeatable ? rows[i].repeatable : rows[i].paid);
        }
        assert_int_equal(kl_track_spent(&track.base), 0);
    }
}

/* Every try is a row of its own; what broke off counts for what arrived of it, and the money that
 * it does not need is free again. */
static void test_run_ask__a_reply_that_broke_off_is_asked_for_again(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(fake_question(&r, &track.base, "!cut 2", &e));
    assert_int_equal(calls(), 3);
    kl_store_charge *c = charges(3);
    for (int i = 0; i < 2; i++) {
        assert_str(c[i].state, "lost");
        assert_int_equal(c[i].attempt, i);
        assert_int_equal(c[i].reserved_microusd,
                         30 * 5 + 7 * 25); /* micro-dollars of the tokens that arrived */
        assert_int_equal(c[i].output, 7);
        assert_true(c[i].estimated);
    }
    assert_str(c[2].state, "settled");
    assert_int_equal(kl_track_spent(&track.base), c[2].settled_microusd);
}

static void test_run_ask__a_line_that_always_breaks_ends_and_never_passes_the_cap(void **state) {
    (void)state;
    kl_reply r;
    int64_t committed = 0;
    assert_err(KL_EIO, fake_question(&r, &track.base, "!cut 9", &e));
    assert_int_equal(calls(), 1 + KL_MODEL_RETRIES);
    kl_store_charge *c = charges(1 + KL_MODEL_RETRIES);
    for (int i = 0; i <= KL_MODEL_RETRIES; i++) committed += c[i].reserved_microusd;
    assert_true(committed <= BUDGET);
    opts.trial = 77;
    opts.budget_microusd = 3000; /* one question can cost 2800 */
    again();
    assert_err(KL_EBUDGET, fake_question(&r, &track.base, "!cut 9", &e));
    assert_str(charges(1)->state, "lost");
}

/* Less is asked for where the money left does not pay for the longest reply, down to a reply that
 * is worth having. */
static void test_run_ask__the_last_money_buys_a_shorter_reply(void **state) {
    (void)state;
    const kl_message messages[] = {{KL_ROLE_USER, KL_S("!long"), false}};
    const kl_request q = {.messages = messages, .n = 1, .purpose = "lift"};
    kl_reply r;
    int64_t prompt = ((5 + 1) / 2 + 16) * 25 / 4;
    opts.budget_microusd = prompt + 10000 * 25;
    again();
    assert_ok(kl_ask(&r, &track.base, arena, &q, &e));
    assert_in_range(charges(1)->reserved_microusd, prompt + 9990 * 25, prompt + 10000 * 25 + 1);
    assert_in_range(strtoll(strstr(r.text.ptr, "max ") + 4, NULL, 10), 9990, 10000);
    opts.trial = 78;
    opts.budget_microusd = prompt + (KL_MODEL_LEAST_TOKENS - 10) * 25;
    again();
    assert_err(KL_EBUDGET, kl_ask(&r, &track.base, arena, &q, &e));
}

/* One question through the mailbox, answered; what it said and took. */
static kl_store_charge ask_by_mail(kl_reply *r, const char *text) {
    kl_store_charge *c;
    size_t n;
    const char *replies = kli_fs_join(arena, dir, "box/replies").ptr;
    assert_err(KL_PENDING, fake_question(r, &track.base, text, &e));
    assert_ok(kl_store_charge_list(&c, &n, run->store, arena, run->id, &e));
    assert_ok(kli_fs_write(kl_arena_printf(arena, "%s/%s.md", replies, c[n - 1].effect.ptr).ptr,
                           KL_S("an answer by mail"), &e));
    assert_ok(fake_question(r, &track.base, text, &e));
    return charges(n)[n - 1];
}

/* The last money buys what it bought then: a prompt that a mailbox counted is reserved as it was
 * counted, not at what its bytes could cost at most. */
static void test_run_ask__a_replay_reserves_what_the_mailbox_did(void **state) {
    (void)state;
    kl_recorded calls[2];
    kl_store_charge then[2];
    kl_reply r;
    const char *path = kli_fs_join(arena, dir, "recording.jsonl").ptr;
    char *text = KL_ARRAY(arena, char, 4001);
    memset(text, 'w', 4000);
    opts.provider = NULL;
    opts.model = kl_arena_printf(arena, "mailbox:%s/box", dir).ptr;
    opts.budget_microusd = 14000; /* two prompts of a thousand tokens; by their bytes, not one */
    again();
    for (int i = 0; i < 2; i++) {
        then[i] = ask_by_mail(&r, text);
        assert_true(then[i].settled_microusd <= then[i].reserved_microusd);
        calls[i] = (kl_recorded){.slot = kl_arena_printf(arena, "%s/deoptimize/%d", spec.name, i),
                                 .text = r.text,
                                 .usage = r.usage,
                                 .billed_microusd = -1};
    }
    for (int pass = 0; pass < 2; pass++) { /* of the mailbox, and of a replay of it */
        const char *model = pass ? "replay of mailbox" : "mailbox";
        assert_ok(kl_recording_write(path, model, "optimize", "", calls, 2, &e));
        opts.model = kl_arena_printf(arena, "replay:%s", path).ptr;
        opts.trial = 300 + (uint64_t)pass;
        again();
        for (size_t i = 0; i < 2; i++) {
            assert_ok(fake_question(&r, &track.base, text, &e));
            const kl_store_charge *c = &charges(i + 1)[i];
            assert_int_equal(c->reserved_microusd, then[i].reserved_microusd);
            assert_int_equal(c->settled_microusd, then[i].settled_microusd);
        }
    }
    assert_ok(kl_recording_write(path, "claude-opus-4-6", "optimize", "", calls, 2, &e));
    opts.trial = 302;
    again();
    assert_err(KL_EBUDGET, fake_question(&r, &track.base, text, &e)); /* nobody counted this one */
}

static void test_run_ask__what_a_crash_left_is_lost_or_taken_over(void **state) {
    (void)state;
    kl_reply r;
    for (int repeatable = 0; repeatable < 2; repeatable++) {
        opts.provider = repeatable ? &fake_repeatable : &fake_paid;
        opts.trial = 200 + (uint64_t)repeatable;
        again();
        assert_err(KL_PENDING, fake_question(&r, &track.base, "!wait later",
                                             &e)); /* leaves a row to be played with */
        kl_store_charge *c = charges(1);
        assert_ok(kl_store_reserve(run->store, c, true, BUDGET, 0,
                                   kl_ignored())); /* as if killed while it asked */
        assert_err(KL_PENDING, fake_question(&r, &track.base, "!wait later", &e));
        c = charges(repeatable ? 1 : 2);
        assert_str(c[0].state, repeatable ? "released" : "lost");
    }
}

/* The answer was paid for and there is no room to keep it: it counts in full, and is not used. */
static void test_run_ask__a_full_disk_takes_the_answer_but_not_the_money(void **state) {
    (void)state;
    kl_reply r;
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    kl_err err = fake_question(&r, &track.base, "!full", &e);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(err, KL_EIO);
    assert_contains(e.hint, "space left");
    assert_str(charges(1)->state, "reserved");
    err = fake_question(&r, &track.base, "!full",
                        &e); /* there is room again, until this call too fills the disk */
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(err, KL_EIO);
    assert_str(charges(2)->state, "lost");
    assert_int_equal(kl_track_spent(&track.base), 0);
    assert_ok(fake_question(&r, &track.base, "hello", &e));
}

static void test_run_ask__nothing_is_asked_beyond_the_budget(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(fake_question(&r, &track.base, "first", &e));
    int64_t bound = charges(1)->reserved_microusd, spent = kl_track_spent(&track.base);
    opts.budget_microusd = spent + bound - 1; /* "other" is as long as "first" */
    again();
    assert_ok(fake_question(&r, &track.base, "first", &e));
    assert_err(KL_EBUDGET, fake_question(&r, &track.base, "other", &e));
    assert_int_equal(calls(), 1);
    opts.budget_microusd = spent + bound;
    again();
    assert_ok(fake_question(&r, &track.base, "other", &e));
    assert_int_equal(calls(), 2);
    opts.budget_microusd = 0;
    opts.trial = 3;
    again();
    assert_err(KL_EBUDGET, fake_question(&r, &track.base, "first", &e));
    assert_int_equal(calls(), 2);
}

static void test_run_ask__an_unknown_price_refuses(void **state) {
    (void)state;
    kl_reply r;
    opts.priced_as = NULL; /* then it is that of "fake", which no table knows */
    again();
    assert_err(KL_ENOENT, fake_question(&r, &track.base, "hello", &e));
    assert_contains(e.hint, "priced-as");
    assert_int_equal(calls(), 0);
    charges(0);
}

static void test_run_ask__without_a_model_it_says_what_to_type(void **state) {
    (void)state;
    kl_reply r;
    opts.model = NULL;
    opts.provider = NULL;
    again();
    assert_err(KL_EINVAL, fake_question(&r, &track.base, "hello", &e));
    assert_contains(e.hint, "--model");
    assert_string_equal(kl_track_model(&track.base), "");
}

static void test_run_ask__the_journal_alone_asks_nobody(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(fake_question(&r, &track.base, "hello", &e));
    again();
    track.journal_only = true;
    assert_ok(fake_question(&r, &track.base, "hello", &e));
    assert_err(KL_EIO, fake_question(&r, &track.base, "never asked", &e));
    assert_contains(e.message, "not in the journal");
    assert_int_equal(calls(), 1);
}

/* ---- a conversation, steps, seeds -------------------------------------------------------- */

static void test_run_ask__a_growing_conversation_is_stored_once(void **state) {
    (void)state;
    char *rules = KL_ARRAY(arena, char, 100000);
    memset(rules, 'r', 100000);
    kl_message messages[40] = {{KL_ROLE_SYSTEM, {rules, 100000}, true}};
    int n = 1;
    kl_reply r;
    opts.budget_microusd = 1000000000;
    again();
    for (int i = 0; i < 15; i++) {
        messages[n++] = (kl_message){KL_ROLE_USER, kl_arena_printf(arena, "turn %d", i), false};
        const kl_request q = {.messages = messages, .n = n, .max_tokens = 10, .purpose = "lift"};
        assert_ok(kl_ask(&r, &track.base, arena, &q, &e));
        messages[n++] = (kl_message){KL_ROLE_ASSISTANT, r.text, false};
    }
    again(); /* folds the log back */
    struct stat info;
    assert_int_equal(stat(opts.store, &info), 0);
    assert_true(info.st_size < 400000);
}

static void test_run_step__rows_are_numbered_and_the_same_again(void **state) {
    (void)state;
    kl_store_step *rows;
    size_t n;
    kl_reply r;
    kl_str before = {0};
    for (int pass = 0; pass < 2; pass++, again()) {
        assert_ok(fake_question(&r, &track.base, "hello", &e));
        const kl_step s = {.phase = KL_S("walk"),
                           .action = KL_S("unroll"),
                           .outcome = KL_S("pass"),
                           .ratio = 1.5,
                           .accepted = true,
                           .why = KL_S("\x1b[31m\"quotes\"")};
        assert_ok(kl_track_step(&track.base, &s, KL_S("int main;"), &e));
        assert_ok(kl_track_step(&track.base, &s, (kl_str){0}, &e));
        assert_ok(kl_store_step_list(&rows, &n, run->store, arena, run->id, &e));
        assert_int_equal(n, 2);
        if (pass) assert_true(kl_str_eq(before, rows[0].json));
        before = rows[0].json;
        assert_contains(rows[0].json.ptr, "\"spent_microusd\":");
        assert_int_equal(rows[1].n, 1);
    }
}

static void test_run_seed__is_the_runs_and_the_tracks_own(void **state) {
    (void)state;
    uint64_t a = kl_track_seed(&track.base, "mutation"),
             b = kl_track_seed(&track.base, "selection");
    assert_true(a && b && a != b);
    again();
    assert_true(a == kl_track_seed(&track.base, "mutation"));
    opts.trial = 9;
    again();
    assert_true(a != kl_track_seed(&track.base, "mutation"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_run_ask__is_paid_once_and_found_again),
        TEST(test_run_ask__the_same_question_again_is_another_call),
        TEST(test_run_ask__everything_that_is_said_makes_the_key),
        TEST(test_run_ask__other_runs_and_tracks_ask_for_themselves),
        TEST(test_run_ask__a_system_turn_is_sent_once_a_run),
        TEST(test_run_ask__an_unfinished_reply_is_kept_with_its_stop),
        TEST(test_run_ask__hostile_bytes_are_data),
        TEST(test_run_ask__what_the_provider_says_of_its_cost_is_checked),
        TEST(test_run_ask__an_error_keeps_the_money_unless_it_surely_cost_nothing),
        TEST(test_run_ask__a_reply_that_broke_off_is_asked_for_again),
        TEST(test_run_ask__a_line_that_always_breaks_ends_and_never_passes_the_cap),
        TEST(test_run_ask__the_last_money_buys_a_shorter_reply),
        TEST(test_run_ask__a_replay_reserves_what_the_mailbox_did),
        TEST(test_run_ask__what_a_crash_left_is_lost_or_taken_over),
        TEST(test_run_ask__a_full_disk_takes_the_answer_but_not_the_money),
        TEST(test_run_ask__nothing_is_asked_beyond_the_budget),
        TEST(test_run_ask__an_unknown_price_refuses),
        TEST(test_run_ask__without_a_model_it_says_what_to_type),
        TEST(test_run_ask__the_journal_alone_asks_nobody),
        TEST(test_run_ask__a_growing_conversation_is_stored_once),
        TEST(test_run_step__rows_are_numbered_and_the_same_again),
        TEST(test_run_seed__is_the_runs_and_the_tracks_own),
    };
    unsetenv("KLINEAGE_PRICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
