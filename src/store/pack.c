/* pack.c - verdicts in fewer bytes: a zstd frame each, over one dictionary of what they share.
 *
 * A verdict alone is too short for a compressor to learn from; most of it (keys, units, method,
 * platform) is in every other one too.  A frame of its own per row keeps a look-up at one row read
 * and some microseconds.
 *
 * The dictionary is src/store/verdict.zdict, trained by tools/train-dictionary from verdicts that
 * gates wrote.  Its number is in every frame, so a second one is added beside it, and the first
 * stays for what it packed.
 * Not here: what is packed (verdict.c).  SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include <klineage/limits.h>
#include <stdlib.h>
#include <zstd.h>

#define LEVEL 16 /* a verdict is packed once, after seconds of gate */

extern const unsigned char kl_store_dictionary[]; /* verdict.zdict */
extern const size_t kl_store_dictionary_bytes;

struct kli_packer {
    ZSTD_CCtx *packs;
    ZSTD_DCtx *unpacks;
    ZSTD_CDict *to;
    ZSTD_DDict *from;
};

void kli_packer_free(kli_packer *p) {
    if (!p) return;
    ZSTD_freeCCtx(p->packs);
    ZSTD_freeDCtx(p->unpacks);
    ZSTD_freeCDict(p->to);
    ZSTD_freeDDict(p->from);
    free(p);
}

static kli_packer *packer_of(kl_store *s) {
    if (!s->packer && !(s->packer = calloc(1, sizeof *s->packer))) kl_oom(sizeof *s->packer);
    return s->packer;
}

static void *or_oom(void *made) {
    if (!made) kl_oom(kl_store_dictionary_bytes);
    return made;
}

/* Digesting the dictionary takes longer than packing a row, so each side of it is made when it is
 * first needed. */
static kli_packer *to_pack(kl_store *s) {
    kli_packer *p = packer_of(s);
    if (p->packs) return p;
    p->packs = or_oom(ZSTD_createCCtx());
    p->to = or_oom(ZSTD_createCDict(kl_store_dictionary, kl_store_dictionary_bytes, LEVEL));
    KL_ASSERT(!ZSTD_isError(ZSTD_CCtx_refCDict(p->packs, p->to)));
    KL_ASSERT(!ZSTD_isError(
        ZSTD_CCtx_setParameter(p->packs, ZSTD_c_checksumFlag, 1))); /* SQLite's pages have none */
    return p;
}

static kli_packer *to_unpack(kl_store *s) {
    kli_packer *p = packer_of(s);
    if (p->unpacks) return p;
    p->unpacks = or_oom(ZSTD_createDCtx());
    p->from = or_oom(ZSTD_createDDict(kl_store_dictionary, kl_store_dictionary_bytes));
    return p;
}

kl_str kli_pack(kl_store *s, kl_arena *a, kl_str text) {
    const size_t room = ZSTD_compressBound(text.len);
    char *frame = KL_ARRAY(a, char, room);
    const size_t bytes = ZSTD_compress2(to_pack(s)->packs, frame, room, text.ptr, text.len);
    KL_ASSERT(!ZSTD_isError(bytes)); /* there is room, and nothing else can fail */
    return (kl_str){frame, bytes};
}

static kl_err pack_damaged(const kl_store *s, const char *why, kl_error *e) {
    return kl_fail(e, KL_EIO, s->where, "a packed verdict cannot be read: %s", why);
}

kl_err kli_unpack(kl_str *text, kl_store *s, kl_arena *a, kl_str frame, kl_error *e) {
    const unsigned long long bytes = ZSTD_getFrameContentSize(frame.ptr, frame.len);
    if (bytes > KL_MAX_JSON_BYTES)
        return pack_damaged(s, "it is no frame of known size", e); /* errors are huge numbers */
    const unsigned wanted = ZSTD_getDictID_fromFrame(frame.ptr, frame.len);
    const kli_packer *p = to_unpack(s);
    if (wanted != ZSTD_getDictID_fromDDict(p->from)) {
        kl_fail(e, KL_EIO, s->where,
                "a verdict was packed with dictionary %u, which this program does not have",
                wanted);
        return kl_hint(e, "upgrade klineage, or name another file: --store PATH");
    }
    char *room = KL_ARRAY(a, char, bytes + 1);
    const size_t got =
        ZSTD_decompress_usingDDict(p->unpacks, room, bytes, frame.ptr, frame.len, p->from);
    if (ZSTD_isError(got)) return pack_damaged(s, ZSTD_getErrorName(got), e);
    KL_ASSERT(got <= bytes);
    *text = (kl_str){room, got};
    return KL_OK;
}
