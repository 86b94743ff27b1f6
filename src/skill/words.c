/* words.c - lists of names as text separated by spaces: what frontmatter, headers and traits all
 * use. SPDX-License-Identifier: Apache-2.0 */
#include "skill_impl.h"

kl_str kli_words_with(kl_arena *a, kl_str words, kl_str word) {
    if (!word.len || kli_words_have(words, word)) return words;
    if (!words.len) return kl_arena_copy(a, word);
    return kl_arena_printf(a, "%.*s %.*s", KL_STR_ARG(words), KL_STR_ARG(word));
}

kl_names kli_names_of(kl_arena *a, kl_str words) {
    kl_names names = {0};
    for (kl_str w; kli_next_word(&w, &words);) *KL_PUSH(a, names.at, names.n) = kl_arena_copy(a, w);
    return names;
}

kl_str kli_names_text(kl_arena *a, const kl_names *names) {
    kl_buf b = {0};
    for (int i = 0; i < names->n; i++)
        kl_buf_printf(&b, "%s%.*s", i ? " " : "", KL_STR_ARG(names->at[i]));
    return kli_buf_keep(&b, a);
}

bool kli_names_have(const kl_names *names, kl_str name) {
    KL_ASSERT(names->n == 0 || names->at);
    for (int i = 0; i < names->n; i++)
        if (kl_str_eq(names->at[i], name)) return true;
    return false;
}

void kli_names_add(kl_names *names, kl_arena *a, kl_str name) {
    if (name.len && !kli_names_have(names, name))
        *KL_PUSH(a, names->at, names->n) = kl_arena_copy(a, name);
}
