/* conformance_test.c - what src/surface promises for every row: to whoever parses, plans, prompts,
 * compiles and judges.
 *
 * Built with one row more than the program has (plain/), so that whatever lists surfaces on its own
 * fails here. SPDX-License-Identifier: Apache-2.0 */
#include "backend/backend.h"
#include "base/test.h"
#include "base/fs.h"
#include "kernel/fixture.h"
#include <klineage/rewrite.h>

static kl_arena *arena;
static kl_error e;

static int setup(void **state) {
    (void)state;
    arena = kl_arena_new();
    e = (kl_error){0};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    kl_arena_free(arena);
    return 0;
}

enum {
    N_ROWS = 0
#define SURFACE(name) +1
#include KLI_SURFACES
#undef SURFACE
};

#define EACH(s) for (const kl_surface *const *s##_at = all_surfaces(), *s; (s = *s##_at); s##_at++)

static const kl_surface *const *all_surfaces(void) {
    static const kl_surface *all[16];
    for (int i = 0; i < (int)KL_COUNT(all) - 1 && kl_surface_each(i); i++)
        all[i] = kl_surface_each(i);
    return all;
}

/* ---- the row itself ------------------------------------------------------------------------ */

static int times_listed(const char *const *list, const char *word) {
    int n = 0;
    for (; *list; list++) n += strcmp(*list, word) == 0;
    return n;
}

static void test_surface_row__is_found_by_name_and_by_ending(void **state) {
    (void)state;
    int n = 0;
    EACH(s) {
        const kl_str path = kl_arena_printf(arena, "folder/k%s", s->suffix);
        int seen = 0;
        for (int i = 0; kl_surface_of_path(path, i); i++) seen += kl_surface_of_path(path, i) == s;
        assert_int_equal(seen, 1);
        assert_int_equal(s->suffix[0], '.');
        assert_ptr_equal(kl_surface_by_name(kl_str_of(s->name)), s);
        n++;
    }
    assert_int_equal(n, N_ROWS);
    assert_string_equal(kl_surface_by_name(KL_S("plain"))->name, "plain");
    assert_null(kl_surface_of_path(KL_S("folder/plain"), 0));
}

static void test_surface_row__says_what_it_is(void **state) {
    (void)state;
    EACH(s) {
        assert_true(s->families && !(s->families & ~(unsigned)KL_FAMILY_ANY));
        assert_true(s->assurance == 'A' || s->assurance == 'B');
        assert_true(s->on == KL_ON_CPU || s->on == KL_ON_GPU);
        assert_int_equal(times_listed(s->clauses, "args"), 1);
        for (const char *const *c = s->required; *c; c++)
            assert_int_equal(times_listed(s->clauses, *c), 1);
        for (const char *const *f = s->flags; *f; f++) {
            assert_int_equal((*f)[0], '-');
            assert_null(strpbrk(*f, "/, ;"));
        }
        assert_false(kli_surface_has_flag(s, KL_S("-fplugin=/tmp/x.so")));
    }
}

static void check_file(const kl_surface *s, const char *file, const char *stem) {
    if (!file) return;
    assert_true(
        kl_str_starts(kl_str_of(file), kl_str_of(stem))); /* the task's hash covers these names */
    assert_true(kl_str_ends(kl_str_of(file), kl_str_of(s->suffix)));
    EACH(other) {
        if (other->naive && other != s) assert_string_not_equal(other->naive, file);
        if (other->oracle && other != s) assert_string_not_equal(other->oracle, file);
    }
}

static void test_surface_row__has_files_of_its_own_in_a_task(void **state) {
    (void)state;
    EACH(s) {
        check_file(s, s->naive, "naive.");
        check_file(s, s->oracle, "oracle.");
    }
    for (int on = KL_ON_CPU; on <= KL_ON_GPU; on++) {
        assert_non_null(kl_surface_of_host((kl_host_kind)on)->oracle);
        assert_non_null(kl_surface_of_host((kl_host_kind)on)->naive);
    }
}

static void test_surface_row__either_runs_or_says_so(void **state) {
    (void)state;
    EACH(s) {
        int n = 0;
        while (s->backends[n]) assert_non_null(kli_backend_of_surface(s, n++));
        assert_null(kli_backend_of_surface(s, n));
        assert_int_equal(n > 0, s->compile != NULL);
        assert_int_equal(n > 0, s->inspect != NULL);
        assert_int_equal(n > 0, strstr(kl_surface_names(arena, true).ptr, s->name) != NULL);
        assert_non_null(strstr(kl_surface_names(arena, false).ptr, s->name));
        assert_non_null(strstr(kl_surface_endings(arena).ptr, s->name));
    }
}

/* ---- parsing and planning -------------------------------------------------------------------- */

static kl_str with_launch(const kl_surface *s, const char *directive, const char *clauses) {
    return kl_arena_printf(arena, "%s surface %s\n%s %s\n%s launch f %s\n", s->comment, s->name,
                           s->comment, directive, s->comment, clauses);
}

