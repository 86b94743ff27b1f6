/* page_reference.c - docs/reference.md and the man page, from the table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"
#include <klineage/model.h>
#include <string.h>

/* ---- markdown ---------------------------------------------------------------------------- */

/* Inside a table cell a bar would begin the next one. */
static void page_reference_cell(kl_buf *out, const char *text) {
    for (const char *p = text; *p; p++) kl_buf_printf(out, *p == '|' ? "\\%c" : "%c", *p);
}

static void option_cells(kl_buf *out, const kli_option *o) {
    kl_buf_printf(out, "| `");
    if (o->letter) kl_buf_printf(out, "-%c, ", o->letter);
    kl_buf_printf(out, "--%s%s", o->name, o->value[0] && o->kind != KL_OPTION_IS_MAYBE ? " " : "");
    page_reference_cell(out, o->value);
    kl_buf_printf(out, "` | ");
    page_reference_cell(out, o->doc);
    kl_buf_printf(out, " |\n");
}

static void page_reference_option_table(kl_buf *out, int command, bool common) {
    bool begun = false;
    for (const kli_option *o = kli_options; o->name; o++) {
        if (!kli_option_fits(o, command) || (o->commands == KL_EVERY) != common) continue;
        if (!begun) kl_buf_printf(out, "\n| option | meaning |\n| --- | --- |\n");
        begun = true;
        option_cells(out, o);
    }
}

static void page_reference_markdown_text(kl_buf *out, const char *text) {
    kl_str paragraph, rest = kl_str_of(text);
    while (kli_page_paragraph(&paragraph, &rest)) {
        bool code = kl_str_starts(paragraph, KL_S("  "));
        kl_buf_printf(out, code ? "\n```\n%.*s\n```\n" : "\n%.*s\n", KL_STR_ARG(paragraph));
    }
}

/* The faces of models, one row each. */
static void model_table(kl_buf *out) {
    kl_buf_printf(out, "\n| `--model` | asks | example |\n| --- | --- | --- |\n");
    for (int i = 0; kl_provider_each(i); i++) {
        const kl_provider *p = kl_provider_each(i);
        kl_buf_printf(out, "| `%s` | %s | `%s` |\n", p->spec, p->doc, p->example);
    }
}

static void command_section(kl_buf *out, int command) {
    KL_ASSERT(command >= 0 && command < KL_COMMAND_COUNT);
    const kl_command *c = &kli_commands[command];
    kl_buf_printf(out, "\n## klineage %s\n\n%s%s\n\n```\nklineage %s%s%s [OPTIONS]\n```\n",
                  c->words, c->summary, kl_str_ends(kl_str_of(c->summary), KL_S("?")) ? "" : ".",
                  c->words, c->usage[0] ? " " : "", c->usage);
    page_reference_markdown_text(out, c->text);
    kl_buf_printf(out, "\n```sh\n");
    for (const kli_example *x = kli_examples; x->line; x++)
        if ((int)x->command == command) kl_buf_printf(out, "%s   # %s\n", x->line, x->doc);
    kl_buf_printf(out, "```\n");
    page_reference_option_table(out, command, false);
}

void kli_page_reference(kl_buf *out) {
    kl_buf_printf(out, "# Command reference\n\n<!-- Generated: klineage --generate reference > "
                       "docs/reference.md -->\n\nThe result goes to stdout; progress, warnings "
                       "and errors go to stderr. `--` ends options.\n\n| command | what it "
                       "does |\n| --- | --- |\n");
    for (const kl_command *c = kli_commands; c->words; c++) {
        kl_buf_printf(out, "| `klineage %s` | ", c->words);
        page_reference_cell(out, c->summary);
        kl_buf_printf(out, " |\n");
    }
    for (int i = 0; kli_commands[i].words; i++) command_section(out, i);
    kl_buf_printf(out, "\n## Options of every command\n");
    page_reference_option_table(out, KL_COMMAND_HELP, true);
    kl_buf_printf(out, "\n## Options without a command\n");
    page_reference_option_table(out, -1, false);
    kl_buf_printf(out, "\n## Exit status\n\n| status | name | meaning |\n| --- | --- | --- |\n");
    for (const kli_exit *x = kli_exits; x->name; x++)
        kl_buf_printf(out, "| %d | %s | %s |\n", x->code, x->name, x->doc);
    kl_buf_printf(out, "\n## Environment\n\n| variable | meaning |\n| --- | --- |\n");
    for (const kli_variable *v = kli_variables; v->name; v++)
        kl_buf_printf(out, "| `%s` | %s |\n", v->name, v->doc);
    for (const kli_topic *t = kli_topics; t->name; t++) {
        if (!t->text) continue;
        kl_buf_printf(out, "\n## %s\n", t->summary);
        if (strcmp(t->name, "models") == 0) model_table(out);
        page_reference_markdown_text(out, t->text);
    }
}

/* ---- man --------------------------------------------------------------------------------- */

