/* question_test.c - batches that are questions, and texts that are none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kit/kit.h"
#include "reward/reward_impl.h"

static kli_tenants tenants;
static const char *const TASK = KL_TEST_ROOT "/tasks/gemm";

static void open_tenants(void) {
    static kl_str tasks[1];
    tasks[0] = kl_str_of(TASK);
    const kli_reward_opts o = {.tasks = tasks, .n_tasks = 1};
    assert_ok(kli_tenants_open(&tenants, &o, &e));
}

static int begin(void **state) {
    kit_set_up(state);
    open_tenants();
    return 0;
}

static int end(void **state) {
    kli_tenants_close(&tenants);
    return kit_tear_down(state);
}

static kl_err parse(kli_batch **b, const char *text) {
    e = (kl_error){0};
    return kli_batch_parse(b, tenants.tenants, kl_str_of(text), &e);
}

static kli_batch *batch_of(const char *text) {
    kli_batch *b = NULL;
    assert_ok(parse(&b, text));
    return b;
}

static const char *kernels(const char *inside) {
    return kl_arena_printf(arena, "{\"kernels\":[%s]}", inside).ptr;
}

#define GOOD "{\"id\":\"a\",\"task\":\"gemm\",\"kernel\":\"x\"}"

static void test_reward_question__the_same_question_has_the_same_key(void **state) {
    (void)state;
    kli_batch *a = batch_of(kernels(GOOD)), *b = batch_of(kernels(GOOD)),
              *other = batch_of(
                  kernels("{\"id\":\"a\",\"task\":\"gemm\",\"kernel\":\"x\",\"check_only\":true}")),
              *renamed = batch_of(kernels("{\"id\":\"b\",\"task\":\"gemm\",\"kernel\":\"x\"}"));
    assert_string_equal(a->questions[0].key, b->questions[0].key);
    assert_string_equal(a->id, b->id);
    assert_string_not_equal(a->questions[0].key, other->questions[0].key);
    assert_string_equal(a->questions[0].key, renamed->questions[0].key);
    assert_string_not_equal(a->id, renamed->id);
    kli_batch_free(a), kli_batch_free(b), kli_batch_free(other), kli_batch_free(renamed);
}

static void test_reward_question__two_tenants_have_two_questions(void **state) {
    (void)state;
    kli_batch *a = batch_of(kernels(GOOD));
    tenants.tenants[0].name = KL_S("alice");
    kli_batch *b = batch_of(kernels(GOOD));
    assert_string_not_equal(a->questions[0].key, b->questions[0].key);
    assert_string_not_equal(a->id, b->id);
    kli_batch_free(a), kli_batch_free(b);
}

static void test_reward_question__what_is_wrong_with_one_leaves_the_others(void **state) {
    (void)state;
    kli_batch *b = batch_of(
        kernels(GOOD ",{\"id\":\"b\",\"task\":\"gemn\",\"kernel\":\"x\"},"
                     "{\"id\":\"c\",\"task\":\"gemm\",\"kernel\":\"x\",\"workload\":\"paperr\"},"
                     "{\"id\":\"d\",\"task\":\"gemm\",\"kernel\":\"x\",\"surface\":\"fortran\"},"
                     "{\"id\":\"e\",\"task\":\"gemm\"},"
                     "{\"id\":\"f\",\"task\":\"../gemm\",\"kernel\":\"x\"},"
                     "{\"id\":\"g\",\"task\":\"gemm\",\"kernel\":\"x\",\"baseline\":\"mine\"},"
                     "{\"id\":\"h\",\"task\":\"" KL_TEST_ROOT "/tasks/gemm\",\"kernel\":\"x\"}"));
    assert_int_equal(b->n, 8);
    assert_int_equal(b->open, 1);
    assert_int_equal(b->questions[1].fail.code, KL_ENOENT);
    assert_contains(b->questions[2].fail.message, "no workload 'paperr'");
    assert_contains(b->questions[3].fail.message, "no surface 'fortran'");
    assert_contains(b->questions[4].fail.message, "no kernel");
    assert_contains(b->questions[5].fail.message, "no task '../gemm'");
    assert_contains(b->questions[6].fail.message, "no baseline 'mine'");
    assert_int_equal(b->questions[7].fail.code, KL_ENOENT); /* a path is no name */
    kli_batch_free(b);
}

