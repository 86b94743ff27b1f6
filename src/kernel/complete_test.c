/* complete_test.c - what a compiler decided is applied, and nothing of it is believed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "fixture.h"

static kl_arena *arena;
static kl_kernel *kernel;
static kl_fixture fixture;
static kl_plan *plan;
static kl_error e;

static const char SOURCE[] = "//! param P = 4\n"
                             "//! buffer own: f32[M]\n"
                             "//! launch f grid(cdiv(M, 8), 2) block(64) args(A, own, C, M, "
                             "i64(N), f32(1.5), alpha, limit)\n";

static int setup(void **state) {
    (void)state;
    arena = kl_arena_new();
    fixture_init(&fixture, 32, 96);
    plan = KL_NEW(arena, kl_plan);
    assert_ok(kl_kernel_parse(&kernel, arena, kl_str_of(SOURCE), KL_S("k.cu"), NULL, NULL, &e));
    assert_ok(kli_kernel_plan(plan, kernel, &fixture.task, &fixture.workload, NULL, &e));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    kl_arena_free(arena);
    return 0;
}

static kl_err complete(const char *text) {
    const kl_device_limits limits = {.smem_max = 232448, .max_threads = 1024, .memory = 1 << 30};
    return kli_plan_complete(plan, kl_str_of(text), kernel, &fixture.task, &fixture.workload,
                             &limits, &e);
}

static void test_plan_complete__nothing_changes_without_decisions(void **state) {
    (void)state;
    kl_plan *before = KL_NEW(arena, kl_plan);
    *before = *plan;
    assert_ok(complete(""));
    assert_ok(complete("{\"version\": 1}"));
    assert_memory_equal(before, plan, sizeof *plan);
}

static void test_plan_complete__sizes_and_hidden_memory(void **state) {
    (void)state;
    assert_ok(complete("{\"version\": 1,"
                       " \"buffers\": [{\"name\": \"scratch\", \"bytes\": \"384 * grid_x * "
                       "grid_y\", \"zero\": true}],"
                       " \"launches\": [{\"entry\": \"f_0d1\", \"grid\": [\"grid_x * 2\", "
                       "\"grid_y\", 1], \"block\": [384, 1, 1],"
                       "   \"cluster\": [2, 1, 1], \"smem\": 98304,"
                       "   \"args\": [{\"arg\": 2}, {\"tensor\": \"A\"}, {\"arg\": 3}, "
                       "{\"buffer\": \"own\"}, {\"buffer\": \"scratch\"},"
                       "              {\"i64\": 0}, {\"i32\": \"P * M\"}]}]}"));
    const kl_plan_launch *l = &plan->launches[0];
    assert_string_equal(l->entry, "f_0d1");
    assert_int_equal(l->grid[0], 8);
    assert_int_equal(l->grid[1], 2);
    assert_int_equal(l->block[0], 384);
    assert_int_equal(l->cluster[0], 2);
    assert_int_equal(l->smem, 98304);
    assert_int_equal(plan->n_buffers, 2);
    assert_true(plan->buffers[1].bytes == 384 * 4 * 2 && plan->buffers[1].zero);
    assert_int_equal(l->n_args, 7);
    const kl_value *args = kli_launch_args(plan, l);
    assert_true(args[0].kind == KL_VALUE_TENSOR && args[0].index == FIXTURE_C);
    assert_true(args[1].kind == KL_VALUE_TENSOR && args[1].index == FIXTURE_A);
    assert_true(args[2].kind == KL_VALUE_I32 && args[2].i == 32);
    assert_true(args[3].kind == KL_VALUE_BUFFER && args[3].index == 0);
    assert_true(args[4].kind == KL_VALUE_BUFFER && args[4].index == 1);
    assert_true(args[5].kind == KL_VALUE_I64 && args[5].i == 0);
    assert_true(args[6].kind == KL_VALUE_I32 && args[6].i == 128);
}

static void test_plan_complete__one_launch_may_become_several(void **state) {
    (void)state;
    assert_ok(complete("{\"version\": 1, \"launches\": [{\"of\": 0, \"entry\": \"first\"}, "
                       "{\"of\": 0, \"entry\": \"second\","
                       " \"grid\": [1, 1, 1], \"args\": []}]}"));
    assert_int_equal(plan->n_launches, 2);
    assert_string_equal(plan->launches[0].entry, "first");
    assert_int_equal(plan->launches[0].n_args, 8);
    assert_int_equal(plan->launches[1].n_args, 0);
    assert_int_equal(plan->launches[1].block[0], 64);
}

#define MAP(dims, strides)                                                                         \
    "{\"version\": 1, \"tensormaps\": [{\"tensor\": \"A\", \"dims\": " dims                        \
    ", \"strides\": " strides ", \"box\": [64, 8], \"swizzle\": 128, \"l2\": 128}], "              \
    "\"launches\": [{\"args\": [{\"tensormap\": 0}]}]}"

static void test_plan_complete__descriptors_stay_inside_their_tensor(void **state) {
    (void)state;
    assert_ok(complete(MAP("[64, \"M\"]", "[128]"))); /* A is bf16[M, 64] */
    assert_int_equal(plan->n_tensormaps, 1);
    assert_int_equal(plan->tensormaps[0].dtype, KL_BF16);
    assert_true(plan->tensormaps[0].dims[1] == 32 && plan->tensormaps[0].strides[1] == 128);
    assert_int_equal(plan->args[0].kind, KL_VALUE_TENSORMAP);
    assert_err(KL_EINVAL, complete(MAP("[64, \"M + 1\"]", "[128]")));
    assert_contains(e.message, "reaches past the end");
    assert_err(KL_EINVAL, complete(MAP("[64, \"M\"]", "[120]")));
    assert_err(KL_EINVAL, complete(MAP("[64, \"M\"]", "[128, 128]")));
}

