/* gain_test.c - rows of evidence are kept and counted, and the gain model says what its file says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include "base/fs.h"
#include "base/test.h"
#include <math.h>
#include <string.h>

static kl_arena *arena;
static kl_str dir;

static int set_up(void **state) {
    kl_error e = {0};
    (void)state;
    arena = kl_arena_new();
    return kli_fs_temp_dir(&dir, arena, &e) != KL_OK;
}

static int tear_down(void **state) {
    (void)state;
    kli_fs_remove_tree(dir.ptr);
    kl_arena_free(arena);
    return 0;
}

/* ---- rows -------------------------------------------------------------------------------- */

static kl_probe a_row(const char *place, kl_probe_outcome outcome, double gain) {
    return (kl_probe){.place = kl_str_of(place),
                      .origin = KL_S("edge"),
                      .card = KL_S("pack-b-c"),
                      .action = KL_S("pack_b"),
                      .surface = KL_S("c"),
                      .task = KL_S("gemm"),
                      .state = KL_S("aa"),
                      .outcome = outcome,
                      .gain = gain,
                      .tries = 1};
}

static void some_rows(kl_probes *p) {
    const kl_probe rows[] = {a_row("b/K1", KL_PROBE_FASTER, 2), a_row("a/K1", KL_PROBE_FASTER, 4),
                             a_row("c/K1", KL_PROBE_DECLINED, 0),
                             a_row("d/K1", KL_PROBE_UNDECIDED, 1)};
    for (size_t i = 0; i < KL_COUNT(rows); i++) kl_probes_add(p, arena, &rows[i]);
}

static void test_skill_gain__a_row_is_known_by_its_place(void **state) {
    kl_probes p = {0}, back;
    kl_error e = {0};
    (void)state;
    some_rows(&p);
    some_rows(&p); /* the same evidence again adds nothing */
    assert_int_equal(p.n, 4);
    assert_ok(kl_probes_keep(&p, dir.ptr, &e));
    assert_ok(kl_probes_load(&back, arena, dir.ptr, &e));
    assert_int_equal(back.n, 4);
    assert_str(back.at[0].place, "a/K1");
    assert_int_equal(back.at[2].outcome, KL_PROBE_DECLINED);
    assert_true(back.at[0].gain == 4);
}

static void test_skill_gain__a_bad_row_is_named(void **state) {
    kl_probes p = {0};
    kl_error e = {0};
    (void)state;
    const kl_str path = kli_fs_join(arena, dir.ptr, "other.jsonl");
    assert_ok(kli_fs_write(path.ptr, KL_S("\n{\"hash\": 3}\n"), &e));
    assert_err(KL_EPARSE, kl_probes_read(&p, arena, path.ptr, &e));
    assert_contains(e.where, "line 2");
    assert_int_equal(p.n + p.n_states, 0);
}

static void test_skill_gain__the_matrix_counts_outcomes(void **state) {
    kl_probes p = {0};
    kl_matrix_cell *cells;
    (void)state;
    some_rows(&p);
    assert_int_equal(kl_probes_matrix(&cells, arena, &p), 1);
    assert_int_equal(cells[0].tried, 3); /* an undecided one is no vote */
    assert_int_equal(cells[0].n[KL_PROBE_FASTER], 2);
    assert_true(cells[0].middle == 3);
}

/* ---- the model --------------------------------------------------------------------------- */

/* Headroom alone matters, 0.5 for each of its standard deviations; pack_b gains 0.25 more. */
static void write_model(const char *more) {
    kl_buf b = {0};
    kl_error e = {0};
    kl_buf_printf(&b, "klineage gain model 1\nrows 70 tasks 7 sha256 00\n"
                      "held_out brier 0.2 brier_base 0.25 slope 0.9 coverage 0.8\n"
                      "intercept 0 1\nnoise 0.09 effects 0.07 widen 2\n");
    for (int f = 0; f < KL_GAIN_FEATURES; f++) {
        const bool headroom = f == KL_GAIN_HEADROOM;
        kl_buf_printf(&b, "feature %s 2 4 0 %g ", kl_gain_feature_name((kl_gain_feature)f),
                      headroom ? 0.5 : 0.0);
        for (int k = 0; k < KL_GAIN_FEATURES; k++) kl_buf_printf(&b, " 0");
        kl_buf_printf(&b, "\n");
    }
    kl_buf_printf(&b, "effect pack_b 6 1.5 0.25 0.07 ");
    for (int k = 0; k < KL_GAIN_FEATURES; k++) kl_buf_printf(&b, " 0");
    kl_buf_printf(&b, "\n%s", more);
    assert_ok(kli_fs_write(kli_fs_join(arena, dir.ptr, "gain.txt").ptr, kl_buf_str(&b), &e));
    kl_buf_fini(&b);
}

