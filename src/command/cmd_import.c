/* cmd_import.c - `klineage task import`: other people's problems as task folders.
 *
 * Reading them is Python's business (src/task/import), in a process of its own, since most of them
 * are Python that must be run to be understood.  It writes beside the destination; here each folder
 * is read as the task that it claims to be, and only then moved into place.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/request.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "task/task.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_IMPORTED = 10, NO_PYTHON = 7 };
#define IMPORT_NS (24ll * 3600 * 1000000000) /* the reader limits each problem by itself */
#define MOST_ANSWERS ((size_t)16 << 20)

/* ---- the reader -------------------------------------------------------------------------- */

static kl_err run_reader(kli_proc_result *r, kl_arena *a, const kli_args *args, kl_str folder,
                         kl_error *e) {
    const char *chosen = getenv("KLINEAGE_PYTHON"), *inputs = args->values[KL_OPTION_INPUTS];
    const kl_str python = kli_fs_find_program(a, chosen && *chosen ? chosen : "python3");
    if (!python.len) {
        kl_fail(e, KL_ENODEV, "task import", "no Python to read the problem with");
        return kl_hint(e, "install python3, or name one in KLINEAGE_PYTHON"), KL_ENODEV;
    }
    const char *argv[] = {python.ptr,
                          "-B",
                          kli_fs_find_part(a, "task_import").ptr,
                          args->words[0],
                          folder.ptr,
                          inputs ? inputs : "",
                          NULL};
    const kli_proc_spec spec = {.argv = argv, .timeout_ns = IMPORT_NS, .max_output = MOST_ANSWERS};
    return kli_proc_run(r, a, &spec, e);
}

/* Every line of the reader is one problem. */
static kl_err read_answers(json_t **out, kl_str text, kl_error *e) {
    *out = json_array();
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        const size_t n = end ? (size_t)(end - text.ptr) - at : text.len - at;
        json_t *line = NULL;
        const kl_err err =
            kli_json_parse(&line, (kl_str){text.ptr + at, n}, KL_S("task_import"), e);
        if (err) return json_decref(*out), err;
        json_array_append_new(*out, line);
        at += n + 1;
    }
    return KL_OK;
}

/* ---- into place -------------------------------------------------------------------------- */

/* Of a problem that was refused no folder is left. */
static void refuse(json_t *o, const char *why) {
    json_object_set_new(o, "error", json_string(why));
    json_object_set_new(o, "folder", json_null());
}

/* What the reader wrote must be a task; then it goes where it belongs. */
static kl_err settle(json_t *o, kl_arena *a, kl_str place, kl_error *e) {
    const kl_str folder = kli_json_text_or(o, "folder", KL_S(""));
    kl_task *t;
    kl_error why = {0};
    const char *said = json_string_value(json_object_get(o, "error"));
    if (said) return refuse(o, kl_arena_copy(a, kl_str_of(said)).ptr), KL_OK;
    const kl_str from = kl_arena_copy(a, folder);
    if (kl_task_load(&t, a, from.ptr, &why)) {
        refuse(o, kl_arena_printf(a, "what was read is no task: %s", why.message).ptr);
        return KL_OK;
    }
    const kl_err err = kli_fs_mkdirs(kli_fs_dirname(a, place.ptr).ptr, e);
    (void)rmdir(place.ptr); /* an empty one that was there */
    if (!err && rename(from.ptr, place.ptr) != 0)
        return kl_fail(e, KL_EIO, place.ptr, "cannot be put here: %s", strerror(errno));
    json_object_set_new(o, "folder", kli_json_str(place));
    json_object_set_new(o, "hash", json_string(t->hash));
    return err;
}

static kl_err settle_all(json_t *problems, kl_arena *a, const char *out, kl_error *e) {
    size_t i;
    json_t *o;
    kl_err err = KL_OK;
    json_array_foreach(problems, i, o) {
        const kl_str name = kl_arena_copy(a, kli_json_text_or(o, "name", KL_S("task")));
        const bool alone = json_array_size(problems) == 1;
        if (!err) err = settle(o, a, alone ? kl_str_of(out) : kli_fs_join(a, out, name.ptr), e);
    }
    return err;
}

/* ---- what is said ------------------------------------------------------------------------ */

static void list_texts(kl_buf *out, const json_t *o, const char *key, const char *word) {
    size_t i;
    const json_t *text, *list = json_object_get(o, key);
    json_array_foreach(list, i, text)
        kl_buf_printf(out, "  %-8s %s\n", word, json_string_value(text));
}

