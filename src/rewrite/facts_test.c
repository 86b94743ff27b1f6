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
    assert_non_null(s);
    assert_ok(kl_task_load(
        &t, arena, kl_arena_printf(arena, "%s/tasks/%.*s", KL_TEST_ROOT, KL_STR_ARG(name)).ptr,
        &e));
    assert_ok(kl_kernel_parse(&k, arena, c->input, kl_arena_printf(arena, "a%s", s->suffix), s,
                              NULL, &e));
    const kl_facts *f = kl_facts_of(arena, k, t, kl_task_workload(t, KL_S(""), s->on), NULL);
    print_facts(out, c, f);
}

static void test_rewrite_facts__every_case_gives_what_it_says(void **state) {
    (void)state;
    kit_run_cases(KL_TEST_ROOT "/tests/cases/facts", 8, run_facts);
}

/* What stands between two texts, so often. */
static void facts_of_many(const char *before, const char *often, int n, const char *after) {
    kl_buf text = {0};
    kl_kernel *k;
    kl_task *t;
    kl_buf_printf(&text,
                  "//! launch gemm args(x, weight, y, M, N, K)\nvoid gemm(float *x, float "
                  "*weight, float *y, int M, int N, int K) { int a = M; %s",
                  before);
    for (int i = 0; i < n; i++) kl_buf_add(&text, kl_str_of(often));
    kl_buf_printf(&text, "%s }", after);
    assert_ok(kl_task_load(&t, arena, KL_TEST_ROOT "/tasks/gemm", &e));
    assert_ok(kl_kernel_parse(&k, arena, kl_buf_str(&text), KL_S("a.c"),
                              kl_surface_by_name(KL_S("c")), NULL, &e));
    const kl_facts *f = kl_facts_of(arena, k, t, NULL, NULL);
    assert_true(f->at[KL_FACT_OP_CONTRACTION].number == 1);
    kl_buf_fini(&text);
}

/* A header that does not close, loops in loops, brackets in brackets, names that lead to names
 * twice each, loops side by side. */
static void test_rewrite_facts__hostile_sources_end(void **state) {
    (void)state;
    facts_of_many("for (int i = 0; i < M; ", "x[", 1, "");
    facts_of_many("", "for (int i = 0; i < M; i++) {", 3000, "x[i] = 0;");
    facts_of_many("int b = ", "(", 20000, "M; for (int i = 0; i < b; i++) x[b * i] = 0;");
    facts_of_many("", "int a = a + a;", 400, "for (int i = 0; i < a; i++) x[a * i] += y[a] * a;");
    facts_of_many("for (int i = 0; i < M; i++) {", "x[i * K] = y[i] * weight[i];", 5000, "}");
    facts_of_many("for (int i = 0; i < M; i++) {",
                  "for (int j = 0; j < N; j++) y[j] += x[j] * weight[j * K];", 1500, "}");
}

static int facts_arena(void **state) {
    (void)state;
    arena = kl_arena_new();
    return 0;
}

static int facts_arena_free(void **state) {
    (void)state;
    kl_arena_free(arena);
    return 0;
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
        cmocka_unit_test_setup_teardown(test_rewrite_facts__hostile_sources_end, facts_arena,
                                        facts_arena_free),
        cmocka_unit_test(test_rewrite_facts__names_are_unique)};
    return cmocka_run_group_tests_name("rewrite_facts", tests, NULL, NULL);
}
