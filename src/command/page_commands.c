/* page_commands.c - the table of commands as JSON, for faces that are not a shell: the Python
 * package makes its functions of it, the server of the Model Context Protocol its tools.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"
#include <stdlib.h>

static const char *option_kind(const kli_option *o) {
    static const char *const KINDS[] = {
        [KL_OPTION_IS_FLAG] = "flag",     [KL_OPTION_IS_TEXT] = "text",
        [KL_OPTION_IS_NUMBER] = "number", [KL_OPTION_IS_CHOICE] = "choice",
        [KL_OPTION_IS_REPEAT] = "repeat", [KL_OPTION_IS_MAYBE] = "maybe"};
    KL_ASSERT((size_t)o->kind < KL_COUNT(KINDS) && KINDS[o->kind]);
    return KINDS[o->kind];
}

/* Those of every command are about a terminal. */
static json_t *options_of(int command) {
    json_t *all = json_array();
    for (const kli_option *o = kli_options; o->name; o++) {
        if (!kli_option_fits(o, command) || o->commands == KL_EVERY) continue;
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s}", "name", o->name, "kind",
                                             option_kind(o), "value", o->value, "doc", o->doc));
    }
    return all;
}

static json_t *command_examples(int command) {
    json_t *all = json_array();
    for (const kli_example *x = kli_examples; x->line; x++)
        if ((int)x->command == command)
            json_array_append_new(all, json_pack("{s:s, s:s}", "line", x->line, "doc", x->doc));
    return all;
}

static json_t *one_command(int command) {
    const kl_command *c = &kli_commands[command];
    return json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:o, s:o}", "words", c->words, "usage",
                     c->usage, "least", c->min_words, "most", c->max_words, "summary", c->summary,
                     "text", c->text, "options", options_of(command), "examples",
                     command_examples(command));
}

void kli_page_commands(kl_buf *out) {
    json_t *commands = json_array(), *exits = json_array();
    for (int i = 0; kli_commands[i].words; i++) json_array_append_new(commands, one_command(i));
    for (const kli_exit *x = kli_exits; x->name; x++)
        json_array_append_new(
            exits, json_pack("{s:i, s:s, s:s}", "status", x->code, "name", x->name, "doc", x->doc));
    json_t *all = json_pack("{s:s, s:i, s:s, s:o, s:o}", "schema", "klineage/commands", "version",
                            1, "klineage", KL_VERSION, "commands", commands, "exits", exits);
    KL_ASSERT(all);
    char *text = json_dumps(all, JSON_INDENT(1));
    if (!text) kl_oom(0);
    kl_buf_printf(out, "%s\n", text);
    free(text);
    json_decref(all);
}