static kl_str shared_or_not(const kl_surface *s, kl_str text) {
    if (kli_surface_has_directive(s, KL_S("surface"))) return text;
    const char *line = memchr(text.ptr, '\n', text.len);
    return (kl_str){line + 1, text.len - (size_t)(line + 1 - text.ptr)};
}

static kl_kernel *example_of(const kl_surface *s) {
    const kl_str text = shared_or_not(s, with_launch(s, "param P = 4 {4, 8}", s->example));
    kl_kernel *k;
    assert_ok(
        kl_kernel_parse(&k, arena, text, kl_arena_printf(arena, "k%s", s->suffix), NULL, NULL, &e));
    assert_ptr_equal(k->surface, s);
    return k;
}

static void test_surface_directives__its_example_parses_and_plans(void **state) {
    (void)state;
    kl_fixture f;
    kl_plan *plan = KL_NEW(arena, kl_plan);
    fixture_init(&f, 65, 96);
    EACH(s) {
        const kl_kernel *k = example_of(s);
        assert_ok(kli_kernel_plan(plan, k, &f.task, &f.workload, NULL, &e));
        const kl_plan_launch *l = &plan->launches[0];
        for (int d = 0; d < 3; d++) assert_true(l->grid[d] > 0 && l->cluster[d] > 0);
        for (const char **define = kli_kernel_defines(arena, k, &f.task, &f.workload); *define;
             define++)
            assert_null(strchr(*define, '('));
    }
}

static void test_surface_directives__an_unknown_clause_is_answered_with_its_own(void **state) {
    (void)state;
    EACH(s) {
        const char *const foreign = kli_surface_has_clause(s, KL_S("warps")) ? "block" : "warps";
        const kl_str clauses = kl_arena_printf(arena, "%s(4) %s", foreign, s->example);
        const kl_str text = shared_or_not(s, with_launch(s, "let n = 1", clauses.ptr));
        kl_kernel *k;
        assert_err(KL_EPARSE, kl_kernel_parse(&k, arena, text, KL_S("k"), s, NULL, &e));
        assert_contains(e.message, s->name);
        for (const char *const *c = s->clauses; *c; c++) assert_contains(e.hint, *c);
    }
}

static void test_surface_directives__what_is_required_is_asked_for(void **state) {
    (void)state;
    EACH(s) {
        kl_kernel *k;
        const kl_str text = shared_or_not(s, with_launch(s, "let n = 1", "args()"));
        const kl_err err = kl_kernel_parse(&k, arena, text, KL_S("k"), s, NULL, &e);
        assert_int_equal(err, s->required[0] ? KL_EPARSE : KL_OK);
        if (err) assert_contains(e.message, s->required[0]);
        if (err) assert_contains(e.hint, s->example);
    }
}

/* ---- models ------------------------------------------------------------------------------------
 */

static void test_surface_prompt__names_it_and_its_rules(void **state) {
    (void)state;
    EACH(s) {
        const kl_str rules = kl_prompt_rules(arena, s);
        assert_contains(rules.ptr, s->name);
        assert_contains(rules.ptr, s->comment);
        assert_contains(rules.ptr, s->note);
        assert_contains(kl_prompt_actions(arena, s, NULL, true).ptr, "loop_order");
    }
}

static void test_surface_reply__a_file_in_any_of_its_fences_is_taken(void **state) {
    (void)state;
    EACH(s) {
        for (const char *const *tag = s->fences; *tag; tag++) {
            const kl_str reply =
                kl_arena_printf(arena, "ACTION: unroll\n\n```%s\n%s launch f %s\n```\n", *tag,
                                s->comment, s->example);
            kl_proposal p;
            assert_ok(kl_proposal_parse(&p, arena, reply, s, &e));
            assert_int_equal(p.kind, KL_PROPOSAL_FILE);
        }
        assert_string_equal(kl_prompt_tag(s), s->fences[0]);
    }
}

static void test_surface_rewrite__mutates_and_counts_without_knowing_it(void **state) {
    (void)state;
    EACH(s) {
        kl_undoing found[64];
        kl_traits traits;
        const kl_kernel *k = example_of(s);
        kl_traits_of(&traits, arena, k, NULL);
        assert_true(kl_trait(&traits, KL_S("source.params")) > 0);
        assert_true(kl_rewrite_mutate(found, (int)KL_COUNT(found), arena, k) > 0); /* P */
    }
}

/* ---- the gate ------------------------------------------------------------------------------- */

/* A kernel in C as one in plain, which does nothing where its code was made for another class of
 * its last argument. */
static kl_str in_plain(const char *c, const char *body) {
    static const char GUARD[] = "    if (PLAIN_LAST_16 != (cols % 16 == 0)) return;\n";
    const char *at = strstr(c, body);
    assert_true(at && strncmp(c, "//!", 3) == 0);
    at += strlen(body);
    return kl_arena_printf(arena, ";;!%.*s%s%s", (int)(at - c) - 3, c + 3, GUARD, at);
}

