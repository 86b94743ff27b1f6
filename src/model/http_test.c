/* Tests of http.c and of every wire shape on it against tests/flow/model_server.py: replies, usage,
 * errors, what was sent and how often.  Skipped where there is no python3 or no libcurl.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/terminal.h"
#include "curl_api.h"
#include "model_impl.h"
#include "kit/kit.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "sk-test-0123456789"
#define LOG "seen.jsonl"
#define TEXT "ACTION: unroll\nLOCUS: loop k\n\xc3\xbcml\xc3\xa4ut and \xf0\x9f\x9a\x80 end.\n"

static int server_stdin = -1;

/* ---- the server -------------------------------------------------------------------------- */

static int start_server(void) {
    int to[2], from[2];
    if (pipe(to) || pipe(from)) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        execlp("python3", "python3", KL_TEST_ROOT "/tests/flow/model_server.py", "--log", LOG,
               (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    server_stdin = to[1]; /* it ends when this closes */
    FILE *said =
        fdopen(from[0], "r"); /* stays open: the server may not be left with a broken pipe */
    int port = 0;
    if (!said || fscanf(said, "port %d", &port) != 1) return -1;
    return port;
}

/* What is said of tokens: beside each other, cached ones inside, thoughts beside. */
typedef enum { MESSAGES, CHAT, GENERATE } counting;

typedef struct {
    const char *provider, *spec, *key, *base, *path; /* what is before the model; variables */
    counting counts;
    bool whole; /* no stream: what broke off shows nothing */
} face;

static const face FACES[] = {
    {"anthropic", "anthropic:", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "", MESSAGES, false},
    {"openai", "openai:", "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1/", CHAT, false},
    {"gemini", "gemini:", "GEMINI_API_KEY", "GEMINI_BASE_URL", "/v1beta", GENERATE, false},
    {"openrouter", "openrouter:", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "/api/v1", CHAT,
     false},
    {"vertex", "vertex:here-1/", "CLOUDSDK_AUTH_ACCESS_TOKEN", "VERTEX_BASE_URL", "", MESSAGES,
     false},
    {"bedrock", "bedrock:here-1/", "AWS_BEARER_TOKEN_BEDROCK", "BEDROCK_BASE_URL", "/", MESSAGES,
     true},
    {"local", "local:", "LOCAL_API_KEY", "LOCAL_BASE_URL", "/local/v1", CHAT, false},
};

static void point_to(int port) {
    char base[64];
    for (size_t i = 0; i < KL_COUNT(FACES); i++) {
        snprintf(base, sizeof base, "http://127.0.0.1:%d%s", port, FACES[i].path);
        setenv(FACES[i].base, base, 1);
    }
}

static int server_port;

static int set_up(void **state) {
    kit_set_up(state);
    for (size_t i = 0; i < KL_COUNT(FACES); i++) setenv(FACES[i].key, KEY, 1);
    setenv("GOOGLE_CLOUD_PROJECT", "my-project", 1);
    unsetenv("ANTHROPIC_API_KEY_FILE");
    point_to(server_port);
    unlink(LOG);
    return 0;
}

/* ---- asking ------------------------------------------------------------------------------ */

static const kl_message TURNS[] = {
    {KL_ROLE_SYSTEM, {"You are terse.", 14}, true},
    {KL_ROLE_USER, {"first \"question\"\n", 17}, true},
    {KL_ROLE_ASSISTANT, {"", 0}, false},
    {KL_ROLE_USER, {"second \x01 \xff question", 19}, true},
};
static const kl_request ASK = {
    .messages = TURNS, .n = 4, .max_tokens = 1234, .purpose = "generate"};

static kl_err ask(kl_reply *r, const char *spec) {
    kl_model *m = NULL;
    kl_err err = kl_model_open(&m, spec, &e);
    if (!err) err = kl_model_ask(r, m, arena, &ASK, &e);
    kl_model_close(m);
    assert_null(strstr(e.message, KEY));
    assert_null(strstr(e.hint, KEY));
    assert_null(strstr(e.detail, KEY));
    return err;
}

static const char *spec_of(const face *f, const char *model) {
    return kl_arena_printf(arena, "%s%s", f->spec, model).ptr;
}

/* What the server saw since the last set_up. */
static json_t *seen(void) {
    kl_str text;
    json_t *list = json_array();
    if (kli_fs_read(&text, arena, LOG, 64 << 20, kl_ignored())) return list;
    while (text.len) {
        const size_t n = strcspn(text.ptr, "\n");
        json_t *o;
        assert_ok(kli_json_parse(&o, (kl_str){text.ptr, n}, KL_S(LOG), &e));
        json_array_append_new(list, o);
        text = (kl_str){text.ptr + n + 1, text.len - n - 1};
    }
    return list;
}

static size_t times_asked(void) {
    json_t *list = seen();
    size_t n = json_array_size(list);
    json_decref(list);
    return n;
}

/* ---- replies ----------------------------------------------------------------------------- */

static void check_usage(const kl_reply *r, const face *f) {
    static const kl_usage SAID[] = {
        [MESSAGES] = {.input = 12, .cache_write_5m = 200, .cache_write_1h = 100},
        [CHAT] = {.input = 12, .cache_write_5m = 300},
        [GENERATE] = {.input = 312}};
    kl_usage u = SAID[f->counts];
    u.cache_read = 52000;
    u.output = 900;
    assert_memory_equal(&r->usage, &u, sizeof u);
    assert_int_equal(r->billed_microusd, !strcmp(f->provider, "openrouter") ? 12340 : -1);
}

static void test_model_http__replies(void **state) {
    (void)state;
    static const struct {
        const char *model;
        kl_stop stop;
        size_t asked;
    } CASES[] = {
        {"ok", KL_STOP_END, 1},          {"slow", KL_STOP_END, 1},
        {"split", KL_STOP_END, 1},       {"once-429", KL_STOP_END, 2},
        {"once-529", KL_STOP_END, 2},    {"once-503", KL_STOP_END, 2},
        {"once-inside", KL_STOP_END, 2}, {"max-tokens", KL_STOP_TRUNCATED, 1},
        {"refusal", KL_STOP_REFUSED, 1},
    };
    for (size_t i = 0; i < KL_COUNT(FACES) * KL_COUNT(CASES); i++) {
        const face *f = &FACES[i % KL_COUNT(FACES)];
        const char *model = CASES[i / KL_COUNT(FACES)].model;
        kl_reply r;
        unlink(LOG);
        assert_ok(ask(&r, spec_of(f, model)));
        assert_str(r.text, TEXT);
        assert_int_equal(r.stop, CASES[i / KL_COUNT(FACES)].stop);
        assert_str(r.model, model);
        assert_true(r.wall_ns > 0);
        check_usage(&r, f);
        assert_int_equal(times_asked(), CASES[i / KL_COUNT(FACES)].asked);
    }
}

/* OpenRouter's own bill; with a key of the user's own at the seller, the seller's as well. */
static void test_model_http__a_bill_is_taken_where_there_is_one(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        int64_t billed;
    } CASES[] = {{"openrouter:ok", 12340},
                 {"openrouter:byok", 11800},
                 {"openrouter:no-bill", -1},
                 {"openrouter:no-usage", -1},
                 {"openai:ok", -1}, /* "cost": 0 of a stranger is no bill */
                 {"local:ok", -1}};
    for (size_t i = 0; i < KL_COUNT(CASES); i++) {
        kl_reply r;
        assert_ok(ask(&r, CASES[i].spec));
        assert_int_equal(r.billed_microusd, CASES[i].billed);
    }
}

static void test_model_http__missing_or_mad_usage_is_charged_at_its_bound(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * KL_COUNT(FACES); i++) {
        kl_reply r;
        const face *f = &FACES[i / 2];
        assert_ok(ask(&r, spec_of(f, i % 2 ? "no-usage" : "bad-usage")));
        assert_true(r.usage.estimated);
        assert_int_equal(r.usage.cache_write_5m,
                         7 + 9 + 0 + 10 +
                             4 * 16); /* all that may be cached: a token of two bytes */
        assert_int_equal(r.usage.input, 0);
        const int64_t thought =
            f->counts == CHAT ? 0
                              : sizeof "hmmabc"; /* thoughts and their signature count as well */
        assert_in_range(r.usage.output, (sizeof TEXT - 1) / 2, (sizeof TEXT + (size_t)thought) / 2);
        assert_int_equal(r.usage.cache_read, 0);
    }
}

