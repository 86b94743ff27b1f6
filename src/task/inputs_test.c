/* Tests of inputs.c: moments and promises of every distribution, and bytes that do not depend on
 * threads. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "fixtures.h"

/* x[ROWS, COLUMNS] of `dtype` drawn as `dist` says; the data is freed with the test. */
typedef struct {
    kl_shape shape;
    kl_dtype dtype;
    void *data;
} drawn;

static void use_dist(fixture *f, const char *dtype, const char *shape, const char *dist) {
    const char *x =
        kl_arena_printf(f->arena, "\"x\": {\"shape\": %s, \"dtype\": \"%s\"}", shape, dtype).ptr;
    const char *section =
        kl_arena_printf(f->arena, ", \"klineage\": {\"inputs\": {\"x\": %s}}", dist).ptr;
    assert_ok(parse_definition(f, definition_with(f, AXES, x, OUTPUTS, section)));
    assert_ok(parse_workloads(f, "{\"uuid\": \"u\", \"axes\": {\"M\": 100, \"N\": 1}}"));
}

static drawn draw_seeded(fixture *f, uint64_t seed, double scale, int threads) {
    drawn d = {.dtype = f->task->workloads[0].dtypes[0]};
    assert_ok(kl_task_shape(&d.shape, f->task, f->task->workloads, 0, &f->error));
    d.data = kl_arena_alloc(f->arena, d.shape.bytes, 1);
    assert_ok(
        kl_task_fill(d.data, f->task, f->task->workloads, 0, seed, scale, threads, &f->error));
    return d;
}

static drawn draw(fixture *f, const char *dtype, const char *shape, const char *dist) {
    use_dist(f, dtype, shape, dist);
    return draw_seeded(f, 17, 1, 1);
}

static double at(const drawn *d, int64_t i) { return kl_dtype_load(d->dtype, d->data, (size_t)i); }

typedef struct {
    double mean, variance, fourth, low, high, zeros;
} moments;

static moments moments_of(const drawn *d) {
    moments m = {.low = INFINITY, .high = -INFINITY};
    const double n = (double)d->shape.elems;
    for (int64_t i = 0; i < d->shape.elems; i++) {
        const double x = at(d, i);
        m.mean += x / n;
        m.low = fmin(m.low, x);
        m.high = fmax(m.high, x);
        m.zeros += x == 0 ? 1 / n : 0;
    }
    for (int64_t i = 0; i < d->shape.elems; i++) {
        const double centred = at(d, i) - m.mean;
        m.variance += centred * centred / n;
        m.fourth += centred * centred * centred * centred / n;
    }
    return m;
}

static void expect_near(double got, double wanted, double within) {
    if (!(fabs(got - wanted) <= within)) fail_msg("%g is not within %g of %g", got, within, wanted);
}

static void test_task_inputs__normal_has_mean_0_and_the_variance_of_its_scale(void **state) {
    fixture *f = *state;
    static const char *const dtypes[] = {"float64", "float32", "float16", "bfloat16",
                                         "float8_e4m3fn"};
    for (size_t i = 0; i < KL_COUNT(dtypes); i++) {
        const drawn d = draw(f, dtypes[i], "[400, 500]", "{\"dist\": \"normal\", \"scale\": 2}");
        const moments m = moments_of(&d);
        expect_near(m.mean, 0, 0.02);
        expect_near(m.variance, 4, 0.05);
        expect_near(m.fourth / (m.variance * m.variance), 2.85,
                    0.1); /* eight uniforms: 3 - 1.2 / 8 */
        assert_true(m.high < 9.8 + 0.5 && m.low > -9.8 - 0.5 && m.high > 6);
    }
}

static void test_task_inputs__stress_scales_only_normal_inputs(void **state) {
    fixture *f = *state;
    use_dist(f, "float32", "[400, 500]", "{\"dist\": \"normal\"}");
    const drawn one = draw_seeded(f, 5, 1, 1), many = draw_seeded(f, 5, 64, 1);
    for (int64_t i = 0; i < one.shape.elems; i += 997)
        assert_true(at(&many, i) == 64 * at(&one, i));
    use_dist(f, "float32", "[400, 500]", "{\"dist\": \"uniform\"}");
    const drawn plain = draw_seeded(f, 5, 1, 1), same = draw_seeded(f, 5, 64, 1);
    assert_memory_equal(plain.data, same.data, plain.shape.bytes);
}

