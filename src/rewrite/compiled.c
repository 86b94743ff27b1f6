/* compiled.c - what a compiler made of a kernel, in words: of its remarks those on the innermost
 * loops, with how these touch their operands.
 *
 * All of it follows from source, compiler and device, so the same question is the same bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "rewrite_impl.h"
#include <math.h>
#include <stdlib.h>

enum {
    REMARKS_SHOWN = 6,
    LOOPS_SHOWN = 4,
    SHOWN_BYTES = 120, /* of each */
    LOOP_LINES = 12    /* of source, from the head of a loop on, in which remarks are about it */
};

/* ---- remarks ----------------------------------------------------------------------------- */

/* Loops around the innermost loop that is nested deepest; -1: the text shows no loop. */
static double deepest(const kl_facts *f) {
    double most = -1;
    for (int i = 0; i < f->n_loops; i++)
        if (f->loops[i].at[KL_LOOP_INNERMOST].number > 0)
            most = fmax(most, f->loops[i].at[KL_LOOP_DEPTH].number);
    return most;
}

/* Is `line` at the head of such a loop, or close behind it? */
static bool is_hot(const kl_facts *f, double depth, int line) {
    for (int i = 0; i < f->n_loops; i++) {
        const kl_fact *at = f->loops[i].at;
        const int from = at[KL_LOOP_LINE].line;
        if (at[KL_LOOP_INNERMOST].number > 0 && !(at[KL_LOOP_DEPTH].number < depth) &&
            line >= from && line <= from + LOOP_LINES)
            return true;
    }
    return false;
}

/* What has no line is about the whole. */
static void add_remarks(kl_buf *b, kl_str remarks, const kl_facts *f) {
    const double depth = deepest(f);
    int n = 0;
    for (kl_str line; n < REMARKS_SHOWN && kli_next_line(&line, &remarks);) {
        if (kl_str_starts(line, KL_S("line ")) && !is_hot(f, depth, atoi(line.ptr + 5))) continue;
        kl_buf_printf(b, "%s- %.*s\n", n++ ? "" : "The compiler says:\n",
                      KL_STR_ARG(kli_cut(line, SHOWN_BYTES)));
    }
}

#define LOOPS_TITLE                                                                                \
    "Innermost loops (unit: from turn to turn the neighbour; far: as far away as a shape says):\n"

/* How the hottest loops of the source touch their operands, as the tool reads them. */
static void add_loops(kl_buf *b, const kl_facts *f) {
    const double depth = deepest(f);
    int n = 0;
    for (int i = 0; i < f->n_loops && n < LOOPS_SHOWN; i++) {
        const kl_fact *at = f->loops[i].at;
        const kl_fact *turns = &at[KL_LOOP_TURNS], *sums = &at[KL_LOOP_SUMS];
        if (!(at[KL_LOOP_INNERMOST].number > 0) || at[KL_LOOP_DEPTH].number < depth ||
            !at[KL_LOOP_OPERANDS].text.len)
            continue;
        kl_buf_printf(b, "%s- line %d: %.*s", n++ ? "" : LOOPS_TITLE, at[KL_LOOP_LINE].line,
                      KL_STR_ARG(kli_cut(at[KL_LOOP_OPERANDS].text, SHOWN_BYTES)));
        if (turns->known) kl_buf_printf(b, "; %g turns", turns->number);
        if (sums->number > 0) kl_buf_printf(b, ", independent sums: %g", sums->number);
        kl_buf_add(b, KL_S("\n"));
    }
}

kl_str kl_prompt_compiled(kl_arena *a, const kl_compiled *made, const kl_kernel *k,
                          const kl_task *t, const kl_workload *w) {
    kl_buf b = {0};
    kl_arena *scratch = kl_arena_new();
    KL_ASSERT(made && k);
    const kl_facts *facts = kl_facts_of(scratch, k, t, w, NULL);
    add_loops(&b, facts);
    add_remarks(&b, made->remarks, facts);
    kl_buf_add(&b, made->resources);
    kl_buf_add(&b, made->hot_loop);
    kl_arena_free(scratch);
    return kl_buf_take(&b, a);
}
