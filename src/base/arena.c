/* arena.c - memory with one lifetime.
 *
 * A list of chunks that double from 16 KiB to 1 MiB; an allocation that is large for its chunk gets
 * one of its own, so that the rest of the current chunk stays usable.  Chunks come from calloc:
 * fresh pages are zero for free. Not here: freeing one thing, resizing, threads (an arena belongs
 * to one). SPDX-License-Identifier: Apache-2.0 */
#include <klineage/base.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CHUNK ((size_t)16 << 10)
#define LARGEST_CHUNK ((size_t)1 << 20)
#define ARENA_ALIGNMENT ((size_t)16)

typedef struct chunk chunk;
struct chunk {
    chunk *next;
    size_t unused; /* keeps the memory behind the head aligned */
};
_Static_assert(sizeof(chunk) % 16 == 0, "the memory behind a chunk's head is aligned");

struct kl_arena {
    chunk *chunks;
    char *cursor;
    size_t left, next_size;
};

static void *zeroed(size_t bytes) {
    void *memory = calloc(1, bytes);
    if (!memory) kl_oom(bytes);
    return memory;
}

kl_arena *kl_arena_new(void) {
    kl_arena *a = zeroed(sizeof *a);
    a->next_size = FIRST_CHUNK;
    return a;
}

void kl_arena_free(kl_arena *a) {
    if (!a) return;
    for (chunk *c = a->chunks; c;) {
        chunk *next = c->next;
        free(c);
        c = next;
    }
    free(a);
}

static char *add_chunk(kl_arena *a, size_t bytes) {
    if (bytes > SIZE_MAX - sizeof(chunk)) kl_oom(bytes);
    chunk *c = zeroed(sizeof *c + bytes);
    c->next = a->chunks;
    a->chunks = c;
    return (char *)(c + 1);
}

void *kl_arena_alloc(kl_arena *a, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) kl_oom(SIZE_MAX);
    bytes = bytes ? (bytes + ARENA_ALIGNMENT - 1) & ~(ARENA_ALIGNMENT - 1) : ARENA_ALIGNMENT;
    if (bytes > a->left) {
        if (bytes > a->next_size / 4) return add_chunk(a, bytes);
        a->cursor = add_chunk(a, a->next_size);
        a->left = a->next_size;
        if (a->next_size < LARGEST_CHUNK) a->next_size *= 2;
    }
    void *memory = a->cursor;
    KL_ASSERT((uintptr_t)memory % ARENA_ALIGNMENT == 0 && bytes <= a->left);
    a->cursor += bytes;
    a->left -= bytes;
    return memory;
}

kl_str kl_arena_copy(kl_arena *a, kl_str s) {
    KL_ASSERT(s.len < SIZE_MAX && (s.ptr || s.len == 0));
    char *text = kl_arena_alloc(a, s.len + 1, 1);
    if (s.len) memcpy(text, s.ptr, s.len);
    return (kl_str){text, s.len};
}

kl_str kl_arena_printf(kl_arena *a, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    KL_ASSERT(len >= 0);
    char *text = kl_arena_alloc(a, (size_t)len + 1, 1);
    va_start(args, fmt);
    vsnprintf(text, (size_t)len + 1, fmt, args);
    va_end(args);
    return (kl_str){text, (size_t)len};
}

/* Room is 16 elements, then twice as many whenever it is full: at 16, 32, 64 ... */
void *kl_arena_grow(kl_arena *a, void *array, size_t n, size_t size) {
    KL_ASSERT(array || n == 0);
    bool full = n == 0 || (n >= 16 && (n & (n - 1)) == 0);
    if (!full) return array;
    void *grown = kl_arena_alloc(a, n ? 2 * n : 16, size);
    if (n) memcpy(grown, array, n * size);
    return grown;
}
