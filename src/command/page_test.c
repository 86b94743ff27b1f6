/* page_test.c - help, reference, man page and completions say what the table says, each in the
 * manner of its reader.  SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/proc.h"
#include "command/command.h"
#include "kit/kit.h"
#include <jansson.h>
#include <klineage/search.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { TERMINAL_COLUMNS = 80 };

static kl_buf page;

static int tear_down(void **state) {
    kl_buf_fini(&page);
    page = (kl_buf){0};
    return kit_tear_down(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_set_up, tear_down)

static const char *generated(const char *kind) {
    kl_buf_fini(&page);
    page = (kl_buf){0};
    assert_true(kli_page_generate(&page, kl_str_of(kind)));
    return page.ptr;
}

static const kli_topic *topic(const char *name) {
    for (const kli_topic *t = kli_topics; t->name; t++)
        if (strcmp(t->name, name) == 0) return t;
    fail_msg("no topic %s", name);
    return NULL;
}

/* Visits every line; what a line is worth is the visitor's business. */
static int each_line(const char *text, bool (*visit)(const char *line, size_t n)) {
    int met = 0;
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, "\n");
        met += visit(at, n);
        at += n + (at[n] == '\n');
    }
    return met;
}

/* ---- on a terminal ------------------------------------------------------------------------ */

/* Headings are as long as they are, and the alternatives of an option are one word. */
static bool is_too_wide(const char *line, size_t n) {
    if (n <= TERMINAL_COLUMNS || strncmp(line, "klineage ", 9) == 0 ||
        strncmp(line, "  --generate ", 13) == 0)
        return false;
    print_error("%zu columns: %.*s\n", n, (int)n, line);
    return true;
}

static void test_page_help__fits_a_terminal(void **state) {
    (void)state;
    int wide = 0;
    kli_page_overview(&page);
    wide += each_line(page.ptr, is_too_wide);
    for (int i = 0; kli_commands[i].words; i++) {
        page.len = 0;
        kli_page_command(&page, i, false);
        wide += each_line(page.ptr, is_too_wide);
    }
    for (const kli_topic *t = kli_topics; t->name; t++) {
        page.len = 0;
        kli_page_topic(&page, t);
        wide += each_line(page.ptr, is_too_wide);
    }
    assert_int_equal(wide, 0);
}

static void test_page_overview__names_every_command_and_topic(void **state) {
    (void)state;
    kli_page_overview(&page);
    for (const kl_command *c = kli_commands; c->words; c++)
        assert_contains(page.ptr, kl_arena_printf(arena, "\n  %s", c->words).ptr);
    for (const kli_topic *t = kli_topics; t->name; t++)
        assert_contains(page.ptr, kl_arena_printf(arena, "\n  %s", t->name).ptr);
    assert_contains(page.ptr, "--version");
    assert_contains(page.ptr, "--json");
}

/* "--name" as a whole word of the page. */
static bool shows_option(const char *text, const char *name) {
    const kl_str word = kl_arena_printf(arena, "--%s", name);
    for (const char *at = text; (at = strstr(at, word.ptr)) != NULL; at += word.len)
        if (strchr(" \n[", at[word.len])) return true;
    return false;
}

static const char *options_section(int command) {
    page.len = 0;
    kli_page_command(&page, command, false);
    const char *options = strstr(page.ptr, "\noptions\n");
    return options ? options : "";
}

static void test_page_command__shows_the_options_that_fit_and_no_others(void **state) {
    (void)state;
    for (int i = 0; kli_commands[i].words; i++) {
        const char *options = options_section(i);
        for (const kli_option *o = kli_options; o->name; o++) {
            const bool own = o->commands != KL_EVERY && kli_option_fits(o, i);
            bool row = false;
            for (const char *at = options; (at = strchr(at, '\n')) != NULL;) {
                const size_t n = strcspn(++at, "\n");
                row |= n > 2 && at[0] == ' ' && at[2] == '-' &&
                       shows_option(kl_arena_printf(arena, "%.*s\n", (int)n, at).ptr, o->name);
            }
            if (row != own) fail_msg("help of %s, --%s", kli_commands[i].words, o->name);
        }
    }
}