static void test_plan_complete__what_does_not_fit_is_refused(void **state) {
    (void)state;
    static const char *const BAD[] = {
        "no JSON",
        "{}",
        "{\"version\": 2}",
        "{\"version\": 1, \"launches\": []}",
        "{\"version\": 1, \"launches\": [{\"of\": 1}]}",
        "{\"version\": 1, \"launches\": [{\"of\": -1}]}",
        "{\"version\": 1, \"launches\": [{\"entry\": \"../f\"}]}",
        "{\"version\": 1, \"launches\": [{\"entry\": \"\"}]}",
        "{\"version\": 1, \"launches\": [{\"block\": [1024, 2, 1]}]}",
        "{\"version\": 1, \"launches\": [{\"block\": [0, 1, 1]}]}",
        "{\"version\": 1, \"launches\": [{\"block\": [1, 1]}]}",
        "{\"version\": 1, \"launches\": [{\"block\": [1.5, 1, 1]}]}",
        "{\"version\": 1, \"launches\": [{\"cluster\": [3, 1, 1]}]}",
        "{\"version\": 1, \"launches\": [{\"smem\": 232449}]}",
        "{\"version\": 1, \"launches\": [{\"smem\": \"unknown * 2\"}]}",
        "{\"version\": 1, \"launches\": [{\"args\": [{\"arg\": 8}]}]}",
        "{\"version\": 1, \"launches\": [{\"args\": [{\"arg\": -1}]}]}",
        "{\"version\": 1, \"launches\": [{\"args\": [{\"tensormap\": 0}]}]}",
        "{\"version\": 1, \"launches\": [{\"args\": [{\"tensor\": \"alpha\"}]}]}",
        "{\"version\": 1, \"launches\": [{\"args\": [{\"buffer\": \"none\"}]}]}",
        "{\"version\": 1, \"launches\": [{\"args\": [{\"i32\": 4294967296}]}]}",
        "{\"version\": 1, \"launches\": [{\"args\": [17]}]}",
        "{\"version\": 1, \"buffers\": [{\"bytes\": 4}]}",
        "{\"version\": 1, \"buffers\": [{\"name\": \"own\", \"bytes\": 4}]}",
        "{\"version\": 1, \"buffers\": [{\"name\": \"x\", \"bytes\": 0}]}",
        "{\"version\": 1, \"buffers\": [{\"name\": \"x\", \"bytes\": 1073741824}]}",
    };
    const kl_plan whole = *plan;
    for (size_t i = 0; i < KL_COUNT(BAD); i++) {
        *plan = whole;
        if (complete(BAD[i]) != KL_EINVAL) fail_msg("taken: %s", BAD[i]);
        assert_contains(e.message, "its compiler decided");
    }
}

