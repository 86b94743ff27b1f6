/* card_test.c - the data card says what was written, and no word of a journal becomes markup.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dataset_impl.h"
#include "kit/kit.h"
#include <string.h>

#define EVIL "`x` | <b>\n---\nconfigs:\n# heading"

static void test_dataset_card__names_are_data(void **state) {
    (void)state;
    kl_dataset_tally evil = {.name = KL_S(EVIL), .rows = 3},
                     train = {.name = KL_S("train"), .rows = 3};
    kl_dataset_family family = {
        .name = KL_S(EVIL), .split = KL_S("train"), .tasks = KL_S(EVIL), .rows = 3};
    const kl_str run = KL_S("0123456789abcdef");
    kl_dataset d = {.format = KL_S("sft"),
                    .runs = (kl_str[]){run},
                    .n_runs = 1,
                    .rows = 3,
                    .splits = &train,
                    .n_splits = 1,
                    .platforms = &evil,
                    .n_platforms = 1,
                    .refused = &evil,
                    .n_refused = 1,
                    .families = &family,
                    .n_families = 1,
                    .parquet = KL_S("written")};
    const kl_dataset_opts o = {.format = KL_DATASET_SFT};
    const char *card = kli_card(arena, &d, &o).ptr;
    assert_contains(card, "path: train.jsonl");
    assert_null(strstr(card, "test.jsonl"));
    assert_contains(card, "| ` x    <b> --- configs: # heading` | 3 |");
    assert_null(strstr(card, "\n# heading"));
    assert_contains(card, "## Refused");
    assert_contains(card, "`0123456789ab`");
}

/* A file that is not there must not be promised to a loader. */
static void test_dataset_card__without_rows(void **state) {
    (void)state;
    kl_dataset d = {.format = KL_S("rl"), .parquet = KL_S("not written: there is no row")};
    const kl_dataset_opts o = {.format = KL_DATASET_RL};
    const char *card = kli_card(arena, &d, &o).ptr;
    assert_null(strstr(card, "configs:"));
    assert_contains(card, "0 rows out of 0 steps");
}

static void test_dataset_card__replays_are_named(void **state) {
    (void)state;
    kl_dataset_tally model = {.name = KL_S("claude"), .rows = 1};
    kl_dataset d = {.format = KL_S("trace"), .models = &model, .n_models = 1};
    const kl_dataset_opts o = {.format = KL_DATASET_TRACE};
    assert_null(strstr(kli_card(arena, &d, &o).ptr, "of the replay"));
    model.name = KL_S("replay of claude");
    assert_contains(kli_card(arena, &d, &o).ptr, "of the replay");
}

int main(void) {
    const struct CMUnitTest tests[] = {KIT_TEST(test_dataset_card__names_are_data),
                                       KIT_TEST(test_dataset_card__without_rows),
                                       KIT_TEST(test_dataset_card__replays_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
