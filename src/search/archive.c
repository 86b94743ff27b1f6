/* archive.c - see archive.h.  Cells hold ids, islands hold ids sorted by score, hashes are found in
 * an open table; everything else is arithmetic. SPDX-License-Identifier: Apache-2.0 */
#include "archive.h"
#include "base/hash.h"
#include <string.h>

#define ARCHIVE_NOBODY (-1)

typedef struct {
    kli_member member;
    uint8_t bin[KLI_MAX_AXES];
    int cell;
} archive_record;

typedef struct {
    int *cells;   /* id of the holder, or NOBODY */
    int *drawn;   /* how often each cell's holder was a parent */
    int *members; /* ids, best first */
    int n_members;
} island;

struct kli_archive {
    kl_arena *arena;
    kli_axis axes[KLI_MAX_AXES];
    int n_axes, n_cells, n_islands;
    island islands[KLI_MAX_ISLANDS];
    archive_record *known;
    int n_known, cap_known;
    int *table; /* of hashes: ids, or NOBODY; a power of two, at most half full */
    int cap_table;
    int *distance; /* of each member to what is shown; scratch of kli_archive_show */
};

/* ---- the grid ---------------------------------------------------------------------------- */

int kli_axis_bin(const kli_axis *x, double value) {
    int bin = 0;
    while (bin < x->n_edges && value >= x->edges[bin]) bin++;
    return bin;
}

static void archive_place(const kli_archive *x, archive_record *r) {
    r->cell = 0;
    for (int i = 0; i < x->n_axes; i++) {
        KL_ASSERT(r->member.feature[i] == r->member.feature[i]); /* no NaN */
        r->bin[i] = (uint8_t)kli_axis_bin(&x->axes[i], r->member.feature[i]);
        r->cell = r->cell * (x->axes[i].n_edges + 1) + r->bin[i];
    }
}

static void clear(int *at, int n) {
    for (int i = 0; i < n; i++) at[i] = ARCHIVE_NOBODY;
}

kli_archive *kli_archive_new(kl_arena *a, const kli_axis *axes, int n_axes, int islands) {
    kli_archive *x = KL_NEW(a, kli_archive);
    KL_ASSERT(n_axes > 0 && n_axes <= KLI_MAX_AXES && islands > 0 && islands <= KLI_MAX_ISLANDS);
    *x = (kli_archive){.arena = a, .n_axes = n_axes, .n_islands = islands, .n_cells = 1};
    for (int i = 0; i < n_axes; i++) {
        KL_ASSERT(axes[i].n_edges >= 0 && axes[i].n_edges < KLI_MAX_BINS);
        for (int j = 1; j < axes[i].n_edges; j++)
            KL_ASSERT(axes[i].edges[j - 1] < axes[i].edges[j]);
        x->axes[i] = axes[i];
        x->n_cells *= axes[i].n_edges + 1;
        KL_ASSERT(x->n_cells <= KLI_MAX_CELLS);
    }
    for (int i = 0; i < islands; i++) {
        x->islands[i] = (island){.cells = KL_ARRAY(a, int, x->n_cells),
                                 .drawn = KL_ARRAY(a, int, x->n_cells),
                                 .members = KL_ARRAY(a, int, x->n_cells)};
        clear(x->islands[i].cells, x->n_cells);
    }
    x->distance = KL_ARRAY(a, int, x->n_cells);
    return x;
}

/* ---- what is known ----------------------------------------------------------------------- */

/* Where the hash stands in the table, or where it would. */
static int archive_slot_of(const kli_archive *x, const char *hash) {
    const uint64_t mask = (uint64_t)x->cap_table - 1;
    uint64_t at = kli_hash_bulk(hash, strlen(hash)) & mask;
    while (x->table[at] != ARCHIVE_NOBODY && strcmp(x->known[x->table[at]].member.hash, hash) != 0)
        at = (at + 1) & mask;
    return (int)at;
}

static void grow(kli_archive *x) {
    const int cap = x->cap_known ? 2 * x->cap_known : 64;
    archive_record *longer = KL_ARRAY(x->arena, archive_record, cap);
    if (x->n_known) memcpy(longer, x->known, (size_t)x->n_known * sizeof *longer);
    x->known = longer;
    x->cap_known = cap;
    x->cap_table = 2 * cap;
    x->table = KL_ARRAY(x->arena, int, x->cap_table);
    clear(x->table, x->cap_table);
    for (int i = 0; i < x->n_known; i++) x->table[archive_slot_of(x, x->known[i].member.hash)] = i;
}

/* Returns the id; `*clone`: it was known before. */
static int know(kli_archive *x, const kli_member *m, bool *clone) {
    KL_ASSERT(m->score == m->score && memchr(m->hash, '\0', sizeof m->hash));
    if (x->n_known == x->cap_known) grow(x);
    int *slot = &x->table[archive_slot_of(x, m->hash)];
    *clone = *slot != ARCHIVE_NOBODY;
    if (*clone) return *slot;
    archive_record *r = &x->known[x->n_known];
    r->member = *m;
    archive_place(x, r);
    return *slot = x->n_known++;
}

