/* folder.c - a folder that is there as a whole or not at all: written beside its place, then moved.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include "base/fs.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Only a folder is ever replaced, with --force or because it is empty. */
static kl_err check_place(kl_arena *a, const char *dir, bool force, kl_error *e) {
    kl_str *names;
    size_t n = 1;
    struct stat info;
    if (lstat(dir, &info)) return KL_OK; /* what else is wrong with it, writing says */
    if (!S_ISDIR(info.st_mode)) {
        kl_fail(e, KL_EINVAL, dir, "this is %s, not a folder",
                S_ISLNK(info.st_mode) ? "a symbolic link" : "a file");
        return kl_hint(e, "name a folder with --out");
    }
    if (force || (!kli_fs_list(&names, &n, a, dir, kl_ignored()) && n == 0)) return KL_OK;
    kl_fail(e, KL_EINVAL, dir, "this exists and is not empty");
    return kl_hint(e, "name another folder with --out, or replace this one with --force");
}

static kl_err write_files(const kli_export_files *files, kl_arena *a, const char *dir,
                          kl_error *e) {
    kl_err err = kli_fs_mkdirs(dir, e);
    for (int i = 0; !err && i < files->n; i++) {
        const kl_str path = kli_fs_join(a, dir, files->at[i].path.ptr);
        err = kli_fs_mkdirs(kli_fs_dirname(a, path.ptr).ptr, e);
        if (!err) err = kli_fs_write(path.ptr, files->at[i].text, e);
    }
    return err;
}

/* What was there goes aside first, and comes back when the new folder cannot take its place. */
static kl_err move_in(const char *fresh, const char *old, const char *dir, kl_error *e) {
    const bool replaces = kli_fs_exists(dir);
    if (replaces && rename(dir, old) != 0)
        return kl_fail(e, KL_EIO, dir, "cannot be replaced: %s", strerror(errno));
    if (rename(fresh, dir) == 0) return KL_OK;
    const int why = errno;
    if (replaces) (void)!rename(old, dir);
    return kl_fail(e, KL_EIO, dir, "cannot be put here: %s", strerror(why));
}

kl_err kli_export_write(const kli_export_files *files, kl_arena *a, const char *dir, bool force,
                        kl_error *e) {
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/') n--;
    const char *place = kl_arena_printf(a, "%.*s", (int)n, dir).ptr,
               *fresh = kl_arena_printf(a, "%s.export-%d", place, (int)getpid()).ptr,
               *old = kl_arena_printf(a, "%s.old-%d", place, (int)getpid()).ptr;
    kl_err err = check_place(a, place, force, e);
    if (err) return err;
    err = write_files(files, a, fresh, e);
    if (!err) err = move_in(fresh, old, place, e);
    kli_fs_remove_tree(fresh);
    kli_fs_remove_tree(old);
    return err;
}