static void test_task_inputs__uniform_stays_in_its_bounds(void **state) {
    fixture *f = *state;
    const drawn d =
        draw(f, "float32", "[400, 500]", "{\"dist\": \"uniform\", \"low\": 80, \"high\": \"M\"}");
    const moments m = moments_of(&d);
    assert_true(m.low >= 80 && m.high < 100);
    expect_near(m.mean, 90, 0.1);
    expect_near(m.variance, 400.0 / 12, 0.4);
}

static void test_task_inputs__uniform_int_reaches_every_value(void **state) {
    fixture *f = *state;
    static const char *const dtypes[] = {"int64", "int32", "int16", "int8", "float32"};
    for (size_t k = 0; k < KL_COUNT(dtypes); k++) {
        const drawn d = draw(f, dtypes[k], "[400, 50]",
                             "{\"dist\": \"uniform_int\", \"low\": -3, \"high\": \"M - 93\"}");
        int counts[10] = {0};
        for (int64_t i = 0; i < d.shape.elems; i++) counts[(int)at(&d, i) + 3]++;
        for (int i = 0; i < 10; i++) expect_near(counts[i], 2000, 250);
    }
    const drawn wide = draw(f, "int64", "[100]",
                            "{\"dist\": \"uniform_int\", \"low\": \"-9223372036854775807 - 1\", "
                            "\"high\": \"9223372036854775807\"}");
    int64_t any = 0;
    for (int i = 0; i < 100; i++) any |= ((const int64_t *)wide.data)[i];
    assert_true((any & 0xff) == 0xff && any < 0); /* low bits too: not through a double */
}

static void test_task_inputs__defaults_for_integers_are_their_usual_ranges(void **state) {
    fixture *f = *state;
    assert_ok(parse_definition(
        f, definition_with(f, AXES, "\"x\": {\"shape\": [40000], \"dtype\": \"uint8\"}", OUTPUTS,
                           "")));
    assert_ok(parse_workloads(f, WORKLOAD));
    const drawn d = draw_seeded(f, 3, 1, 1);
    const moments m = moments_of(&d);
    assert_true(m.low == 0 && m.high == 255);
    expect_near(m.mean, 127.5, 2);
}

static void expect_offsets(const drawn *d, int64_t total, int64_t *shortest, int64_t *longest) {
    const int64_t n = d->shape.elems - 1;
    *shortest = INT64_MAX;
    *longest = 0;
    assert_true(at(d, 0) == 0);
    assert_true(at(d, n) == (double)total);
    for (int64_t i = 0; i < n; i++) {
        const int64_t part = (int64_t)(at(d, i + 1) - at(d, i));
        *shortest = part < *shortest ? part : *shortest;
        *longest = part > *longest ? part : *longest;
    }
    assert_true(*shortest >= 1);
}

static void test_task_inputs__offsets_rise_to_the_total(void **state) {
    fixture *f = *state;
    int64_t shortest, longest;
    drawn d = draw(f, "int32", "[101]", "{\"dist\": \"offsets\", \"total\": \"M * 1000\"}");
    expect_offsets(&d, 100000, &shortest, &longest);
    assert_true(longest > 2 * 1000 && shortest < 500);
    d = draw(f, "int64", "[101]",
             "{\"dist\": \"offsets\", \"total\": \"M * 1000\", \"even\": true}");
    expect_offsets(&d, 100000, &shortest, &longest);
    assert_true(longest == 1000 && shortest == 1000);
    d = draw(f, "int32", "[101]", "{\"dist\": \"offsets\", \"total\": 100}");
    expect_offsets(&d, 100, &shortest, &longest);
    d = draw(f, "int64", "[2]", "{\"dist\": \"offsets\", \"total\": 4611686018427387904}");
    expect_offsets(&d, (int64_t)1 << 62, &shortest, &longest);
    d = draw(f, "int64", "[4001]", "{\"dist\": \"offsets\", \"total\": 9223372036854775807}");
    assert_true(((const int64_t *)d.data)[4000] == INT64_MAX);
}

