/* words.c - lists of names as text separated by spaces: what frontmatter, headers and traits all
 * use. SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"
#include <ctype.h>
#include <string.h>

kl_str kli_word(kl_str *rest) {
    kl_str s = *rest;
    while (s.len && isspace((unsigned char)*s.ptr)) s.ptr++, s.len--;
    size_t n = 0;
    while (n < s.len && !isspace((unsigned char)s.ptr[n])) n++;
    *rest = (kl_str){s.ptr + n, s.len - n};
    return (kl_str){s.ptr, n};
}

bool kli_words_have(kl_str words, kl_str word) {
    for (kl_str w; (w = kli_word(&words)).len;)
        if (kl_str_eq(w, word)) return true;
    return false;
}

kl_str kli_words_with(kl_arena *a, kl_str words, kl_str word) {
    if (!word.len || kli_words_have(words, word)) return words;
    if (!words.len) return kl_arena_copy(a, word);
    return kl_arena_printf(a, "%.*s %.*s", KL_STR_ARG(words), KL_STR_ARG(word));
}

kl_str kli_words_of(kl_arena *a, const kl_str *list, int n) {
    kl_buf b = {0};
    for (int i = 0; i < n; i++) kl_buf_printf(&b, "%s%.*s", i ? " " : "", KL_STR_ARG(list[i]));
    kl_str text = kl_arena_copy(a, kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

int kli_words_split(kl_str **list, kl_arena *a, kl_str words) {
    int n = 0;
    kl_str rest = words;
    while (kli_word(&rest).len) n++;
    *list = KL_ARRAY(a, kl_str, n ? n : 1);
    for (int i = 0; i < n; i++) (*list)[i] = kl_arena_copy(a, kli_word(&words));
    return n;
}

bool kli_array_has(const kl_str *list, int n, kl_str word) {
    for (int i = 0; i < n; i++)
        if (kl_str_eq(list[i], word)) return true;
    return false;
}

void kli_array_add(kl_str **list, int *n, kl_arena *a, kl_str word) {
    if (!word.len || kli_array_has(*list, *n, word)) return;
    kl_str *longer = KL_ARRAY(a, kl_str, *n + 1);
    if (*n) memcpy(longer, *list, (size_t)*n * sizeof *longer);
    longer[(*n)++] = kl_arena_copy(a, word);
    *list = longer;
}
