/* page_help.c - help on a terminal: the overview, one command, one topic.
 *
 * Examples come before options, because most readers copy a line.  Not here: the same text for man,
 * markdown and shells (page_man.c, page_reference.c, page_complete.c). SPDX-License-Identifier:
 * Apache-2.0 */
#include "command/command.h"
#include <klineage/model.h>
#include <klineage/search.h>
#include <string.h>

#define COLUMNS 80
#define OPTION_COLUMN 28

static void spaces(kl_buf *out, size_t n) {
    for (size_t i = 0; i < n; i++) kl_buf_printf(out, " ");
}

/* One paragraph, words broken at spaces.  The first line continues at `column`. */
static void wrap_words(kl_buf *out, size_t indent, size_t column, kl_str text) {
    size_t at = 0;
    bool fresh = true;
    while (at < text.len) {
        size_t end = at;
        while (end < text.len && text.ptr[end] != ' ') end++;
        size_t width = end - at;
        if (!fresh && column + 1 + width > COLUMNS) {
            kl_buf_printf(out, "\n");
            spaces(out, indent);
            column = indent;
        } else if (!fresh) {
            kl_buf_printf(out, " ");
            column++;
        }
        kl_buf_add(out, (kl_str){text.ptr + at, width});
        column += width;
        fresh = false;
        for (at = end; at < text.len && text.ptr[at] == ' ';) at++;
    }
    kl_buf_printf(out, "\n");
}

static void indent_lines(kl_buf *out, size_t indent, kl_str text) {
    while (text.len) {
        const char *newline = memchr(text.ptr, '\n', text.len);
        size_t n = newline ? (size_t)(newline - text.ptr) : text.len;
        spaces(out, indent);
        kl_buf_printf(out, "%.*s\n", (int)n, text.ptr);
        n += newline ? 1 : 0;
        text = (kl_str){text.ptr + n, text.len - n};
    }
}

bool kli_page_paragraph(kl_str *out, kl_str *rest) {
    const char *gap = rest->len ? memmem(rest->ptr, rest->len, "\n\n", 2) : NULL;
    *out = (kl_str){rest->ptr, gap ? (size_t)(gap - rest->ptr) : rest->len};
    const size_t used = out->len + (gap ? 2 : 0);
    KL_ASSERT(used <= rest->len);
    *rest = (kl_str){rest->ptr + used, rest->len - used};
    return used > 0;
}

void kli_page_wrap(kl_buf *out, int indent, kl_str text) {
    kl_str paragraph;
    for (bool first = true; kli_page_paragraph(&paragraph, &text); first = false) {
        if (!first) kl_buf_printf(out, "\n");
        if (kl_str_starts(paragraph, KL_S("  "))) {
            indent_lines(out, (size_t)indent, paragraph);
        } else {
            spaces(out, (size_t)indent);
            wrap_words(out, (size_t)indent, (size_t)indent, paragraph);
        }
    }
}

/* "  left           right, wrapped under itself" */
static void two_columns(kl_buf *out, kl_str left, size_t column, const char *right) {
    KL_ASSERT(column >= 2 && column < COLUMNS);
    kl_buf_printf(out, "  %.*s", KL_STR_ARG(left));
    size_t used = left.len + 2;
    if (used + 2 > column) {
        kl_buf_printf(out, "\n");
        used = 0;
    }
    spaces(out, column - used);
    wrap_words(out, column, column, kl_str_of(right));
}

static void option_row(kl_buf *out, const kli_option *o) {
    kl_buf left = {0};
    if (o->letter) kl_buf_printf(&left, "-%c, ", o->letter);
    kl_buf_printf(&left, "--%s%s%s", o->name,
                  o->value[0] && o->kind != KL_OPTION_IS_MAYBE ? " " : "", o->value);
    two_columns(out, kl_buf_str(&left), OPTION_COLUMN, o->doc);
    kl_buf_fini(&left);
}

static void page_help_options_of(kl_buf *out, int command, bool common) {
    for (const kli_option *o = kli_options; o->name; o++) {
        if (kli_option_fits(o, command) && (o->commands == KL_EVERY) == common) option_row(out, o);
    }
}

static bool has_own_options(int command) {
    for (const kli_option *o = kli_options; o->name; o++)
        if (o->commands != KL_EVERY && kli_option_fits(o, command)) return true;
    return false;
}

