/* mutate.c - no language model: one mechanical variation of the kernel that is asked about, drawn
 * by a seed.
 *
 * What a search makes of a proposer that knows nothing: the floor under every model, and load for
 * the machinery at no price. A kind of variation is drawn first and then one of that kind, so that
 * sixty compile flags do not crowd out two loops.  The draw depends on the seed and on the
 * request's key alone: the same request gets the same answer, and asked once more, another.
 * Requests for prose (plans, summaries, rules, reviews, cards) get one plain sentence that helps
 * nobody. Not here: the variations (rewrite/mutate.c), and any judgement.  Format:
 * docs/formats/proposal.md. SPDX-License-Identifier: Apache-2.0 */
#include "model_impl.h"
#include "base/hash.h"
#include "base/rng.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_VARIATIONS = 1024,
    MAX_BYTES = 64 << 20 /* of all variations of one kernel: each is a whole text */
};

typedef struct {
    uint64_t seed;
    const char *name;
} model_mutate_mutator;

static kl_err mutate_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    model_mutate_mutator *m = KL_NEW(a, model_mutate_mutator);
    char *end = NULL;
    errno = 0;
    m->seed = strtoull(rest, &end, 10);
    if (rest[0] < '0' || rest[0] > '9' || *end || errno)
        return kl_fail(e, KL_EINVAL, "--model",
                       "a seed is a whole number, as in mutate:1, not '%.40s'", rest);
    m->name =
        kl_arena_printf(a, "mutate:%llu (no language model)", (unsigned long long)m->seed).ptr;
    *self = m;
    return KL_OK;
}

static const char *mutate_name(const void *self) {
    return ((const model_mutate_mutator *)self)->name;
}

/* ---- what is asked for ------------------------------------------------------------------- */

static bool is_prose_purpose(const char *purpose) {
    static const char *const PROSE[] = {"plan", "summarize", "rule", "review", "lift"};
    for (size_t i = 0; i < KL_COUNT(PROSE); i++)
        if (strcmp(purpose, PROSE[i]) == 0) return true;
    return false;
}

/* Whoever wants a kernel shows the rules of its surface first. */
static bool wants_code(kl_arena *a, const kl_request *q) {
    if (!q->subject || is_prose_purpose(q->purpose) || q->messages[0].role != KL_ROLE_SYSTEM)
        return false;
    return kl_str_starts(q->messages[0].text, kl_prompt_rules(a, q->subject->surface));
}

static kl_str prose(const kl_request *q) {
    return strcmp(q->purpose, "rule") == 0
               ? KL_S("no guidance\n")
               : KL_S("Change one thing at a time and keep what measures faster.\n");
}

/* ---- one variation ----------------------------------------------------------------------- */

/* Outside of a run there is no key; then the conversation stands for it. */
static kl_stream mutate_stream_of(const model_mutate_mutator *m, const kl_request *q) {
    kl_hasher h;
    kli_hasher_init(&h);
    if (q->key) kli_hasher_add(&h, kl_str_of(q->key));
    for (int i = 0; !q->key && i < q->n; i++) kli_hasher_add(&h, q->messages[i].text);
    return kli_stream_of(m->seed, kli_hasher_end(&h).hex);
}

static bool same_kind(const kl_undoing *x, const kl_undoing *y) {
    return kl_str_eq(x->action, y->action);
}

static const kl_undoing *mutate_draw(const kl_undoing *all, int n, kl_stream s) {
    uint64_t kinds = 0, members = 0;
    int first = 0, chosen = 0;
    for (int i = 0; i < n; i++) { /* the k-th of its sort takes the place of the one before with a
                                     chance of one in k */
        bool known = false;
        for (int k = 0; k < i && !known; k++) known = same_kind(&all[k], &all[i]);
        kinds += !known;
        if (!known && kli_stream_below(s, kinds, kinds) == 0) first = i;
    }
    for (int i = first; i < n; i++) {
        if (!same_kind(&all[i], &all[first])) continue;
        members++;
        if (kli_stream_below(s, MAX_VARIATIONS + members, members) == 0) chosen = i;
    }
    KL_ASSERT(kinds > 0 && members > 0 && same_kind(&all[chosen], &all[first]));
    return &all[chosen];
}

static kl_str model_mutate_vary(kl_arena *a, const model_mutate_mutator *m, const kl_request *q) {
    const size_t bytes = q->subject->source.len + 1;
    const int room = bytes > MAX_BYTES / MAX_VARIATIONS ? (int)(MAX_BYTES / bytes) : MAX_VARIATIONS;
    kl_undoing *all = KL_ARRAY(a, kl_undoing, room);
    const int n = kl_rewrite_mutate(all, room, a, q->subject);
    if (!n) return KL_S("DONE: there is no mechanical variation of this kernel\n");
    const kl_undoing *u = mutate_draw(all, n, mutate_stream_of(m, q));
    const kl_str edits = kl_str_trim(kl_edits_between(a, q->subject->source, u->source));
    return kl_arena_printf(
        a, "ACTION: %.*s\nLOCUS: %.*s\nWHY: one of %d mechanical variations, drawn by %s\n\n%.*s\n",
        KL_STR_ARG(u->action), KL_STR_ARG(u->locus), n, m->name, KL_STR_ARG(edits));
}

/* Hundreds of whole texts are made for one answer: they do not outlive it. */
static kl_err mutate_ask(kl_reply *out, void *self, kl_arena *a, const kl_request *q, kl_error *e) {
    (void)e;
    const model_mutate_mutator *m = self;
    kl_arena *scratch = kl_arena_new();
    out->text =
        kl_arena_copy(a, wants_code(scratch, q) ? model_mutate_vary(scratch, m, q) : prose(q));
    out->model = kl_str_of(m->name);
    kl_arena_free(scratch);
    return KL_OK;
}

const kl_provider kli_mutate = {
    .name = "mutate",
    .spec = "mutate:SEED",
    .doc = "no model: one mechanical variation, drawn by a seed; free, for tests and for measuring "
           "searches",
    .example = "mutate:1",
    .repeatable = true,
    .open = mutate_open,
    .ask = mutate_ask,
    .model_name = mutate_name,
};
