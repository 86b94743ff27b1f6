/* journal.c - what many verdicts take in a journal, and how long one takes to be found.
 *
 *   bench_journal JOURNAL FOLDER [COUNT]
 *
 * COUNT rows are made from the verdicts of JOURNAL in turn, each with a key of its own and every
 * digit behind a decimal point and every hexadecimal digit of a hash drawn anew, so that no row
 * repeats another's measurements.  They are written to FOLDER/packed.db as the program writes them,
 * and to FOLDER/plain.db as text; then LOOKS keys are looked up in each.  Prints one JSON object.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/stats.h"
#include "store/store_impl.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LOOKS = 10000, AT_ONCE = 1000, HASH_DIGITS = 40 };

typedef struct {
    kl_arena *arena;
    kl_store_verdict *verdicts;
    size_t n;
    int64_t count;
    const char *folder;
} bench;

static KL_NORETURN void die(const kl_error *e) {
    kl_buf b = {0};
    kl_error_render(e, &b);
    fputs(b.ptr, stderr);
    exit(2);
}

/* ---- rows ---------------------------------------------------------------------------- */

static size_t span_of(const char *at, int (*is)(int)) {
    size_t n = 0;
    while (is((unsigned char)at[n])) n++;
    return n;
}

/* Digits of reals, of seeds (long integers) and of hashes; names, counts and words stay. */
static void draw_anew(char *text, kl_stream draws) {
    uint64_t turn = 0;
    for (char *at = text; *at;) {
        const size_t hex = span_of(at, isxdigit), digits = span_of(at, isdigit);
        const bool fraction = digits && at > text && at[-1] == '.', is_long = digits > 9;
        if (hex >= HASH_DIGITS)
            for (size_t i = 0; i < hex; i++)
                at[i] = "0123456789abcdef"[kli_stream_below(draws, turn++, 16)];
        else if (fraction || is_long)
            for (size_t i = 1; i < digits; i++)
                at[i] = (char)('0' + kli_stream_below(draws, turn++, 10));
        at += hex ? hex : 1;
    }
}

static kl_str key_of(kl_arena *a, int64_t i) {
    return kl_arena_copy(a,
                         kl_str_of(kli_hash_of(kl_arena_printf(a, "row %lld", (long long)i)).hex));
}

static kl_store_verdict row_of(const bench *b, kl_arena *a, int64_t i) {
    kl_store_verdict v = b->verdicts[(size_t)i % b->n];
    const kl_str text = kl_arena_copy(a, v.json);
    draw_anew((char *)(uintptr_t)text.ptr, kli_stream_of((uint64_t)i, "row"));
    v.key = key_of(a, i);
    v.json = text;
    return v;
}

static kl_err put(kl_store *s, const kl_store_verdict *v, bool packed, kl_error *e) {
    return packed ? kl_store_verdict_put(s, v, e)
                  : kli_put(s, &kli_verdicts, &(kli_verdict_row){.v = *v}, e);
}

/* Many rows in one transaction: what a row takes is asked here, not what forcing it out takes. */
static void fill(const bench *b, kl_store *s, bool packed) {
    kl_error e = {0};
    for (int64_t i = 0; i < b->count; i += AT_ONCE) {
        kl_arena *scratch = kl_arena_new();
        kl_err err = kli_begin(s, "fill", &e);
        for (int64_t j = i; !err && j < i + AT_ONCE && j < b->count; j++) {
            const kl_store_verdict v = row_of(b, scratch, j);
            err = put(s, &v, packed, &e);
        }
        if (kli_end(s, err, "fill", &e)) die(&e);
        kl_arena_free(scratch);
    }
}

/* ---- measures ------------------------------------------------------------------------ */

static void look_up(const bench *b, kl_store *s, json_t *o) {
    static double us[LOOKS];
    const kl_stream draws = kli_stream_of(1, "looks");
    kl_error e = {0};
    for (uint64_t i = 0; i < LOOKS; i++) {
        kl_arena *a = kl_arena_new();
        const kl_str key = key_of(a, (int64_t)kli_stream_below(draws, i, (uint64_t)b->count));
        kl_str text;
        const int64_t start = kli_now_ns();
        if (kl_store_verdict_get(&text, s, a, key.ptr, &e)) die(&e);
        us[i] = (double)(kli_now_ns() - start) * 1e-3;
        kl_arena_free(a);
    }
    json_object_set_new(o, "look_up_us_median", json_real(kli_median(us, LOOKS)));
    json_object_set_new(o, "look_up_us_p95", json_real(kli_quantile(us, LOOKS, 0.95)));
}

static json_t *measure(const bench *b, bool packed) {
    const char *path = kli_fs_join(b->arena, b->folder, packed ? "packed.db" : "plain.db").ptr;
    kl_error e = {0};
    kl_store *s;
    struct stat file;
    json_t *o = json_object();
    if (kl_store_open(&s, path, &e)) die(&e);
    fill(b, s, packed);
    kl_store_close(s); /* folds the log back into the file */
    if (stat(path, &file) != 0 || kl_store_open(&s, path, &e)) die(&e);
    json_object_set_new(o, "mebibytes", json_real((double)file.st_size / (1 << 20)));
    json_object_set_new(o, "bytes_per_verdict", json_integer(file.st_size / b->count));
    look_up(b, s, o);
    kl_store_close(s);
    return o;
}

int main(int argc, char **argv) {
    kl_error e = {0};
    kl_store *s;
    bench b = {.arena = kl_arena_new(),
               .folder = argc > 2 ? argv[2] : NULL,
               .count = argc > 3 ? atoll(argv[3]) : 200000};
    if (argc < 3 || b.count < 1) {
        fprintf(stderr, "usage: bench_journal JOURNAL FOLDER [COUNT]\n");
        return 2;
    }
    if (kl_store_open(&s, argv[1], &e) ||
        kl_store_verdict_list(&b.verdicts, &b.n, s, b.arena, &(kl_store_verdict_query){0}, &e))
        die(&e);
    kl_store_close(s);
    if (!b.n && kl_fail(&e, KL_ENOENT, argv[1], "no verdicts in it")) die(&e);
    json_t *o = json_object();
    json_object_set_new(o, "verdicts", json_integer(b.count));
    json_object_set_new(o, "made_from", json_integer((json_int_t)b.n));
    json_object_set_new(o, "plain", measure(&b, false));
    json_object_set_new(o, "packed", measure(&b, true));
    puts(kli_json_dump(b.arena, o, true).ptr);
    json_decref(o);
    kl_arena_free(b.arena);
    return 0;
}
