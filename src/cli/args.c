/* args.c - the words of a command line, read by the table.
 *
 * Options may stand anywhere, `--name value` or `--name=value`, letters alone or joined (-qv,
 * -wcpu); `--` ends them. An option has one meaning in every command, so words can be read before
 * the command is known.  Whether it fits the command is asked afterwards. SPDX-License-Identifier:
 * Apache-2.0 */
#include "cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    kli_args *out;
    kl_arena *arena;
    char **argv;
    int argc, next;
    kl_error *error;
} args_reader;

static int find_option(kl_str name) {
    for (int i = 0; kli_options[i].name; i++)
        if (kl_str_eq(name, kl_str_of(kli_options[i].name))) return i;
    return -1;
}

static int find_letter(char letter) {
    for (int i = 0; kli_options[i].name; i++)
        if (kli_options[i].letter == letter) return i;
    return -1;
}

static kl_err unknown_option(args_reader *r, kl_str name) {
    kl_fail(r->error, KL_EINVAL, NULL, "unknown option '--%.*s'", KL_STR_ARG(name));
    kli_suggestion s;
    kli_suggest_start(&s, name);
    for (const kli_option *o = kli_options; o->name; o++) kli_suggest_offer(&s, kl_str_of(o->name));
    if (s.best.ptr) return kl_hint(r->error, "did you mean --%.*s?", KL_STR_ARG(s.best));
    return kl_hint(r->error, "klineage help lists commands; klineage help COMMAND lists options");
}

/* ---- values ------------------------------------------------------------------------------ */

static bool args_is_one_of(const char *choices, const char *value) {
    size_t n = strlen(value);
    for (const char *p = choices; n; p++) {
        if (strncmp(p, value, n) == 0 && (p[n] == '\0' || p[n] == '|')) return true;
        p = strchr(p, '|');
        if (!p) break;
    }
    return false;
}

static bool is_number(const char *value) {
    if (!*value || strspn(value, "0123456789") != strlen(value)) return false;
    errno = 0;
    strtoull(value, NULL, 10);
    return errno == 0;
}

static kl_err check_value(args_reader *r, const kli_option *o, const char *value) {
    if (o->kind == KL_OPTION_IS_CHOICE && !args_is_one_of(o->value, value))
        return kl_fail(r->error, KL_EINVAL, NULL, "--%s is one of %s, not '%s'", o->name, o->value,
                       value);
    if ((o->kind == KL_OPTION_IS_NUMBER || (o->kind == KL_OPTION_IS_MAYBE && *value)) &&
        !is_number(value))
        return kl_fail(r->error, KL_EINVAL, NULL, "--%s takes a whole number, not '%s'", o->name,
                       value);
    if (o->kind == KL_OPTION_IS_REPEAT && !strchr(value, '='))
        return kl_fail(r->error, KL_EINVAL, NULL, "--%s takes %s, not '%s'", o->name, o->value,
                       value);
    if (o->kind != KL_OPTION_IS_FLAG && o->kind != KL_OPTION_IS_MAYBE && !*value)
        return kl_fail(r->error, KL_EINVAL, NULL, "--%s needs a value: --%s %s", o->name, o->name,
                       o->value);
    return KL_OK;
}

static kl_err set_option(args_reader *r, int id, const char *value) {
    const kli_option *o = &kli_options[id];
    kl_err err = check_value(r, o, value);
    if (err) return err;
    KL_ASSERT(id >= 0 && id < KL_OPTION_COUNT && value);
    r->out->values[id] = value;
    if (o->kind != KL_OPTION_IS_REPEAT) return KL_OK; /* no command has two of them */
    if (r->out->n_params == KL_MAX_PARAMS)
        return kl_fail(r->error, KL_ELIMIT, NULL, "--%s was given more than %d times", o->name,
                       KL_MAX_PARAMS);
    r->out->params[r->out->n_params++] = value;
    return KL_OK;
}

