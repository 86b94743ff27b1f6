/* archive.h - a MAP-Elites archive on islands: which programs of a population are kept, which is
 * changed next, which are shown beside it.
 *
 * A grid of up to KLI_MAX_AXES axes.  Edges are given once and never move, so a program's cell
 * never changes.  Every island has the whole grid and one program a cell; islands know of each
 * other by migration alone.  Numbers alone: no kernel, no model, no gate, no clock; the same calls
 * with the same streams give the same answers.
 *
 *   A1  a program is in an island exactly while it holds the cell of its bins there
 *   A2  a holder leaves its cell for a strictly better one alone
 *   A3  a hash is known once, and is in an island at most once
 *   A4  members of an island stand best first; of equals the older one
 *
 * Costs: add O(log + a move of the island's ids), a draw O(1), of the least drawn cells and of
 * diverse ones O(members).  A population is bounded by islands x cells; what lost its cell stays
 * known by its hash. Source: Mouret and Clune, "Illuminating search spaces by mapping elites", as
 * OpenEvolve and Kernel-Smith use it. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_SEARCH_ARCHIVE_H
#define KL_SEARCH_ARCHIVE_H
#include "base/rng.h"

#define KLI_MAX_AXES 4
#define KLI_MAX_BINS 64    /* of one axis */
#define KLI_MAX_CELLS 4096 /* of one island */
#define KLI_MAX_ISLANDS 16
#define KLI_MAX_SHOWN 8 /* top programs, and diverse ones, of one prompt */

/* Bin i holds the values from edges[i - 1] on and below edges[i]: one bin more than edges. */
typedef struct {
    const char *name;
    const double *edges; /* rising; borrowed for as long as the archive lives */
    int n_edges;
} kli_axis;
int kli_axis_bin(const kli_axis *x, double value);

typedef struct {
    char hash[65];                /* identity */
    double score;                 /* higher is better */
    double feature[KLI_MAX_AXES]; /* one value an axis */
} kli_member;

typedef enum {
    KLI_KNOWN, /* a clone: nothing changed */
    KLI_LOST,  /* its cell has a holder at least as good: not in the island */
    KLI_FIRST, /* its cell was empty */
    KLI_WON    /* in place of the former holder */
} kli_archive_change;

typedef struct kli_archive kli_archive;

kli_archive *kli_archive_new(kl_arena *a, const kli_axis *axes, int n_axes, int islands);
/* Programs are numbered from 0 in the order in which they become known; `*id` (may be NULL) is that
 * of the clone when it is one. */
kli_archive_change kli_archive_add(kli_archive *x, int island, const kli_member *m, int *id);
/* Into every island: the program that all of them begin with.  Returns its id. */
int kli_archive_seed(kli_archive *x, const kli_member *m);
/* The `share` best of each island, at least one, also into the next one of the ring.  All are
 * chosen before the first arrives, so that nobody goes round in one call.  Returns how many found a
 * place. */
int kli_archive_migrate(kli_archive *x, double share);

int kli_archive_known(const kli_archive *x); /* programs, kept or not */
const kli_member *kli_archive_get(const kli_archive *x, int id);
int kli_archive_size(const kli_archive *x, int island);         /* members */
int kli_archive_at(const kli_archive *x, int island, int rank); /* id of a member, best first */
bool kli_archive_has(const kli_archive *x, int island, int id);

/* How a parent is drawn: from the best, from the cells least often drawn from, else any member. */
typedef struct {
    double top, diverse; /* probabilities; the rest is uniform */
    double share;        /* of the members, that count as the best; at least one */
} kli_mix;
/* The draw's number names it: the same number gives the same parent of the same archive.  The
 * island has members. */
int kli_archive_parent(kli_archive *x, int island, const kli_mix *mix, kl_stream s, uint64_t draw);

/* What is shown beside a parent: the best members, then members in cells far from everything shown
 * so far.  Never the parent, nobody twice, nobody whose score is below `least`. */
typedef struct {
    int top[KLI_MAX_SHOWN], diverse[KLI_MAX_SHOWN];
    int n_top, n_diverse;
} kli_search_shown;
void kli_archive_show(kli_search_shown *out, kli_archive *x, int island, int parent, double least,
                      int top, int diverse);

/* Asserts A1, A3 and A4 of every island: for tests. */
void kli_archive_check(const kli_archive *x);

#endif
