/* recall_test.c - SPDX-License-Identifier: Apache-2.0 */
#include "recall.h"
#include "fs.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool says(const char *name, const char *key, const char *text) {
    kl_arena *a = kl_arena_new();
    kl_str got = {0};
    const bool known = kli_recall(&got, a, name, kl_str_of(key));
    const bool same = known && text && kl_str_eq(got, kl_str_of(text));
    if (known && !same) fail_msg("%s said '%.*s'", name, KL_STR_ARG(got));
    kl_arena_free(a);
    return known;
}

static void test_recall__says_what_was_kept_under_its_key(void **state) {
    (void)state;
    assert_int_equal(setenv("KLINEAGE_CACHE", "recalled", 1), 0);
    assert_false(says("a/thing", "one", NULL));
    kli_remember("a/thing", KL_S("one"), KL_S("text\nof lines"));
    assert_true(says("a/thing", "one", "text\nof lines"));
    assert_false(says("a/thing", "two", NULL));
    assert_false(says("another", "one", NULL));
    kli_remember("a/thing", KL_S("two"), KL_S("")); /* replaces what another key had */
    assert_false(says("a/thing", "one", NULL));
    assert_true(says("a/thing", "two", ""));
}

static void test_recall__a_damaged_file_is_no_answer(void **state) {
    static const char PATH[] = "recalled/known/broken";
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str whole;
    (void)state;
    assert_int_equal(setenv("KLINEAGE_CACHE", "recalled", 1), 0);
    kli_remember("broken", KL_S("key"), KL_S("some text"));
    assert_ok(kli_fs_read(&whole, a, PATH, 4096, &e));
    for (size_t i = 0; i < whole.len; i++) {
        char bent[256];
        memcpy(bent, whole.ptr, whole.len);
        bent[i] ^= 1;
        assert_ok(kli_fs_write(PATH, (kl_str){bent, whole.len}, &e));
        assert_false(says("broken", "key", NULL));
        assert_ok(kli_fs_write(PATH, (kl_str){whole.ptr, i}, &e));
        assert_false(says("broken", "key", NULL));
    }
    assert_ok(kli_fs_write(PATH, whole, &e));
    assert_true(says("broken", "key", "some text"));
    kl_arena_free(a);
}

static void test_recall__nothing_is_kept_where_nothing_can_be_written(void **state) {
    (void)state;
    assert_int_equal(setenv("KLINEAGE_CACHE", "/proc/nowhere", 1), 0);
    kli_remember("thing", KL_S("key"), KL_S("text"));
    assert_false(says("thing", "key", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recall__says_what_was_kept_under_its_key),
        cmocka_unit_test(test_recall__a_damaged_file_is_no_answer),
        cmocka_unit_test(test_recall__nothing_is_kept_where_nothing_can_be_written),
    };
    return cmocka_run_group_tests_name("recall", tests, NULL, NULL);
}
