/* kit.c - see kit.h.  SPDX-License-Identifier: Apache-2.0 */
#include "kit.h"

#include "base/fs.h"

kl_arena *arena;
kl_error e;
static const char *folder;

int kit_set_up(void **state) {
    (void)state;
    arena = kl_arena_new();
    e = (kl_error){0};
    folder = NULL;
    return 0;
}

int kit_tear_down(void **state) {
    (void)state;
    if (folder) kli_fs_remove_tree(folder);
    kl_arena_free(arena);
    arena = NULL;
    return 0;
}

const char *kit_folder(void) {
    kl_str path;
    if (folder) return folder;
    assert_ok(kli_fs_temp_dir(&path, arena, &e));
    return folder = path.ptr;
}

const char *kit_path(const char *name) { return kli_fs_join(arena, kit_folder(), name).ptr; }

const char *kit_write(const char *name, const char *text) {
    const char *path = kit_path(name);
    assert_ok(kli_fs_write(path, kl_str_of(text), &e));
    return path;
}

const char *kit_read(const char *path) {
    kl_str text;
    assert_ok(kli_fs_read(&text, arena, path, 1 << 24, &e));
    return text.len ? text.ptr : "";
}