/* A line that begins with a dot or a quote is a request to roff; a backslash and a minus have
 * meanings of their own. */
static void roff(kl_buf *out, kl_str text) {
    bool start = true;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (start && (c == '.' || c == '\'')) kl_buf_printf(out, "\\&");
        if (c == '\\')
            kl_buf_printf(out, "\\e");
        else if (c == '-')
            kl_buf_printf(out, "\\-");
        else
            kl_buf_printf(out, "%c", c);
        start = c == '\n';
    }
    kl_buf_printf(out, "\n");
}

static void roff_of(kl_buf *out, const char *text) { roff(out, kl_str_of(text)); }

static void roff_text(kl_buf *out, const char *text) {
    kl_str paragraph, rest = kl_str_of(text);
    while (kli_page_paragraph(&paragraph, &rest)) {
        bool code = kl_str_starts(paragraph, KL_S("  "));
        kl_buf_printf(out, code ? ".nf\n" : ".PP\n");
        roff(out, paragraph);
        if (code) kl_buf_printf(out, ".fi\n");
    }
}

static void roff_option(kl_buf *out, const kli_option *o) {
    kl_buf_printf(out, ".TP\n");
    if (o->letter) kl_buf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
    kl_buf_printf(out, "\\fB\\-\\-");
    for (const char *p = o->name; *p; p++) kl_buf_printf(out, *p == '-' ? "\\%c" : "%c", *p);
    kl_buf_printf(out, "\\fR%s\\fI", o->value[0] && o->kind != KL_OPTION_IS_MAYBE ? " " : "");
    for (const char *p = o->value; *p; p++)
        kl_buf_printf(out, *p == '|' ? "%c\\:" : "%c", *p); /* a line may end there */
    kl_buf_printf(out, "\\fR\n");
    roff_of(out, o->doc);
}

static void roff_options(kl_buf *out, int command, bool common) {
    for (const kli_option *o = kli_options; o->name; o++) {
        if (kli_option_fits(o, command) && (o->commands == KL_EVERY) == common) roff_option(out, o);
    }
}

static void roff_command(kl_buf *out, int command) {
    KL_ASSERT(command >= 0 && command < KL_COMMAND_COUNT);
    const kl_command *c = &kli_commands[command];
    kl_buf_printf(out, ".SS klineage %s \\fI%s\\fR\n", c->words, c->usage);
    roff_of(out, c->summary);
    roff_text(out, c->text);
    roff_options(out, command, false);
    for (const kli_example *x = kli_examples; x->line; x++) {
        if ((int)x->command != command) continue;
        kl_buf_printf(out, ".PP\nExample: ");
        roff_of(out, x->doc);
        kl_buf_printf(out, ".RS\n.nf\n");
        roff_of(out, x->line);
        kl_buf_printf(out, ".fi\n.RE\n");
    }
}

void kli_page_man(kl_buf *out) {
    kl_buf_add(out,
               KL_S(".TH KLINEAGE 1 \"\" \"klineage " KL_VERSION "\" \"User Commands\"\n.ad l\n"
                    ".SH NAME\n"
                    "klineage \\- a referee for compute kernels\n.SH SYNOPSIS\n"
                    "\\fBklineage\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...\n.SH DESCRIPTION\n"
                    "Compiles, checks and times a candidate kernel, and accepts or rejects it with "
                    "the evidence.\n"
                    ".SH COMMANDS\n"));
    for (int i = 0; kli_commands[i].words; i++) roff_command(out, i);
    kl_buf_printf(out, ".SH OPTIONS\n");
    roff_options(out, KL_COMMAND_HELP, true);
    roff_options(out, -1, false);
    kl_buf_printf(out, ".SH EXIT STATUS\n");
    for (const kli_exit *x = kli_exits; x->name; x++) {
        kl_buf_printf(out, ".TP\n\\fB%d\\fR %s\n", x->code, x->name);
        roff_of(out, x->doc);
    }
    kl_buf_printf(out, ".SH ENVIRONMENT\n");
    for (const kli_variable *v = kli_variables; v->name; v++) {
        kl_buf_printf(out, ".TP\n\\fB%s\\fR\n", v->name);
        roff_of(out, v->doc);
    }
}

bool kli_page_generate(kl_buf *out, kl_str kind) {
    static const struct {
        const char *kind;
        void (*page)(kl_buf *out);
    } pages[] = {
        {"man", kli_page_man},
        {"reference", kli_page_reference},
        {"complete-bash", kli_page_bash},
        {"complete-zsh", kli_page_zsh},
        {"complete-fish", kli_page_fish},
        {"records", kli_page_records},
        {"facts", kli_page_facts},
        {"commands", kli_page_commands},
    };
    if (kl_str_starts(kind, KL_S("schema-")))
        return kli_page_schema(out, kind.ptr + strlen("schema-"));
    for (size_t i = 0; i < KL_COUNT(pages); i++)
        if (kl_str_eq(kind, kl_str_of(pages[i].kind))) return pages[i].page(out), true;
    return false;
}
