/* page_reference.c - docs/reference.md and the man page, from the table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"
#include <string.h>

/* ---- markdown ---------------------------------------------------------------------------- */

/* Inside a table cell a bar would begin the next one. */
static void page_reference_cell(kl_buf *out, const char *text) {
    for (const char *p = text; *p; p++) kl_buf_printf(out, *p == '|' ? "\\%c" : "%c", *p);
}

static void option_cells(kl_buf *out, const kli_option *o) {
    kl_buf_add(out, KL_S("| `"));
    if (o->letter) kl_buf_printf(out, "-%c, ", o->letter);
    kl_buf_printf(out, "--%s%s", o->name, o->value[0] && o->kind != KL_OPTION_IS_MAYBE ? " " : "");
    page_reference_cell(out, o->value);
    kl_buf_add(out, KL_S("` | "));
    page_reference_cell(out, o->doc);
    kl_buf_add(out, KL_S(" |\n"));
}

static void page_reference_option_table(kl_buf *out, int command, bool common) {
    bool begun = false;
    for (int i = 0; kli_option_at(i); i++) {
        const kli_option *o = kli_option_at(i);
        if (!kli_option_fits(o, command) || (o->commands == KL_EVERY) != common) continue;
        if (!begun) kl_buf_add(out, KL_S("\n| option | meaning |\n| --- | --- |\n"));
        begun = true;
        option_cells(out, o);
    }
}

static void page_reference_markdown_text(kl_buf *out, const char *text) {
    for (kl_str rest = kl_str_of(text); rest.len;) {
        const char *gap = memmem(rest.ptr, rest.len, "\n\n", 2);
        kl_str paragraph = {rest.ptr, gap ? (size_t)(gap - rest.ptr) : rest.len};
        bool code = kl_str_starts(paragraph, KL_S("  "));
        kl_buf_printf(out, code ? "\n```\n%.*s\n```\n" : "\n%.*s\n", KL_STR_ARG(paragraph));
        size_t used = paragraph.len + (gap ? 2 : 0);
        rest = (kl_str){rest.ptr + used, rest.len - used};
    }
}

static void command_section(kl_buf *out, int command) {
    const kl_command *c = kli_command_at(command);
    kl_buf_printf(out, "\n## klineage %s\n\n%s%s\n\n```\nklineage %s%s%s [OPTIONS]\n```\n",
                  c->words, c->summary, kl_str_ends(kl_str_of(c->summary), KL_S("?")) ? "" : ".",
                  c->words, c->usage[0] ? " " : "", c->usage);
    page_reference_markdown_text(out, c->text);
    kl_buf_add(out, KL_S("\n```sh\n"));
    for (int i = 0; kli_example_at(i); i++)
        if ((int)kli_example_at(i)->command == command)
            kl_buf_printf(out, "%s   # %s\n", kli_example_at(i)->line, kli_example_at(i)->doc);
    kl_buf_add(out, KL_S("```\n"));
    page_reference_option_table(out, command, false);
}

void kli_page_reference(kl_buf *out) {
    kl_buf_add(out, KL_S("# Command reference\n\n<!-- Generated: klineage --generate reference > "
                         "docs/reference.md -->\n\n"
                         "The result goes to stdout; progress, warnings and errors go to stderr. "
                         "`--` ends options.\n\n"
                         "| command | what it does |\n| --- | --- |\n"));
    for (int i = 0; kli_command_at(i); i++) {
        kl_buf_printf(out, "| `klineage %s` | ", kli_command_at(i)->words);
        page_reference_cell(out, kli_command_at(i)->summary);
        kl_buf_add(out, KL_S(" |\n"));
    }
    for (int i = 0; kli_command_at(i); i++) command_section(out, i);
    kl_buf_add(out, KL_S("\n## Options of every command\n"));
    page_reference_option_table(out, KL_COMMAND_HELP, true);
    kl_buf_add(out, KL_S("\n## Options without a command\n"));
    page_reference_option_table(out, -1, false);
    kl_buf_add(out, KL_S("\n## Exit status\n\n| status | name | meaning |\n| --- | --- | --- |\n"));
    for (int i = 0; kli_exit_at(i); i++)
        kl_buf_printf(out, "| %d | %s | %s |\n", kli_exit_at(i)->code, kli_exit_at(i)->name,
                      kli_exit_at(i)->doc);
    kl_buf_add(out, KL_S("\n## Environment\n\n| variable | meaning |\n| --- | --- |\n"));
    for (int i = 0; kli_variable_at(i); i++)
        kl_buf_printf(out, "| `%s` | %s |\n", kli_variable_at(i)->name, kli_variable_at(i)->doc);
    for (int i = 0; kli_topic_at(i); i++) {
        if (!kli_topic_at(i)->text) continue;
        kl_buf_printf(out, "\n## %s\n", kli_topic_at(i)->summary);
        page_reference_markdown_text(out, kli_topic_at(i)->text);
    }
}

