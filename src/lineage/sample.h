/* sample.h - three small kernels for tests: an expert with a packed operand and a vector pragma,
 * the same without the packing, and without both.  Their times stand in their first lines, for
 * fake_track.c.  SPDX-License- Identifier: Apache-2.0 */
#ifndef KL_LINEAGE_SAMPLE_H
#define KL_LINEAGE_SAMPLE_H
#include <klineage/lineage.h>
#include "kernel/kernel.h"
#include "run/fake_track.h"
#include "base/test.h"
#include "base/fs.h"

#define SAMPLE_HEAD "#include <stdint.h>\n"
#define SAMPLE_LOOPS(pragma, operand)                                                              \
    "    for (int32_t i = 0; i < M; i++) {\n" pragma                                               \
    "        for (int32_t j = 0; j < N; j++) {\n            float sum = 0;\n"                      \
    "            for (int32_t k = 0; k < K; k++)\n                sum += x[i * K + k] * " operand  \
    ";\n            y[i * N + j] = sum;\n"                                                         \
    "        }\n    }\n}\n"
#define SAMPLE_PRAGMA "#pragma omp simd\n"
#define SAMPLE_PACKED(ns, sum)                                                                     \
    "// ns " ns "\n//! buffer packed: f32[K, N]\n//! launch gemm args(x, weight, y, packed, M, "   \
    "N, K)\n" SAMPLE_HEAD                                                                          \
    "void gemm(const float *x, const float *weight, float *y, float *packed, int32_t M, int32_t "  \
    "N, int32_t K)\n{\n"                                                                           \
    "    for (int32_t " sum " = 0; " sum " < K; " sum "++)\n        for (int32_t j = 0; j < N; "   \
    "j++)\n"                                                                                       \
    "            packed[" sum " * N + j] = weight[j * K + " sum                                    \
    "];\n" SAMPLE_LOOPS(SAMPLE_PRAGMA, "packed[k * N + j]")
#define SAMPLE_DIRECT(ns, pragma)                                                                  \
    "// ns " ns "\n//! launch gemm args(x, weight, y, M, N, K)\n" SAMPLE_HEAD                      \
    "void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t "      \
    "K)\n{\n" SAMPLE_LOOPS(pragma, "weight[j * K + k]")

#define SAMPLE_EXPERT SAMPLE_PACKED("100", "k")
#define SAMPLE_MIDDLE SAMPLE_DIRECT("200", SAMPLE_PRAGMA)
#define SAMPLE_SIMPLE SAMPLE_DIRECT("201", "")

typedef struct {
    kl_arena *arena;
    kl_error error;
    kl_task *task;
    const kl_workload *workload;
    kl_kernel *expert;
    fake_track track;
    kl_walk_opts opts;
    kl_lineage lineage;
} sample;

static inline int sample_setup(void **state) {
    sample *s = calloc(1, sizeof *s);
    kl_error e = {0};
    s->arena = kl_arena_new();
    assert_ok(kl_task_load(&s->task, s->arena, KL_TEST_ROOT "/tasks/gemm", &e));
    s->workload = kl_task_workload(s->task, (kl_str){0}, KL_ON_CPU);
    assert_non_null(s->workload);
    assert_ok(kl_kernel_parse(&s->expert, s->arena, KL_S(SAMPLE_EXPERT),
                              KL_S("some/where/Expert 9.c"), NULL, NULL, &e));
    fake_track_open(&s->track, s->arena);
    *state = s;
    return 0;
}

static inline int sample_teardown(void **state) {
    sample *s = *state;
    fake_track_close(&s->track);
    kl_arena_free(s->arena);
    free(s);
    return 0;
}

/* A reply that undoes or applies `action` by turning `from` into `to`. */
static inline void sample_says(sample *s, const char *action, const char *from, const char *to) {
    const kl_str edits = kl_edits_between(s->arena, kl_str_of(from), kl_str_of(to));
    fake_says(&s->track, kl_arena_printf(
                             s->arena, "Talk.\nACTION: %s\nLOCUS: gemm()\nWHY: it is simpler\n%.*s",
                             action, KL_STR_ARG(edits)));
}

static inline kl_err sample_walk(sample *s, kl_error *e) {
    return kl_lineage_walk(&s->lineage, &s->track.base, s->task, s->workload, s->expert, &s->opts,
                           e);
}

/* Two steps, the first of which pays and is derived again, then done. */
static inline void sample_whole_walk(sample *s) {
    sample_says(s, "pack_b", SAMPLE_EXPERT, SAMPLE_MIDDLE);
    sample_says(
        s, "pack_b", SAMPLE_MIDDLE,
        SAMPLE_PACKED("100.2", "depth")); /* another text than the expert's, nearly as fast */
    sample_says(s, "simd_pragma", SAMPLE_MIDDLE, SAMPLE_SIMPLE);
    fake_says(&s->track, KL_S("I cannot see what is missing."));
    fake_says(&s->track, KL_S("DONE: three plain loops"));
}

#endif
