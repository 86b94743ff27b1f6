/* prompt.c - the texts that models are sent.
 *
 * The texts are files, src/rewrite/prompts/NAME.md, built into the library; only {{name}} in them
 * is replaced, once, by values that are never looked into again.  The same values give the same
 * bytes, so that a provider's cache and a recording hold: no date, no order of a hash table,
 * nothing of the machine.  SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include <stdio.h>
#include <string.h>

#define PROMPT(name)                                                                               \
    extern const unsigned char kl_prompt_text_##name[];                                            \
    extern const size_t kl_prompt_text_##name##_bytes;
#include "prompts.def"
#undef PROMPT

static const struct {
    const char *name;
    const unsigned char *text;
    const size_t *bytes;
} PROMPTS[] = {
#define PROMPT(name) {#name, kl_prompt_text_##name, &kl_prompt_text_##name##_bytes},
#include "prompts.def"
#undef PROMPT
};

static kl_str prompt_text_of(const char *name) {
    for (size_t i = 0; i < KL_COUNT(PROMPTS); i++)
        if (strcmp(PROMPTS[i].name, name) == 0)
            return (kl_str){(const char *)PROMPTS[i].text, *PROMPTS[i].bytes};
    kl_bug("a prompt that exists", __FILE__, __LINE__);
    return (kl_str){0};
}

/* "{{name}}" at the beginning of `s`: its length, or 0. */
static size_t placeholder(kl_str s, kl_str *name) {
    size_t n = 2;
    if (!kl_str_starts(s, KL_S("{{"))) return 0;
    while (n < s.len && ((s.ptr[n] >= 'a' && s.ptr[n] <= 'z') || s.ptr[n] == '_')) n++;
    *name = (kl_str){s.ptr + 2, n - 2};
    return n > 2 && kl_str_starts(kli_from(s, n), KL_S("}}")) ? n + 2 : 0;
}

static kl_str prompt_value_of(kl_str name, const kl_prompt_value *values, int n) {
    for (int i = 0; i < n; i++)
        if (kl_str_eq(kl_str_of(values[i].name), name)) return values[i].value;
    kl_bug("a value for every placeholder", __FILE__, __LINE__);
    return (kl_str){0};
}

kl_str kl_prompt(kl_arena *a, const char *name, const kl_prompt_value *values, int n) {
    kl_str rest = prompt_text_of(name), key;
    kl_buf b = {0};
    while (rest.len) {
        size_t used = placeholder(rest, &key);
        kl_buf_add(&b, used ? prompt_value_of(key, values, n) : (kl_str){rest.ptr, 1});
        if (!used) used = 1;
        rest = kli_from(rest, used);
    }
    return kli_buf_keep(&b, a);
}

/* ---- the system prompt ------------------------------------------------------------------- */

static kl_str list(kl_arena *a, const char *const *items) {
    kl_buf b = {0};
    for (; *items; items++) kl_buf_printf(&b, "%s%s", b.len ? " " : "", *items);
    const kl_str text = b.len ? kl_arena_copy(a, kl_buf_str(&b)) : KL_S("none");
    kl_buf_fini(&b);
    return text;
}

const char *kl_prompt_tag(const kl_surface *s) { return s->fences[0]; }

kl_str kl_prompt_rules(kl_arena *a, const kl_surface *s) {
    const kl_prompt_value values[] = {
        {"surface", kl_str_of(s->name)},      {"prefix", kl_str_of(s->comment)},
        {"tag", kl_str_of(kl_prompt_tag(s))}, {"clauses", list(a, s->clauses)},
        {"flags", list(a, s->flags)},         {"own", kl_str_of(s->note)}};
    return kl_prompt(a, "rules", values, (int)KL_COUNT(values));
}

kl_str kl_prompt_vocabulary(kl_arena *a, const kl_surface *s, bool undoing) {
    const kl_prompt_value values[] = {{"actions", kl_prompt_actions(a, s, NULL, undoing)}};
    return kl_prompt(a, "actions", values, 1);
}

kl_str kl_prompt_system(kl_arena *a, const kl_surface *s) {
    const kl_str rules = kl_prompt_rules(a, s), actions = kl_prompt_vocabulary(a, s, true);
    return kl_arena_printf(a, "%.*s%.*s", KL_STR_ARG(rules), KL_STR_ARG(actions));
}

/* ---- the task ---------------------------------------------------------------------------- */

