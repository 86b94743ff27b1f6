/* library_test.c - cards as their commands show them: the shipped library as it lies, and small
 * ones of its cards for whatever is written.  SPDX-License-Identifier: Apache-2.0 */
#include "command/asked.h"
#include <klineage/skill.h>

static int set_up(void **state) {
    asked_set_up(state);
    setenv("KLINEAGE_TASKS", KL_TEST_ROOT "/tasks", 1);
    setenv("KLINEAGE_CACHE", kit_path("cache"), 1);
    always(KL_OPTION_LIBRARY, SHIPPED);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, asked_tear_down)

/* Puts `new` in the place of the first `old` of a file. */
static void edit(const char *path, const char *old, const char *new) {
    const char *whole = kit_read(path), *at = strstr(whole, old);
    assert_non_null(at);
    const kl_str edited =
        kl_arena_printf(arena, "%.*s%s%s", (int)(at - whole), whole, new, at + strlen(old));
    assert_ok(kli_fs_write(path, edited, &e));
}

/* ---- list, show --------------------------------------------------------------------------- */

static size_t folders_in(const char *dir) {
    kl_str *names;
    size_t n = 0, found = 0;
    assert_ok(kli_fs_list(&names, &n, arena, dir, &e));
    for (size_t i = 0; i < n; i++)
        found += kli_fs_is_dir(kli_fs_join(arena, dir, names[i].ptr).ptr);
    return found;
}

static void test_library_list__has_every_card_under_its_folder(void **state) {
    static const char *const STATUS[] = {"admitted", "lifted", "rejected"};
    size_t folders = 0;
    (void)state;
    assert_ok(ASK(LIBRARY_LIST, NULL));
    for (size_t i = 0; i < KL_COUNT(STATUS); i++)
        folders += folders_in(kli_fs_join(arena, SHIPPED, STATUS[i]).ptr);
    assert_int_equal(count_of("cards"), folders);
    assert_int_equal(count_of("broken"), 0);
    for (size_t i = 0; i < count_of("cards"); i++) {
        const json_t *row = row_of("cards", i);
        const kl_str folder = kl_arena_copy(arena, said(row, "folder"));
        assert_contains(folder.ptr, kl_arena_copy(arena, said(row, "status")).ptr);
        assert_true(kli_json_real_or(row, "expected_gain", -1) >= 0);
        assert_contains(text, kl_arena_copy(arena, said(row, "name")).ptr);
    }
}

static void test_library_list__what_cannot_be_read_is_named(void **state) {
    (void)state;
    mine_has("admitted/pack-b-c");
    mine_has("admitted/prefetch-c");
    assert_ok(kli_fs_write(mine("admitted/prefetch-c/evidence.json"), KL_S("{"), &e));
    assert_ok(ASK(LIBRARY_LIST, NULL));
    assert_int_equal(count_of("cards"), 1);
    assert_int_equal(count_of("broken"), 1);
    assert_contains(text, "\nbroken    ");
    assert_contains(kl_arena_copy(arena, said(row_of("broken", 0), "folder")).ptr, "prefetch-c");
    assert_ok(ASK(LIBRARY_CHECK, NULL));
    assert_int_equal(answer.exit_code, 1);
    assert_contains(text, "1 unreadable");
}

static void test_library_list__an_empty_one_says_how_to_fill_it(void **state) {
    (void)state;
    always(KL_OPTION_LIBRARY, kit_path("empty"));
    assert_ok(kli_fs_mkdirs(kit_path("empty/lifted"), &e));
    assert_ok(ASK(LIBRARY_LIST, NULL));
    assert_int_equal(count_of("cards"), 0);
    assert_contains(text, "klineage lift LINEAGE");
}

static void test_card_show__is_the_file_byte_for_byte(void **state) {
    (void)state;
    assert_ok(ASK(CARD_SHOW, "pack-b-c", NULL));
    assert_string_equal(text, kit_read(SHIPPED "/admitted/pack-b-c/SKILL.md"));
    json_t *kept = json_loads(kit_read(SHIPPED "/admitted/pack-b-c/evidence.json"), 0, NULL);
    assert_true(json_equal(json_object_get(json, "evidence"), kept));
    json_decref(kept);
    assert_str(said(json_object_get(json, "card"), "status"), "admitted");
}

static void test_card_show__a_slip_is_answered_with_the_name(void **state) {
    (void)state;
    assert_err(KL_ENOENT, ASK(CARD_SHOW, "pack-a-c", NULL));
    assert_contains(e.hint, "did you mean pack-b-c?");
    assert_err(KL_ENOENT, ASK(CARD_SHOW, "nothing-like-any-of-them", NULL));
    assert_contains(e.hint, "klineage library list");
}

