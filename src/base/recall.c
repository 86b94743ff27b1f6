/* recall.c - a file per name: the hash of key and text, a line end, the text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "recall.h"
#include "fs.h"
#include "hash.h"
#include "log.h"
#include <string.h>

enum { HEX = 64, MOST_BYTES = 1 << 20 };

static kl_str recall_path(kl_arena *a, const char *name) {
    return kli_fs_join(a, kli_fs_join(a, kl_fs_cache_dir(a).ptr, "known").ptr, name);
}

static kl_hash seal_of(kl_str key, kl_str text) {
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, key);
    kli_hasher_add(&h, text);
    return kli_hasher_end(&h);
}

bool kli_recall(kl_str *out, kl_arena *a, const char *name, kl_str key) {
    kl_str file;
    if (kli_fs_read(&file, a, recall_path(a, name).ptr, MOST_BYTES, kl_ignored()) != KL_OK ||
        file.len <= HEX || file.ptr[HEX] != '\n')
        return false;
    *out = (kl_str){file.ptr + HEX + 1, file.len - HEX - 1};
    return memcmp(file.ptr, seal_of(key, *out).hex, HEX) == 0;
}

void kli_remember(const char *name, kl_str key, kl_str text) {
    kl_arena *a = kl_arena_new();
    const kl_str path = recall_path(a, name);
    const kl_str file = kl_arena_printf(a, "%s\n%.*s", seal_of(key, text).hex, KL_STR_ARG(text));
    kl_err err = kli_fs_mkdirs(kli_fs_dirname(a, path.ptr).ptr, kl_ignored());
    if (!err) err = kli_fs_write(path.ptr, file, kl_ignored());
    if (err) kli_debug("%s cannot be kept", path.ptr);
    kl_arena_free(a);
}
