/* image.h - a kernel's shared object as our loader sees it (image.c reads, cpu_load.c maps).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_IMAGE_H
#define KL_BACKEND_IMAGE_H
#include <klineage/base.h>

#define KLI_MAX_SEGMENTS 8
#define KLI_IMAGE_PAGE 4096u

/* [address, address + bytes) of the image; the first `file_bytes` come from the file, the rest is
 * zero. */
typedef struct {
    uint64_t address, bytes, offset, file_bytes;
    bool write, execute;
} kli_segment;

typedef struct {
    const char *name; /* NUL-terminated, inside the file */
    uint64_t value;
    bool defined, weak, thread_local;
} kli_image_symbol;

typedef enum {
    KLI_RELOCATE_BASE,     /* base + addend */
    KLI_RELOCATE_SYMBOL,   /* symbol + addend */
    KLI_RELOCATE_MODULE,   /* which thread-local block: there is one */
    KLI_RELOCATE_IN_MODULE /* where in that block: symbol + addend */
} kli_relocation_kind;

typedef struct {
    uint64_t at;
    int64_t addend;
    uint32_t symbol;
    kli_relocation_kind kind;
} kli_relocation;

typedef struct {
    kli_segment segments[KLI_MAX_SEGMENTS];
    int n_segments;
    uint64_t span, align;      /* address space from 0; what its beginning must be a multiple of */
    kli_image_symbol *symbols; /* by their index in the file; [0] is no symbol */
    uint32_t n_symbols;
    kli_relocation *relocations;
    uint32_t n_relocations;
    uint64_t tls_offset, tls_file_bytes, tls_bytes,
        tls_align; /* thread-local block; tls_bytes 0: none */
} kli_image;

/* Errors: KL_EPARSE; the message is what "it has" too much ("two dynamic tables").  Points into
 * `bytes`, which stay the caller's. */
KL_MUST_USE kl_err kli_image_read(kli_image *out, kl_arena *a, kl_str bytes, kl_error *e);

#endif
