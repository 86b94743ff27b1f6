/* directive_test.c - reading directives: what whole files can do to the reader, every bound, and
 * exact messages. Grammar case by case is in tests/cases/directive.  SPDX-License-Identifier:
 * Apache-2.0 */

#include "kernel_impl.h"
#include "kit/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LAUNCH "//! launch f grid(1) block(32) args(A)\n"

static kl_kernel *kernel;

static kl_err parse_as(kl_str text, const char *path) {
    return kl_kernel_parse(&kernel, arena, text, kl_str_of(path), NULL, NULL, &e);
}

static kl_err parse(const char *text) { return parse_as(kl_str_of(text), "k.cu"); }

static void assert_rendered(kl_err wanted, const char *path, const char *text,
                            const char *rendered) {
    kl_buf out = {0};
    assert_err(wanted, parse_as(kl_str_of(text), path));
    kl_error_render(&e, &out);
    assert_string_equal(out.ptr, rendered);
    kl_buf_fini(&out);
}

/* ---- whole files ------------------------------------------------------------------------- */

static void test_kernel_directive__empty_file_has_no_launch(void **state) {
    (void)state;
    assert_rendered(KL_EPARSE, "k.cl", "",
                    "k.cl:1:1: error: no launch directive: nothing says which function to run\n"
                    "  1 | \n    | ^\n"
                    "hint: add a line such as `//! launch NAME global(cdiv(N, 64) * 64) local(64) "
                    "args(A, B, C, M, N)`\n");
    assert_null(kernel);
}

static void test_kernel_directive__nul_byte_is_refused_where_it_stands(void **state) {
    (void)state;
    assert_err(KL_EPARSE, parse_as(KL_S(LAUNCH "int x;\0int y;\n"), "k.cu"));
    assert_string_equal(e.where, "k.cu:2:7");
    assert_string_equal(e.message, "a NUL byte: this is not a text file");
}

static void test_kernel_directive__binary_garbage_is_refused(void **state) {
    (void)state;
    char junk[4096];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof junk; i++)
        junk[i] = (char)((x = x * 1664525u + 1013904223u) >> 24 | 1);
    for (int i = 0; kl_surface_each(i); i++)
        assert_err(KL_EPARSE, kl_kernel_parse(&kernel, arena, (kl_str){junk, sizeof junk},
                                              KL_S("junk"), kl_surface_each(i), NULL, &e));
}

static void test_kernel_directive__crlf_and_missing_last_newline(void **state) {
    (void)state;
    assert_ok(parse("//! param BM = 4 {4, 8}\r\n//! let x = BM \\\r\n//!   + 1\r\n//! launch f "
                    "grid(x) block(32) args(A)"));
    assert_int_equal(kernel->params[0].n_values, 2);
    assert_str(kernel->launches[0].entry, "f");
    assert_int_equal(kernel->n_lets, 1);
    assert_ok(parse("//! launch f grid(1) block(32) args(A) \\"));
    assert_ok(parse("//! launch f grid(1) block(32) args(A) \\\n"));
}

static void test_kernel_directive__byte_order_mark_is_white_space(void **state) {
    (void)state;
    assert_ok(parse("\xef\xbb\xbf" LAUNCH));
}

static void test_kernel_directive__other_encodings_pass_outside_directives(void **state) {
    (void)state;
    assert_ok(parse("// \xe4\xf6\xfc \xff\n" LAUNCH));
    assert_err(KL_EPARSE, parse("//! let x = \xe4\n" LAUNCH));
    assert_string_equal(e.where, "k.cu:1:13");
}

static void test_kernel_directive__source_size_is_bounded(void **state) {
    (void)state;
    size_t n = KL_MAX_SOURCE_BYTES;
    char *big = malloc(n + 1);
    memset(big, ' ', n + 1);
    memcpy(big, LAUNCH, sizeof LAUNCH - 1);
    assert_ok(parse_as((kl_str){big, n}, "k.cu"));
    assert_err(KL_ELIMIT, parse_as((kl_str){big, n + 1}, "k.cu"));
    free(big);
}

