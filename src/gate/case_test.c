/* case_test.c - runs every tests/cases/gate/NAME.case: a kernel, and the verdict that it must get
 * before it is timed.
 *
 *   task: gemm                      default gemm
 *   workload: M=9,N=8,K=7           default: the first real shape that the task has for a CPU
 *   show: why features              what to print beside outcome and stage
 *   --- kernel
 *   ...
 *   --- expect
 *   wrong at tiny
 *
 * The seed is fixed.  Words that hold numbers of this machine are not shown.
 * SPDX-License-Identifier: Apache-2.0 */
#include <klineage/gate.h>

#include "kernel/kernel.h"
#include "base/fs.h"
#include "kit/case.h"

static kl_gate *gate;

static int open_gate(void **state) {
    (void)state;
    return kl_gate_open(&gate, kl_ignored()) ? -1 : 0;
}

static int close_gate(void **state) {
    (void)state;
    kl_gate_close(gate);
    return 0;
}

static void print_verdict(kl_buf *out, const kl_verdict *v, kl_str show) {
    kl_buf_printf(out, "%s at %s\n", kl_outcome_name(v->outcome), kl_stage_name(v->stage));
    for (kl_str word; (word = kit_word(&show)).len;) {
        if (kl_str_eq(word, KL_S("why"))) kl_buf_printf(out, "%.*s\n", KL_STR_ARG(v->why));
        if (kl_str_eq(word, KL_S("detail")))
            kl_buf_printf(out, "%.*s\n", KL_STR_ARG(kl_str_trim(v->detail)));
        if (kl_str_eq(word, KL_S("checks"))) kl_buf_printf(out, "%d checks\n", v->n_checks);
    }
}

static void run_case(kl_buf *out, const kit_case *c) {
    const char *task = kl_arena_copy(arena, kit_value(c, "task", "gemm")).ptr;
    const char *workload = kl_arena_copy(arena, kit_value(c, "workload", "M=9,N=8,K=7")).ptr;
    const kl_gate_opts opts = {
        .workload = workload, .baseline = "none", .check_only = true, .seed = 1};
    kl_task *t;
    kl_kernel *k;
    kl_verdict v;
    assert_ok(kl_task_load(&t, arena, kli_fs_join(arena, KL_TEST_ROOT "/tasks", task).ptr, &e));
    if (kl_kernel_parse(&k, arena, c->input, KL_S("k.c"), NULL, NULL, &e))
        kl_verdict_refused(&v, arena, t, "k.c", &e);
    else
        assert_ok(kl_gate_run(&v, gate, arena, t, k, &opts, &e));
    print_verdict(out, &v, kit_value(c, "show", ""));
}

static void test_gate_case__every_case_gets_its_verdict(void **state) {
    (void)state;
    kit_run_cases(KL_TEST_ROOT "/tests/cases/gate", 12, run_case);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate_case__every_case_gets_its_verdict)};
    return cmocka_run_group_tests_name("gate_case", tests, open_gate, close_gate);
}
