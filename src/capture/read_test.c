/* read_test.c - what a watched program left, as a document: sound lines, and every other kind.
 * SPDX-License-Identifier: Apache-2.0 */
#include "capture/capture.h"
#include "capture/counts.h"
#include "base/fs.h"
#include "base/json.h"
#include "kit/kit.h"
#include <stdlib.h>
#include <string.h>

#define LAUNCH(number, more)                                                                       \
    "{\"record\":\"launch\",\"launch\":" number ",\"image\":-1,\"name\":\"f\",\"grid\":[1,2,3],"   \
    "\"block\":[32,1,1],\"cluster\":[1,1,1],\"shared\":0,\"cooperative\":false,\"graph\":false,"   \
    "\"overlaps\":false,\"arch\":90,\"device\":\"d\",\"told\":true,\"parameters\":[" more "]}"
#define PARAMETER(bytes, value, at)                                                                \
    "{\"offset\":0,\"bytes\":" bytes ",\"value\":\"" value "\",\"pointers\":[{\"at\":" at ","      \
    "\"allocation\":1,\"offset\":0,\"bytes\":16}],\"maps\":[]}"

static json_t *read_lines(const char *lines) {
    json_t *document = NULL;
    assert_ok(kli_fs_mkdirs(kit_path("left"), &e));
    (void)kit_write("left/7.jsonl", lines);
    assert_ok(kli_capture_read(&document, arena, kit_path("left"), kit_path("kept"), &e));
    return document;
}

static size_t n_launches(const json_t *document) {
    return json_array_size(json_object_get(document, "launches"));
}

static void test_capture_read__keeps_sound_launches(void **state) {
    capture_counts *counts = calloc(1, sizeof *counts);
    (void)state;
    assert_non_null(counts);
    counts->all = 5, counts->seen[0] = 2, counts->seen[3] = 3, counts->order[0] = 3;
    counts->order[1] = 99999, counts->order[2] = CAPTURE_MOST_LAUNCHES;
    assert_ok(kli_fs_mkdirs(kit_path("left"), &e));
    assert_ok(
        kli_fs_write(kit_path("left/7.counts"), (kl_str){(char *)counts, sizeof *counts}, &e));
    free(counts);
    json_t *d = read_lines("{\"record\":\"process\"}\n" LAUNCH("0", "") "\n" LAUNCH(
        "3", PARAMETER("8", "0011223344556677", "0")) "\n{\"record\":\"lau");
    assert_int_equal(n_launches(d), 2);
    assert_int_equal(kli_json_int_or(d, "seen", 0), 5);
    assert_int_equal(kli_json_int_or(d, "left_out", 0), 1);
    const json_t *second = kli_capture_launch(d, 1);
    assert_int_equal(kli_json_int_or(second, "count", 0), 3);
    assert_int_equal(kli_json_int_or(second, "process", 0), 7);
    assert_true(json_is_null(json_object_get(second, "cubin")));
    const json_t *order = json_object_get(d, "order");
    assert_int_equal(json_array_size(order), 5);
    assert_int_equal(json_integer_value(json_array_get(order, 0)), 1);
    assert_true(json_is_null(json_array_get(order, 1)) && json_is_null(json_array_get(order, 2)));
    assert_null(kli_capture_launch(d, 2));
    assert_null(kli_capture_launch(d, -1));
    json_decref(d);
}

static void test_capture_read__leaves_out_what_is_not_as_it_should_be(void **state) {
    static const char *const lines[] = {LAUNCH("-1", ""),
                                        LAUNCH("4096", ""),
                                        LAUNCH("0", "7"),
                                        LAUNCH("0", PARAMETER("0", "", "0")),
                                        LAUNCH("0", PARAMETER("4", "00", "0")),
                                        LAUNCH("0", PARAMETER("1", "zz", "0")),
                                        LAUNCH("0", PARAMETER("99999", "", "0")),
                                        LAUNCH("0", PARAMETER("1", "00", "-8")),
                                        LAUNCH("0", PARAMETER("1", "00", "\"a\"")),
                                        "{\"record\":\"launch\"}",
                                        "[]",
                                        "7",
                                        "\xff\xfe"};
    (void)state;
    for (size_t i = 0; i < KL_COUNT(lines); i++) {
        json_t *d = read_lines(lines[i]);
        if (n_launches(d)) fail_msg("%s", lines[i]);
        json_decref(d);
    }
    json_t *d = read_lines(LAUNCH("0", "") "\n" LAUNCH("0", "")); /* one number, one launch */
    assert_int_equal(n_launches(d), 1);
    json_decref(d);
}

static void test_capture_read__of_nothing_is_nothing(void **state) {
    json_t *d = read_lines("");
    (void)state;
    assert_int_equal(n_launches(d), 0);
    json_decref(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_capture_read__keeps_sound_launches),
        KIT_TEST(test_capture_read__leaves_out_what_is_not_as_it_should_be),
        KIT_TEST(test_capture_read__of_nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
