/* Tests of replay.c and recording.c.  SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "model_impl.h"
#include "kit/kit.h"

#define HEAD "{\"schema\":\"klineage/recording\",\"version\":1,\"model\":\"claude-opus-4-6\"}\n"

static kl_err ask(kl_reply *r, const char *spec, const char *slot, const char *key) {
    static const kl_message turn = {KL_ROLE_USER, {"whatever", 8}, false};
    const kl_request q = {
        .messages = &turn, .n = 1, .purpose = "deoptimize", .slot = slot, .key = key};
    kl_model *m = NULL;
    kl_err err = kl_model_open(&m, spec, &e);
    if (!err) err = kl_model_ask(r, m, arena, &q, &e);
    kl_model_close(m);
    return err;
}

static const kl_recorded CALLS[] = {
    {.slot = {"t/deoptimize/0", 14},
     .key = {"k0", 2},
     .purpose = {"deoptimize", 10},
     .text = {"one\n\"x\" \xc3\xa4", 10},
     .model = {"claude-opus-4-6", 15},
     .usage = {.input = 1, .cache_read = 2, .cache_write_5m = 3, .cache_write_1h = 4, .output = 5},
     .billed_microusd = 77},
    {.slot = {"t/deoptimize/1", 14},
     .key = {"k1", 2},
     .purpose = {"deoptimize", 10},
     .text = {"", 0},
     .stop = KL_STOP_REFUSED,
     .usage = {.input = 9, .estimated = true},
     .billed_microusd = -1},
};

static void test_model_replay__what_was_written_comes_back(void **state) {
    (void)state;
    kl_reply r;
    kl_model *m;
    assert_ok(kl_recording_write("r.jsonl", "claude-opus-4-6", "walk", "a note", CALLS, 2, &e));
    static const char *const specs[] = {"replay:r.jsonl", "replay:exact:r.jsonl"};
    for (size_t i = 0; i < 2; i++) {
        assert_ok(ask(&r, specs[i], "t/deoptimize/0", "k0"));
        assert_str(r.text, "one\n\"x\" \xc3\xa4");
        assert_str(r.model, "claude-opus-4-6");
        assert_memory_equal(&r.usage, &CALLS[0].usage, sizeof r.usage);
        assert_int_equal(r.billed_microusd, -1); /* replay costs nothing, whatever it cost then */
        assert_ok(ask(&r, specs[i], "t/deoptimize/1", "k1"));
        assert_int_equal(r.stop, KL_STOP_REFUSED);
        assert_int_equal(r.text.len, 0);
        assert_true(r.usage.estimated);
    }
    assert_ok(kl_model_open(&m, "replay:r.jsonl", &e));
    assert_string_equal(kl_model_name(m), "replay of claude-opus-4-6");
    assert_str(kl_model_replayed(kl_str_of(kl_model_name(m))), "claude-opus-4-6");
    assert_int_equal(kl_model_replayed(KL_S("claude-opus-4-6")).len, 0);
    kl_price p;
    assert_ok(kl_price_of(&p, kl_model_name(m), 100, &e));
    assert_int_equal(kl_price_cost(&p, &CALLS[0].usage), 0);
    kl_model_close(m);
}

static void test_model_replay__the_same_calls_are_the_same_bytes(void **state) {
    (void)state;
    kl_str text;
    assert_ok(kl_recording_write("b.jsonl", "m", "walk", NULL, CALLS, 1, &e));
    assert_ok(kli_fs_read(&text, arena, "b.jsonl", 1 << 20, &e));
    assert_string_equal(
        text.ptr, "{\"schema\":\"klineage/"
                  "recording\",\"version\":1,\"model\":\"m\",\"command\":\"walk\",\"note\":\"\"}\n"
                  "{\"slot\":\"t/deoptimize/"
                  "0\",\"key\":\"k0\",\"purpose\":\"deoptimize\",\"text\":\"one\\n\\\"x\\\" "
                  "\xc3\xa4\",\"stop\":\"end\","
                  "\"usage\":{\"input\":1,\"cache_read\":2,\"cache_write_5m\":3,\"cache_write_1h\":"
                  "4,\"output\":5,\"estimated\":"
                  "false},"
                  "\"model\":\"claude-opus-4-6\",\"billed_microusd\":77}\n");
    const kl_recorded twice[] = {CALLS[0], CALLS[0]};
    assert_err(KL_EINVAL, kl_recording_write("c.jsonl", "m", "walk", "", twice, 2, &e));
    assert_false(kli_fs_exists("c.jsonl"));
    assert_err(KL_ENOENT,
               kl_recording_write("no/such/folder/c.jsonl", "m", "walk", "", CALLS, 1, &e));
}

