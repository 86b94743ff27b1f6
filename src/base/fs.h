/* fs.h - files, folders and the clock.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_FS_H
#define KL_BASE_FS_H
#include <klineage/base.h>

/* Whole file into the arena, NUL-terminated.  Errors: KL_ENOENT, KL_EIO, KL_ELIMIT when above
 * `max_bytes`. */
KL_MUST_USE kl_err kli_fs_read(kl_str *out, kl_arena *a, const char *path, size_t max_bytes,
                               kl_error *e);
/* Atomically replace `path`: temporary file beside it, fsync, rename.  A full disk leaves the old
 * file. */
KL_MUST_USE kl_err kli_fs_write(const char *path, kl_str data, kl_error *e);
bool kli_fs_write_all(int fd, kl_str data); /* false: errno says why */
KL_MUST_USE kl_err kli_fs_mkdirs(const char *path, kl_error *e);
bool kli_fs_exists(const char *path);
bool kli_fs_is_dir(const char *path);
kl_str kli_fs_join(kl_arena *a, const char *dir, const char *name); /* NUL-terminated */
kl_str kli_fs_dirname(kl_arena *a, const char *path);
kl_str kli_fs_basename(const char *path);
/* Names in a folder, sorted, without . and ..; `*n` 0 when it does not exist. */
KL_MUST_USE kl_err kli_fs_list(kl_str **names, size_t *n, kl_arena *a, const char *dir,
                               kl_error *e);
void kli_fs_remove_tree(const char *path); /* best effort, never follows links */
/* A fresh private folder (0700) under $TMPDIR; the caller removes it.  Those of processes that were
 * killed are removed on the way. */
KL_MUST_USE kl_err kli_fs_temp_dir(kl_str *out, kl_arena *a, kl_error *e);
kl_str kli_fs_self_dir(kl_arena *a); /* folder of the running program; for a shared library, bin/ of
                                        its installation */
/* A program or script of klineage: there, in share/klineage or on PATH.  Where it should be when it
 * is nowhere. */
kl_str kli_fs_find_part(kl_arena *a, const char *name);
/* $KLINEAGE_CACHE, else $XDG_CACHE_HOME/klineage, else ~/.cache/klineage */
kl_str kl_fs_cache_dir(kl_arena *a);
kl_str kli_fs_find_program(kl_arena *a, const char *name); /* on PATH; empty when absent */

int64_t kli_now_ns(void);        /* CLOCK_MONOTONIC */
kl_str kli_utc_now(kl_arena *a); /* 2026-01-31T12:00:00Z */
#endif
