/* actions.c - the vocabulary of optimizations as a table.  The rows are actions.def.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rewrite_impl.h"

#include <string.h>

enum {
    CPU = KL_FAMILY_CPU,
    NV = KL_FAMILY_CUDA,
    NVT = KL_FAMILY_NVIDIA,
    GPU = KL_FAMILY_GRID,
    ANY = KL_FAMILY_ANY
};

static const kl_action ACTIONS[] = {
#define ACTION(id, families, forward, backward, needs, witness, follows, after, risks)             \
    {#id, forward, backward, needs, families, witness, after, risks, follows},
#include "actions.def"
};

static const struct {
    const char *id;
    kl_fact_id both[2];
} KINDS[] = {
#define KIND(id, x, y) {#id, {KL_FACT_OP_##x, KL_FACT_OP_##y}},
#include "actions.def"
};

enum { MAX_SLUG = 40 };

const kl_action *kl_action_each(int i) {
    return i >= 0 && (size_t)i < KL_COUNT(ACTIONS) ? &ACTIONS[i] : NULL;
}

const kl_action *kl_action_find(kl_str id) {
    for (size_t i = 0; i < KL_COUNT(ACTIONS); i++)
        if (kl_str_eq(kl_str_of(ACTIONS[i].id), id)) return &ACTIONS[i];
    return NULL;
}

kl_str kl_action_operators(kl_arena *a, const kl_action *x) {
    kl_buf b = {0};
    for (size_t i = 0; i < KL_COUNT(KINDS); i++) {
        const kl_fact_id *both = KINDS[i].both;
        if (strcmp(KINDS[i].id, x->id) != 0) continue;
        kl_buf_printf(&b, "%s%s", b.len ? " or " : "",
                      kl_fact_each(KL_FACT_OF_STATE, (int)both[0])->name);
        if (both[0] != both[1])
            kl_buf_printf(&b, " and %s", kl_fact_each(KL_FACT_OF_STATE, (int)both[1])->name);
    }
    return kl_buf_take(&b, a);
}

bool kl_action_valid(kl_str id) {
    const kl_str other = KL_S("other:");
    if (kl_action_find(id)) return true;
    if (!kl_str_starts(id, other) || id.len == other.len || id.len - other.len > MAX_SLUG)
        return false;
    for (size_t i = other.len; i < id.len; i++)
        if (!((id.ptr[i] >= 'a' && id.ptr[i] <= 'z') || (id.ptr[i] >= '0' && id.ptr[i] <= '9') ||
              id.ptr[i] == '_'))
            return false;
    return true;
}

static bool may_hold(const kl_fact *f) { return !f->known || f->number > 0; }

static bool is_of_kind(const kl_action *x) {
    for (size_t i = 0; i < KL_COUNT(KINDS); i++)
        if (strcmp(KINDS[i].id, x->id) == 0) return true;
    return false;
}

/* A fact that nobody knows rules nothing out. */
static bool is_of_this_kind(const kl_action *x, const kl_facts *f) {
    for (size_t i = 0; i < KL_COUNT(KINDS); i++)
        if (strcmp(KINDS[i].id, x->id) == 0 && may_hold(&f->at[KINDS[i].both[0]]) &&
            may_hold(&f->at[KINDS[i].both[1]]))
            return true;
    return false;
}

kl_str kl_prompt_actions(kl_arena *a, const kl_surface *s, const kl_facts *f, bool undoing) {
    kl_buf b = {0};
    for (size_t i = 0; i < KL_COUNT(ACTIONS); i++) {
        const kl_action *x = &ACTIONS[i];
        if (!(x->families & s->families) || (f ? !is_of_this_kind(x, f) : is_of_kind(x))) continue;
        kl_buf_printf(&b, "- %s: %s.", x->id, x->forward);
        if (undoing) kl_buf_printf(&b, " Undone: %s.", x->backward);
        kl_buf_add(&b, KL_S("\n"));
    }
    if (!f)
        kl_buf_printf(&b, "- other:<slug>: anything else; the slug names it in a-z, 0-9 and _.\n");
    return kli_buf_keep(&b, a);
}
