/* main.c - klineage, the program: read the words, run the one command, show its result.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "base/terminal.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void set_up(const kl_args *args) {
    const bool quiet = kl_args_has(args, KL_OPTION_QUIET);
    kl_terminal_json(kl_args_has(args, KL_OPTION_JSON) || kl_args_has(args, KL_OPTION_JSON_PRETTY));
    kl_terminal_watch(quiet ? KL_QUIET : kl_args_has(args, KL_OPTION_VERBOSE) ? KL_VERBOSE : KL_NORMAL);
    signal(SIGPIPE, SIG_IGN); /* a runner that died is an answer, not our end */
    signal(SIGXFSZ, SIG_IGN); /* a journal that may not grow is an error with a name */
    kl_interrupt_install();
}

/* What was asked for without a command: --version, --generate, --help, nothing. */
static void answer_alone(const kl_args *args, kl_result *r) {
    if (kl_args_has(args, KL_OPTION_VERSION)) {
        kl_buf_printf(&r->text, "klineage %s\n", KL_VERSION);
        r->json = json_pack("{s:s, s:i, s:s}", "schema", "klineage/version", "version", 1, "klineage", KL_VERSION);
    } else if (kl_args_has(args, KL_OPTION_GENERATE)) {
        bool known = kl_page_generate(&r->text, kl_str_of(args->values[KL_OPTION_GENERATE]));
        KL_ASSERT(known); /* args.c checked the choice */
    } else {
        kl_page_overview(&r->text);
    }
}

static kl_err answer(const kl_args *args, kl_context *c, kl_result *r, kl_error *e) {
    if (args->command < 0) return answer_alone(args, r), KL_OK;
    if (kl_args_has(args, KL_OPTION_HELP)) return kl_page_command(&r->text, args->command, !args->short_help), KL_OK;
    return kl_command_at(args->command)->run(c, args, r, e);
}

/* Whatever was going on when ^C came (a compiler, a baseline) is not what the user has to know. */
static void explain_interrupt(kl_error *e) {
    if (!e->hint[0]) kl_hint(e, "re-run the same command to continue; journaled verdicts and answers are reused");
    e->where[0] = '\0';
    if (!strstr(e->message, "interrupted;")) snprintf(e->message, sizeof e->message, "interrupted");
}

int main(int argc, char **argv) {
    kl_arena *arena = kl_arena_new();
    kl_args args;
    kl_error e = {0};
    kl_result result = {0};
    kl_err err = kl_cli_args(&args, arena, argc - 1, argv + 1, &e);
    kl_context context = {.arena = arena, .colour = kl_cli_colour(&args, STDOUT_FILENO)};
    if (!err) {
        set_up(&args);
        err = answer(&args, &context, &result, &e);
    }
    if (err && !e.code) kl_fail(&e, err, NULL, "%s", kl_err_name(err));
    if (err == KL_EINTR) explain_interrupt(&e);
    int status = err ? kl_cli_show_error(&args, arena, &e) : kl_cli_show_result(&args, arena, &result);
    kl_result_fini(&result);
    kl_arena_free(arena);
    return status;
}
