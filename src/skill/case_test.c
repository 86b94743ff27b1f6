/* case_test.c - runs tests/cases/lift and tests/cases/retrieve.
 *
 * Lists are written with commas: raised=code.fma,source.vector_types; traits with their values:
 * before=source.loops:3.
 *
 * lift: lineages and their edges, in order; printed are the candidate cards, their computed part
 * alone. lineage: name=gemm-c surface=c case=gemm platform=x86-64-v4/gcc-12 edge: action=fma_simd
 * gain=2.1 raised=LIST before=TRAITS call=faster witness=alone pays=no forward=none
 *
 * retrieve: a target and the cards of a library; printed are the matches, best first, with their
 * similarities; a card may have clauses of a contract, over facts that are the traits: requires,
 * provides, conflicts: CARD PREDICATE. target: case=gemm language=c platform=x86-64-v4/gcc-12
 * dtype=float32 prior=LIST simd_bits=512 traits=TRAITS options: top=4 all=yes card: name=a
 * case=gemm language=c platform=x86-64-v4/gcc-12 prior=LIST requires=LIST provides=LIST
 * conflicts=LIST gains=2.1,1.0 failed=1 status=admitted edited=yes pre=dtype:==:float32     (one
 * line) SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "run/fake_track.h"
#include "kit/case.h"
#include <math.h>
#include <stdio.h>

/* ---- reading ----------------------------------------------------------------------------- */

/* "a,b" of the field as "a b", which is how cards keep lists. */
static kl_str list_of(kl_str words, const char *key) {
    kl_str list = kl_arena_copy(arena, kit_field(words, key));
    for (size_t i = 0; i < list.len; i++)
        if (list.ptr[i] == ',') ((char *)(uintptr_t)list.ptr)[i] = ' ';
    return list;
}

static double number_of(kl_str words, const char *key, double absent) {
    return kit_number(kit_field(words, key), absent);
}

static bool says(kl_str words, const char *key, const char *value) {
    return kl_str_eq(kit_field(words, key), kl_str_of(value));
}

static void read_traits(kl_traits *out, kl_str list) {
    json_t *o = json_object();
    for (kl_str w; (w = kit_word(&list)).len;) {
        const char *colon = memchr(w.ptr, ':', w.len);
        assert_non_null(colon);
        kl_str name = kl_arena_copy(arena, (kl_str){w.ptr, (size_t)(colon - w.ptr)});
        json_object_set_new(o, name.ptr,
                            json_real(kit_number((kl_str){colon + 1, w.len - name.len - 1}, 0)));
    }
    kl_traits_parse(out, arena, o);
    json_decref(o);
}

static void add_names(kl_names *list, kl_str names) {
    for (kl_str w; (w = kit_word(&names)).len;) kli_names_add(list, arena, w);
}

/* ---- lift -------------------------------------------------------------------------------- */

enum { MOST = 16 };

static kl_decision call_of(kl_str name) {
    for (kl_decision c = KL_DECISION_SAME; c <= KL_DECISION_UNDECIDED; c++)
        if (kl_str_eq(name, kl_str_of(kl_decision_name(c)))) return c;
    return KL_DECISION_FASTER;
}

static void add_edge(kl_lineage *l, kl_str words) {
    int i = l->n_edges++;
    double gain = number_of(words, "gain", 2);
    kl_edge *edge = &l->edges[i];
    assert_true(i + 1 < MOST);
    *edge = (kl_edge){.from = i,
                      .to = i + 1,
                      .action = kit_field(words, "action"),
                      .raised = list_of(words, "raised"),
                      .witness = kit_field(words, "witness"),
                      .gain = gain,
                      .gain_low = gain - 0.01,
                      .gain_high = gain + 0.01,
                      .call = call_of(kit_field(words, "call")),
                      .pays = !says(words, "pays", "no"),
                      .forward = KL_S("an edit")};
    if (!says(words, "forward", "none")) edge->forward_source = KL_S("the kernel");
    read_traits(&edge->before, list_of(words, "before"));
    for (int s = l->n_states; s < i + 2; s++)
        l->states[s] = (kl_state){.name = kl_arena_printf(arena, "K%d", s),
                                  .hash = kl_arena_printf(arena, "h%d", s)};
    l->n_states = i + 2;
}