static void test_plan_complete__no_more_arguments_than_a_launch_has(void **state) {
    (void)state;
    kl_buf b = {0};
    for (int n = KL_MAX_ARGS; n <= KL_MAX_ARGS + 1; n++) {
        b.len = 0;
        kl_buf_add(&b, KL_S("{\"version\": 1, \"launches\": [{\"args\": ["));
        for (int i = 0; i < n; i++) kl_buf_printf(&b, "%s{\"arg\": 0}", i ? ", " : "");
        kl_buf_add(&b, KL_S("]}]}"));
        assert_err(n > KL_MAX_ARGS ? KL_EINVAL : KL_OK, complete(b.ptr));
    }
    kl_buf_fini(&b);
}

/* Launches that say nothing of their arguments have those of the one that they come of, and all of
 * them share one room. */
static void test_plan_complete__all_launches_share_the_room_for_arguments(void **state) {
    (void)state;
    const int full = KL_MAX_PLAN_ARGS / KL_MAX_ARGS; /* launches with the most arguments */
    const kl_plan whole = *plan;
    for (int n = full; n <= full + 1; n++) {
        kl_buf b = {0};
        kl_buf_add(&b, KL_S("{\"version\": 1, \"launches\": [{}, {\"args\": []}"));
        for (int l = 0; l < n; l++) {
            kl_buf_add(&b, KL_S(", {\"args\": ["));
            for (int i = 0; i < KL_MAX_ARGS - 2; i++)
                kl_buf_printf(&b, "%s{\"i32\": %d}", i ? ", " : "", l);
            kl_buf_add(&b, KL_S("]}"));
        }
        kl_buf_add(&b, KL_S("]}"));
        *plan = whole;
        assert_err(n > full ? KL_EINVAL : KL_OK, complete(b.ptr));
        kl_buf_fini(&b);
        if (n > full) continue;
        assert_int_equal(plan->n_args, 8 + full * (KL_MAX_ARGS - 2));
        assert_memory_equal(plan->args, whole.args, 8 * sizeof *plan->args);
        for (int l = 0; l < n; l++)
            assert_int_equal(kli_launch_args(plan, &plan->launches[2 + l])[KL_MAX_ARGS - 3].i, l);
    }
    assert_contains(e.message, "more than 7168 arguments of all launches");
}

/* What a plan no longer has is not compared, nor written. */
static void test_plan_complete__fewer_arguments_leave_nothing_behind(void **state) {
    (void)state;
    static const kl_value nothing[8];
    assert_ok(complete("{\"version\": 1, \"launches\": [{\"args\": [{\"arg\": 0}]}]}"));
    assert_int_equal(plan->n_args, 1);
    assert_memory_equal(plan->args + 1, nothing, 7 * sizeof *nothing);
}

static void test_plan_classes__are_what_a_compiler_specializes_on(void **state) {
    (void)state;
    assert_str(kli_plan_classes(arena, plan), "ptr ptr ptr i32/16 i64/16 f32 float32 i32");
    fixture.workload.axes[0] = 1;
    fixture.workload.axes[1] = 95;
    assert_ok(kli_kernel_plan(plan, kernel, &fixture.task, &fixture.workload, NULL, &e));
    assert_str(kli_plan_classes(arena, plan), "ptr ptr ptr one i64 f32 float32 i32");
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_plan_complete__nothing_changes_without_decisions),
        TEST(test_plan_complete__sizes_and_hidden_memory),
        TEST(test_plan_complete__one_launch_may_become_several),
        TEST(test_plan_complete__descriptors_stay_inside_their_tensor),
        TEST(test_plan_complete__what_does_not_fit_is_refused),
        TEST(test_plan_complete__no_more_arguments_than_a_launch_has),
        TEST(test_plan_complete__all_launches_share_the_room_for_arguments),
        TEST(test_plan_complete__fewer_arguments_leave_nothing_behind),
        TEST(test_plan_classes__are_what_a_compiler_specializes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
