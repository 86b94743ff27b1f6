/* case_test.c - runs tests/cases/cli and tests/cases/command: every line is what follows
 * `klineage`; what is understood of it, and what a command answers.
 *
 * Words are separated by blanks; '' is an empty word.  SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "base/json.h"
#include "kit/case.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int split(char **argv, int most, kl_str line) {
    int n = 0;
    for (kl_str w; (w = kit_word(&line)).len; n++) {
        assert_true(n < most);
        argv[n] =
            (char *)(uintptr_t)kl_arena_copy(arena, kl_str_eq(w, KL_S("''")) ? KL_S("") : w).ptr;
    }
    return n;
}

static void print_args(kl_buf *out, const kli_args *args) {
    const kl_command *c = args->command < 0 ? NULL : &kli_commands[args->command];
    kl_buf_printf(out, "  %s", c ? c->words : "(no command)");
    for (int i = 0; i < args->n_words; i++) kl_buf_printf(out, " [%s]", args->words[i]);
    for (int i = 0; kli_options[i].name; i++)
        if (args->values[i] && kli_options[i].kind != KL_OPTION_IS_REPEAT)
            kl_buf_printf(out, " %s%s%s", kli_options[i].name, *args->values[i] ? "=" : "",
                          args->values[i]);
    for (int i = 0; i < args->n_params; i++) kl_buf_printf(out, " param %s", args->params[i]);
    kl_buf_add(out, args->short_help ? KL_S(" short\n") : KL_S("\n"));
}

static void run_line(kl_buf *out, kl_str line) {
    char *argv[KL_MAX_PARAMS + 32];
    kli_args args;
    int argc = split(argv, (int)KL_COUNT(argv), line);
    e = (kl_error){0};
    kl_buf_printf(out, "$ %.*s\n", KL_STR_ARG(line));
    if (kli_cli_args(&args, arena, argc, argv, &e))
        kl_buf_printf(out, "  error: %s%s%s\n", e.message, e.hint[0] ? "\n  hint: " : "", e.hint);
    else
        print_args(out, &args);
}

static void each_line(kl_buf *out, const kit_case *c, void (*run)(kl_buf *, kl_str)) {
    for (kl_str rest = c->input; rest.len;) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        const kl_str line = {rest.ptr, (size_t)(end - rest.ptr)};
        rest = (kl_str){end + 1, rest.len - line.len - 1};
        run(out, line);
    }
}

static void run_case(kl_buf *out, const kit_case *c) { each_line(out, c, run_line); }

static void test_cli_args__every_case_is_understood(void **state) {
    (void)state;
    kit_run_cases(KL_TEST_ROOT "/tests/cases/cli", 5, run_case);
}

/* ---- what commands answer ---------------------------------------------------------------- */

/* The folder of the test stands as @ in a line. */
static kl_str in_folder(kl_str line) {
    kl_buf b = {0};
    for (size_t i = 0; i < line.len; i++)
        line.ptr[i] == '@' ? kl_buf_printf(&b, "%s", kit_folder())
                           : kl_buf_add(&b, (kl_str){line.ptr + i, 1});
    const kl_str made = kl_arena_copy(arena, kl_buf_str(&b));
    kl_buf_fini(&b);
    return made;
}

static void print_answer(kl_buf *out, const kli_args *args, const kli_command_result *r) {
    const bool json = kli_args_has(args, KL_OPTION_JSON_PRETTY) && r->json;
    kl_buf_add(out, json ? kli_json_dump(arena, r->json, true) : kl_buf_str(&r->text));
    if (r->exit_code) kl_buf_printf(out, "status %d\n", r->exit_code);
}

static void run_command(kl_buf *out, kl_str line) {
    char *argv[KL_MAX_PARAMS + 32];
    kli_args args;
    kli_command_result r = {0};
    kli_context c = {.arena = arena};
    e = (kl_error){0};
    kl_buf_printf(out, "$ %.*s\n", KL_STR_ARG(line));
    const int argc = split(argv, (int)KL_COUNT(argv), in_folder(line));
    kl_err err = kli_cli_args(&args, arena, argc, argv, &e);
    if (!err) err = kli_commands[args.command].run(&c, &args, &r, &e);
    if (err)
        kl_buf_printf(out, "status %d: %s%s%s\n", kli_exit_of_error(err), e.message,
                      e.hint[0] ? "\nhint: " : "", e.hint);
    else
        print_answer(out, &args, &r);
    kli_result_fini(&r);
}

