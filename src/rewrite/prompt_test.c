/* prompt_test.c - the vocabulary, the texts that models are sent, and what they are told of a
 * verdict.  SPDX-License-Identifier: Apache-2.0 */
#include "base/parts.h"
#include "fixture.h"
#include "rewrite/rewrite.h"

#include <math.h>

/* ---- the vocabulary ---------------------------------------------------------------------- */

static void test_the_core_is_there(void **state) {
    (void)state;
    static const char *const CORE[] = {"loop_order",
                                       "coalesce",
                                       "tile_block",
                                       "tile_larger",
                                       "thread_tile_1d",
                                       "thread_tile_2d",
                                       "warp_tile",
                                       "vectorize_global",
                                       "transpose_in_smem",
                                       "pad_bank",
                                       "swizzle_xor",
                                       "hoist_index",
                                       "unroll",
                                       "double_buffer",
                                       "cp_async",
                                       "multistage_pipeline",
                                       "tma_load",
                                       "mbarrier_ptx",
                                       "warp_specialize",
                                       "setmaxnreg",
                                       "multi_consumer",
                                       "persistent_grid",
                                       "raster_group",
                                       "cluster_multicast",
                                       "tma_store_async",
                                       "prefetch",
                                       "fma_simd",
                                       "register_block_simd",
                                       "multi_accumulator",
                                       "mma_ldmatrix",
                                       "wgmma",
                                       "stmatrix_epilogue",
                                       "fuse_epilogue",
                                       "warp_shuffle_reduce",
                                       "warp_scan",
                                       "one_pass_online",
                                       "flash_fuse",
                                       "implicit_gemm",
                                       "radix_select",
                                       "gemm_phase_decomposition",
                                       "cache_block",
                                       "pack_a",
                                       "pack_b",
                                       "omp_parallel"};
    for (size_t i = 0; i < KL_COUNT(CORE); i++)
        if (!kl_action_find(kl_str_of(CORE[i]))) fail_msg("%s is missing", CORE[i]);
}

static void test_rows_are_whole(void **state) {
    (void)state;
    for (int i = 0; kl_action_each(i); i++) {
        const kl_action *x = kl_action_each(i);
        assert_true(kl_action_find(kl_str_of(x->id)) == x); /* ids are unique */
        assert_true(kl_action_valid(kl_str_of(x->id)));
        assert_true(x->forward[0] && x->backward[0] && x->families);
        for (kl_str rest = kl_str_of(x->after), *r = &rest; r->len;) {
            *r = kl_str_trim(*r);
            size_t n = 0;
            while (n < r->len && r->ptr[n] != ' ') n++;
            if (!kl_action_find((kl_str){r->ptr, n}))
                fail_msg("%s comes after %.*s, which is no action", x->id, (int)n, r->ptr);
            *r = (kl_str){r->ptr + n, r->len - n};
        }
    }
    assert_null(kl_action_each(-1));
}

static bool offered(kl_arena *a, const kl_surface *s, const kl_facts *f, const char *id) {
    return kli_contains(kl_prompt_actions(a, s, f, false), kl_arena_printf(a, "- %s: ", id).ptr);
}

/* Each action is in the list of all operators, or in that of an operator of which nothing is known,
 * and never in both. */
static void test_actions_of_a_kind(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_facts unknown = {0}, rows = {0};
    for (int i = 0; kl_surface_each(i); i++)
        for (int k = 0; kl_action_each(k); k++) {
            const kl_action *x = kl_action_each(k);
            const kl_surface *s = kl_surface_each(i);
            assert_int_equal(offered(a, s, NULL, x->id) + offered(a, s, &unknown, x->id),
                             (x->families & s->families) != 0);
        }
    const kl_surface *c = kl_surface_of_host(KL_ON_CPU);
    for (int i = KL_FACT_OP_CONTRACTION; i <= KL_FACT_OP_RAGGED; i++) rows.at[i].known = true;
    rows.at[KL_FACT_OP_ROWWISE].number = 1;
    assert_true(offered(a, c, &rows, "one_pass_online"));
    assert_false(offered(a, c, &rows, "flash_fuse") || offered(a, c, &rows, "winograd"));
    rows.at[KL_FACT_OP_SOFTMAX].number = 1;
    assert_false(offered(a, c, &rows, "flash_fuse")); /* which needs products too */
    rows.at[KL_FACT_OP_CONTRACTION].number = 1;
    assert_true(offered(a, c, &rows, "flash_fuse"));
    kl_arena_free(a);
}

