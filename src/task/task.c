/* task.c - a folder, or one definition of a FlashInfer-Trace data set, becomes a kl_task.
 *
 *   tasks/gemm/definition.json + workloads.jsonl (or workload.jsonl)       a task folder
 *   definitions/OP/NAME.json   + ../../workloads/OP/NAME.jsonl             a data set
 *
 * The hash names the task version: verdicts of different versions are never compared.  It covers
 * what decides a verdict: definition, workloads, oracles, naive kernels and everything under
 * baseline/. Deliberately not here: what the files say (definition.c, workload.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "task_impl.h"

#define MAX_FOLDER_DEPTH 4 /* folders below baseline/; ends a cycle of links */

/* ---- identity ---------------------------------------------------------------------------- */

static kl_err hash_file(kl_hasher *h, kl_arena *a, const kl_task *t, kl_str name, kl_error *e) {
    kl_str text;
    const kl_err err =
        kli_fs_read(&text, a, kli_fs_join(a, t->dir.ptr, name.ptr).ptr, KL_MAX_SOURCE_BYTES, e);
    if (err) return err;
    kli_hasher_add(h, name);
    kli_hasher_add(h, text);
    return KL_OK;
}

static kl_err hash_folder(kl_hasher *h, kl_arena *a, const kl_task *t, kl_str folder, int depth,
                          kl_error *e) {
    kl_str *names;
    size_t n;
    kl_err err = kli_fs_list(&names, &n, a, kli_fs_join(a, t->dir.ptr, folder.ptr).ptr, e);
    for (size_t i = 0; i < n && err == KL_OK; i++) {
        const kl_str name = kli_fs_join(a, folder.ptr, names[i].ptr);
        if (!kli_fs_is_dir(kli_fs_join(a, t->dir.ptr, name.ptr).ptr))
            err = hash_file(h, a, t, name, e);
        else if (depth < MAX_FOLDER_DEPTH)
            err = hash_folder(h, a, t, name, depth + 1, e);
    }
    return err;
}

/* A naive kernel in Python is where a search begins; kernels are held against those of their host's
 * first surface. */
static bool decides(kl_str name) {
    return kl_str_starts(name, KL_S("oracle.")) ||
           (kl_str_starts(name, KL_S("naive.")) && !kl_str_ends(name, KL_S(".py")));
}

/* Oracles, naive kernels and baselines, by name. */
static kl_err hash_code(kl_hasher *h, kl_arena *a, const kl_task *t, kl_error *e) {
    kl_str *names;
    size_t n;
    kl_err err = kli_fs_list(&names, &n, a, t->dir.ptr, e);
    for (size_t i = 0; i < n && err == KL_OK; i++) {
        if (kl_str_eq(names[i], KL_S("baseline")))
            err = hash_folder(h, a, t, names[i], 0, e);
        else if (decides(names[i]))
            err = hash_file(h, a, t, names[i], e);
    }
    return err;
}

/* ---- loading ----------------------------------------------------------------------------- */

typedef struct {
    kl_str dir, definition, workloads;
    bool is_folder;
} location;

static kl_err locate_folder(location *out, kl_arena *a, const char *path, kl_error *e) {
    out->is_folder = true;
    out->dir = kl_arena_copy(a, kl_str_of(path));
    out->definition = kli_fs_join(a, path, "definition.json");
    out->workloads = kli_fs_join(a, path, "workloads.jsonl");
    if (!kli_fs_exists(out->workloads.ptr)) out->workloads = kli_fs_join(a, path, "workload.jsonl");
    if (!kli_fs_exists(out->definition.ptr))
        return kl_fail(e, KL_ENOENT, path, "this folder has no definition.json");
    return KL_OK;
}

/* After the definition: of two things that are wrong, the one to mend first is told. */
static kl_err task_read_workloads(kl_str *out, kl_arena *a, const location *at, kl_error *e) {
    if (at->is_folder && !kli_fs_exists(at->workloads.ptr))
        return kl_fail(e, KL_ENOENT, at->dir.ptr,
                       "this folder has neither workloads.jsonl nor workload.jsonl");
    return kli_fs_read(out, a, at->workloads.ptr, KL_MAX_JSON_BYTES, e);
}

/* Beside the definition first, so that two files copied out of a data set still work. */
static kl_err locate_file(location *out, kl_arena *a, const char *path, kl_error *e) {
    const kl_str file = kli_fs_basename(path);
    const kl_str stem = {file.ptr, file.len - (kl_str_ends(file, KL_S(".json")) ? 5 : 0)};
    out->definition = kl_arena_copy(a, kl_str_of(path));
    out->dir = kli_fs_dirname(a, path);
    if (kl_str_eq(file, KL_S("definition.json"))) return locate_folder(out, a, out->dir.ptr, e);
    char *absolute = realpath(out->dir.ptr, NULL);
    const kl_str op = kl_arena_copy(a, kli_fs_basename(absolute == NULL ? out->dir.ptr : absolute));
    free(absolute);
    out->workloads = kl_arena_printf(a, "%s/../../workloads/%s/%.*s.jsonl", out->dir.ptr, op.ptr,
                                     KL_STR_ARG(stem));
    if (kli_fs_exists(out->workloads.ptr)) return KL_OK;
    kl_fail(e, KL_ENOENT, path, "the workloads of this definition are not at %s",
            out->workloads.ptr);
    return kl_hint(e, "put definition.json and workloads.jsonl into one folder and name that"),
           KL_ENOENT;
}

