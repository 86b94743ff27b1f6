/* link_test.c - a step gets the reply that made it, and no other.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "dataset_impl.h"
#include "kit/kit.h"

#define PARENT "int a;\nint b;\nint c;\n"
#define EDIT(from, to)                                                                             \
    "ACTION: other\nWHY: w\n\n<<<<<<< SEARCH\n" from "\n=======\n" to "\n>>>>>>> REPLACE\n"

enum { MOST = 6 };
static int which[MOST];

static kl_dataset_step judged(const char *source) {
    return (kl_dataset_step){.phase = KL_S("search"),
                             .surface = KL_S("c"),
                             .parent = KL_S("p"),
                             .parent_source = KL_S(PARENT),
                             .source = kl_str_of(source)};
}

static kli_question answer(const char *reply) {
    return (kli_question){.reply = kl_str_of(reply), .cost_microusd = 7, .step = -1};
}

static void test_dataset_link__by_what_the_reply_makes_of_the_parent(void **state) {
    (void)state;
    kl_dataset_step steps[] = {judged("int x;\nint b;\nint c;\n"),
                               judged("int a;\nint y;\nint c;\n")};
    kli_question asked[] = {answer("talk"), answer(EDIT("int a;", "int x;")),
                            answer(EDIT("int c;", "int z;")), answer(EDIT("int b;", "int y;"))};
    kli_link(steps, 2, asked, 4, which);
    assert_int_equal(which[0], 1);
    assert_int_equal(which[1], 3);
    assert_str(steps[1].link, "applied");
    assert_int_equal(steps[1].cost_microusd, 7);
    assert_int_equal(asked[2].step, -1);
}

/* A text that no reply gives is a card's patch, or of a parent that the journal does not have. */
static void test_dataset_link__what_no_reply_gives_has_none(void **state) {
    (void)state;
    kl_dataset_step steps[] = {judged("int q;\n"), judged("int x;\nint b;\nint c;\n")};
    steps[1].parent_source = KL_S("");
    kli_question asked[] = {answer(EDIT("int a;", "int x;"))};
    kli_link(steps, 2, asked, 1, which);
    assert_int_equal(which[0], -1);
    assert_int_equal(which[1], -1);
    assert_int_equal(steps[0].link.len, 0);
    assert_int_equal(steps[0].reply.len, 0);
}

/* The same reply twice is two answers: each step takes its own. */
static void test_dataset_link__in_order(void **state) {
    (void)state;
    kl_dataset_step steps[] = {judged("int x;\nint b;\nint c;\n"),
                               judged("int x;\nint b;\nint c;\n")};
    kli_question asked[] = {answer(EDIT("int a;", "int x;")), answer(EDIT("int a;", "int x;"))};
    kli_link(steps, 2, asked, 2, which);
    assert_int_equal(which[0], 0);
    assert_int_equal(which[1], 1);
}

/* What was not judged takes an answer between its neighbours', and never a plan. */
static void test_dataset_link__what_was_not_judged_lies_between(void **state) {
    (void)state;
    kl_dataset_step steps[] = {judged("int x;\nint b;\nint c;\n"), judged(""),
                               judged("int a;\nint y;\nint c;\n"), judged("")};
    kli_question asked[] = {answer(EDIT("int a;", "int x;")), answer("a plan"), answer("no edit"),
                            answer(EDIT("int b;", "int y;"))};
    asked[1].prose = true;
    kli_link(steps, 4, asked, 4, which);
    assert_int_equal(which[1], 2);
    assert_str(steps[1].link, "order");
    assert_int_equal(which[3], -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_dataset_link__by_what_the_reply_makes_of_the_parent),
        KIT_TEST(test_dataset_link__what_no_reply_gives_has_none),
        KIT_TEST(test_dataset_link__in_order),
        KIT_TEST(test_dataset_link__what_was_not_judged_lies_between)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