static void test_task_inputs__constants_and_bools(void **state) {
    fixture *f = *state;
    drawn d = draw(f, "float16", "[10]", "{\"dist\": \"constant\", \"value\": 0.1}");
    assert_true(at(&d, 0) == 0.0999755859375 && at(&d, 9) == at(&d, 0));
    d = draw(f, "int64", "[3]", "{\"dist\": \"constant\", \"value\": 16777217}");
    assert_int_equal(((const int64_t *)d.data)[2], 16777217);
    d = draw(f, "bool", "[40000]", "{\"dist\": \"bool\"}");
    expect_near(moments_of(&d).mean, 0.5, 0.02);
}

static void test_task_inputs__gates_lie_in_their_range(void **state) {
    fixture *f = *state;
    drawn d = draw(f, "float32", "[400, 500]", "{\"dist\": \"sigmoid\"}");
    moments m = moments_of(&d);
    assert_true(m.low > 0 && m.high < 1);
    expect_near(m.mean, 0.5, 0.005);
    expect_near(m.variance, 0.0434, 0.002); /* of the logistic-normal distribution */
    d = draw(f, "float32", "[400, 500]", "{\"dist\": \"logsigmoid\", \"scale\": 0.0625}");
    m = moments_of(&d);
    assert_true(m.high < 0 && m.zeros == 0);
    expect_near(m.mean, -0.8061 / 16, 0.001); /* E log sigmoid(N(0,1)) */
}

static void test_task_inputs__inactive_columns_are_zero_in_every_row(void **state) {
    fixture *f = *state;
    const drawn d = draw(f, "float32", "[30, 48]",
                         "{\"dist\": \"logsigmoid\", \"scale\": 0.0625, \"active\": 0.75}");
    int active = 0;
    for (int column = 0; column < 48; column++) {
        const bool on = at(&d, column) != 0;
        active += on ? 1 : 0;
        for (int row = 0; row < 30; row++) assert_int_equal(at(&d, row * 48 + column) != 0, on);
    }
    assert_int_equal(active, 36);
    const drawn few = draw(f, "float32", "[2, 5]", "{\"dist\": \"normal\", \"active\": 0.5}");
    expect_near(moments_of(&few).zeros, 0.4, 1e-9); /* ceil(2.5) of 5 are active */
}

static void expect_distinct(fixture *f, const char *dtype, int rows, int columns) {
    const char *shape = kl_arena_printf(f->arena, "[%d, %d]", rows, columns).ptr;
    const drawn d = draw(f, dtype, shape, "{\"dist\": \"distinct\"}");
    bool differs = columns < 8 || rows < 2;
    for (int row = 0; row < rows; row++) {
        int64_t inversions = 0;
        for (int i = 0; i < columns; i++)
            for (int k = i + 1; k < columns; k++) {
                const double x = at(&d, (int64_t)row * columns + i),
                             y = at(&d, (int64_t)row * columns + k);
                if (x == y) fail_msg("%s: two of a row of %d are %g", dtype, columns, x);
                inversions += x > y ? 1 : 0;
            }
        for (int i = 0; row > 0 && i < columns; i++)
            differs = differs || at(&d, i) != at(&d, (int64_t)row * columns + i);
        if (columns >
            60) /* in random order: a quarter of all pairs of indices, within seven deviations */
            expect_near((double)inversions, columns * (columns - 1) / 4.0,
                        7 * sqrt(columns * (columns - 1.0) * (2.0 * columns + 5) / 72));
    }
    assert_true(differs);
}

