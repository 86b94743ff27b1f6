/* table.c - commands.def as arrays, and the two rules that hold for every command.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"
#include <stdlib.h>

#define ON(id) (UINT64_C(1) << KL_COMMAND_##id)
/* Runs that --trial numbers; every command that makes a run; those in which a model is asked. */
#define TRIED                                                                                      \
    (ON(WALK) | ON(LIFT) | ON(LINEAGE_REDERIVE) | ON(LINEAGE_JUDGE) | ON(ADMIT) | ON(OPTIMIZE) |   \
     ON(PROBE) | ON(PROBE_RECORDED))
#define RUNS (TRIED | ON(EXPERIMENT))
#define ASKS (RUNS & ~ON(LINEAGE_JUDGE))
#define ANY KL_EVERY
#define ALONE KL_ALONE

const kl_command kli_commands[] = {
#define COMMAND(id, function, words, usage, min, max, summary, text)                               \
    {words, usage, min, max, summary, text, function},
#include "command/commands.def"
    {0}};

/* The alternatives of --surface, behind a first '|'. */
static const char surface_names[] =
#define SURFACE(name) "|" #name
#include "surface/surfaces.def"
#undef SURFACE
    ;
#define SURFACES (surface_names + 1)

const kli_option kli_options[] = {
#define OPTION(id, name, letter, kind, value, commands, doc)                                       \
    {name, letter, KL_OPTION_IS_##kind, value, (commands), doc},
#include "command/commands.def"
    {0}};

const kli_exit kli_exits[] = {
#define EXIT(code, name, doc) {code, name, doc},
#include "command/commands.def"
    {0}};

const kli_example kli_examples[] = {
#define EXAMPLE(id, line, doc) {KL_COMMAND_##id, line, doc},
#include "command/commands.def"
    {0}};

const kli_topic kli_topics[] = {
#define TOPIC(name, summary, text) {name, summary, text},
#include "command/commands.def"
    {0}};

const kli_variable kli_variables[] = {
#define VARIABLE(name, doc) {name, doc},
#include "command/commands.def"
    {0}};

/* Ids are indexes. */
_Static_assert(KL_COUNT(kli_commands) == KL_COMMAND_COUNT + 1, "a row for every command");
_Static_assert(KL_COUNT(kli_options) == KL_OPTION_COUNT + 1, "a row for every option");

bool kli_option_fits(const kli_option *o, int command) {
    KL_ASSERT(command < KL_COMMAND_COUNT);
    return o->commands & (command < 0 ? KL_ALONE : UINT64_C(1) << command);
}

uint64_t kli_args_number(const kli_args *a, kli_option_id id, uint64_t otherwise) {
    KL_ASSERT(kli_options[id].kind == KL_OPTION_IS_NUMBER ||
              kli_options[id].kind == KL_OPTION_IS_MAYBE);
    return a->values[id] ? strtoull(a->values[id], NULL, 10) : otherwise;
}

void kli_result_fini(kli_command_result *r) {
    if (!r) return;
    kl_buf_fini(&r->text);
    json_decref(r->json);
    r->json = NULL;
}

int kli_exit_of_error(kl_err code) {
    switch (code) {
    case KL_OK:
        return 0;
    case KL_ENODEV:
        return 7;
    case KL_EISOLATION:
        return 8;
    case KL_PENDING:
        return 11;
    case KL_EBUDGET:
        return 12;
    case KL_EMODEL:
        return 13;
    case KL_EINTR:
        return 130;
    default:
        return 2;
    }
}
