/* source_impl.h - what source.c, words.c and loops.c share.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWRITE_SOURCE_IMPL_H
#define KL_REWRITE_SOURCE_IMPL_H

#include "rewrite_impl.h"

enum {
    KLI_MAX_MACROS = 4096, /* of one source; the largest expert has some dozens */
    KLI_MAX_FUNCTIONS = 4096,
    KLI_MAX_DEPTH = 64 /* of macros in macros, of statements in statements, of calls in calls */
};

typedef struct {
    kli_tokens body;
    int next; /* another definition of the same name, -1: none */
    bool function_like, reached;
} kli_macro;

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
    kl_str name;
    int function, macro;
    bool vector;
} kli_symbol;
typedef struct {
    int callee, depth, next;
} kli_call;

typedef struct {
    const kl_kernel *kernel;
    kli_source *out;
    kl_arena *arena;
    kli_tokens tokens;
    kli_symbol *slots;
    size_t n_slots;
    kli_macro macros[KLI_MAX_MACROS];
    int n_macros;
    kli_function functions[KLI_MAX_FUNCTIONS];
    int n_functions;
    int queue[KLI_MAX_FUNCTIONS];
    int n_queue;
    kli_call *calls;
    int n_calls, cap_calls;
    int expanded; /* tokens counted so far */
} kli_reader;

kli_symbol *kli_symbol_of(kli_reader *r, kl_str name, bool add); /* NULL when absent and not added */
int kli_match(const kli_tokens *t, int open, int end); /* the bracket that closes `open`; `end` when none does */

/* words.c */
bool kli_is_vector_type(kl_str name, const kl_surface *s);
void kli_count_name(kli_source *out, const kli_tokens *t, int i, bool call, const kl_surface *s, bool body);
void kli_count_number(kli_source *out, kl_str text);
void kli_count_pragma(kli_source *out, kl_str text);
void kli_count_asm(kli_source *out, kl_str text);

/* loops.c */
void kli_read_loops(kli_reader *r);
void kli_read_python_loops(kli_reader *r);

#endif
