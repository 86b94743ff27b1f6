/* Tests of command.c and command_reply.c.  SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "model_impl.h"
#include "kit/kit.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const kl_message TURNS[] = {{KL_ROLE_SYSTEM, {"Be terse.", 9}, true},
                                   {KL_ROLE_USER, {"What is $HOME; `ls`?", 20}, false}};
static const kl_request ASK = {.messages = TURNS, .n = 2, .purpose = "generate"};

static kl_err ask(kl_reply *r, const char *spec) {
    kl_model *m = NULL;
    kl_err err = kl_model_open(&m, spec, &e);
    if (!err) err = kl_model_ask(r, m, arena, &ASK, &e);
    kl_model_close(m);
    return err;
}

static void test_model_command__text_in_text_out(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(ask(&r, "command:cat"));
    assert_true(kl_str_starts(r.text, KL_S("Answer the last turn")));
    assert_contains(
        r.text.ptr,
        "# Turn 1 of 2: system\n\nBe terse.\n\n# Turn 2 of 2: user\n\nWhat is $HOME; `ls`?\n");
    assert_true(r.usage.estimated);
    assert_int_equal(r.billed_microusd, -1);
    assert_ok(ask(&r, "command:echo  $HOME  ; `ls`"));
    assert_str(r.text, "$HOME ; `ls`\n"); /* words, not a shell */
}

static void test_model_command__it_runs_in_an_empty_folder(void **state) {
    (void)state;
    kl_reply r;
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_ok(ask(&r, "command:pwd"));
    assert_false(kl_str_eq(kl_str_trim(r.text), kl_str_of(here)));
    assert_false(kli_fs_exists(kl_arena_copy(arena, kl_str_trim(r.text)).ptr)); /* and it is gone */
    assert_err(KL_EMODEL, ask(&r, "command:ls -A"));
    assert_contains(e.message, "printed nothing");
    assert_ok(kli_fs_write("agent.sh", KL_S("#!/bin/sh\necho hello\n"), &e));
    assert_int_equal(chmod("agent.sh", 0755), 0);
    assert_ok(ask(&r, "command:./agent.sh"));
    assert_str(r.text, "hello\n");
}

static void test_model_command__a_key_that_an_agent_prints_is_starred(void **state) {
    (void)state;
    kl_reply r;
    setenv("GEMINI_API_KEY", "AIza-01234567890", 1);
    assert_ok(ask(&r, "command:printenv GEMINI_API_KEY"));
    assert_str(r.text, "****************\n");
    assert_err(KL_EMODEL, ask(&r, "command:ls /no/AIza-01234567890"));
    assert_null(strstr(e.message, "AIza-01234567890"));
    assert_contains(e.message, "/no/****************");
    unsetenv("GEMINI_API_KEY");
}

static void test_model_command__failures_have_a_reason(void **state) {
    (void)state;
    kl_reply r;
    assert_err(KL_ENODEV, ask(&r, "command:no-such-program-here -p"));
    assert_contains(e.message, "no-such-program-here");
    assert_err(KL_EINVAL, ask(&r, "command:   "));
    assert_err(KL_EMODEL, ask(&r, "command:ls /no/such/file"));
    assert_contains(e.message, "ended with status 2");
    assert_contains(e.message, "/no/such/file");
    assert_contains(e.hint, "empty folder");
    assert_err(KL_EMODEL, ask(&r, "command:head -c 3 /dev/zero"));
    assert_contains(e.message, "NUL");
    assert_err(KL_ELIMIT, ask(&r, "command:head -c 9000000 /dev/zero"));
}

static void test_model_command__the_name_is_that_of_the_model(void **state) {
    (void)state;
    static const struct {
        const char *spec, *name;
    } CASES[] = {
        {"command:cat", "command"},
        {"command:cat --model claude-opus-4-6", "claude-opus-4-6"},
        {"command:cat --model=x -p", "x"},
        {"command:cat -m gpt-6-sol", "gpt-6-sol"},
        {"command:cat --model", "command"},
    };
    for (size_t i = 0; i < KL_COUNT(CASES); i++) {
        kl_model *m;
        assert_ok(kl_model_open(&m, CASES[i].spec, &e));
        assert_string_equal(kl_model_name(m), CASES[i].name);
        kl_model_close(m);
    }
}

/* ---- what agents print ------------------------------------------------------------------- */

/* Written for these tests after the documentation of each program: shapes for a parser, not
 * recordings of a model. */