/* ---- check -------------------------------------------------------------------------------- */

static void test_library_check__an_edit_by_hand_is_found(void **state) {
    (void)state;
    mine_has("admitted/pack-b-c");
    edit(mine("admitted/pack-b-c/SKILL.md"), "\n#", "\nA sentence by hand.\n\n#");
    assert_ok(ASK(LIBRARY_CHECK, NULL));
    assert_int_equal(answer.exit_code, 1);
    assert_false(kli_json_bool_or(json, "good", true));
    assert_true(kli_json_bool_or(row_of("cards", 0), "edited", false));
    assert_contains(text, "1 edited by hand after admission; klineage admit NAME");
}

/* Each admitted contract tells its starts from what they led to, in a pool of one lineage. */
static void test_library_check__holds_contracts_against_known_states(void **state) {
    (void)state;
    mine_has("admitted/pack-b-c");
    mine_has("lineages/gemm-c.json");
    assert_ok(ASK(LIBRARY_CHECK, NULL));
    const json_t *proof = row_named("contracts", "card", "pack-b-c");
    assert_true(number(proof, "starts") > 0);
    assert_int_equal(number(proof, "starts_met"), number(proof, "starts"));
    assert_true(number(proof, "foreign_refused") <= number(proof, "foreign"));
    assert_contains(text, kli_json_bool_or(proof, "good", false) ? "tells     pack-b-c"
                                                                 : "fails     pack-b-c");
    assert_contains(text, "1 cards: 0 unreadable, 0 edited");
}

/* ---- judge -------------------------------------------------------------------------------- */

static void test_library_judge__counts_what_its_rows_say(void **state) {
    size_t trials = 0, stand = 0, fallen = 0;
    (void)state;
    assert_ok(ASK(LIBRARY_JUDGE, NULL));
    for (size_t i = 0; i < count_of("cards"); i++) {
        const json_t *rows = json_object_get(row_of("cards", i), "trials");
        for (size_t k = 0; k < json_array_size(rows); k++) {
            const json_t *row = json_array_get(rows, k);
            const bool stands = kli_json_bool_or(row, "stands", false);
            assert_int_equal(stands, kl_str_eq(said(row, "call"), KL_S("faster")));
            stand += stands;
            trials++;
        }
        fallen += kli_json_bool_or(row_of("cards", i), "falls", false);
    }
    assert_int_equal(number(json, "fall"), fallen);
    assert_int_equal(answer.exit_code, fallen > 0);
    assert_contains(text,
                    kl_arena_printf(arena, "%zu of %zu accepted trials hold", stand, trials).ptr);
}

static void test_library_judge__only_the_cards_that_are_named(void **state) {
    (void)state;
    assert_ok(ASK(LIBRARY_JUDGE, "pack-b-c", "prefetch-c", NULL));
    assert_int_equal(count_of("cards"), 2);
    assert_err(KL_ENOENT, ASK(LIBRARY_JUDGE, "pack-b-c", "packbc", NULL));
    assert_contains(e.message, "no card named packbc");
}

/* Every interval of the card shrinks to nothing: it falls, and is retired only when that is asked
 * for. */
static void test_library_judge__retires_what_fell_when_asked(void **state) {
    (void)state;
    mine_has("lifted/dtype-dot-c");
    const char *path = mine("lifted/dtype-dot-c/evidence.json");
    json_t *proof = json_loads(kit_read(path), 0, NULL), *row;
    size_t i;
    json_array_foreach(json_object_get(proof, "trials"), i, row) {
        json_object_set_new(row, "low", json_real(0.9));
        json_object_set_new(row, "high", json_real(1.1));
    }
    assert_ok(kli_fs_write(path, kli_json_dump(arena, proof, true), &e));
    json_decref(proof);
    assert_ok(ASK(LIBRARY_JUDGE, NULL));
    assert_int_equal(answer.exit_code, 1);
    assert_int_equal(number(json, "fall"), 1);
    assert_contains(text, "klineage library judge --retire");
    assert_true(kli_fs_is_dir(mine("lifted/dtype-dot-c")));
    with(KL_OPTION_RETIRE, "");
    assert_ok(ASK(LIBRARY_JUDGE, NULL));
    assert_int_equal(answer.exit_code, 0);
    assert_int_equal(number(json, "retired"), 1);
    assert_false(kli_fs_exists(mine("lifted/dtype-dot-c")));
    assert_true(kli_fs_is_dir(mine("retired/dtype-dot-c")));
    assert_ok(ASK(LIBRARY_JUDGE, NULL)); /* a retired card cannot fall again */
    assert_int_equal(number(json, "fall"), 0);
}

