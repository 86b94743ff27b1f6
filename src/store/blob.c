/* blob.c - the table of texts by content; nothing else writes it.
 *
 * A conversation that only grows, and a kernel that many steps name, are each kept once.  Text is bytes here: a reply of
 * a model may hold anything, so it is bound as a BLOB and read back byte for byte.
 * Not here: who refers to a text.  Nothing is ever removed.  SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include "base/hash.h"
#include <klineage/limits.h>
#include <string.h>

kl_err kl_store_blob_put(char hash[65], kl_store *s, kl_str text, kl_error *e) {
    if (text.len > KL_MAX_JSON_BYTES)
        return kl_fail(e, KL_ELIMIT, s->path, "a text of %zu bytes; the limit is %u", text.len, KL_MAX_JSON_BYTES);
    sqlite3_stmt *put;
    kl_err err = kli_store_statement(&put, s, KLI_BLOB_PUT, e);
    if (err) return err;
    memcpy(hash, kl_hash_of(text).hex, 65);
    kli_store_bind(put, 1, kl_str_of(hash));
    KL_ASSERT(sqlite3_bind_blob64(put, 2, text.len ? text.ptr : "", text.len, SQLITE_STATIC) == SQLITE_OK);
    return kli_store_do(s, put, "keep a text", e);
}

kl_err kl_store_blob_get(kl_str *text, kl_store *s, kl_arena *a, kl_str hash, kl_error *e) {
    sqlite3_stmt *get;
    kl_err err = kli_store_statement(&get, s, KLI_BLOB_GET, e);
    if (err) return err;
    kli_store_bind(get, 1, hash);
    switch (sqlite3_step(get)) {
    case SQLITE_ROW: {
        const void *bytes = sqlite3_column_blob(get, 0);
        *text = kl_arena_copy(a, (kl_str){bytes, (size_t)sqlite3_column_bytes(get, 0)});
        break;
    }
    case SQLITE_DONE:
        err = kl_fail(e, KL_ENOENT, s->path, "no text with the hash %.*s", KL_STR_ARG(hash));
        break;
    default:
        err = kli_store_fail(s, "read a text", e);
    }
    kli_store_release(get);
    return err;
}