static void test_other_ids(void **state) {
    (void)state;
    assert_true(kl_action_valid(KL_S("other:early_stop")));
    assert_true(kl_action_valid(KL_S("other:a234567890123456789012345678901234567890")));
    assert_false(kl_action_valid(KL_S("other:a2345678901234567890123456789012345678901")));
    assert_false(kl_action_valid(KL_S("other:")));
    assert_false(kl_action_valid(KL_S("other:Early")));
    assert_false(kl_action_valid(KL_S("other:a/b")));
    assert_false(kl_action_valid(KL_S("")));
}

/* ---- prompts ----------------------------------------------------------------------------- */

static void test_values_are_not_looked_into(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    const kl_prompt_value values[] = {{"error", KL_S("{{detail}}")},
                                      {"detail", KL_S("vf sum[2] = {{0}};")}};
    const kl_str text = kl_prompt(a, "repair", values, 2);
    assert_contains(text.ptr, "\n{{detail}}\n");
    assert_contains(text.ptr, "vf sum[2] = {{0}};");
    assert_true(kl_str_eq(text, kl_prompt(a, "repair", values, 2)));
    kl_arena_free(a);
}

/* Every prompt with the values that docs/formats/proposal.md lists: nothing is missing, nothing is
 * left. */
static void test_every_prompt(void **state) {
    (void)state;
    static const struct {
        const char *name, *keys[12];
    } PROMPTS[] = {{"rules", {"surface", "prefix", "tag", "clauses", "flags", "own"}},
                   {"actions", {"actions"}},
                   {"deoptimize", {"task", "tag", "kernel", "traits", "feedback", "done"}},
                   {"deoptimize_rejected", {"why", "feedback", "left"}},
                   {"rederive",
                    {"task", "tag", "kernel", "feedback", "action", "forward", "needs", "bundle",
                     "locus", "goal"}},
                   {"rederive_rejected", {"why", "feedback", "left"}},
                   {"lift", {"action", "forward", "needs", "risks", "facts", "edges"}},
                   {"materialize", {"task", "card", "tag", "kernel", "feedback"}},
                   {"generate", {"task", "tag", "kernel", "feedback", "limits", "memory"}},
                   {"repair", {"error", "detail"}},
                   {"step", {"outcome", "feedback", "state", "next"}},
                   {"lift_rules", {NULL}},
                   {"search_library", {"library"}},
                   {"search_cards", {"cards"}},
                   {"search_next", {"cards", "kernel"}},
                   {"search_fetched", {"card"}},
                   {"search_once", {"task", "tag", "kernel", "feedback", "limits"}}};
    kl_arena *a = kl_arena_new();
    for (size_t i = 0; i < KL_COUNT(PROMPTS); i++) {
        kl_prompt_value values[12];
        int n = 0;
        for (; n < 12 && PROMPTS[i].keys[n]; n++)
            values[n] = (kl_prompt_value){PROMPTS[i].keys[n],
                                          kl_arena_printf(a, "<%s>", PROMPTS[i].keys[n])};
        const kl_str text = kl_prompt(a, PROMPTS[i].name, values, n);
        assert_null(strstr(text.ptr, "{{"));
        for (int k = 0; k < n; k++)
            assert_contains(text.ptr, values[k].value.ptr); /* and every value is used */
    }
    kl_arena_free(a);
}

static void test_rules_for_every_surface(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    for (int i = 0; kl_surface_each(i); i++) {
        const kl_str rules = kl_prompt_system(a, kl_surface_each(i));
        assert_contains(rules.ptr, kl_surface_each(i)->name);
        assert_contains(rules.ptr, "<<<<<<< SEARCH");
        assert_contains(rules.ptr, "- restrict_alias: ");
        assert_null(strstr(rules.ptr, "- flash_fuse: ")); /* comes with a task */
        assert_true(kl_str_eq(rules, kl_prompt_system(a, kl_surface_each(i))));
        assert_true(kl_str_starts(rules, kl_prompt_rules(a, kl_surface_each(i))));
    }
    const kl_str c = kl_prompt_vocabulary(a, kl_surface_of_host(KL_ON_CPU), false);
    assert_null(strstr(c.ptr, "Undone"));
    assert_contains(c.ptr, "- cache_block: ");
    assert_null(strstr(c.ptr, "- wgmma: "));
    kl_arena_free(a);
}

