/* inputs_test.c - which input sets are drawn where, and what a runner is told of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/draw.h"
#include "base/test.h"
#include "gate_impl.h"
#include <string.h>

enum { X, Z, M, Y, TENSORS, SETS = 4, ELEMS = 300 };

/* x (normal) and z (a sigmoid) are read, m (normal) is updated in place, y is written. */
typedef struct {
    kl_task task;
    kl_workload workload;
    kl_gate_opts opts;
    kli_evaluation c;
    kli_problem s;
    kl_layout layout;
} world;

static kli_draw_request asked; /* of a runner */
static int draws, uploads;
static bool has_kernel;

__typeof__(kli_runner_draw) __wrap_kli_runner_draw;
kl_err __wrap_kli_runner_draw(kl_runner *r, kl_fault *fault, const kli_draw_request *q, bool *drawn,
                              kl_error *e) {
    (void)r, (void)fault, (void)e;
    asked = *q;
    draws++;
    *drawn = has_kernel;
    return KL_OK;
}

__typeof__(kli_runner_upload) __wrap_kli_runner_upload;
kl_err __wrap_kli_runner_upload(kl_runner *r, kl_fault *fault, uint32_t first, uint32_t n,
                                kl_error *e) {
    (void)r, (void)fault, (void)first, (void)n, (void)e;
    uploads++;
    return KL_OK;
}

static void add_tensor(world *w, int i, const char *name, uint32_t role, kl_dist_kind kind) {
    kl_plan_tensor *t = &w->s.plan.tensors[i];
    *t = (kl_plan_tensor){
        .dtype = KL_F32, .role = role, .ndim = 1, .dims = {ELEMS}, .bytes = 4 * ELEMS};
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    w->task.tensors[i] =
        (kl_tensor){.name = kl_str_of(t->name), .dtype = KL_F32, .ndim = 1, .dims = {KL_S("300")}};
    w->workload.dtypes[i] = KL_F32;
    w->workload.dists[i] = (kl_dist){.kind = kind, .scale = 1, .active = 1};
}

static void open_world(world *w, kl_backend_id backend) {
    kl_error e = {0};
    *w = (world){.task = {.n_inputs = Y, .n_tensors = TENSORS}, .opts = {.threads = 1}};
    w->c = (kli_evaluation){
        .task = &w->task, .opts = &w->opts, .backend = kli_backend_get(backend), .schedule = {77}};
    w->s = (kli_problem){
        .id = 5, .task = &w->task, .workload = &w->workload, .n_sets = SETS, .scale = 1};
    w->s.plan.n_tensors = TENSORS;
    add_tensor(w, X, "x", KL_ROLE_INPUT, KL_DIST_NORMAL);
    add_tensor(w, Z, "z", KL_ROLE_INPUT, KL_DIST_SIGMOID);
    add_tensor(w, M, "m", KL_ROLE_MUTABLE, KL_DIST_NORMAL);
    add_tensor(w, Y, "y", KL_ROLE_OUTPUT, KL_DIST_NORMAL);
    assert_ok(kli_layout_make(&w->layout, &w->s.plan, SETS, 1, &e));
    assert_ok(kli_memory_open(&w->s.memory, &w->layout, &e));
    kli_inputs_plan(&w->s, &w->c);
    for (uint32_t set = 0; set < SETS; set++) {
        w->s.seeds[set] = 100 + set;
        assert_ok(kli_inputs_begin(&w->s, &w->c, set, &e));
    }
    draws = uploads = 0;
    has_kernel = true;
}

static void close_world(world *w) {
    for (uint32_t set = 0; set < SETS; set++) free(w->s.pristine[set][M]);
    kli_memory_close(&w->s.memory);
}

static bool is_here(world *w, int tensor, uint32_t set) {
    float want[ELEMS];
    kl_error e = {0};
    const void *got = kli_memory_input(&w->s.memory, &w->s.plan, (uint32_t)tensor, set);
    assert_ok(kl_task_fill(want, &w->task, &w->workload, tensor, 100 + set, 1, 1, &e));
    return memcmp(got, want, sizeof want) == 0;
}

static void send(world *w, kli_executable *a, uint32_t first, uint32_t n) {
    kl_error e = {0};
    kl_fault fault = {0};
    assert_ok(kli_inputs_send(&w->s, &w->c, a, first, n, &fault, &e));
}

static void test_inputs__a_device_draws_what_it_can(void **state) {
    static world w;
    kli_executable script = {.trusted = true, .artefact.kind = KL_ARTEFACT_SCRIPT};
    (void)state;
    open_world(&w, KL_BACKEND_CUDA);
    assert_true(w.s.is_drawn && w.s.proof < SETS);
    for (uint32_t set = 0; set < SETS; set++) {
        assert_true(!is_here(&w, X, set) && is_here(&w, Z, set) && w.s.pristine[set][M]);
        assert_memory_not_equal(w.s.pristine[set][M], (float[ELEMS]){0}, 4 * ELEMS);
    }
    send(&w, &w.c.candidate, 0, SETS);
    send(&w, &script, 0, SETS);
    assert_int_equal(draws, 2);
    assert_int_equal(uploads, 0);
    assert_int_equal(asked.draws[X].kind, KLI_DRAW_NORMAL);
    assert_int_equal(asked.draws[Z].kind, KLI_DRAW_NONE);
    assert_int_equal(asked.draws[M].kind, KLI_DRAW_NONE);
    for (uint32_t set = 0; set < SETS; set++) /* one is here too, and must be the same */
        assert_int_equal(is_here(&w, X, set), set == asked.proof);
    assert_false(asked.in_pages);
    close_world(&w);
}

