/* fatbin.c - see fatbin.h.
 *
 *   file   = 0xBA55ED50 version:16 head:16 bytes:64    then entries, `bytes` of them in all
 *   entry  = kind:16 _:16 head:32 padded:64 packed:32 _:32 minor:16 major:16 arch:32 name:32 _:32
 *            flags:64 _:64 bytes:64                    then `padded` bytes of code
 *
 * The format is not documented; this is how nvcc 12 and 13 write it.  What is read was written by
 * somebody else's program: every length is held against the file.  SPDX-License-Identifier:
 * Apache-2.0 */
#include "capture/fatbin.h"
#include "backend/cuda_cubin.h"
#include <string.h>
#include <zstd.h>
#ifdef KL_HAS_LZ4
#include <lz4.h>
#endif

enum { FATBIN_MAGIC = 0xBA55ED50, FATBIN_HEAD = 16, ENTRY_HEAD = 64, KIND_CUBIN = 2 };
enum { BY_LZ4 = 0x2000, BY_ZSTD = 0x8000 };
#define MOST_CODE_BYTES ((uint64_t)256 << 20) /* of one cubin, unpacked; as a runner loads */

typedef struct {
    uint32_t kind, arch;
    uint64_t flags, bytes; /* unpacked */
    kl_str packed;
} fatbin_entry;

static uint64_t word_at(const char *at, size_t bytes) {
    uint64_t word = 0; /* little-endian, as the file */
    memcpy(&word, at, bytes);
    return word;
}

/* The entry at the beginning of `rest`, which then begins behind it; false: cut short. */
static bool take_entry(fatbin_entry *out, kl_str *rest) {
    if (rest->len < ENTRY_HEAD) return false;
    const uint64_t head = word_at(rest->ptr + 4, 4), padded = word_at(rest->ptr + 8, 8),
                   packed = word_at(rest->ptr + 16, 4);
    if (head < ENTRY_HEAD || head > rest->len || padded > rest->len - head || packed > padded)
        return false;
    *out = (fatbin_entry){.kind = (uint32_t)word_at(rest->ptr, 2),
                          .arch = (uint32_t)word_at(rest->ptr + 28, 4),
                          .flags = word_at(rest->ptr + 40, 8),
                          .bytes = word_at(rest->ptr + 56, 8),
                          .packed = {rest->ptr + head, packed ? packed : padded}};
    rest->ptr += head + padded;
    rest->len -= head + padded;
    return true;
}

static bool unpack_lz4(char *to, const fatbin_entry *x) {
#ifdef KL_HAS_LZ4
    return LZ4_decompress_safe(x->packed.ptr, to, (int)x->packed.len, (int)x->bytes) ==
           (int)x->bytes;
#else
    return (void)to, (void)x, false;
#endif
}

static kl_err unpack(kl_str *out, kl_arena *a, const fatbin_entry *x, kl_error *e) {
    *out = x->packed;
    if (!(x->flags & (BY_LZ4 | BY_ZSTD))) return KL_OK;
    if (x->bytes > MOST_CODE_BYTES || x->packed.len > MOST_CODE_BYTES)
        return kl_fail(e, KL_EPARSE, "fatbin", "code of %llu bytes", (unsigned long long)x->bytes);
    char *to = kl_arena_alloc(a, x->bytes + 1, 1);
    const bool is_zstd = (x->flags & BY_ZSTD) != 0;
    if (is_zstd ? ZSTD_decompress(to, x->bytes, x->packed.ptr, x->packed.len) == x->bytes
                : unpack_lz4(to, x)) {
        *out = (kl_str){to, x->bytes};
        return KL_OK;
    }
#ifndef KL_HAS_LZ4
    if (!is_zstd) {
        kl_fail(e, KL_ENODEV, "fatbin",
                "its code is compressed by LZ4, which this build cannot read");
        return kl_hint(e, "install liblz4-dev and build klineage again");
    }
#endif
    return kl_fail(e, KL_EPARSE, "fatbin", "its compressed code does not unpack");
}

static bool has_code_of(kl_str cubin, const char *name) {
    kli_cubin_walk walk;
    kli_cubin_symbol s;
    kli_cubin_begin(&walk, cubin.ptr, cubin.len);
    while (kli_cubin_next(&walk, &s))
        if (s.kind == KLI_CUBIN_KERNEL && strcmp(s.name, name) == 0) return true;
    return false;
}

/* A device runs code of its own generation that is not newer than itself. */
static bool runs(const fatbin_entry *x, int arch) {
    return x->kind == KIND_CUBIN && x->arch / 10 == (uint32_t)arch / 10 &&
           x->arch <= (uint32_t)arch;
}

static kl_err newest(kl_str *out, kl_arena *a, kl_str rest, int arch, const char *name,
                     kl_error *e) {
    fatbin_entry x;
    uint32_t best = 0;
    kl_err err = KL_ENOENT;
    kl_fail(e, KL_ENOENT, "fatbin", "it holds no code of this kernel for sm_%d", arch);
    while (rest.len) {
        kl_str code;
        if (!take_entry(&x, &rest)) return kl_fail(e, KL_EPARSE, "fatbin", "it is cut short");
        if (!runs(&x, arch) || x.arch < best) continue;
        const kl_err own = unpack(&code, a, &x, e);
        if (own) {
            err = err ? own : err;
        } else if (has_code_of(code, name)) {
            *out = code, best = x.arch, err = KL_OK;
        }
    }
    return err;
}

kl_err kli_fatbin_cubin(kl_str *out, kl_arena *a, kl_str image, int arch, const char *name,
                        kl_error *e) {
    if (kli_cubin_valid(image.ptr, image.len)) {
        *out = image;
        return has_code_of(image, name) ? KL_OK
                                        : kl_fail(e, KL_ENOENT, "cubin", "it has no such kernel");
    }
    if (image.len < FATBIN_HEAD || word_at(image.ptr, 4) != FATBIN_MAGIC)
        return kl_fail(e, KL_ENOENT, "image", "it is text for the driver's compiler, not code");
    const uint64_t head = word_at(image.ptr + 6, 2), bytes = word_at(image.ptr + 8, 8);
    if (head < FATBIN_HEAD || head > image.len || bytes > image.len - head)
        return kl_fail(e, KL_EPARSE, "fatbin", "it is cut short");
    return newest(out, a, (kl_str){image.ptr + head, bytes}, arch, name, e);
}
