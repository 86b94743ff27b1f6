/* memory_test.c - what the system says of its memory, read.  SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "base/memory.h"

static void test_memory__lines_are_read(void **state) {
    (void)state;
    const char *info =
        "MemTotal:       24567890 kB\nMemFree:          123 kB\nMemAvailable:   2048 kB\n";
    assert_int_equal(kli_meminfo(info, "MemAvailable:"), 2048 * 1024);
    assert_int_equal(kli_meminfo(info, "SwapTotal:"), -1);
    const char *stat = "anon 1\ninactive_file_x 9\ninactive_file 4096\n";
    assert_int_equal(kli_memory_stat(stat, "inactive_file"), 4096);
    assert_int_equal(kli_memory_stat(stat, "active_file"), 0);
}

static void test_memory__there_is_some(void **state) {
    (void)state;
    const kli_memory_room m = kli_memory_room_now();
    assert_true(m.total >= 64 << 20);
    assert_true(m.available > 0 && m.available <= m.total);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory__lines_are_read),
        cmocka_unit_test(test_memory__there_is_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
