/* compare.c - is an output right?  Pure functions over bytes: no processes, no files.
 *
 * An element is good when |got - want| <= atol' + rtol |want|, with atol' = atol x min(1,
 * rms(want)): an absolute constant alone would let zeros pass wherever the answer is small.  Under
 * a stress scale above 1 it grows with the answer too.  NaN is never a wildcard: it must meet NaN,
 * an infinity the same infinity. The output as a whole is good when its relative RMS error is
 * within the budget, which the caller derives from the baseline's own error. Deliberately not here:
 * where the budget comes from (check.c) and what a failure is called (check.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Where an output is cut depends on its size alone: its sums are the same on every machine. */
enum { COMPARE_BLOCK = 2048, MAX_SPANS = 64, SPAN_ELEMENTS = 1 << 20 };

/* Widen `n` elements from index `start`; the common types without a call per element. */
static void compare_widen(double *out, kl_dtype t, const void *base, int64_t start, int64_t n) {
    const size_t first = (size_t)start;
    if (t == KL_F32) {
        const float *x = (const float *)base + first;
        for (int64_t i = 0; i < n; i++) out[i] = (double)x[i];
    } else if (t == KL_F64) {
        memcpy(out, (const double *)base + first, (size_t)n * sizeof *out);
    } else if (t == KL_BF16) {
        const uint16_t *x = (const uint16_t *)base + first;
        for (int64_t i = 0; i < n; i++) {
            const uint32_t bits = (uint32_t)x[i] << 16;
            float value;
            memcpy(&value, &bits, sizeof value);
            out[i] = (double)value;
        }
    } else {
        for (int64_t i = 0; i < n; i++) out[i] = kl_dtype_load(t, base, first + (size_t)i);
    }
}

static bool element_ok(double got, double want, double atol, double rtol, double *difference) {
    if (!isfinite(want) || !isfinite(got)) {
        *difference = INFINITY;
        return (isnan(got) && isnan(want)) || got == want;
    }
    *difference = fabs(got - want);
    return *difference <= atol + rtol * fabs(want);
}

/* Where the exact answer passes the range of the output's type, the right answer is what rounding
 * makes of it. */
static double as_type(kl_dtype t, double want) {
    _Alignas(8) char one[8];
    kl_dtype_store(t, one, 0, want);
    return kl_dtype_load(t, one, 0);
}

static void note_bad(kl_check_result *out, int64_t index, double got, double want) {
    if (out->bad++ == 0) {
        out->first_bad = index;
        out->got = got;
        out->expected = want;
    }
}

/* What is found in one range; merged in order, so that the first bad element is the first of all.
 */
typedef struct {
    kl_dtype got_type, want_type;
    const void *got, *want;
    int64_t from, to;
    bool exact;
    double atol, rtol, square, sum, max_abs;
    int64_t bad, first_bad;
    double bad_got, bad_want;
} span;

static void note_span(span *s, int64_t index, double got, double want) {
    if (s->bad++ > 0) return;
    s->first_bad = index;
    s->bad_got = got;
    s->bad_want = want;
}

static void judge_exactly(span *s, int64_t index, double got, double want) {
    if (got == want || (isnan(got) && isnan(want))) return;
    note_span(s, index, got, want);
    if (fabs(got - want) > s->max_abs) s->max_abs = fabs(got - want);
}

static void judge_element(span *s, int64_t index, double got, double want) {
    double difference;
    if (!element_ok(got, want, s->atol, s->rtol, &difference)) note_span(s, index, got, want);
    if (isfinite(difference)) {
        s->sum += difference * difference;
        if (difference > s->max_abs) s->max_abs = difference;
    } else if (!(got == want || (isnan(got) && isnan(want)))) {
        s->max_abs = INFINITY;
    }
}

static void judge_span(span *s) {
    double g[COMPARE_BLOCK], w[COMPARE_BLOCK];
    for (int64_t start = s->from; start < s->to; start += COMPARE_BLOCK) {
        const int64_t m = s->to - start < COMPARE_BLOCK ? s->to - start : COMPARE_BLOCK;
        compare_widen(g, s->got_type, s->got, start, m);
        compare_widen(w, s->want_type, s->want, start, m);
        for (int64_t i = 0; i < m; i++)
            if (s->exact)
                judge_exactly(s, start + i, g[i], w[i]);
            else
                judge_element(s, start + i, g[i],
                              !isfinite(g[i]) && isfinite(w[i]) ? as_type(s->got_type, w[i])
                                                                : w[i]);
    }
}

