/* fs.c - files and folders.
 *
 * Writing is replace-by-rename: a reader sees the old file or the new one, and a full disk or a
 * crash leaves the old. A temporary folder is locked as long as its process lives, so that one
 * whose process was killed is told apart and removed. Not here: watching, permissions beyond
 * "private" and "as the umask says". SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/rng.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_TREE_DEPTH 200 /* of a folder that is removed: each level holds a descriptor open */
#define MAX_TEMP                                                                                   \
    256 /* temporary folders of one process at a time; beyond it a lock lasts until the process    \
           ends */
#define TEMP_PREFIX "klineage-"
#define STALE_SECONDS                                                                              \
    60 /* a folder is locked right after it was made; before that nobody may take it for an orphan \
        */
#define SANDBOX_USER 65534 /* a privileged gate gives folders to this user */

static kl_err os_fail(kl_error *e, const char *path, const char *what) {
    int why = errno;
    kl_err code = why == ENOENT || why == ENOTDIR ? KL_ENOENT : KL_EIO;
    kl_fail(e, code, path, "cannot %s: %s", what, strerror(why));
    if (why == ENOSPC || why == EDQUOT)
        kl_hint(e, "free some space on that disk, then run the same command again");
    return code;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Until the end, or until more than `max_bytes` came: the size that fstat says is 0 for /proc, and
 * may grow. */
static kl_err read_all(kl_buf *text, int fd, const char *path, size_t max_bytes, kl_error *e) {
    static const size_t piece = 64 << 10;
    char *block = malloc(piece);
    kl_err err = KL_OK;
    if (!block) kl_oom(piece);
    for (;;) {
        ssize_t n = read(fd, block, piece);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) err = os_fail(e, path, "read");
        if (n <= 0) break;
        kl_buf_add(text, (kl_str){block, (size_t)n});
        if (text->len > max_bytes) {
            err = kl_fail(e, KL_ELIMIT, path, "larger than the limit of %zu bytes", max_bytes);
            break;
        }
    }
    free(block);
    return err;
}

kl_err kli_fs_read(kl_str *out, kl_arena *a, const char *path, size_t max_bytes, kl_error *e) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return os_fail(e, path, "open");
    kl_buf text = {0};
    kl_err err = read_all(&text, fd, path, max_bytes, e);
    if (!err) *out = kl_arena_copy(a, kl_buf_str(&text));
    kl_buf_fini(&text);
    close(fd);
    return err;
}

/* ---- writing ----------------------------------------------------------------------------- */

bool kli_fs_write_all(int fd, kl_str data) {
    while (data.len) {
        ssize_t n = write(fd, data.ptr, data.len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        data.ptr += n;
        data.len -= (size_t)n;
    }
    return true;
}

/* The rename itself must survive a power cut; file systems that cannot do this say EINVAL, and that
 * is fine. */
static void sync_folder_of(kl_arena *a, const char *path) {
    int fd = open(kli_fs_dirname(a, path).ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

kl_err kli_fs_write(const char *path, kl_str data, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    const char *temporary =
        kl_arena_printf(scratch, "%s.%016llx.tmp", path, (unsigned long long)kli_seed_fresh()).ptr;
    kl_err err = KL_OK;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        err = os_fail(e, path, "create");
        goto done;
    }
    bool written = kli_fs_write_all(fd, data) && fsync(fd) == 0;
    int why = errno;
    if (close(fd) != 0 && written) {
        written = false;
        why = errno;
    }
    errno = why;
    if (!written || rename(temporary, path) != 0) {
        err = os_fail(e, path, "write");
        unlink(temporary);
        goto done;
    }
    sync_folder_of(scratch, path);
done:
    kl_arena_free(scratch);
    return err;
}

static bool make_folder(const char *path) {
    return mkdir(path, 0777) == 0 || (errno == EEXIST && kli_fs_is_dir(path));
}

kl_err kli_fs_mkdirs(const char *path, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    kl_err err = KL_OK;
    char *part = KL_ARRAY(scratch, char, strlen(path) + 1);
    for (size_t i = 0; path[i] && !err; i++) {
        part[i] = path[i];
        bool ends_here = path[i] != '/' && (path[i + 1] == '/' || path[i + 1] == '\0');
        if (ends_here && !make_folder(part)) {
            err =
                kl_fail(e, KL_EIO, path, "cannot create the folder %s: %s", part, strerror(errno));
        }
    }
    kl_arena_free(scratch);
    return err;
}

/* ---- temporary folders: their locks ------------------------------------------------------ */

static struct {
    pthread_mutex_t mutex;
    struct {
        ino_t inode;
        int fd;
    } held[MAX_TEMP];
    int n;
    char swept[256]; /* the folder that was last looked through for orphans */
} temp = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void lock_temp(const char *path) {
    struct stat s;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &s) != 0) {
        if (fd >= 0) close(fd);
        return;
    }
    pthread_mutex_lock(&temp.mutex);
    if (temp.n < MAX_TEMP) {
        temp.held[temp.n].inode = s.st_ino;
        temp.held[temp.n++].fd = fd;
    }
    pthread_mutex_unlock(&temp.mutex);
}

