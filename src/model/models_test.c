/* Tests of models.c and builtin.c: every row of the table answers for itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"
#include "kit/kit.h"
#include <stdlib.h>

static void test_model_models__every_provider_conforms(void **state) {
    (void)state;
    int n = 0;
    for (const kl_provider *p; (p = kl_provider_each(n)); n++) {
        assert_true(*p->name && *p->doc && *p->example && p->open && p->ask);
        assert_true(kl_str_starts(kl_str_of(p->example), kl_str_of(p->name)));
        assert_true((p->name_at == KL_NAME_INSIDE) == !kl_model_stated(p->example));
        assert_true(kl_str_starts(kl_str_of(p->spec), kl_str_of(p->name)));
        assert_true(!p->slow ||
                    p->repeatable); /* what may be asked again later must be free to ask again */
        if (!strchr(p->spec, ':')) continue;
        kl_model *m;
        assert_err(KL_EINVAL, kl_model_open(&m, p->name, &e));
        assert_contains(e.message, p->spec);
        assert_err(KL_EINVAL, kl_model_open(&m, kl_arena_printf(arena, "%s:", p->name).ptr, &e));
    }
    assert_int_equal(n, 12);
    assert_null(kl_provider_each(-1));
}

static void test_model_models__an_unknown_provider_comes_with_the_list(void **state) {
    (void)state;
    static const struct {
        const char *spec, *hint;
    } CASES[] = {
        {"claude-opus-4-6", "--model 'anthropic:claude-opus-4-6'"},
        {"gpt-6-sol", "--model 'openai:gpt-6-sol'"},
        {"claude -p", "--model 'command:claude -p'"},
        {"antropic:claude-opus-4-6", "--model 'anthropic:claude-opus-4-6'"},
        {"Anthropic:x", "--model builtin"},
        {"/tmp/box", "--model 'mailbox:/tmp/box'"},
        {"gemini-3.5-flash", "--model 'gemini:gemini-3.5-flash'"},
        {"gemini -p", "--model 'command:gemini -p'"},
        {"opencode run", "--model 'command:opencode run'"},
        {"anthropic/claude-opus-4.6", "--model 'openrouter:anthropic/claude-opus-4.6'"},
        {"", "--model builtin"},
        {":", "--model builtin"},
        {"\x1b[31m:x", "--model builtin"},
    };
    for (size_t i = 0; i < KL_COUNT(CASES); i++) {
        kl_model *m;
        e = (kl_error){0};
        assert_err(KL_EINVAL, kl_model_open(&m, CASES[i].spec, &e));
        assert_contains(e.message, "anthropic:MODEL, openai:MODEL, gemini:MODEL, openrouter:");
        assert_contains(e.hint, CASES[i].hint);
        assert_null(strchr(e.message, '\x1b'));
    }
    kl_model *m;
    assert_err(KL_EINVAL, kl_model_open(&m, "builtin:x", &e));
}

/* The rows of the price table that cost nothing are for those who cost nothing. */
static void test_model_models__no_wire_takes_the_name_of_what_is_free(void **state) {
    (void)state;
    static const char *const specs[] = {"openai:local:qwen3", "openai:builtin", "anthropic:mailbox",
                                        "gemini:mutate:1", "openrouter:replay of x"};
    for (size_t i = 0; i < KL_COUNT(specs); i++) {
        kl_model *m;
        assert_err(KL_EINVAL, kl_model_open(&m, specs[i], &e));
        assert_contains(e.message, "would be priced as");
    }
}

static void test_model_models__what_a_name_states(void **state) {
    (void)state;
    assert_string_equal(kl_model_stated("bedrock:us-east-1/anthropic.x-v1:0"),
                        "us-east-1/anthropic.x-v1:0");
    assert_string_equal(kl_model_stated("local:qwen3:8b"), "local:qwen3:8b");
    assert_null(kl_model_stated("command:claude -p"));
    assert_null(kl_model_stated("openai:"));
    assert_null(kl_model_stated("nobody:x"));
}

static void test_model_models__without_libcurl_it_says_so(void **state) {
    (void)state;
    kl_model *m;
    setenv("KLINEAGE_LIBCURL", "/no/such/library.so", 1);
    assert_err(KL_ENODEV, kl_model_open(&m, "anthropic:x", &e));
    assert_string_equal(e.where, "libcurl");
    assert_contains(e.hint, "mailbox");
    unsetenv("KLINEAGE_LIBCURL");
}