/* ---- trouble ----------------------------------------------------------------------------- */

static void test_model_http__trouble(void **state) {
    (void)state;
    static const struct {
        const char *model;
        kl_err code;
        size_t asked;
        int64_t billed;
        const char *words, *hint; /* NULL: the variable of the key */
    } CASES[] = {
        {"401", KL_EMODEL, 1, 0, "invalid key: ******************", NULL},
        {"403", KL_EMODEL, 1, 0, "HTTP 403", NULL},
        {"400", KL_EMODEL, 1, 0, "this request  cannot be  [31mserved", "refused"},
        {"404", KL_EMODEL, 1, 0, "HTTP 404", "_BASE_URL"},
        {"no-retry", KL_EMODEL, 1, 0, "broken for good", "later"},
        {"redirect", KL_EMODEL, 1, 0, "HTTP 302", ""},
        {"always-429", KL_EMODEL, 1 + KL_MODEL_RETRIES, 0, "(5 times)", "later"},
        {"inside", KL_EMODEL, 1, -1, ": Overloaded", "later"},
        {"cut", KL_EIO, 1, -1, "broke off after 11 bytes", "counts against"},
        {"cut-early", KL_EIO, 1, -1, "broke off after 0 bytes", ""},
        {"no-end", KL_EIO, 1, -1, "broke off", ""},
        {"garbage", KL_EMODEL, 1, -1, "garbage", ""},
        {"html", KL_EMODEL, 1, -1, "Welcome to the  [31mproxy", "_BASE_URL"},
        {"huge", KL_ELIMIT, 1, -1, "larger than", ""},
        {"endless-line", KL_ELIMIT, 1, -1, "larger than", ""},
    };
    for (size_t i = 0; i < KL_COUNT(FACES) * KL_COUNT(CASES); i++) {
        const face *f = &FACES[i / KL_COUNT(CASES)];
        const size_t c = i % KL_COUNT(CASES);
        const bool inside = !strcmp(CASES[c].model, "inside"), cut = !strcmp(CASES[c].model, "cut"),
                   garbage = !strcmp(CASES[c].model, "garbage");
        const bool slow_retries = !strcmp(CASES[c].model, "always-429") && i >= KL_COUNT(CASES);
        kl_reply r;
        if (slow_retries) continue; /* the same for all of them */
        e = (kl_error){0};
        unlink(LOG);
        assert_err(f->whole && inside ? KL_EIO : CASES[c].code,
                   ask(&r, spec_of(f, CASES[c].model)));
        assert_string_equal(e.where, f->provider);
        assert_contains(e.message, !f->whole       ? CASES[c].words
                                   : cut || inside ? "broke off"
                                   : garbage       ? "does not speak this wire shape"
                                                   : CASES[c].words);
        if (!f->whole) assert_contains(e.hint, CASES[c].hint ? CASES[c].hint : f->key);
        assert_int_equal(r.billed_microusd, CASES[c].billed);
        assert_int_equal(r.text.len, 0);
        assert_int_equal(times_asked(), CASES[c].asked);
    }
}

