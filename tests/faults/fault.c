/* fault.c - a library to be preloaded: makes the n-th call of a kind fail, fall short, or be the
 * last one, and lets the clock jump.
 *
 *   FAULT=CALL:N:WHAT     CALL  write fsync rename mmap fork open read, or any
 *                         N     the n-th, counted from 1 over the process and all it forks; "5+":
 * that one and every later one WHAT  an errno (ENOSPC), short (half of the bytes), kill (SIGKILL
 * instead of the call) FAULT_CLOCK=back|ahead|wild   the time of day goes back an hour at each
 * look, lies 300 days ahead, or jumps either way FAULT_COUNTS=FILE     where the calls are counted:
 * one 64-bit number a kind, in the order above FAULT_PROGRAM=NAME    only in programs of that name;
 * compilers and runners are left alone
 *
 * What libc calls by itself (stdio, malloc) does not come by here; SQLite and klineage call write
 * and fsync by name. SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef enum { WRITE, FSYNC, RENAME, MMAP, FORK, OPEN, READ, CALLS } call;
static const char *const NAMES[CALLS] = {"write", "fsync", "rename", "mmap",
                                         "fork",  "open",  "read"};
enum { SHORT = -1, KILL = -2 };
static const struct {
    const char *name;
    int what;
} FAULTS[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},
              {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN}, {"EMFILE", EMFILE},
              {"EACCES", EACCES}, {"short", SHORT},   {"kill", KILL}};

static struct {
    bool on, any, from_then_on;
    int which, what;
    uint64_t n;
    char clock;
    _Atomic uint64_t *counts; /* shared with children */
} plan;
static _Atomic int64_t looks;

/* ---- setting up
 * ----------------------------------------------------------------------------------------------------
 */

static bool is_program(const char *name) {
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (!name || n <= 0) return !name;
    path[n] = '\0';
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, name) == 0;
}

static void fail(const char *why) {
    fprintf(stderr, "fault.c: %s\n", why);
    _exit(99);
}

static void read_fault(const char *text) {
    char kind[16], number[24], what[16];
    if (sscanf(text, "%15[^:]:%23[^:]:%15s", kind, number, what) != 3) fail("FAULT is CALL:N:WHAT");
    char *end;
    plan.n = strtoull(number, &end, 10);
    plan.from_then_on = *end == '+';
    plan.any = strcmp(kind, "any") == 0;
    plan.which = plan.what = 0;
    for (plan.which = 0; plan.which < CALLS && strcmp(kind, NAMES[plan.which]) != 0;) plan.which++;
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++)
        if (strcmp(what, FAULTS[i].name) == 0) plan.what = FAULTS[i].what;
    if ((plan.which == CALLS && !plan.any) || !plan.n || !plan.what)
        fail("FAULT names no call, number or fault that is known");
}

/* The calls go to the kernel directly: ours would count themselves. */
static void open_counts(const char *path) {
    const size_t bytes = CALLS * sizeof(uint64_t);
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) fail("FAULT_COUNTS cannot be opened");
    void *at = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) fail("FAULT_COUNTS cannot be mapped");
    syscall(SYS_close, fd);
    plan.counts = at;
}

__attribute__((constructor)) static void set_up(void) {
    static _Atomic uint64_t own[CALLS];
    const char *fault = getenv("FAULT"), *counts = getenv("FAULT_COUNTS"),
               *jump = getenv("FAULT_CLOCK");
    if (!is_program(getenv("FAULT_PROGRAM"))) return;
    plan.counts = own;
    if (fault) read_fault(fault);
    if (counts) open_counts(counts);
    plan.clock = jump ? jump[0] : '\0';
    plan.on = true;
}

/* ---- whether this is the one
 * --------------------------------------------------------------------------------------- */

