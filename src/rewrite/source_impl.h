/* source_impl.h - what the readers of a source share.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWRITE_SOURCE_IMPL_H
#define KL_REWRITE_SOURCE_IMPL_H

#include "rewrite_impl.h"

enum {
    KLI_MAX_FUNCTIONS = 4096, /* of one source; the largest expert has some dozens */
    KLI_MAX_DEPTH = 64        /* of statements in statements, of calls in calls */
};

/* Names, and the first of the things that go by each. */
typedef struct {
    kl_str name;
    int first; /* -1: none */
    bool vector;
} kli_symbol;

typedef struct {
    kli_symbol *slots;
    size_t n;
} kli_symbols;

void kli_symbols_init(kli_symbols *out, kl_arena *a, int most); /* room for as many names */
/* NULL when absent and not added. */
kli_symbol *kli_symbol_of(const kli_symbols *s, kl_str name, bool add);

typedef struct {
    int name, body, end; /* tokens: NAME, {, } */
    int next;            /* another function of the same name */
    bool reached, measuring;
    int depth;     /* of its loops, with those of what it calls; valid when measured */
    int own_depth; /* of its loops alone */
    bool measured;
    int first_call; /* into calls; -1: none */
} kli_function;

typedef struct {
    int callee, depth, next;
} kli_rewrite_call;

typedef struct {
    const kl_kernel *kernel;
    kli_source *out;
    kl_arena *arena;
    kli_tokens tokens; /* macros expanded */
    kli_symbols names; /* of functions and of types */
    kli_function functions[KLI_MAX_FUNCTIONS];
    int n_functions;
    int queue[KLI_MAX_FUNCTIONS];
    int n_queue;
    kli_rewrite_call *calls;
    int n_calls;
} kli_reader;

/* kli_source_read, with what it read left in the arena. */
kli_reader *kli_reader_open(kli_source *out, kl_arena *a, const kl_kernel *k);
int kli_match(const kli_tokens *t, int open,
              int end); /* the bracket that closes `open`; `end` when none does */

/* A loop by its tokens: for ( init ; condition ; step ) body, and what stands behind its body.
 * Where there is none of them, condition and step are 0. */
typedef struct {
    int at, open, condition, step, close, body, after;
    bool innermost;
} kli_loop;

void kli_read_header(kli_loop *out, const kli_tokens *t, int at, int end); /* all up to the body */

/* expand.c */
void kli_expand(kli_tokens *out, kl_arena *a, const kli_tokens *source);

/* words.c */
bool kli_is_vector_type(kl_str name, const kl_surface *s);
/* A word in use; `call`: a bracket follows; `body`: inside a function's braces. */
void kli_count_name(kli_source *out, kl_str word, bool call, bool body, const kl_surface *s);
void kli_count_number(kli_source *out, kl_str text);
void kli_count_pragma(kli_source *out, kl_str text);
void kli_count_asm(kli_source *out, kl_str text);

/* loops.c */
void kli_read_loops(kli_reader *r);

/* python.c */
void kli_python_read(kli_source *out, kl_arena *a, const kl_kernel *k);

#endif
