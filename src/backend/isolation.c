/* isolation.c - files, users, namespaces and limits; and the honest answer to what holds here.
 *
 * Landlock is spoken to by its system calls: its numbers and structures are younger than the
 * headers that stable distributions ship.  Everything degrades one by one: a kernel without
 * Landlock still has the filter, a host that forbids user namespaces still has both.
 * isolation_probe.c tries each for real. Not here: cgroups (their layout differs from host to host)
 * and the system call lists (filters.c). SPDX-License-Identifier: Apache-2.0 */
#include "isolation.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_PROCESSES                                                                              \
    512 /* of all runners and compilers of one host together; a fork bomb ends here */

/* ---- Landlock ---------------------------------------------------------------------------- */

enum { SYS_CREATE_RULESET = 444, SYS_ADD_RULE = 445, SYS_RESTRICT_SELF = 446 };
enum { RULE_PATH_BENEATH = 1, CREATE_VERSION = 1 };
enum {
    FS_EXECUTE = 1 << 0,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_READ = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR,
    FS_ALL_1 = (1 << 13) - 1, /* everything the first version knew */
    FS_REFER = 1 << 13,
    FS_TRUNCATE = 1 << 14,
    FS_IOCTL_DEV = 1 << 15,
    FS_MAKE_SPECIAL = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11, /* devices, sockets, pipes */
    FS_OF_FILES = FS_EXECUTE | 1 << 1 | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
    NET_BOTH = 3,
    SCOPE_BOTH = 3
};

typedef struct {
    uint64_t fs, net, scoped;
} ruleset_attr;
typedef struct {
    uint64_t access;
    int32_t parent;
} __attribute__((packed)) path_attr;

int kli_landlock_abi(void) {
    long abi = syscall(SYS_CREATE_RULESET, NULL, (size_t)0, CREATE_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

static uint64_t known_rights(int abi) {
    uint64_t rights = FS_ALL_1;
    if (abi >= 2) rights |= FS_REFER;
    if (abi >= 3) rights |= FS_TRUNCATE;
    if (abi >= 5) rights |= FS_IOCTL_DEV;
    return rights;
}

static void allow(int ruleset, const char *path, uint64_t rights) {
    struct stat info;
    path_attr rule = {.access = rights, .parent = open(path, O_PATH | O_CLOEXEC)};
    if (rule.parent < 0) return;
    if (fstat(rule.parent, &info) == 0 && !S_ISDIR(info.st_mode)) rule.access &= FS_OF_FILES;
    (void)syscall(SYS_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent);
}

int kli_landlock_ruleset(const char *const *readable, const char *const *writable) {
    int abi = kli_landlock_abi();
    if (abi < 1) return -1;
    ruleset_attr attr = {.fs = known_rights(abi),
                         .net = abi >= 4 ? NET_BOTH : 0,
                         .scoped = abi >= 6 ? SCOPE_BOTH : 0};
    size_t size = abi >= 6   ? 24
                  : abi >= 4 ? 16
                             : 8; /* an old kernel refuses fields it does not know */
    int ruleset = (int)syscall(SYS_CREATE_RULESET, &attr, size, 0);
    if (ruleset < 0) return -1;
    for (; readable && *readable; readable++) allow(ruleset, *readable, FS_READ);
    for (; writable && *writable; writable++)
        allow(ruleset, *writable, attr.fs & ~(uint64_t)FS_MAKE_SPECIAL);
    return ruleset;
}

bool kli_landlock_enter(int ruleset) {
    if (ruleset < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    return syscall(SYS_RESTRICT_SELF, ruleset, 0) == 0;
}

/* ---- users and limits -------------------------------------------------------------------- */

bool kli_set_limit(int which, uint64_t value) {
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)which, &now) != 0) return false;
    if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value) value = now.rlim_max;
    return setrlimit((__rlimit_resource_t)which, &(struct rlimit){value, value}) == 0;
}

/* SIGXCPU first and SIGKILL later, so that the two can be told apart: a SIGKILL that came earlier
 * is somebody else's. */
static void limit_cpu(uint64_t seconds) {
    struct rlimit now;
    if (getrlimit(RLIMIT_CPU, &now) != 0) return;
    const uint64_t hard = now.rlim_max < seconds + 5
                              ? now.rlim_max
                              : seconds + 5; /* RLIM_INFINITY is the largest number */
    (void)setrlimit(RLIMIT_CPU, &(struct rlimit){seconds < hard ? seconds : hard, hard});
}

/* Root becomes nobody; anybody else stays who he is, which is not a switch.  Raw calls: the C
 * library's own versions signal every thread, which is not for a child of a threaded process
 * between fork and exec. */
