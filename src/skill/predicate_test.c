/* predicate_test.c - runs tests/cases/predicate: questions about a kernel of a task.
 *
 *   task: gemm       surface: c       platform: x86-64-v4/gcc-12 (may be left out)
 *   ask: PREDICATE   as often as needed
 *   --- kernel       its text
 *
 * Printed is each answer with its reason.  SPDX-License-Identifier: Apache-2.0 */
#include "predicate.h"
#include "kit/case.h"
#include <stdlib.h>

static void read_target(kl_target *out, kl_facts *f, const kit_case *c) {
    const kl_surface *s = kl_surface_by_name(kit_value(c, "surface", "c"));
    const kl_str name = kit_value(c, "task", "gemm");
    const char *folder =
        kl_arena_printf(arena, "%s/tasks/%.*s", KL_TEST_ROOT, KL_STR_ARG(name)).ptr;
    kl_kernel *k;
    kl_task *t;
    assert_non_null(s);
    assert_ok(kl_task_load(&t, arena, folder, &e));
    assert_ok(kl_kernel_parse(&k, arena, c->input, kl_arena_printf(arena, "a%s", s->suffix), s,
                              NULL, &e));
    const kl_workload *w = kl_task_workload(t, KL_S(""), s->on);
    assert_non_null(w);
    *f = *kl_facts_of(arena, k, t, w, NULL);
    *out = (kl_target){.case_name = t->case_name,
                       .surface = kl_str_of(s->name),
                       .platform = kit_value(c, "platform", ""),
                       .dtype = kl_str_of(kl_dtype_name(w->dtypes[0])),
                       .traits = &f->traits,
                       .facts = f};
}

static void run_predicate(kl_buf *out, const kit_case *c) {
    static const char *const WORDS[] = {"holds", "unknown", "refused"};
    kl_facts *f = KL_NEW(arena, kl_facts);
    kl_target target;
    read_target(&target, f, c);
    const kli_question q = {.target = &target, .facts = f};
    for (int i = 0; i < c->n_keys; i++) {
        kli_answer answer;
        kl_error why = {0};
        if (!kl_str_eq(c->keys[i], KL_S("ask"))) continue;
        kl_buf_printf(out, "%.*s\n  ", KL_STR_ARG(c->values[i]));
        if (kli_predicate_ask(&answer, arena, c->values[i], &q, &why))
            kl_buf_printf(out, "cannot be asked: %s\n", why.message);
        else
            kl_buf_printf(out, "%s: %.*s\n", WORDS[answer.fit], KL_STR_ARG(answer.why));
    }
}

static void test_skill_predicate__every_case_gives_what_it_says(void **state) {
    (void)state;
    kit_run_cases(KL_TEST_ROOT "/tests/cases/predicate", 5, run_predicate);
}

/* ---- contracts --------------------------------------------------------------------------- */

static kl_card card_with(const char *requires_text, const char *provides_text) {
    kl_card c = {.name = KL_S("a"), .status = KL_CARD_ADMITTED};
    kl_trial_record birth = {.kind = KL_S("birth"),
                             .start_hash = KL_S("before"),
                             .result_hash = KL_S("after"),
                             .accepted = true};
    *KL_PUSH(arena, c.needs, c.n_needs) = kl_str_of(requires_text);
    *KL_PUSH(arena, c.brings, c.n_brings) = kl_str_of(provides_text);
    kli_names_add(&c.verified.cases, arena, KL_S("gemm"));
    kli_names_add(&c.verified.surfaces, arena, KL_S("c"));
    kli_card_add_trial(&c, arena, &birth);
    return c;
}

static kl_pool_state state_with(const char *hash, const char *case_name, double loops) {
    kl_facts *f = KL_NEW(arena, kl_facts);
    f->traits.at[f->traits.n++] = (kl_feature){KL_S("source.loops"), loops};
    return (kl_pool_state){.hash = kl_str_of(hash),
                           .name = kl_str_of(hash),
                           .target = {.case_name = kl_str_of(case_name),
                                      .surface = KL_S("c"),
                                      .traits = &f->traits,
                                      .facts = f}};
}

static kl_pool_state state_of(const kl_lineage *l, int i) {
    const kl_surface *s = kl_surface_by_name(l->surface);
    kl_facts *f = KL_NEW(arena, kl_facts);
    kl_kernel *k;
    kl_task *t;
    assert_ok(kl_kernel_parse(&k, arena, l->states[i].source, l->states[i].name, s, NULL, &e));
    assert_ok(kl_task_load(&t, arena, KL_TEST_ROOT "/tasks/topk", &e));
    *f = *kl_facts_of(arena, k, t, kl_task_workload(t, KL_S(""), s->on), NULL);
    return (kl_pool_state){
        .hash = l->states[i].hash,
        .name = l->states[i].name,
        .target = {
            .case_name = t->case_name, .surface = l->surface, .traits = &f->traits, .facts = f}};
}

