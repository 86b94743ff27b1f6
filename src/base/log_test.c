/* Tests of log.c: what reaches stderr when it is not a terminal.  SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/log.h"
#include "base/test.h"
#include <stdio.h>
#include <unistd.h>

/* What one of each says at `level`; stderr goes to a file meanwhile. */
static kl_str said_at(kl_arena *a, kl_log_level level) {
    kl_error e = {0};
    kl_str   text;
    FILE    *file = tmpfile();
    assert_non_null(file);
    int saved = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    kl_log_set_level(level);
    kl_progress("working %d", 1);
    kl_warn("be %s", "careful");
    kl_debug("detail %d", 2);
    kl_progress("%s", "");
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_ok(kl_fs_read(&text, a, kl_arena_printf(a, "/proc/self/fd/%d", fileno(file)).ptr, 1000, &e));
    fclose(file);
    return text;
}

static void test_base_log__levels_choose_what_is_said(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    assert_str(said_at(a, KL_LOG_QUIET), "");
    assert_str(said_at(a, KL_LOG_NORMAL), "klineage: warning: be careful\n");
    assert_str(said_at(a, KL_LOG_VERBOSE), "klineage: warning: be careful\nklineage: detail 2\n");
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_base_log__levels_choose_what_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
