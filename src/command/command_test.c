/* command_test.c - the table is sound and the pages made from it are whole.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "command/command.h"
#include <stdio.h>

static void test_command_table__every_command_has_an_example(void **state) {
    (void)state;
    for (int i = 0; kli_commands[i].words; i++) {
        bool found = false;
        for (const kli_example *x = kli_examples; x->line; x++) found |= (int)x->command == i;
        if (!found) fail_msg("%s has no example", kli_commands[i].words);
        assert_non_null(kli_commands[i].run);
        assert_true(kli_commands[i].min_words <= kli_commands[i].max_words);
    }
}

static void test_command_table__option_names_and_letters_are_unique(void **state) {
    (void)state;
    for (int i = 0; kli_options[i].name; i++)
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(kli_options[i].name, kli_options[j].name);
            if (kli_options[i].letter)
                assert_int_not_equal(kli_options[i].letter, kli_options[j].letter);
        }
}

static void test_command_exits__codes_of_errors_and_verdicts_are_documented(void **state) {
    (void)state;
    int codes[64], n = 0;
    for (int code = KL_EMODEL; code <= KL_OK; code++) codes[n++] = kli_exit_of_error((kl_err)code);
    for (int outcome = KL_OUTCOME_PASS; outcome <= KL_OUTCOME_REFUSED; outcome++)
        codes[n++] = kl_verdict_exit_code(&(kl_verdict){.outcome = (kl_outcome)outcome});
    for (int i = 0; i < n; i++) {
        bool found = false;
        for (const kli_exit *x = kli_exits; x->name; x++) found |= x->code == codes[i];
        if (!found) fail_msg("exit status %d is not in commands.def", codes[i]);
    }
}

static void suggests(const char *wanted, const char *a, const char *b, const char *expected) {
    kli_suggestion s;
    kli_suggest_start(&s, kl_str_of(wanted));
    kli_suggest_offer(&s, kl_str_of(a));
    kli_suggest_offer(&s, kl_str_of(b));
    if (expected)
        assert_str(s.best, expected);
    else
        assert_null(s.best.ptr);
}

static void test_command_suggest__finds_slips_and_nothing_else(void **state) {
    (void)state;
    suggests("gaet", "gate", "tune", "gate");
    suggests("gat", "gate", "tune", "gate");
    suggests("wrokload", "workload", "baseline", "workload");
    suggests("softmx", "rmsnorm", "softmax", "softmax");
    suggests("base", "baselines", "baseline", "baseline");
    suggests("xyz", "gate", "tune", NULL);
    suggests("", "gate", "tune", NULL);
}

static void test_command_wrap__breaks_at_words_and_keeps_code(void **state) {
    (void)state;
    kl_buf out = {0};
    kli_page_wrap(&out, 4, KL_S("one two\n\n  code   as it is"));
    assert_str(kl_buf_str(&out), "    one two\n\n      code   as it is\n");
    kl_buf_fini(&out);
    kli_page_wrap(&out, 0,
                  KL_S("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "
                       "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb ccc"));
    assert_str(
        kl_buf_str(&out),
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb ccc\n");
    kl_buf_fini(&out);
}

static void test_command_pages__name_every_command_and_option(void **state) {
    (void)state;
    static const char *const kinds[] = {"man", "complete-bash", "complete-zsh", "complete-fish",
                                        "reference"};
    for (size_t k = 0; k < KL_COUNT(kinds); k++) {
        kl_buf page = {0};
        assert_true(kli_page_generate(&page, kl_str_of(kinds[k])));
        for (const kli_option *o = kli_options; o->name; o++) {
            char name[64], *to = name;
            for (const char *from = o->name; *from; from++) {
                if (*from == '-' && k == 0) *to++ = '\\'; /* roff writes a minus so */
                *to++ = *from;
            }
            *to = '\0';
            assert_contains(page.ptr, name);
        }
        kl_buf_fini(&page);
    }
    assert_false(kli_page_generate(&(kl_buf){0}, KL_S("pdf")));
}

/* A command takes as many words as its usage says, its own words among them. */
static void test_command_table__all_words_fit(void **state) {
    (void)state;
    for (const kl_command *c = kli_commands; c->words; c++) {
        const int own = strchr(c->words, ' ') ? 2 : 1;
        if (own + c->max_words > KL_MAX_WORDS) fail_msg("%s takes %d", c->words, c->max_words);
    }
}

/* Every example is a line of its command. */
static void test_command_table__examples_are_of_their_command(void **state) {
    (void)state;
    for (const kli_example *x = kli_examples; x->line; x++) {
        char begin[80];
        snprintf(begin, sizeof begin, "klineage %s", kli_commands[x->command].words);
        assert_true(kl_str_starts(kl_str_of(x->line), kl_str_of(begin)));
    }
}

static void test_command_number__is_what_was_typed(void **state) {
    kli_args args = {0};
    (void)state;
    assert_int_equal(kli_args_number(&args, KL_OPTION_LIMIT, 50), 50);
    args.values[KL_OPTION_LIMIT] = "0";
    assert_int_equal(kli_args_number(&args, KL_OPTION_LIMIT, 50), 0);
    args.values[KL_OPTION_LIMIT] = "18446744073709551615";
    assert_true(kli_args_number(&args, KL_OPTION_LIMIT, 50) == UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_table__every_command_has_an_example),
        cmocka_unit_test(test_command_table__option_names_and_letters_are_unique),
        cmocka_unit_test(test_command_exits__codes_of_errors_and_verdicts_are_documented),
        cmocka_unit_test(test_command_suggest__finds_slips_and_nothing_else),
        cmocka_unit_test(test_command_wrap__breaks_at_words_and_keeps_code),
        cmocka_unit_test(test_command_pages__name_every_command_and_option),
        cmocka_unit_test(test_command_table__all_words_fit),
        cmocka_unit_test(test_command_table__examples_are_of_their_command),
        cmocka_unit_test(test_command_number__is_what_was_typed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