static void test_page_command__in_full_has_examples_and_common_options(void **state) {
    (void)state;
    kli_page_command(&page, KL_COMMAND_GATE, true);
    assert_contains(page.ptr, "usage: klineage gate TASK KERNEL [OPTIONS]\n");
    assert_contains(page.ptr, "  klineage gate gemm new.c --against old.c\n");
    assert_contains(page.ptr, "-w, --workload LABEL|SIZES");
    assert_contains(page.ptr, "--wait-quiet[=SECONDS]"); /* joined, or not at all */
    assert_contains(page.ptr, "--json-pretty");
    page.len = 0;
    kli_page_command(&page, KL_COMMAND_TASK_LIST, false);
    assert_contains(page.ptr, "usage: klineage task list [OPTIONS]\n");
    assert_null(strstr(page.ptr, "\noptions\n"));
    assert_null(strstr(page.ptr, "examples"));
}

static void test_page_topic__lists_come_from_their_tables(void **state) {
    (void)state;
    kli_page_topic(&page, topic("exit-codes"));
    for (const kli_exit *x = kli_exits; x->name; x++)
        assert_contains(page.ptr, kl_arena_printf(arena, "%3d  %s", x->code, x->name).ptr);
    kli_page_topic(&page, topic("environment"));
    for (const kli_variable *v = kli_variables; v->name; v++) assert_contains(page.ptr, v->name);
    kli_page_topic(&page, topic("policies"));
    for (int i = 0; kl_policy_each(i); i++) assert_contains(page.ptr, kl_policy_each(i)->name);
    kli_page_topic(&page, topic("models"));
    for (int i = 0; kl_provider_each(i); i++) assert_contains(page.ptr, kl_provider_each(i)->name);
}

static void test_page_topic__surfaces_say_what_runs_them(void **state) {
    (void)state;
    kli_page_topic(&page, topic("surfaces"));
    assert_contains(page.ptr, "c         .c    for a cpu; assurance B at best\n");
    assert_contains(page.ptr, "cuda      .cu   for a gpu; assurance A at best\n");
    assert_contains(page.ptr, "`#! surface");
    for (int i = 0; kl_surface_each(i); i++) {
        const char *row = strstr(page.ptr, kl_surface_name(kl_surface_each(i)));
        assert_contains(row, kl_surface_each(i)->backends[0] ? "; assurance " : "nothing in this");
    }
}

/* ---- paragraphs --------------------------------------------------------------------------- */

static void test_page_paragraph__ends_at_an_empty_line(void **state) {
    kl_str rest = KL_S("one\ntwo\n\nthree\n\n"), p;
    (void)state;
    assert_true(kli_page_paragraph(&p, &rest));
    assert_str(p, "one\ntwo");
    assert_true(kli_page_paragraph(&p, &rest));
    assert_str(p, "three");
    assert_false(kli_page_paragraph(&p, &rest));
    rest = (kl_str){0};
    assert_false(kli_page_paragraph(&p, &rest));
}

static void test_page_wrap__a_word_too_long_has_a_line_of_its_own(void **state) {
    (void)state;
    char word[101];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    kli_page_wrap(&page, 2, kl_arena_printf(arena, "a %s  b", word));
    assert_str(kl_buf_str(&page), kl_arena_printf(arena, "  a\n  %s\n  b\n", word).ptr);
}

/* ---- markdown ----------------------------------------------------------------------------- */

/* A row of a table of two or three columns, whose cells hold no bar of their own. */
static bool is_broken_row(const char *line, size_t n) {
    int bars = 0;
    if (!n || line[0] != '|') return false;
    for (size_t i = 0; i < n; i++) bars += line[i] == '|' && line[i - (i > 0)] != '\\';
    if (bars == 3 || bars == 4) return false;
    print_error("%d bars: %.*s\n", bars, (int)n, line);
    return true;
}

static bool is_fence(const char *line, size_t n) { return n >= 3 && !strncmp(line, "```", 3); }