static void features_with(double out[KL_GAIN_FEATURES], double headroom) {
    for (int i = 0; i < KL_GAIN_FEATURES; i++) out[i] = NAN;
    out[KL_GAIN_HEADROOM] = headroom;
}

static void test_skill_gain__is_what_the_file_says(void **state) {
    kl_gain_model *m;
    kl_expectation x;
    kl_error e = {0};
    double f[KL_GAIN_FEATURES];
    (void)state;
    write_model("");
    assert_ok(kl_gain_load(&m, arena, dir.ptr, &e));
    features_with(f, 6); /* one standard deviation above the mean */
    kl_gain_expect(&x, m, KL_S("pack_b"), f);
    assert_true(fabs(x.p - 1 / (1 + exp(-1.5))) < 1e-12);
    assert_true(fabs(x.log_gain - 1.75) < 1e-12);
    assert_true(fabs(x.deviation - 2 * 0.4) < 1e-12);
    assert_int_equal(x.n, 6);
    features_with(f,
                  NAN); /* unknown is the mean; an action that nobody saw has the effect of none */
    kl_gain_expect(&x, m, KL_S("other:new"), f);
    assert_true(x.p == 0.5 && x.log_gain == 1 && x.n == 0);
    assert_true(fabs(x.deviation - 2 * 0.4) < 1e-12);
    assert_true(kl_gain_figures_of(m)->coverage == 0.8);
}

static void test_skill_gain__nothing_gains_more_than_the_device_allows(void **state) {
    const kl_expectation x = {.p = 0.5, .log_gain = 2, .deviation = 0.5};
    (void)state;
    assert_true(kl_gain_value(&x, INFINITY) == 1);
    assert_true(kl_gain_value(&x, 0.1) <= 0.05 && kl_gain_value(&x, 0.1) > 0.049);
    assert_true(fabs(kl_gain_value(&x, 2) - 0.5 * (2 - 0.5 * 0.3989422804)) < 1e-6);
    assert_true(kl_gain_value(&x, 0) == 0);
}

static void test_skill_gain__a_broken_model_is_named(void **state) {
    kl_gain_model *m;
    kl_error e = {0};
    (void)state;
    write_model("effect pack_b many\n");
    assert_err(KL_EPARSE, kl_gain_load(&m, arena, dir.ptr, &e));
    assert_contains(e.where, "gain.txt:15");
    assert_ok(kli_fs_write(kli_fs_join(arena, dir.ptr, "gain.txt").ptr,
                           KL_S("klineage gain model 1\nnoise 1 effects 1 widen 1\n"), &e));
    assert_err(KL_EPARSE, kl_gain_load(&m, arena, dir.ptr, &e));
    assert_contains(e.message, "no feature headroom");
}

static void test_skill_gain__no_model_is_none(void **state) {
    kl_gain_model *m;
    kl_error e = {0};
    (void)state;
    assert_ok(kl_gain_load(&m, arena, kli_fs_join(arena, dir.ptr, "nowhere").ptr, &e));
    assert_null(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skill_gain__a_row_is_known_by_its_place),
        cmocka_unit_test(test_skill_gain__a_bad_row_is_named),
        cmocka_unit_test(test_skill_gain__the_matrix_counts_outcomes),
        cmocka_unit_test(test_skill_gain__is_what_the_file_says),
        cmocka_unit_test(test_skill_gain__nothing_gains_more_than_the_device_allows),
        cmocka_unit_test(test_skill_gain__a_broken_model_is_named),
        cmocka_unit_test(test_skill_gain__no_model_is_none)};
    return cmocka_run_group_tests_name("skill_gain", tests, set_up, tear_down);
}