/* What arrived is what is known: the prompt where the server said so, else its bound; of the answer
 * the bytes that came. */
static void test_model_http__what_broke_off_counts_for_what_arrived(void **state) {
    (void)state;
    static const struct {
        const char *spec;
        bool again;
        int64_t input, cache_read, written, most_output;
    } CASES[] = {
        {"anthropic:cut", true, 12, 52000, 300, 8},
        {"anthropic:inside", true, 12, 52000, 300, 8},
        {"openai:cut", true, 0, 0, 26 + 64, 6},
        {"openai:inside", true, 0, 0, 26 + 64, 6},
        {"anthropic:cut-early", true, 0, 0, 26 + 64, 0},
        {"openai:cut-early", true, 0, 0, 26 + 64, 0},
        {"anthropic:garbage", true, 0, 0, 26 + 64, 0},
        {"anthropic:no-end", true, 12, 52000, 300, 900},
        {"openai:html", false, 0, 0, 26 + 64, 0},
        {"openai:huge", false, 0, 0, 26 + 64, 1234},
        {"anthropic:huge", false, 12, 52000, 300, 1234},
        {"anthropic:401", false, 0, 0, 0, 0},
        {"gemini:cut", true, 312, 52000, 0, 401}, /* what was thought so far is said */
        {"gemini:cut-late", true, 312, 52000, 0, 900},
        {"gemini:no-end", true, 312, 52000, 0, 401},
        {"vertex:here-1/cut", true, 12, 52000, 300, 8},
        {"openrouter:inside", true, 0, 0, 26 + 64, 6},
        {"local:cut", true, 0, 0, 26 + 64, 6},
        {"bedrock:here-1/cut", true, 0, 0, 26 + 64, 1234}, /* nobody saw how long it was */
        {"bedrock:here-1/cut-late", true, 0, 0, 26 + 64, 1234},
        {"bedrock:here-1/no-end", true, 0, 0, 26 + 64, 1234},
    };
    for (size_t i = 0; i < KL_COUNT(CASES); i++) {
        kl_reply r;
        assert_true(ask(&r, CASES[i].spec) != KL_OK);
        const kl_usage *u = &r.usage;
        if (r.again != CASES[i].again || u->input != CASES[i].input ||
            u->cache_read != CASES[i].cache_read ||
            u->cache_write_5m + u->cache_write_1h != CASES[i].written ||
            u->output > CASES[i].most_output)
            fail_msg("%s: again %d, input %lld, read %lld, written %lld, output %lld",
                     CASES[i].spec, r.again, (long long)u->input, (long long)u->cache_read,
                     (long long)(u->cache_write_5m + u->cache_write_1h), (long long)u->output);
    }
}