static void test_page_reference__is_sound_markdown(void **state) {
    (void)state;
    const char *text = generated("reference");
    assert_int_equal(each_line(text, is_broken_row), 0);
    assert_int_equal(each_line(text, is_fence) % 2, 0);
    for (const kl_command *c = kli_commands; c->words; c++)
        assert_contains(text, kl_arena_printf(arena, "\n## klineage %s\n", c->words).ptr);
    for (const kli_example *x = kli_examples; x->line; x++) assert_contains(text, x->line);
    assert_contains(text, "`-w, --workload LABEL\\|SIZES`");
}

/* ---- man ---------------------------------------------------------------------------------- */

static bool is_stray_request(const char *line, size_t n) {
    static const char *const KNOWN[] = {"TH ", "SH ", "SS ", "TP", "PP",
                                        "nf",  "fi",  "RS",  "RE", "ad l"};
    if (!n || (line[0] != '.' && line[0] != '\'')) return false;
    for (size_t i = 0; i < KL_COUNT(KNOWN); i++)
        if (line[0] == '.' && strncmp(line + 1, KNOWN[i], strlen(KNOWN[i])) == 0) return false;
    print_error("roff would obey: %.*s\n", (int)n, line);
    return true;
}

static bool begins_verbatim(const char *line, size_t n) {
    return n == 3 && !strncmp(line, ".nf", 3);
}
static bool ends_verbatim(const char *line, size_t n) { return n == 3 && !strncmp(line, ".fi", 3); }

static void test_page_man__holds_no_request_by_accident(void **state) {
    (void)state;
    const char *text = generated("man");
    assert_int_equal(each_line(text, is_stray_request), 0);
    assert_int_equal(each_line(text, begins_verbatim), each_line(text, ends_verbatim));
    assert_contains(text, "\\fB\\-\\-wait\\-quiet\\fR\\fI[=SECONDS]\\fR");
    assert_contains(text, "\\fB\\-w\\fR, \\fB\\-\\-workload\\fR");
}

/* ---- shells ------------------------------------------------------------------------------- */

static void test_page_completions__know_every_noun(void **state) {
    (void)state;
    const char *fish = strstr(generated("complete-fish"), "-n __fish_use_subcommand -a '");
    const kl_str fish_nouns = {fish, strcspn(fish, "\n")};
    const kl_str fish_line = kl_arena_copy(arena, fish_nouns);
    const char *zsh = strstr(generated("complete-zsh"), "$said == (");
    const kl_str zsh_line = kl_arena_copy(arena, (kl_str){zsh, strcspn(zsh, ")")});
    for (const kl_command *c = kli_commands; c->words; c++) {
        const size_t n = strcspn(c->words, " ");
        const char *noun = kl_arena_printf(arena, "%.*s", (int)n, c->words).ptr;
        if (!c->words[n]) continue;
        assert_contains(fish_line.ptr, noun);
        assert_contains(zsh_line.ptr, noun);
    }
}

/* What bash would offer for the words, the last of which is being typed; the program that is asked
 * for tasks answers as ours does. */
static const char *completed(const char *words) {
    static const char PROGRAM[] = "#!/bin/sh\n"
                                  "case \"$*\" in\n"
                                  "'task list -q') echo 'gemm    1 shapes'; echo 'softmax x';;\n"
                                  "'task show gemm') printf 'workloads\\n  paper  gpu\\n  odd cpu "
                                  "hidden\\n\\nbaselines\\n  naive\\n';;\n"
                                  "esac\n";
    const char *program = kit_write("klineage", PROGRAM);
    kli_proc_result r;
    assert_int_equal(chmod(program, 0700), 0);
    const kl_str script = kl_arena_printf(
        arena,
        "source %s\nset -u\nCOMP_WORDS=(%s %s)\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
        "compopt() { :; }\ncd %s\n_klineage\necho \" ${COMPREPLY[*]:-} \"\n",
        kit_write("complete.bash", generated("complete-bash")), program, words, kit_folder());
    const char *const argv[] = {"bash", "--norc", "-c", script.ptr, NULL};
    assert_ok(
        kli_proc_run(&r, arena, &(kli_proc_spec){.argv = argv, .timeout_ns = 20000000000}, &e));
    if (r.exit_code || r.err.len) fail_msg("bash says: %s", r.err.ptr);
    return r.out.ptr;
}