static void test_kernel_directive__huge_file_is_refused_without_reading_it(void **state) {
    (void)state;
    char name[] = "huge_XXXXXX.cu";
    int fd = mkstemps(name, 3);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 100 << 20), 0); /* sparse */
    close(fd);
    kl_err err = kl_kernel_load(&kernel, arena, name, NULL, &e);
    unlink(name);
    assert_err(KL_ELIMIT, err);
    assert_err(KL_ENOENT, kl_kernel_load(&kernel, arena, "absent.cu", NULL, &e));
}

static void test_kernel_directive__very_long_lines_have_short_messages(void **state) {
    (void)state;
    kl_buf text = {0};
    kl_buf_add(&text, KL_S("//! let x = "));
    for (int i = 0; i < 100000; i++) kl_buf_add(&text, KL_S("1 + "));
    kl_buf_add(&text, KL_S("\n" LAUNCH));
    assert_err(KL_EPARSE, parse_as(kl_buf_str(&text), "k.cu")); /* expressions have a length */
    assert_true(strlen(e.detail) < sizeof e.detail - 1);
    kl_buf_fini(&text);
}

static void test_kernel_directive__null_error_and_options_are_fine(void **state) {
    (void)state;
    assert_int_equal(
        kl_kernel_parse(&kernel, arena, KL_S("//! lauch"), KL_S("k.cu"), NULL, NULL, kl_ignored()),
        KL_EPARSE);
    assert_int_equal(
        kl_kernel_parse(&kernel, arena, KL_S(LAUNCH), KL_S("k.cu"), NULL, NULL, kl_ignored()),
        KL_OK);
}

/* ---- bounds ------------------------------------------------------------------------------ */

static kl_err parse_many(const char *line, int n) {
    kl_buf text = {0};
    for (int i = 0; i < n; i++) {
        kl_buf_printf(&text, line, i);
        kl_buf_add(&text, KL_S("\n"));
    }
    kl_buf_add(&text, KL_S(LAUNCH));
    kl_err err = parse_as(kl_buf_str(&text), "k.cu");
    kl_buf_fini(&text);
    return err;
}

static void test_kernel_directive__every_count_is_bounded(void **state) {
    (void)state;
    static const struct {
        const char *line, *message;
        int most;
    } rows[] = {
        {"//! param p%d = 1", "more than 32 params", KL_MAX_PARAMS},
        {"//! let p%d = 1", "more than 64 lets", KL_MAX_LETS},
        {"//! require %d < 100", "more than 16 require lines", 16},
        {"//! buffer p%d: f32[4]", "more than 16 buffers", KL_MAX_BUFFERS},
        {"//! tensormap p%d: A box(64)", "more than 16 tensormaps", KL_MAX_TENSORMAPS},
        {"//! launch p%d grid(1) block(1) args()", "more than 32 launches", KL_MAX_LAUNCHES - 1},
        {"//! flags --maxrregcount=%d", "more than 32 compile flags", 32},
        {"//! nondeterministic \\\n//! \\\n//!", "more than 512 directives in one file",
         KLI_MAX_DIRECTIVES - 1},
    };
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        assert_ok(parse_many(rows[i].line, rows[i].most));
        assert_err(KL_ELIMIT, parse_many(rows[i].line, rows[i].most + 1));
        assert_string_equal(e.message, rows[i].message);
    }
}

