/* text.c - borrowed text.  Bytes only: no locale, no encoding.
 * SPDX-License-Identifier: Apache-2.0 */
#include <klineage/base.h>
#include <string.h>

kl_str kl_str_of(const char *c_string) {
    return c_string ? (kl_str){c_string, strlen(c_string)} : (kl_str){0};
}

bool kl_str_eq(kl_str a, kl_str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool kl_str_starts(kl_str s, kl_str prefix) {
    return s.len >= prefix.len && kl_str_eq((kl_str){s.ptr, prefix.len}, prefix);
}

bool kl_str_ends(kl_str s, kl_str suffix) {
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

static bool text_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

kl_str kl_str_trim(kl_str s) {
    while (s.len && text_is_space(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && text_is_space(s.ptr[s.len - 1])) s.len--;
    return s;
}

bool kl_str_cut(kl_str *part, kl_str *rest, char end) {
    if (!rest->len) return false;
    const char *at = memchr(rest->ptr, end, rest->len);
    const size_t n = at ? (size_t)(at - rest->ptr) : rest->len, used = n + (at != NULL);
    *part = (kl_str){rest->ptr, n};
    *rest = (kl_str){rest->ptr + used, rest->len - used};
    return true;
}