static void test_model_http__names_and_texts_of_a_server_are_data(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(FACES); i++) {
        kl_reply r;
        assert_ok(ask(&r, spec_of(&FACES[i], "escape")));
        assert_str(r.text,
                   "a\x1b[2Jb"); /* a reply is kept as it is; who shows it makes it harmless */
        assert_null(memchr(r.model.ptr, '\x1b', r.model.len));
        assert_true(r.model.len < 128);
    }
}

/* It is the server's to say what it likes, and ours to keep the key out of the journal. */
static void test_model_http__a_key_that_comes_back_is_starred(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(FACES); i++) {
        kl_reply r;
        assert_ok(ask(&r, spec_of(&FACES[i], "echo")));
        assert_str(r.text, "your key is ******************");
        assert_str(r.model, "******************");
    }
    setenv("LOCAL_API_KEY", "EMPTY", 1); /* what servers without keys are given is no secret */
    kl_reply r;
    assert_ok(ask(&r, "local:echo"));
    assert_str(r.text, "your key is EMPTY");
}

static void test_model_http__a_server_that_is_not_there(void **state) {
    (void)state;
    kl_reply r;
    point_to(1);
    const int64_t began = kli_now_ns();
    assert_err(KL_EIO, ask(&r, "anthropic:ok"));
    assert_contains(e.message, "not reached");
    assert_contains(e.hint, "ANTHROPIC_BASE_URL");
    assert_int_equal(r.billed_microusd, 0);
    assert_true(kli_now_ns() - began < 5000000000);
}

/* ^C while the server is silent; in a process of its own, because the flag stays. */
static void test_model_http__an_interrupt_ends_the_wait(void **state) {
    (void)state;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        kl_reply r;
        kli_terminal_watch(KL_QUIET);
        kli_interrupt_install();
        const bool ended = ask(&r, "anthropic:never") == KL_EINTR && r.billed_microusd == -1;
        const bool not_begun =
            ask(&r, "anthropic:ok") == KL_EINTR && r.billed_microusd == 0; /* the flag stays */
        _exit(ended && not_begun ? 0 : 1);
    }
    usleep(700000);
    kill(pid, SIGINT);
    int status = -1;
    const int64_t began = kli_now_ns();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(kli_now_ns() - began < 5000000000);
}

/* ---- what is sent ------------------------------------------------------------------------ */

static kl_str header(const json_t *request, const char *name) {
    return kli_json_text_or(json_object_get(request, "headers"), name, (kl_str){0});
}

