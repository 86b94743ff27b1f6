/* cmd_dataset.c - `klineage dataset export`: runs of the journal as rows for training.
 *
 * What must not appear is dropped, named, and shows in the exit status; the rest is written.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "base/fs.h"
#include "base/record.h"
#include <klineage/dataset.h>

enum { MOST_HELD_OUT = 4096, MOST_BYTES = 1 << 20 };

/* Names, one a line; what follows a # is for people. */
static kl_err read_held_out(kl_dataset_opts *o, kl_arena *a, const char *path, kl_error *e) {
    kl_str text, line;
    if (!path) return KL_OK;
    kl_err err = kli_fs_read(&text, a, path, MOST_BYTES, e);
    kl_str *names = KL_ARRAY(a, kl_str, MOST_HELD_OUT);
    while (!err && kl_str_cut(&line, &text, '\n')) {
        kl_str name;
        if (!kl_str_cut(&name, &line, '#') || !(name = kl_str_trim(name)).len) continue;
        if (o->n_held_out == MOST_HELD_OUT)
            err = kl_fail(e, KL_ELIMIT, path, "more than %d names", MOST_HELD_OUT);
        else
            names[o->n_held_out++] = kl_arena_copy(a, name);
    }
    o->held_out = names;
    if (!err && !o->n_held_out) {
        kl_fail(e, KL_EINVAL, path, "no task and no family is named in this file");
        return kl_hint(e, "one name a line, or leave --held-out away");
    }
    return err;
}

static kl_err read_options(kl_dataset_opts *o, kl_arena *a, const kli_args *args, kl_error *e) {
    const char *format = args->values[KL_OPTION_FORMAT];
    *o = (kl_dataset_opts){.runs = args->words,
                           .n_runs = args->n_words,
                           .dir = args->values[KL_OPTION_OUT],
                           .force = kli_args_has(args, KL_OPTION_FORCE)};
    if (!format || !kl_dataset_format_parse(&o->format, kl_str_of(format))) {
        kl_fail(e, KL_EINVAL, "--format", "no format was named");
        return kl_hint(e, "klineage dataset export %.40s --format trace --out DIR", args->words[0]);
    }
    if (!o->dir) {
        kl_fail(e, KL_EINVAL, "--out", "no folder was named");
        return kl_hint(e, "klineage dataset export %.40s --format %s --out DIR", args->words[0],
                       format);
    }
    return read_held_out(o, a, args->values[KL_OPTION_HELD_OUT], e);
}

static void dataset_tell(kl_buf *b, const kl_dataset *d) {
    kl_buf_printf(b, "%lld rows (%.*s) of %lld steps in %.*s\n", (long long)d->rows,
                  KL_STR_ARG(d->format), (long long)d->steps, KL_STR_ARG(d->dir));
    for (int i = 0; i < d->n_splits; i++)
        kl_buf_printf(b, "  %5lld  %.*s.jsonl\n", (long long)d->splits[i].rows,
                      KL_STR_ARG(d->splits[i].name));
    for (int i = 0; i < d->n_left_out; i++)
        kl_buf_printf(b, "  %5lld  left out: %.*s\n", (long long)d->left_out[i].rows,
                      KL_STR_ARG(d->left_out[i].name));
    for (int i = 0; i < d->n_refused; i++)
        kl_buf_printf(b, "  %5lld  refused, of %.*s: it must not appear\n",
                      (long long)d->refused[i].rows, KL_STR_ARG(d->refused[i].name));
    kl_buf_printf(b, "Parquet: %.*s\n", KL_STR_ARG(d->parquet));
    if (d->rows)
        kl_buf_printf(b, "python3 -c 'import datasets; print(datasets.load_dataset(\"%.*s\"))'\n",
                      KL_STR_ARG(d->dir));
}

kl_err kli_cmd_dataset_export(kli_context *c, const kli_args *args, kli_command_result *out,
                              kl_error *e) {
    kl_store *store = NULL;
    kl_dataset_opts o;
    kl_dataset *d = KL_NEW(c->arena, kl_dataset);
    kl_err err = read_options(&o, c->arena, args, e);
    if (!err) err = kli_journal_open(&store, c->arena, args, e);
    if (!err) err = kl_dataset_export(d, c->arena, store, &o, e);
    kl_store_close(store);
    if (err) return err;
    dataset_tell(&out->text, d);
    out->json = kli_record_json(&KL_DATASET, d);
    out->exit_code = d->n_refused || !d->rows;
    return KL_OK;
}