static void test_kernel_directive__values_of_a_param_are_bounded(void **state) {
    (void)state;
    kl_buf text = {0};
    kl_buf_add(&text, KL_S("//! param p = 0 {0, 0, 0"));
    for (int i = 1; i < 32; i++) kl_buf_printf(&text, ", %d", i);
    size_t fits = text.len;
    kl_buf_add(&text, KL_S("}\n" LAUNCH));
    assert_ok(parse_as(kl_buf_str(&text), "k.cu"));
    assert_int_equal(kernel->params[0].n_values, 32); /* repeats count once */
    text.len = fits;
    kl_buf_add(&text, KL_S(", 32}\n" LAUNCH));
    assert_err(KL_ELIMIT, parse_as(kl_buf_str(&text), "k.cu"));
    kl_buf_fini(&text);
}

static void test_kernel_directive__deep_parentheses_are_refused(void **state) {
    (void)state;
    kl_buf text = {0};
    kl_buf_add(&text, KL_S("//! let x = "));
    for (int i = 0; i < 2000; i++) kl_buf_add(&text, KL_S("("));
    kl_buf_add(&text, KL_S("\n" LAUNCH));
    kl_err err = parse_as(kl_buf_str(&text), "k.cu");
    assert_true(err == KL_EPARSE || err == KL_ELIMIT);
    assert_contains(e.where, "k.cu:1:");
    kl_buf_fini(&text);
}

/* ---- messages, exactly ------------------------------------------------------------------- */

static void test_kernel_directive__unknown_directive_suggests(void **state) {
    (void)state;
    assert_rendered(KL_EPARSE, "k.cu", "int x;\n  //! parm BM = 1\n",
                    "k.cu:2:7: error: unknown directive 'parm'\n"
                    "  2 |   //! parm BM = 1\n"
                    "    |       ^\n"
                    "hint: did you mean 'param'?  known: param let require buffer tensormap flags "
                    "nondeterministic result "
                    "launch\n");
}

static void test_kernel_directive__duplicate_names_the_first_line(void **state) {
    (void)state;
    assert_rendered(KL_EPARSE, "k.cu", "//! buffer t: f32[4]\n\n//! tensormap t: t box(4)\n",
                    "k.cu:3:15: error: 't' is declared twice\n"
                    "  3 | //! tensormap t: t box(4)\n"
                    "    |               ^\n"
                    "hint: the first is on line 1; params, lets, buffers and tensormaps share one "
                    "set of names\n");
}

static void test_kernel_directive__c_launch_has_no_grid(void **state) {
    (void)state;
    assert_rendered(KL_EPARSE, "naive.c", "//! launch f args(A) grid(2)\n",
                    "naive.c:1:22: error: surface c has no grid(...)\n"
                    "  1 | //! launch f args(A) grid(2)\n"
                    "    |                      ^\n"
                    "hint: a launch of c takes args(...)\n");
}

static void test_kernel_directive__missing_clause_shows_an_example(void **state) {
    (void)state;
    assert_rendered(
        KL_EPARSE, "k.cl", "//! launch f args(A)\n",
        "k.cl:1:21: error: launch 'f' has no global(...)\n"
        "  1 | //! launch f args(A)\n"
        "    |                     ^\n"
        "hint: for example: //! launch f global(cdiv(N, 64) * 64) local(64) args(A, B, C, M, N)\n");
}

static void test_kernel_directive__bad_expression_points_into_its_line(void **state) {
    (void)state;
    assert_rendered(KL_EPARSE, "k.cu", "//! launch f grid(1) \\\n//!   block(M +) args(A)\n",
                    "k.cu:2:16: error: expected a number, a name or '('\n"
                    "  2 | //!   block(M +) args(A)\n"
                    "    |                ^\n"
                    "hint: the form is `//! launch FUNCTION clause(...) ... args(...)`\n");
}

static void test_kernel_directive__tabs_keep_the_caret_in_place(void **state) {
    (void)state;
    assert_rendered(KL_EPARSE, "k.cu", "\t//! param\tBM\t= x\n",
                    "k.cu:1:17: error: 'x' is not a 64-bit integer\n"
                    "  1 | \t//! param\tBM\t= x\n"
                    "    | \t         \t  \t  ^\n"
                    "hint: the form is `//! param NAME = INT {INT, INT, ...}`\n");
}

