/* parts.c - pieces, words and lines of borrowed text.  SPDX-License-Identifier: Apache-2.0 */
#include "base/parts.h"
#include <string.h>

kl_str kli_from(kl_str s, size_t n) {
    KL_ASSERT(n <= s.len);
    return (kl_str){s.ptr + n, s.len - n};
}

kl_str kli_cut(kl_str s, size_t most) { return (kl_str){s.ptr, s.len < most ? s.len : most}; }

kl_str kli_between(const char *begin, const char *end) {
    KL_ASSERT(begin <= end);
    return (kl_str){begin, (size_t)(end - begin)};
}

kl_str kli_before(kl_str s, char c) {
    const char *end = s.len ? memchr(s.ptr, c, s.len) : NULL;
    return end ? kli_between(s.ptr, end) : s;
}

static bool parts_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool kli_next_word(kl_str *word, kl_str *rest) {
    size_t n = 0;
    *rest = kl_str_trim(*rest);
    while (n < rest->len && !parts_is_space(rest->ptr[n])) n++;
    *word = (kl_str){rest->ptr, n};
    *rest = kli_from(*rest, n);
    return n > 0;
}

bool kli_words_have(kl_str words, kl_str word) {
    for (kl_str w; kli_next_word(&w, &words);)
        if (kl_str_eq(w, word)) return true;
    return false;
}

bool kli_one_of(kl_str word, const char *words) {
    for (const char *end; *words; words = *end ? end + 1 : end) {
        end = strchrnul(words, ' ');
        if (kl_str_eq(kli_between(words, end), word)) return true;
    }
    return false;
}

bool kli_next_line(kl_str *line, kl_str *rest) {
    if (!rest->len) return false;
    *line = kli_before(*rest, '\n');
    *rest = kli_from(*rest, line->len + (line->len < rest->len));
    return true;
}

bool kli_contains(kl_str s, const char *part) {
    return s.len && memmem(s.ptr, s.len, part, strlen(part)) != NULL;
}

int kli_parts_in(kl_str s, const char *parts) {
    int n = 0;
    for (const char *end; *parts; parts = *end ? end + 1 : end) {
        end = strchrnul(parts, ' ');
        n += s.len && memmem(s.ptr, s.len, parts, (size_t)(end - parts));
    }
    return n;
}

kl_str kli_buf_keep(kl_buf *b, kl_arena *a) {
    kl_str text = kl_arena_copy(a, kl_buf_str(b));
    kl_buf_fini(b);
    return text;
}
