/* kept_test.c - batches and answers in a journal, as the next start finds them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kit/kit.h"
#include "reward/reward_impl.h"

static kli_tenants tenants;
static kl_store *store;
static int open_batches;

static int begin(void **state) {
    static kl_str tasks[1];
    kit_set_up(state);
    tasks[0] = KL_S(KL_TEST_ROOT "/tasks/gemm");
    const kli_reward_opts o = {.tasks = tasks, .n_tasks = 1};
    assert_ok(kli_tenants_open(&tenants, &o, &e));
    assert_ok(kl_store_open(&store, kit_path("journal.db"), &e));
    return 0;
}

static int end(void **state) {
    kl_store_close(store);
    kli_tenants_close(&tenants);
    return kit_tear_down(state);
}

static kli_batch *batch_of(const char *id) {
    kli_batch *b = NULL;
    const kl_str text = kl_arena_printf(
        arena, "{\"kernels\":[{\"id\":\"%s\",\"task\":\"gemm\",\"kernel\":\"x\"}]}", id);
    assert_ok(kli_batch_parse(&b, tenants.tenants, text, &e));
    return b;
}

static void visit(void *ctx, kli_batch *b) {
    char *ids = ctx;
    strcat(ids, b->questions[0].id.ptr);
    open_batches++;
    kli_batch_free(b);
}

static void test_reward_kept__the_next_start_finds_what_is_open_oldest_first(void **state) {
    (void)state;
    char ids[8] = "";
    kli_batch *a = batch_of("a"), *b = batch_of("b"), *c = batch_of("c");
    assert_ok(kli_batch_keep(store, a, true, &e));
    assert_ok(kli_batch_keep(store, b, true, &e));
    assert_ok(kli_batch_keep(store, c, true, &e));
    assert_ok(kli_batch_keep(store, b, false, &e));
    open_batches = 0;
    assert_ok(kli_batch_each_open(store, &tenants, visit, ids, &e));
    assert_int_equal(open_batches, 2);
    assert_string_equal(ids, "ac");
    kli_batch_free(a), kli_batch_free(b), kli_batch_free(c);
}

static void test_reward_kept__a_batch_is_found_by_its_tenant_alone(void **state) {
    (void)state;
    kli_tenant other = {.name = KL_S("bob")};
    kli_batch *a = batch_of("a"), *found = NULL;
    assert_ok(kli_batch_keep(store, a, true, &e));
    assert_ok(kli_batch_find(&found, store, &tenants, tenants.tenants, a->id, &e));
    assert_string_equal(found->id, a->id);
    kli_batch_free(found);
    assert_err(KL_ENOENT, kli_batch_find(&found, store, &tenants, &other, a->id, &e));
    assert_null(found);
    kli_batch_free(a);
}

static void test_reward_kept__an_answer_stays_the_answer(void **state) {
    (void)state;
    char verdict[65], first[65], second[65];
    bool found = true;
    kli_batch *a = batch_of("a");
    memset(first, 'a', 64), memset(second, 'b', 64);
    first[64] = second[64] = '\0';
    assert_ok(kli_answer_find(verdict, &found, store, a->questions[0].key, &e));
    assert_false(found);
    assert_ok(kli_answer_keep(store, &a->questions[0], KL_S(""), first, &e));
    assert_ok(kli_answer_keep(store, &a->questions[0], KL_S(""), second, &e));
    assert_ok(kli_answer_find(verdict, &found, store, a->questions[0].key, &e));
    assert_true(found);
    assert_string_equal(verdict, first);
    kli_batch_free(a);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_reward_kept__the_next_start_finds_what_is_open_oldest_first),
        TEST(test_reward_kept__a_batch_is_found_by_its_tenant_alone),
        TEST(test_reward_kept__an_answer_stays_the_answer),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