static void test_kernel_directive__escape_sequences_do_not_reach_the_terminal(void **state) {
    (void)state;
    assert_err(KL_EPARSE, parse("//! flags \x1b[2J\x07\n" LAUNCH));
    assert_null(strchr(e.message, 0x1b));
    assert_null(strchr(e.detail, 0x1b));
}

static void test_kernel_directive__flag_refusal_lists_what_is_allowed(void **state) {
    (void)state;
    assert_rendered(KL_EPARSE, "k.cl", "//! flags -cl-mad-enable -Dx=1\n",
                    "k.cl:1:26: error: flag '-Dx=1' is not on the allow-list of opencl\n"
                    "  1 | //! flags -cl-mad-enable -Dx=1\n"
                    "    |                          ^\n"
                    "hint: allowed: -cl-std=CL1.1 -cl-std=CL1.2 -cl-std=CL2.0 -cl-std=CL3.0 "
                    "-cl-fast-relaxed-math -cl-mad-enable "
                    "-cl-unsafe-math-optimizations -cl-finite-math-only -cl-no-signed-zeros "
                    "-cl-denorms-are-zero "
                    "-cl-single-precision-constant -cl-fp32-correctly-rounded-divide-sqrt "
                    "-cl-uniform-work-group-size "
                    "-cl-strict-aliasing -cl-opt-disable\n");
}

static void test_kernel_directive__surface_conflict(void **state) {
    (void)state;
    kl_str text = KL_S("#! surface tilelang\n#! launch f args(A)\n");
    assert_err(KL_EPARSE, kl_kernel_parse(&kernel, arena, text, KL_S("k.py"),
                                          kl_surface_by_name(KL_S("triton")), NULL, &e));
    assert_string_equal(e.message, "surface tilelang, but this file was given as triton");
    assert_ok(parse_as(text, "k.py"));
    assert_ptr_equal(kernel->surface, kl_surface_by_name(KL_S("tilelang")));
}

static void test_kernel_directive__override_errors_name_the_params(void **state) {
    (void)state;
    const char *params[] = {"BLOKM=4", NULL};
    kl_kernel_opts o = {.params = params};
    kl_str text = KL_S("//! param BLOCKM = 1\n" LAUNCH);
    assert_err(KL_EINVAL, kl_kernel_parse(&kernel, arena, text, KL_S("k.cu"), NULL, &o, &e));
    assert_string_equal(e.message, "no param 'BLOKM'");
    assert_string_equal(e.hint, "did you mean 'BLOCKM'?  params: BLOCKM");
    params[0] = "BLOCKM";
    assert_err(KL_EINVAL, kl_kernel_parse(&kernel, arena, text, KL_S("k.cu"), NULL, &o, &e));
    params[0] = " BLOCKM = -3 ";
    assert_ok(kl_kernel_parse(&kernel, arena, text, KL_S("k.cu"), NULL, &o, &e));
    assert_int_equal(kernel->params[0].value, -3);
    assert_int_equal(kernel->params[0].values[0], 1);
}

/* ---- trust, surfaces, identity ----------------------------------------------------------- */

static void test_kernel_directive__trusted_may_use_any_flag_and_oracles_a_result(void **state) {
    (void)state;
    kl_str flags = KL_S("//! flags -lopenblas\n//! launch f args(A)\n"),
           result = KL_S("//! result f32\n//! launch f args(A)\n");
    kl_kernel_opts trusted = {.trusted = true}, oracle = {.oracle = true};
    assert_err(KL_EPARSE, kl_kernel_parse(&kernel, arena, flags, KL_S("k.c"), NULL, NULL, &e));
    assert_ok(kl_kernel_parse(&kernel, arena, flags, KL_S("k.c"), NULL, &trusted, &e));
    assert_int_equal(kernel->result, 0);
    assert_err(KL_EPARSE, kl_kernel_parse(&kernel, arena, result, KL_S("k.c"), NULL, &trusted, &e));
    assert_ok(kl_kernel_parse(&kernel, arena, result, KL_S("k.c"), NULL, &oracle, &e));
    assert_int_equal(kernel->result, KL_F32);
    assert_true(kernel->trusted);
    assert_ok(kl_kernel_parse(&kernel, arena, flags, KL_S("k.c"), NULL, &oracle, &e));
    assert_int_equal(kernel->result, KL_F64);
}

