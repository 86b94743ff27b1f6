/* init_recipe.c - see init.h: what `klineage init` is asked, by a recipe and by options.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/init.h"
#include "base/fs.h"
#include "base/parts.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RECIPE ((size_t)64 << 10)

typedef struct {
    const char *key;
    size_t at;             /* of the text in kli_init_asked */
    int option;            /* what the command line calls it */
    const char *separator; /* between values of a key that may stand several times; NULL: once */
} recipe_row;

#define ROW(key, member, option, separator)                                                        \
    { key, offsetof(kli_init_asked, member), KL_OPTION_##option, separator }
static const recipe_row RECIPE_ROWS[] = {
    ROW("function", function, FUNCTION, NULL),
    ROW("args", arguments, ARGS, ","),
    ROW("launch", launch, LAUNCH, NULL),
    ROW("flags", flags, FLAGS, " "),
    ROW("library-flags", library_flags, LIBRARY_FLAGS, " "),
    ROW("require", require, REQUIRE, ";"),
    ROW("upstream", upstream, UPSTREAM, NULL),
    ROW("licence", licence, LICENCE, NULL),
    ROW("with", with, WITH, NULL),
};

static kl_str *recipe_member(kli_init_asked *out, const recipe_row *row) {
    return (kl_str *)(void *)((char *)out + row->at);
}

static bool recipe_put(kli_init_asked *out, kl_arena *a, kl_str key, kl_str value) {
    for (size_t i = 0; i < KL_COUNT(RECIPE_ROWS); i++) {
        const recipe_row *row = &RECIPE_ROWS[i];
        kl_str *member = recipe_member(out, row);
        if (!kl_str_eq(key, kl_str_of(row->key))) continue;
        if (member->len && !row->separator) return false;
        *member = member->len ? kl_arena_printf(a, "%s%s%.*s", member->ptr, row->separator,
                                                KL_STR_ARG(value))
                              : kl_arena_copy(a, value);
        return true;
    }
    if (kl_str_eq(key, KL_S("task")) && !out->task.len)
        return out->task = kl_arena_copy(a, value), true;
    if (!kl_str_eq(key, KL_S("from")) || out->n_sources == KL_COUNT(out->sources)) return false;
    out->sources[out->n_sources++] = kl_arena_copy(a, value);
    return true;
}

/* What lies beside a recipe is named from there: the file of --with, and a task of its own. */
static kl_str recipe_beside(kl_arena *a, const char *recipe, kl_str name) {
    if (!name.len) return name;
    const kl_str path = kli_fs_join(a, kli_fs_dirname(a, recipe).ptr, name.ptr);
    return kli_fs_exists(path.ptr) ? path : name;
}

static kl_err init_recipe(kli_init_asked *out, kl_arena *a, const char *path, kl_error *e) {
    kl_str text, line, rest;
    const kl_err err = kli_fs_read(&text, a, path, MOST_RECIPE, e);
    if (err) return err;
    rest = text;
    while (kli_next_line(&line, &rest)) {
        const kl_str said = kl_str_trim(line), key = kli_before(said, ':');
        if (!said.len || said.ptr[0] == '#') continue;
        const kl_str value =
            key.len < said.len ? kl_str_trim(kli_from(said, key.len + 1)) : (kl_str){0};
        if (value.len && recipe_put(out, a, key, value)) continue;
        kl_fail_at(e, KL_EPARSE, kl_str_of(path), text, (size_t)(said.ptr - text.ptr),
                   "this line of a recipe is not known, has no value, or stands here twice");
        return kl_hint(e, "keys: task from function args launch flags library-flags require "
                          "upstream licence with");
    }
    out->with = recipe_beside(a, path, out->with);
    out->task = recipe_beside(a, path, out->task);
    return KL_OK;
}

/* The reader runs in the folder of the sources. */
kl_str kli_init_whole_path(kl_arena *a, kl_str path) {
    char room[PATH_MAX];
    return path.len && realpath(path.ptr, room) ? kl_arena_copy(a, kl_str_of(room)) : path;
}

static kl_err init_is_whole(const kli_init_asked *asked, kl_error *e) {
    const char *missing = !asked->task.len       ? "TASK"
                          : !asked->n_sources    ? "--from SOURCE"
                          : !asked->function.len ? "--function NAME"
                                                 : NULL;
    if (!missing) return KL_OK;
    kl_fail(e, KL_EINVAL, "init", "%s is missing", missing);
    return kl_hint(e, "klineage init TASK --from kernel.c --function NAME --out expert.c, or "
                      "klineage init --recipe FILE --in DIR");
}

kl_err kli_init_read(kli_init_asked *out, kl_arena *a, const kli_args *args, kl_error *e) {
    const char *recipe = args->values[KL_OPTION_RECIPE], *from = args->values[KL_OPTION_FROM];
    const kl_err err = recipe ? init_recipe(out, a, recipe, e) : KL_OK;
    if (err) return err;
    for (size_t i = 0; i < KL_COUNT(RECIPE_ROWS); i++) {
        const char *said = args->values[RECIPE_ROWS[i].option];
        if (said) *recipe_member(out, &RECIPE_ROWS[i]) = kl_str_of(said);
    }
    if (args->n_words) out->task = kl_str_of(args->words[0]);
    if (from) out->sources[out->n_sources = 0] = kl_str_of(from), out->n_sources = 1;
    for (int i = 1; i < args->n_words && out->n_sources < (int)KL_COUNT(out->sources); i++)
        out->sources[out->n_sources++] = kl_str_of(args->words[i]);
    const char *in = args->values[KL_OPTION_IN];
    if (!out->function.len && out->n_sources) { /* MODULE:FUNCTION of a package */
        const kl_str module = kli_before(out->sources[0], ':');
        if (module.len < out->sources[0].len)
            out->function = kli_from(out->sources[0], module.len + 1);
    }
    out->in = kli_init_whole_path(a, kl_str_of(in ? in : "."));
    out->with = kli_init_whole_path(a, out->with);
    if (in && !kli_fs_is_dir(in)) return kl_fail(e, KL_ENOENT, in, "no such folder");
    return init_is_whole(out, e);
}
