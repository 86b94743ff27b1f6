/* shapes.c - where the compiler looks at shapes, code for those whose turn comes later.
 *
 * A kernel in Triton is another program at the tiny, at every hidden and at the real shape.  Beside
 * the compile of the real one the others are compiled, one after the other on a thread of its own
 * (aside.c), into the compile cache; the first check that needs one of them waits for all.  What a
 * compiler says of one is read there, from the cache: nothing is decided here, and what was left
 * undone is compiled then.  SPDX-License-Identifier: Apache-2.0 */
#include "gate_impl.h"

#include "base/log.h"

/* This verdict holds the cores like every gate that compiles: its thread must not wait for one that
 * waits for it. */
static const int64_t SHAPES_PATIENCE_NS = 50000000;

static bool comes_later(const kli_evaluation *c, const kl_workload *w) {
    const bool checked = w->hidden || kl_str_eq(w->label, KL_S("tiny"));
    return checked && w != c->workload && kl_workload_fits(w, c->backend->on);
}

static void compile_shapes(kli_aside *s) {
    const kli_shapes *n = (kli_shapes *)s;
    const kli_evaluation *c = n->of;
    kl_artefact artefact;
    kl_error e = {0};
    for (int i = 0; i < c->task->n_workloads && !kli_interrupted(); i++) {
        const kl_workload *w = &c->task->workloads[i];
        if (!comes_later(c, w) ||
            kli_compile_is_same(n->arena, c->device, c->kernel, c->task, w, c->workload))
            continue;
        if (kli_compile_code(&artefact, n->arena, c->device, c->kernel, c->task, w,
                             &c->opts->compile, &e))
            kli_debug("%.*s was not compiled ahead: %s", KL_STR_ARG(w->label), e.message);
    }
}

void kli_shapes_begin(kli_evaluation *c) {
    kli_shapes *n = &c->shapes;
    KL_ASSERT(!n->arena);
    if (!kli_compile_depends_on_shape(c->kernel) || c->opts->compile.no_cache) return;
    *n = (kli_shapes){.aside = {.work = compile_shapes,
                                .what = "compile other shapes",
                                .patience_ns = SHAPES_PATIENCE_NS,
                                .core = c->gate->core},
                      .arena = kl_arena_new(),
                      .of = c};
    (void)kli_aside_begin(&n->aside);
}

void kli_shapes_end(kli_evaluation *c, bool wanted) {
    kli_aside_end(&c->shapes.aside, wanted);
    kl_arena_free(c->shapes.arena);
    c->shapes.arena = NULL;
}
