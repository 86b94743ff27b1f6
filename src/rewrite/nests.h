/* nests.h - the loops of a kernel as they run: each call is followed, so that a loop knows which
 * loops are around it, what its operands are called at the launch, and how far apart they are read.
 *
 * Read from tokens, without types: what cannot be told is left unknown, never guessed.  Who knows
 * which facts follow from it is facts.c.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWRITE_NESTS_H
#define KL_REWRITE_NESTS_H

#include "source_impl.h"

/* ---- names.c: what a name of a function stands for --------------------------------------- */

typedef struct {
    int begin, end;
} kli_range; /* tokens */

typedef struct {
    kl_str name;
    int at;                                             /* token of its declaration */
    kli_range init;                                     /* empty: none */
    bool array, vector, shared, pointer, integer, pair; /* pair: a vector of two */
} kli_local;

/* Parameters come first. */
typedef struct {
    kli_local *at;
    int n, n_params;
} kli_locals;

/* One call of a function; the outermost one is a launch. */
typedef struct kli_frame {
    const struct kli_frame *caller;
    const kl_launch *launch; /* of the outermost */
    int function, depth;
    kli_range *args;
    int n_args;
} kli_frame;

/* What stands behind an operand. */
typedef enum {
    KLI_ROOT_NONE,
    KLI_ROOT_INPUT,
    KLI_ROOT_OUTPUT,
    KLI_ROOT_BUFFER, /* a `buffer` directive */
    KLI_ROOT_SHARED, /* memory of a block */
    KLI_ROOT_LOCAL   /* a thread's own */
} kli_root_kind;

typedef struct {
    kli_root_kind kind;
    kl_str name;
    const kli_frame *frame; /* of a local */
    int at;                 /* its declaration */
} kli_root;

/* How far apart the elements are that neighbouring turns of a loop touch. */
typedef enum {
    KLI_STRIDE_NONE,  /* the same one */
    KLI_STRIDE_UNIT,  /* neighbours */
    KLI_STRIDE_BLOCK, /* a distance that is known when compiling */
    KLI_STRIDE_FAR,   /* a distance that a shape decides */
    KLI_STRIDE_GATHER /* data decides */
} kli_stride;

enum { KLI_NEST_VARS = 4, KLI_NEST_OPERANDS = 24, KLI_NEST_SUMS = 64 };

typedef struct {
    kli_root root;
    kli_stride read, write; /* the widest of each; NONE when there is none too */
    int reads, writes;
    bool vector, scalar, adds; /* some of its reads are of vectors, of scalars; += to it */
    bool computed;             /* results of arithmetic are written */
} kli_operand;

typedef struct {
    uint64_t key;
    double n;            /* sums of an array, all in flight */
    int dims;            /* loops that count through them */
    bool product, whole; /* whole: of whole numbers, so that their order is all the same */
} kli_sum;

typedef struct {
    const kli_frame *frame;
    kli_loop loop;
    int parent; /* -1: none */
    int line;
    kl_str vars[KLI_NEST_VARS];
    kli_stride steps[KLI_NEST_VARS]; /* how far a turn moves each */
    int n_vars;
    kl_str bound;          /* what the condition compares with, as it is called at the launch */
    double turns, step;    /* NaN: not known */
    bool waits, fixed;     /* while: data decides; the number of turns is known when compiling */
    bool doubles, vector;  /* the step multiplies; something of a vector type is in it */
    int inner, inner_open; /* loops in it; those whose turns are not fixed */
    int products, exps, barriers, atomics, shuffles, branches;
    int fetches,
        matrices; /* instructions of a copy engine or of asynchronous copies; of a matrix unit */
    kli_operand operands[KLI_NEST_OPERANDS];
    int n_operands;
    kli_sum sums[KLI_NEST_SUMS];
    int n_sums;
    double loads, work; /* of one turn: reads from memory, products that are summed */
} kli_nest;

/* What is kept of a memory that the kernel itself fills. */
typedef struct {
    kli_root root;
    int line;
    int copied, computed, counted, cleared; /* writes by what they write */
    kl_str source;                          /* the input that is copied */
    int reads;
    bool updated;           /* written from its own values */
    bool vector, converted; /* some reads are of vectors; copies change the type */
} kli_memory;

typedef struct {
    kl_arena *arena;
    kli_reader *r;
    const kl_task *task;         /* may be NULL */
    const kl_workload *workload; /* may be NULL */
    kli_locals *locals;          /* by function */
    kli_symbols constants;       /* NAME = value of enum and constexpr, by token of the value */
    kli_nest *nests;
    int n_nests;
    kli_memory *memories;
    int n_memories;
    int frames, accesses;
    int *steps;   /* looks at tokens so far */
    bool swizzle; /* an exclusive or within an address */
    bool stores;  /* assembler writes memory of a block */
    bool wide;    /* an input is read in vectors of more than two */
} kli_nests;

/* Text is a stranger's, and names can lead to names without end: past so many looks at a token
 * nothing more is known.  The largest expert takes a hundredth. */
#define KLI_NESTS_STEPS 20000000
static inline bool kli_nests_tired(const kli_nests *n, int looks) {
    KL_ASSERT(looks >= 0);
    if (*n->steps < KLI_NESTS_STEPS) *n->steps += looks + 1;
    return *n->steps >= KLI_NESTS_STEPS;
}

/* The loops of what a source launches. */
void kli_nests_read(kli_nests *out, kl_arena *a, kli_reader *r, const kl_task *t,
                    const kl_workload *w);

/* names.c */
void kli_names_read(kli_nests *n);
const kli_local *kli_local_of(const kli_nests *n, const kli_frame *f, kl_str name, int before);
kli_root kli_root_of(const kli_nests *n, const kli_frame *f, kli_range expr);
/* A number that does not depend on data; `fixed` when it is known when compiling. */
typedef struct {
    bool known, fixed;
    double value;
    kl_str axis; /* the launch's name, where it is one */
} kli_amount;
kli_amount kli_amount_of(const kli_nests *n, const kli_frame *f, kli_range expr);
int kli_function_at(const kli_nests *n, int token); /* that is called there; -1: none */
/* Parts of `expr` between commas. */
int kli_split_arguments(const kli_nests *n, kli_range *out, int most, kli_range expr);
/* ( type ) before an operand: the token behind it; else `i`. */
int kli_skip_cast(const kli_nests *n, const kli_frame *f, int i, int end);

/* stride.c */
kli_stride kli_stride_of(const kli_nests *n, const kli_nest *l, const kli_frame *f, kli_range expr);
bool kli_declared_inside(const kli_nests *n, const kli_nest *l, const kli_frame *f, kl_str name,
                         int before);

#endif
