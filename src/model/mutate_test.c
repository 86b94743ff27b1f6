/* Tests of mutate.c: an edit that applies, drawn anew for every key, and nothing but a sentence
 * where prose is wanted. SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"
#include "kit/kit.h"

static const char KERNEL[] = "//! param BM = 32 {32, 64}\n"
                             "//! launch f args(x, y, N)\n"
                             "void f(const float *x, float *y, int n) {\n"
                             "    for (int i = 0; i < n; i++)\n"
                             "        for (int j = 0; j < KL_BM; j++) y[i] += x[j];\n"
                             "}\n";

static kl_kernel *parsed(const char *text) {
    kl_kernel *k;
    assert_ok(kl_kernel_parse(&k, arena, kl_str_of(text), KL_S("k.c"), NULL, NULL, &e));
    return k;
}

/* What `model` answers to a conversation under `system` about `k`, in the place `key` of a run. */
static kl_str said(const char *model, kl_str system, const kl_kernel *k, const char *purpose,
                   const char *key) {
    kl_model *m;
    kl_reply r;
    const kl_message turns[] = {{KL_ROLE_SYSTEM, system, true},
                                {KL_ROLE_USER, KL_S("Make it faster."), false}};
    assert_ok(kl_model_open(&m, model, &e));
    assert_ok(kl_model_ask(
        &r, m, arena,
        &(kl_request){.messages = turns, .n = 2, .purpose = purpose, .subject = k, .key = key},
        &e));
    assert_contains(kl_arena_copy(arena, r.model).ptr, "no language model");
    assert_string_equal(kl_arena_copy(arena, r.model).ptr, kl_model_name(m));
    assert_int_equal(r.usage.input + r.usage.output, 0);
    r.model = (kl_str){0};
    kl_model_close(m);
    return r.text;
}

static kl_str rules(const kl_kernel *k) { return kl_prompt_rules(arena, k->surface); }

static void test_model_mutate__every_answer_is_an_edit_that_applies(void **state) {
    (void)state;
    const kl_kernel *k = parsed(KERNEL);
    kl_str seen[200], actions = KL_S("");
    int distinct = 0;
    for (int i = 0; i < 200; i++) {
        const char *key = kl_arena_printf(arena, "key %d", i).ptr;
        kl_proposal p;
        kl_str source;
        kl_kernel *after;
        seen[i] = said("mutate:1", rules(k), k, i % 2 ? "generate" : "mutation", key);
        assert_str(said("mutate:1", rules(k), k, i % 2 ? "generate" : "mutation", key),
                   seen[i].ptr);
        assert_ok(kl_proposal_parse(&p, arena, seen[i], k->surface, &e));
        assert_true(p.kind == KL_PROPOSAL_EDITS && p.locus.len > 0);
        assert_contains(kl_arena_copy(arena, p.why).ptr, "no language model");
        assert_ok(kl_proposal_apply(&source, arena, k->source, &p, &e));
        assert_ok(kl_kernel_parse(&after, arena, source, KL_S("k.c"), NULL, NULL, &e));
        bool known = false;
        for (int n = 0; n < i; n++) known = known || kl_str_eq(seen[n], seen[i]);
        distinct += !known;
        if (!memmem(actions.ptr, actions.len, p.action.ptr, p.action.len))
            actions =
                kl_arena_printf(arena, "%.*s %.*s", KL_STR_ARG(actions), KL_STR_ARG(p.action));
    }
    assert_true(distinct > 20);
    for (const char *const *a =
             (const char *const[]){"autotune", "other:flags", "unroll", "simd_pragma", "loop_order",
                                   "restrict_alias", "cache_block", NULL};
         *a; a++)
        assert_contains(actions.ptr, *a);
}

/* 16 flags to add and one param to set: kinds are drawn first, so each has its share. */
static void test_model_mutate__kinds_have_equal_shares(void **state) {
    (void)state;
    const kl_kernel *k = parsed(KERNEL);
    int tuned = 0;
    for (int i = 0; i < 700; i++)
        tuned += kl_str_starts(
            said("mutate:5", rules(k), k, "generate", kl_arena_printf(arena, "%d", i).ptr),
            KL_S("ACTION: autotune"));
    assert_in_range(tuned, 65, 140); /* of seven kinds one: 100, standard deviation 9 */
}

static void test_model_mutate__another_seed_is_another_proposer(void **state) {
    (void)state;
    const kl_kernel *k = parsed(KERNEL);
    int same = 0;
    for (int i = 0; i < 40; i++) {
        const char *key = kl_arena_printf(arena, "key %d", i).ptr;
        same += kl_str_eq(said("mutate:1", rules(k), k, "generate", key),
                          said("mutate:2", rules(k), k, "generate", key));
    }
    assert_true(same < 20);
    assert_true(kl_str_starts(said("mutate:18446744073709551615", rules(k), k, "generate", NULL),
                              KL_S("ACTION: ")));
}

static void test_model_mutate__prose_is_a_sentence(void **state) {
    (void)state;
    const kl_kernel *k = parsed(KERNEL);
    kl_proposal p;
    static const char *const PURPOSES[] = {"plan", "summarize", "review", "lift"};
    for (size_t i = 0; i < KL_COUNT(PURPOSES); i++) {
        const kl_str text = said("mutate:1", rules(k), k, PURPOSES[i], "key");
        assert_str(text, said("mutate:2", KL_S("You plan."), NULL, PURPOSES[i], "another").ptr);
        assert_err(KL_EPARSE, kl_proposal_parse(&p, arena, text, k->surface, &e));
    }
    assert_str(said("mutate:1", rules(k), k, "rule", "key"), "no guidance\n");
    assert_err(KL_EPARSE,
               kl_proposal_parse(&p, arena, said("mutate:1", KL_S("You judge."), k, "judge", "key"),
                                 k->surface, &e));
    assert_err(KL_EPARSE,
               kl_proposal_parse(&p, arena, said("mutate:1", rules(k), NULL, "generate", "key"),
                                 k->surface, &e));
}

static void test_model_mutate__it_is_done_when_nothing_can_be_varied(void **state) {
    (void)state;
    const char *text = "#! surface triton\n#! launch f grid(1) args(x)\ndef f(x):\n    pass\n";
    kl_kernel *k;
    assert_ok(kl_kernel_parse(&k, arena, kl_str_of(text), KL_S("k.py"), NULL, NULL, &e));
    assert_true(kl_str_starts(said("mutate:1", rules(k), k, "generate", "key"), KL_S("DONE: ")));
}

static void test_model_mutate__a_seed_is_a_number(void **state) {
    (void)state;
    static const char *const BAD[] = {"mutate:x", "mutate:-1", "mutate: 1", "mutate:1x",
                                      "mutate:99999999999999999999"};
    for (size_t i = 0; i < KL_COUNT(BAD); i++) {
        kl_model *m;
        assert_err(KL_EINVAL, kl_model_open(&m, BAD[i], &e));
        assert_contains(e.message, "mutate:1");
    }
}

int main(void) {
#define TEST(name) KIT_TEST(test_model_mutate__##name)
    const struct CMUnitTest tests[] = {
        TEST(every_answer_is_an_edit_that_applies),  TEST(kinds_have_equal_shares),
        TEST(another_seed_is_another_proposer),      TEST(prose_is_a_sentence),
        TEST(it_is_done_when_nothing_can_be_varied), TEST(a_seed_is_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