static void test_model_http__the_anthropic_request_is_stable_to_the_byte(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(ask(&r, "anthropic:ok"));
    assert_ok(ask(&r, "anthropic:ok"));
    json_t *list = seen();
    assert_int_equal(json_array_size(list), 2);
    const json_t *one = json_array_get(list, 0);
    assert_str(kli_json_text_or(one, "path", (kl_str){0}), "/v1/messages");
    assert_str(header(one, "x-api-key"), KEY);
    assert_str(header(one, "authorization"), "");
    assert_str(header(one, "anthropic-version"), "2023-06-01");
    assert_str(
        kli_json_text_or(one, "raw", (kl_str){0}),
        "{\"model\":\"ok\",\"max_tokens\":1234,\"system\":[{\"type\":\"text\",\"text\":\"You are "
        "terse.\",\"cache_control\":{\"type\":\"ephemeral\"}}],"
        "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"first "
        "\\\"question\\\"\\n\",\"cache_control\":{\"type\":\"ephemeral\"}}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"(nothing)\"}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"second \\u0001 \xef\xbf\xbd "
        "question\",\"cache_control\":{\"type\":\"ephemeral\"}}]}],"
        "\"stream\":true}");
    assert_str(kli_json_text_or(one, "raw", (kl_str){0}),
               kli_json_text_or(json_array_get(list, 1), "raw", (kl_str){0}).ptr);
    json_decref(list);
}

static void test_model_http__the_openai_request_is_stable_to_the_byte(void **state) {
    (void)state;
    kl_reply r;
    assert_ok(ask(&r, "openai:ok"));
    json_t *list = seen();
    const json_t *one = json_array_get(list, 0);
    assert_str(kli_json_text_or(one, "path", (kl_str){0}), "/v1/chat/completions");
    assert_str(header(one, "authorization"), "Bearer " KEY);
    assert_str(kli_json_text_or(one, "raw", (kl_str){0}),
               "{\"model\":\"ok\",\"messages\":[{\"role\":\"system\",\"content\":\"You are "
               "terse.\"},{\"role\":\"user\",\"content\":\"first \\\"question\\\"\\n\"},"
               "{\"role\":\"assistant\",\"content\":\"(nothing)\"},{\"role\":\"user\",\"content\":"
               "\"second \\u0001 "
               "\xef\xbf\xbd question\"}],"
               "\"max_completion_tokens\":1234,\"stream\":true,\"stream_options\":{\"include_"
               "usage\":true}}");
    json_decref(list);
}

static const json_t *only_request(json_t **list) {
    *list = seen();
    assert_int_equal(json_array_size(*list), 1);
    return json_array_get(*list, 0);
}

#define SYSTEM_MARKED                                                                              \
    "{\"type\":\"text\",\"text\":\"You are "                                                       \
    "terse.\",\"cache_control\":{\"type\":\"ephemeral\"}}"
#define FIRST_MARKED                                                                               \
    "{\"type\":\"text\",\"text\":\"first "                                                         \
    "\\\"question\\\"\\n\",\"cache_control\":{\"type\":\"ephemeral\"}}"
#define SECOND_MARKED                                                                              \
    "{\"type\":\"text\",\"text\":\"second \\u0001 \xef\xbf\xbd "                                   \
    "question\",\"cache_control\":{\"type\":\"ephemeral\"}}"

