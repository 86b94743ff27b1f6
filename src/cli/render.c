/* render.c - results to stdout, errors to stderr; text for people or one JSON object.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "base/json.h"
#include "base/log.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && *value;
}

bool kli_cli_colour(const kli_args *args, int fd) {
    const char *requested = args->values[KL_OPTION_COLOR];
    if (requested && strcmp(requested, "always") == 0) return true;
    if (requested && strcmp(requested, "never") == 0) return false;
    const char *terminal = getenv("TERM");
    return !is_set("NO_COLOR") && isatty(fd) && terminal && strcmp(terminal, "dumb") != 0;
}

static bool wants_json(const kli_args *args) {
    return kli_args_has(args, KL_OPTION_JSON) || kli_args_has(args, KL_OPTION_JSON_PRETTY);
}

static bool render_put(FILE *stream, kl_str text) {
    if (text.len) fwrite(text.ptr, 1, text.len, stream);
    return fflush(stream) == 0 && !ferror(stream);
}

/* Bytes of the colour that begins here, "ESC [ digits m"; 0: none. */
static size_t colour_at(kl_str s) {
    size_t i = 2;
    if (s.len < 3 || s.ptr[0] != '\033' || s.ptr[1] != '[') return 0;
    while (i < s.len && strchr("0123456789;", s.ptr[i]) && s.ptr[i]) i++;
    return i < s.len && s.ptr[i] == 'm' ? i + 1 : 0;
}

/* Words of models, cards and files are among the text: line ends, tabs and colours are all that may
 * reach a terminal of control characters, those of two bytes (U+0080 to U+009F) included. */
static kl_str render_tame(kl_arena *a, kl_str text, bool colour) {
    char *out = kl_arena_alloc(a, text.len + 1, 1);
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i],
                            next = i + 1 < text.len ? (unsigned char)text.ptr[i + 1] : 0;
        const size_t sgr = colour ? colour_at((kl_str){text.ptr + i, text.len - i}) : 0;
        const bool one = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f,
                   two = c == 0xc2 && next >= 0x80 && next < 0xa0;
        KL_ASSERT(i + (two ? 2 : 1) <= text.len);
        memcpy(out + i, one ? " " : two ? "  " : text.ptr + i, two ? 2 : 1);
        if (sgr) memcpy(out + i, text.ptr + i, sgr);
        i += sgr ? sgr - 1 : two;
    }
    return (kl_str){out, text.len};
}

int kli_cli_show_error(const kli_args *args, kl_arena *a, const kl_error *e) {
    kli_base_progress("%s", "");
    int code = kli_exit_of_error(e->code);
    if (wants_json(args)) {
        json_t *o = json_pack(
            "{ss si ss so so so so so}", "schema", "klineage/error", "version", 1, "error",
            kl_err_name(e->code), "exit_code", json_integer(code), "where",
            kli_json_str(kl_str_of(e->where)), "message", kli_json_str(kl_str_of(e->message)),
            "detail", kli_json_str(kl_str_of(e->detail)), "hint", kli_json_str(kl_str_of(e->hint)));
        kl_str line = kli_json_dump(a, o, false);
        json_decref(o);
        fprintf(stderr, "%.*s\n", KL_STR_ARG(line));
        return code;
    }
    kl_buf text = {0};
    kl_error_render(e, &text);
    bool colour = kli_cli_colour(args, STDERR_FILENO);
    fputs(colour ? "\033[31mklineage:\033[0m " : "klineage: ", stderr);
    render_put(stderr, kl_buf_str(&text));
    kl_buf_fini(&text);
    return code;
}

int kli_cli_show_result(const kli_args *args, kl_arena *a, const kli_command_result *r) {
    kli_base_progress("%s", "");
    bool pretty = kli_args_has(args, KL_OPTION_JSON_PRETTY), ok;
    if (wants_json(args) && r->json) {
        ok = render_put(stdout, kli_json_dump(a, r->json, pretty));
        if (ok && !pretty) ok = render_put(stdout, KL_S("\n"));
    } else {
        ok = render_put(stdout,
                        render_tame(a, kl_buf_str(&r->text), kli_cli_colour(args, STDOUT_FILENO)));
    }
    if (!ok) {
        if (errno == EPIPE) return 2; /* the reader went away and does not want to hear of it */
        kl_error e = {0};
        kl_fail(&e, KL_EIO, "stdout", "cannot write: %s", strerror(errno));
        return kli_cli_show_error(args, a, &e);
    }
    if (r->trouble.code) return kli_cli_show_error(args, a, &r->trouble);
    return r->exit_code;
}
