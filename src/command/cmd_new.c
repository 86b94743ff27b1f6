/* cmd_new.c - `klineage task new`: a small task that works, to be changed into one's own.
 *
 * The files are those of src/command/new, or with --like those of another task.  They are written
 * beside the destination, read as the task that they claim to be, and only then moved into place.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/json.h"
#include "base/parts.h"
#include "command/request.h"
#include "task/task.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NAME = 63, MOST_FILES = 256 };
#define MOST_FILE ((size_t)64 << 20)
#define NAME_MARK "@NAME@"

typedef struct {
    kl_arena *arena;
    const char *name;
    kl_str folder; /* where the files are written at first */
    json_t *files;
} new_ctx;

/* ---- a name ------------------------------------------------------------------------------ */

static bool new_name_is_plain(const char *name) {
    const size_t n = strlen(name);
    bool plain = n > 0 && n <= MOST_NAME && name[0] >= 'a' && name[0] <= 'z';
    for (size_t i = 0; plain && i < n; i++)
        plain = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') ||
                name[i] == '_';
    return plain;
}

static kl_err new_name_is_free(kl_arena *a, const char *name, kl_error *e) {
    kl_str taken;
    if (!new_name_is_plain(name)) {
        kl_fail(e, KL_EINVAL, name, "this cannot be the name of a task");
        return kl_hint(e, "a small letter, then small letters, digits and _, at most %d in all",
                       MOST_NAME);
    }
    if (kl_task_find(&taken, a, name, kl_ignored())) return KL_OK;
    kl_fail(e, KL_EINVAL, name, "there is a task of this name: %s", taken.ptr);
    return kl_hint(e, "klineage task new another_name --like %.64s", name);
}

/* ---- its files --------------------------------------------------------------------------- */

static kl_err put(new_ctx *n, const char *name, kl_str text, kl_error *e) {
    if (json_array_size(n->files) == MOST_FILES)
        return kl_fail(e, KL_ELIMIT, name, "the task has more than %d files", MOST_FILES);
    const kl_str path = kli_fs_join(n->arena, n->folder.ptr, name);
    kl_err err = kli_fs_mkdirs(kli_fs_dirname(n->arena, path.ptr).ptr, e);
    if (!err) err = kli_fs_write(path.ptr, text, e);
    if (!err) json_array_append_new(n->files, json_string(name));
    return err;
}

static kl_str named(kl_arena *a, kl_str text, const char *name) {
    kl_buf out = {0};
    for (const char *at;
         text.len && (at = memmem(text.ptr, text.len, NAME_MARK, strlen(NAME_MARK)));) {
        kl_buf_printf(&out, "%.*s%s", (int)(at - text.ptr), text.ptr, name);
        text = kli_from(text, (size_t)(at - text.ptr) + strlen(NAME_MARK));
    }
    kl_buf_add(&out, text);
    return kli_buf_keep(&out, a);
}

#define NEW_FILE(id)                                                                               \
    extern const unsigned char kl_new_##id[];                                                      \
    extern const size_t kl_new_##id##_bytes;
NEW_FILE(definition)
NEW_FILE(workloads)
NEW_FILE(oracle)
NEW_FILE(naive)
NEW_FILE(readme)

static kl_err write_template(new_ctx *n, kl_error *e) {
    const struct {
        const char *name;
        const unsigned char *text;
        size_t bytes;
    } files[] = {{"definition.json", kl_new_definition, kl_new_definition_bytes},
                 {"workloads.jsonl", kl_new_workloads, kl_new_workloads_bytes},
                 {"oracle.c", kl_new_oracle, kl_new_oracle_bytes},
                 {"naive.c", kl_new_naive, kl_new_naive_bytes},
                 {"README.md", kl_new_readme, kl_new_readme_bytes}};
    kl_err err = KL_OK;
    for (size_t i = 0; !err && i < KL_COUNT(files); i++) {
        const kl_str text = {(const char *)files[i].text, files[i].bytes};
        err = put(n, files[i].name, named(n->arena, text, n->name), e);
    }
    return err;
}

/* The first "name" of a definition is nearly always its own, and then its layout stays. */
static kl_err renamed(kl_str *out, new_ctx *n, kl_str text, kl_error *e) {
    json_t *o = NULL;
    const kl_err err = kli_json_parse(&o, text, KL_S("definition.json"), e);
    if (err) return err;
    const kl_str own = kli_json_text_or(o, "name", KL_S(""));
    const kl_str key = kl_arena_printf(n->arena, "\"name\": \"%.*s\"", KL_STR_ARG(own));
    const char *at = memmem(text.ptr, text.len, key.ptr, key.len);
    const size_t before = at ? (size_t)(at - text.ptr) : 0;
    json_object_set_new(o, "name", json_string(n->name));
    *out = !at ? kli_json_dump(n->arena, o, true)
               : kl_arena_printf(n->arena, "%.*s\"name\": \"%s\"%s", (int)before, text.ptr, n->name,
                                 at + key.len);
    json_decref(o);
    return KL_OK;
}

static kl_err copy_file(new_ctx *n, kl_str from, const char *name, kl_error *e) {
    kl_str text;
    kl_err err =
        kli_fs_read(&text, n->arena, kli_fs_join(n->arena, from.ptr, name).ptr, MOST_FILE, e);
    if (!err && strcmp(name, "definition.json") == 0) err = renamed(&text, n, text, e);
    return err ? err : put(n, name, text, e);
}