static void test_model_http__what_each_of_the_others_is_sent(void **state) {
    (void)state;
    static const struct {
        const char *spec, *path, *header, *value, *body;
    } CASES[] = {
        {"gemini:x/y", "/v1beta/models/x%2Fy:streamGenerateContent?alt=sse", "x-goog-api-key", KEY,
         "{\"systemInstruction\":{\"parts\":[{\"text\":\"You are terse.\"}]},\"contents\":["
         "{\"role\":\"user\",\"parts\":[{\"text\":\"first \\\"question\\\"\\n\"}]},"
         "{\"role\":\"model\",\"parts\":[{\"text\":\"(nothing)\"}]},"
         "{\"role\":\"user\",\"parts\":[{\"text\":\"second \\u0001 \xef\xbf\xbd question\"}]}],"
         "\"generationConfig\":{\"maxOutputTokens\":1234}}"},
        {"vertex:us-east5/claude-opus-4-5@20251101",
         "/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/"
         "claude-opus-4-5@20251101:streamRawPredict",
         "authorization", "Bearer " KEY,
         "{\"anthropic_version\":\"vertex-2023-10-16\",\"max_tokens\":1234,\"system\":"
         "[" SYSTEM_MARKED "],\"messages\":[{\"role\":\"user\",\"content\":[" FIRST_MARKED "]},"
         "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"(nothing)\"}]},"
         "{\"role\":\"user\",\"content\":[" SECOND_MARKED "]}],\"stream\":true}"},
        {"bedrock:us-east-1/global.anthropic.claude-opus-4-6-v1:0",
         "/model/global.anthropic.claude-opus-4-6-v1%3A0/invoke", "authorization", "Bearer " KEY,
         "{\"anthropic_version\":\"bedrock-2023-05-31\",\"max_tokens\":1234,\"system\":"
         "[" SYSTEM_MARKED "],\"messages\":[{\"role\":\"user\",\"content\":[" FIRST_MARKED "]},"
         "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"(nothing)\"}]},"
         "{\"role\":\"user\",\"content\":[" SECOND_MARKED "]}]}"},
        {"openrouter:anthropic/claude-opus-4.6", "/api/v1/chat/completions", "authorization",
         "Bearer " KEY,
         "{\"model\":\"anthropic/"
         "claude-opus-4.6\",\"messages\":[{\"role\":\"system\",\"content\":[" SYSTEM_MARKED
         "]},{\"role\":\"user\",\"content\":[" FIRST_MARKED "]},"
         "{\"role\":\"assistant\",\"content\":\"(nothing)\"},"
         "{\"role\":\"user\",\"content\":[" SECOND_MARKED "]}],\"max_tokens\":1234,"
         "\"stream\":true,\"stream_options\":{\"include_usage\":true},\"usage\":{\"include\":true},"
         "\"provider\":{\"max_price\":{\"prompt\":5.0,\"completion\":25.0}}}"},
        {"openrouter:nobody/knows", "/api/v1/chat/completions", "authorization", "Bearer " KEY,
         "{\"model\":\"nobody/knows\",\"messages\":[{\"role\":\"system\",\"content\":\"You are "
         "terse.\"},{\"role\":\"user\",\"content\":\"first \\\"question\\\"\\n\"},"
         "{\"role\":\"assistant\",\"content\":\"(nothing)\"},{\"role\":\"user\",\"content\":"
         "\"second \\u0001 \xef\xbf\xbd question\"}],\"max_tokens\":1234,\"stream\":true,"
         "\"stream_options\":{\"include_usage\":true},\"usage\":{\"include\":true}}"},
        {"local:qwen3:8b", "/local/v1/chat/completions", "authorization", "Bearer " KEY,
         "{\"model\":\"qwen3:8b\",\"messages\":[{\"role\":\"system\",\"content\":\"You are "
         "terse.\"},{\"role\":\"user\",\"content\":\"first \\\"question\\\"\\n\"},"
         "{\"role\":\"assistant\",\"content\":\"(nothing)\"},{\"role\":\"user\",\"content\":"
         "\"second \\u0001 \xef\xbf\xbd question\"}],\"max_tokens\":1234,\"stream\":true,"
         "\"stream_options\":{\"include_usage\":true}}"},
    };
    for (size_t i = 0; i < KL_COUNT(CASES); i++) {
        kl_reply r;
        json_t *list;
        unlink(LOG);
        assert_ok(ask(&r, CASES[i].spec));
        const json_t *sent = only_request(&list);
        assert_str(kli_json_text_or(sent, "path", (kl_str){0}), CASES[i].path);
        assert_str(header(sent, CASES[i].header), CASES[i].value);
        assert_str(kli_json_text_or(sent, "raw", (kl_str){0}), CASES[i].body);
        json_decref(list);
    }
}

static void test_model_http__at_most_four_breakpoints_the_first_and_the_last(void **state) {
    (void)state;
    kl_message many[9];
    for (int i = 0; i < 9; i++)
        many[i] = (kl_message){i % 2 ? KL_ROLE_ASSISTANT : KL_ROLE_USER, KL_S("x"), true};
    const kl_request q = {.messages = many, .n = 9};
    kl_model *m;
    kl_reply r;
    assert_ok(kl_model_open(&m, "anthropic:ok", &e));
    assert_ok(kl_model_ask(&r, m, arena, &q, &e));
    kl_model_close(m);
    json_t *list = seen();
    const json_t *body = json_object_get(json_array_get(list, 0), "body"),
                 *messages = json_object_get(body, "messages");
    for (size_t i = 0; i < 9; i++) {
        const json_t *block =
            json_array_get(json_object_get(json_array_get(messages, i), "content"), 0);
        assert_int_equal(json_object_get(block, "cache_control") != NULL, i == 0 || i > 5);
    }
    assert_int_equal(kli_json_int_or(body, "max_tokens", 0), KL_MODEL_MAX_TOKENS);
    assert_null(json_object_get(body, "system"));
    json_decref(list);
}