/* Value of an option that needs one: joined to it, or the next word. */
static kl_err take_value(args_reader *r, int id, const char *joined) {
    const kli_option *o = &kli_options[id];
    if (joined) return set_option(r, id, joined);
    if (r->next == r->argc)
        return kl_fail(r->error, KL_EINVAL, NULL, "--%s needs a value: --%s %s", o->name, o->name,
                       o->value);
    return set_option(r, id, r->argv[r->next++]);
}

/* ---- words ------------------------------------------------------------------------------- */

static kl_err long_option(args_reader *r, const char *text) {
    const char *equals = strchr(text, '=');
    kl_str name = {text, equals ? (size_t)(equals - text) : strlen(text)};
    int id = find_option(name);
    if (id < 0) return unknown_option(r, name);
    if (kli_options[id].kind == KL_OPTION_IS_MAYBE)
        return set_option(r, id, equals ? equals + 1 : "");
    if (kli_options[id].kind != KL_OPTION_IS_FLAG)
        return take_value(r, id, equals ? equals + 1 : NULL);
    if (equals)
        return kl_fail(r->error, KL_EINVAL, NULL, "--%s takes no value", kli_options[id].name);
    return set_option(r, id, "");
}

static kl_err letters(args_reader *r, const char *text) {
    for (; *text; text++) {
        int id = find_letter(*text);
        if (id < 0) {
            kl_fail(r->error, KL_EINVAL, NULL, "unknown option '-%c'", *text);
            return kl_hint(r->error, "klineage help lists the options of every command");
        }
        if (kli_options[id].kind != KL_OPTION_IS_FLAG)
            return take_value(r, id, text[1] ? text + 1 : NULL);
        if (id == KL_OPTION_HELP) r->out->short_help = true;
        r->out->values[id] = "";
    }
    return KL_OK;
}

static kl_err positional(args_reader *r, const char *word) {
    if (r->out->n_words == KL_MAX_WORDS)
        return kl_fail(r->error, KL_EINVAL, NULL, "too many arguments, starting at '%s'", word);
    r->out->words[r->out->n_words++] = word;
    return KL_OK;
}

static kl_err read_words(args_reader *r) {
    kl_err err = KL_OK, first = KL_OK;
    bool options = true;
    while (r->next < r->argc) {
        const char *word = r->argv[r->next++];
        if (options && strcmp(word, "--") == 0)
            options = false;
        else if (options && word[0] == '-' && word[1] == '-')
            err = long_option(r, word + 2);
        else if (options && word[0] == '-' && word[1])
            err = letters(r, word + 1);
        else
            err = positional(r, word);
        if (!err || first) continue;
        first = err;
        r->error = kl_ignored(); /* the first mistake is told; the rest is read for --json and
                            --color */
    }
    return first;
}

/* ---- the command ------------------------------------------------------------------------- */

/* Index of the command that the first words name, and how many words it took. */
static int args_find_command(const kli_args *a, int *used) {
    for (int i = 0; kli_commands[i].words; i++) {
        const char *words = kli_commands[i].words, *gap = strchr(words, ' ');
        size_t n = gap ? (size_t)(gap - words) : strlen(words);
        *used = gap ? 2 : 1;
        if (a->n_words < *used || strlen(a->words[0]) != n || strncmp(words, a->words[0], n) != 0)
            continue;
        if (!gap || strcmp(gap + 1, a->words[1]) == 0) return i;
    }
    return -1;
}

static kl_err without_subcommand(kl_str noun, kl_arena *arena, kl_error *e) {
    kl_buf all = {0};
    for (const kl_command *c = kli_commands; c->words; c++) {
        const char *gap = strchr(c->words, ' ');
        if (!gap || !kl_str_eq((kl_str){c->words, (size_t)(gap - c->words)}, noun)) continue;
        kl_buf_printf(&all, "%s%s", all.len ? ", " : "", gap + 1);
    }
    kl_fail(e, KL_EINVAL, NULL, "'%.*s' needs a subcommand", KL_STR_ARG(noun));
    const kl_str words = kl_buf_take(&all, arena);
    return kl_hint(e, "one of: klineage %.*s %.*s", KL_STR_ARG(noun), KL_STR_ARG(words));
}