static void show_problem(kl_buf *out, kl_arena *a, const json_t *o) {
    const kl_str folder = kl_arena_copy(a, kli_json_text_or(o, "folder", KL_S("")));
    kl_buf_printf(out, "%s  from %s: %lld shapes and %lld hidden ones\n", folder.ptr,
                  json_string_value(json_object_get(o, "dialect")),
                  json_integer_value(json_object_get(o, "shapes")),
                  json_integer_value(json_object_get(o, "hidden")));
    kl_buf_printf(out, "  oracle   its Python reference, in %s\n",
                  json_string_value(json_object_get(o, "oracle")));
    kl_buf_printf(out, "  inputs   %s\n",
                  json_is_true(json_object_get(o, "generated"))
                      ? "made by its own Python, under the gate's seed"
                      : "drawn by the gate");
    if (json_is_true(json_object_get(o, "naive")))
        kl_buf_printf(out, "  naive    naive.c, drafted from a trace of the reference\n");
    list_texts(out, o, "notes", "note");
    list_texts(out, o, "skipped", "skipped");
    kl_buf_printf(out, "next: klineage task check %s\n", folder.ptr);
}

static void show_problem_row(kl_buf *out, const json_t *o) {
    const char *why = json_string_value(json_object_get(o, "error"));
    kl_buf_printf(out, "  %-36s ", json_string_value(json_object_get(o, "name")));
    if (why)
        kl_buf_printf(out, "not imported: %s\n", why);
    else
        kl_buf_printf(out, "%2lld shapes, %lld hidden, oracle in %s, %s\n",
                      json_integer_value(json_object_get(o, "shapes")),
                      json_integer_value(json_object_get(o, "hidden")),
                      json_string_value(json_object_get(o, "oracle")),
                      json_is_true(json_object_get(o, "naive")) ? "naive.c" : "no naive.c");
}

/* One problem that was refused is an answer of its own; of many, that none was taken. */
static void tell_imported(kli_command_result *out, kl_arena *a, json_t *problems) {
    size_t i, taken = 0;
    const size_t n = json_array_size(problems);
    json_t *o;
    json_array_foreach(problems, i, o) {
        const char *why = json_string_value(json_object_get(o, "error"));
        taken += !why;
        if (n > 1)
            show_problem_row(&out->text, o);
        else if (!why)
            show_problem(&out->text, a, o);
        else
            kl_buf_printf(&out->text, "not imported: %s: %s\n",
                          json_string_value(json_object_get(o, "source")), why);
    }
    if (n > 1) kl_buf_printf(&out->text, "%zu of %zu imported\n", taken, n);
    const kl_str missing = kli_json_text_or(json_array_get(problems, 0), "missing", KL_S(""));
    out->exit_code = taken ? 0 : n == 1 && missing.len ? NO_PYTHON : NOT_IMPORTED;
    out->json = json_pack("{ss si si so}", "schema", "klineage/task-import", "version", 1,
                          "imported", (int)taken, "problems", json_incref(problems));
}

/* ---- the command ------------------------------------------------------------------------- */

static kl_err import_into(json_t **problems, kl_arena *a, const kli_args *args, kl_str beside,
                          kl_error *e) {
    kli_proc_result r = {0};
    kl_err err = kli_fs_mkdirs(beside.ptr, e);
    if (!err) err = run_reader(&r, a, args, beside, e);
    if (!err && r.exit_code == 1 && r.err.len)
        return kl_fail(e, KL_EINVAL, "task import", "%.*s", (int)strcspn(r.err.ptr, "\n"),
                       r.err.ptr);
    if (!err && r.exit_code != 0)
        return kl_fail(e, KL_EIO, args->words[0], "the reader of problems failed: %.*s",
                       KL_STR_ARG(r.err));
    if (!err) err = read_answers(problems, r.out, e);
    return err ? err : settle_all(*problems, a, args->values[KL_OPTION_OUT], e);
}

kl_err kli_cmd_task_import(kli_context *c, const kli_args *args, kli_command_result *out,
                           kl_error *e) {
    const char *place = args->values[KL_OPTION_OUT];
    json_t *problems = NULL;
    if (!place) {
        kl_fail(e, KL_EINVAL, args->words[0], "where to? there is no --out");
        return kl_hint(e, "klineage task import %.64s --out tasks/NAME", args->words[0]);
    }
    if (kli_request_is_taken(c->arena, place))
        return kl_fail(e, KL_EINVAL, place, "this exists and is not empty");
    const kl_str trimmed = kl_arena_printf(
        c->arena, "%.*s", (int)(strlen(place) - (place[0] && place[strlen(place) - 1] == '/')),
        place);
    const kl_str beside = kl_arena_printf(c->arena, "%s.import-%d", trimmed.ptr, (int)getpid());
    const kl_str above = kli_fs_dirname(c->arena, trimmed.ptr);
    const bool is_new = !kli_fs_exists(above.ptr);
    const kl_err err = import_into(&problems, c->arena, args, beside, e);
    kli_fs_remove_tree(beside.ptr);
    if (is_new) (void)rmdir(above.ptr); /* nothing was put into it */
    if (!err) tell_imported(out, c->arena, problems);
    json_decref(problems);
    return err;
}
