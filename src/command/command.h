/* command.h - the inside of every face: what can be asked, how an answer looks, one function a
 * command.
 *
 * A face (the command line today) turns its input into kli_args, calls the command's function and
 * shows the kli_command_result. Commands print nothing: a result is text for people and the same as
 * JSON for programs.  Progress and warnings go through base/log.h. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_COMMAND_COMMAND_H
#define KL_COMMAND_COMMAND_H

#include <jansson.h>
#include <klineage/gate.h>

#include "backend/backend.h"
#include "experiment/experiment.h"

typedef enum {
#define COMMAND(id, function, words, usage, min, max, summary, text) KL_COMMAND_##id,
#include "command/commands.def"
    KL_COMMAND_COUNT
} kli_command_id;

typedef enum {
#define OPTION(id, name, letter, kind, value, commands, doc) KL_OPTION_##id,
#include "command/commands.def"
    KL_OPTION_COUNT
} kli_option_id;

typedef enum {
    KL_OPTION_IS_FLAG,
    KL_OPTION_IS_TEXT,
    KL_OPTION_IS_NUMBER,
    KL_OPTION_IS_CHOICE,
    KL_OPTION_IS_REPEAT,
    KL_OPTION_IS_MAYBE /* a whole number, only joined: --name or --name=N */
} kli_option_kind;

typedef struct {
    const char *name; /* "check-only" */
    char letter;      /* 0: none */
    kli_option_kind kind;
    const char *value; /* "N", "A|B"; the alternatives of a CHOICE */
    uint64_t commands; /* bit per kli_command_id; KL_ALONE: without a command; KL_EVERY */
    const char *doc;
} kli_option;

#define KL_ALONE (UINT64_C(1) << 63)
#define KL_EVERY UINT64_MAX
_Static_assert(KL_COMMAND_COUNT < 63, "kl_option.commands has a bit for each command");

typedef struct kli_args kli_args;
typedef struct kli_command_result kli_command_result;
typedef struct kli_context kli_context;

/* What every command is: errors are those of the environment, whatever it found is in `out`. */
typedef kl_err kli_run_command(kli_context *c, const kli_args *args, kli_command_result *out,
                               kl_error *e);

typedef struct {
    const char *words; /* "task list" */
    const char *usage; /* "TASK KERNEL" */
    int min_words, max_words;
    const char *summary, *text;
    kli_run_command *run;
} kl_command;

typedef struct {
    int code;
    const char *name, *doc;
} kli_exit;
typedef struct {
    kli_command_id command;
    const char *line, *doc;
} kli_example;
typedef struct {
    const char *name, *summary, *text;
} kli_topic;
typedef struct {
    const char *name, *doc;
} kli_variable;

/* The table, one array a column.  Commands and options by their id; all end with a row of zeros. */
extern const kl_command kli_commands[];
extern const kli_option kli_options[];
extern const kli_exit kli_exits[];
extern const kli_example kli_examples[];
extern const kli_topic kli_topics[];
extern const kli_variable kli_variables[];
bool kli_option_fits(const kli_option *o, int command);

/* ---- a request --------------------------------------------------------------------------- */

#define KL_MAX_WORDS 48 /* of a command line: those of the command, and what it takes */

struct kli_args {
    int command; /* kli_command_id, or -1: none was named */
    const char
        *words[KL_MAX_WORDS]; /* positional, without those of the command; NULL past n_words */
    int n_words;
    const char *values[KL_OPTION_COUNT];   /* NULL: not given; "" for a flag; the last one given */
    const char *params[KL_MAX_PARAMS + 1]; /* every --param or --set, NULL-terminated */
    int n_params;
    bool short_help; /* -h rather than --help */
};

static inline bool kli_args_has(const kli_args *a, kli_option_id id) {
    return a->values[id] != NULL;
}
uint64_t kli_args_number(const kli_args *a, kli_option_id id,
                         uint64_t otherwise); /* faces checked the digits */

struct kli_context {
    kl_arena *arena; /* lives as long as the result is looked at */
    bool colour;     /* the text may hold terminal colours */
};

/* ---- an answer --------------------------------------------------------------------------- */

struct kli_command_result {
    int exit_code;
    int again_ms;     /* a face that has a screen asks anew after so long; 0: it was told once */
    kl_buf text;      /* for people */
    json_t *json;     /* the same for programs; NULL: the command has only text */
    kl_error trouble; /* the result stands, and this went wrong after it (a journal that could not
                         be written) */
};

void kli_result_fini(kli_command_result *r);
/* Exit status of a command that failed; commands.def lists them. */
int kli_exit_of_error(kl_err code);

#define COMMAND(id, function, words, usage, min, max, summary, text) kli_run_command function;
#include "command/commands.def"

/* ---- pages made from the table ----------------------------------------------------------- */

void kli_page_overview(kl_buf *out); /* `klineage help` */
void kli_page_command(kl_buf *out, int command, bool full);
void kli_page_topic(kl_buf *out, const kli_topic *topic);
void kli_page_reference(kl_buf *out); /* docs/reference.md */
void kli_page_man(kl_buf *out);
void kli_page_bash(kl_buf *out);
void kli_page_zsh(kl_buf *out);
void kli_page_fish(kl_buf *out);
void kli_page_records(kl_buf *out); /* docs/formats/records.md */
void kli_page_facts(kl_buf *out);
void kli_page_commands(kl_buf *out); /* the table itself, as JSON */
bool kli_page_schema(kl_buf *out,
                     const char *name); /* docs/schema/NAME.schema.json; false when unknown */
bool kli_page_generate(kl_buf *out, kl_str kind); /* by --generate's value; false when unknown */
/* The next paragraph of `*rest`, up to an empty line; false at the end. */
bool kli_page_paragraph(kl_str *out, kl_str *rest);
/* Break `text` into lines of at most 80 columns, each behind `indent` spaces.  A paragraph that
 * begins with two spaces is kept as it is. */
void kli_page_wrap(kl_buf *out, int indent, kl_str text);

/* ---- "did you mean" ---------------------------------------------------------------------- */

/* Offer candidates one at a time; `best` stays NULL unless one is near enough to be a slip of the
 * fingers. */
typedef struct {
    kl_str wanted;
    kl_str best;
    size_t distance;
} kli_suggestion;
void kli_suggest_start(kli_suggestion *s, kl_str wanted);
void kli_suggest_offer(kli_suggestion *s, kl_str candidate);

#endif