/* tasks/softmax with an oracle and a naive kernel in the sixth surface too. */
static kl_task *softmax_here(void) {
    static const char *const FILES[] = {
        "definition.json", "workloads.jsonl", "oracle.c",          "oracle.cu",        "naive.c",
        "naive.cu",        "naive.cl",        "baseline/onednn.c", "baseline/torch.py"};
    static const char BODY[] = "int rows, int cols)\n{\n";
    kl_str dir, text;
    kl_task *task;
    assert_ok(kli_fs_temp_dir(&dir, arena, &e));
    assert_ok(kli_fs_mkdirs(kli_fs_join(arena, dir.ptr, "baseline").ptr, &e));
    for (size_t i = 0; i < KL_COUNT(FILES); i++) {
        const kl_str from = kli_fs_join(arena, KL_TEST_ROOT "/tasks/softmax", FILES[i]);
        const kl_str to = kli_fs_join(arena, dir.ptr, FILES[i]);
        assert_ok(kli_fs_read(&text, arena, from.ptr, KL_MAX_SOURCE_BYTES, &e));
        assert_ok(kli_fs_write(to.ptr, text, &e));
        if (!kl_str_ends(to, KL_S("oracle.c")) && !kl_str_ends(to, KL_S("naive.c"))) continue;
        const kl_str plain = kl_arena_printf(arena, "%.*s.plain", (int)to.len - 2, to.ptr);
        assert_ok(kli_fs_write(plain.ptr, in_plain(text.ptr, BODY), &e));
    }
    assert_ok(kl_task_load(&task, arena, dir.ptr, &e));
    return task;
}

static bool has_device(const kl_surface *s) {
    kl_device device;
    return kl_device_of_surface(&device, arena, s, 0, kl_ignored()) == KL_OK;
}

/* The kernels of the sixth surface need code for each class of arguments, parameters in another
 * order and a hidden buffer: candidate and oracle alike. */
static void test_surface_gate__judges_what_runs_and_says_what_does_not(void **state) {
    (void)state;
    kl_gate *gate;
    kl_verdict v;
    kl_task *task = softmax_here();
    const kl_gate_opts check = {.workload = "tiny", .check_only = true};
    int judged = 0;
    assert_ok(kl_gate_open(&gate, &e));
    EACH(s) {
        kl_kernel *k = example_of(s);
        if (!s->backends[0]) {
            assert_err(KL_ENODEV, kl_gate_run(&v, gate, arena, task, k, &check, &e));
            assert_contains(e.message, s->name);
            assert_contains(e.hint, "plain");
            continue;
        }
        const kl_str path = kli_fs_join(arena, task->dir.ptr, s->naive);
        if (!has_device(s) || !kli_fs_exists(path.ptr)) continue;
        assert_ok(kl_kernel_load(&k, arena, path.ptr, NULL, &e));
        assert_ok(kl_gate_run(&v, gate, arena, task, k, &check, &e));
        assert_int_equal(v.outcome, KL_OUTCOME_PASS);
        assert_str(v.surface, s->name);
        judged++;
    }
    kl_gate_close(gate);
    assert_true(judged >= 2); /* c and plain, wherever there is a C compiler */
}

/* A copy of the input is no softmax, in whatever language. */
static void test_surface_gate__finds_the_sixth_wrong_when_it_is(void **state) {
    (void)state;
    static const char SOURCE[] =
        ";;! launch f args(x, output, rows, cols)\n"
        "void f(const kl_t_x *x, kl_t_output *y, int rows, int cols) {\n"
        "    for (long i = 0; i < (long)rows * cols; i++) y[i] = x[i];\n}\n";
    kl_gate *gate;
    kl_verdict v;
    kl_kernel *k;
    kl_task *task = softmax_here();
    const kl_gate_opts check = {.workload = "tiny", .check_only = true};
    assert_ok(kl_kernel_parse(&k, arena, kl_str_of(SOURCE), KL_S("k.plain"), NULL, NULL, &e));
    assert_ok(kl_gate_open(&gate, &e));
    assert_ok(kl_gate_run(&v, gate, arena, task, k, &check, &e));
    assert_int_equal(v.outcome, KL_OUTCOME_WRONG);
    kl_gate_close(gate);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_surface_row__is_found_by_name_and_by_ending),
        TEST(test_surface_row__says_what_it_is),
        TEST(test_surface_row__has_files_of_its_own_in_a_task),
        TEST(test_surface_row__either_runs_or_says_so),
        TEST(test_surface_directives__its_example_parses_and_plans),
        TEST(test_surface_directives__an_unknown_clause_is_answered_with_its_own),
        TEST(test_surface_directives__what_is_required_is_asked_for),
        TEST(test_surface_prompt__names_it_and_its_rules),
        TEST(test_surface_reply__a_file_in_any_of_its_fences_is_taken),
        TEST(test_surface_rewrite__mutates_and_counts_without_knowing_it),
        TEST(test_surface_gate__judges_what_runs_and_says_what_does_not),
        TEST(test_surface_gate__finds_the_sixth_wrong_when_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
