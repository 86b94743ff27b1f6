/* edits_test.c - replies become proposals, proposals become text.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "fixture.h"

static const kl_surface *c_surface(void) { return kl_surface_of_host(KL_ON_CPU); }

/* ---- replies ----------------------------------------------------------------------------- */

#define BLOCK "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"

static const struct {
    const char *reply;
    kl_proposal_kind kind;
    const char *action, *bundle, *locus;
    int edits;
} REPLIES[] = {
    {"ACTION: pack_b\nLOCUS: gemm()\n" BLOCK, KL_PROPOSAL_EDITS, "pack_b", "", "gemm()", 1},
    {"Sure! Here it is.\r\n\r\n**ACTION:** pack_b\r\n**LOCUS:** `gemm()`\r\n```c\r\n<<<<<<< "
     "SEARCH\r\na\r\n=======\r\nb\r\n>>>>>>> REPLACE\r\n```\r\nDone.",
     KL_PROPOSAL_EDITS, "pack_b", "", "gemm()", 1},
    {"- **ACTION**: `Pack_B` (the packing)\nBUNDLE: cache_block, prefetch and none\n" BLOCK BLOCK,
     KL_PROPOSAL_EDITS, "pack_b", "cache_block prefetch", "", 2},
    {"ACTION: other:early_stop\nWHY: x\n```c\n//! launch f args(x)\nint a;\n```\n",
     KL_PROPOSAL_FILE, "other:early_stop", "", "", 0},
    {"old:\n```c\nint old;\n```\nnew:\n```c\nint new;\n```\n", KL_PROPOSAL_FILE, "", "", "", 0},
    {"```\n//! launch f args(x)\nint a;\n```", KL_PROPOSAL_FILE, "", "", "", 0},
    {"DONE: this is the textbook's algorithm", KL_PROPOSAL_DONE, "", "", "", 0},
    {"**DONE:** nothing left", KL_PROPOSAL_DONE, "", "", "", 0},
    {"ACTION: unroll\n" BLOCK "DONE: one change", KL_PROPOSAL_EDITS, "unroll", "", "", 1},
    {"BUNDLE: none\n<<<<<<<<< SEARCH\na\n=======\nb\n=========\nc\n>>>>>>>>> REPLACE\n",
     KL_PROPOSAL_EDITS, "", "", "", 1},
};

static void test_replies(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    for (size_t i = 0; i < KL_COUNT(REPLIES); i++) {
        kl_proposal p;
        kl_error e = {0};
        assert_ok(kl_proposal_parse(&p, a, kl_str_of(REPLIES[i].reply), c_surface(), &e));
        assert_int_equal(p.kind, REPLIES[i].kind);
        assert_int_equal(p.n_edits, REPLIES[i].edits);
        assert_str(p.action, REPLIES[i].action);
        assert_str(p.bundle, REPLIES[i].bundle);
        assert_str(p.locus, REPLIES[i].locus);
    }
    kl_arena_free(a);
}

static const struct {
    const char *reply, *says;
} UNUSABLE[] = {
    {"", "no SEARCH/REPLACE block"},
    {"I would rather talk.", "no SEARCH/REPLACE block"},
    {"```c\nint a;\n", "does not end"},
    {"<<<<<<< SEARCH\na\n=======\nb\n", "does not end"},
    {"<<<<<<< SEARCH\na\n", "no ======="},
    {"<<<<<<< ../../etc/passwd\na\n=======\nb\n>>>>>>> REPLACE\n", "names something"},
    {"<<<<<<< SEARCH kernel.c\na\n=======\nb\n>>>>>>> REPLACE\n", "names something"},
    {"```python\nprint(1)\n```", "no SEARCH/REPLACE block"},
};

static void test_unusable_replies_say_why(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    for (size_t i = 0; i < KL_COUNT(UNUSABLE); i++) {
        kl_proposal p;
        kl_error e = {0};
        assert_err(KL_EPARSE,
                   kl_proposal_parse(&p, a, kl_str_of(UNUSABLE[i].reply), c_surface(), &e));
        assert_contains(e.message, UNUSABLE[i].says);
    }
    kl_buf b = {0};
    kl_proposal p;
    kl_error e = {0};
    for (int i = 0; i < KL_MAX_EDITS + 1; i++) kl_buf_printf(&b, BLOCK);
    assert_err(KL_ELIMIT, kl_proposal_parse(&p, a, kl_buf_str(&b), c_surface(), &e));
    while (b.len <= KL_MAX_REPLY_BYTES) kl_buf_printf(&b, "%1000d\n", 0);
    assert_err(KL_ELIMIT, kl_proposal_parse(&p, a, kl_buf_str(&b), c_surface(), &e));
    kl_buf_fini(&b);
    kl_arena_free(a);
}

