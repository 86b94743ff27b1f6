/* table_test.c - what the journal's rows say of a track, and how much of it has room.
 * SPDX-License-Identifier: Apache-2.0 */
#include "experiment_impl.h"
#include "base/test.h"

#define STEP(track, n, json)                                                                       \
    { KL_S("run"), KL_S(track), n, KL_S(json) }

static void test_experiment_table__says_what_the_steps_say(void **state) {
    (void)state;
    const kl_store_step steps[] = {
        STEP("a", 0,
             "{\"action\": \"start\", \"best\": true, \"ratio\": 0.5, \"spent_microusd\": 0}"),
        STEP("a", 1,
             "{\"action\": \"reference\", \"best\": false, \"ratio\": 3, \"spent_microusd\": 0}"),
        STEP("a", 2,
             "{\"action\": \"tile\", \"parent\": \"a0\", \"best\": true, \"ratio\": 1.25, "
             "\"spent_microusd\": 40}"),
        STEP("a", 3,
             "{\"action\": \"fuse\", \"parent\": \"a0\", \"best\": false, \"ratio\": 1.1, "
             "\"spent_microusd\": 90}"),
        STEP("a", 4,
             "{\"action\": \"end\", \"best\": false, \"accepted\": true, \"ratio\": 2.5, "
             "\"spent_microusd\": 90}"),
        STEP("c", 0, "{\"action\": \"start\", \"best\": true, \"ratio\": 0.5}"),
        STEP("c", 1, "{\"action\": \"tile\", \"parent\": \"a0\", \"best\": true, \"ratio\": 1.25}"),
        STEP("c", 2, "{\"action\": \"end\", \"ratio\": 1.01, \"accepted\": false}"),
        STEP("b", 0, "no JSON"),
        STEP("gone", 0, "{}"),
    };
    kli_standing rows[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    for (int again = 0; again < 2; again++) kli_standings_read(rows, 3, steps, KL_COUNT(steps));
    assert_int_equal(rows[0].proposals, 2);
    assert_true(rows[0].best > 1.24 && rows[0].best < 1.26);
    assert_int_equal(rows[0].spent_microusd, 90);
    assert_int_equal(rows[1].proposals, 0);
    assert_true(rows[2].best > 0.49 &&
                rows[2].best < 0.51); /* side by side it was not faster: the start stays */
}

static int lines_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static size_t longest(const char *text) {
    size_t most = 0;
    for (size_t n; *text; text += n + (text[n] == '\n'))
        most = (n = strcspn(text, "\n")) > most ? n : most;
    return most;
}

static void test_experiment_table__never_is_larger_than_its_window(void **state) {
    (void)state;
    kli_standing rows[40];
    for (int i = 0; i < 40; i++)
        rows[i] = (kli_standing){
            .name = "a-rather-long-name-of-a-workload-that-somebody-thought-of/klineage-deep/12",
            .state = i == 37 ? KL_TRACK_RUNS
                     : i < 5 ? KL_TRACK_ENDED
                             : KL_TRACK_WAITS,
            .proposals = 100000,
            .best = 1234.5,
            .spent_microusd = 99999999999};
    for (int lines = 5; lines < 60; lines += 3)
        for (int columns = 41; columns < 400; columns += 13) {
            kl_buf b = {0};
            int said = kli_standings_render(&b, rows, 40, lines, columns, 1000000, 61000000000);
            assert_int_equal(lines_of(b.ptr), said);
            assert_true(said <= lines && longest(b.ptr) <= (size_t)columns);
            assert_contains(b.ptr, "5 of 40 ended");
            assert_contains(b.ptr, "running"); /* the one that runs is always among them */
            kl_buf_fini(&b);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experiment_table__says_what_the_steps_say),
        cmocka_unit_test(test_experiment_table__never_is_larger_than_its_window)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