#define CLAUDE                                                                                     \
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":"  \
    "\"hi\\n\",\"total_"                                                                           \
    "cost_usd\":0.0123456001,"                                                                     \
    "\"usage\":{\"input_tokens\":3,\"cache_creation_input_tokens\":40,\"cache_read_input_"         \
    "tokens\":500,\"output_"                                                                       \
    "tokens\":60,"                                                                                 \
    "\"cache_creation\":{\"ephemeral_1h_input_tokens\":30,\"ephemeral_5m_input_tokens\":10}},"     \
    "\"modelUsage\":{\"claude-haiku-4-5\":{\"costUSD\":0.001},\"claude-opus-4-6\":{\"costUSD\":0." \
    "011}}}"
#define CODEX                                                                                      \
    "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n"             \
    "{\"type\":\"item.completed\",\"item\":{\"type\":\"reasoning\",\"text\":\"hmm\"}}\n"           \
    "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"first\"}}\nnot " \
    "json\n"                                                                                       \
    "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"hi\\n\"}}\n"

#define GEMINI                                                                                     \
    "{\"session_id\":\"s\",\"response\":\"hi\\n\",\"stats\":{\"models\":{"                         \
    "\"gemini-2.5-flash-lite\":{\"api\":{\"totalRequests\":1},\"tokens\":{\"prompt\":100,"         \
    "\"candidates\":5,\"total\":105,\"cached\":0,\"thoughts\":0,\"tool\":0}},"                     \
    "\"gemini-2.5-pro\":{\"tokens\":{\"prompt\":1200,\"candidates\":20,\"total\":1370,"            \
    "\"cached\":900,\"thoughts\":150,\"tool\":0}}}}}"
#define STEP(cost)                                                                                 \
    "{\"type\":\"step_finish\",\"sessionID\":\"s\",\"part\":{\"type\":\"step-finish\","            \
    "\"tokens\":{\"input\":200,\"output\":30,\"reasoning\":7,\"cache\":{\"read\":500,\"write\":"   \
    "40}},"                                                                                        \
    "\"cost\":" cost "}}\n"
#define SAYS(text)                                                                                 \
    "{\"type\":\"text\",\"sessionID\":\"s\",\"part\":{\"type\":\"text\",\"text\":\"" text "\"}}\n"
#define STEPS(cost)                                                                                \
    "{\"type\":\"step_start\",\"sessionID\":\"s\",\"part\":{\"type\":\"step-start\"}}\n" SAYS(     \
        "I will think.") STEP(cost) "{\"type\":\"step_start\",\"sessionID\":\"s\",\"part\":{"      \
                                    "\"type\":\"step-start\"}}\n" SAYS("h") SAYS("i\\n")           \
                                        STEP(cost)

typedef struct {
    const char *output;
    kl_err code;
    const char *text, *model;
    kl_usage usage;
    int64_t billed;
} reply_case;

/* What ASK can have taken at most, where an agent does not say. */
#define BOUND .input = 26, .cache_write_5m = 21

#define CLAUDE_USED                                                                                \
    .input = 3, .cache_read = 500, .cache_write_5m = 10, .cache_write_1h = 30, .output = 60
#define CODEX_USED .input = 300, .cache_read = 900, .output = 70
#define GEMINI_USED .input = 400, .cache_read = 900, .output = 175
#define OPENCODE_USED .input = 400, .cache_read = 1000, .cache_write_5m = 80, .output = 74

