/* main.c - klineage, the program: read the words, run the one command, show its result.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "base/log.h"
#include "base/terminal.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void set_up(const kli_args *args) {
    const bool quiet = kli_args_has(args, KL_OPTION_QUIET);
    kli_terminal_json(kli_args_has(args, KL_OPTION_JSON) ||
                      kli_args_has(args, KL_OPTION_JSON_PRETTY));
    kli_terminal_watch(quiet                                   ? KL_QUIET
                       : kli_args_has(args, KL_OPTION_VERBOSE) ? KL_VERBOSE
                                                               : KL_NORMAL);
    signal(SIGPIPE, SIG_IGN); /* a runner that died is an answer, not our end */
    signal(SIGXFSZ, SIG_IGN); /* a journal that may not grow is an error with a name */
    kli_interrupt_install();
}

/* What was asked for without a command: --version, --generate, --help, nothing. */
static void answer_alone(const kli_args *args, kli_command_result *r) {
    if (kli_args_has(args, KL_OPTION_VERSION)) {
        kl_buf_printf(&r->text, "klineage %s\n", KL_VERSION);
        r->json = json_pack("{s:s, s:i, s:s}", "schema", "klineage/version", "version", 1,
                            "klineage", KL_VERSION);
    } else if (kli_args_has(args, KL_OPTION_GENERATE)) {
        bool known = kli_page_generate(&r->text, kl_str_of(args->values[KL_OPTION_GENERATE]));
        KL_ASSERT(known); /* args.c checked the choice */
    } else {
        kli_page_overview(&r->text);
    }
}

static kl_err main_answer(const kli_args *args, kli_context *c, kli_command_result *r,
                          kl_error *e) {
    if (args->command < 0) return answer_alone(args, r), KL_OK;
    if (kli_args_has(args, KL_OPTION_HELP))
        return kli_page_command(&r->text, args->command, !args->short_help), KL_OK;
    return kli_commands[args->command].run(c, args, r, e);
}

/* Whatever was going on when ^C came (a compiler, a baseline) is not what the user has to know. */
static void explain_interrupt(kl_error *e) {
    if (!e->hint[0])
        kl_hint(e,
                "re-run the same command to continue; journaled verdicts and answers are reused");
    e->where[0] = '\0';
    if (!strstr(e->message, "interrupted;")) snprintf(e->message, sizeof e->message, "interrupted");
}

/* What goes on changing, on a screen: shown in place of the one before until ^C. */
static kl_err show_anew(const kli_args *args, const kli_context *c, kli_command_result *r,
                        kl_error *e) {
    kl_err err = KL_OK;
    kli_context now = {.colour = c->colour};
    while (!err && r->again_ms && isatty(STDOUT_FILENO)) {
        fputs("\033[H\033[2J", stdout);
        fwrite(r->text.ptr ? r->text.ptr : "", 1, r->text.len, stdout);
        fflush(stdout);
        const int rest_ms = r->again_ms;
        kli_result_fini(r);
        *r = (kli_command_result){0};
        nanosleep(
            &(struct timespec){.tv_sec = rest_ms / 1000, .tv_nsec = rest_ms % 1000 * 1000000L},
            NULL);
        if (kli_interrupted()) return KL_OK;
        kl_arena_free(now.arena); /* hours of watching */
        now.arena = kl_arena_new();
        err = main_answer(args, &now, r, e);
    }
    kl_arena_free(now.arena);
    return err;
}

int main(int argc, char **argv) {
    kl_arena *arena = kl_arena_new();
    kli_args args;
    kl_error e = {0};
    kli_command_result result = {0};
    kl_err err = kli_cli_args(&args, arena, argc - 1, argv + 1, &e);
    kli_context context = {.arena = arena, .colour = kli_cli_colour(&args, STDOUT_FILENO)};
    if (!err) {
        set_up(&args);
        err = main_answer(&args, &context, &result, &e);
        if (!err) err = show_anew(&args, &context, &result, &e);
    }
    if (err && !e.code) kl_fail(&e, err, NULL, "%s", kl_err_name(err));
    if (err == KL_EINTR) explain_interrupt(&e);
    int status =
        err ? kli_cli_show_error(&args, arena, &e) : kli_cli_show_result(&args, arena, &result);
    kli_result_fini(&result);
    kl_arena_free(arena);
    return status;
}