static void test_headers_are_plain_text(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_proposal p;
    kl_error e = {0};
    assert_ok(kl_proposal_parse(&p, a,
                                KL_S("ACTION: Robert'); DROP\nWHY: a\x1b[31mb\x01"
                                     "c\nACTION: unroll\n" BLOCK),
                                c_surface(), &e));
    assert_str(p.action, "robert");
    assert_str(p.why, "a [31mb c");
    assert_false(kl_action_valid(p.action));
    assert_int_equal(p.edits[0].offset, strlen("ACTION: Robert'); DROP\nWHY: a\x1b[31mb\x01"
                                               "c\nACTION: unroll\n"));
    kl_arena_free(a);
}

/* ---- edits ------------------------------------------------------------------------------- */

static const struct {
    const char *source, *search, *replace, *result, *says;
} EDITS[] = {
    {"a\nb\nc\n", "b\n", "x\ny\n", "a\nx\ny\nc\n", NULL},
    {"a\nb\nc\n", "b", "x", "a\nx\nc\n", NULL},
    {"a\nb\nc", "c\n", "x\n", "a\nb\nx", NULL},
    {"a\nb\nc\n", "b\n", "", "a\nc\n", NULL},
    {"a  \nb\n", "a\nb\n", "x\nb\n", "x\nb\n", NULL},
    {"a\r\nb\r\n", "a\n", "x\n", "x\r\nb\r\n", NULL},
    {"a\nb\n", "a\r\n", "x\r\n", "x\nb\n", NULL},
    {"  if (x)\n    y();\n\n  z();\n", "if (x)\n  y();\n\nz();\n", "if (w)\n  y();\n\n",
     "  if (w)\n    y();\n\n", NULL},
    {"if (x)\n  y();\n", "    if (x)\n      y();\n", "    if (w)\n      y();\n", "if (w)\n  y();\n",
     NULL},
    {"if (x)\n  y();\n", "    if (x)\n    y();\n", "z\n", NULL, "nowhere"},
    {"a\nb\na\n", "a\n", "x\n", NULL, "2 places (at lines 1, 3)"},
    {"  a\n    a\n", "a\n", "x\n", NULL, "2 places"},
    {"xab\n", "a\n", "b\n", NULL, "nowhere"},
    {"a\n", "b\n", "a\n", NULL, "already there"},
    {"a\n", "a\n", "a\n", NULL, "change nothing"},
    {"a\n", "", "b\n", NULL, "SEARCH is empty"},
    {"", "", "b\n", "b\n", NULL},
    {"a", "a\n\\ No newline at end of file\n", "a\n", "a\n", NULL},
    {"a\n", "a\n", "b\n\\ No newline at end of file\n", "b", NULL},
};

static void test_edits(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    for (size_t i = 0; i < KL_COUNT(EDITS); i++) {
        kl_str out;
        kl_error e = {0};
        const kl_edit edit = {kl_str_of(EDITS[i].search), kl_str_of(EDITS[i].replace), 0};
        const kl_err err = kl_edits_apply(&out, a, kl_str_of(EDITS[i].source), &edit, 1, &e);
        if (err != (EDITS[i].says ? KL_EINVAL : KL_OK))
            fail_msg("row %zu: %s: %s", i, kl_err_name(err), e.message);
        if (EDITS[i].says)
            assert_contains(e.message, EDITS[i].says);
        else
            assert_str(out, EDITS[i].result);
    }
    kl_arena_free(a);
}

static void test_blocks_apply_in_order_and_all_or_nothing(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_str out = KL_S("untouched");
    kl_error e = {0};
    const kl_edit edits[] = {{KL_S("a\n"), KL_S("b1\n"), 0},
                             {KL_S("b1\n"), KL_S("c\n"), 0},
                             {KL_S("missing line\n"), KL_S("x\n"), 0}};
    assert_ok(kl_edits_apply(&out, a, KL_S("a\nb\n"), edits, 2, &e));
    assert_str(out, "c\nb\n");
    out = KL_S("untouched");
    assert_err(KL_EINVAL, kl_edits_apply(&out, a, KL_S("a\nb\nmissing lime\n"), edits, 3, &e));
    assert_contains(e.message, "block 3");
    assert_contains(e.detail, "missing lime");
    assert_str(out, "untouched");
    kl_arena_free(a);
}

