/* ladder_test.c - every rung is the kernel that it was written as, and edits that do not fit are
 * refused.
 *
 * tests/data/ladders.sha256 has the hash of every rung's text; recordings, lineages and measured
 * ratios are about these texts.  After a rung was changed on purpose: tools/ladder unfold, then
 * sha256sum.  SPDX-License-Identifier: Apache-2.0 */

#include "base/fs.h"
#include "base/hash.h"
#include "kit/kit.h"
#include "kernel/kernel.h"

static kl_err read(kl_str *text, const char *name) {
    kl_str path = kl_str_of(kit_path(name));
    return kl_kernel_read(text, &path, arena, &e);
}

/* ---- the ladders of experts/ ------------------------------------------------------------- */

static kl_str take_line(kl_str *rest) {
    const char *end = memchr(rest->ptr, '\n', rest->len);
    assert_non_null(end);
    kl_str line = {rest->ptr, (size_t)(end - rest->ptr)};
    *rest = (kl_str){end + 1, rest->len - line.len - 1};
    return line;
}

/* line = 64 hexadecimal digits, two blanks, a path */
static void check_rung(kl_str line) {
    enum { DIGITS = 64 };
    kl_str text, path = {line.ptr + DIGITS + 2, line.len - DIGITS - 2};
    path = kli_fs_join(arena, KL_TEST_ROOT, kl_arena_copy(arena, path).ptr);
    assert_ok(kl_kernel_read(&text, &path, arena, &e));
    if (memcmp(kli_hash_of(text).hex, line.ptr, DIGITS) != 0)
        fail_msg("%s is another text", path.ptr);
}

static void test_ladder__every_rung_is_what_it_was_written_as(void **state) {
    (void)state;
    kl_str hashes;
    assert_ok(kli_fs_read(&hashes, arena, KL_TEST_ROOT "/tests/data/ladders.sha256",
                          KL_MAX_SOURCE_BYTES, &e));
    int n = 0;
    for (; hashes.len; n++) check_rung(take_line(&hashes));
    assert_true(n > 100);
}

static void test_ladder__a_folder_lists_kernels_not_edits(void **state) {
    (void)state;
    const char *rungs[] = {"1-naive.c",          "2-loop-order.c",  "3-vector.c",
                           "4-register-block.c", "5-cache-block.c", "6-pack-b.c",
                           "7-transpose.c",      "8-expert.c",      "9-threads.c"};
    kl_str *names;
    size_t n;
    assert_ok(kl_kernel_list(&names, &n, arena, KL_TEST_ROOT "/experts/gemm/c", &e));
    assert_int_equal(n, KL_COUNT(rungs));
    for (size_t i = 0; i < n; i++) assert_str(names[i], rungs[i]);
}

static void test_ladder__a_rung_is_a_kernel_by_either_name(void **state) {
    (void)state;
    kl_kernel *by_kernel, *by_edits;
    assert_ok(kl_kernel_load(&by_kernel, arena, KL_TEST_ROOT "/experts/topk/cuda/3-warp-scan.cu",
                             NULL, &e));
    assert_ok(kl_kernel_load(&by_edits, arena, KL_TEST_ROOT "/experts/topk/cuda/3-warp-scan.diff",
                             NULL, &e));
    assert_string_equal(by_kernel->hash, by_edits->hash);
    assert_str(by_edits->path, by_kernel->path.ptr);
}

/* ---- edits ------------------------------------------------------------------------------- */

#define HEADER "What this rung is about.\n--- a/1.c\n+++ b/2.c\n"

static void test_ladder__hunks_change_what_they_name(void **state) {
    (void)state;
    kl_str text;
    kit_write("1.c", "a\nb\nc\nd\ne\nf\n");
    kit_write("2.diff", HEADER "@@ -1,2 +1,3 @@\n+new\n a\n-b\n+B\n@@ -5,2 +6 @@ e\n-e\n f\n");
    assert_ok(read(&text, "2.c"));
    assert_str(text, "new\na\nB\nc\nd\nf\n");
    kit_write("3.diff", "--- a/2.c\n+++ b/3.c\n@@ -1 +0,0 @@\n-new\n");
    assert_err(KL_EPARSE,
               read(&text, "3.c")); /* a hunk without context says less than it seems to */
    kit_write("3.diff", "--- a/2.c\n+++ b/3.c\n@@ -1,2 +1 @@\n-new\n a\n");
    assert_ok(read(&text, "3.c"));
    assert_str(text, "a\nB\nc\nd\nf\n");
}

static void test_ladder__edits_that_do_not_fit_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *hunks, *why;
    } rows[] = {
        {"@@ -1,2 +1,2 @@\n a\n-x\n+B\n", "another line"},
        {"@@ -1,2 +1,2 @@\n a\n-b \n+B\n", "another line"},
        {"@@ -2,1 +1,1 @@\n-b\n+B\n", "does not begin"},
        {"@@ -9,1 +9,1 @@\n-b\n+B\n", "does not begin"},
        {"@@ 2 @@\n-b\n+B\n", "not the head"},
        {"@@ -3,1 +3,1 @@\n-c\n+C\ndiff --git a/1.c b/2.c\n", "not a line"},
        {"@@ -3,1 +3,1 @@\n-c\n+C\n d\n", "another line"}, /* past the end */
    };
    kl_str text;
    kit_write("1.c", "a\nb\nc\n");
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        kit_write("2.diff", kl_arena_printf(arena, HEADER "%s", rows[i].hunks).ptr);
        assert_err(KL_EPARSE, read(&text, "2.c"));
        assert_contains(e.message, rows[i].why);
    }
}

static void test_ladder__a_header_stays_in_its_folder(void **state) {
    (void)state;
    kl_str text;
    kit_write("2.diff", "--- a/../1.c\n+++ b/2.c\n");
    assert_err(KL_EPARSE, read(&text, "2.c"));
    kit_write("2.diff", "no header\n@@ -1 +1 @@\n--- a/1.c\n+++ b/2.c\n");
    assert_err(KL_EPARSE, read(&text, "2.c"));
    kit_write("2.diff", "--- a/1.cu\n+++ b/2.cu\n");
    assert_err(KL_ENOENT, read(&text, "2.c"));  /* the edits make another kernel */
    assert_err(KL_ENOENT, read(&text, "2.cu")); /* and nothing lies below */
    kit_write("2.diff", "--- a/2.c\n+++ b/2.c\n");
    assert_err(KL_ELIMIT, read(&text, "2.c")); /* itself */
}

static void test_ladder__a_file_goes_before_edits(void **state) {
    (void)state;
    kl_str text, *names;
    size_t n;
    kit_write("1.c", "a\n");
    kit_write("2.diff", HEADER "@@ -1 +1 @@\n-a\n+b\n");
    kit_write("2.c", "own\n");
    assert_ok(read(&text, "2.c"));
    assert_str(text, "own\n");
    assert_ok(kl_kernel_list(&names, &n, arena, kit_folder(), &e));
    assert_int_equal(n, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_ladder__every_rung_is_what_it_was_written_as),
        KIT_TEST(test_ladder__a_folder_lists_kernels_not_edits),
        KIT_TEST(test_ladder__a_rung_is_a_kernel_by_either_name),
        KIT_TEST(test_ladder__hunks_change_what_they_name),
        KIT_TEST(test_ladder__edits_that_do_not_fit_are_refused),
        KIT_TEST(test_ladder__a_header_stays_in_its_folder),
        KIT_TEST(test_ladder__a_file_goes_before_edits),
    };
    return cmocka_run_group_tests_name("ladder", tests, NULL, NULL);
}