void kli_page_overview(kl_buf *out) {
    kl_buf_printf(out, "klineage - a referee for compute kernels: compiles, checks and times a "
                       "candidate, and accepts "
                       "or rejects it\n\nusage: klineage COMMAND [OPTIONS] ...\n\ncommands\n");
    for (const kl_command *c = kli_commands; c->words; c++) {
        two_columns(out, kl_str_of(c->words), 18, c->summary);
    }
    kl_buf_printf(out, "\ntopics (klineage help TOPIC)\n");
    for (const kli_topic *t = kli_topics; t->name; t++)
        two_columns(out, kl_str_of(t->name), 18, t->summary);
    kl_buf_printf(out, "\noptions of every command\n");
    page_help_options_of(out, KL_COMMAND_HELP, true);
    page_help_options_of(out, -1, false);
    kl_buf_printf(out, "\nfirst steps\n");
    two_columns(out, KL_S("klineage doctor"), 44, "what this machine can do");
    two_columns(out, KL_S("klineage gate gemm tasks/gemm/naive.c"), 44, "a first verdict");
}

static void examples_of(kl_buf *out, int command) {
    kl_buf_printf(out, "\nexamples\n");
    for (const kli_example *x = kli_examples; x->line; x++) {
        if ((int)x->command == command) kl_buf_printf(out, "  # %s\n  %s\n", x->doc, x->line);
    }
}

void kli_page_command(kl_buf *out, int command, bool full) {
    KL_ASSERT(command >= 0 && command < KL_COMMAND_COUNT);
    const kl_command *c = &kli_commands[command];
    kl_buf_printf(out, "klineage %s - %s\n\nusage: klineage %s%s%s [OPTIONS]\n", c->words,
                  c->summary, c->words, c->usage[0] ? " " : "", c->usage);
    if (full) examples_of(out, command);
    if (full) {
        kl_buf_printf(out, "\n");
        kli_page_wrap(out, 0, kl_str_of(c->text));
    }
    if (has_own_options(command)) {
        kl_buf_printf(out, "\noptions\n");
        page_help_options_of(out, command, false);
    }
    kl_buf_printf(out, full ? "\noptions of every command\n"
                            : "\nmore: --help; options of every command: klineage help\n");
    if (full) page_help_options_of(out, command, true);
}

static void exit_codes(kl_buf *out) {
    for (const kli_exit *x = kli_exits; x->name; x++) {
        kl_buf left = {0};
        kl_buf_printf(&left, "%3d  %s", x->code, x->name);
        two_columns(out, kl_buf_str(&left), 22, x->doc);
        kl_buf_fini(&left);
    }
}

static void page_help_policies(kl_buf *out) {
    for (int i = 0; kl_policy_each(i); i++) {
        const kl_policy *p = kl_policy_each(i);
        kl_buf_printf(out, "%s%s (%s)\n", i ? "\n" : "", p->name, p->source);
        spaces(out, 2);
        wrap_words(out, 2, 2, kl_str_of(p->doc));
        for (const kl_policy_param *q = p->params; q && q->name; q++) {
            kl_buf left = {0};
            kl_buf_printf(&left, "%s=%g", q->name, q->otherwise);
            two_columns(out, kl_buf_str(&left), OPTION_COLUMN, q->doc);
            kl_buf_fini(&left);
        }
    }
}

static void page_help_surfaces(kl_buf *out) {
    for (int i = 0; kl_surface_each(i); i++) {
        const kl_surface *s = kl_surface_each(i);
        kl_buf left = {0}, right = {0};
        kl_buf_printf(&left, "%-9s %s", s->name, s->suffix);
        if (s->backends[0])
            kl_buf_printf(&right, "for a %s; assurance %c at best",
                          s->on == KL_ON_GPU ? "gpu" : "cpu", s->assurance);
        else
            kl_buf_printf(&right, "files parse and plan; nothing in this build runs them");
        if (kli_surface_has_directive(s, KL_S("surface")))
            kl_buf_printf(&right, "; a file says `%s surface %s`", s->comment, s->name);
        two_columns(out, kl_buf_str(&left), 18, right.ptr);
        kl_buf_fini(&left);
        kl_buf_fini(&right);
    }
}

static void page_help_models(kl_buf *out) {
    for (int i = 0; kl_provider_each(i); i++) {
        const kl_provider *p = kl_provider_each(i);
        kl_buf_printf(out, "%s\n", p->spec);
        spaces(out, 4);
        wrap_words(out, 4, 4, kl_str_of(p->doc));
        kl_buf_printf(out, "    --model '%s'\n", p->example);
    }
    kl_buf_printf(out, "\n");
}

void kli_page_topic(kl_buf *out, const kli_topic *topic) {
    kl_buf_printf(out, "%s - %s\n\n", topic->name, topic->summary);
    if (strcmp(topic->name, "models") == 0) page_help_models(out);
    if (topic->text) {
        kli_page_wrap(out, 0, kl_str_of(topic->text));
    } else if (strcmp(topic->name, "exit-codes") == 0) {
        exit_codes(out);
    } else if (strcmp(topic->name, "policies") == 0) {
        page_help_policies(out);
    } else if (strcmp(topic->name, "surfaces") == 0) {
        page_help_surfaces(out);
    } else {
        for (const kli_variable *v = kli_variables; v->name; v++)
            two_columns(out, kl_str_of(v->name), 18, v->doc);
    }
}
