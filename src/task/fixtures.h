/* fixtures.h - tasks out of text, for the tests of this folder.  Only tests include it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_TASK_FIXTURES_H
#define KL_TASK_FIXTURES_H
#include "base/test.h"
#include "task_impl.h"

/* One test's arena, error and last parsed task. */
typedef struct {
    kl_arena *arena;
    kl_error error;
    kl_task *task;
} fixture;

static inline int fixture_setup(void **state) {
    static fixture f;
    f = (fixture){.arena = kl_arena_new()};
    *state = &f;
    return 0;
}

static inline int fixture_teardown(void **state) {
    kl_arena_free(((fixture *)*state)->arena);
    return 0;
}

static inline kl_err parse_definition(fixture *f, const char *text) {
    f->task = KL_NEW(f->arena, kl_task);
    f->error = (kl_error){0};
    return kli_definition_parse(f->task, f->arena, kl_str_of(text), KL_S("definition.json"),
                                &f->error);
}

static inline kl_err parse_workloads(fixture *f, const char *text) {
    f->task->n_workloads = 0;
    f->error = (kl_error){0};
    return kli_workloads_parse(f->task, f->arena, kl_str_of(text), KL_S("workloads.jsonl"),
                               &f->error);
}

/* Axes M, N, K = 64; x[M, K] and s (a scalar) in; y[M, N] out; `extra` are further members, with a
 * comma in front. */
static inline const char *definition_with(fixture *f, const char *axes, const char *inputs,
                                          const char *outputs, const char *extra) {
    return kl_arena_printf(
               f->arena, "{\"name\": \"t\", \"axes\": {%s}, \"inputs\": {%s}, \"outputs\": {%s}%s}",
               axes, inputs, outputs, extra)
        .ptr;
}

#define AXES                                                                                       \
    "\"M\": {\"type\": \"var\"}, \"N\": {\"type\": \"var\"}, \"K\": {\"type\": \"const\", "        \
    "\"value\": 64}"
#define INPUTS                                                                                     \
    "\"x\": {\"shape\": [\"M\", \"K\"], \"dtype\": \"float32\"}, \"s\": {\"shape\": null, "        \
    "\"dtype\": \"float32\"}"
#define OUTPUTS "\"y\": {\"shape\": [\"M\", \"N\"], \"dtype\": \"bfloat16\"}"
#define WORKLOAD "{\"uuid\": \"u1\", \"axes\": {\"M\": 3, \"N\": 5}}"

#define test_of(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)
/* The kl_error that assert_ok and assert_err print. */
#define e (f->error)

#endif