bool kli_become_nobody(void) {
    if (geteuid() != 0) return false;
    if (syscall(SYS_setgroups, 0, NULL) != 0 && errno != EPERM) return false;
    return syscall(SYS_setresgid, KLI_NOBODY, KLI_NOBODY, KLI_NOBODY) == 0 &&
           syscall(SYS_setresuid, KLI_NOBODY, KLI_NOBODY, KLI_NOBODY) == 0;
}

/* Processes are counted per user and user namespace, so a bound is only ours to set where we are
 * the only ones counted: as nobody, or (an unmapped user looks like nobody) in a namespace of our
 * own. */
static void limit_processes(bool alone) {
    if (alone) kli_set_limit(RLIMIT_NPROC, MAX_PROCESSES);
}

/* ---- compilers --------------------------------------------------------------------------- */

#define MAX_READABLE 32

void kli_jail_open(kli_jail *j, const char *dir, const char *const *more) {
    static const char *const SYSTEM[] = {"/usr",
                                         "/lib",
                                         "/lib64",
                                         "/bin",
                                         "/etc/ld.so.cache",
                                         "/etc/alternatives",
                                         "/etc/OpenCL",
                                         "/sys/devices",
                                         "/proc/cpuinfo",
                                         "/proc/meminfo"};
    const char *readable[MAX_READABLE] = {0},
               *writable[] = {"/dev/null", "/dev/zero", "/dev/urandom", dir, NULL};
    size_t n = KL_COUNT(SYSTEM);
    memcpy(readable, SYSTEM, sizeof SYSTEM);
    for (; more && *more && n < MAX_READABLE - 1; more++) readable[n++] = *more;
    *j = (kli_jail){.cpu_seconds = KL_COMPILE_SECONDS,
                    .memory_bytes = KL_COMPILE_MEMORY,
                    .file_bytes = 256u << 20};
    j->ruleset = kli_landlock_ruleset(readable, writable);
    (void)kli_filter_build(&j->filter, KLI_FILTER_COMPILE);
    j->switch_user = geteuid() == 0 && (!dir || chown(dir, KLI_NOBODY, KLI_NOBODY) == 0);
}

/* Best effort by design: kli_isolation_probe has already said what can be had, and kli_compile
 * refused if that was too little. */
int kli_jail_enter(void *jail) {
    const kli_jail *j = jail;
    limit_cpu(j->cpu_seconds);
    kli_set_limit(RLIMIT_AS,
                  j->memory_bytes *
                      8); /* address space, of which compilers reserve much more than they touch */
    kli_set_limit(RLIMIT_DATA, j->memory_bytes);
    kli_set_limit(RLIMIT_FSIZE, j->file_bytes);
    kli_set_limit(RLIMIT_CORE, 0);
    if (unshare(kli_namespace_flags() & ~CLONE_NEWPID) != 0 && geteuid() == 0)
        (void)unshare(CLONE_NEWNET);
    if (j->switch_user && !kli_become_nobody()) return 1;
    limit_processes(geteuid() == KLI_NOBODY);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user clears it */
    if (j->ruleset >= 0 && !kli_landlock_enter(j->ruleset)) return 1;
    if (j->filter.program.len && !kli_filter_enter(&j->filter)) return 1;
    return 0;
}

void kli_jail_close(kli_jail *j) {
    if (j->ruleset >= 0) close(j->ruleset);
    kli_filter_fini(&j->filter);
}

/* ---- runners ----------------------------------------------------------------------------- */

int kli_namespace_flags(void) {
    int flags = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWUTS;
    return geteuid() == 0 ? flags : flags | CLONE_NEWUSER;
}

void kli_confine_runner(kl_isolation *applied, const char *const *readable,
                        const char *const *writable) {
    int ruleset = kli_landlock_ruleset(readable, writable);
    applied->rlimits = kli_set_limit(RLIMIT_CORE, 0) &&
                       kli_set_limit(RLIMIT_DATA, 2 * KL_COMPILE_MEMORY) &&
                       kli_set_limit(RLIMIT_FSIZE, 256u << 20) && kli_set_limit(RLIMIT_NOFILE, 256);
    applied->user_switch = kli_become_nobody();
    limit_processes(geteuid() == KLI_NOBODY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* After a change of user /proc/self belongs to root, and artefacts are opened through it. */
    if (applied->user_switch) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    applied->landlock = kli_landlock_enter(ruleset);
    applied->landlock_abi = applied->landlock ? kli_landlock_abi() : 0;
    if (ruleset >= 0) close(ruleset);
}