static void test_task_inputs__distinct_has_no_ties_in_a_row(void **state) {
    fixture *f = *state;
    static const struct {
        const char *dtype;
        int columns;
    } rows[] = {
        {"float32", 2000},    {"float64", 999},   {"float16", 1000},     {"float16", 9000},
        {"bfloat16", 500},    {"bfloat16", 4096}, {"float8_e4m3fn", 32}, {"float8_e4m3fn", 158},
        {"float8_e5m2", 142}, {"int32", 1000},    {"int8", 256},         {"uint8", 256},
        {"bool", 2},          {"int64", 1},       {"float32", 1},        {"float32", 3}};
    for (size_t i = 0; i < KL_COUNT(rows); i++)
        expect_distinct(f, rows[i].dtype, rows[i].columns > 4000 ? 1 : 3, rows[i].columns);
}

static void test_task_inputs__ties_has_few_values(void **state) {
    fixture *f = *state;
    static const char *const dtypes[] = {"float32", "bfloat16"};
    for (size_t k = 0; k < KL_COUNT(dtypes); k++) {
        const drawn d = draw(f, dtypes[k], "[400, 500]", "{\"dist\": \"ties\"}");
        const moments m = moments_of(&d);
        for (int64_t i = 0; i < d.shape.elems; i++)
            assert_true(at(&d, i) * 2 == floor(at(&d, i) * 2) && fabs(at(&d, i)) <= 10);
        expect_near(m.mean, 0, 0.02);
        expect_near(m.variance, 1 + 1.0 / 48, 0.02);
    }
}

static void test_task_inputs__l2norm_gives_rows_of_length_1(void **state) {
    fixture *f = *state;
    static const char *const shapes[] = {"[100, 128]", "[3, 5000]", "[7, 1024]", "[4, 1]"};
    for (size_t k = 0; k < KL_COUNT(shapes); k++) {
        const drawn d = draw(f, "float32", shapes[k],
                             "{\"dist\": \"normal\", \"l2norm\": true, \"scale\": 0.5}");
        const int64_t row = d.shape.dims[1];
        for (int64_t i = 0; i < d.shape.elems / row; i++) {
            double squares = 0;
            for (int64_t j = 0; j < row; j++) squares += at(&d, i * row + j) * at(&d, i * row + j);
            expect_near(sqrt(squares), 0.5, 1e-3);
        }
    }
    const drawn d = draw(f, "float32", "[400, 128]", "{\"l2norm\": true}");
    expect_near(moments_of(&d).variance, 1.0 / 128, 1e-4);
}

static void test_task_inputs__bytes_depend_on_seed_name_and_index_alone(void **state) {
    fixture *f = *state;
    static const struct {
        const char *dtype, *dist;
    } rows[] = {{"float32", "{}"},
                {"bfloat16", "{\"scale\": 3}"},
                {"float16", "{\"l2norm\": true}"},
                {"float64", "{\"dist\": \"uniform\"}"},
                {"int64", "{\"dist\": \"uniform_int\", \"high\": 1000}"},
                {"float32", "{\"dist\": \"logsigmoid\", \"active\": 0.3}"},
                {"float32", "{\"dist\": \"distinct\"}"},
                {"bool", "{\"dist\": \"bool\"}"},
                {"float32", "{\"dist\": \"ties\"}"},
                {"bfloat16", "{\"dist\": \"sigmoid\"}"},
                {"int32", "{\"dist\": \"constant\", \"value\": 7}"}};
    for (size_t k = 0; k < KL_COUNT(rows); k++) {
        use_dist(f, rows[k].dtype, "[601, 523]", rows[k].dist);
        const drawn one = draw_seeded(f, 17, 1, 1);
        for (int threads = 0; threads < 1000; threads = threads * 3 + 2) {
            const drawn many = draw_seeded(f, 17, 1, threads);
            assert_memory_equal(one.data, many.data, one.shape.bytes);
        }
        const drawn other = draw_seeded(f, 18, 1, 1);
        if (strstr(rows[k].dist, "constant") == NULL)
            assert_memory_not_equal(one.data, other.data, one.shape.bytes);
    }
    use_dist(f, "float32", "[601, 523]", "{}");
    const drawn large = draw_seeded(f, 17, 1, 2);
    use_dist(f, "float32", "[100]", "{}");
    const drawn small = draw_seeded(f, 17, 1, 1);
    assert_memory_equal(large.data, small.data, small.shape.bytes);
}