static void test_a_task_as_a_model_is_told_of_it(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_task *t;
    kl_error e = {0};
    assert_ok(kl_task_load(&t, a, KL_TEST_ROOT "/tasks/gemm", &e));
    const kl_workload *w = kl_task_workload(t, (kl_str){0}, KL_ON_CPU);
    const kl_str text = kl_prompt_task(a, t, w, kl_surface_of_host(KL_ON_CPU), KL_S(""), false);
    assert_contains(text.ptr, "input x: float32[M, K]");
    assert_contains(text.ptr, "output y: float32[M, N]");
    assert_contains(text.ptr, "//! launch gemm");
    assert_null(strstr(text.ptr, KL_TEST_ROOT));
    assert_contains(text.ptr, "- pack_b: ");
    assert_null(strstr(text.ptr, "- radix_select: "));
    assert_null(strstr(text.ptr, "- wgmma: ")); /* of another surface */
    assert_null(strstr(text.ptr, "Undone"));
    assert_true(
        kl_str_eq(text, kl_prompt_task(a, t, w, kl_surface_of_host(KL_ON_CPU), KL_S(""), false)));
    kl_arena_free(a);
}

/* ---- the machine ------------------------------------------------------------------------- */

static kl_device a_device(void) {
    kl_device d = {.backend = KL_BACKEND_CPU,
                   .name = KL_S("A processor"),
                   .platform = KL_S("x86-64-v3/gcc-13"),
                   .arch = KL_S("x86-64-v3"),
                   .peak_bytes = 1e12,
                   .l2_bytes = 32 << 20};
    d.limits.sms = 4;
    d.peak_flops[KL_F32] = 1e12;
    return d;
}

static void test_a_machine_in_words_and_numbers(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    const kl_device d = a_device();
    assert_str(kl_prompt_machine(a, &d),
               "\n# The machine\n\nA processor (x86-64-v3/gcc-13)\n\n- AVX2 with 16 vector "
               "registers of 256 bits, fused multiply-add\n- 4 cores\n- 32 MiB of last-level "
               "cache\n- peak of all cores, in 10^9 operations a second, generously: 1000 in "
               "float32\n- peak bandwidth out of cache, generously: 1000 GB/s\n");
    kl_arena_free(a);
}

/* Of a device that is elsewhere its verdict says name and platform, and no number is made up. */
static void test_a_machine_that_is_elsewhere(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    const kl_device far = {.name = KL_S("NVIDIA H200"),
                           .platform = KL_S("nvidia-sm90a/cuda-13.0"),
                           .arch = KL_S("nvidia-sm90a/cuda-13.0")},
                    unknown = {.name = KL_S("fake"), .platform = KL_S("fake")};
    const kl_str text = kl_prompt_machine(a, &far);
    assert_contains(text.ptr, "NVIDIA H200 (nvidia-sm90a/cuda-13.0)");
    assert_contains(text.ptr, "wgmma");
    assert_contains(text.ptr, "228 KiB of shared memory and 65536 registers a multiprocessor");
    assert_null(strstr(text.ptr, "peak"));
    assert_str(kl_prompt_machine(a, &unknown), "\n# The machine\n\nfake (fake)\n\n");
    kl_arena_free(a);
}

/* Of remarks those that are on innermost loops, or on no line. */
static void test_what_the_compiler_made_of_it(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_task *t;
    kl_kernel *k;
    kl_error e = {0};
    assert_ok(kl_task_load(&t, a, KL_TEST_ROOT "/tasks/gemm", &e));
    assert_ok(kl_kernel_load(&k, a, KL_TEST_ROOT "/tasks/gemm/naive.cu", NULL, &e));
    const kl_workload *w = kl_task_workload(t, KL_S("tiny"), KL_ON_GPU);
    const kl_compiled made = {.remarks = KL_S("ptxas warns\nline 1: elsewhere\nline 15: here\n"),
                              .resources = KL_S("registers\n"),
                              .hot_loop = KL_S("hottest loop\n")};
    assert_str(kl_prompt_compiled(a, &made, k, t, w),
               "Innermost loops (unit: from turn to turn the neighbour; far: as far away as a "
               "shape says):\n- line 14: x unit, weight unit; 256 turns, independent sums: 1\n"
               "The compiler says:\n- ptxas warns\n- line 15: here\nregisters\nhottest loop\n");
    kl_arena_free(a);
}

static void test_where_a_kernel_stands(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_task *t;
    kl_error e = {0};
    kl_device d = a_device();
    assert_ok(kl_task_load(&t, a, KL_TEST_ROOT "/tasks/gemm", &e));
    const kl_workload *w = kl_task_workload(t, KL_S("tiny"), KL_ON_CPU);
    double flops, bytes;
    assert_ok(kl_task_work(&flops, &bytes, t, w, &e));
    d.peak_flops[KL_F32] = flops * 1e6; /* 1 us, and half of it for the bytes */
    d.peak_bytes = bytes * 2e6;
    assert_str(kl_prompt_limits(a, &d, t, w, &(kl_verdict){.median_ns = 2000}),
               "bounds: 1 us to compute it, 0.5 us to move every byte once; the larger of them, "
               "computing, is 50 % of the time\n");
    assert_contains(kl_prompt_limits(a, &d, t, w, &(kl_verdict){.median_ns = 20000}).ptr,
                    "is 5 % of the time: not how much is done limits it, but how");
    assert_str(kl_prompt_limits(a, &d, t, w, &(kl_verdict){0}),
               "bounds: 1 us to compute it, 0.5 us to move every byte once\n");
    d.peak_bytes = 0;
    assert_int_equal(kl_prompt_limits(a, &d, t, w, &(kl_verdict){.median_ns = 2000}).len, 0);
    kl_arena_free(a);
}