static kl_lineage new_lineage(kl_str words) {
    kl_str name = kit_field(words, "name");
    return (kl_lineage){.id = name,
                        .name = name,
                        .surface = kit_field(words, "surface"),
                        .task = KL_S("a task"),
                        .case_name = kit_field(words, "case"),
                        .platform = kit_field(words, "platform"),
                        .workload = KL_S("cpu"),
                        .dtype = KL_S("float32"),
                        .edges = KL_ARRAY(arena, kl_edge, MOST),
                        .states = KL_ARRAY(arena, kl_state, MOST + 1)};
}

static int read_lineages(kl_lineage *out, const kit_case *c) {
    int n = 0;
    for (int i = 0; i < c->n_keys; i++) {
        if (kl_str_eq(c->keys[i], KL_S("lineage"))) out[n++] = new_lineage(c->values[i]);
        if (kl_str_eq(c->keys[i], KL_S("edge"))) add_edge(&out[n - 1], c->values[i]);
        assert_true(n < MOST);
    }
    return n;
}

static void print_list(kl_buf *out, const char *what, kl_str words) {
    if (words.len) kl_buf_printf(out, "  %s %.*s\n", what, KL_STR_ARG(words));
}

static void print_card(kl_buf *out, const kl_card *c) {
    const kl_scope *s = &c->verified;
    kl_buf_printf(out, "%.*s: %d birth%s, at least %.3gx\n", KL_STR_ARG(c->name), c->n_trials,
                  c->n_trials == 1 ? "" : "s", c->expected_gain);
    print_list(out, "provides", c->provides);
    print_list(out, "requires", c->required);
    print_list(out, "cases", kli_names_text(arena, &s->cases));
    print_list(out, "platforms", kli_names_text(arena, &s->platforms));
    print_list(out, "prior", kli_names_text(arena, &s->prior));
}

static void run_lift(kl_buf *out, const kit_case *c) {
    kl_lineage *lineages = KL_ARRAY(arena, kl_lineage, MOST);
    kl_group *groups;
    fake_track *track = KL_NEW(arena, fake_track);
    int n, n_lineages = read_lineages(lineages, c);
    kl_skill_group(&groups, &n, arena, lineages, n_lineages);
    fake_track_open(track, arena);
    for (int i = 0; i < n; i++) {
        kl_card *card;
        fake_says(track, KL_S("nothing of use"));
        assert_ok(kl_skill_lift(&card, &track->base, &groups[i], &e));
        print_card(out, card);
    }
    if (!n) kl_buf_add(out, KL_S("nothing\n"));
    fake_track_close(track);
}

/* ---- retrieve ---------------------------------------------------------------------------- */

static void add_trial(kl_card *c, kl_str words, double gain) {
    kl_trial_record r = {.kind = KL_S("birth"),
                         .surface = kit_field(words, "language"),
                         .outcome = KL_S("pass"),
                         .platform = kit_field(words, "platform"),
                         .accepted = gain > 0,
                         .gain = gain};
    kli_card_add_trial(c, arena, &r);
}

static kl_card_status status_of(kl_str words) {
    for (kl_card_status s = KL_CARD_LIFTED; s <= KL_CARD_RETIRED; s++)
        if (says(words, "status", kl_card_status_name(s))) return s;
    return KL_CARD_ADMITTED;
}

/* pre = FACT ":" OPERATOR ":" VALUE */
static void read_precondition(kl_card *c, kl_str text) {
    char fact[64], op[4], value[64];
    if (!text.len) return;
    assert_int_equal(sscanf(text.ptr, "%63[^:]:%3[^:]:%63s", fact, op, value), 3);
    c->n_pre = kli_predicates_parse(&c->pre, arena,
                                    kl_arena_printf(arena, "- data: [%s %s %s]", fact, op, value));
    assert_int_equal(c->n_pre, 1);
}

