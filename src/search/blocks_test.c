/* blocks_test.c - what may change between EVOLVE-BLOCK-START and EVOLVE-BLOCK-END, and nothing
 * else.  SPDX-License-Identifier: Apache-2.0 */
#include "search_impl.h"
#include "base/test.h"

#define OPEN "// EVOLVE-BLOCK-START\n"
#define CLOSE "// EVOLVE-BLOCK-END\n"
#define START "head\n" OPEN "one\n" CLOSE "tail\n"

/* ---- may it become this? ----------------------------------------------------------------- */

static const struct {
    const char *start, *source;
    bool may;
} CHANGES[] = {
    {"head\ntail\n", "all\nnew\n", true}, /* no markers: the whole file may change */
    {START, START, true},
    {START, "head\n" OPEN "two\nthree\n" CLOSE "tail\n", true},
    {START, "head\n" OPEN CLOSE "tail\n", true},
    {START, "head \r\n" OPEN "two\r\n" CLOSE "tail",
     true}, /* white space at line ends and at the end */
    {START, "head\n" OPEN "two\n" CLOSE "tail\n\n\n", true},
    {START, "Head\n" OPEN "one\n" CLOSE "tail\n", false},
    {START, " head\n" OPEN "one\n" CLOSE "tail\n", false}, /* an indent is a change */
    {START, "head\n" OPEN "one\n" CLOSE "tale\n", false},
    {START, "head\n" OPEN "one\n" CLOSE "tail\nmore\n", false},
    {START, "head\n" OPEN "one\n" CLOSE, false},
    {START, "head\n\n" OPEN "one\n" CLOSE "tail\n", false},
    {START, "head\none\ntail\n", false}, /* without its markers */
    {START, "head\n" OPEN "one\ntail\n", false},
    {START, "", false},
    {START, "head\n" OPEN "one\n" CLOSE "new\n" OPEN "two\n" CLOSE "tail\n",
     false}, /* a gap of its own inside of a range */
    {START, "head\n" OPEN "one\n" CLOSE OPEN "two\n" CLOSE "tail\n", false},
    {START, "head\n" OPEN "/* EVOLVE-BLOCK-END */\n" CLOSE "tail\n", false},
    {START, OPEN "head\none\n" CLOSE "tail\n", false}, /* a range that has grown */
    {"a\n" OPEN "1\n" CLOSE "b\n" OPEN "2\n" CLOSE "c\n",
     "a\n" OPEN "2\n" CLOSE "b\n" OPEN "1\n" CLOSE "c\n", true},
    {"a\n" OPEN "1\n" CLOSE "b\n" OPEN "2\n" CLOSE "c\n", "a\n" OPEN "1\n2\n" CLOSE "c\n", false},
    {"a\n# EVOLVE-BLOCK-START\n1\n# EVOLVE-BLOCK-END\n",
     "b\n# EVOLVE-BLOCK-START\n1\n# EVOLVE-BLOCK-END\n", false},
    {"a\n  /* EVOLVE-BLOCK-START */\n1\n  /* EVOLVE-BLOCK-END */\n",
     "a\n  /* EVOLVE-BLOCK-START */\n2\n  /* EVOLVE-BLOCK-END */\n", true},
    {"puts(\"EVOLVE-BLOCK-START\");\n", "anything\n", true}, /* no comment, no marker */
    {"EVOLVE-BLOCK-START\n", "anything\n", true},
};

static void test_search_blocks__what_may_change(void **state) {
    (void)state;
    for (size_t i = 0; i < KL_COUNT(CHANGES); i++) {
        kl_error e = {0};
        const kl_err err =
            kli_blocks_check(kl_str_of(CHANGES[i].start), kl_str_of(CHANGES[i].source), &e);
        if (err != (CHANGES[i].may ? KL_OK : KL_EINVAL))
            fail_msg("row %zu: %s", i, CHANGES[i].source);
        assert_int_equal(*e.message != '\0', !CHANGES[i].may);
    }
}

static void test_search_blocks__says_which_line(void **state) {
    (void)state;
    kl_error e = {0};
    assert_err(KL_EINVAL,
               kli_blocks_check(KL_S(START), KL_S("head\n" OPEN "one\ntwo\n" CLOSE "tale\n"), &e));
    assert_contains(e.message, "EVOLVE-BLOCK-START");
    assert_contains(e.detail, "has to be there: tail");
    assert_contains(e.detail, "line 6 of the new file: tale");
}

/* Lines are a model's: however long, however strange. */
static void test_search_blocks__a_message_is_bounded(void **state) {
    (void)state;
    kl_error e = {0};
    char line[20000];
    memset(line, '%', sizeof line);
    assert_err(KL_EINVAL, kli_blocks_check(KL_S(START), (kl_str){line, sizeof line}, &e));
    assert_true(strlen(e.detail) < 600);
    assert_err(KL_EINVAL, kli_blocks_check(KL_S(START), (kl_str){"\0\0\0", 3}, &e));
}

/* ---- a start ----------------------------------------------------------------------------- */

static void test_search_blocks__a_start_is_well_formed(void **state) {
    (void)state;
    static const struct {
        const char *source, *why;
    } ROWS[] = {{"", NULL},
                {"head\n", NULL},
                {START, NULL},
                {START START, NULL},
                {"a\n" OPEN "b\n", "line 2: EVOLVE-BLOCK-START without"},
                {"a\n" CLOSE "b\n", "line 2: EVOLVE-BLOCK-END without"},
                {OPEN "a\n" OPEN CLOSE, "line 3: EVOLVE-BLOCK-START inside"},
                {START CLOSE, "line 6: EVOLVE-BLOCK-END without"}};
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        kl_error e = {0};
        assert_err(ROWS[i].why ? KL_EPARSE : KL_OK,
                   kli_blocks_valid(kl_str_of(ROWS[i].source), KL_S("start.c"), &e));
        if (ROWS[i].why) assert_contains(e.message, ROWS[i].why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_blocks__what_may_change),
        cmocka_unit_test(test_search_blocks__says_which_line),
        cmocka_unit_test(test_search_blocks__a_message_is_bounded),
        cmocka_unit_test(test_search_blocks__a_start_is_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