/* A task is a folder of files, and folders of files in it. */
static kl_err copy_folder(new_ctx *n, kl_str from, const char *below, bool deeper, kl_error *e) {
    kl_str *names;
    size_t count;
    kl_err err =
        kli_fs_list(&names, &count, n->arena, kli_fs_join(n->arena, from.ptr, below).ptr, e);
    for (size_t i = 0; !err && i < count; i++) {
        const kl_str name = *below ? kli_fs_join(n->arena, below, names[i].ptr) : names[i];
        const bool folder = kli_fs_is_dir(kli_fs_join(n->arena, from.ptr, name.ptr).ptr);
        if (!folder)
            err = copy_file(n, from, name.ptr, e);
        else if (deeper)
            err = copy_folder(n, from, name.ptr, false, e);
    }
    return err;
}

static kl_err write_like(new_ctx *n, const char *task, kl_error *e) {
    kl_task *like;
    const kl_err err = kli_request_task(&like, n->arena, task, e);
    if (err) return err;
    if (kli_fs_exists(kli_fs_join(n->arena, like->dir.ptr, "definition.json").ptr))
        return copy_folder(n, like->dir, "", true, e);
    kl_fail(e, KL_EINVAL, task, "this task is one file of a data set, and no folder to copy");
    return kl_hint(e, "klineage task import %.64s --out tasks/NAME", task);
}

/* ---- the command ------------------------------------------------------------------------- */

static kl_err write_task(new_ctx *n, const char *like, kl_task **made, kl_error *e) {
    kl_err err = kli_fs_mkdirs(n->folder.ptr, e);
    if (!err) err = like ? write_like(n, like, e) : write_template(n, e);
    if (!err) err = kl_task_load(made, n->arena, n->folder.ptr, e);
    if (!err && !kl_str_eq((*made)->name, kl_str_of(n->name)))
        err = kl_fail(e, KL_EINVAL, like, "its definition has no name that can be changed");
    return err;
}

static void tell_new(kli_command_result *out, const new_ctx *n, kl_str place, const char *like,
                     const kl_task *made) {
    size_t i;
    json_t *file;
    kl_buf_printf(&out->text, "%s  ", place.ptr);
    if (like)
        kl_buf_printf(&out->text, "the task %s under another name: change what is computed\n",
                      like);
    else
        kl_buf_printf(&out->text,
                      "a task that works: sums of squares of rows; its README.md says what to "
                      "change\n");
    json_array_foreach(n->files, i, file)
        kl_buf_printf(&out->text, "  %s\n", json_string_value(file));
    kl_buf_printf(&out->text, "next: klineage task check %s\n", place.ptr);
    out->json = json_pack("{ss si ss so ss? ss sO ss}", "schema", "klineage/task-new", "version", 1,
                          "name", n->name, "folder", kli_json_str(place), "like", like, "hash",
                          made->hash, "files", n->files, "next",
                          kl_arena_printf(n->arena, "klineage task check %s", place.ptr).ptr);
}

/* In $KLINEAGE_TASKS, where tasks are looked for first, or else in tasks/ here. */
static kl_str new_place(kl_arena *a, const char *wanted, const char *name) {
    const char *tasks = getenv("KLINEAGE_TASKS");
    if (!wanted) return kli_fs_join(a, tasks && *tasks ? tasks : "tasks", name);
    const size_t n = strlen(wanted);
    return kl_arena_printf(a, "%.*s", (int)(n - (n > 1 && wanted[n - 1] == '/')), wanted);
}

static kl_err new_settle(kl_str from, kl_str place, kl_error *e) {
    (void)rmdir(place.ptr); /* an empty one that was there */
    if (rename(from.ptr, place.ptr) == 0) return KL_OK;
    kl_fail(e, KL_EIO, place.ptr, "cannot be put here: %s", strerror(errno));
    return kl_hint(e, "name another folder with --out DIR");
}

kl_err kli_cmd_task_new(kli_context *c, const kli_args *args, kli_command_result *out,
                        kl_error *e) {
    const char *like = args->values[KL_OPTION_LIKE], *name = args->words[0];
    const kl_str place = new_place(c->arena, args->values[KL_OPTION_OUT], name);
    const kl_str above = kli_fs_dirname(c->arena, place.ptr);
    const bool is_new = !kli_fs_exists(above.ptr);
    new_ctx n = {c->arena, name, kl_arena_printf(c->arena, "%s.new-%d", place.ptr, (int)getpid()),
                 NULL};
    kl_task *made = NULL;
    kl_err err = new_name_is_free(c->arena, name, e);
    if (!err && kli_request_is_taken(c->arena, place.ptr))
        err = kl_fail(e, KL_EINVAL, place.ptr, "this exists and is not empty");
    if (err) return err;
    n.files = json_array();
    err = write_task(&n, like, &made, e);
    if (!err) err = new_settle(n.folder, place, e);
    kli_fs_remove_tree(n.folder.ptr);
    if (is_new) (void)rmdir(above.ptr); /* nothing was put into it */
    if (!err) tell_new(out, &n, place, like, made);
    json_decref(n.files);
    return err;
}