static kl_card read_card(kl_str words) {
    kl_card c = {.name = kit_field(words, "name"),
                 .action = kit_field(words, "action"),
                 .status = status_of(words),
                 .edited = says(words, "edited", "yes"),
                 .required = list_of(words, "requires"),
                 .provides = list_of(words, "provides"),
                 .conflicts = list_of(words, "conflicts")};
    kl_scope *s = &c.verified;
    add_names(&s->cases, list_of(words, "case"));
    add_names(&s->surfaces, list_of(words, "language"));
    add_names(&s->platforms, list_of(words, "platform"));
    add_names(&s->prior, list_of(words, "prior"));
    read_precondition(&c, kit_field(words, "pre"));
    for (kl_str w, rest = list_of(words, "gains"); (w = kit_word(&rest)).len;)
        add_trial(&c, words, kit_number(w, 0));
    for (int i = (int)number_of(words, "failed", 0); i > 0; i--) add_trial(&c, words, 0);
    return c;
}

static void print_match(kl_buf *out, const kl_match *m) {
    static const char *const fits[] = {"fits", "unknown", "violated"};
    kl_buf_printf(out,
                  "%.*s %s, expected %.3fx, case %.2g language %.2g platform %.2g prior %.2g\n",
                  KL_STR_ARG(m->card->name), fits[m->fit], exp(m->expected_log_gain),
                  m->similarity[0], m->similarity[1], m->similarity[2], m->similarity[3]);
    if (m->fit != KL_FIT_MET) kl_buf_printf(out, "  %.*s\n", KL_STR_ARG(m->why));
}

/* requires: CARD PREDICATE */
static void read_clause(kl_library *l, kl_str key, kl_str value) {
    const kl_str name = kit_word(&value), clause = kl_str_trim(value);
    for (int i = 0; i < l->n_cards; i++) {
        kl_card *c = &l->cards[i];
        if (!kl_str_eq(c->name, name)) continue;
        if (kl_str_eq(key, KL_S("requires"))) *KL_PUSH(arena, c->needs, c->n_needs) = clause;
        if (kl_str_eq(key, KL_S("provides"))) *KL_PUSH(arena, c->brings, c->n_brings) = clause;
        if (kl_str_eq(key, KL_S("conflicts"))) *KL_PUSH(arena, c->excludes, c->n_excludes) = clause;
    }
}

static void run_retrieve(kl_buf *out, const kit_case *c) {
    kl_card *cards = KL_ARRAY(arena, kl_card, MOST);
    kl_library library = {.cards = cards};
    kl_traits *traits = KL_NEW(arena, kl_traits);
    kl_str t = kit_value(c, "target", ""), options = kit_value(c, "options", "");
    for (int i = 0; i < c->n_keys; i++)
        if (kl_str_eq(c->keys[i], KL_S("card"))) cards[library.n_cards++] = read_card(c->values[i]);
    for (int i = 0; i < c->n_keys; i++) read_clause(&library, c->keys[i], c->values[i]);
    read_traits(traits, list_of(t, "traits"));
    kl_facts *facts = KL_NEW(arena, kl_facts);
    facts->traits = *traits;
    const kl_target target = {.case_name = kit_field(t, "case"),
                              .surface = kit_field(t, "language"),
                              .platform = kit_field(t, "platform"),
                              .dtype = kit_field(t, "dtype"),
                              .prior = list_of(t, "prior"),
                              .traits = traits,
                              .facts = facts,
                              .simd_bits = (int64_t)number_of(t, "simd_bits", 0)};
    const kl_retrieve_opts o = {.top = (int)number_of(options, "top", 0),
                                .all = says(options, "all", "yes")};
    kl_match *matches;
    int n;
    kl_library_retrieve(&matches, &n, arena, &library, &target, &o);
    for (int i = 0; i < n; i++) print_match(out, &matches[i]);
    if (!n) kl_buf_add(out, KL_S("nothing\n"));
}

/* ---- running ----------------------------------------------------------------------------- */

static void test_skill_lift__every_case_gives_what_it_says(void **state) {
    (void)state;
    kit_run_cases(KL_TEST_ROOT "/tests/cases/lift", 12, run_lift);
}

static void test_skill_retrieve__every_case_gives_what_it_says(void **state) {
    (void)state;
    kit_run_cases(KL_TEST_ROOT "/tests/cases/retrieve", 19, run_retrieve);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skill_lift__every_case_gives_what_it_says),
        cmocka_unit_test(test_skill_retrieve__every_case_gives_what_it_says)};
    return cmocka_run_group_tests_name("skill_case", tests, NULL, NULL);
}
