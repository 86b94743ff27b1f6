/* traits.c - what is there in a kernel, as numbers by name.
 *
 * Numbers of the source come first when room is short, since they are few and decide; then those of
 * compiled code. Which trait witnesses which action stands in actions.def alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rewrite_impl.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    kli_trait_role role;
} TRAITS_ROWS[] = {
#define TRAIT(id, name, role) {name, role},
#include "traits.def"
};

_Static_assert(KL_COUNT(TRAITS_ROWS) == KLI_TRAIT_COUNT, "a row for each number of a source");
_Static_assert(KLI_TRAIT_COUNT <= KL_COUNT(((kl_traits *)0)->at), "numbers of a source have room");

const char *kli_trait_name(kli_trait t) {
    KL_ASSERT(t < KLI_TRAIT_COUNT);
    return TRAITS_ROWS[t].name;
}

kli_trait_role kli_trait_role_of(kli_trait t) {
    KL_ASSERT(t < KLI_TRAIT_COUNT);
    return TRAITS_ROWS[t].role;
}

static int traits_by_name(const void *a, const void *b) {
    const kl_str x = ((const kl_feature *)a)->name, y = ((const kl_feature *)b)->name;
    const int order = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

static void sort(kl_traits *t) { qsort(t->at, (size_t)t->n, sizeof t->at[0], traits_by_name); }

static void traits_add(kl_traits *t, kl_str name, double value) {
    if (t->n < (int)KL_COUNT(t->at) && name.len) t->at[t->n++] = (kl_feature){name, value};
}

void kl_traits_of(kl_traits *out, kl_arena *a, const kl_kernel *k, const kl_verdict *v) {
    kli_source source;
    *out = (kl_traits){0};
    kli_source_read(&source, k);
    for (int i = 0; i < KLI_TRAIT_COUNT; i++)
        if (source.count[i] > 0) traits_add(out, kl_str_of(TRAITS_ROWS[i].name), source.count[i]);
    for (int i = 0; v && i < v->n_features; i++)
        if (v->features[i].value == v->features[i].value) /* no NaN */
            traits_add(out, kl_arena_printf(a, "code.%.*s", KL_STR_ARG(v->features[i].name)),
                       v->features[i].value);
    sort(out);
}

double kl_trait(const kl_traits *t, kl_str name) {
    for (int i = 0; i < t->n; i++)
        if (kl_str_eq(t->at[i].name, name)) return t->at[i].value;
    return 0;
}

json_t *kl_traits_json(const kl_traits *t) {
    json_t *o = json_object();
    for (int i = 0; i < t->n; i++) {
        char key[128];
        snprintf(key, sizeof key, "%.*s", KL_STR_ARG(t->at[i].name));
        const bool whole = t->at[i].value == (double)(int64_t)t->at[i].value; /* 12, not 12.0 */
        json_object_set_new(
            o, key, whole ? json_integer((int64_t)t->at[i].value) : kli_json_real(t->at[i].value));
    }
    return o;
}

void kl_traits_parse(kl_traits *out, kl_arena *a, const json_t *o) {
    const char *key;
    json_t *value;
    *out = (kl_traits){0};
    json_object_foreach((json_t *)(uintptr_t)o, key, value) if (json_is_number(value))
        traits_add(out, kl_arena_copy(a, kl_str_of(key)), json_number_value(value));
    sort(out);
}

/* ---- witnesses --------------------------------------------------------------------------- */

static bool is_witness(kl_str name) {
    for (int i = 0; kl_action_each(i); i++)
        if (kli_one_of(name, kl_action_each(i)->witness)) return true;
    return false;
}

/* Size and shape witness an action beside others, but prove nothing by themselves. */
static bool is_shape(kl_str name) {
    for (int i = 0; i < KLI_TRAIT_COUNT; i++)
        if (kl_str_eq(name, kl_str_of(TRAITS_ROWS[i].name)))
            return TRAITS_ROWS[i].role == KLI_NUMBER;
    return false;
}

kl_str kl_traits_raised(kl_arena *arena, const kl_traits *a, const kl_traits *b) {
    kl_buf text = {0};
    for (int i = 0; i < b->n; i++) {
        const kl_str name = b->at[i].name;
        if (b->at[i].value > kl_trait(a, name) && is_witness(name) && !is_shape(name))
            kl_buf_printf(&text, "%s%.*s", text.len ? " " : "", KL_STR_ARG(name));
    }
    return kli_buf_keep(&text, arena);
}

static bool has_code(const kl_traits *t) {
    for (int i = 0; i < t->n; i++)
        if (kl_str_starts(t->at[i].name, KL_S("code."))) return true;
    return false;
}

bool kl_traits_naive(const kl_traits *k, const kl_traits *naive, kl_str *why, kl_arena *a) {
    const bool code =
        has_code(naive); /* without the naive kernel's code there is nothing to compare with */
    for (int i = 0; i < k->n; i++) {
        const kl_str name = k->at[i].name;
        const double there = kl_trait(naive, name);
        if (k->at[i].value <= there || !is_witness(name) || is_shape(name)) continue;
        if (!code && kl_str_starts(name, KL_S("code."))) continue;
        if (why)
            *why = kl_arena_printf(a, "%.*s is %g, the naive kernel has %g", KL_STR_ARG(name),
                                   k->at[i].value, there);
        return false;
    }
    return true;
}