/* It holds before, not after, and not on most of what is foreign; else the first state that tells
 * against it is named. */
static void test_skill_contract__is_held_against_states(void **state) {
    (void)state;
    kl_contract_proof p;
    kl_pool_state pool[] = {state_with("before", "gemm", 3), state_with("after", "gemm", 5),
                            state_with("foreign", "topk", 9)};
    kl_card c = card_with("source.loops >= 2", "source.loops >= 5");
    kl_contract_prove(&p, arena, &c, pool, 3);
    assert_true(p.good && p.starts_met == 1 && p.results_refused == 1 && p.foreign_refused == 1);
    c = card_with("source.loops >= 4", "source.loops >= 5");
    kl_contract_prove(&p, arena, &c, pool, 3);
    assert_false(p.good);
    assert_contains(p.why.ptr, "does not hold on its start before");
    assert_contains(p.why.ptr, "source.loops is 3");
    c = card_with("source.loops >= 2", "source.loops >= 6");
    kl_contract_prove(&p, arena, &c, pool, 3);
    assert_contains(p.why.ptr, "holds on its own result after");
    c = card_with("source.loops >= 2", "source.loops == 5");
    kl_contract_prove(&p, arena, &c, pool, 3);
    assert_contains(p.why.ptr, "refuses 0 of 1 foreign states");
    pool[2].alone = true;
    kl_contract_prove(&p, arena, &c, pool, 3);
    assert_true(p.good && p.foreign == 0);
    pool[2].target.surface = KL_S("opencl");
    kl_contract_prove(&p, arena, &c, pool, 3);
    assert_true(p.good && p.foreign == 1 && p.foreign_refused == 1);
}

static kl_start start_of(const kl_task *t, const char *name, const char *source) {
    const kl_surface *s = kl_surface_by_name(KL_S("c"));
    return (kl_start){.task = t,
                      .workload = kl_task_workload(t, KL_S(""), s->on),
                      .name = kl_str_of(name),
                      .source = kl_str_of(source),
                      .surface = s};
}

/* What cannot be parsed is named; of states with the same facts one counts; a contract that holds
 * everywhere is turned away. */
static void test_skill_contract__pool_leaves_out_what_does_not_parse(void **state) {
    (void)state;
    kl_task *t;
    kl_pool_state *pool;
    kl_str left_out;
    kl_contract_proof p;
    assert_ok(kl_task_load(&t, arena, KL_TEST_ROOT "/tasks/topk", &e));
    static const char PLAIN[] = "//! launch topk args(x)\nvoid topk(float *x) { x[0] = 1; }\n",
                      TWIN[] = "//! launch topk args(x)\n\nvoid topk(float *x) { x[0] = 1; }\n",
                      OTHER[] =
                          "//! launch topk args(x)\nvoid topk(float *x) { for (int i = 0; i < "
                          "9; i++) x[i] = 1; }\n";
    const kl_start starts[] = {start_of(t, "plain", PLAIN), start_of(t, "torn", "//! launch topk("),
                               start_of(t, "twin", TWIN), start_of(t, "other", OTHER)};
    assert_int_equal(kl_contract_pool(&pool, &left_out, arena, starts, 4), 3);
    assert_contains(left_out.ptr, "left out of the pool: torn: ");
    assert_true(!pool[0].twin && pool[1].twin && !pool[2].twin);
    kl_card c = card_with("op.selection", "source.loops >= 1");
    kl_contract_prove(&p, arena, &c, pool, 3);
    assert_int_equal(p.foreign, 2);
    assert_int_equal(kl_contract_check(&c, arena, starts, 4, &e), KL_EINVAL);
    assert_contains(e.message, "its contract refuses 1 of 2 foreign states");
    c = card_with("op.contraction", "source.loops >= 1");
    assert_ok(kl_contract_check(&c, arena, starts, 4, &e));
}

/* Borderline cells and kernels that are not in the pool count for nothing. */
static void test_skill_labels__are_compared_with_what_is_offered(void **state) {
    (void)state;
    kl_label_score s;
    const kl_pool_state pool[] = {state_with("one", "gemm", 3), state_with("two", "gemm", 5),
                                  state_with("three", "gemm", 1)};
    kl_card cards[] = {card_with("source.loops >= 2", "source.loops >= 9"),
                       card_with("source.loops >= 4", "source.loops >= 9")};
    cards[1].name = KL_S("b");
    const char *file = kit_write("labels.tsv", "one\ta b\t\ntwo\tb\ta\nthree\t\t\nnobody\ta b\t\n");
    const kl_library l = {
        .dir = kl_arena_copy(arena, kl_str_of(kit_folder())), .cards = cards, .n_cards = 2};
    assert_non_null(file);
    assert_ok(kl_labels_score(&s, arena, &l, pool, 3, &e));
    assert_true(s.kernels == 3 && s.offered == 2 && s.applicable == 3 && s.hits == 2);
    const kl_library none = {.dir = KL_S("/nowhere")};
    assert_ok(kl_labels_score(&s, arena, &none, pool, 3, &e));
    assert_int_equal(s.kernels, 0);
}