static void test_model_replay__what_is_not_recorded_is_named(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(kl_recording_write("r.jsonl", "m", "walk", "", CALLS, 2, &e));
    assert_err(KL_ENOENT, ask(&r, "replay:r.jsonl", "t/deoptimize/2", "k0"));
    assert_contains(e.message, "the slot t/deoptimize/2");
    assert_contains(e.hint, "2 calls of m");
    assert_int_equal(r.billed_microusd, 0);
    assert_err(KL_ENOENT, ask(&r, "replay:exact:r.jsonl", "t/deoptimize/0", "changed"));
    assert_contains(e.message, "the key changed");
    assert_contains(e.hint, "replay:r.jsonl");
    assert_err(KL_ENOENT, ask(&r, "replay:r.jsonl", NULL, NULL));
    assert_err(KL_ENOENT, ask(&r, "replay:not-there.jsonl", "s", "k"));
    assert_contains(e.hint, "run record");
}

static bool replay_counted(kl_usage *u, const char *model, const char *slot, const char *key) {
    static const kl_message turn = {KL_ROLE_USER, {"whatever", 8}, false};
    const kl_request q = {
        .messages = &turn, .n = 1, .purpose = "deoptimize", .slot = slot, .key = key};
    kl_model *m = NULL;
    assert_ok(kl_recording_write("r.jsonl", model, "walk", "", CALLS, 2, &e));
    assert_ok(kl_model_open(&m, key ? "replay:exact:r.jsonl" : "replay:r.jsonl", &e));
    const bool counted = kl_model_counted(u, m, &q);
    kl_model_close(m);
    return counted;
}

/* Who made the recording says whether a prompt's tokens are known; the call says how many. */
static void test_model_replay__a_prompt_counts_as_it_was_counted(void **state) {
    (void)state;
    static const char *const counting[] = {"mailbox", "replay of mailbox",
                                           "replay of replay of mailbox"};
    static const char *const others[] = {"claude-opus-4-6", "replay of m", "replay", "builtin", ""};
    kl_usage u;
    for (size_t i = 0; i < KL_COUNT(counting); i++) {
        assert_true(replay_counted(&u, counting[i], "t/deoptimize/0", NULL));
        assert_int_equal(kl_usage_prompt(&u), 1 + 2 + 3 + 4);
        assert_int_equal(u.cache_write_5m, 3);
        assert_true(replay_counted(&u, counting[i], NULL, "k1"));
        assert_int_equal(u.input, 9);
        assert_true(replay_counted(&u, counting[i], "t/deoptimize/7", NULL));
        assert_int_equal(u.input, 2); /* not recorded: as it would be counted */
    }
    for (size_t i = 0; i < KL_COUNT(others); i++)
        assert_false(replay_counted(&u, others[i], "t/deoptimize/0", NULL));
}

/* Recorded from one folder, replayed from another: what a call is about is named by the end of its
 * path. */
static void test_model_replay__a_path_in_a_slot_is_known_by_its_end(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(kli_fs_write(
        "p.jsonl", KL_S(HEAD "{\"slot\":\"t/make old/gemm/k.c/0\",\"text\":\"yes\"}\n"), &e));
    assert_ok(ask(&r, "replay:p.jsonl", "t/make old/gemm/k.c/0", NULL));
    assert_ok(ask(&r, "replay:p.jsonl", "t/make gemm/k.c/0", NULL));
    assert_str(r.text, "yes");
    static const char *const others[] = {"t/make emm/k.c/0", "t/make gemm/k.c/1",
                                         "t/take gemm/k.c/0", "u/make gemm/k.c/0", "gemm/k.c/0"};
    for (size_t i = 0; i < KL_COUNT(others); i++) {
        e = (kl_error){0};
        assert_err(KL_ENOENT, ask(&r, "replay:p.jsonl", others[i], NULL));
        assert_true(kl_model_recording_ended(&e));
    }
    assert_err(KL_ENOENT, ask(&r, "replay:no-such-file.jsonl", "a", NULL));
    assert_false(kl_model_recording_ended(&e));
}

