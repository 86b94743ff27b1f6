/* dataset.c - from the journal to a folder: load, choose, split, write.
 *
 * The folder is made beside its place and moved there when it is whole.  A file without rows is not
 * written, since loaders refuse an empty one.  SPDX-License-Identifier: Apache-2.0 */
#include "dataset_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/record.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- records ----------------------------------------------------------------------------- */

#define KL_RECORD kl_dataset_turn
static const kl_record KL_DATASET_TURN = {KL_RECORD_HEAD("turn", "One message of a conversation."),
                                          KL_ROWS{
#define KL_DEF_TURN KL_ROW
#include <klineage/dataset.def>
                                              KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_feature
static const kl_record KL_DATASET_FEATURE = {
    KL_RECORD_HEAD("dataset-feature", "A number read from compiled code."),
    KL_ROWS{KL_ROW(TEXT, name, "name", "docs/formats/verdict.md lists them")
                KL_ROW(REAL, value, "value", "what it is") KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_dataset_step
const kl_record KL_DATASET_STEP = {
    KL_RECORD_HEAD("dataset-trace", "A row of `klineage dataset export --format trace`."),
    KL_ROWS{
#define KL_DEF_SAMPLE KL_ROW
#include <klineage/dataset.def>
        KL_ROWS_END}};
const kl_record KL_DATASET_SFT_ROW = {
    KL_RECORD_HEAD("dataset-sft", "A row of `klineage dataset export --format sft`."),
    KL_ROWS{
#define KL_DEF_SFT_ROW KL_ROW
#include <klineage/dataset.def>
        KL_ROWS_END}};
const kl_record KL_DATASET_RL_ROW = {
    KL_RECORD_HEAD("dataset-rl", "A row of `klineage dataset export --format rl`."),
    KL_ROWS{
#define KL_DEF_RL_ROW KL_ROW
#include <klineage/dataset.def>
        KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_dataset_pair
const kl_record KL_DATASET_PAIR = {
    KL_RECORD_HEAD("dataset-preference", "A row of `klineage dataset export --format preference`."),
    KL_ROWS{
#define KL_DEF_PREFERENCE KL_ROW
#include <klineage/dataset.def>
        KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_dataset_tally
static const kl_record KL_DATASET_TALLY = {KL_RECORD_HEAD("tally", "How many of one kind."),
                                           KL_ROWS{
#define KL_DEF_TALLY KL_ROW
#include <klineage/dataset.def>
                                               KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_dataset_family
static const kl_record KL_DATASET_FAMILY = {KL_RECORD_HEAD("family", "One operator family."),
                                            KL_ROWS{
#define KL_DEF_FAMILY KL_ROW
#include <klineage/dataset.def>
                                                KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_dataset
const kl_record KL_DATASET = {
    KL_RECORD_HEAD("dataset", "What `klineage dataset export` wrote, and what it did not."),
    .document = true,
    KL_ROWS{
#define KL_DEF_DATASET KL_ROW
#include <klineage/dataset.def>
        KL_ROWS_END}};
#undef KL_RECORD

/* ---- formats ----------------------------------------------------------------------------- */

static const char *const FORMATS[] = {"sft", "rl", "preference", "trace"};

const char *kl_dataset_format_name(kl_dataset_format f) { return FORMATS[f]; }

bool kl_dataset_format_parse(kl_dataset_format *out, kl_str name) {
    for (size_t i = 0; i < KL_COUNT(FORMATS); i++)
        if (kl_str_eq(name, kl_str_of(FORMATS[i]))) return *out = (kl_dataset_format)i, true;
    return false;
}

static const kl_record *record_of(kl_dataset_format f) {
    static const kl_record *const RECORDS[] = {&KL_DATASET_SFT_ROW, &KL_DATASET_RL_ROW,
                                               &KL_DATASET_PAIR, &KL_DATASET_STEP};
    return RECORDS[f];
}

/* ---- counting ---------------------------------------------------------------------------- */

typedef struct {
    kl_arena *arena;
    const kl_dataset_opts *opts;
    kl_dataset *out;
    kli_samples steps;
    bool *take;
    kli_split *split;
    kl_dataset_pair *pairs;
    int n_pairs;
    kl_buf files[KLI_HELD_OUT];
    kl_hash *seen; /* rows that were written */
    int n_seen;
} making;

static void count(kl_arena *a, kl_dataset_tally **tallies, int *n, kl_str name) {
    for (int i = 0; i < *n; i++)
        if (kl_str_eq((*tallies)[i].name, name)) {
            (*tallies)[i].rows++;
            return;
        }
    *KL_PUSH(a, *tallies, *n) = (kl_dataset_tally){.name = name, .rows = 1};
}
#define COUNT(m, list, name) count((m)->arena, &(m)->out->list, &(m)->out->n_##list, name)

static void dataset_leave_out(making *m, const char *why) { COUNT(m, left_out, kl_str_of(why)); }

static kl_str or_none(kl_str s) { return s.len ? s : KL_S("none"); }

/* What the parent's text says of its own licence. */
static kl_str licence_of(kl_str source) {
    static const char MARK[] = "SPDX-License-Identifier:";
    const char *at = memmem(source.ptr, source.len, MARK, sizeof MARK - 1);
    if (!at) return KL_S("not stated");
    kl_str name,
        rest = {at + sizeof MARK - 1, (size_t)(source.ptr + source.len - at) - (sizeof MARK - 1)};
    kl_str_cut(&name, &rest, '\n');
    name = kl_str_trim(name);
    if (kl_str_ends(name, KL_S("*/"))) name = kl_str_trim((kl_str){name.ptr, name.len - 2});
    return name.len > 64 ? KL_S("not stated") : name;
}

static kl_dataset_family *family_row(making *m, const kl_dataset_step *s, kli_split split) {
    for (int i = 0; i < m->out->n_families; i++)
        if (kl_str_eq(m->out->families[i].name, s->family)) return &m->out->families[i];
    kl_dataset_family *f = KL_PUSH(m->arena, m->out->families, m->out->n_families);
    *f = (kl_dataset_family){.name = s->family, .split = kl_str_of(kli_split_name(split))};
    return f;
}

static bool has_word(kl_str list, kl_str word) {
    kl_str part;
    while (kl_str_cut(&part, &list, ' '))
        if (kl_str_eq(part, word)) return true;
    return false;
}

static void count_row(making *m, const kl_dataset_step *s, kli_split split) {
    kl_dataset_family *f = family_row(m, s, split);
    f->rows++;
    if (!has_word(f->tasks, s->task))
        f->tasks = kl_arena_printf(m->arena, "%.*s%s%.*s", KL_STR_ARG(f->tasks),
                                   f->tasks.len ? " " : "", KL_STR_ARG(s->task));
    m->out->rows++;
    COUNT(m, splits, kl_str_of(kli_split_name(split)));
    COUNT(m, outcomes, or_none(s->outcome));
    COUNT(m, calls, or_none(s->call));
    COUNT(m, platforms, or_none(s->platform));
    COUNT(m, surfaces, or_none(s->surface));
    COUNT(m, models, or_none(s->model));
    COUNT(m, licences, licence_of(s->parent_source));
}

/* ---- choosing ---------------------------------------------------------------------------- */

static void choose(making *m) {
    const kli_samples *s = &m->steps;
    m->take = KL_ARRAY(m->arena, bool, s->n + 1);
    m->split = KL_ARRAY(m->arena, kli_split, s->n + 1);
    for (int i = 0; i < s->n; i++) m->take[i] = !kli_left_out(&s->at[i], m->opts->format);
    if (m->opts->format == KL_DATASET_RL) kli_best_steps(s, m->take, m->arena);
    bool *rows = m->take;
    if (m->opts->format == KL_DATASET_PREFERENCE) {
        m->pairs = kli_pairs(&m->n_pairs, s, m->take, m->arena);
        rows = KL_ARRAY(m->arena, bool, s->n + 1);
        for (int i = 0; i < m->n_pairs; i++)
            rows[m->pairs[i].chosen_at - s->at] = rows[m->pairs[i].rejected_at - s->at] = true;
    }
    kli_splits(m->split, s, rows, m->opts, m->arena);
}

static bool has_pair(const making *m, const kl_dataset_step *s) {
    for (int i = 0; i < m->n_pairs; i++)
        if (m->pairs[i].chosen_at == s) return true;
    return false;
}

/* Why a step became no row; those of what must not appear are named by their task. */
static void explain_steps(making *m) {
    const kl_dataset_format f = m->opts->format;
    for (int i = 0; i < m->steps.n; i++) {
        const kl_dataset_step *s = &m->steps.at[i];
        const char *why = kli_left_out(s, f);
        m->out->proposals += kli_is_change(s);
        m->out->linked += kl_str_eq(s->link, KL_S("applied"));
        if (m->split[i] == KLI_HELD_OUT)
            COUNT(m, refused, s->task);
        else if (why)
            dataset_leave_out(m, why);
        else if (!m->take[i])
            dataset_leave_out(m, "shows a better step, or is shown by one");
        else if (f == KL_DATASET_PREFERENCE && !has_pair(m, s))
            dataset_leave_out(m, "no rejected reply to the same parent");
        else if (m->split[i] == KLI_SPLITS)
            dataset_leave_out(
                m, "nearly the same as a row of another split, or as what must not appear");
        if (m->split[i] == KLI_HELD_OUT) family_row(m, s, KLI_HELD_OUT);
    }
}

/* ---- rows -------------------------------------------------------------------------------- */

static bool is_again(making *m, kl_hash h) {
    for (int i = 0; i < m->n_seen; i++)
        if (strcmp(m->seen[i].hex, h.hex) == 0) return true;
    *KL_PUSH(m->arena, m->seen, m->n_seen) = h;
    return false;
}

static kl_hash identity_of(const kl_dataset_turn *prompt, int n, kl_str reply, kl_str other) {
    kl_hasher h;
    kli_hasher_init(&h);
    for (int i = 0; i < n; i++) kli_hasher_add(&h, prompt[i].content);
    kli_hasher_add(&h, reply);
    kli_hasher_add(&h, other);
    return kli_hasher_end(&h);
}

static void write_dataset_row(making *m, const void *row, const kl_dataset_step *s,
                              kli_split split) {
    kl_arena *own = kl_arena_new();
    json_t *o = kli_record_json(record_of(m->opts->format), row);
    kl_buf_add(&m->files[split], kli_json_dump(own, o, false));
    kl_buf_add(&m->files[split], KL_S("\n"));
    json_decref(o);
    kl_arena_free(own);
    count_row(m, s, split);
}

/* The same prompt and reply twice teach nothing; a trace keeps both, as they happened. */
static void write_steps(making *m) {
    for (int i = 0; i < m->steps.n; i++) {
        const kl_dataset_step *s = &m->steps.at[i];
        if (!m->take[i] || m->split[i] >= KLI_HELD_OUT) continue;
        const bool rl = m->opts->format == KL_DATASET_RL;
        if (m->opts->format != KL_DATASET_TRACE &&
            is_again(m, identity_of(s->prompt, s->n_prompt, rl ? KL_S("") : s->reply, KL_S(""))))
            dataset_leave_out(m, "the same as another row");
        else
            write_dataset_row(m, s, s, m->split[i]);
    }
}

static void write_pairs(making *m) {
    for (int i = 0; i < m->n_pairs; i++) {
        const kl_dataset_pair *p = &m->pairs[i];
        const kli_split split = m->split[p->chosen_at - m->steps.at];
        if (split >= KLI_HELD_OUT || m->split[p->rejected_at - m->steps.at] != split) continue;
        if (!is_again(
                m, identity_of(p->prompt, p->n_prompt, p->chosen_at->reply, p->rejected_at->reply)))
            write_dataset_row(m, p, p->chosen_at, split);
    }
}

/* ---- the folder -------------------------------------------------------------------------- */

static bool is_in_use(kl_arena *a, const char *dir) {
    kl_str *names;
    size_t n = 1;
    if (!kli_fs_exists(dir)) return false;
    return !kli_fs_is_dir(dir) || kli_fs_list(&names, &n, a, dir, kl_ignored()) || n > 0;
}

/* Parquet by the user's Python, where it has pyarrow: what it says otherwise is what people read.
 */
static void write_parquet(making *m, const char *dir) {
    kl_arena *a = m->arena;
    const char *chosen = getenv("KLINEAGE_PYTHON");
    const char *const argv[] = {chosen && *chosen ? chosen : "python3",
                                kli_fs_find_part(a, "python/klineage/parquet.py").ptr, dir, NULL};
    kli_proc_result r = {0};
    const kli_proc_spec spec = {.argv = argv, .timeout_ns = 600000000000};
    kl_error own = {0};
    if (kli_proc_run(&r, a, &spec, &own))
        m->out->parquet = kl_arena_printf(a, "not written: %s", own.message);
    else if (r.exit_code == 0)
        m->out->parquet = KL_S("written");
    else {
        kl_str why = kl_str_trim(r.err), line = why;
        while (kl_str_cut(&line, &why, '\n')) {
        }
        m->out->parquet = kl_arena_printf(a, "not written: %.*s", KL_STR_ARG(line));
    }
}

static kl_err write_dataset(making *m, const char *dir, kl_error *e) {
    kl_err err = kli_fs_mkdirs(dir, e);
    for (int i = 0; !err && i < KLI_HELD_OUT; i++) {
        if (!m->files[i].len) continue;
        const char *name = kl_arena_printf(m->arena, "%s.jsonl", kli_split_name(i)).ptr;
        err = kli_fs_write(kli_fs_join(m->arena, dir, name).ptr, kl_buf_str(&m->files[i]), e);
    }
    if (!err && m->out->rows) write_parquet(m, dir);
    if (!err)
        err = kli_fs_write(kli_fs_join(m->arena, dir, "README.md").ptr,
                           kli_card(m->arena, m->out, m->opts), e);
    return err;
}

static kl_err put_in_place(making *m, const char *place, kl_error *e) {
    kl_arena *a = m->arena;
    const char *fresh = kl_arena_printf(a, "%s.dataset-%d", place, (int)getpid()).ptr,
               *old = kl_arena_printf(a, "%s.old-%d", place, (int)getpid()).ptr;
    if (!m->opts->force && is_in_use(a, place)) {
        kl_fail(e, KL_EINVAL, place, "this exists and is not empty");
        return kl_hint(e, "name another folder with --out, or replace this one with --force");
    }
    kl_err err = write_dataset(m, fresh, e);
    const bool there = !err && kli_fs_exists(place);
    if (there && rename(place, old) != 0)
        err = kl_fail(e, KL_EIO, place, "cannot be replaced: %s", strerror(errno));
    else if (!err && rename(fresh, place) != 0) {
        err = kl_fail(e, KL_EIO, place, "cannot be put here: %s", strerror(errno));
        if (there) (void)!rename(old, place);
    }
    kli_fs_remove_tree(fresh);
    kli_fs_remove_tree(old);
    return err;
}

kl_err kl_dataset_export(kl_dataset *out, kl_arena *a, kl_store *s, const kl_dataset_opts *o,
                         kl_error *e) {
    making m = {.arena = a, .opts = o, .out = out};
    size_t n = strlen(o->dir);
    while (n > 1 && o->dir[n - 1] == '/') n--;
    const char *place = kl_arena_printf(a, "%.*s", (int)n, o->dir).ptr;
    *out = (kl_dataset){.format = kl_str_of(kl_dataset_format_name(o->format)),
                        .dir = kl_str_of(place),
                        .parquet = KL_S("not written: there is no row")};
    kl_err err = kli_samples_load(&m.steps, a, s, o, e);
    if (err) return err;
    out->runs = m.steps.runs;
    out->n_runs = m.steps.n_runs;
    out->steps = m.steps.n;
    choose(&m);
    explain_steps(&m);
    if (o->format == KL_DATASET_PREFERENCE)
        write_pairs(&m);
    else
        write_steps(&m);
    err = put_in_place(&m, place, e);
    for (int i = 0; i < KLI_HELD_OUT; i++) kl_buf_fini(&m.files[i]);
    return err;
}