/* ---- coverage ----------------------------------------------------------------------------- */

static void test_library_coverage__every_edge_has_a_card_or_a_reason(void **state) {
    size_t taught = 0;
    (void)state;
    assert_ok(ASK(LIBRARY_COVERAGE, NULL));
    for (size_t i = 0; i < count_of("edges"); i++) {
        const json_t *row = row_of("edges", i);
        const bool why = said(row, "why").len > 0;
        if (!why) assert_true(json_is_string(json_object_get(row, "card")));
        if (json_is_null(json_object_get(row, "card"))) assert_true(why);
        taught += !why;
    }
    assert_true(taught > 0 && taught < count_of("edges"));
    assert_int_equal(number(json, "taught"), taught);
    const char *page = kit_read(KL_TEST_ROOT "/docs/lineages.md"); /* as it stands in the manual */
    assert_contains(page, kl_arena_printf(arena, "\n```\n%s```\n", text).ptr);
    mine_has("admitted/pack-b-c"); /* without lineages there is nothing to cover */
    assert_ok(ASK(LIBRARY_COVERAGE, NULL));
    assert_int_equal(count_of("edges"), 0);
}

/* ---- import ------------------------------------------------------------------------------- */

#define THEIRS(id)                                                                                 \
    "{\"skill_id\": \"" id "\", \"intent\": \"load by TMA\", \"carrier\": \"code\", "              \
    "\"precondition\": [\"Layout: aligned\"], \"risk\": [\"hang\"], "                              \
    "\"scope\": {\"cases\": [\"gemm\"], \"languages\": [\"cuda\"]}}"

static void test_library_import__makes_candidates_and_tells_the_rest(void **state) {
    (void)state;
    always(KL_OPTION_LIBRARY, kit_path("new"));
    assert_ok(kli_fs_mkdirs(kit_path("new/lifted"), &e));
    assert_ok(kli_fs_mkdirs(kit_path("theirs"), &e));
    kit_write("theirs/a.json", THEIRS("gemm.tma_load"));
    kit_write("theirs/b.json", "{\"skill_id\": 5}");
    assert_ok(ASK(LIBRARY_IMPORT, kit_path("theirs"), NULL));
    assert_int_equal(answer.exit_code, 1);
    assert_int_equal(count_of("cards"), 2);
    assert_int_equal(number(json, "failed"), 1);
    const json_t *row = row_named("cards", "name", "gemm-tma-load");
    assert_str(said(row, "action"), "tma_load");
    assert_true(json_is_null(json_object_get(row, "error")));
    assert_contains(text, "\nfailed  ");
    assert_contains(text, "1 of 2 cards are in");
    assert_false(json_is_true(json_object_get(row, "contract"))); /* nobody here has one */
    assert_true(kli_fs_is_dir(kit_path("new/lifted/gemm-tma-load")));
    assert_ok(ASK(LIBRARY_LIST, NULL));
    assert_str(said(row_of("cards", 0), "status"), "lifted");
}

static void test_library_import__again_is_the_same_card(void **state) {
    (void)state;
    always(KL_OPTION_LIBRARY, kit_path("new"));
    assert_ok(kli_fs_mkdirs(kit_path("new/lifted"), &e));
    const char *one = kit_write("one.json", THEIRS("gemm.tma_load"));
    assert_ok(ASK(LIBRARY_IMPORT, one, NULL));
    assert_int_equal(answer.exit_code, 0);
    assert_ok(ASK(LIBRARY_IMPORT, one, NULL));
    assert_int_equal(answer.exit_code, 0);
    assert_ok(ASK(LIBRARY_LIST, NULL));
    assert_int_equal(count_of("cards"), 1);
}

/* One card that cannot be taken is an error of the command, with its own words. */
static void test_library_import__of_one_bad_card_fails(void **state) {
    (void)state;
    always(KL_OPTION_LIBRARY, kit_path("new"));
    assert_true(ASK(LIBRARY_IMPORT, kit_write("bad.json", "{\"skill_id\": 5}"), NULL) != KL_OK);
    assert_ok(kli_fs_mkdirs(kit_path("nothing"), &e));
    assert_err(KL_ENOENT, ASK(LIBRARY_IMPORT, kit_path("nothing"), NULL));
    assert_false(kli_fs_exists(kit_path("new")));
}

/* ---- retrieve ----------------------------------------------------------------------------- */

