/* parts_test.c - pieces, words and lines: empty ones, and both ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parts.h"
#include "base/test.h"

static void same(kl_str found, const char *expected) {
    assert_true(kl_str_eq(found, kl_str_of(expected)));
}

static void test_parts__pieces_begin_and_end_where_they_say(void **state) {
    (void)state;
    const kl_str s = KL_S("a/b/c");
    same(kli_from(s, 0), "a/b/c");
    same(kli_from(s, 5), "");
    same(kli_cut(s, 3), "a/b");
    same(kli_cut(s, 9), "a/b/c");
    same(kli_before(s, '/'), "a");
    same(kli_before(s, '#'), "a/b/c");
    same(kli_before((kl_str){0}, '/'), "");
    same(kli_between(s.ptr + 1, s.ptr + 4), "/b/");
}

static void test_parts__words_are_separated_by_any_white_space(void **state) {
    (void)state;
    kl_str word, rest = KL_S(" one\ttwo\n three ");
    assert_true(kli_next_word(&word, &rest));
    same(word, "one");
    assert_true(kli_next_word(&word, &rest));
    same(word, "two");
    assert_true(kli_next_word(&word, &rest));
    same(word, "three");
    assert_false(kli_next_word(&word, &rest));
    assert_true(kli_words_have(KL_S("a bc d"), KL_S("bc")));
    assert_false(kli_words_have(KL_S("a bc d"), KL_S("b")));
    assert_false(kli_words_have((kl_str){0}, KL_S("b")));
}

static void test_parts__one_of_takes_whole_words_alone(void **state) {
    (void)state;
    assert_true(kli_one_of(KL_S("+="), "++ += -="));
    assert_true(kli_one_of(KL_S("++"), "++ += -="));
    assert_true(kli_one_of(KL_S("-="), "++ += -="));
    assert_false(kli_one_of(KL_S("+"), "++ += -="));
    assert_false(kli_one_of(KL_S(""), "++ +="));
    assert_false(kli_one_of(KL_S("+"), ""));
    assert_int_equal(kli_parts_in(KL_S("-O3 -ffast-math"), "fast -O3 slow"), 2);
    assert_int_equal(kli_parts_in((kl_str){0}, "fast"), 0);
}

static void test_parts__lines_come_without_their_ends(void **state) {
    (void)state;
    kl_str line, rest = KL_S("one\n\nlast");
    assert_true(kli_next_line(&line, &rest));
    same(line, "one");
    assert_true(kli_next_line(&line, &rest));
    same(line, "");
    assert_true(kli_next_line(&line, &rest));
    same(line, "last");
    assert_false(kli_next_line(&line, &rest));
}

static void test_parts__a_buffer_is_kept_once(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_buf b = {0};
    same(kli_buf_keep(&b, a), "");
    kl_buf_add(&b, KL_S("text"));
    same(kli_buf_keep(&b, a), "text");
    assert_int_equal(b.len, 0);
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts__pieces_begin_and_end_where_they_say),
        cmocka_unit_test(test_parts__words_are_separated_by_any_white_space),
        cmocka_unit_test(test_parts__one_of_takes_whole_words_alone),
        cmocka_unit_test(test_parts__lines_come_without_their_ends),
        cmocka_unit_test(test_parts__a_buffer_is_kept_once),
    };
    return cmocka_run_group_tests_name("base_parts", tests, NULL, NULL);
}