static kl_err unknown_command(const kli_args *a, kl_arena *arena, kl_error *e) {
    bool noun = false;
    kl_str first = kl_str_of(a->words[0]);
    kl_str both =
        a->n_words > 1 ? kl_arena_printf(arena, "%s %s", a->words[0], a->words[1]) : first;
    kli_suggestion s;
    kli_suggest_start(&s, both);
    for (const kl_command *c = kli_commands; c->words; c++) {
        kl_str words = kl_str_of(c->words);
        const char *gap = memchr(words.ptr, ' ', words.len);
        if (gap && kl_str_eq((kl_str){words.ptr, (size_t)(gap - words.ptr)}, first)) noun = true;
        kli_suggest_offer(&s, words);
    }
    if (!s.best.ptr && !noun) {
        kli_suggest_start(&s, first);
        for (const kl_command *c = kli_commands; c->words; c++)
            if (!strchr(c->words, ' ')) kli_suggest_offer(&s, kl_str_of(c->words));
    }
    if (noun && a->n_words == 1) return without_subcommand(first, arena, e);
    kl_fail(e, KL_EINVAL, NULL, "unknown command '%.*s'", noun ? (int)both.len : (int)first.len,
            both.ptr);
    if (s.best.ptr) return kl_hint(e, "did you mean klineage %.*s?", KL_STR_ARG(s.best));
    return kl_hint(e, "klineage help lists the commands");
}

static kl_err check_fit(const kli_args *a, kl_error *e) {
    const kl_command *c = a->command < 0 ? NULL : &kli_commands[a->command];
    const char *words = c ? c->words : "klineage without a command";
    for (int i = 0; kli_options[i].name; i++) {
        if (!a->values[i] || kli_option_fits(&kli_options[i], a->command)) continue;
        kl_fail(e, KL_EINVAL, NULL, "--%s is not an option of '%s'", kli_options[i].name, words);
        return kl_hint(e, "klineage help %s", c ? c->words : "");
    }
    if (!c || kli_args_has(a, KL_OPTION_HELP) ||
        (a->n_words >= c->min_words && a->n_words <= c->max_words))
        return KL_OK;
    if (a->n_words > c->max_words)
        kl_fail(e, KL_EINVAL, NULL, "unexpected argument '%s' for '%s'", a->words[c->max_words],
                words);
    else
        kl_fail(e, KL_EINVAL, NULL, "'%s' needs %s", words, c->usage);
    return kl_hint(e, "usage: klineage %s%s%s [OPTIONS]; klineage help %s", words,
                   c->usage[0] ? " " : "", c->usage, words);
}

kl_err kli_cli_args(kli_args *out, kl_arena *a, int argc, char **argv, kl_error *e) {
    *out = (kli_args){.command = -1};
    args_reader r = {.out = out, .arena = a, .argv = argv, .argc = argc, .error = e};
    kl_err err = read_words(&r);
    if (err) return err;
    if (out->n_words) {
        int used = 0;
        out->command = args_find_command(out, &used);
        if (out->command < 0 &&
            kli_args_has(out, KL_OPTION_HELP)) { /* `task --help` is `help task` */
            out->command = KL_COMMAND_HELP;
            out->values[KL_OPTION_HELP] = NULL;
            used = 0;
        }
        if (out->command < 0) return unknown_command(out, a, e);
        KL_ASSERT(used <= out->n_words);
        out->n_words -= used;
        memmove(out->words, out->words + used, sizeof *out->words * (size_t)out->n_words);
        for (int i = 0; i < used; i++) out->words[out->n_words + i] = NULL;
    }
    return check_fit(out, e);
}
