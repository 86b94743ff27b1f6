/* filters.c - which system calls are left to whom.
 *
 * libseccomp writes the BPF once per process; entering a filter is then two system calls, cheap
 * enough for every timed batch.  A violation raises SIGSYS instead of returning an error, so that
 * what a kernel tried is seen and named. Not here: files (Landlock decides by path, which a filter
 * cannot see).  SPDX-License-Identifier: Apache-2.0 */
#include "isolation.h"
#include <errno.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <unistd.h>

/* Every call that a native kernel may make, and what it could do with it:
 *   brk, mmap     more memory of its own: anonymous, private, never executable, never over
 * something that is there munmap        less memory of its own; what it takes away of the shared
 * pages stays with the gate mremap        denied with an error: it would grow shared pages past
 * their guards; realloc then copies futex         waiting and waking; the operations that write
 * elsewhere are not among them exit          an end without a result clock_gettime the clock where
 * the kernel does not map one */
static const char *const MEMORY_CALLS[] = {"brk", "munmap", "exit", "exit_group", "clock_gettime"};

/* A pool that exists already yields while it waits. */
static const char *const THREAD_CALLS[] = {"sched_yield"};

/* What PoCL and its threads do once every kernel has been compiled. */
static const char *const DRIVER_CALLS[] = {"futex",
                                           "rt_sigreturn",
                                           "set_robust_list",
                                           "rseq",
                                           "gettid",
                                           "madvise",
                                           "read",
                                           "pread64",
                                           "readv",
                                           "lseek",
                                           "close",
                                           "fstat",
                                           "newfstatat",
                                           "statx",
                                           "stat",
                                           "lstat",
                                           "access",
                                           "faccessat",
                                           "faccessat2",
                                           "readlink",
                                           "readlinkat",
                                           "getdents64",
                                           "getcwd",
                                           "getpid",
                                           "getuid",
                                           "geteuid",
                                           "getgid",
                                           "getegid",
                                           "clock_getres",
                                           "clock_nanosleep",
                                           "nanosleep",
                                           "gettimeofday",
                                           "sched_getaffinity",
                                           "sched_setaffinity",
                                           "getcpu",
                                           "rt_sigprocmask",
                                           "rt_sigaction",
                                           "sigaltstack",
                                           "poll",
                                           "ppoll",
                                           "getrandom",
                                           "uname",
                                           "sysinfo",
                                           "recvmsg",
                                           "sendto",
                                           "sendmsg",
                                           "restart_syscall",
                                           "fcntl",
                                           "getrlimit",
                                           "dup"};

/* A compiler never needs these; the network is gone with its namespace where there is one. */
static const char *const COMPILE_DENIED[] = {"ptrace",
                                             "process_vm_readv",
                                             "process_vm_writev",
                                             "bpf",
                                             "perf_event_open",
                                             "io_uring_setup",
                                             "userfaultfd",
                                             "keyctl",
                                             "add_key",
                                             "request_key",
                                             "mount",
                                             "umount2",
                                             "pivot_root",
                                             "chroot",
                                             "setns",
                                             "unshare",
                                             "init_module",
                                             "finit_module",
                                             "kexec_load",
                                             "reboot",
                                             "swapon",
                                             "open_by_handle_at",
                                             "personality",
                                             "setpriority",
                                             "ioprio_set",
                                             "process_madvise",
                                             "migrate_pages",
                                             "move_pages",
                                             "pidfd_getfd",
                                             "shmget",
                                             "msgget",
                                             "semget"};

/* A name that this architecture has no number for is a negative one: nothing to add. */
static bool add_all(scmp_filter_ctx f, uint32_t action, const char *const *calls, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const int number = seccomp_syscall_resolve_name(calls[i]);
        if (number == __NR_SCMP_ERROR)
            return false; /* another libseccomp: no filter, and said so */
        if (number >= 0 && seccomp_rule_add(f, action, number, 0) != 0) return false;
    }
    return true;
}

#define ANY_OTHER(bits) (~(uint64_t)(bits))

static bool allow_memory(scmp_filter_ctx f) {
    const uint64_t harmless = MAP_NORESERVE | MAP_STACK | MAP_POPULATE;
    int failed = seccomp_rule_add(
        f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
        SCMP_A2(SCMP_CMP_MASKED_EQ, ANY_OTHER(PROT_READ | PROT_WRITE), 0),
        SCMP_A3(SCMP_CMP_MASKED_EQ, ANY_OTHER(harmless), MAP_PRIVATE | MAP_ANONYMOUS));
    failed |= seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOMEM), SCMP_SYS(mremap), 0);
    return failed == 0;
}