#define SOME_HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_kernel_directive__compiled_code_is_for_baselines(void **state) {
    const kl_kernel_opts may = {.may_be_code = true};
    static const char launch[] = "//! launch f grid(1) block(1) args(A, &B, 3)\n";
    static const struct {
        const char *line, *why;
    } rows[] = {{"../a.cubin " SOME_HASH, "without a path"},
                {"/a.cubin " SOME_HASH, "without a path"},
                {".cubin " SOME_HASH, "without a path"},
                {"a.so " SOME_HASH, "without a path"},
                {"a.cubin 12", "sha256"},
                {"a.cubin", "sha256"},
                {"a.cubin " SOME_HASH " b", "unexpected text"}};
    (void)state;
    kl_str text = kl_arena_printf(arena, "//! cubin a.cubin %s\n%s", SOME_HASH, launch);
    assert_err(KL_EPARSE, kl_kernel_parse(&kernel, arena, text, KL_S("k.cu"), NULL, NULL, &e));
    assert_non_null(strstr(e.message, "only a baseline"));
    assert_ok(kl_kernel_parse(&kernel, arena, text, KL_S("k.cu"), NULL, &may, &e));
    assert_true(kl_str_eq(kernel->cubin, KL_S("a.cubin")));
    assert_false(kernel->launches[0].args[0].joined || kernel->launches[0].args[2].joined);
    assert_true(kernel->launches[0].args[1].joined);
    text = kl_str_of(launch);
    assert_err(KL_EPARSE, kl_kernel_parse(&kernel, arena, text, KL_S("k.cu"), NULL, NULL, &e));
    assert_non_null(strstr(e.message, "only compiled code takes structs"));
    for (size_t i = 0; i < KL_COUNT(rows); i++) {
        text = kl_arena_printf(arena, "//! cubin %s\n%s", rows[i].line, launch);
        assert_err(KL_EPARSE, kl_kernel_parse(&kernel, arena, text, KL_S("k.cu"), NULL, &may, &e));
        if (!strstr(e.message, rows[i].why)) fail_msg("%s: %s", rows[i].line, e.message);
    }
}

/* `n` arguments in the first launch, `more` launches of `each` behind it. */
static kl_err parse_code(int n, int more, int each) {
    const kl_kernel_opts may = {.may_be_code = true};
    kl_buf b = {0};
    kl_buf_printf(&b, "//! cubin a.cubin %s\n", SOME_HASH);
    for (int l = 0; l <= more; l++) {
        kl_buf_add(&b, KL_S("//! launch f grid(1) block(1) args(A"));
        for (int i = 1; i < (l ? each : n); i++) kl_buf_printf(&b, ", &%d", i);
        kl_buf_add(&b, KL_S(")\n"));
    }
    const kl_str text = kl_arena_copy(arena, kl_buf_str(&b));
    kl_buf_fini(&b);
    return kl_kernel_parse(&kernel, arena, text, KL_S("k.cu"), NULL, &may, &e);
}

