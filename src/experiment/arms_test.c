/* arms_test.c - what an arm shows: names and bodies that belong together or not, and the same cards
 * withheld in every arm. SPDX-License-Identifier: Apache-2.0 */
#include "experiment_impl.h"
#include "kit/kit.h"

#define N 6 /* four of c, two of cuda */

static kl_surface c_surface = {.name = "c"};
static kl_kernel start = {.surface = &c_surface};
static kl_library all;

static void one_card(kl_card *c, int i) {
    static kl_str surfaces[] = {{"c", 1}, {"cuda", 4}};
    static kl_predicate pre[N][2];
    kl_str *surface = &surfaces[i >= 4];
    pre[i][0] = (kl_predicate){.fact = KL_S("language"), .op = KL_S("=="), .value = *surface};
    pre[i][1] = (kl_predicate){.prose = kl_arena_printf(arena, "words %d", i)};
    *c = (kl_card){.name = kl_arena_printf(arena, "card-%d", i),
                   .action = kl_arena_printf(arena, "action-%d", i),
                   .intent = kl_arena_printf(arena, "intent %d", i),
                   .carrier = kl_arena_printf(arena, "carrier %d", i),
                   .required = kl_arena_printf(arena, "contract %d", i),
                   .status = KL_CARD_ADMITTED,
                   .pre = pre[i],
                   .n_pre = 2,
                   .verified.surfaces = {surface, 1}};
}

static int arms_set_up(void **state) {
    kit_set_up(state);
    all = (kl_library){.cards = KL_ARRAY(arena, kl_card, N), .n_cards = N};
    for (int i = 0; i < N; i++) one_card(&all.cards[i], i);
    return 0;
}

static kl_search_opts shown_in(kli_arm arm, double mask, int trial) {
    kl_search_opts o = {.start = &start};
    const kl_experiment_policy p = {.arm = arm, .mask = mask};
    kli_arm_apply(&o, arena, &all, &p, KL_S("softmax"), trial);
    return o;
}

static char last_of(kl_str s) { return s.ptr[s.len - 1]; }

static void test_experiment_arms__ours_shows_the_cards_as_they_are(void **state) {
    (void)state;
    const kl_search_opts o = shown_in(KLI_ARM_OURS, 0, 1);
    assert_int_equal(o.library->n_cards, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(last_of(o.library->cards[i].name), last_of(o.library->cards[i].carrier));
    assert_int_equal(o.arm->shown, KLI_SHOW_FITTING);
    assert_int_equal(o.arm->withheld.n, 0);
    assert_str(o.arm->note, "cards: ours");
    assert_int_equal(shown_in(KLI_ARM_NAMES, 0, 1).arm->shown, KLI_SHOW_INDEX);
    assert_int_equal(shown_in(KLI_ARM_ALL, 0, 1).arm->shown, KLI_SHOW_ALL);
}

/* Every body is somebody's of the same surface, none its own, and contracts stay where they are. */
static void test_experiment_arms__shuffled_permutes_bodies(void **state) {
    (void)state;
    for (int trial = 1; trial <= 5; trial++) {
        int seen = 0;
        const kl_search_opts o = shown_in(KLI_ARM_SHUFFLED, 0, trial);
        assert_int_equal(o.library->n_cards, N);
        for (int i = 0; i < N; i++) {
            const kl_card *c = &o.library->cards[i];
            const int body = last_of(c->carrier) - '0';
            assert_int_equal(last_of(c->name), '0' + i);
            assert_int_equal(last_of(c->required), '0' + i);
            assert_int_not_equal(body, i);
            assert_int_equal(body >= 4, i >= 4);
            assert_int_equal(last_of(c->intent) - '0', body);
            seen |= 1 << body;
        }
        assert_int_equal(seen, (1 << N) - 1);
    }
}

static void test_experiment_arms__facts_stay_and_words_go(void **state) {
    (void)state;
    const kl_search_opts o = shown_in(KLI_ARM_ELSEWHERE, 0, 1);
    assert_int_equal(o.library->n_cards, 2); /* as many as there are of other surfaces */
    for (int i = 0; i < 2; i++) {
        const kl_card *c = &o.library->cards[i];
        assert_true(last_of(c->name) >= '4' && last_of(c->action) == last_of(c->name));
        assert_int_equal(last_of(c->carrier), last_of(c->name));
        assert_true(last_of(c->required) < '4');
        assert_str(c->verified.surfaces.at[0], "c");
        assert_int_equal(c->n_pre, 2);
        assert_str(c->pre[0].value, "c");
        assert_int_equal(c->pre[0].prose.len, 0);
        assert_int_equal(last_of(c->pre[1].prose), last_of(c->name));
        assert_int_equal(c->pre[1].fact.len, 0);
    }
}

static void test_experiment_arms__the_same_cards_are_withheld_in_every_arm(void **state) {
    (void)state;
    int withheld = 0, differs = 0;
    kl_str before = KL_S("");
    for (int trial = 1; trial <= 40; trial++) {
        const kl_search_opts ours = shown_in(KLI_ARM_OURS, 0.25, trial),
                             shuffled = shown_in(KLI_ARM_SHUFFLED, 0.25, trial);
        const kl_names *one = &ours.arm->withheld, *other = &shuffled.arm->withheld;
        assert_int_equal(one->n, other->n);
        for (int i = 0; i < one->n; i++) assert_true(kl_str_eq(one->at[i], other->at[i]));
        withheld += one->n;
        differs += !kl_str_eq(before, ours.arm->note);
        before = ours.arm->note;
    }
    assert_in_range(withheld, 20, 60); /* of 160 of this surface */
    assert_true(differs > 20);
}

static void test_experiment_arms__names(void **state) {
    (void)state;
    kli_arm arm = KLI_ARM_NONE;
    for (int i = KLI_ARM_OURS; i <= KLI_ARM_ELSEWHERE; i++) {
        assert_true(kli_arm_parse(&arm, kl_str_of(kli_arm_name((kli_arm)i))));
        assert_int_equal(arm, i);
    }
    assert_false(kli_arm_parse(&arm, KL_S("")));
    assert_false(kli_arm_parse(&arm, KL_S("none")));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, arms_set_up, kit_tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_experiment_arms__ours_shows_the_cards_as_they_are),
        TEST(test_experiment_arms__shuffled_permutes_bodies),
        TEST(test_experiment_arms__facts_stay_and_words_go),
        TEST(test_experiment_arms__the_same_cards_are_withheld_in_every_arm),
        TEST(test_experiment_arms__names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
