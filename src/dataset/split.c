/* split.c - into which file a step goes, and that no two files hold nearly the same.
 *
 * A family is in one split, by its hash alone, so that it stays there when the data set grows.
 * Families can hold kernels that are nearly the same text, such as a product and a batch of
 * products; then the row of the split that counts less is left out.  How alike two texts are is the
 * Jaccard index of their runs of five tokens, estimated from the 128 least hashes of their union:
 * its standard error is below 0.05.  SPDX-License-Identifier: Apache-2.0 */
#include "dataset_impl.h"
#include "base/hash.h"
#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { SHINGLE = 5, OF_TEST = 10, OF_VALIDATION = 10 }; /* of a hundred families */

const char *kli_split_name(kli_split s) {
    static const char *const NAMES[] = {"train", "validation", "test", "held_out"};
    KL_ASSERT(s < KLI_SPLITS);
    return NAMES[s];
}

kli_split kli_split_of(kl_str family) {
    const kl_hash h = kli_hash_of(family);
    const long place = strtol((char[]){h.hex[0], h.hex[1], h.hex[2], h.hex[3], 0}, NULL, 16) % 100;
    return place < OF_TEST                   ? KLI_TEST
           : place < OF_TEST + OF_VALIDATION ? KLI_VALIDATION
                                             : KLI_TRAIN;
}

/* ---- how alike two texts are ------------------------------------------------------------- */

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The next word, number or sign; white space is none. */
static bool next_token(kl_str *token, kl_str *rest) {
    while (rest->len && isspace((unsigned char)*rest->ptr)) rest->ptr++, rest->len--;
    if (!rest->len) return false;
    size_t n = 1;
    if (in_word(*rest->ptr))
        while (n < rest->len && in_word(rest->ptr[n])) n++;
    *token = (kl_str){rest->ptr, n};
    rest->ptr += n;
    rest->len -= n;
    return true;
}

static void keep_least(kli_sketch *s, uint64_t hash) {
    int at = s->n;
    while (at && s->least[at - 1] > hash) at--;
    if ((at && s->least[at - 1] == hash) || at == KLI_SKETCH) return;
    if (s->n < KLI_SKETCH) s->n++;
    memmove(&s->least[at + 1], &s->least[at], (size_t)(s->n - 1 - at) * sizeof(uint64_t));
    s->least[at] = hash;
}

void kli_sketch_of(kli_sketch *out, kl_str text) {
    uint64_t run[SHINGLE] = {0};
    kl_str token;
    int n = 0;
    *out = (kli_sketch){0};
    while (next_token(&token, &text)) {
        memmove(run, run + 1, sizeof run - sizeof *run);
        run[SHINGLE - 1] = kli_hash_bulk(token.ptr, token.len);
        if (++n >= SHINGLE) keep_least(out, kli_hash_bulk(run, sizeof run));
    }
    if (n && n < SHINGLE) keep_least(out, kli_hash_bulk(run, sizeof run));
}

double kli_alike(const kli_sketch *x, const kli_sketch *y) {
    int i = 0, j = 0, seen = 0, both = 0;
    if (!x->n || !y->n) return 0;
    while (seen < KLI_SKETCH && (i < x->n || j < y->n)) {
        const bool left = j == y->n || (i < x->n && x->least[i] <= y->least[j]);
        const bool right = i == x->n || (j < y->n && y->least[j] <= x->least[i]);
        seen++;
        both += left && right;
        i += left;
        j += right;
    }
    return (double)both / seen;
}

/* ---- splits ------------------------------------------------------------------------------ */

/* Names are NUL-terminated, as their patterns are. */
static bool step_is_held_out(const kl_dataset_step *s, const kl_dataset_opts *o) {
    for (int i = 0; i < o->n_held_out; i++)
        if (fnmatch(o->held_out[i].ptr, s->task.ptr, FNM_NOESCAPE) == 0 ||
            fnmatch(o->held_out[i].ptr, s->family.ptr, FNM_NOESCAPE) == 0)
            return true;
    return false;
}

typedef struct {
    kl_str text;
    kli_sketch sketch;
} known_text;

typedef struct {
    kl_arena *arena;
    known_text *at; /* texts of the splits that count more */
    int n, n_before;
} known_texts;

static bool is_learned(const known_texts *k, kl_str text, int n) {
    for (int i = 0; i < n; i++)
        if (kl_str_eq(k->at[i].text, text)) return true;
    return false;
}

static bool resembles(const known_texts *k, kl_str text) {
    kli_sketch s;
    if (!k->n_before || !text.len) return false;
    kli_sketch_of(&s, text);
    for (int i = 0; i < k->n_before; i++)
        if (kli_alike(&s, &k->at[i].sketch) >= KLI_NEARLY_SAME) return true;
    return false;
}

static void learn(known_texts *k, kl_str text) {
    if (!text.len || is_learned(k, text, k->n)) return;
    known_text *t = KL_PUSH(k->arena, k->at, k->n);
    t->text = text;
    kli_sketch_of(&t->sketch, text);
}

void kli_splits(kli_split *out, const kli_samples *s, const bool *take, const kl_dataset_opts *o,
                kl_arena *a) {
    known_texts known = {.arena = a};
    for (int i = 0; i < s->n; i++)
        out[i] = step_is_held_out(&s->at[i], o) ? KLI_HELD_OUT : kli_split_of(s->at[i].family);
    for (int split = KLI_HELD_OUT; split >= KLI_TRAIN; split--) {
        for (int i = 0; i < s->n; i++) {
            if (out[i] != (kli_split)split || (split != KLI_HELD_OUT && !take[i])) continue;
            if (resembles(&known, s->at[i].source) || resembles(&known, s->at[i].parent_source)) {
                out[i] = KLI_SPLITS;
                continue;
            }
            learn(&known, s->at[i].source);
            learn(&known, s->at[i].parent_source);
        }
        known.n_before = known.n;
    }
}