int kli_archive_known(const kli_archive *x) { return x->n_known; }

static const archive_record *record_at(const kli_archive *x, int id) {
    KL_ASSERT(id >= 0 && id < x->n_known);
    return &x->known[id];
}

const kli_member *kli_archive_get(const kli_archive *x, int id) {
    return &record_at(x, id)->member;
}

/* ---- members of an island ---------------------------------------------------------------- */

static const island *island_at(const kli_archive *x, int i) {
    KL_ASSERT(i >= 0 && i < x->n_islands);
    return &x->islands[i];
}

int kli_archive_size(const kli_archive *x, int i) { return island_at(x, i)->n_members; }

int kli_archive_at(const kli_archive *x, int i, int rank) {
    KL_ASSERT(rank >= 0 && rank < island_at(x, i)->n_members);
    return x->islands[i].members[rank];
}

bool kli_archive_has(const kli_archive *x, int i, int id) {
    return island_at(x, i)->cells[record_at(x, id)->cell] == id;
}

/* A4: the order of members. */
static bool before(const kli_archive *x, int a, int b) {
    const double x_a = x->known[a].member.score, x_b = x->known[b].member.score;
    return x_a > x_b || (x_a >= x_b && a < b);
}

/* How many members stand before `id`, whether it is one or not. */
static int rank_of(const kli_archive *x, const island *in, int id) {
    int low = 0, high = in->n_members;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (before(x, in->members[middle], id))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void archive_enter(const kli_archive *x, island *in, int id) {
    const int rank = rank_of(x, in, id);
    KL_ASSERT(in->n_members < x->n_cells);
    memmove(in->members + rank + 1, in->members + rank,
            (size_t)(in->n_members - rank) * sizeof *in->members);
    in->members[rank] = id;
    in->n_members++;
}

static void archive_leave(const kli_archive *x, island *in, int id) {
    const int rank = rank_of(x, in, id);
    KL_ASSERT(rank < in->n_members && in->members[rank] == id); /* A1 */
    in->n_members--;
    memmove(in->members + rank, in->members + rank + 1,
            (size_t)(in->n_members - rank) * sizeof *in->members);
}

/* A1 and A2. */
static kli_archive_change contend(kli_archive *x, int i, int id) {
    island *in = &x->islands[i];
    const int cell = x->known[id].cell, holder = in->cells[cell];
    if (holder == id) return KLI_KNOWN;
    if (holder != ARCHIVE_NOBODY && x->known[holder].member.score >= x->known[id].member.score)
        return KLI_LOST;
    if (holder != ARCHIVE_NOBODY) archive_leave(x, in, holder);
    in->cells[cell] = id;
    in->drawn[cell] = 0;
    archive_enter(x, in, id);
    return holder == ARCHIVE_NOBODY ? KLI_FIRST : KLI_WON;
}

kli_archive_change kli_archive_add(kli_archive *x, int i, const kli_member *m, int *id) {
    bool clone;
    KL_ASSERT(i >= 0 && i < x->n_islands);
    const int at = know(x, m, &clone);
    if (id) *id = at;
    return clone ? KLI_KNOWN : contend(x, i, at);
}

int kli_archive_seed(kli_archive *x, const kli_member *m) {
    bool clone;
    const int id = know(x, m, &clone);
    for (int i = 0; i < x->n_islands; i++) contend(x, i, id);
    return id;
}

/* ---- migration --------------------------------------------------------------------------- */

static int share_of(int n, double share) {
    const int k = (int)((double)n * share);
    return k < 1 ? 1 : k > n ? n : k;
}

int kli_archive_migrate(kli_archive *x, double share) {
    int *leaving[KLI_MAX_ISLANDS], count[KLI_MAX_ISLANDS], arrived = 0;
    kl_arena *scratch = kl_arena_new();
    for (int i = 0; i < x->n_islands; i++) {
        const island *in = &x->islands[i];
        count[i] = in->n_members ? share_of(in->n_members, share) : 0;
        leaving[i] = KL_ARRAY(scratch, int, count[i] + 1);
        if (count[i]) memcpy(leaving[i], in->members, (size_t)count[i] * sizeof *in->members);
    }
    for (int i = 0; i < x->n_islands; i++)
        for (int j = 0; j < count[i]; j++)
            arrived += contend(x, (i + 1) % x->n_islands, leaving[i][j]) >= KLI_FIRST;
    kl_arena_free(scratch);
    return arrived;
}

/* ---- parents ----------------------------------------------------------------------------- */

static int among_the_best(const island *in, double share, kl_stream s, uint64_t at) {
    return in->members[kli_stream_below(s, at, (uint64_t)share_of(in->n_members, share))];
}

static int among_the_least_drawn(const kli_archive *x, const island *in, kl_stream s, uint64_t at) {
    int least = INT32_MAX, n = 0;
    for (int i = 0; i < in->n_members; i++) {
        const int drawn = in->drawn[x->known[in->members[i]].cell];
        n = drawn < least ? 1 : n + (drawn == least);
        least = drawn < least ? drawn : least;
    }
    int skip = (int)kli_stream_below(s, at, (uint64_t)n);
    for (int i = 0; i < in->n_members; i++)
        if (in->drawn[x->known[in->members[i]].cell] == least && skip-- == 0) return in->members[i];
    kl_bug("one of them", __FILE__, __LINE__);
    return ARCHIVE_NOBODY;
}

/* Values 2 draw and 2 draw + 1 of the stream. */
int kli_archive_parent(kli_archive *x, int i, const kli_mix *mix, kl_stream s, uint64_t draw) {
    const island *in = island_at(x, i);
    const double u = kli_stream_uniform(s, 2 * draw);
    const uint64_t at = 2 * draw + 1;
    KL_ASSERT(in->n_members > 0);
    const int id = u < mix->top ? among_the_best(in, mix->share, s, at)
                   : u < mix->top + mix->diverse
                       ? among_the_least_drawn(x, in, s, at)
                       : in->members[kli_stream_below(s, at, (uint64_t)in->n_members)];
    in->drawn[x->known[id].cell]++;
    return id;
}

/* ---- what is shown ----------------------------------------------------------------------- */

static int archive_distance(const kli_archive *x, int a, int b) {
    int sum = 0;
    for (int i = 0; i < x->n_axes; i++) {
        const int d = x->known[a].bin[i] - x->known[b].bin[i];
        sum += d < 0 ? -d : d;
    }
    return sum;
}

/* `id` is shown now: nobody is farther from what is shown than from it.  Two members never share a
 * cell, so 0 means shown. */
static void archive_measure(kli_archive *x, const island *in, int id) {
    for (int i = 0; i < in->n_members; i++) {
        const int d = archive_distance(x, in->members[i], id);
        if (d < x->distance[i]) x->distance[i] = d;
    }
}

/* Of the `n` best the one farthest from everything shown, of equals the better. */
static int farthest(const kli_archive *x, const island *in, int n) {
    int best = ARCHIVE_NOBODY, far = 0;
    for (int i = 0; i < n; i++) {
        if (x->distance[i] <= far) continue;
        far = x->distance[i];
        best = in->members[i];
    }
    return best;
}

void kli_archive_show(kli_search_shown *out, kli_archive *x, int i, int parent, double least,
                      int top, int diverse) {
    const island *in = island_at(x, i);
    int n = in->n_members;
    KL_ASSERT(top >= 0 && top <= KLI_MAX_SHOWN && diverse >= 0 && diverse <= KLI_MAX_SHOWN);
    *out = (kli_search_shown){0};
    while (n && x->known[in->members[n - 1]].member.score < least) n--;
    for (int j = 0; j < in->n_members; j++) x->distance[j] = INT32_MAX;
    record_at(x, parent);
    archive_measure(x, in, parent);
    for (int j = 0; j < n && out->n_top < top; j++)
        if (in->members[j] != parent) out->top[out->n_top++] = in->members[j];
    for (int j = 0; diverse && j < out->n_top; j++) archive_measure(x, in, out->top[j]);
    while (out->n_diverse < diverse) {
        const int id = farthest(x, in, n);
        if (id == ARCHIVE_NOBODY) return;
        out->diverse[out->n_diverse++] = id;
        archive_measure(x, in, id);
    }
}

/* ---- invariants -------------------------------------------------------------------------- */

static void check_island(const kli_archive *x, const island *in) {
    int held = 0;
    for (int c = 0; c < x->n_cells; c++) held += in->cells[c] != ARCHIVE_NOBODY;
    KL_ASSERT(held ==
              in->n_members); /* A1: with the loop below, members and holders are the same */
    for (int i = 0; i < in->n_members; i++) {
        const int id = in->members[i];
        archive_record again = *record_at(x, id);
        archive_place(x, &again);
        KL_ASSERT(again.cell == x->known[id].cell &&
                  in->cells[again.cell] == id); /* A1; the grid did not move */
        KL_ASSERT(i == 0 || before(x, in->members[i - 1],
                                   id)); /* A4, and A3 in the island: the order is strict */
    }
}

void kli_archive_check(const kli_archive *x) {
    for (int i = 0; i < x->n_islands; i++) check_island(x, &x->islands[i]);
    for (int i = 0; i < x->n_known; i++)
        KL_ASSERT(x->table[archive_slot_of(x, x->known[i].member.hash)] == i); /* A3 */
}