static void test_task_inputs__tensors_of_one_task_differ(void **state) {
    fixture *f = *state;
    const char *inputs = "\"a\": {\"shape\": [100], \"dtype\": \"float32\"}, \"b\": {\"shape\": "
                         "[100], \"dtype\": \"float32\"}";
    float a[100], b[100];
    assert_ok(parse_definition(f, definition_with(f, AXES, inputs, OUTPUTS, "")));
    assert_ok(parse_workloads(f, WORKLOAD));
    assert_ok(kl_task_fill(a, f->task, f->task->workloads, 0, 1, 1, 1, &f->error));
    assert_ok(kl_task_fill(b, f->task, f->task->workloads, 1, 1, 1, 1, &f->error));
    assert_memory_not_equal(a, b, sizeof a);
    assert_err(KL_EINVAL, kl_task_fill(a, f->task, f->task->workloads, 2, 1, 1, 1, &f->error));
    assert_err(KL_EINVAL, kl_task_fill(a, f->task, f->task->workloads, -1, 1, 1, 1, &f->error));
}

static void test_task_inputs__scalars_are_stored_in_their_dtype(void **state) {
    fixture *f = *state;
    float value = 0;
    assert_ok(parse_definition(f, definition_with(f, AXES, INPUTS, OUTPUTS, "")));
    assert_ok(parse_workloads(
        f, "{\"uuid\": \"u\", \"axes\": {\"M\": 3, \"N\": 5}, \"inputs\": {\"s\": {\"type\": "
           "\"scalar\", \"value\": 0.125}}}"));
    assert_ok(kl_task_fill(&value, f->task, f->task->workloads, 1, 1, 1, 1, &f->error));
    assert_true(value == 0.125f);
}

/* The fast paths against base's careful one, through values of every size: scale reaches subnormals
 * and overflow. */
static void test_task_inputs__fast_stores_round_like_kl_dtype_store(void **state) {
    fixture *f = *state;
    static const char *const dtypes[] = {"float16", "bfloat16"};
    static const double scales[] = {1, 0x1p-14, 0x1p-24, 0x1p-130, 0x1p14, 0x1p126};
    for (size_t k = 0; k < KL_COUNT(dtypes); k++)
        for (size_t s = 0; s < KL_COUNT(scales); s++) {
            use_dist(f, "float32", "[50000]", "{}");
            const drawn exact = draw_seeded(f, s, scales[s], 1);
            use_dist(f, dtypes[k], "[50000]", "{}");
            const drawn fast = draw_seeded(f, s, scales[s], 1);
            for (size_t i = 0; i < 50000; i++) {
                uint16_t wanted;
                kl_dtype_store(fast.dtype, &wanted, 0, at(&exact, (int64_t)i));
                if (wanted != ((const uint16_t *)fast.data)[i])
                    fail_msg("%s of %a is %04x, not %04x", dtypes[k], at(&exact, (int64_t)i),
                             ((const uint16_t *)fast.data)[i], wanted);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_of(test_task_inputs__normal_has_mean_0_and_the_variance_of_its_scale),
        test_of(test_task_inputs__stress_scales_only_normal_inputs),
        test_of(test_task_inputs__uniform_stays_in_its_bounds),
        test_of(test_task_inputs__uniform_int_reaches_every_value),
        test_of(test_task_inputs__defaults_for_integers_are_their_usual_ranges),
        test_of(test_task_inputs__offsets_rise_to_the_total),
        test_of(test_task_inputs__constants_and_bools),
        test_of(test_task_inputs__gates_lie_in_their_range),
        test_of(test_task_inputs__inactive_columns_are_zero_in_every_row),
        test_of(test_task_inputs__distinct_has_no_ties_in_a_row),
        test_of(test_task_inputs__ties_has_few_values),
        test_of(test_task_inputs__l2norm_gives_rows_of_length_1),
        test_of(test_task_inputs__bytes_depend_on_seed_name_and_index_alone),
        test_of(test_task_inputs__tensors_of_one_task_differ),
        test_of(test_task_inputs__scalars_are_stored_in_their_dtype),
        test_of(test_task_inputs__fast_stores_round_like_kl_dtype_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