/* ---- builtin ----------------------------------------------------------------------------- */

static const char KERNEL[] = "//! launch scale args(x, y, N)\n"
                             "void scale(const float *restrict x, float *restrict y, int n) {\n"
                             "    int i = 0;\n"
                             "    for (; i + 4 <= n; i += 4) {\n"
                             "        y[i] = 2 * x[i];\n"
                             "        y[i + 1] = 2 * x[i + 1];\n"
                             "        y[i + 2] = 2 * x[i + 2];\n"
                             "        y[i + 3] = 2 * x[i + 3];\n"
                             "    }\n"
                             "    for (; i < n; i++) y[i] = 2 * x[i];\n"
                             "}\n";

static kl_reply ask(const kl_request *q) {
    kl_model *m;
    kl_reply r;
    assert_ok(kl_model_open(&m, "builtin", &e));
    assert_string_equal(kl_model_name(m), "builtin");
    assert_ok(kl_model_ask(&r, m, arena, q, &e));
    kl_model_close(m);
    return r;
}

/* Each undoing once, in order, then DONE; what it says is what kl_rewrite_undo does. */
static void test_model_builtin__undoings_one_after_the_other(void **state) {
    (void)state;
    kl_kernel *k;
    assert_ok(kl_kernel_parse(&k, arena, kl_str_of(KERNEL), KL_S("k.c"), NULL, NULL, &e));
    kl_undoing all[64];
    const int n = kl_rewrite_undo(all, 64, arena, k);
    kl_message turns[2 * 64 + 2] = {{KL_ROLE_SYSTEM, KL_S("Simplify."), true},
                                    {KL_ROLE_USER, kl_str_of(KERNEL), false}};
    kl_request q = {.messages = turns, .n = 2, .purpose = "deoptimize", .subject = k};
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        const kl_reply r = ask(&q);
        kl_proposal proposal;
        kl_str source;
        const kl_str edits = kl_str_trim(kl_edits_between(arena, k->source, all[i].source));
        if (!edits.len) continue;
        assert_contains(r.text.ptr,
                        kl_arena_printf(arena, "ACTION: %.*s\nLOCUS: %.*s\nWHY: ",
                                        KL_STR_ARG(all[i].action), KL_STR_ARG(all[i].locus))
                            .ptr);
        assert_ok(kl_proposal_parse(&proposal, arena, r.text, k->surface, &e));
        assert_ok(kl_proposal_apply(&source, arena, k->source, &proposal, &e));
        assert_str(source, kl_arena_copy(arena, all[i].source).ptr);
        assert_str(ask(&q).text, r.text.ptr); /* the same question, the same answer */
        turns[q.n++] = (kl_message){KL_ROLE_ASSISTANT, r.text, false};
        turns[q.n++] = (kl_message){KL_ROLE_USER, KL_S("rejected: wrong"), false};
    }
    assert_true(kl_str_starts(ask(&q).text, KL_S("DONE: ")));
}

static void test_model_builtin__knows_what_it_cannot(void **state) {
    (void)state;
    static const struct {
        const char *purpose, *starts;
    } CASES[] = {{"rederive", "DONE: cannot"}, {"generate", "DONE: "}, {"materialize", "DONE: "},
                 {"deoptimize", "DONE: "},     {NULL, "DONE: "},       {"lift", "## Intent\n"}};
    const kl_message turn = {KL_ROLE_USER, KL_S("x"), false};
    for (size_t i = 0; i < KL_COUNT(CASES); i++) {
        const kl_reply r =
            ask(&(kl_request){.messages = &turn, .n = 1, .purpose = CASES[i].purpose});
        assert_true(kl_str_starts(r.text, kl_str_of(CASES[i].starts)));
        assert_int_equal(r.usage.input + r.usage.output, 0);
    }
}

int main(void) {
#define TEST(name) KIT_TEST(test_model_##name)
    const struct CMUnitTest tests[] = {
        TEST(models__without_libcurl_it_says_so),
        TEST(models__every_provider_conforms),
        TEST(models__an_unknown_provider_comes_with_the_list),
        TEST(models__no_wire_takes_the_name_of_what_is_free),
        TEST(models__what_a_name_states),
        TEST(builtin__undoings_one_after_the_other),
        TEST(builtin__knows_what_it_cannot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
