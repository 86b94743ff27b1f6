/* tenants_test.c - tokens, tasks, quotas and turns of tenants.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kit/kit.h"
#include "base/hash.h"
#include "reward/reward_impl.h"
#include <sys/stat.h>

static kl_err open_file(kli_tenants *t, const char *text) {
    static kl_str tasks[2];
    tasks[0] = KL_S(KL_TEST_ROOT "/tasks/gemm");
    tasks[1] = KL_S(KL_TEST_ROOT "/tasks/topk");
    const kli_reward_opts o = {
        .tenants = kit_write("tenants.json", text), .tasks = tasks, .n_tasks = 2};
    e = (kl_error){0};
    return kli_tenants_open(t, &o, &e);
}

static const char *one(const char *name, const char *token, const char *more) {
    return kl_arena_printf(arena, "{\"name\":\"%s\",\"sha256\":\"%s\"%s}", name,
                           kli_hash_of(kl_str_of(token)).hex, more)
        .ptr;
}

static const char *file_of(const char *inside) {
    return kl_arena_printf(arena, "{\"tenants\":[%s]}", inside).ptr;
}

static void test_reward_tenants__a_token_is_one_tenants(void **state) {
    (void)state;
    kli_tenants t;
    const char *both =
        kl_arena_printf(arena, "%s,%s", one("alice", "secret", ""), one("bob", "other", "")).ptr;
    assert_ok(open_file(&t, file_of(both)));
    assert_ptr_equal(kli_tenants_of(&t, "Bearer secret"), &t.tenants[0]);
    assert_ptr_equal(kli_tenants_of(&t, "Bearer other"), &t.tenants[1]);
    static const char *const NOBODY[] = {
        NULL,    "", "Bearer ", "Bearer secre", "Bearer secrett", "Basic secret", "bearer secret",
        "secret"};
    for (size_t i = 0; i < KL_COUNT(NOBODY); i++) assert_null(kli_tenants_of(&t, NOBODY[i]));
    assert_null(kli_tenants_of(&t, kl_arena_printf(arena, "Bearer %0600d", 1).ptr));
    kli_tenants_close(&t);
}

static void test_reward_tenants__files_that_are_refused(void **state) {
    (void)state;
    const char *twice =
        kl_arena_printf(arena, "%s,%s", one("a", "same", ""), one("b", "same", "")).ptr;
    const struct {
        const char *text, *says;
    } BAD[] = {
        {"{}", "list of 1"},
        {file_of(""), "list of 1"},
        {file_of(one("Alice", "x", "")), "a tenant's name"},
        {file_of(one("../x", "x", "")), "a tenant's name"},
        {file_of("{\"name\":\"a\",\"sha256\":\"secret\"}"), "hash of a token"},
        {file_of(one("a", "x", ",\"token\":\"x\"")), "has no 'token'"},
        {file_of(one("a", "x", ",\"per_minute\":0")), "at least 1"},
        {file_of(one("a", "x", ",\"folders\":[\"/nonexistent\"]")), "no such folder"},
        {file_of(twice), "the same token"},
    };
    for (size_t i = 0; i < KL_COUNT(BAD); i++) {
        kli_tenants t;
        assert_true(open_file(&t, BAD[i].text) != KL_OK);
        assert_contains(e.message, BAD[i].says);
        kli_tenants_close(&t);
    }
    const char *path = kit_write("tenants.json", file_of(one("a", "x", "")));
    assert_int_equal(chmod(path, 0666), 0);
    const kli_reward_opts o = {.tenants = path};
    kli_tenants t;
    assert_err(KL_EINVAL, kli_tenants_open(&t, &o, &e));
    kli_tenants_close(&t);
}

static void test_reward_tenants__a_tenant_sees_its_own_tasks(void **state) {
    (void)state;
    kli_tenants t;
    const kl_task *task;
    kl_str path;
    const char *both =
        kl_arena_printf(
            arena, "%s,%s", one("alice", "x", ",\"tasks\":[\"gemm\"]"),
            one("bob", "y", ",\"tasks\":[],\"folders\":[\"" KL_TEST_ROOT "/tests/data/tasks\"]"))
            .ptr;
    assert_ok(open_file(&t, file_of(both)));
    assert_ok(kli_tenant_task(&task, &path, &t.tenants[0], KL_S("gemm"), &e));
    assert_err(KL_ENOENT, kli_tenant_task(&task, &path, &t.tenants[0], KL_S("topk"), &e));
    assert_err(KL_ENOENT, kli_tenant_task(&task, &path, &t.tenants[0], KL_S("saxpy"), &e));
    assert_ok(kli_tenant_task(&task, &path, &t.tenants[1], KL_S("saxpy"), &e));
    assert_err(KL_ENOENT, kli_tenant_task(&task, &path, &t.tenants[1], KL_S("gemm"), &e));
    kli_tenants_close(&t);
}

static void test_reward_tenants__quotas_hold_and_come_back(void **state) {
    (void)state;
    const int64_t s = 1000000000;
    kli_tenant t = {.per_minute = 60, .in_flight = 10};
    assert_int_equal(kli_tenant_refuses(&t, 60, 0, 1 * s), 0);
    t.allowance -= 60;
    assert_int_equal(kli_tenant_refuses(&t, 5, 0, 1 * s), 6);
    assert_int_equal(kli_tenant_refuses(&t, 5, 0, 7 * s), 0);
    assert_int_equal(kli_tenant_refuses(&t, 61, 0, 100 * s), 60);
    t.live = 8;
    assert_int_equal(kli_tenant_refuses(&t, 5, 2, 100 * s), 0);
    assert_true(kli_tenant_refuses(&t, 5, 3, 100 * s) > 0);
}

static kli_job *job_named(kli_tenant *t, const char *name) {
    kli_question q = {0};
    snprintf(q.key, sizeof q.key, "%s", name);
    return kli_job_new(&q, t, 1);
}

static void take(kli_queue *q, const char *name) {
    kli_job *j = kli_queue_take(q);
    assert_non_null(j);
    assert_string_equal(j->key, name);
    kli_job_free(j);
}

static void test_reward_tenants__take_turns(void **state) {
    (void)state;
    kli_tenant a = {0}, b = {0}, c = {0};
    kli_queue q = {0};
    kli_queue_add(&q, job_named(&a, "a1"));
    kli_queue_add(&q, job_named(&a, "a2"));
    kli_queue_add(&q, job_named(&a, "a3"));
    kli_queue_add(&q, job_named(&b, "b1"));
    take(&q, "a1");
    take(&q, "b1");
    kli_queue_add(&q, job_named(&c, "c1"));
    kli_queue_add(&q, job_named(&b, "b2"));
    assert_non_null(kli_queue_find(&q, "b2"));
    assert_null(kli_queue_find(&q, "b1"));
    take(&q, "c1");
    take(&q, "a2");
    take(&q, "b2");
    take(&q, "a3");
    assert_null(kli_queue_take(&q));
    assert_int_equal(q.n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_reward_tenants__a_token_is_one_tenants),
        KIT_TEST(test_reward_tenants__files_that_are_refused),
        KIT_TEST(test_reward_tenants__a_tenant_sees_its_own_tasks),
        KIT_TEST(test_reward_tenants__quotas_hold_and_come_back),
        KIT_TEST(test_reward_tenants__take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