static void add_tensor(kl_buf *b, const kl_task *t, const kl_workload *w, int i) {
    const kl_tensor *x = &t->tensors[i];
    kl_shape shape = {0};
    kl_buf_printf(b, "- %s %.*s: %s",
                  x->is_output    ? "output"
                  : x->is_mutable ? "input, updated in place,"
                                  : "input",
                  KL_STR_ARG(x->name), kl_dtype_name(w->dtypes[i]));
    if (x->is_scalar) {
        kl_buf_printf(b, ", a scalar passed by value, %g here\n", w->scalars[i]);
        return;
    }
    kl_buf_printf(b, "[");
    for (int d = 0; d < x->ndim; d++)
        kl_buf_printf(b, "%s%.*s", d ? ", " : "", KL_STR_ARG(x->dims[d]));
    kl_buf_printf(b, "]");
    if (kl_task_shape(&shape, t, w, i, kl_ignored()) == KL_OK) {
        kl_buf_printf(b, " = [");
        for (int d = 0; d < shape.ndim; d++)
            kl_buf_printf(b, "%s%lld", d ? ", " : "", (long long)shape.dims[d]);
        kl_buf_printf(b, "]");
    }
    kl_buf_printf(b, ", row-major, contiguous");
    const kl_check *c = &w->checks[i];
    if (x->is_output && c->kind == KL_CHECK_EXACT) kl_buf_printf(b, "; must be exact");
    if (x->is_output && c->kind == KL_CHECK_TOPK) kl_buf_printf(b, "; ranked, ties in any order");
    if (x->is_output && c->kind == KL_CHECK_BUDGET)
        kl_buf_printf(b, "; relative RMS error at most %g times that of a plain kernel",
                      c->budget > 0 ? c->budget : 4.0);
    kl_buf_printf(b, "\n");
}

static void add_axes(kl_buf *b, const kl_task *t, const kl_workload *w) {
    kl_buf_printf(b, "Axes at the shape that is timed:");
    for (int i = 0; i < t->n_axes; i++)
        kl_buf_printf(b, " %.*s = %lld%s", KL_STR_ARG(t->axes[i].name), (long long)w->axes[i],
                      t->axes[i].kind == KL_AXIS_CONST ? " (always)" : "");
    kl_buf_printf(b, "\n");
    for (int i = 0; i < t->n_constraints; i++)
        kl_buf_printf(b, "Always: %.*s\n", KL_STR_ARG(t->constraints[i]));
}

/* The task's naive kernel of this surface; nothing where it has none.  `shown` is not shown twice.
 */
static void add_naive(kl_buf *b, kl_arena *a, const kl_task *t, const kl_surface *s, kl_str shown) {
    kl_kernel *k;
    const kl_kernel_opts opts = {.trusted = true};
    if (!s->naive) return;
    const kl_str path = kl_arena_printf(a, "%.*s/%s", KL_STR_ARG(t->dir), s->naive);
    if (kl_kernel_load(&k, a, path.ptr, &opts, kl_ignored()) != KL_OK || k->surface != s) return;
    if (kl_str_eq(k->source, shown))
        return kl_buf_add(b, KL_S("\nThe kernel to start from is the plain one, which is what "
                                  "`naive` means here.\n"));
    kl_buf_printf(
        b, "\nA plain kernel for it, which is what `naive` means here:\n\n```%s\n%.*s%s```\n",
        kl_prompt_tag(s), KL_STR_ARG(k->source), kl_str_ends(k->source, KL_S("\n")) ? "" : "\n");
}

static void add_kind(kl_buf *b, kl_arena *a, const kl_task *t, const kl_workload *w,
                     const kl_surface *s, bool undoing) {
    kl_facts facts = {0};
    kli_facts_of_task(&facts, a, t, w);
    const kl_str actions = kl_prompt_actions(a, s, &facts, undoing);
    if (actions.len)
        kl_buf_printf(b, "\nActions for operators of this kind, beside those of the list:\n\n%.*s",
                      KL_STR_ARG(actions));
}

kl_str kl_prompt_task(kl_arena *a, const kl_task *t, const kl_workload *w, const kl_surface *s,
                      kl_str shown, bool undoing) {
    kl_buf b = {0};
    double flops = 0, bytes = 0;
    kl_buf_printf(&b, "%.*s (%.*s)", KL_STR_ARG(t->name),
                  KL_STR_ARG(t->case_name.len ? t->case_name : t->op_type));
    if (t->description.len) kl_buf_printf(&b, ": %.*s", KL_STR_ARG(t->description));
    kl_buf_printf(&b, "\n\n");
    add_axes(&b, t, w);
    kl_buf_printf(&b, "\nTensors, in the order of the task; a launch passes them by name:\n");
    for (int i = 0; i < t->n_tensors; i++) add_tensor(&b, t, w, i);
    if (t->precision)
        kl_buf_printf(&b, "Lowest precision allowed inside: %s\n", kl_dtype_name(t->precision));
    if (kl_task_work(&flops, &bytes, t, w, kl_ignored()) == KL_OK)
        kl_buf_printf(
            &b, "Work at this shape: %.4g operations, %.4g bytes when everything is moved once\n",
            flops, bytes);
    if (t->python_reference.len)
        kl_buf_printf(&b, "\nReference, in Python:\n\n```python\n%.*s%s```\n",
                      KL_STR_ARG(t->python_reference),
                      kl_str_ends(t->python_reference, KL_S("\n")) ? "" : "\n");
    add_naive(&b, a, t, s, shown);
    add_kind(&b, a, t, w, s, undoing);
    return kli_buf_keep(&b, a);
}