/* With or without the flags that say "of this process" and "by the wall clock". */
static bool allow_waiting(scmp_filter_ctx f) {
    static const int OPERATIONS[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET};
    const uint64_t flags = FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
    int failed = 0;
    for (size_t i = 0; i < KL_COUNT(OPERATIONS); i++)
        failed |= seccomp_rule_add(
            f, SCMP_ACT_ALLOW, SCMP_SYS(futex), 1,
            SCMP_A1(SCMP_CMP_MASKED_EQ, (uint32_t)~flags, (uint64_t)OPERATIONS[i]));
    return failed == 0;
}

static bool allow_driver(scmp_filter_ctx f) {
    int failed = !add_all(f, SCMP_ACT_ALLOW, DRIVER_CALLS, KL_COUNT(DRIVER_CALLS));
    failed |= seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 0); /* libraries too */
    failed |= seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOMEM), SCMP_SYS(mremap), 0);
    failed |= seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 0);
    failed |= seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                               SCMP_A2(SCMP_CMP_MASKED_EQ, O_ACCMODE, O_RDONLY));
    failed |= seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
                               SCMP_A1(SCMP_CMP_MASKED_EQ, O_ACCMODE, O_RDONLY));
    /* A cache that cannot be written is a slower start, not a fault. */
    failed |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EROFS), SCMP_SYS(openat), 1,
                               SCMP_A2(SCMP_CMP_MASKED_EQ, O_WRONLY, O_WRONLY));
    failed |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EROFS), SCMP_SYS(openat), 1,
                               SCMP_A2(SCMP_CMP_MASKED_EQ, O_RDWR, O_RDWR));
    failed |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EROFS), SCMP_SYS(mkdir), 0);
    failed |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EROFS), SCMP_SYS(unlink), 0);
    failed |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EROFS), SCMP_SYS(rename), 0);
    return failed == 0;
}

/* Limits and places in the queue are inherited: whoever could set those of a warm compiler would
 * decide how the next kernel is compiled.  Process 0 is oneself. */
static bool deny_to_others(scmp_filter_ctx f) {
    static const int CALLS[] = {SCMP_SYS(prlimit64), SCMP_SYS(sched_setaffinity),
                                SCMP_SYS(sched_setscheduler), SCMP_SYS(sched_setparam),
                                SCMP_SYS(sched_setattr)};
    int failed = 0;
    for (size_t i = 0; i < KL_COUNT(CALLS); i++)
        failed |= seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), CALLS[i], 1, SCMP_A0(SCMP_CMP_NE, 0));
    return failed == 0;
}

static bool fill(scmp_filter_ctx f, kli_filter_kind kind) {
    if (kind == KLI_FILTER_COMPILE)
        return add_all(f, SCMP_ACT_ERRNO(EPERM), COMPILE_DENIED, KL_COUNT(COMPILE_DENIED)) &&
               deny_to_others(f);
    bool ok = add_all(f, SCMP_ACT_ALLOW, MEMORY_CALLS, KL_COUNT(MEMORY_CALLS));
    if (ok && kind != KLI_FILTER_KERNEL)
        ok = add_all(f, SCMP_ACT_ALLOW, THREAD_CALLS, KL_COUNT(THREAD_CALLS));
    return ok &&
           (kind == KLI_FILTER_DRIVER ? allow_driver(f) : allow_memory(f) && allow_waiting(f));
}

/* libseccomp exports to a descriptor only. */
static bool export(kli_filter *out, scmp_filter_ctx f) {
    struct stat info;
    int fd = memfd_create("filter", MFD_CLOEXEC);
    bool ok = fd >= 0 && seccomp_export_bpf(f, fd) == 0 && fstat(fd, &info) == 0 &&
              info.st_size > 0 && (size_t)info.st_size / sizeof(struct sock_filter) <= 4096;
    if (ok) {
        const size_t bytes = (size_t)info.st_size;
        out->program.filter = malloc(bytes);
        if (!out->program.filter) kl_oom(bytes);
        out->program.len = (unsigned short)(bytes / sizeof(struct sock_filter));
        ok = pread(fd, out->program.filter, bytes, 0) == info.st_size;
    }
    if (fd >= 0) close(fd);
    return ok;
}

bool kli_filter_build(kli_filter *out, kli_filter_kind kind) {
    *out = (kli_filter){0};
    scmp_filter_ctx f = seccomp_init(kind == KLI_FILTER_COMPILE ? SCMP_ACT_ALLOW : SCMP_ACT_TRAP);
    if (!f) return false;
    bool ok = fill(f, kind) && export(out, f);
    seccomp_release(f);
    if (!ok) kli_filter_fini(out);
    KL_ASSERT(ok == (out->program.len > 0));
    return ok;
}

bool kli_filter_enter(const kli_filter *f) {
    if (!f->program.len || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &f->program) ==
           0;
}

void kli_filter_fini(kli_filter *f) {
    free(f->program.filter);
    *f = (kli_filter){0};
}
