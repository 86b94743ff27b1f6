/* diff_test.c - the difference of two kernels reads well and loses nothing.
 * SPDX-License-Identifier: Apache-2.0 */

#include "kit/kit.h"
#include "kernel/kernel.h"
#include <stdio.h>
#include <stdlib.h>

static kl_kernel *parse(kl_str text, const char *name, const char *param) {
    kl_kernel *k;
    const char *params[] = {param, NULL};
    kl_kernel_opts o = {.params = param ? params : NULL};
    assert_ok(kl_kernel_parse(&k, arena, text, kl_str_of(name), NULL, &o, &e));
    return k;
}

static const char *diff(const char *from, const char *to) {
    kl_str text = kl_kernel_diff(arena, parse(kl_str_of(from), "old.c", NULL),
                                 parse(kl_str_of(to), "new.c", NULL));
    return text.len ? text.ptr : "";
}

#define LAUNCH "//! launch f args(A)\n"

static void test_kernel_diff__equal_sources_give_nothing(void **state) {
    (void)state;
    assert_string_equal(diff(LAUNCH "a\nb\n", LAUNCH "a\nb\n"), "");
}

static void test_kernel_diff__directives_come_first(void **state) {
    (void)state;
    assert_string_equal(
        diff("one\n//! param B = 4\n" LAUNCH "two\n", "uno\n//! param B = 8\n" LAUNCH "two\n"),
        "--- old.c\n+++ new.c\n"
        "@@ -2,2 +2,2 @@ directives\n"
        "-//! param B = 4\n+//! param B = 8\n //! launch f args(A)\n"
        "@@ -1,2 +1,2 @@\n"
        "-one\n+uno\n two\n");
}

static void test_kernel_diff__distant_changes_are_separate_hunks(void **state) {
    (void)state;
    assert_string_equal(
        diff(LAUNCH "a\n1\n2\n3\n4\n5\n6\n7\nz\n", LAUNCH "b\n1\n2\n3\n4\n5\n6\n7\nz\ny\n"),
        "--- old.c\n+++ new.c\n"
        "@@ -2,4 +2,4 @@\n-a\n+b\n 1\n 2\n 3\n"
        "@@ -8,3 +8,4 @@\n 6\n 7\n z\n+y\n");
    assert_string_equal(diff(LAUNCH "a\n1\n2\n3\n4\n5\n6\nz\n", LAUNCH "b\n1\n2\n3\n4\n5\n6\ny\n"),
                        "--- old.c\n+++ new.c\n"
                        "@@ -2,8 +2,8 @@\n-a\n+b\n 1\n 2\n 3\n 4\n 5\n 6\n-z\n+y\n");
}

static void test_kernel_diff__insertion_and_deletion(void **state) {
    (void)state;
    assert_string_equal(diff(LAUNCH, LAUNCH "x\n"), "--- old.c\n+++ new.c\n@@ -0,0 +2,1 @@\n+x\n");
    assert_string_equal(diff(LAUNCH "x\n", LAUNCH), "--- old.c\n+++ new.c\n@@ -2,1 +0,0 @@\n-x\n");
}

static void test_kernel_diff__chosen_params_show(void **state) {
    (void)state;
    kl_str text = KL_S("//! param B = 4 {4, 8}\n" LAUNCH);
    assert_str(kl_kernel_diff(arena, parse(text, "k.c", NULL), parse(text, "k.c", "B=8")),
               "--- k.c\n+++ k.c\n@@ -1,2 +1,3 @@ directives\n //! param B = 4 {4, 8}\n //! launch "
               "f args(A)\n+chosen "
               "B = 8\n");
}

/* Lines "0".."n-1" with every third changed at random; the old text is rebuilt from the diff's rows
 * and the new text.
 */
static kl_str random_text(uint32_t *seed, int n, uint32_t alphabet) {
    kl_buf text = {0};
    kl_buf_add(&text, KL_S(LAUNCH));
    for (int i = 0; i < n; i++)
        kl_buf_printf(&text, "%u\n", (*seed = *seed * 1664525u + 1013904223u) >> 16 & alphabet);
    kl_str copy = kl_arena_copy(arena, kl_buf_str(&text));
    kl_buf_fini(&text);
    return copy;
}

static kl_str line_at(kl_str text, int number) {
    const char *p = text.ptr, *end = text.ptr + text.len;
    while (--number > 0) p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
    return (kl_str){p, (size_t)((const char *)memchr(p, '\n', (size_t)(end - p)) - p)};
}

/* Every row of every hunk must be the line of the file that its position says. */
static void check_rows(kl_str text, kl_str from, kl_str to) {
    int old_line = 0, new_line = 0, removed = 0, added = 0;
    const char *p = text.ptr;
    while (p < text.ptr + text.len) {
        const char *newline = strchr(p, '\n');
        kl_str row = {p + 1, (size_t)(newline - p) - 1};
        if (*p == '@')
            assert_int_equal(sscanf(p, "@@ -%d,%*d +%d", &old_line, &new_line), 2);
        else if (strncmp(p, "--- ", 4) != 0 && strncmp(p, "+++ ", 4) != 0) {
            if (*p != '+') assert_true(kl_str_eq(row, line_at(from, old_line++)));
            if (*p != '-') assert_true(kl_str_eq(row, line_at(to, new_line++)));
            removed += *p == '-';
            added += *p == '+';
        }
        p = newline + 1;
    }
    int from_lines = 0, to_lines = 0;
    for (size_t i = 0; i < from.len; i++) from_lines += from.ptr[i] == '\n';
    for (size_t i = 0; i < to.len; i++) to_lines += to.ptr[i] == '\n';
    assert_int_equal(to_lines - from_lines, added - removed);
}

static void test_kernel_diff__rows_are_lines_of_both_files(void **state) {
    (void)state;
    uint32_t seed = 7;
    for (int round = 0; round < 300; round++) {
        kl_str from = random_text(&seed, round % 23, 3), to = random_text(&seed, round % 17, 3);
        check_rows(kl_kernel_diff(arena, parse(from, "a.c", NULL), parse(to, "b.c", NULL)), from,
                   to);
    }
}

static void test_kernel_diff__many_changed_lines_end_soon(void **state) {
    (void)state;
    uint32_t seed = 7;
    kl_str from = random_text(&seed, 20000, 0xffff), to = random_text(&seed, 20000, 0xffff);
    assert_true(kl_kernel_diff(arena, parse(from, "a.c", NULL), parse(to, "b.c", NULL)).len >
                40000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_kernel_diff__equal_sources_give_nothing),
        KIT_TEST(test_kernel_diff__directives_come_first),
        KIT_TEST(test_kernel_diff__distant_changes_are_separate_hunks),
        KIT_TEST(test_kernel_diff__insertion_and_deletion),
        KIT_TEST(test_kernel_diff__chosen_params_show),
        KIT_TEST(test_kernel_diff__rows_are_lines_of_both_files),
        KIT_TEST(test_kernel_diff__many_changed_lines_end_soon),
    };
    return cmocka_run_group_tests_name("kernel_diff", tests, NULL, NULL);
}
