/* suggest.c - "did you mean": the nearest known word, when it is near enough to be a slip of the
 * fingers.
 *
 * Distance counts insertions, deletions, replacements and swaps of neighbours.  A word may be wrong
 * in a third of its letters; a candidate that the wanted word abbreviates counts as one slip.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"
#include <string.h>

#define SUGGEST_LONGEST 64 /* longer words are not suggested; bounds the three rows below */

static size_t smallest(size_t a, size_t b, size_t c) {
    size_t low = a < b ? a : b;
    return low < c ? low : c;
}

static size_t suggest_distance(kl_str a, kl_str b) {
    KL_ASSERT(a.len <= SUGGEST_LONGEST && b.len <= SUGGEST_LONGEST);
    size_t rows[3][SUGGEST_LONGEST + 1], *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.len; j++) above[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t cost = a.ptr[i - 1] != b.ptr[j - 1];
            row[j] = smallest(above[j] + 1, row[j - 1] + 1, above[j - 1] + cost);
            bool swapped =
                i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1];
            if (swapped && before[j - 2] + 1 < row[j]) row[j] = before[j - 2] + 1;
        }
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[b.len];
}

void kli_suggest_start(kli_suggestion *s, kl_str wanted) {
    *s = (kli_suggestion){.wanted = wanted, .distance = wanted.len / 3 + 1};
}

void kli_suggest_offer(kli_suggestion *s, kl_str candidate) {
    if (candidate.len == 0 || candidate.len > SUGGEST_LONGEST || s->wanted.len == 0 ||
        s->wanted.len > SUGGEST_LONGEST)
        return;
    size_t d = s->wanted.len >= 3 && kl_str_starts(candidate, s->wanted)
                   ? 1
                   : suggest_distance(s->wanted, candidate);
    bool shorter = s->best.ptr && d == s->distance && candidate.len < s->best.len;
    bool nearer = s->best.ptr ? d < s->distance : d <= s->distance;
    if ((!nearer && !shorter) || d >= candidate.len) return;
    s->best = candidate;
    s->distance = d;
}