static const reply_case REPLIES[] = {
    {CLAUDE "\n", KL_OK, "hi\n", "claude-opus-4-6", {CLAUDE_USED}, 12346},
    {"{\"type\":\"system\"}\n{\"type\":\"assistant\"}\n" CLAUDE "\n",
     KL_OK,
     "hi\n",
     "claude-opus-4-6",
     {CLAUDE_USED},
     12346},
    {"[{\"type\":\"system\"}," CLAUDE "]", KL_OK, "hi\n", "claude-opus-4-6", {CLAUDE_USED}, 12346},
    {"{\"type\":\"result\",\"result\":\"hi\",\"total_cost_usd\":0.1,\"usage\":{\"input_"
     "tokens\":1,\"output_"
     "tokens\":2}}",
     KL_OK,
     "hi",
     "",
     {.input = 1, .output = 2},
     100000},
    {"{\"type\":\"result\",\"result\":\"hi\",\"total_cost_usd\":-1}",
     KL_OK,
     "hi",
     "",
     {BOUND, .output = 1, .estimated = true},
     -1},
    {"{\"type\":\"result\",\"is_error\":true,\"result\":\"credit\\n \\u001b is low\"}",
     KL_EMODEL,
     "credit    is low",
     "",
     {0},
     -1},
    {"{\"type\":\"result\",\"subtype\":\"error_max_turns\"}",
     KL_EMODEL,
     "error_max_turns",
     "",
     {0},
     -1},
    {CODEX "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1200,\"cached_input_"
           "tokens\":900,\"output_"
           "tokens\":70}}\n",
     KL_OK,
     "hi\n",
     "",
     {CODEX_USED},
     -1},
    {CODEX, KL_OK, "hi\n", "", {BOUND, .output = 2, .estimated = true}, -1},
    {CODEX "{\"type\":\"turn.failed\",\"error\":{\"message\":\"quota\"}}\n",
     KL_EMODEL,
     "quota",
     "",
     {0},
     -1},
    {"{\"type\":\"thread.started\"}\n", KL_EMODEL, "no message", "", {0}, -1},
    {GEMINI "\n", KL_OK, "hi\n", "gemini-2.5-pro", {GEMINI_USED}, -1},
    {"Loaded cached credentials.\n" GEMINI,
     KL_OK,
     "Loaded cached credentials.\n" GEMINI,
     "",
     {BOUND, .output = (sizeof "Loaded cached credentials.\n" GEMINI) / 2, .estimated = true},
     -1},
    {"{\"response\":\"hi\",\"stats\":{\"models\":{}}}",
     KL_OK,
     "hi",
     "",
     {BOUND, .output = 1, .estimated = true},
     -1},
    {"{\"response\":\"\",\"stats\":{},\"error\":{\"type\":\"ApiError\",\"message\":\"quota "
     "\\u001b is out\",\"code\":429}}",
     KL_EMODEL,
     "quota   is out",
     "",
     {0},
     -1},
    {STEPS("0.0070147"), KL_OK, "hi\n", "", {OPENCODE_USED}, 14030},
    {STEPS("0"), KL_OK, "hi\n", "", {OPENCODE_USED}, -1}, /* it knows no price: not for nothing */
    {STEPS("0") "{\"type\":\"error\",\"sessionID\":\"s\",\"error\":{\"name\":\"APIError\","
                "\"data\":{\"message\":\"overloaded\"}}}\n",
     KL_EMODEL,
     "overloaded",
     "",
     {0},
     -1},
    {SAYS("hi"), KL_OK, "hi", "", {BOUND, .output = 1, .estimated = true}, -1},
    {"plain\n", KL_OK, "plain\n", "", {BOUND, .output = 3, .estimated = true}, -1},
    {" {\"a\": 1}\n", KL_OK, " {\"a\": 1}\n", "", {BOUND, .output = 5, .estimated = true}, -1},
    {"{ not json", KL_OK, "{ not json", "", {BOUND, .output = 5, .estimated = true}, -1},
    {"[1, 2]", KL_OK, "[1, 2]", "", {BOUND, .output = 3, .estimated = true}, -1},
};
static void test_model_command__agents_are_recognised(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(REPLIES); i++) {
        kl_reply r = {.billed_microusd = -1};
        assert_err(REPLIES[i].code,
                   kli_command_reply(&r, arena, kl_str_of(REPLIES[i].output), &ASK, &e));
        assert_int_equal(r.billed_microusd, REPLIES[i].billed);
        if (REPLIES[i].code) {
            assert_contains(e.message, REPLIES[i].text);
            continue;
        }
        assert_str(r.text, REPLIES[i].text);
        assert_str(r.model, REPLIES[i].model);
        assert_memory_equal(&r.usage, &REPLIES[i].usage, sizeof r.usage);
    }
}

static void test_model_command__an_agent_that_fails_says_why(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(
        kli_fs_write("fails.sh",
                     KL_S("#!/bin/sh\necho '{\"type\":\"result\",\"is_error\":true,\"result\":\"no "
                          "credit\"}'\nexit 1\n"),
                     &e));
    assert_int_equal(chmod("fails.sh", 0755), 0);
    assert_err(KL_EMODEL, ask(&r, "command:./fails.sh"));
    assert_contains(e.message, "no credit");
}

int main(void) {
#define TEST(name) KIT_TEST(test_model_command__##name)
    const struct CMUnitTest tests[] = {
        TEST(text_in_text_out),
        TEST(it_runs_in_an_empty_folder),
        TEST(a_key_that_an_agent_prints_is_starred),
        TEST(failures_have_a_reason),
        TEST(the_name_is_that_of_the_model),
        TEST(agents_are_recognised),
        TEST(an_agent_that_fails_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