static void test_reward_question__texts_that_are_no_batch(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
        kl_err code;
    } BAD[] = {
        {"", "", KL_EPARSE},
        {"[]", "no object", KL_EPARSE},
        {"{\"kernels\":[]}", "at least one", KL_EPARSE},
        {"{\"kernels\":[1]}", "is an object", KL_EPARSE},
        {"{\"kernels\":[{}]}", "no \"id\"", KL_EPARSE},
        {"{\"kernels\":[{\"id\":\"a\"}]}", "no \"task\"", KL_EPARSE},
        {"{\"kernels\":[{\"id\":1}]}", "is a text", KL_EPARSE},
        {"{\"kernels\":[" GOOD "," GOOD "]}", "two kernels", KL_EPARSE},
        {"{\"kernels\":[" GOOD "],\"path\":\"/etc\"}", "no \"path\"", KL_EPARSE},
        {"{\"kernels\":[{\"id\":\"a\",\"task\":\"gemm\",\"flags\":\"-O3\"}]}", "no \"flags\"",
         KL_EPARSE},
        {"{\"kernels\":[" GOOD "],\"formula\":\"mine\"}", "no formula", KL_EINVAL},
        {"{\"kernels\":[" GOOD "],\"wait_seconds\":1e9}", "wait_seconds", KL_EINVAL},
        {"{\"kernels\":[" GOOD "],\"wait_seconds\":-1}", "wait_seconds", KL_EINVAL},
        {"{\"kernels\":[" GOOD "],\"verdicts\":1}", "true or false", KL_EPARSE},
        {"{\"kernels\":[{\"id\":\"a\",\"task\":\"gemm\",\"quick\":\"yes\"}]}", "true or false",
         KL_EPARSE},
    };
    for (size_t i = 0; i < KL_COUNT(BAD); i++) {
        kli_batch *b = NULL;
        assert_err(BAD[i].code, parse(&b, BAD[i].text));
        assert_null(b);
        assert_contains(e.message, BAD[i].says);
    }
}

static void test_reward_question__a_batch_has_a_bound(void **state) {
    (void)state;
    kl_buf text = {0};
    kli_batch *b = NULL;
    for (int i = 0; i <= KLI_REWARD_BATCH; i++)
        kl_buf_printf(&text, "%s{\"id\":\"%d\",\"task\":\"gemm\",\"kernel\":\"x\"}", i ? "," : "",
                      i);
    assert_err(KL_ELIMIT, parse(&b, kernels(text.ptr)));
    kl_buf_fini(&text);
    char *name = kl_arena_alloc(arena, KLI_REWARD_NAME + 2, 1);
    memset(name, 'x', KLI_REWARD_NAME + 1);
    assert_err(KL_ELIMIT, parse(&b, kernels(kl_arena_printf(arena, "{\"id\":\"%s\"}", name).ptr)));
}

static void test_reward_question__what_the_journal_keeps_is_the_same_batch(void **state) {
    (void)state;
    kli_batch *b = batch_of(kernels(
        "{\"id\":\"a\",\"task\":\"gemm\",\"kernel\":\"x\",\"quick\":true,\"workload\":\"cpu\"}"));
    json_t *o = kli_batch_json(b);
    char *text = json_dumps(o, 0);
    kli_batch *again = batch_of(text);
    assert_string_equal(b->id, again->id);
    assert_string_equal(b->questions[0].key, again->questions[0].key);
    free(text);
    json_decref(o);
    kli_batch_free(b), kli_batch_free(again);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_reward_question__the_same_question_has_the_same_key),
        TEST(test_reward_question__two_tenants_have_two_questions),
        TEST(test_reward_question__what_is_wrong_with_one_leaves_the_others),
        TEST(test_reward_question__texts_that_are_no_batch),
        TEST(test_reward_question__a_batch_has_a_bound),
        TEST(test_reward_question__what_the_journal_keeps_is_the_same_batch),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