/* ---- man --------------------------------------------------------------------------------- */

/* A line that begins with a dot or a quote is a request to roff; a backslash and a minus have
 * meanings of their own. */
static void roff(kl_buf *out, kl_str text) {
    bool start = true;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (start && (c == '.' || c == '\'')) kl_buf_add(out, KL_S("\\&"));
        if (c == '\\')
            kl_buf_add(out, KL_S("\\e"));
        else if (c == '-')
            kl_buf_add(out, KL_S("\\-"));
        else
            kl_buf_printf(out, "%c", c);
        start = c == '\n';
    }
    kl_buf_add(out, KL_S("\n"));
}

static void roff_of(kl_buf *out, const char *text) { roff(out, kl_str_of(text)); }

static void roff_text(kl_buf *out, const char *text) {
    for (kl_str rest = kl_str_of(text); rest.len;) {
        const char *gap = memmem(rest.ptr, rest.len, "\n\n", 2);
        kl_str paragraph = {rest.ptr, gap ? (size_t)(gap - rest.ptr) : rest.len};
        bool code = kl_str_starts(paragraph, KL_S("  "));
        kl_buf_add(out, code ? KL_S(".nf\n") : KL_S(".PP\n"));
        roff(out, paragraph);
        if (code) kl_buf_add(out, KL_S(".fi\n"));
        size_t used = paragraph.len + (gap ? 2 : 0);
        rest = (kl_str){rest.ptr + used, rest.len - used};
    }
}

static void roff_option(kl_buf *out, const kli_option *o) {
    kl_buf_add(out, KL_S(".TP\n"));
    if (o->letter) kl_buf_printf(out, "\\fB\\-%c\\fR, ", o->letter);
    kl_buf_add(out, KL_S("\\fB\\-\\-"));
    for (const char *p = o->name; *p; p++) kl_buf_printf(out, *p == '-' ? "\\%c" : "%c", *p);
    kl_buf_printf(out, "\\fR%s\\fI%s\\fR\n",
                  o->value[0] && o->kind != KL_OPTION_IS_MAYBE ? " " : "", o->value);
    roff_of(out, o->doc);
}

static void roff_options(kl_buf *out, int command, bool common) {
    for (int i = 0; kli_option_at(i); i++) {
        const kli_option *o = kli_option_at(i);
        if (kli_option_fits(o, command) && (o->commands == KL_EVERY) == common) roff_option(out, o);
    }
}

static void roff_command(kl_buf *out, int command) {
    const kl_command *c = kli_command_at(command);
    kl_buf_printf(out, ".SS klineage %s \\fI%s\\fR\n", c->words, c->usage);
    roff_of(out, c->summary);
    roff_text(out, c->text);
    roff_options(out, command, false);
    for (int i = 0; kli_example_at(i); i++) {
        if ((int)kli_example_at(i)->command != command) continue;
        kl_buf_add(out, KL_S(".PP\nExample: "));
        roff_of(out, kli_example_at(i)->doc);
        kl_buf_add(out, KL_S(".RS\n.nf\n"));
        roff_of(out, kli_example_at(i)->line);
        kl_buf_add(out, KL_S(".fi\n.RE\n"));
    }
}

void kli_page_man(kl_buf *out) {
    kl_buf_add(out,
               KL_S(".TH KLINEAGE 1 \"\" \"klineage " KL_VERSION "\" \"User Commands\"\n.SH NAME\n"
                    "klineage \\- a referee for compute kernels\n.SH SYNOPSIS\n"
                    "\\fBklineage\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...\n.SH DESCRIPTION\n"
                    "Compiles, checks and times a candidate kernel, and accepts or rejects it with "
                    "the evidence.\n"
                    ".SH COMMANDS\n"));
    for (int i = 0; kli_command_at(i); i++) roff_command(out, i);
    kl_buf_add(out, KL_S(".SH OPTIONS\n"));
    roff_options(out, KL_COMMAND_HELP, true);
    roff_options(out, -1, false);
    kl_buf_add(out, KL_S(".SH EXIT STATUS\n"));
    for (int i = 0; kli_exit_at(i); i++) {
        kl_buf_printf(out, ".TP\n\\fB%d\\fR %s\n", kli_exit_at(i)->code, kli_exit_at(i)->name);
        roff_of(out, kli_exit_at(i)->doc);
    }
    kl_buf_add(out, KL_S(".SH ENVIRONMENT\n"));
    for (int i = 0; kli_variable_at(i); i++) {
        kl_buf_printf(out, ".TP\n\\fB%s\\fR\n", kli_variable_at(i)->name);
        roff_of(out, kli_variable_at(i)->doc);
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
    };
    if (kl_str_starts(kind, KL_S("schema-")))
        return kli_page_schema(out, kind.ptr + strlen("schema-"));
    for (size_t i = 0; i < KL_COUNT(pages); i++)
        if (kl_str_eq(kind, kl_str_of(pages[i].kind))) return pages[i].page(out), true;
    return false;
}
