/* rewrite_impl.h - what the files of src/rewrite share; nobody outside this folder includes it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWRITE_IMPL_H
#define KL_REWRITE_IMPL_H

#include <klineage/rewrite.h>

/* ---- tokens.c: a source without its comments ------------------------------------------------------------------- */

typedef enum { KLI_TOKEN_NAME, KLI_TOKEN_NUMBER, KLI_TOKEN_STRING, KLI_TOKEN_PUNCT, KLI_TOKEN_LINE } kli_token_kind;

/* A preprocessor line is one KLI_TOKEN_LINE.  In Python a `#` line is a comment and every other line ends in a PUNCT "\n". */
typedef struct {
    kli_token_kind kind;
    kl_str text;   /* a part of the source, quotes and '#' included */
    size_t offset; /* in the source */
    int column;    /* of the first character of its line that is no blank: Python's indentation */
} kli_token;

typedef struct {
    kli_token *at;
    int n;
} kli_tokens;

/* What stands inside `#if 0` is left out.  Never fails: what is no token of the language is a PUNCT of one byte. */
void kli_tokens_of(kli_tokens *out, kl_arena *a, kl_str source, const kl_surface *surface);
bool kli_token_is(const kli_token *t, const char *text);

/* ---- source.c: what a source does ------------------------------------------------------------------------------------ */

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

void kli_source_read(kli_source *out, const kl_kernel *k);

typedef enum {
    KLI_NUMBER,     /* no witness: size and shape alone */
    KLI_DECORATION, /* a witness that goes with the code that it decorates */
    KLI_WITNESS,    /* belongs to an action: must not vanish unnamed */
    KLI_COUNTED     /* the same, and not even one of several may go unnamed */
} kli_trait_role;
const char *kli_trait_name(kli_trait t);
kli_trait_role kli_trait_role_of(kli_trait t);

/* ---- small things -------------------------------------------------------------------------------------------------------- */

/* Next of the words of `list`, which are separated by blanks; false at the end. */
bool kli_next_word(kl_str *word, kl_str *list);
bool kli_has_word(const char *list, kl_str word);
/* The next line of `rest` without its line end; false at the end.  `*ended` (may be NULL): it had one. */
bool kli_next_line(kl_str *line, kl_str *rest, bool *ended);

#endif