static void test_kernel_directive__compiled_code_takes_structs_of_four_kilobytes(void **state) {
    (void)state;
    assert_ok(parse_code(KL_MAX_ARGS, 0, 0));
    const kl_launch *l = &kernel->launches[0];
    assert_int_equal(l->n_args, KL_MAX_ARGS);
    for (int i = 0; i < KL_MAX_ARGS; i++) assert_int_equal(l->args[i].joined, i > 0);
    assert_str(l->args[1023].expr.text, "1023");
    assert_err(KL_ELIMIT, parse_code(KL_MAX_ARGS + 1, 0, 0));
    assert_contains(e.message, "more than 1024 arguments");
    assert_ok(parse_code(224, KL_MAX_LAUNCHES - 1, 224));
    assert_err(KL_ELIMIT, parse_code(225, KL_MAX_LAUNCHES - 1, 224));
    assert_contains(e.message, "more than 7168 arguments of all launches");
}

static void test_kernel_surfaces__table_is_complete(void **state) {
    (void)state;
    int n = 0;
    for (const kl_surface *s; (s = kl_surface_each(n)) != NULL; n++) {
        assert_ptr_equal(kl_surface_by_name(kl_str_of(s->name)), s);
        assert_true(kli_surface_has_clause(s, KL_S("args")));
        assert_true(s->assurance == 'A' || s->assurance == 'B');
        for (const char *const *flag = s->flags; *flag; flag++) {
            assert_int_equal((*flag)[0], '-');
            assert_null(strpbrk(*flag, "/, ;"));
        }
    }
    assert_int_equal(n, 5);
    assert_null(kl_surface_by_name(KL_S("hip")));
    assert_null(kl_surface_of_path(KL_S("k.cpp"), 0));
    assert_string_equal(kl_surface_of_path(KL_S("a/b.cl"), 0)->name, "opencl");
    assert_null(kl_surface_of_path(KL_S("a/b.cl"), 1));
    assert_string_equal(kl_surface_of_path(KL_S("k.py"), 1)->name, "tilelang");
    assert_null(kl_surface_of_path(KL_S("k.py"), 2));
}

static void test_kernel_surfaces__flags_carry_no_path_and_no_list(void **state) {
    (void)state;
    static const char *const bad[] = {"-fplugin=x",
                                      "-B/tmp",
                                      "-I.",
                                      "-include",
                                      "-o",
                                      "@file",
                                      "-wrapper",
                                      "-specs=x",
                                      "-Wl,-rpath",
                                      "-mavx512/../x",
                                      "-ffp-contract=",
                                      "-ffp-contract=a,b",
                                      "-march=",
                                      "",
                                      "-",
                                      "-Xptxas=-O9",
                                      "-Ofastx",
                                      "-DX",
                                      "-fopenmp=libx",
                                      "-mavx512f -fplugin=x"};
    static const char *const good[] = {"-O3", "-mavx512f", "-ffp-contract=off",
                                       "-mprefer-vector-width=512"};
    for (size_t i = 0; i < KL_COUNT(bad); i++)
        for (int s = 0; kl_surface_each(s); s++)
            assert_false(kli_surface_has_flag(kl_surface_each(s), kl_str_of(bad[i])));
    for (size_t i = 0; i < KL_COUNT(good); i++)
        assert_true(kli_surface_has_flag(kl_surface_of_host(KL_ON_CPU), kl_str_of(good[i])));
}

static const char *hash_of(const char *path, const char *text, const char *param) {
    const char *params[] = {param, NULL};
    kl_kernel_opts o = {.params = param ? params : NULL};
    assert_ok(kl_kernel_parse(&kernel, arena, kl_str_of(text), kl_str_of(path), NULL, &o, &e));
    assert_int_equal(strlen(kernel->hash), 64);
    return kernel->hash;
}

