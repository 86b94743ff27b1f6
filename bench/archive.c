/* archive.c - operations per second of the archive that policy evolve lives on; archive.py runs it
 * beside another engine.
 *
 *   bench_archive [ADDS] [DRAWS] [MIGRATIONS]
 *
 * ISLANDS islands of 20 x 10 cells, all of them taken: a population of 1000.  An add begins at the
 * source, whose hash is counted.  Before each migration, which alone is timed then, every island
 * gets FRESH new programs, better than all before, so that there is something to move.  Prints one
 * JSON object.  SPDX-License-Identifier: Apache-2.0 */
#include "search/archive.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ISLANDS = 5,
    SIZES = 20,
    SCORES = 10,
    SOURCE_BYTES = 4096,
    FRESH = 10,
    TOP = 3,
    DIVERSE = 2
};

typedef struct {
    kli_archive *archive;
    kl_stream stream;
    uint64_t made;
    char source[SOURCE_BYTES];
} bench;

/* A program nobody has seen, somewhere in the grid; or better than all before. */
static kli_member fresh(bench *b, bool better) {
    const uint64_t i = b->made++;
    kli_member m = {.score = better ? 1 - 1 / ((double)i + 2)
                                    : kli_stream_uniform(b->stream, 2 * i) * 0.999};
    m.feature[0] = kli_stream_uniform(b->stream, 2 * i + 1);
    m.feature[1] = m.score;
    memcpy(b->source, &i, sizeof i);
    return m;
}

static void add(bench *b, int island, bool better) {
    kli_member m = fresh(b, better);
    memcpy(m.hash, kli_hash_of((kl_str){b->source, sizeof b->source}).hex, sizeof m.hash);
    kli_archive_add(b->archive, island, &m, NULL);
}

static int population(const bench *b) {
    int n = 0;
    for (int i = 0; i < ISLANDS; i++) n += kli_archive_size(b->archive, i);
    return n;
}

static void put(json_t *o, const char *key, int n, int64_t ns) {
    json_object_set_new(o, key, json_real(n / ((double)ns * 1e-9)));
}

static void time_adds(bench *b, json_t *o, int n) {
    const int64_t start = kli_now_ns();
    for (int i = 0; i < n; i++) add(b, i % ISLANDS, false);
    put(o, "add", n, kli_now_ns() - start);
}

static void time_draws(bench *b, json_t *o, int n, bool shown) {
    const kli_mix mix = {.top = 0.7, .diverse = 0.2, .share = 0.1};
    const int64_t start = kli_now_ns();
    kli_search_shown out = {0};
    int64_t sum = 0; /* so that nothing is left out */
    for (int i = 0; i < n; i++) {
        const int parent =
            kli_archive_parent(b->archive, i % ISLANDS, &mix, b->stream, (uint64_t)i);
        if (shown) kli_archive_show(&out, b->archive, i % ISLANDS, parent, 0, TOP, DIVERSE);
        sum += parent + out.n_diverse;
    }
    put(o, shown ? "parent_and_inspirations" : "parent", n, kli_now_ns() - start);
    if (sum == INT64_MIN) abort();
}

static void time_migrations(bench *b, json_t *o, int n) {
    int64_t ns = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < FRESH * ISLANDS; j++) add(b, j % ISLANDS, true);
        const int64_t start = kli_now_ns();
        kli_archive_migrate(b->archive, 0.1);
        ns += kli_now_ns() - start;
    }
    put(o, "migrate", n, ns);
}

static int argument(int argc, char **argv, int i, int otherwise) {
    return i < argc ? atoi(argv[i]) : otherwise;
}

int main(int argc, char **argv) {
    double sizes[SIZES - 1], scores[SCORES - 1];
    kl_arena *a = kl_arena_new();
    for (int i = 0; i < SIZES - 1; i++) sizes[i] = (i + 1.0) / SIZES;
    for (int i = 0; i < SCORES - 1; i++) scores[i] = (i + 1.0) / SCORES;
    const kli_axis axes[] = {{"size", sizes, SIZES - 1}, {"score", scores, SCORES - 1}};
    static bench b;
    b.archive = kli_archive_new(a, axes, 2, ISLANDS);
    b.stream = kli_stream_of(1, "bench");
    while (population(&b) < ISLANDS * SIZES * SCORES) add(&b, (int)(b.made % ISLANDS), false);
    json_t *o = json_object();
    json_object_set_new(o, "population", json_integer(population(&b)));
    time_adds(&b, o, argument(argc, argv, 1, 50000));
    time_draws(&b, o, argument(argc, argv, 2, 200000), false);
    time_draws(&b, o, argument(argc, argv, 2, 200000), true);
    time_migrations(&b, o, argument(argc, argv, 3, 1000));
    kli_archive_check(b.archive);
    puts(kli_json_dump(a, o, true).ptr);
    json_decref(o);
    kl_arena_free(a);
    return 0;
}