/* ---- feedback ---------------------------------------------------------------------------- */

static void test_feedback_of_a_pass(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_verdict v = {.outcome = KL_OUTCOME_PASS,
                    .stage = KL_STAGE_DONE,
                    .median_ns = 1500000,
                    .n_comparisons = 1,
                    .kernel_path = KL_S("/home/me/k.c")};
    v.comparisons[0] = (kl_comparison){.baseline = KL_S("openblas"),
                                       .ratio = 0.5,
                                       .low = 0.49,
                                       .high = 0.51,
                                       .call = KL_DECISION_SLOWER};
    assert_str(
        kl_rewrite_feedback(a, &v),
        "outcome: pass\ntime: 1500 us\nspeed relative to openblas: 0.5 [0.49, 0.51], slower\n");
    kl_arena_free(a);
}

static void test_feedback_has_no_folders(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_verdict v = {
        .outcome = KL_OUTCOME_NO_COMPILE,
        .stage = KL_STAGE_COMPILE,
        .why = KL_S("the compiler said no"),
        .detail = KL_S(
            "/tmp/kl-1234/kernel.c:3:5: error: 'y'\n  3 | a / b / c; // x/y/z\nIn file included "
            "from /usr/lib/gcc/x.h\x1b[0m")};
    assert_str(kl_rewrite_feedback(a, &v),
               "outcome: no_compile (at stage compile)\nwhy: the compiler said no\nkernel.c:3:5: "
               "error: 'y'\n"
               "  3 | a / b / c; // x/y/z\nIn file included from x.h [0m\n");
    kl_arena_free(a);
}

static void test_feedback_of_a_wrong_kernel_names_the_element(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_check_result checks[] = {{.ok = true, .output = KL_S("y")},
                                {.workload = KL_S("tiny"),
                                 .output = KL_S("y"),
                                 .scale = 1,
                                 .rms_error = INFINITY,
                                 .budget = 1e-6,
                                 .bad = 3,
                                 .first_bad = 7,
                                 .got = NAN,
                                 .expected = 2}};
    kl_verdict v = {
        .outcome = KL_OUTCOME_WRONG, .stage = KL_STAGE_TINY, .checks = checks, .n_checks = 2};
    const kl_str text = kl_rewrite_feedback(a, &v);
    assert_contains(
        text.ptr,
        "output y, shape tiny: relative RMS error inf of 1e-06 allowed, 3 elements outside their "
        "bound; first at flat index 7: got");
    assert_contains(text.ptr, "expected 2\n");
    kl_arena_free(a);
}

static void test_feedback_is_bounded(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_buf b = {0};
    for (int i = 0; i < 5000; i++) kl_buf_printf(&b, "/a/b/c error %d\n", i);
    kl_verdict v = {
        .outcome = KL_OUTCOME_NO_COMPILE, .why = kl_buf_str(&b), .detail = kl_buf_str(&b)};
    assert_true(kl_rewrite_feedback(a, &v).len <= 4096);
    kl_buf_fini(&b);
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_core_is_there),
        cmocka_unit_test(test_rows_are_whole),
        cmocka_unit_test(test_actions_of_a_kind),
        cmocka_unit_test(test_other_ids),
        cmocka_unit_test(test_values_are_not_looked_into),
        cmocka_unit_test(test_every_prompt),
        cmocka_unit_test(test_rules_for_every_surface),
        cmocka_unit_test(test_a_task_as_a_model_is_told_of_it),
        cmocka_unit_test(test_a_machine_in_words_and_numbers),
        cmocka_unit_test(test_a_machine_that_is_elsewhere),
        cmocka_unit_test(test_what_the_compiler_made_of_it),
        cmocka_unit_test(test_where_a_kernel_stands),
        cmocka_unit_test(test_feedback_of_a_pass),
        cmocka_unit_test(test_feedback_has_no_folders),
        cmocka_unit_test(test_feedback_of_a_wrong_kernel_names_the_element),
        cmocka_unit_test(test_feedback_is_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