static void test_page_bash__offers_what_fits(void **state) {
    static const struct {
        const char *words, *offered, *not_offered;
    } ROWS[] = {
        {"ga", " gate ", " tune "},
        {"''", " lineage ", " list "},
        {"task ''", " check ", " gate "},
        {"library co", " coverage ", " check "},
        {"gate --ba", " --baselines ", " --budget "},
        {"gate gemm k.c --color ''", " never ", " cuda "},
        {"optimize gemm --surface c", " cuda ", " triton "},
        {"optimize gemm --policy best", " bestofn ", " klineage "},
        {"walk --model ant", " anthropic: ", " openai: "},
        {"gate ge", " gemm ", " softmax "},
        {"gate gemm k.c --workload ''", " paper ", " odd "},
        {"probe export --st", " --starts ", " --states "},
        {"--gen", " --generate ", " --json "},
    };
    (void)state;
    for (size_t i = 0; i < KL_COUNT(ROWS); i++) {
        const char *offers = completed(ROWS[i].words);
        if (!strstr(offers, ROWS[i].offered) || strstr(offers, ROWS[i].not_offered))
            fail_msg("klineage %s<TAB> offers%s", ROWS[i].words, offers);
    }
}

/* ---- schemas ------------------------------------------------------------------------------ */

/* Everything that can be named is made, and is a document of its kind. */
static void test_page_generate__makes_every_kind_that_is_offered(void **state) {
    (void)state;
    const char *kinds = kl_arena_copy(arena, kl_str_of(kli_options[KL_OPTION_GENERATE].value)).ptr;
    int schemas = 0;
    for (char *save = NULL, *kind = strtok_r((char *)(uintptr_t)kinds, "|", &save); kind;
         kind = strtok_r(NULL, "|", &save)) {
        const char *text = generated(kind);
        assert_true(strlen(text) > 100);
        if (!kl_str_starts(kl_str_of(kind), KL_S("schema-"))) continue;
        json_t *schema = json_loads(text, 0, NULL);
        assert_non_null(json_object_get(schema, "$schema"));
        json_decref(schema);
        schemas++;
    }
    assert_true(schemas >= 8);
    assert_false(kli_page_generate(&page, KL_S("pdf")));
    assert_false(kli_page_generate(&page, KL_S("schema-pdf")));
}

/* A document that the page of records shows has a schema that can be asked for. */
static void test_page_records__each_has_a_schema_that_is_offered(void **state) {
    static const char *const NAMES[] = {"verdict", "lineage", "card-evidence", "step",
                                        "charge",  "job",     "probe",         "probe-state"};
    const char *offered = kli_options[KL_OPTION_GENERATE].value;
    (void)state;
    for (size_t i = 0; i < KL_COUNT(NAMES); i++) {
        page.len = 0;
        if (!kli_page_schema(&page, NAMES[i])) fail_msg("no schema of %s", NAMES[i]);
        const kl_str word = kl_arena_printf(arena, "|schema-%s|", NAMES[i]);
        assert_contains(kl_arena_printf(arena, "%s|", offered).ptr, word.ptr);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_page_help__fits_a_terminal),
        TEST(test_page_overview__names_every_command_and_topic),
        TEST(test_page_command__shows_the_options_that_fit_and_no_others),
        TEST(test_page_command__in_full_has_examples_and_common_options),
        TEST(test_page_topic__lists_come_from_their_tables),
        TEST(test_page_topic__surfaces_say_what_runs_them),
        TEST(test_page_paragraph__ends_at_an_empty_line),
        TEST(test_page_wrap__a_word_too_long_has_a_line_of_its_own),
        TEST(test_page_reference__is_sound_markdown),
        TEST(test_page_man__holds_no_request_by_accident),
        TEST(test_page_completions__know_every_noun),
        TEST(test_page_bash__offers_what_fits),
        TEST(test_page_generate__makes_every_kind_that_is_offered),
        TEST(test_page_records__each_has_a_schema_that_is_offered),
    };
    return cmocka_run_group_tests_name("page", tests, NULL, NULL);
}
