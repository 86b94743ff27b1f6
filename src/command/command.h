/* command.h - the inside of every face: what can be asked, how an answer looks, one function a command.
 *
 * A face (the command line today) turns its input into kl_args, calls the command's function and shows the kl_result.
 * Commands print nothing: a result is text for people and the same as JSON for programs.  Progress and warnings go
 * through base/log.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_COMMAND_COMMAND_H
#define KL_COMMAND_COMMAND_H

#include <jansson.h>
#include <klineage/gate.h>

typedef enum {
#define COMMAND(id, function, words, usage, min, max, summary, text) KL_COMMAND_##id,
#include "command/commands.def"
    KL_COMMAND_COUNT
} kl_command_id;

typedef enum {
#define OPTION(id, name, letter, kind, value, commands, doc) KL_OPTION_##id,
#include "command/commands.def"
    KL_OPTION_COUNT
} kl_option_id;

typedef enum {
    KL_OPTION_IS_FLAG,
    KL_OPTION_IS_TEXT,
    KL_OPTION_IS_NUMBER,
    KL_OPTION_IS_CHOICE,
    KL_OPTION_IS_REPEAT,
    KL_OPTION_IS_MAYBE /* a whole number, only joined: --name or --name=N */
} kl_option_kind;

typedef struct {
    const char *name; /* "check-only" */
    char letter;      /* 0: none */
    kl_option_kind kind;
    const char *value; /* "N", "A|B"; the alternatives of a CHOICE */
    uint64_t commands; /* bit per kl_command_id; KL_ALONE: without a command; KL_EVERY */
    const char *doc;
} kl_option;

#define KL_ALONE (UINT64_C(1) << 63)
#define KL_EVERY UINT64_MAX
_Static_assert(KL_COMMAND_COUNT < 63, "kl_option.commands has a bit for each command");

typedef struct kl_args kl_args;
typedef struct kl_result kl_result;
typedef struct kl_context kl_context;

typedef struct {
    const char *words; /* "task list" */
    const char *usage; /* "TASK KERNEL" */
    int min_words, max_words;
    const char *summary, *text;
    kl_err (*run)(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
} kl_command;

typedef struct {
    int code;
    const char *name, *doc;
} kl_exit;
typedef struct {
    kl_command_id command;
    const char *line, *doc;
} kl_example;
typedef struct {
    const char *name, *summary, *text;
} kl_topic;
typedef struct {
    const char *name, *doc;
} kl_variable;

/* The table, one accessor a column; NULL past the end. */
const kl_command *kl_command_at(int id);
const kl_option *kl_option_at(int id);
const kl_exit *kl_exit_at(int i);
const kl_example *kl_example_at(int i);
const kl_topic *kl_topic_at(int i);
const kl_variable *kl_variable_at(int i);
bool kl_option_fits(const kl_option *o, int command);

/* ---- a request -------------------------------------------------------------------------------------------- */

#define KL_MAX_WORDS 8

struct kl_args {
    int command;                     /* kl_command_id, or -1: none was named */
    const char *words[KL_MAX_WORDS]; /* positional, without those of the command; NULL past n_words */
    int n_words;
    const char *values[KL_OPTION_COUNT];   /* NULL: not given; "" for a flag; the last one given */
    const char *params[KL_MAX_PARAMS + 1]; /* every --param or --set, NULL-terminated */
    int n_params;
    bool short_help; /* -h rather than --help */
};

static inline bool kl_args_has(const kl_args *a, kl_option_id id) { return a->values[id] != NULL; }
uint64_t kl_args_number(const kl_args *a, kl_option_id id, uint64_t otherwise); /* faces checked the digits */

struct kl_context {
    kl_arena *arena; /* lives as long as the result is looked at */
    bool colour;     /* the text may hold terminal colours */
};

/* ---- an answer -------------------------------------------------------------------------------------------- */

struct kl_result {
    int exit_code;
    kl_buf text;      /* for people */
    json_t *json;     /* the same for programs; NULL: the command has only text */
    kl_error trouble; /* the result stands, and this went wrong after it (a journal that could not be written) */
};

void kl_result_fini(kl_result *r);
/* Exit status of a command that failed; commands.def lists them. */
int kl_exit_of_error(kl_err code);

kl_err kl_cmd_gate(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_tune(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_task_list(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_task_show(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_task_check(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_kernel_show(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_kernel_source(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_kernel_diff(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_verdict_list(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_verdict_show(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_spool(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_walk(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_lineage_list(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_lineage_show(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_lineage_export(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_lineage_rederive(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_lineage_judge(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_lineage_import(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_lift(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_admit(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_library_list(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_library_check(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_library_judge(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_library_import(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_card_show(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_retrieve(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_optimize(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_experiment(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_cost(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_run_list(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_run_show(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_run_record(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_report(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_doctor(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);
kl_err kl_cmd_help(kl_context *c, const kl_args *args, kl_result *out, kl_error *e);

/* ---- pages made from the table ------------------------------------------------------------------------------ */

void kl_page_overview(kl_buf *out); /* `klineage help` */
void kl_page_command(kl_buf *out, int command, bool full);
void kl_page_topic(kl_buf *out, const kl_topic *topic);
void kl_page_reference(kl_buf *out); /* docs/reference.md */
void kl_page_man(kl_buf *out);
void kl_page_bash(kl_buf *out);
void kl_page_zsh(kl_buf *out);
void kl_page_fish(kl_buf *out);
void kl_page_records(kl_buf *out);                    /* docs/formats/records.md */
bool kl_page_schema(kl_buf *out, const char *name);   /* docs/schema/NAME.schema.json; false when unknown */
bool kl_page_generate(kl_buf *out, kl_str kind); /* by --generate's value; false when unknown */
/* Break `text` into lines of at most 80 columns, each behind `indent` spaces.  A paragraph that begins with two
 * spaces is kept as it is. */
void kl_page_wrap(kl_buf *out, int indent, kl_str text);

/* ---- "did you mean" ------------------------------------------------------------------------------------------ */

/* Offer candidates one at a time; `best` stays NULL unless one is near enough to be a slip of the fingers. */
typedef struct {
    kl_str wanted;
    kl_str best;
    size_t distance;
} kl_suggestion;
void kl_suggest_start(kl_suggestion *s, kl_str wanted);
void kl_suggest_offer(kl_suggestion *s, kl_str candidate);

#endif