static void test_kernel_ident__ignores_directive_white_space_and_path_alone(void **state) {
    (void)state;
    const char *base =
        hash_of("k.cl", "//! param B = 1\n//! launch f global(M) args(A, B)\nint x;\n", NULL);
    assert_string_equal(
        base,
        hash_of("dir/other.cl",
                "  //! param B=1\r\n//!launch f global( M ) \\\n//!  args(A,B)\nint x;\n", NULL));
    assert_string_equal(
        base,
        hash_of("k.cl", "//! param B = 1\n//! launch f global(M) args(A, B)\nint x;\n", "B=1"));
    static const struct {
        const char *path, *text, *param;
    } others[] = {
        {"k.cl", "//! param B = 1\n//! launch f global(M) args(A, B)\nint  x;\n", NULL},
        {"k.cl", "//! param B = 1\n//! launch f global(N) args(A, B)\nint x;\n", NULL},
        {"k.cl", "//! param B = 1\n//! launch f global(M) args(A, B)\nint x;\n", "B=2"},
        {"k.cl",
         "//! param B = 1\n//! flags -cl-mad-enable\n//! launch f global(M) args(A, B)\nint x;\n",
         NULL},
        {"k.cl",
         "//! param B = 1\n//! nondeterministic\n//! launch f global(M) args(A, B)\nint x;\n",
         NULL},
    };
    for (size_t i = 0; i < KL_COUNT(others); i++)
        assert_string_not_equal(base, hash_of(others[i].path, others[i].text, others[i].param));
    const char *c = hash_of("k.c", "//! launch f args(A)\n", NULL);
    assert_string_not_equal(c, hash_of("k.cu", "//! launch f grid(1) block(1) args(A)\n", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_kernel_directive__empty_file_has_no_launch),
        KIT_TEST(test_kernel_directive__nul_byte_is_refused_where_it_stands),
        KIT_TEST(test_kernel_directive__binary_garbage_is_refused),
        KIT_TEST(test_kernel_directive__crlf_and_missing_last_newline),
        KIT_TEST(test_kernel_directive__byte_order_mark_is_white_space),
        KIT_TEST(test_kernel_directive__other_encodings_pass_outside_directives),
        KIT_TEST(test_kernel_directive__source_size_is_bounded),
        KIT_TEST(test_kernel_directive__huge_file_is_refused_without_reading_it),
        KIT_TEST(test_kernel_directive__very_long_lines_have_short_messages),
        KIT_TEST(test_kernel_directive__null_error_and_options_are_fine),
        KIT_TEST(test_kernel_directive__every_count_is_bounded),
        KIT_TEST(test_kernel_directive__values_of_a_param_are_bounded),
        KIT_TEST(test_kernel_directive__deep_parentheses_are_refused),
        KIT_TEST(test_kernel_directive__unknown_directive_suggests),
        KIT_TEST(test_kernel_directive__duplicate_names_the_first_line),
        KIT_TEST(test_kernel_directive__c_launch_has_no_grid),
        KIT_TEST(test_kernel_directive__missing_clause_shows_an_example),
        KIT_TEST(test_kernel_directive__bad_expression_points_into_its_line),
        KIT_TEST(test_kernel_directive__tabs_keep_the_caret_in_place),
        KIT_TEST(test_kernel_directive__escape_sequences_do_not_reach_the_terminal),
        KIT_TEST(test_kernel_directive__flag_refusal_lists_what_is_allowed),
        KIT_TEST(test_kernel_directive__surface_conflict),
        KIT_TEST(test_kernel_directive__override_errors_name_the_params),
        KIT_TEST(test_kernel_directive__trusted_may_use_any_flag_and_oracles_a_result),
        KIT_TEST(test_kernel_directive__compiled_code_is_for_baselines),
        KIT_TEST(test_kernel_directive__compiled_code_takes_structs_of_four_kilobytes),
        KIT_TEST(test_kernel_surfaces__table_is_complete),
        KIT_TEST(test_kernel_surfaces__flags_carry_no_path_and_no_list),
        KIT_TEST(test_kernel_ident__ignores_directive_white_space_and_path_alone),
    };
    return cmocka_run_group_tests_name("kernel_directive", tests, NULL, NULL);
}