static void unlock_temp(const char *path) {
    struct stat s;
    if (lstat(path, &s) != 0 || !S_ISDIR(s.st_mode)) return;
    pthread_mutex_lock(&temp.mutex);
    KL_ASSERT(temp.n >= 0 && temp.n <= MAX_TEMP);
    for (int i = 0; i < temp.n; i++) {
        if (temp.held[i].inode != s.st_ino) continue;
        close(temp.held[i].fd);
        temp.held[i] = temp.held[--temp.n];
        break;
    }
    pthread_mutex_unlock(&temp.mutex);
}

/* ---- removing ---------------------------------------------------------------------------- */

static void remove_contents(int fd, unsigned depth);

static void remove_entry(int parent, const char *name, unsigned depth) {
    if (unlinkat(parent, name, 0) == 0 || (errno != EISDIR && errno != EPERM)) return;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* A candidate may have taken away our own right to look inside. */
    if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) remove_contents(fd, depth + 1);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* Takes `fd` over. */
static void remove_contents(int fd, unsigned depth) {
    (void)fchmod(fd, 0700);
    DIR *dir = depth < MAX_TREE_DEPTH ? fdopendir(fd) : NULL;
    if (!dir) {
        close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_entry(dirfd(dir), entry->d_name, depth);
    closedir(dir);
}

void kli_fs_remove_tree(const char *path) {
    if (!path || !path[0]) return;
    unlock_temp(path);
    remove_entry(AT_FDCWD, path, 0);
}

/* ---- looking ----------------------------------------------------------------------------- */

bool kli_fs_exists(const char *path) {
    struct stat s;
    return stat(path, &s) == 0;
}

bool kli_fs_is_dir(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(((const kl_str *)a)->ptr, ((const kl_str *)b)->ptr);
}

kl_err kli_fs_list(kl_str **names, size_t *n, kl_arena *a, const char *dir, kl_error *e) {
    *names = NULL;
    *n = 0;
    DIR *stream = opendir(dir);
    if (!stream && errno == ENOENT) return KL_OK;
    if (!stream) return os_fail(e, dir, "list");
    for (struct dirent *entry; errno = 0, (entry = readdir(stream));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        *KL_PUSH(a, *names, *n) = kl_arena_copy(a, kl_str_of(entry->d_name));
    }
    kl_err err = errno ? os_fail(e, dir, "list") : KL_OK;
    closedir(stream);
    if (*n) qsort(*names, *n, sizeof **names, by_bytes);
    return err;
}

/* ---- names ------------------------------------------------------------------------------- */

kl_str kli_fs_join(kl_arena *a, const char *dir, const char *name) {
    if (name[0] == '/' || !dir[0]) return kl_arena_copy(a, kl_str_of(name));
    bool slash = kl_str_ends(kl_str_of(dir), KL_S("/"));
    return kl_arena_printf(a, "%s%s%s", dir, slash ? "" : "/", name);
}

static kl_str without_end_slashes(const char *path) {
    kl_str s = kl_str_of(path);
    while (s.len > 1 && s.ptr[s.len - 1] == '/') s.len--;
    return s;
}

kl_str kli_fs_basename(const char *path) {
    kl_str s = without_end_slashes(path);
    size_t from = s.len;
    while (from > 0 && s.ptr[from - 1] != '/') from--;
    return from == s.len ? s : (kl_str){s.ptr + from, s.len - from};
}

kl_str kli_fs_dirname(kl_arena *a, const char *path) {
    kl_str s = without_end_slashes(path);
    while (s.len > 0 && s.ptr[s.len - 1] != '/') s.len--;
    if (s.len == 0) return kl_arena_copy(a, KL_S("."));
    while (s.len > 1 && s.ptr[s.len - 1] == '/') s.len--;
    return kl_arena_copy(a, s);
}

static const char *environment(const char *name) {
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

/* Made by kli_fs_temp_dir for us, a minute ago or more, and locked by nobody? */
static bool is_orphan(int parent, const char *name) {
    struct stat s;
    size_t prefix = strlen(TEMP_PREFIX);
    if (strncmp(name, TEMP_PREFIX, prefix) != 0 || strlen(name) != prefix + 6) return false;
    if (fstatat(parent, name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(s.st_mode)) return false;
    if (s.st_uid != geteuid() && !(geteuid() == 0 && s.st_uid == SANDBOX_USER)) return false;
    if (time(NULL) - s.st_mtime < STALE_SECONDS) return false;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool unlocked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0) close(fd);
    return unlocked;
}

/* Once a process and folder: what a killed one left behind. */
static void sweep(const char *base) {
    pthread_mutex_lock(&temp.mutex);
    bool first = strncmp(temp.swept, base, sizeof temp.swept - 1) != 0;
    (void)snprintf(temp.swept, sizeof temp.swept, "%s", base);
    pthread_mutex_unlock(&temp.mutex);
    DIR *dir = first ? opendir(base) : NULL;
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (is_orphan(dirfd(dir), entry->d_name)) remove_entry(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

kl_err kli_fs_temp_dir(kl_str *out, kl_arena *a, kl_error *e) {
    const char *base = environment("TMPDIR");
    kl_str path = kli_fs_join(a, base ? base : "/tmp", TEMP_PREFIX "XXXXXX");
    sweep(base ? base : "/tmp");
    if (!mkdtemp((char *)path.ptr)) { /* the arena's own copy, so writing to it is fine */
        kl_err err = os_fail(e, base ? base : "/tmp", "create a temporary folder");
        kl_hint(e, "set TMPDIR to a writable folder");
        return err;
    }
    lock_temp(path.ptr);
    *out = path;
    return KL_OK;
}

static kl_str program_dir(kl_arena *a) {
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0) return kl_arena_copy(a, KL_S("."));
    path[n] = '\0';
    return kli_fs_dirname(a, path);
}

/* The file this code was loaded from; NULL when that is the program itself. */
static const char *own_library(void) {
    Dl_info program, own;
    void *here = (void *)(uintptr_t)own_library, *entry = (void *)(uintptr_t)getauxval(AT_ENTRY);
    if (!dladdr(here, &own) || !dladdr(entry, &program) || own.dli_fbase == program.dli_fbase)
        return NULL;
    return own.dli_fname;
}

/* A library lies in lib/ or lib/TRIPLET/ beside bin/. */
kl_str kli_fs_self_dir(kl_arena *a) {
    const char *library = own_library();
    kl_str above = library ? kli_fs_dirname(a, library) : (kl_str){0};
    for (int level = 0; level < 2 && above.len > 1; level++) {
        above = kli_fs_dirname(a, above.ptr);
        kl_str bin = kli_fs_join(a, above.ptr, "bin");
        if (kli_fs_exists(kli_fs_join(a, bin.ptr, "klineage-worker").ptr)) return bin;
    }
    return program_dir(a);
}

kl_str kli_fs_find_part(kl_arena *a, const char *name) {
    static const char *const FOLDERS[] = {
        "", "/../bin", "/../share/klineage"}; /* tests lie beside bin/ in a build tree */
    kl_str self = kli_fs_self_dir(a), found;
    for (size_t i = 0; i < KL_COUNT(FOLDERS); i++) {
        found = kl_arena_printf(a, "%s%s/%s", self.ptr, FOLDERS[i], name);
        if (kli_fs_exists(found.ptr)) return found;
    }
    found = kli_fs_find_program(a, name);
    return found.len ? found : kli_fs_join(a, self.ptr, name);
}

kl_str kl_fs_cache_dir(kl_arena *a) {
    const char *own = environment("KLINEAGE_CACHE"), *xdg = environment("XDG_CACHE_HOME"),
               *home = environment("HOME");
    if (own) return kl_arena_copy(a, kl_str_of(own));
    if (xdg && xdg[0] == '/') return kli_fs_join(a, xdg, "klineage");
    if (home) return kli_fs_join(a, home, ".cache/klineage");
    return kl_arena_copy(
        a, KL_S(".klineage-cache")); /* somebody else could have prepared one in a shared /tmp */
}

static bool is_program(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

kl_str kli_fs_find_program(kl_arena *a, const char *name) {
    if (!name[0]) return (kl_str){0};
    if (strchr(name, '/'))
        return is_program(name) ? kl_arena_copy(a, kl_str_of(name)) : (kl_str){0};
    const char *path = environment("PATH");
    for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; *p;) {
        size_t len = strcspn(p, ":");
        kl_str found = kli_fs_join(a, len ? kl_arena_copy(a, (kl_str){p, len}).ptr : ".", name);
        if (is_program(found.ptr)) return found;
        p += len + (p[len] == ':');
    }
    return (kl_str){0};
}
