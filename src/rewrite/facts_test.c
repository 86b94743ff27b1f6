/* facts_test.c - runs tests/cases/facts: what is told of a kernel of a task.
 *
 *   task: gemm       surface: c       facts: op.contraction tile.sums
 *   loops: axis far innermost         memories: name role
 *   --- kernel       its text
 *
 * Printed are the facts by name, then a line for each loop and each memory, with what was asked for
 * and is neither unknown, false nor zero.  SPDX-License-Identifier: Apache-2.0 */
#include "rewrite_impl.h"
#include "kit/case.h"

static void print_fact(kl_buf *out, kl_fact_kind kind, kl_str name, const kl_fact *f) {
    kl_buf_printf(out, " %.*s", KL_STR_ARG(name));
    if (!f->known)
        kl_buf_printf(out, "=?");
    else if (kind == KL_FACT_TEXT)
        kl_buf_printf(out, "=%.*s", KL_STR_ARG(f->text));
    else if (kind == KL_FACT_NUMBER)
        kl_buf_printf(out, "=%.4g", f->number);
    else if (!f->number)
        kl_buf_printf(out, "=no");
}

static void print_part(kl_buf *out, kl_fact_scope scope, kl_str names, const kl_fact *at) {
    kl_buf_printf(out, "line %d:", at[0].line);
    for (kl_str w; (w = kit_word(&names)).len;) {
        const int i = kl_fact_find(scope, w);
        assert_true(i >= 0);
        const kl_fact_kind kind = kl_fact_each(scope, i)->kind;
        if (at[i].known && (kind == KL_FACT_TEXT || at[i].number)) print_fact(out, kind, w, &at[i]);
    }
    kl_buf_add(out, KL_S("\n"));
}

static void print_facts(kl_buf *out, const kit_case *c, const kl_facts *f) {
    kl_str names = kit_value(c, "facts", "");
    const kl_str loops = kit_value(c, "loops", ""), memories = kit_value(c, "memories", "");
    for (kl_str w; (w = kit_word(&names)).len;) {
        const kl_fact fact = kl_fact_of(f, w);
        const int i = kl_fact_find(KL_FACT_OF_STATE, w);
        print_fact(out, i < 0 ? KL_FACT_NUMBER : kl_fact_each(KL_FACT_OF_STATE, i)->kind, w, &fact);
        kl_buf_add(out, KL_S("\n"));
    }
    for (int i = 0; loops.len && i < f->n_loops; i++)
        print_part(out, KL_FACT_OF_LOOP, loops, f->loops[i].at);
    for (int i = 0; memories.len && i < f->n_buffers; i++)
        print_part(out, KL_FACT_OF_BUFFER, memories, f->buffers[i].at);
}

static void run_facts(kl_buf *out, const kit_case *c) {
    const kl_str name = kit_value(c, "task", "gemm");
    const kl_surface *s = kl_surface_by_name(kit_value(c, "surface", "c"));
    kl_kernel *k;
    kl_task *t;
    kl_facts f;
    assert_non_null(s);
    assert_ok(kl_task_load(
        &t, arena, kl_arena_printf(arena, "%s/tasks/%.*s", KL_TEST_ROOT, KL_STR_ARG(name)).ptr,
        &e));
    assert_ok(kl_kernel_parse(&k, arena, c->input, kl_arena_printf(arena, "a%s", s->suffix), s,
                              NULL, &e));
    kl_facts_of(&f, arena, k, t, kl_task_workload(t, KL_S(""), s->on), NULL);
    print_facts(out, c, &f);
}

static void test_rewrite_facts__every_case_gives_what_it_says(void **state) {
    (void)state;
    kit_run_cases(KL_TEST_ROOT "/tests/cases/facts", 8, run_facts);
}

/* Each fact is found by its name, and by no other. */
static void test_rewrite_facts__names_are_unique(void **state) {
    (void)state;
    for (int s = 0; s < KL_FACT_SCOPES; s++)
        for (int i = 0; kl_fact_each((kl_fact_scope)s, i); i++)
            assert_int_equal(
                kl_fact_find((kl_fact_scope)s, kl_str_of(kl_fact_each((kl_fact_scope)s, i)->name)),
                i);
    assert_int_equal(kl_fact_find(KL_FACT_OF_STATE, KL_S("no.fact")), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rewrite_facts__every_case_gives_what_it_says),
        cmocka_unit_test(test_rewrite_facts__names_are_unique)};
    return cmocka_run_group_tests_name("rewrite_facts", tests, NULL, NULL);
}
