/* cmd_help.c - `klineage help`: the overview, a command, a topic.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"
#include <string.h>

static int cmd_help_find_command(kl_str words) {
    for (int i = 0; kli_commands[i].words; i++)
        if (kl_str_eq(words, kl_str_of(kli_commands[i].words))) return i;
    return -1;
}

static const kli_topic *find_topic(kl_str name) {
    for (const kli_topic *t = kli_topics; t->name; t++)
        if (kl_str_eq(name, kl_str_of(t->name))) return t;
    return NULL;
}

/* `help task`: every command that begins with the word. */
static bool show_family(kl_buf *out, kl_arena *a, kl_str noun) {
    kl_str prefix = kl_arena_printf(a, "%.*s ", KL_STR_ARG(noun));
    size_t before = out->len;
    for (int i = 0; kli_commands[i].words; i++) {
        if (!kl_str_starts(kl_str_of(kli_commands[i].words), prefix)) continue;
        if (out->len > before) kl_buf_printf(out, "\n");
        kli_page_command(out, i, false);
    }
    return out->len > before;
}

kl_err kli_cmd_help(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    if (args->n_words == 0) return kli_page_overview(&out->text), KL_OK;
    kl_str wanted =
        kl_arena_printf(c->arena, "%s%s%s", args->words[0], args->n_words > 1 ? " " : "",
                        args->n_words > 1 ? args->words[1] : "");
    int command = cmd_help_find_command(wanted);
    const kli_topic *topic = find_topic(wanted);
    if (command >= 0) return kli_page_command(&out->text, command, true), KL_OK;
    if (topic) return kli_page_topic(&out->text, topic), KL_OK;
    if (show_family(&out->text, c->arena, wanted)) return KL_OK;
    kli_suggestion s;
    kli_suggest_start(&s, wanted);
    for (const kl_command *x = kli_commands; x->words; x++)
        kli_suggest_offer(&s, kl_str_of(x->words));
    for (const kli_topic *t = kli_topics; t->name; t++) kli_suggest_offer(&s, kl_str_of(t->name));
    KL_ASSERT(!out->text.len); /* what has a page was shown */
    kl_fail(e, KL_EINVAL, NULL, "no help on '%.*s'", KL_STR_ARG(wanted));
    if (s.best.ptr) return kl_hint(e, "did you mean klineage help %.*s?", KL_STR_ARG(s.best));
    return kl_hint(e, "klineage help lists commands and topics");
}