/* Squares of the finite expected values. */
static void square_span(span *s) {
    double w[COMPARE_BLOCK];
    for (int64_t start = s->from; start < s->to; start += COMPARE_BLOCK) {
        const int64_t m = s->to - start < COMPARE_BLOCK ? s->to - start : COMPARE_BLOCK;
        compare_widen(w, s->want_type, s->want, start, m);
        for (int64_t i = 0; i < m; i++) s->square += isfinite(w[i]) ? w[i] * w[i] : 0;
    }
}

typedef struct {
    span *spans;
    int n;
    void (*look)(span *s);
    atomic_int next;
} share;

static void *take_spans(void *argument) {
    share *work = argument;
    for (int i; (i = atomic_fetch_add(&work->next, 1)) < work->n;) work->look(&work->spans[i]);
    return NULL;
}

static int compare_cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* To all cores; what a thread that cannot be had would take, this one takes. */
static void share_out(span *spans, int n, void (*look)(span *s)) {
    share work = {.spans = spans, .n = n, .look = look};
    pthread_t threads[MAX_SPANS];
    const int helpers = n < 2 ? 0 : compare_cores() < n ? compare_cores() - 1 : n - 1;
    int started = 0;
    KL_ASSERT(n <= MAX_SPANS && helpers < MAX_SPANS);
    while (started < helpers && pthread_create(&threads[started], NULL, take_spans, &work) == 0)
        started++;
    take_spans(&work);
    while (started > 0) pthread_join(threads[--started], NULL);
}

static int cut(span *spans, const span *whole, int64_t n) {
    const int most = n / SPAN_ELEMENTS < MAX_SPANS ? (int)(n / SPAN_ELEMENTS) : MAX_SPANS,
              count = most < 1 ? 1 : most;
    for (int i = 0; i < count; i++) {
        spans[i] = *whole;
        spans[i].from = n * i / count;
        spans[i].to = n * (i + 1) / count;
    }
    KL_ASSERT(count <= MAX_SPANS && spans[0].from == 0 && spans[count - 1].to == n);
    return count;
}

/* Returns the sum of squared differences. */
static double merge(kl_check_result *out, const span *spans, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += spans[i].sum;
        if (spans[i].max_abs > out->max_abs_error) out->max_abs_error = spans[i].max_abs;
        if (spans[i].bad && out->bad == 0) {
            out->first_bad = spans[i].first_bad;
            out->got = spans[i].bad_got;
            out->expected = spans[i].bad_want;
        }
        out->bad += spans[i].bad;
    }
    KL_ASSERT((out->first_bad >= 0) == (out->bad > 0));
    return sum;
}

static void compare_floats(kl_check_result *out, span *spans, int count, int64_t n,
                           const kl_check *how) {
    double square = 0;
    share_out(spans, count, square_span);
    for (int i = 0; i < count; i++) square += spans[i].square;
    const double rms = n ? sqrt(square / (double)n) : 0;
    for (int i = 0; i < count; i++)
        spans[i].atol = how->atol * (rms < 1 || out->scale > 1 ? rms : 1);
    share_out(spans, count, judge_span);
    const double error = n ? sqrt(merge(out, spans, count) / (double)n) : 0;
    KL_ASSERT(out->bad <= n);
    out->rms_error = isinf(out->max_abs_error) ? INFINITY : rms > 0 ? error / rms : error;
}

static void compare_exact(kl_check_result *out, span *spans, int count) {
    share_out(spans, count, judge_span);
    (void)merge(out, spans, count);
    out->rms_error = out->bad ? INFINITY : 0;
}

/* Judge one output of `n` elements.  `out->budget` is set by the caller before; out->ok says the
 * whole. */
