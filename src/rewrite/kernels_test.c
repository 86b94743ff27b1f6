/* kernels_test.c - what is read of real kernels is what tests/cases/traits/kernels.txt says.
 *
 * Traits stand in prompts, and a prompt is the key under which an answer is kept: a number that
 * changes makes every recording that shows it useless.  The same holds for undoings and variations.
 * A kernel is added by a line with its path.  With KL_UPDATE_CASES=1 in the environment the numbers
 * are rewritten; read the difference before you keep it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "base/hash.h"
#include "rewrite_impl.h"

#include <stdlib.h>

enum { MOST = 1024, WIDTH = 100 };

static void add(kl_buf *b, size_t *column, kl_str word) {
    const bool fits = *column > 0 && *column + 1 + word.len <= WIDTH;
    if (!fits) *column = 4;
    kl_buf_printf(b, "%s%.*s", fits ? " " : "\n    ", KL_STR_ARG(word));
    *column += word.len + fits;
}

static void add_number(kl_buf *b, size_t *column, kl_arena *a, const char *name, double value) {
    if (value > 0) add(b, column, kl_arena_printf(a, "%s=%g", name, value));
}

static uint64_t hash_of(const kl_undoing *list, int n) {
    kl_buf all = {0};
    for (int i = 0; i < n; i++)
        kl_buf_printf(&all, "%.*s\n%.*s\n%.*s\n", KL_STR_ARG(list[i].action),
                      KL_STR_ARG(list[i].locus), KL_STR_ARG(list[i].source));
    const uint64_t hash = kli_hash_bulk(all.ptr ? all.ptr : "", all.len);
    kl_buf_fini(&all);
    return hash;
}

static void add_list(kl_buf *b, size_t *column, kl_arena *a, const char *name,
                     const kl_undoing *list, int n) {
    const unsigned long long hash = hash_of(list, n);
    if (n) add(b, column, kl_arena_printf(a, "%s=%d:%016llx", name, n, hash));
}

/* PATH and a line end, then its numbers. */
static kl_str text_of(kl_arena *a, const kl_kernel *k, kl_str path) {
    kl_buf b = {0};
    size_t column = 0;
    kli_source s;
    kl_undoing *list = KL_ARRAY(a, kl_undoing, MOST);
    kli_source_read(&s, k);
    kl_buf_add(&b, path);
    for (int i = 0; i < KLI_TRAIT_COUNT; i++)
        add_number(&b, &column, a, strchr(kli_trait_name((kli_trait)i), '.') + 1, s.count[i]);
    add_number(&b, &column, a, "volatiles", s.volatiles);
    add_number(&b, &column, a, "asms", s.asms);
    add_number(&b, &column, a, "waits", s.waits);
    add_number(&b, &column, a, "empty_loops", s.empty_loops);
    add_number(&b, &column, a, "idle_loops", s.idle_loops);
    add_number(&b, &column, a, "slow_flags", s.slow_flags);
    add_list(&b, &column, a, "undoings", list, kl_rewrite_undo(list, MOST, a, k));
    add_list(&b, &column, a, "variations", list, kl_rewrite_mutate(list, MOST, a, k));
    kl_buf_printf(&b, "\n");
    const kl_str text = kl_arena_copy(a, kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

/* The part of the file that begins with a path, up to the next. */
static bool next_part(kl_str *part, kl_str *path, kl_str *rest) {
    kl_str line;
    if (!kli_next_line(path, rest)) return false;
    *part = *path;
    while (rest->len && rest->ptr[0] == ' ' && kli_next_line(&line, rest)) {
    }
    part->len = (size_t)(rest->ptr - part->ptr);
    return true;
}

static void test_kernels_read_as_recorded(void **state) {
    (void)state;
    const char *recorded = KL_TEST_ROOT "/tests/cases/traits/kernels.txt";
    const bool update = getenv("KL_UPDATE_CASES") != NULL;
    kl_arena *a = kl_arena_new();
    kl_buf all = {0};
    kl_error e = {0};
    kl_str rest, part, path;
    int n = 0;
    assert_ok(kli_fs_read(&rest, a, recorded, 1 << 20, &e));
    for (; next_part(&part, &path, &rest); n++) {
        const char *name = kl_arena_copy(a, path).ptr;
        kl_kernel *k;
        assert_ok(kl_kernel_load(&k, a, kli_fs_join(a, KL_TEST_ROOT, name).ptr, NULL, &e));
        const kl_str now = text_of(a, k, path);
        if (!update && !kl_str_eq(now, part))
            fail_msg("recorded:\n%.*sread:\n%.*s", KL_STR_ARG(part), KL_STR_ARG(now));
        kl_buf_add(&all, now);
    }
    assert_true(n > 0);
    if (update) assert_ok(kli_fs_write(recorded, kl_buf_str(&all), &e));
    kl_buf_fini(&all);
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels_read_as_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