static kl_err check_baselines(const kl_task *t, kl_arena *a, const char *definition, kl_error *e) {
    for (int i = 0; i < t->n_baselines; i++)
        if (!kli_fs_exists(kli_fs_join(a, t->dir.ptr, t->baselines[i].file.ptr).ptr))
            return kl_fail(e, KL_ENOENT, definition, "the file %s of baseline '%s' does not exist",
                           t->baselines[i].file.ptr, t->baselines[i].name.ptr);
    return KL_OK;
}

static kl_err load_files(kl_task *t, kl_arena *a, const location *at, kl_error *e) {
    kl_hasher hasher;
    kl_str definition, workloads;
    kl_err err;
    if ((err = kli_fs_read(&definition, a, at->definition.ptr, KL_MAX_JSON_BYTES, e)) ||
        (err = kli_definition_parse(t, a, definition, at->definition, e)) ||
        (err = task_read_workloads(&workloads, a, at, e)) ||
        (err = kli_workloads_parse(t, a, workloads, at->workloads, e)) ||
        (err = check_baselines(t, a, at->definition.ptr, e)))
        return err;
    kli_hasher_init(&hasher);
    kli_hasher_add(&hasher, definition);
    kli_hasher_add(&hasher, workloads);
    err = at->is_folder ? hash_code(&hasher, a, t, e) : KL_OK;
    const kl_hash hash = kli_hasher_end(&hasher);
    _Static_assert(sizeof t->hash == sizeof hash.hex, "a task version is a whole hash");
    memcpy(t->hash, hash.hex, sizeof t->hash);
    return err;
}

kl_err kl_task_load(kl_task **out, kl_arena *a, const char *path, kl_error *e) {
    location at = {0};
    kl_task *t = KL_NEW(a, kl_task);
    kl_err err;
    if (!kli_fs_exists(path)) return kl_fail(e, KL_ENOENT, path, "no such task");
    err = kli_fs_is_dir(path) ? locate_folder(&at, a, path, e) : locate_file(&at, a, path, e);
    if (err) return err;
    t->dir = at.dir;
    if ((err = load_files(t, a, &at, e)) == KL_OK) *out = t;
    return err;
}

/* ---- finding ----------------------------------------------------------------------------- */

static bool is_task(kl_arena *a, const char *path) {
    if (kli_fs_is_dir(path)) return kli_fs_exists(kli_fs_join(a, path, "definition.json").ptr);
    return kli_fs_exists(path) && kl_str_ends(kl_str_of(path), KL_S(".json"));
}

/* `folder`/NAME when that is a task. */
static bool find_in(kl_str *path, kl_arena *a, const char *folder, const char *name) {
    const kl_str candidate = kli_fs_join(a, folder, name);
    if (!is_task(a, candidate.ptr)) return false;
    *path = candidate;
    return true;
}

/* The folder called tasks that goes with the program: build/bin, build, the source tree, or beside
 * an installation. */
static bool find_above_program(kl_str *path, kl_arena *a, const char *name) {
    kl_str folder = kli_fs_self_dir(a);
    for (int level = 0; level < 5 && folder.len > 1; level++) {
        if (find_in(path, a, kli_fs_join(a, folder.ptr, "tasks").ptr, name) ||
            find_in(path, a, kli_fs_join(a, folder.ptr, "share/klineage/tasks").ptr, name))
            return true;
        folder = kli_fs_dirname(a, folder.ptr);
    }
    return false;
}

kl_err kl_task_find(kl_str *path, kl_arena *a, const char *name, kl_error *e) {
    const char *folder = getenv("KLINEAGE_TASKS");
    if (is_task(a, name)) {
        *path = kl_arena_copy(a, kl_str_of(name));
        return KL_OK;
    }
    if ((folder != NULL && folder[0] != '\0' && find_in(path, a, folder, name)) ||
        find_above_program(path, a, name) || find_in(path, a, "tasks", name))
        return KL_OK;
    if (kli_fs_is_dir(name)) {
        kl_fail(e, KL_EINVAL, name, "not a task: this folder has no definition.json");
        return kl_hint(e, "docs/how-to/add-a-task.md describes the files of a task");
    }
    kl_fail(e, KL_ENOENT, name, "no such task");
    return kl_hint(e, "name a task folder, or set KLINEAGE_TASKS to the folder that holds %.64s",
                   name),
           KL_ENOENT;
}