void kli_gate_compare(kl_check_result *out, kl_dtype got_type, const void *got, kl_dtype want_type,
                      const void *want, int64_t n, const kl_check *how) {
    out->bad = 0;
    out->first_bad = -1;
    out->max_abs_error = 0;
    KL_ASSERT(n >= 0 && got && want && how->kind != KL_CHECK_TOPK);
    span spans[MAX_SPANS];
    const span whole = {.got_type = got_type,
                        .want_type = want_type,
                        .got = got,
                        .want = want,
                        .exact = how->kind == KL_CHECK_EXACT,
                        .rtol = how->rtol,
                        .first_bad = -1};
    const int count = cut(spans, &whole, n);
    if (whole.exact) {
        compare_exact(out, spans, count);
        out->ok = out->bad == 0;
        return;
    }
    compare_floats(out, spans, count, n, how);
    const double allowed = (1.0 - (how->matched > 0 ? how->matched : 1.0)) * (double)n;
    out->ok = (double)out->bad <= allowed && out->rms_error <= out->budget &&
              (how->max_error <= 0 || out->max_abs_error <= how->max_error);
}

/* ---- top-k: any order, unique indices, selected values exactly those of the oracle ------- */

static int compare_by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct {
    const kl_plan_tensor *values, *indices, *ranked;
    const void *got_values, *got_indices, *want_values, *input;
    kl_dtype want_type;
    int64_t k, length;
    double *got, *want;
    unsigned char *seen;
} topk;

/* One row; returns the column of the first wrong entry, or -1. */
static int64_t topk_row(const topk *t, int64_t row, double *got_out, double *want_out) {
    memset(t->seen, 0, (size_t)t->length);
    for (int64_t i = 0; i < t->k; i++) {
        const size_t at = (size_t)(row * t->k + i);
        const double index = kl_dtype_load((kl_dtype)t->indices->dtype, t->got_indices, at);
        const int64_t j = index >= 0 && index < (double)t->length ? (int64_t)index : -1;
        t->got[i] = kl_dtype_load((kl_dtype)t->values->dtype, t->got_values, at);
        t->want[i] = kl_dtype_load(t->want_type, t->want_values, at);
        *got_out = index;
        *want_out = NAN;
        if (j < 0 || t->seen[j]) return i;
        t->seen[j] = 1;
        *want_out =
            kl_dtype_load((kl_dtype)t->ranked->dtype, t->input, (size_t)(row * t->length + j));
        *got_out = t->got[i];
        if (!(*want_out == t->got[i])) return i;
    }
    qsort(t->got, (size_t)t->k, sizeof *t->got, compare_by_value);
    qsort(t->want, (size_t)t->k, sizeof *t->want, compare_by_value);
    for (int64_t i = 0; i < t->k; i++) {
        *got_out = t->got[i];
        *want_out = t->want[i];
        if (t->got[i] != t->want[i]) return i;
    }
    return -1;
}

/* Judge a (values, indices) pair against the oracle's values and the ranked input; tensors are
 * indices into the plan. */
bool kli_compare_topk(kl_check_result *out, kl_arena *a, const kl_plan *plan, int values,
                      int indices, int input, const void *got_values, const void *got_indices,
                      kl_dtype want_type, const void *want_values, const void *ranked) {
    topk t = {.values = &plan->tensors[values],
              .indices = &plan->tensors[indices],
              .ranked = &plan->tensors[input],
              .got_values = got_values,
              .got_indices = got_indices,
              .want_values = want_values,
              .input = ranked,
              .want_type = want_type};
    KL_ASSERT(t.values->ndim > 0 && t.ranked->ndim > 0);
    t.k = t.values->dims[t.values->ndim - 1];
    t.length = t.ranked->dims[t.ranked->ndim - 1];
    KL_ASSERT(t.k > 0 && t.length > 0);
    t.got = KL_ARRAY(a, double, t.k);
    t.want = KL_ARRAY(a, double, t.k);
    t.seen = KL_ARRAY(a, unsigned char, t.length);
    const int64_t rows =
        (int64_t)(t.values->bytes / kl_dtype_bytes((kl_dtype)t.values->dtype)) / t.k;
    out->bad = 0;
    out->first_bad = -1;
    for (int64_t row = 0; row < rows; row++) {
        double got, want;
        const int64_t column = topk_row(&t, row, &got, &want);
        if (column >= 0) note_bad(out, row * t.k + column, got, want);
    }
    out->rms_error = out->bad ? INFINITY : 0;
    out->ok = out->bad == 0;
    return out->ok;
}