/* A seed is told with its own set, and no other. */
static void test_inputs__seeds_of_other_sets_are_not_told(void **state) {
    static world w;
    kl_error e = {0};
    (void)state;
    open_world(&w, KL_BACKEND_CUDA);
    assert_ok(kli_inputs_fill(&w.s, &w.c, 2, &e));
    send(&w, &w.c.candidate, 2, 1);
    for (uint32_t set = 0; set < KL_MAX_SETS; set++)
        assert_true(asked.seeds[set] == (set == 2 ? 102 : 0));
    assert_true(asked.in_pages && asked.first == 2 && asked.n == 1);
    assert_int_equal(asked.proof, w.s.proof == 2 ? 2 : KLI_NO_PROOF);
    close_world(&w);
}

/* A script loads the kernel by other means than compiled code, and is asked for a proof of its own.
 */
static void test_inputs__each_problem_has_a_proof_of_the_candidate_and_of_scripts(void **state) {
    static world w;
    kli_executable baseline = {.trusted = true, .artefact.kind = KL_ARTEFACT_PLUGIN},
                   script = {.trusted = true, .artefact.kind = KL_ARTEFACT_SCRIPT};
    bool seen[SETS] = {false};
    (void)state;
    for (uint64_t id = 1; id < 64; id++) {
        open_world(&w, KL_BACKEND_CUDA);
        w.s.id = id;
        kli_inputs_plan(&w.s, &w.c);
        seen[w.s.proof] = true;
        send(&w, &baseline, 0, SETS);
        assert_int_equal(asked.proof, KLI_NO_PROOF);
        send(&w, &script, 0, SETS);
        assert_int_equal(asked.proof, w.s.proof);
        for (uint32_t set = 0; set < SETS; set++) {
            send(&w, &w.c.candidate, set, 1);
            assert_int_equal(asked.proof, set == w.s.proof ? set : KLI_NO_PROOF);
        }
        close_world(&w);
    }
    for (int set = 0; set < SETS; set++) assert_true(seen[set]);
}

static void test_inputs__a_runner_without_the_kernel_gets_the_hosts_bytes(void **state) {
    static world w;
    (void)state;
    open_world(&w, KL_BACKEND_CUDA);
    has_kernel = false;
    send(&w, &w.c.candidate, 1, 2);
    assert_int_equal(uploads, 1);
    assert_true(is_here(&w, X, 1) && is_here(&w, X, 2));
    assert_true(w.s.proof == 3 || !is_here(&w, X, 3));
    close_world(&w);
}

static void test_inputs__shared_pages_are_drawn_here(void **state) {
    static world w;
    (void)state;
    open_world(&w, KL_BACKEND_CPU);
    for (uint32_t set = 0; set < SETS; set++)
        assert_true(is_here(&w, X, set) && is_here(&w, Z, set));
    send(&w, &w.c.candidate, 0, SETS);
    assert_int_equal(draws, 0);
    assert_int_equal(uploads, 1);
    close_world(&w);
}

/* The reference is measured on other draws in a set's place, which comes back. */
static void test_inputs__a_set_begins_again_with_another_seed(void **state) {
    static world w;
    kl_error e = {0};
    (void)state;
    open_world(&w, KL_BACKEND_CUDA);
    assert_ok(kli_inputs_fill(&w.s, &w.c, 1, &e));
    assert_true(is_here(&w, X, 1));
    w.s.seeds[1] = 7;
    assert_ok(kli_inputs_begin(&w.s, &w.c, 1, &e));
    assert_false(w.s.in_pages[1]);
    assert_ok(kli_inputs_fill(&w.s, &w.c, 1, &e));
    assert_true(!is_here(&w, X, 1) && !is_here(&w, Z, 1));
    w.s.seeds[1] = 101;
    assert_ok(kli_inputs_begin(&w.s, &w.c, 1, &e));
    assert_ok(kli_inputs_fill(&w.s, &w.c, 1, &e));
    assert_true(is_here(&w, X, 1) && is_here(&w, Z, 1));
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs__a_device_draws_what_it_can),
        cmocka_unit_test(test_inputs__seeds_of_other_sets_are_not_told),
        cmocka_unit_test(test_inputs__each_problem_has_a_proof_of_the_candidate_and_of_scripts),
        cmocka_unit_test(test_inputs__a_runner_without_the_kernel_gets_the_hosts_bytes),
        cmocka_unit_test(test_inputs__shared_pages_are_drawn_here),
        cmocka_unit_test(test_inputs__a_set_begins_again_with_another_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