/* ---- keys and addresses ------------------------------------------------------------------ */

static void test_model_http__where_the_key_comes_from(void **state) {
    (void)state;
    kl_reply r;
    unsetenv("ANTHROPIC_API_KEY");
    assert_ok(ask(&r, "anthropic:ok")); /* a server of one's own may want none */
    assert_ok(kli_fs_write("key", KL_S("  " KEY "\n"), &e));
    setenv("ANTHROPIC_API_KEY_FILE", "key", 1);
    assert_ok(ask(&r, "anthropic:ok"));
    json_t *list = seen();
    assert_str(header(json_array_get(list, 0), "x-api-key"), "");
    assert_str(header(json_array_get(list, 1), "x-api-key"), KEY);
    json_decref(list);
    assert_err(KL_EMODEL, ask(&r, "anthropic:401"));
    assert_contains(e.hint, "the key came from key;");
    assert_contains(e.message, "invalid key: ******************");
    setenv("ANTHROPIC_API_KEY_FILE", "absent", 1);
    assert_err(KL_ENOENT, ask(&r, "anthropic:ok"));
    assert_contains(e.hint, "ANTHROPIC_API_KEY_FILE");
    static const char *const bad[] = {"two words", "line\nx-evil: 1", "\xc3\xa4", "   "};
    for (size_t i = 0; i < KL_COUNT(bad); i++) {
        setenv("ANTHROPIC_API_KEY", bad[i], 1);
        assert_err(KL_EINVAL, ask(&r, "anthropic:ok"));
        assert_null(strstr(e.message, bad[i][0] == ' ' ? "\x01" : bad[i]));
    }
    unsetenv("ANTHROPIC_API_KEY");
    unsetenv("ANTHROPIC_API_KEY_FILE");
    unsetenv("ANTHROPIC_BASE_URL");
    assert_err(KL_ENOENT, ask(&r, "anthropic:ok"));
    assert_contains(e.message, "neither ANTHROPIC_API_KEY nor ANTHROPIC_API_KEY_FILE");
}

/* The tokens of clouds last an hour: a line of work outlives them. */
static void test_model_http__a_key_file_is_read_for_each_call(void **state) {
    (void)state;
    kl_model *m;
    kl_reply r;
    unsetenv("CLOUDSDK_AUTH_ACCESS_TOKEN");
    setenv("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", "token", 1);
    assert_ok(kli_fs_write("token", KL_S("one\n"), &e));
    assert_ok(kl_model_open(&m, "vertex:global/ok", &e));
    assert_ok(kl_model_ask(&r, m, arena, &ASK, &e));
    assert_ok(kli_fs_write("token", KL_S("two\n"), &e));
    assert_ok(kl_model_ask(&r, m, arena, &ASK, &e));
    unlink("token");
    assert_err(KL_ENOENT, kl_model_ask(&r, m, arena, &ASK, &e));
    assert_int_equal(r.billed_microusd, 0);
    kl_model_close(m);
    json_t *list = seen();
    assert_int_equal(json_array_size(list), 2);
    assert_str(header(json_array_get(list, 0), "authorization"), "Bearer one");
    assert_str(header(json_array_get(list, 1), "authorization"), "Bearer two");
    json_decref(list);
    unsetenv("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE");
}

