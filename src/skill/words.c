/* words.c - lists of names as text separated by spaces: what frontmatter, headers and traits all
 * use. SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"

kl_str kli_words_with(kl_arena *a, kl_str words, kl_str word) {
    if (!word.len || kli_words_have(words, word)) return words;
    if (!words.len) return kl_arena_copy(a, word);
    return kl_arena_printf(a, "%.*s %.*s", KL_STR_ARG(words), KL_STR_ARG(word));
}

kl_str kli_words_of(kl_arena *a, const kl_str *list, int n) {
    kl_buf b = {0};
    for (int i = 0; i < n; i++) kl_buf_printf(&b, "%s%.*s", i ? " " : "", KL_STR_ARG(list[i]));
    return kli_buf_keep(&b, a);
}

int kli_words_split(kl_str **list, kl_arena *a, kl_str words) {
    int n = 0;
    *list = NULL;
    for (kl_str w; kli_next_word(&w, &words);) *KL_PUSH(a, *list, n) = kl_arena_copy(a, w);
    return n;
}

bool kli_array_has(const kl_str *list, int n, kl_str word) {
    for (int i = 0; i < n; i++)
        if (kl_str_eq(list[i], word)) return true;
    return false;
}

void kli_array_add(kl_str **list, int *n, kl_arena *a, kl_str word) {
    if (!word.len || kli_array_has(*list, *n, word)) return;
    *KL_PUSH(a, *list, *n) = kl_arena_copy(a, word);
}
