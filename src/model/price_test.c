/* Tests of price.c: the table that is built in, one of the user's, bounds. SPDX-License-Identifier:
 * Apache-2.0 */
#include "base/fs.h"
#include "model_impl.h"
#include "kit/kit.h"
#include <stdlib.h>

extern const unsigned char kl_model_prices[];
extern const size_t kl_model_prices_bytes;

static int set_up(void **state) {
    kit_set_up(state);
    unsetenv("KLINEAGE_PRICES");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    return 0;
}

static kl_str built_in(void) {
    return (kl_str){(const char *)kl_model_prices, kl_model_prices_bytes};
}

static void test_model_price__table(void **state) {
    (void)state;
    static const struct {
        const char *model, *day;
        int64_t prompt, input, read, w5m, w1h, output;
    } CASES[] = {
        {"claude-opus-4-6", "2026-11-21", 1000, 5000000, 500000, 6250000, 10000000, 25000000},
        {"claude-opus-4-5-20251101", "2026-11-21", 1000, 5000000, 500000, 6250000, 10000000,
         25000000},
        {"claude-opus-4-20250514", "2026-11-21", 1000, 15000000, 1500000, 18750000, 30000000,
         75000000},
        {"claude-opus-5", "2026-11-21", 1, 5000000, 500000, 6250000, 10000000, 25000000},
        {"claude-opus-5-5", "2026-11-21", 1, 4000000, 200000, 5000000, 8000000, 20000000},
        {"claude-fable-5-1", "2026-11-21", 1, 10000000, 250000, 12500000, 20000000, 50000000},
        {"claude-fable-5", "2026-11-21", 1, 10000000, 1000000, 12500000, 20000000, 50000000},
        {"claude-sonnet-5-5", "2026-10-06", 1, 2000000, 200000, 2500000, 4000000, 10000000},
        {"claude-sonnet-5-5", "2026-10-07", 1, 2000000, 100000, 2500000, 4000000, 10000000},
        {"claude-sonnet-5-5", "1999-01-01", 1, 2000000, 200000, 2500000, 4000000,
         10000000}, /* a clock behind the table */
        {"claude-haiku-5-5", "2026-11-21", 100000, 100000, 10000, 125000, 200000, 500000},
        {"claude-haiku-5-5", "2026-11-21", 100001, 500000, 50000, 625000, 1000000, 2500000},
        {"gpt-5.6-sol", "2026-11-21", 272000, 5000000, 500000, 6250000, 6250000, 30000000},
        {"gpt-5.6-sol", "2026-11-21", 272001, 10000000, 1000000, 12500000, 12500000, 45000000},
        {"gpt-5.6-luna-2026-07-30", "2026-11-21", 1, 200000, 20000, 250000, 250000, 1200000},
        {"gpt-6.1-terra", "2026-11-21", 1, 1000000, 50000, 1250000, 1250000, 5000000},
        {"gemini-2.5-pro", "2026-11-21", 200000, 1250000, 1250000, 1250000, 1250000, 10000000},
        {"gemini-3.1-pro-preview", "2026-11-21", 200001, 4000000, 4000000, 4000000, 4000000,
         18000000},
        {"anthropic/claude-opus-4.6", "2026-11-21", 1, 5000000, 500000, 6250000, 10000000,
         25000000},
        {"anthropic/claude-opus-4-6:beta", "2026-11-21", 1, 5000000, 500000, 6250000, 10000000,
         25000000},
        {"openai/gpt-6-sol", "2026-11-21", 1, 2000000, 200000, 2500000, 2500000, 10000000},
        {"google/gemini-2.5-flash", "2026-11-21", 1, 300000, 300000, 300000, 300000, 2500000},
        {"global/claude-opus-4-5@20251101", "2026-11-21", 1, 5000000, 500000, 6250000, 10000000,
         25000000},
        {"us-east5/claude-opus-4-6", "2026-11-21", 1, 5500000, 550000, 6875000, 11000000, 27500000},
        {"us-east-1/global.anthropic.claude-opus-4-6-v1", "2026-11-21", 1, 5000000, 500000, 6250000,
         10000000, 25000000},
        {"eu-west-1/eu.anthropic.claude-opus-4-5-20251101-v1:0", "2026-11-21", 1, 5500000, 550000,
         6875000, 11000000, 27500000},
        {"us-east-1/anthropic.claude-opus-4-6-v1:0", "2026-11-21", 1, 5500000, 550000, 6875000,
         11000000, 27500000},
        {"local:qwen3-coder:30b", "2026-11-21", 1, 0, 0, 0, 0, 0},
        {"mailbox", "2026-11-21", 1, 0, 0, 0, 0, 0},
        {"builtin", "2026-11-21", 1, 0, 0, 0, 0, 0},
        {"mutate:7 (no language model)", "2026-11-21", 1, 0, 0, 0, 0, 0},
        {"replay of claude-opus-4-6", "2026-11-21", 1, 0, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < KL_COUNT(CASES); i++) {
        kl_price p;
        assert_ok(kli_price_in(&p, built_in(), KL_S("prices.json"), CASES[i].model, CASES[i].prompt,
                               CASES[i].day, false, &e));
        assert_int_equal(p.input, CASES[i].input);
        assert_int_equal(p.cache_read, CASES[i].read);
        assert_int_equal(p.cache_write_5m, CASES[i].w5m);
        assert_int_equal(p.cache_write_1h, CASES[i].w1h);
        assert_int_equal(p.output, CASES[i].output);
        assert_string_equal(p.date, "2026-11-20");
    }
}

static void test_model_price__what_is_not_known_is_refused(void **state) {
    (void)state;
    static const char *const unknown[] = {"claude-opus-9",
                                          "claude-opus-4-60",
                                          "claude-opus-4-6-fast",
                                          "gpt-4",
                                          "command",
                                          "",
                                          "*",
                                          "Mailbox",
                                          "xmailbox",
                                          "claude-opus-4-6-2025",
                                          "[",
                                          "somebody/claude-opus-4-6",
                                          "us-east-1/meta.llama3",
                                          "anthropic/gpt-6-sol",
                                          "us-east-1/evil-anthropic.claude-opus-4-6",
                                          "mixed/CASE.anthropic.claude-opus-4",
                                          "us-east5/claude-opus-9",
                                          "anthropic/",
                                          "local",
                                          "claude-opus-4-6-20251101-20251101"};
    for (size_t i = 0; i < KL_COUNT(unknown); i++) {
        kl_price p;
        assert_err(KL_ENOENT, kl_price_of(&p, unknown[i], 10, &e));
        assert_contains(e.message, "not known");
        assert_contains(e.hint, "--priced-as");
    }
    const kl_message m = {KL_ROLE_USER, KL_S("hi"), false};
    const kl_request q = {.messages = &m, .n = 1};
    int64_t bound = -7;
    assert_err(KL_ENOENT, kl_price_bound(&bound, "nobody", &q, &e));
    assert_int_equal(bound, -7);
}

static void test_model_price__costs_round_up_once(void **state) {
    (void)state;
    const kl_price p = {.input = 5000000,
                        .cache_read = 500000,
                        .cache_write_5m = 6250000,
                        .cache_write_1h = 10000000,
                        .output = 25000000};
    static const struct {
        kl_usage u;
        int64_t cost;
    } CASES[] = {
        {{.input = 0}, 0},
        {{.input = 1}, 5},
        {{.cache_read = 1}, 1}, /* 0.5 */
        {{.cache_read = 2}, 1},
        {{.cache_write_5m = 1, .cache_read = 1}, 7}, /* 6.75 */
        {{.input = 12,
          .cache_read = 52000,
          .cache_write_5m = 200,
          .cache_write_1h = 100,
          .output = 900},
         60 + 26000 + 1250 + 1000 + 22500},
        {{.input = 1000000, .output = 1000000}, 30000000},
    };
    for (size_t i = 0; i < KL_COUNT(CASES); i++)
        assert_int_equal(kl_price_cost(&p, &CASES[i].u), CASES[i].cost);
    const kl_price hostile = {.input = INT64_MAX};
    const kl_usage many = {.input = INT64_MAX};
    assert_int_equal(kl_price_cost(&hostile, &many), INT64_MAX);
}

static int64_t bound_of(const char *model, size_t bytes, int64_t max_tokens) {
    const kl_message m[] = {{KL_ROLE_SYSTEM, {KL_ARRAY(arena, char, bytes + 1), bytes}, true},
                            {KL_ROLE_USER, KL_S("1234567"), false}};
    const kl_request q = {.messages = m, .n = 2, .max_tokens = max_tokens};
    int64_t bound = -1;
    assert_ok(kl_price_bound(&bound, model, &q, &e));
    return bound;
}

static void test_model_price__bound(void **state) {
    (void)state;
    /* 1000 bytes: 500 tokens; 7 bytes: 4; 16 a turn; at a cache write's 6.25 dollars, and output
     * at 25. */
    assert_int_equal(bound_of("claude-opus-4-6", 1000, 100), (500 + 4 + 32) * 25 / 4 + 100 * 25);
    assert_int_equal(bound_of("claude-opus-4-6", 1000, 0),
                     (500 + 4 + 32) * 25 / 4 + KL_MODEL_MAX_TOKENS * 25);
    assert_int_equal(bound_of("gpt-5.6-sol", 0, 1), (4 + 32) * 25 / 4 + 30);
    assert_int_equal(bound_of("mailbox", 100000, 100), 0);
    /* Which tier counts is decided by the bound's own size. */
    assert_int_equal(bound_of("claude-haiku-5-5", 200000 - 72, 0),
                     100000 / 8 + KL_MODEL_MAX_TOKENS / 2);
    assert_int_equal(bound_of("claude-haiku-5-5", 200000 - 70, 0),
                     100001 * 5 / 8 + 1 + KL_MODEL_MAX_TOKENS * 5 / 2);
}

#define HEAD "{\"schema\":\"klineage/prices\",\"version\":1,\"date\":\"2030-01-01\",\"rows\":["
#define RATES(i, o)                                                                                \
    "\"input\":" #i                                                                                \
    ",\"cache_read\":0.1,\"cache_write_5m\":0.2,\"cache_write_1h\":0.3,\"output\":" #o "}"

static void test_model_price__a_dearer_small_tier_is_in_the_bound(void **state) {
    (void)state;
    const kl_str table = KL_S(HEAD "{\"model\":\"m\",\"max_prompt_tokens\":10," RATES(
        9, 90) ",{\"model\":\"m\"," RATES(1, 10) "]}");
    kl_price p;
    assert_ok(kli_price_in(&p, table, KL_S("t"), "m", 11, "2030-01-01", false, &e));
    assert_int_equal(p.output, 10000000);
    assert_ok(kli_price_in(&p, table, KL_S("t"), "m", 11, "2030-01-01", true, &e));
    assert_int_equal(p.output, 90000000);
    assert_int_equal(p.input, 9000000);
    /* The largest tier ends: a larger prompt has no price. */
    const kl_str small = KL_S(HEAD "{\"model\":\"m\",\"max_prompt_tokens\":10," RATES(9, 90) "]}");
    assert_err(KL_ENOENT, kli_price_in(&p, small, KL_S("t"), "m", 11, "2030-01-01", false, &e));
}

static void test_model_price__the_users_table_comes_first(void **state) {
    (void)state;
    kl_price p;
    assert_ok(kli_fs_write("mine.json",
                           KL_S(HEAD "{\"model\":\"claude-opus-4-6\"," RATES(
                               1, 2) ",{\"model\":\"my-*\"," RATES(3, 4) "]}"),
                           &e));
    setenv("KLINEAGE_PRICES", "mine.json", 1);
    assert_ok(kl_price_of(&p, "claude-opus-4-6", 1, &e));
    assert_int_equal(p.output, 2000000);
    assert_string_equal(p.date, "2030-01-01");
    assert_ok(kl_price_of(&p, "my-model", 1, &e));
    assert_string_equal(p.model, "my-*");
    assert_ok(kl_price_of(&p, "claude-haiku-4-5", 1, &e)); /* the rest is still there */
    assert_int_equal(p.output, 5000000);
    setenv("KLINEAGE_PRICES", "not-there.json", 1);
    assert_err(KL_EIO, kl_price_of(&p, "claude-opus-4-6", 1, &e));
    assert_contains(e.hint, "KLINEAGE_PRICES");
    unsetenv("KLINEAGE_PRICES");
    assert_ok(kli_fs_mkdirs("config/klineage", &e));
    assert_ok(kli_fs_write("config/klineage/prices.json",
                           KL_S(HEAD "{\"model\":\"my-model\"," RATES(7, 8) "]}"), &e));
    setenv("XDG_CONFIG_HOME", "config", 1);
    assert_ok(kl_price_of(&p, "my-model", 1, &e));
    assert_int_equal(p.output, 8000000);
}

static void test_model_price__a_table_that_is_wrong_is_no_table(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{\"schema\":\"klineage/prices\",\"version\":2,\"rows\":[]}",
        "{\"schema\":\"x\",\"version\":1,\"rows\":[]}",
        "{\"schema\":\"klineage/prices\",\"version\":1}",
        HEAD "{\"model\":\"m\",\"input\":1,\"cache_read\":1,\"cache_write_5m\":1,\"output\":1}]}",
        HEAD "{\"model\":\"m\"," RATES(-1, 1) "]}",
        HEAD "{\"model\":\"m\"," RATES("1", 1) "]}",
        HEAD "{\"model\":\"m\"," RATES(1, 1e9) "]}",
    };
    for (size_t i = 0; i < KL_COUNT(bad); i++) {
        kl_price p;
        assert_err(KL_EPARSE, kli_price_in(&p, kl_str_of(bad[i]), KL_S("t.json"), "m", 1,
                                           "2030-01-01", false, &e));
    }
}

static void test_model_price__usage_as_with_a_cache(void **state) {
    (void)state;
    static char text[8192];
    memset(text, 'x', sizeof text);
    const kl_str long_turn = {text, 8000}, short_turn = {text, 400};
    const kl_message m[] = {{KL_ROLE_SYSTEM, long_turn, true},
                            {KL_ROLE_USER, short_turn, true},
                            {KL_ROLE_ASSISTANT, short_turn, false},
                            {KL_ROLE_USER, short_turn, true}};
    kl_request q = {.messages = m, .n = 2, .slot = "t/generate/0"};
    kl_usage u = kl_usage_estimate_cached(&q, short_turn);
    assert_int_equal(u.cache_read, 0);
    assert_int_equal(u.cache_write_5m, 2100);
    q.system_sent = true; /* with another question of the run */
    u = kl_usage_estimate_cached(&q, short_turn);
    assert_int_equal(u.cache_read, 2000);
    assert_int_equal(u.cache_write_5m, 100);
    q.n = 4;
    u = kl_usage_estimate_cached(&q, short_turn);
    assert_int_equal(u.cache_read, 2100);
    assert_int_equal(u.cache_write_5m, 200);
    assert_int_equal(u.input, 0);
    const kl_message brief[] = {{KL_ROLE_SYSTEM, short_turn, true},
                                {KL_ROLE_USER, short_turn, true}};
    u = kl_usage_estimate_cached(&(kl_request){.messages = brief, .n = 2},
                                 short_turn); /* too short to be kept */
    assert_int_equal(u.input, 200);
    assert_int_equal(u.cache_write_5m, 0);
    assert_true(u.estimated);
}

static void test_model_price__usage_from_bytes(void **state) {
    (void)state;
    const kl_message m[] = {{KL_ROLE_SYSTEM, KL_S("12345"), false},
                            {KL_ROLE_USER, KL_S("6789"), false}};
    const kl_request q = {.messages = m, .n = 2};
    const kl_usage u = kl_usage_estimate(&q, KL_S("12345"));
    assert_int_equal(u.input, 3);
    assert_int_equal(u.output, 2);
    assert_true(u.estimated);
    json_t *o = kl_usage_json(&u);
    kl_usage back;
    kl_usage_parse(&back, o);
    assert_memory_equal(&back, &u, sizeof u);
    json_decref(o);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_model_price__##name, set_up, kit_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(table),
        TEST(what_is_not_known_is_refused),
        TEST(costs_round_up_once),
        TEST(bound),
        TEST(a_dearer_small_tier_is_in_the_bound),
        TEST(the_users_table_comes_first),
        TEST(a_table_that_is_wrong_is_no_table),
        TEST(usage_from_bytes),
        TEST(usage_as_with_a_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