static void test_model_replay__a_file_by_hand_needs_slots_and_texts_alone(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(kli_fs_write("h.jsonl", KL_S("\n" HEAD "\n{\"slot\":\"a\",\"text\":\"hello\"}"), &e));
    assert_ok(ask(&r, "replay:h.jsonl", "a", NULL));
    assert_str(r.text, "hello");
    assert_str(r.model, "claude-opus-4-6");
    assert_true(r.usage.estimated);
    assert_int_equal(r.usage.output, 2);
    assert_ok(kli_fs_write(
        "n.jsonl",
        KL_S("{\"schema\":\"klineage/recording\",\"version\":1,\"model\":\"\\u001b[31m\"}\n"), &e));
    kl_model *m;
    assert_ok(kl_model_open(&m, "replay:n.jsonl", &e));
    assert_string_equal(kl_model_name(m), "replay of [31m");
    kl_model_close(m);
}

static void test_model_replay__a_file_that_is_wrong_is_refused_as_a_whole(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } CASES[] = {
        {"", "empty"},
        {"not json\n", "expected"},
        {"{\"slot\":\"a\",\"text\":\"x\"}\n", "first line"},
        {"{\"schema\":\"klineage/recording\",\"version\":2}\n", "version 2"},
        {"{\"schema\":\"klineage/recording\"}\n", "version 0"},
        {HEAD "{\"slot\":\"a\"}\n", "\"text\""},
        {HEAD "{\"text\":\"a\"}\n", "\"slot\""},
        {HEAD "{\"slot\":7,\"text\":\"a\"}\n", "\"slot\""},
        {HEAD "[]\n", "\"text\""},
        {HEAD "{\"slot\":\"a\",\"text\":\"x\",\"stop\":\"soon\"}\n", "\"stop\""},
        {HEAD "{\"slot\":\"a\",\"text\":\"x\"}\n{\"slot\":\"a\",\"text\":\"y\"}\n", "before"},
        {HEAD "{\"slot\":\"a\",\"text\":\"x\\u0000\"}\n", "\\u0000"},
        {HEAD "{\"slot\":\"a\",\"text\":\"cut off", "premature"},
    };
    for (size_t i = 0; i < KL_COUNT(CASES); i++) {
        kl_reply r;
        assert_ok(kli_fs_write("w.jsonl", kl_str_of(CASES[i].text), &e));
        assert_err(KL_EPARSE, ask(&r, "replay:w.jsonl", "a", NULL));
        assert_contains(e.message, CASES[i].words);
    }
}

/* In the order of the file, which is that of the calls; other tracks' calls may lie between. */
static void test_model_replay__what_came_next_is_in_the_file(void **state) {
    (void)state;
    kl_model *m;
    assert_ok(
        kli_fs_write("n.jsonl",
                     KL_S(HEAD "{\"slot\":\"w/deoptimize 2/0\",\"key\":\"a\",\"text\":\"x\"}\n"
                               "{\"slot\":\"wide/deoptimize 1/0\",\"key\":\"b\",\"text\":\"x\"}\n"
                               "{\"slot\":\"w/deoptimize 1/0\",\"key\":\"c\",\"text\":\"x\"}\n"),
                     &e));
    assert_ok(kl_model_open(&m, "replay:n.jsonl", &e));
    assert_string_equal(kl_model_next_slot(m, "w", "w/deoptimize 2/0"), "w/deoptimize 1/0");
    assert_string_equal(kl_model_next_slot(m, "w", "w/deoptimize 1/0"), "");
    assert_null(kl_model_next_slot(m, "w", "w/deoptimize 3/0"));
    kl_model_close(m);
    assert_ok(kl_model_open(&m, "replay:exact:n.jsonl", &e));
    assert_null(kl_model_next_slot(m, "w", "w/deoptimize 2/0"));
    kl_model_close(m);
    assert_ok(kl_model_open(&m, "builtin", &e));
    assert_null(kl_model_next_slot(m, "w", "w/deoptimize 2/0"));
    kl_model_close(m);
}

int main(void) {
#define TEST(name) KIT_TEST(test_model_replay__##name)
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_comes_back),
        TEST(the_same_calls_are_the_same_bytes),
        TEST(what_is_not_recorded_is_named),
        TEST(a_prompt_counts_as_it_was_counted),
        TEST(a_path_in_a_slot_is_known_by_its_end),
        TEST(a_file_by_hand_needs_slots_and_texts_alone),
        TEST(a_file_that_is_wrong_is_refused_as_a_whole),
        TEST(what_came_next_is_in_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
