/* parts.h - pieces, words and lines of borrowed text.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_PARTS_H
#define KL_BASE_PARTS_H
#include <klineage/base.h>

kl_str kli_from(kl_str s, size_t n);   /* without its first `n` bytes */
kl_str kli_cut(kl_str s, size_t most); /* its first bytes, at most so many */
kl_str kli_between(const char *begin, const char *end);
/* Up to the first `c`; all of it where there is none. */
kl_str kli_before(kl_str s, char c);

/* The next of the words of `*rest`, which are separated by white space, and `*rest` behind it;
 * false at the end. */
bool kli_next_word(kl_str *word, kl_str *rest);
bool kli_words_have(kl_str words, kl_str word);
bool kli_one_of(kl_str word, const char *words); /* the same for words that the program knows */
/* The next line of `*rest` without its line end; false at the end. */
bool kli_next_line(kl_str *line, kl_str *rest);
bool kli_contains(kl_str s, const char *part);
int kli_parts_in(kl_str s, const char *parts); /* how many of those separated by blanks */

/* The text of `b` in the arena; `b` is empty again. */
kl_str kli_buf_keep(kl_buf *b, kl_arena *a);
#endif