/* 0: the call goes through; SHORT; else an errno. */
static int fate(call which) {
    if (!plan.on) return 0;
    uint64_t n = atomic_fetch_add(&plan.counts[which], 1) + 1;
    if (plan.any) {
        n = 0;
        for (int i = 0; i < CALLS; i++) n += atomic_load(&plan.counts[i]);
    } else if ((int)which != plan.which) {
        return 0;
    }
    if (!plan.n || (plan.from_then_on ? n < plan.n : n != plan.n)) return 0;
    if (plan.what == KILL) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    return plan.what;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAILS(which)                                                                               \
    const int what = fate(which);                                                                  \
    if (what > 0) return errno = what, -1

static size_t cut(int what, size_t n) { return what == SHORT && n > 1 ? n / 2 : n; }

/* ---- the calls
 * -----------------------------------------------------------------------------------------------------
 */

ssize_t write(int fd, const void *data, size_t n) {
    FAILS(WRITE);
    return syscall(SYS_write, fd, data, cut(what, n));
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at) {
    FAILS(WRITE);
    return syscall(SYS_pwrite64, fd, data, cut(what, n), at);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) {
    FAILS(WRITE);
    return syscall(SYS_pwrite64, fd, data, cut(what, n), at);
}

ssize_t read(int fd, void *data, size_t n) {
    FAILS(READ);
    return syscall(SYS_read, fd, data, cut(what, n));
}

ssize_t pread(int fd, void *data, size_t n, off_t at) {
    FAILS(READ);
    return syscall(SYS_pread64, fd, data, cut(what, n), at);
}

ssize_t pread64(int fd, void *data, size_t n, off64_t at) {
    FAILS(READ);
    return syscall(SYS_pread64, fd, data, cut(what, n), at);
}

int fsync(int fd) {
    FAILS(FSYNC);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    FAILS(FSYNC);
    return (int)syscall(SYS_fdatasync, fd);
}

int rename(const char *from, const char *to) {
    FAILS(RENAME);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int open_mode(int flags, va_list args) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
}

/* A naive kernel that does not open counts as missing, and a prompt then goes without it: that is
 * known, and no fault to find (docs/faults.md, Limits). */
static bool may_be_missing(const char *path) {
    const char *name = strrchr(path, '/');
    return !strcmp(name ? name + 1 : path, "naive.c");
}

#define OPENS(folder)                                                                              \
    const int what = may_be_missing(path) ? 0 : fate(OPEN);                                        \
    if (what > 0) return errno = what, -1;                                                         \
    va_list args;                                                                                  \
    va_start(args, flags);                                                                         \
    const int mode = open_mode(flags, args);                                                       \
    va_end(args);                                                                                  \
    return (int)syscall(SYS_openat, folder, path, flags, mode)

int open(const char *path, int flags, ...) { OPENS(AT_FDCWD); }
int open64(const char *path, int flags, ...) { OPENS(AT_FDCWD); }
int openat(int folder, const char *path, int flags, ...) { OPENS(folder); }

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    const int what = fate(MMAP);
    if (what > 0) return errno = what, MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t n, int protection, int flags, int fd, off64_t offset) {
    return mmap(at, n, protection, flags, fd, offset);
}

pid_t fork(void) {
    FAILS(FORK);
    return REAL(fork)();
}

/* Runners are cloned by number. */
long syscall(long number, ...) {
    static long (*real)(long, ...);
    long a[6];
    va_list args;
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    va_start(args, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_clone) {
        FAILS(FORK);
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- the time of day: what only goes forward by contract is left alone
 * ---------------------------------------------- */

static int64_t jump_seconds(void) {
    const int64_t look = atomic_fetch_add(&looks, 1);
    switch (plan.clock) {
    case 'b':
        return -3600 * (look + 1);
    case 'a':
        return 300 * 86400;
    case 'w':
        return (look % 2 ? 1 : -1) * 86400 * (look % 7);
    default:
        return 0;
    }
}

int clock_gettime(clockid_t which, struct timespec *out) {
    const int status = (int)syscall(SYS_clock_gettime, which, out);
    if (!status && plan.on && which == CLOCK_REALTIME) out->tv_sec += jump_seconds();
    return status;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}