static void retrieve_for(const char *platform) {
    with(KL_OPTION_PLATFORM, platform);
    with(KL_OPTION_WORKLOAD, "cpu");
}

static void test_retrieve__best_first_and_only_admitted(void **state) {
    (void)state;
    retrieve_for("x86-64-v4/gcc-12");
    assert_ok(ASK(RETRIEVE, "gemm", KL_TEST_ROOT "/tasks/gemm/naive.c", NULL));
    assert_int_equal(answer.exit_code, 0);
    assert_true(count_of("matches") > 0);
    double before = 0;
    for (size_t i = 0; i < count_of("matches"); i++) {
        const json_t *m = row_of("matches", i);
        const double score = kli_json_real_or(m, "score", -1);
        if (i && kl_str_eq(said(m, "fit"), said(row_of("matches", i - 1), "fit")) &&
            kli_json_bool_or(m, "intent", false) ==
                kli_json_bool_or(row_of("matches", i - 1), "intent", false))
            assert_true(score <= before);
        before = score;
        assert_true(kl_str_eq(said(m, "fit"), KL_S("fits")) ||
                    kl_str_eq(said(m, "fit"), KL_S("unknown")));
        assert_true(kli_fs_is_dir(
            kl_arena_printf(arena, SHIPPED "/admitted/%.*s", KL_STR_ARG(said(m, "card"))).ptr));
        assert_int_equal(json_array_size(json_object_get(m, "similarity")), 4);
    }
}

static void test_retrieve__all_adds_what_is_violated_and_top_bounds_it(void **state) {
    (void)state;
    retrieve_for("x86-64-v4/gcc-12");
    assert_ok(ASK(RETRIEVE, "gemm", KL_TEST_ROOT "/tasks/gemm/naive.c", NULL));
    const size_t fitting = count_of("matches");
    retrieve_for("x86-64-v4/gcc-12");
    with(KL_OPTION_ALL, "");
    with(KL_OPTION_TOP, "18446744073709551615"); /* every one; it is not wrapped */
    assert_ok(ASK(RETRIEVE, "gemm", KL_TEST_ROOT "/tasks/gemm/naive.c", NULL));
    assert_true(count_of("matches") > fitting);
    assert_contains(text, "violated ");
    const size_t every = count_of("matches");
    retrieve_for("x86-64-v4/gcc-12");
    with(KL_OPTION_ALL, "");
    with(KL_OPTION_TOP, "1");
    assert_ok(ASK(RETRIEVE, "gemm", KL_TEST_ROOT "/tasks/gemm/naive.c", NULL));
    assert_true(count_of("matches") < every);
}

static void test_retrieve__says_what_it_passes_over(void **state) {
    (void)state;
    mine_has("admitted/pack-b-c");
    mine_has("admitted/prefetch-c");
    edit(mine("admitted/prefetch-c/SKILL.md"), "\n#", "\nA sentence by hand.\n\n#");
    retrieve_for("x86-64-v4/gcc-12");
    assert_ok(ASK(RETRIEVE, "softmax", KL_TEST_ROOT "/tasks/softmax/naive.c", NULL));
    const json_t *left = row_named("left_out", "card", "prefetch-c");
    assert_contains(kl_arena_copy(arena, said(left, "why")).ptr, "edited by hand");
    assert_contains(text, "skipped prefetch-c: edited by hand");
    assert_int_equal(answer.exit_code, count_of("matches") ? 0 : 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_library_list__has_every_card_under_its_folder),
        TEST(test_library_list__what_cannot_be_read_is_named),
        TEST(test_library_list__an_empty_one_says_how_to_fill_it),
        TEST(test_card_show__is_the_file_byte_for_byte),
        TEST(test_card_show__a_slip_is_answered_with_the_name),
        TEST(test_library_check__an_edit_by_hand_is_found),
        TEST(test_library_check__holds_contracts_against_known_states),
        TEST(test_library_judge__counts_what_its_rows_say),
        TEST(test_library_judge__only_the_cards_that_are_named),
        TEST(test_library_judge__retires_what_fell_when_asked),
        TEST(test_library_coverage__every_edge_has_a_card_or_a_reason),
        TEST(test_library_import__makes_candidates_and_tells_the_rest),
        TEST(test_library_import__again_is_the_same_card),
        TEST(test_library_import__of_one_bad_card_fails),
        TEST(test_retrieve__best_first_and_only_admitted),
        TEST(test_retrieve__all_adds_what_is_violated_and_top_bounds_it),
        TEST(test_retrieve__says_what_it_passes_over),
    };
    return cmocka_run_group_tests_name("library", tests, NULL, NULL);
}
