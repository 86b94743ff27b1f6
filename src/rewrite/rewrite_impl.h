/* rewrite_impl.h - what the files of src/rewrite share; nobody outside this folder includes it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWRITE_IMPL_H
#define KL_REWRITE_IMPL_H

#include "rewrite/rewrite.h"
#include "base/parts.h"

/* ---- tokens.c: a source without its comments --------------------------------------------- */

typedef enum {
    KLI_TOKEN_NAME,
    KLI_TOKEN_NUMBER,
    KLI_TOKEN_STRING,
    KLI_TOKEN_PUNCT,
    KLI_TOKEN_LINE
} kli_token_kind;

/* A preprocessor line is one KLI_TOKEN_LINE. */
typedef struct {
    kli_token_kind kind;
    kl_str text;   /* a part of the source, quotes and '#' included */
    size_t offset; /* in the source */
} kli_token;

typedef struct {
    kli_token *at;
    int n;
} kli_tokens;

/* C, C++, OpenCL C and CUDA.  What stands inside `#if 0` is left out.  Never fails: what is no
 * token of the language is a PUNCT of one byte. */
void kli_tokens_of(kli_tokens *out, kl_arena *a, kl_str source);
void kli_tokens_add(kli_tokens *t, kl_arena *a, const kli_token *token);
bool kli_token_is(const kli_token *t, const char *words); /* one of them */
/* The same for the token at `i`; false where there is none. */
bool kli_is(const kli_tokens *t, int i, const char *words);
bool kli_is_kind(const kli_tokens *t, int i, kli_token_kind kind);
size_t kli_token_end(const kli_tokens *t, int i); /* offset behind it */
/* Is one of the tokens [begin, end) this text? */
bool kli_mentions(const kli_tokens *t, int begin, int end, kl_str text);

/* ---- source.c: what a source does -------------------------------------------------------- */

typedef enum {
#define TRAIT(id, name, role) KLI_TRAIT_##id,
#include "traits.def"
    KLI_TRAIT_COUNT
} kli_trait;

typedef struct {
    double count[KLI_TRAIT_COUNT];
    /* What no optimization needs: read by check.c, shown to nobody. */
    double volatiles, asms, waits, empty_loops, idle_loops, slow_flags;
} kli_source;

/* Directives, and the text in its own language (python.c for Python). */
void kli_source_read(kli_source *out, const kl_kernel *k);

typedef enum {
    KLI_NUMBER,     /* no witness: size and shape alone */
    KLI_DECORATION, /* a witness that goes with the code that it decorates */
    KLI_WITNESS,    /* belongs to an action: must not vanish unnamed */
    KLI_COUNTED     /* the same, and not even one of several may go unnamed */
} kli_trait_role;
const char *kli_trait_name(kli_trait t);
kli_trait_role kli_trait_role_of(kli_trait t);

/* ---- small things ------------------------------------------------------------------------ */

bool kli_is_blank(char c); /* no line end */
size_t kli_line_begin(kl_str source, size_t at);
kl_str kli_line_at(kl_str source, size_t at);            /* the whole line, without its end */
kl_str kli_locus(kl_arena *a, kl_str source, size_t at); /* "line 3: what stands there" */

/* A line `//! WORD words`, by its offsets in the source. */
typedef struct {
    size_t line, words, end;
} kli_directive;

/* The next one behind *d, at first {0}; a line that is continued is left out. */
bool kli_next_directive(kli_directive *d, kl_str source, const kl_surface *surface,
                        const char *word);

#endif