static void test_model_http__a_cloud_wants_region_project_and_key(void **state) {
    (void)state;
    static const char *const bad[] = {"vertex:claude-opus-4-6", "bedrock:/x", "bedrock:us-east-1/",
                                      "vertex:evil.example/x", "bedrock:US/x"};
    kl_model *m;
    for (size_t i = 0; i < KL_COUNT(bad); i++) {
        assert_err(KL_EINVAL, kl_model_open(&m, bad[i], &e));
        assert_contains(e.hint, ":REGION/MODEL");
    }
    unsetenv("VERTEX_BASE_URL");
    unsetenv("GOOGLE_CLOUD_PROJECT");
    assert_err(KL_ENOENT, kl_model_open(&m, "vertex:global/x", &e));
    assert_contains(e.message, "GOOGLE_CLOUD_PROJECT");
    unsetenv("BEDROCK_BASE_URL");
    unsetenv("AWS_BEARER_TOKEN_BEDROCK");
    assert_err(KL_ENOENT, kl_model_open(&m, "bedrock:us-east-1/x", &e));
    assert_contains(e.message, "neither AWS_BEARER_TOKEN_BEDROCK nor");
}

static void test_model_http__what_is_free_is_on_this_machine(void **state) {
    (void)state;
    static const struct {
        const char *base;
        kl_err code;
    } CASES[] = {
        {"http://localhost:1/v1", KL_OK},          {"http://127.0.0.1/v1", KL_OK},
        {"http://[::1]:8000/v1", KL_OK},           {"http://192.168.0.7:8000/v1", KL_EINVAL},
        {"https://llm.example/v1", KL_EINVAL},     {"http://localhost.example/v1", KL_EINVAL},
        {"http://127.0.0.1.example/v1", KL_EINVAL}};
    unsetenv("LOCAL_API_KEY");
    for (size_t i = 0; i < KL_COUNT(CASES); i++) {
        kl_model *m = NULL;
        kl_price price;
        setenv("LOCAL_BASE_URL", CASES[i].base, 1);
        assert_err(CASES[i].code, kl_model_open(&m, "local:qwen3:8b", &e));
        if (CASES[i].code) {
            assert_contains(e.message, "must be on this machine");
            continue;
        }
        assert_string_equal(kl_model_name(m), "local:qwen3:8b");
        assert_ok(kl_price_of(&price, kl_model_name(m), 1, &e));
        assert_int_equal(price.input + price.output, 0);
        kl_model_close(m);
    }
}

static void test_model_http__addresses_that_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "ftp://x",    "file:///etc/passwd", "127.0.0.1", "http://user:secret@host",
        "http://a b", "https://x/?key=1",   "http://x#y"};
    for (size_t i = 0; i < KL_COUNT(bad); i++) {
        kl_reply r;
        setenv("ANTHROPIC_BASE_URL", bad[i], 1);
        assert_err(KL_EINVAL, ask(&r, "anthropic:ok"));
        assert_string_equal(e.where, "ANTHROPIC_BASE_URL");
        assert_null(strstr(e.message, "secret"));
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_model_http__##name, set_up, kit_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(replies),
        TEST(a_bill_is_taken_where_there_is_one),
        TEST(missing_or_mad_usage_is_charged_at_its_bound),
        TEST(trouble),
        TEST(what_broke_off_counts_for_what_arrived),
        TEST(names_and_texts_of_a_server_are_data),
        TEST(a_key_that_comes_back_is_starred),
        TEST(a_server_that_is_not_there),
        TEST(an_interrupt_ends_the_wait),
        TEST(the_anthropic_request_is_stable_to_the_byte),
        TEST(the_openai_request_is_stable_to_the_byte),
        TEST(what_each_of_the_others_is_sent),
        TEST(at_most_four_breakpoints_the_first_and_the_last),
        TEST(where_the_key_comes_from),
        TEST(a_key_file_is_read_for_each_call),
        TEST(a_cloud_wants_region_project_and_key),
        TEST(what_is_free_is_on_this_machine),
        TEST(addresses_that_are_refused),
    };
    static const char *const PROXIES[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                          "ALL_PROXY"};
    for (size_t i = 0; i < KL_COUNT(PROXIES); i++) unsetenv(PROXIES[i]);
    const kli_curl *curl;
    if (kli_curl_load(&curl, &e))
        return (void)fprintf(stderr, "skipped: %s: %s\n", e.where, e.message), 77;
    arena = kl_arena_new();
    const bool python = kli_fs_find_program(arena, "python3").len > 0;
    kl_arena_free(arena);
    if (!python) return (void)fprintf(stderr, "skipped: there is no python3\n"), 77;
    server_port = start_server();
    if (server_port < 0) return (void)fprintf(stderr, "model_server.py does not start\n"), 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
