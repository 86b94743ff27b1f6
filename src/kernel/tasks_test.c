/* tasks_test.c - every kernel file of every task in tasks/ parses, and plans for every workload of
 * its host.
 *
 * Baselines are host plugins or scripts, so only naive.* and oracle.* are kernels.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/test.h"

#include "base/fs.h"
#include "kernel/kernel.h"
#include <stdio.h>

/* A large GPU and a small CPU: planning needs numbers, not a device. */
static const kl_device_limits gpu = {
    .sms = 132, .smem_max = 232448, .max_threads = 1024, .memory = 140ll << 30};
static const kl_device_limits cpu = {.cores = 2, .smem_max = 1 << 19, .max_threads = 4096};

static void report(const kl_error *e, const kl_workload *w) {
    kl_buf text = {0};
    kl_error_render(e, &text);
    print_error("workload %.*s: %s", KL_STR_ARG(w ? w->label : KL_S("-")), text.ptr);
    kl_buf_fini(&text);
}

static int plan_workload(kl_plan *plan, const kl_kernel *k, const kl_task *t,
                         const kl_workload *w) {
    kl_error e = {0};
    if (!kl_workload_fits(w, k->surface->on)) return 0;
    if (kli_kernel_plan(plan, k, t, w, k->surface->on == KL_ON_GPU ? &gpu : &cpu, &e) == KL_OK)
        return 0;
    report(&e, w);
    return 1;
}

/* Number of failures; 0 for a file that is absent. */
static int plan_file(kl_arena *a, const kl_task *t, const char *name, bool oracle, int *n_files) {
    kl_error e = {0};
    kl_kernel *k;
    kl_plan *plan = KL_NEW(a, kl_plan);
    kl_kernel_opts o = {.oracle = oracle};
    kl_str path = kli_fs_join(a, t->dir.ptr, name);
    if (!kli_fs_exists(path.ptr)) return 0;
    ++*n_files;
    if (kl_kernel_load(&k, a, path.ptr, &o, &e)) {
        report(&e, NULL);
        return 1;
    }
    int wrong = 0;
    for (int i = 0; i < t->n_workloads; i++) {
        wrong += plan_workload(plan, k, t, &t->workloads[i]);
        assert_non_null(kli_kernel_defines(a, k, t, &t->workloads[i])[0]);
    }
    return wrong;
}

static int plan_task(const char *dir, int *n_files) {
    static const char *const names[] = {"naive.c", "naive.cl", "naive.cu", "oracle.c", "oracle.cu"};
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_task *t;
    int wrong = 0;
    if (kl_task_load(&t, a, dir, &e)) {
        report(&e, NULL);
        wrong++;
    } else {
        for (size_t i = 0; i < KL_COUNT(names); i++)
            wrong += plan_file(a, t, names[i], names[i][0] == 'o', n_files);
    }
    kl_arena_free(a);
    return wrong;
}

static void test_kernel_tasks__every_kernel_of_every_task_plans(void **state) {
    (void)state;
    const char *root = KL_TEST_ROOT "/tasks";
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str *names;
    size_t n;
    int wrong = 0, n_files = 0;
    assert_ok(kli_fs_list(&names, &n, a, root, &e));
    for (size_t i = 0; i < n; i++) {
        kl_str dir = kli_fs_join(a, root, names[i].ptr);
        if (kli_fs_exists(kli_fs_join(a, dir.ptr, "definition.json").ptr))
            wrong += plan_task(dir.ptr, &n_files);
    }
    kl_arena_free(a);
    assert_int_equal(wrong, 0);
    assert_true(n_files > 0);
    print_message("%d kernel files\n", n_files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_tasks__every_kernel_of_every_task_plans)};
    return cmocka_run_group_tests_name("kernel_tasks", tests, NULL, NULL);
}