static void test_white_space_alone_is_no_proposal(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_proposal p;
    kl_str out;
    kl_error e = {0};
    assert_ok(kl_proposal_parse(&p, a, KL_S("```c\nint  a;\n\n```\n"), c_surface(), &e));
    assert_err(KL_EINVAL, kl_proposal_apply(&out, a, KL_S("int a;\n"), &p, &e));
    assert_ok(kl_proposal_apply(&out, a, KL_S("int b;\n"), &p, &e));
    assert_str(out, "int  a;\n\n");
    assert_ok(kl_proposal_parse(&p, a, KL_S("DONE: enough"), c_surface(), &e));
    assert_err(KL_EINVAL, kl_proposal_apply(&out, a, KL_S("int b;\n"), &p, &e));
    kl_arena_free(a);
}

/* ---- blocks between two texts ------------------------------------------------------------ */

static void round_trip(kl_arena *a, kl_str from, kl_str to) {
    kl_proposal p;
    kl_str out;
    kl_error e = {0};
    const kl_str text = kl_edits_between(a, from, to);
    if (kl_str_eq(from, to)) {
        assert_int_equal(text.len, 0);
        return;
    }
    assert_ok(kl_proposal_parse(&p, a, text, c_surface(), &e));
    assert_ok(kl_edits_apply(&out, a, from, p.edits, p.n_edits, &e));
    assert_true(kl_str_eq(out, to));
}

static void test_blocks_between_texts(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    const char *const texts[] = {"",
                                 "a\n",
                                 "a",
                                 "\n",
                                 "\n\n",
                                 "a\nb\nc\n",
                                 "a\nb\nc",
                                 "b\nb\nb\nb\n",
                                 "b\nb\nb\nb\nb",
                                 "a\r\nb\r\n",
                                 "x\n=======\ny\n",
                                 "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n",
                                 "  a\n\ta\n a\n",
                                 "q\n\n\n\nq\n\n\n\nr"};
    for (size_t i = 0; i < KL_COUNT(texts); i++)
        for (size_t j = 0; j < KL_COUNT(texts); j++)
            round_trip(a, kl_str_of(texts[i]), kl_str_of(texts[j]));
    kl_arena_free(a);
}

/* Random texts of few different lines: ambiguity everywhere. */
static void test_blocks_between_ambiguous_texts(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 400; round++) {
        kl_arena *a = kl_arena_new();
        kl_buf text[2] = {{0}, {0}};
        for (int side = 0; side < 2; side++)
            for (int n = 0; n < round % 60; n++) {
                seed = seed * 6364136223846793005ull + 1442695040888963407ull;
                kl_buf_printf(&text[side], "%c\n", (int)('a' + (seed >> 33) % 3));
            }
        round_trip(a, kl_buf_str(&text[0]), kl_buf_str(&text[1]));
        kl_buf_fini(&text[0]);
        kl_buf_fini(&text[1]);
        kl_arena_free(a);
    }
}

static void both_ways(kl_arena *a, const kl_kernel *k, const kl_kernel *before, void *ctx) {
    (void)ctx;
    if (!before) return;
    round_trip(a, before->source, k->source);
    round_trip(a, k->source, before->source);
}

static void test_blocks_between_real_kernels(void **state) {
    (void)state;
    assert_true(all_kernels(both_ways, NULL) > 20);
}

static void test_large_texts_end(void **state) {
    (void)state;
    kl_arena *a = kl_arena_new();
    kl_buf from = {0}, to = {0};
    for (int i = 0; i < 60000; i++) {
        kl_buf_printf(&from, "same\n");
        kl_buf_printf(&to, "%s\n", i % 7 ? "same" : "other");
    }
    round_trip(a, kl_buf_str(&from), kl_buf_str(&to));
    kl_str out;
    kl_error e = {0};
    const kl_edit edit = {KL_S("nothing like this at all\n"), KL_S("x\n"), 0};
    assert_err(KL_EINVAL, kl_edits_apply(&out, a, kl_buf_str(&from), &edit, 1, &e));
    kl_buf_fini(&from);
    kl_buf_fini(&to);
    kl_arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_unusable_replies_say_why),
        cmocka_unit_test(test_headers_are_plain_text),
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_blocks_apply_in_order_and_all_or_nothing),
        cmocka_unit_test(test_white_space_alone_is_no_proposal),
        cmocka_unit_test(test_blocks_between_texts),
        cmocka_unit_test(test_blocks_between_ambiguous_texts),
        cmocka_unit_test(test_blocks_between_real_kernels),
        cmocka_unit_test(test_large_texts_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