static void run_command_case(kl_buf *out, const kit_case *c) { each_line(out, c, run_command); }

/* Tasks and kernels are named as a person in the root of the project names them. */
static void test_command__every_case_is_answered(void **state) {
    (void)state;
    assert_int_equal(chdir(KL_TEST_ROOT), 0);
    setenv("KLINEAGE_TASKS", "tasks", 1);
    setenv("KLINEAGE_LIBRARY", "/nowhere/library", 1);
    kit_run_cases("tests/cases/command", 7, run_command_case);
}

/* ---- what reaches a terminal ------------------------------------------------------------- */

/* What is written to `fd` while `act` runs. */
static const char *written(int fd, int (*act)(const kli_args *), const kli_args *args,
                           int *status) {
    static char text[4096];
    FILE *file = tmpfile();
    int kept = dup(fd);
    assert_non_null(file);
    fflush(NULL);
    dup2(fileno(file), fd);
    *status = act(args);
    fflush(NULL);
    dup2(kept, fd);
    close(kept);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int show_hostile(const kli_args *args) {
    kli_command_result r = {.exit_code = 4};
    kl_buf_add(&r.text, KL_S("a\033[2Jb\033[31mred\033[0m\ttab\x7f \xc2\x9b"
                             "c\n"));
    int status = kli_cli_show_result(args, arena, &r);
    kli_result_fini(&r);
    return status;
}

static void test_cli_render__only_colours_reach_a_terminal(void **state) {
    (void)state;
    kli_args args = {.command = -1};
    int status;
    args.values[KL_OPTION_COLOR] = "never";
    assert_string_equal(written(STDOUT_FILENO, show_hostile, &args, &status),
                        "a [2Jb [31mred [0m\ttab    c\n");
    assert_int_equal(status, 4);
    args.values[KL_OPTION_COLOR] = "always";
    assert_string_equal(written(STDOUT_FILENO, show_hostile, &args, &status),
                        "a [2Jb\033[31mred\033[0m\ttab    c\n");
}

static int show_json(const kli_args *args) {
    kli_command_result r = {.json = json_pack("{s:s}", "schema", "klineage/x")};
    kl_buf_add(&r.text, KL_S("for people\n"));
    int status = kli_cli_show_result(args, arena, &r);
    kli_result_fini(&r);
    return status;
}

static int show_trouble(const kli_args *args) {
    kli_command_result r = {.exit_code = 0};
    kl_fail(&r.trouble, KL_EIO, "journal.db", "disk full");
    kl_hint(&r.trouble, "df");
    return kli_cli_show_result(args, arena, &r);
}

static void test_cli_render__json_is_one_line_and_errors_have_a_status(void **state) {
    (void)state;
    kli_args args = {.command = -1};
    int status;
    assert_string_equal(written(STDOUT_FILENO, show_json, &args, &status), "for people\n");
    args.values[KL_OPTION_JSON] = "";
    assert_string_equal(written(STDOUT_FILENO, show_json, &args, &status),
                        "{\"schema\":\"klineage/x\"}\n");
    const char *said = written(STDERR_FILENO, show_trouble, &args, &status);
    assert_int_equal(status, kli_exit_of_error(KL_EIO));
    assert_contains(said, "\"message\":\"disk full\"");
    assert_contains(said, "\"hint\":\"df\"");
    args.values[KL_OPTION_JSON] = NULL;
    args.values[KL_OPTION_COLOR] = "never";
    assert_contains(written(STDERR_FILENO, show_trouble, &args, &status), "klineage: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_args__every_case_is_understood),
        cmocka_unit_test(test_command__every_case_is_answered),
        KIT_TEST(test_cli_render__only_colours_reach_a_terminal),
        KIT_TEST(test_cli_render__json_is_one_line_and_errors_have_a_status),
    };
    return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
