/* buf.c - text under construction: one heap block that doubles.
 * SPDX-License-Identifier: Apache-2.0 */
#include <klineage/base.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` bytes and the final NUL. */
static void buf_reserve(kl_buf *b, size_t more) {
    if (more >= SIZE_MAX / 2 - b->len) kl_oom(more);
    size_t need = b->len + more + 1;
    if (need <= b->cap) return;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need) cap *= 2;
    char *ptr = realloc(b->ptr, cap);
    if (!ptr) kl_oom(cap);
    b->ptr = ptr;
    b->cap = cap;
}

void kl_buf_add(kl_buf *b, kl_str s) {
    buf_reserve(b, s.len);
    if (s.len) memcpy(b->ptr + b->len, s.ptr, s.len);
    b->len += s.len;
    KL_ASSERT(b->len < b->cap);
    b->ptr[b->len] = '\0';
}

void kl_buf_printf(kl_buf *b, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    KL_ASSERT(len >= 0);
    buf_reserve(b, (size_t)len);
    va_start(args, fmt);
    vsnprintf(b->ptr + b->len, (size_t)len + 1, fmt, args);
    va_end(args);
    b->len += (size_t)len;
}

kl_str kl_buf_str(const kl_buf *b) { return (kl_str){b->ptr, b->len}; }

void kl_buf_fini(kl_buf *b) {
    free(b->ptr);
    *b = (kl_buf){0};
}

kl_str kl_buf_take(kl_buf *b, kl_arena *a) {
    const kl_str text = kl_arena_copy(a, kl_buf_str(b));
    kl_buf_fini(b);
    return text;
}