/* A clause that cannot be asked is named and left out; the others decide. */
static void test_skill_contract__leaves_out_what_cannot_be_asked(void **state) {
    (void)state;
    kl_str why = {0};
    kl_card c = card_with("source.loops >= 2", "no.fact");
    const kl_pool_state s = state_with("before", "gemm", 3);
    assert_int_equal(kli_card_fits(&c, &s.target, arena, &why), KL_FIT_MET);
    assert_contains(kl_card_faults(arena, &c).ptr, "no.fact: no fact is called so");
    *KL_PUSH(arena, c.needs, c.n_needs) = KL_S("stage.mma == none");
    assert_int_equal(kli_card_fits(&c, &s.target, arena, &why), KL_FIT_MET);
    assert_contains(
        kl_card_faults(arena, &c).ptr,
        "stage.mma == none: a fact that the card's surface does not give: at \"stage.mma");
    kl_target unread = s.target;
    unread.facts = NULL;
    assert_int_equal(kli_card_fits(&c, &unread, arena, &why), KL_FIT_UNKNOWN);
}

static void test_skill_contract__cards_that_wait_for_each_other_are_named(void **state) {
    (void)state;
    kl_card cards[] = {card_with("source.loops >= 2", "source.loops >= 3"),
                       card_with("source.loops >= 3", "source.loops >= 2"),
                       card_with("source.loops >= 3", "source.loops >= 4")};
    cards[1].name = KL_S("b");
    cards[2].name = KL_S("c");
    assert_contains(kl_library_cycle(arena, &(kl_library){.cards = cards, .n_cards = 2}).ptr,
                    "a b");
    cards[0].needs[0] = KL_S("source.loops >= 1");
    assert_int_equal(kl_library_cycle(arena, &(kl_library){.cards = cards, .n_cards = 3}).len, 0);
}

/* What is read off the births of a lineage holds before each and is refused after it. */
static void test_skill_births__a_contract_tells_before_from_after(void **state) {
    (void)state;
    kl_lineage l;
    kl_group *groups;
    int n, told = 0;
    setenv("KLINEAGE_TASKS", KL_TEST_ROOT "/tasks", 1);
    assert_ok(kl_lineage_load(&l, arena, NULL, KL_TEST_ROOT "/library/lineages/topk-c.json", &e));
    kl_skill_group(&groups, &n, arena, &l, 1);
    for (int i = 0; i < n; i++) {
        kl_card c = {.name = groups[i].name};
        kl_contract_proof p;
        const kl_edge *edge = &l.edges[groups[i].births[0].edge];
        kli_contract_of_births(&c, arena, &groups[i]);
        if (!kl_card_has_contract(&c)) continue;
        kl_trial_record birth = {.kind = KL_S("birth"),
                                 .start_hash = l.states[edge->from].hash,
                                 .result_hash = l.states[edge->to].hash,
                                 .accepted = true};
        kli_names_add(&c.verified.surfaces, arena, l.surface);
        kli_card_add_trial(&c, arena, &birth);
        const kl_pool_state pool[] = {state_of(&l, edge->from), state_of(&l, edge->to)};
        kl_contract_prove(&p, arena, &c, pool, 2);
        if (!p.good) fail_msg("%.*s: %s", KL_STR_ARG(c.name), p.why.ptr);
        assert_int_equal(p.starts_met + p.results_refused, 2);
        assert_true(c.n_needs > 0 && kl_str_eq(c.needs[0], KL_S("op.selection")));
        told++;
    }
    assert_true(told >= 4);
}

static int fresh_arena(void **state) {
    (void)state;
    arena = kl_arena_new();
    return 0;
}

static int free_arena(void **state) {
    (void)state;
    kl_arena_free(arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skill_predicate__every_case_gives_what_it_says),
        cmocka_unit_test_setup_teardown(test_skill_contract__is_held_against_states, fresh_arena,
                                        free_arena),
        cmocka_unit_test_setup_teardown(test_skill_contract__pool_leaves_out_what_does_not_parse,
                                        fresh_arena, free_arena),
        cmocka_unit_test_setup_teardown(test_skill_labels__are_compared_with_what_is_offered,
                                        fresh_arena, free_arena),
        cmocka_unit_test_setup_teardown(test_skill_contract__leaves_out_what_cannot_be_asked,
                                        fresh_arena, free_arena),
        cmocka_unit_test_setup_teardown(
            test_skill_contract__cards_that_wait_for_each_other_are_named, fresh_arena, free_arena),
        cmocka_unit_test_setup_teardown(test_skill_births__a_contract_tells_before_from_after,
                                        fresh_arena, free_arena)};
    return cmocka_run_group_tests_name("skill_predicate", tests, NULL, NULL);
}
