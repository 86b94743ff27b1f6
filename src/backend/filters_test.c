/* filters_test.c - what each filter says to each call, by running its program on the call: nothing
 * is tried on this process. SPDX-License-Identifier: Apache-2.0 */
#include "backend/isolation.h"
#include "base/test.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif
#define LAST_CALL 470 /* and then some: numbers that no kernel has today */

/* The part of classic BPF that libseccomp writes. */
static uint32_t decide(const kli_filter *f, const struct seccomp_data *data) {
    uint32_t a = 0;
    for (size_t i = 0; i < f->program.len; i++) {
        const struct sock_filter *s = &f->program.filter[i];
        bool jump = false;
        switch (s->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&a, (const char *)data + s->k, sizeof a);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= s->k;
            continue;
        case BPF_JMP | BPF_JA:
            i += s->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            jump = a == s->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            jump = a > s->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            jump = a >= s->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            jump = (a & s->k) != 0;
            break;
        case BPF_RET | BPF_K:
            return s->k;
        default:
            fail_msg("an instruction %#x that this test does not know", s->code);
        }
        i += jump ? s->jt : s->jf;
    }
    fail_msg("a filter without an end");
    return 0;
}

typedef enum { TRAP, ALLOW, ERROR } verdict;

static verdict verdict_of(const kli_filter *f, int call, const uint64_t args[6]) {
    struct seccomp_data data = {.nr = call, .arch = ARCHITECTURE};
    if (args) memcpy(data.args, args, sizeof data.args);
    switch (decide(f, &data) & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
        return ALLOW;
    case SECCOMP_RET_ERRNO:
        return ERROR;
    default:
        return TRAP;
    }
}

#define RW (PROT_READ | PROT_WRITE)
#define OWN (MAP_PRIVATE | MAP_ANONYMOUS)

/* kernel, threads, driver */
static const struct {
    const char *call;
    uint64_t args[6];
    verdict kernel, threads, driver;
} DECISIONS[] = {
    {"brk", {0}, ALLOW, ALLOW, ALLOW},
    {"munmap", {0}, ALLOW, ALLOW, ALLOW},
    {"mmap", {0, 4096, RW, OWN}, ALLOW, ALLOW, ALLOW},
    {"mmap", {0, 4096, PROT_NONE, OWN | MAP_NORESERVE}, ALLOW, ALLOW, ALLOW},
    {"mmap", {0, 4096, RW, OWN | MAP_STACK}, ALLOW, ALLOW, ALLOW},
    {"mmap", {0, 4096, RW | PROT_EXEC, OWN}, TRAP, TRAP, ALLOW},
    {"mmap", {0, 4096, PROT_EXEC, OWN}, TRAP, TRAP, ALLOW},
    {"mmap", {4096, 4096, RW, OWN | MAP_FIXED}, TRAP, TRAP, ALLOW}, /* over the shared pages */
    {"mmap", {4096, 4096, RW, OWN | MAP_FIXED_NOREPLACE}, TRAP, TRAP, ALLOW},
    {"mmap", {0, 4096, RW, MAP_SHARED | MAP_ANONYMOUS}, TRAP, TRAP, ALLOW},
    {"mmap", {0, 4096, RW, MAP_SHARED}, TRAP, TRAP, ALLOW},
    {"mmap", {0, 4096, PROT_READ, MAP_PRIVATE, 3}, TRAP, TRAP, ALLOW}, /* a file */
    {"mmap", {0, 4096, RW, OWN | MAP_HUGETLB}, TRAP, TRAP, ALLOW},
    {"mmap", {0, 4096, RW, OWN | MAP_LOCKED}, TRAP, TRAP, ALLOW},
    {"mmap", {0, 4096, RW, OWN | MAP_GROWSDOWN}, TRAP, TRAP, ALLOW},
    {"mmap", {0, 4096, RW | PROT_GROWSDOWN, OWN}, TRAP, TRAP, ALLOW},
    {"mremap",
     {0},
     ERROR,
     ERROR,
     ERROR}, /* grows shared pages past their guards; realloc copies instead */
    {"mremap", {0, 4096, 8192, MREMAP_MAYMOVE}, ERROR, ERROR, ERROR},
    {"mprotect", {0, 4096, RW}, TRAP, TRAP, ALLOW}, /* guard pages */
    {"madvise", {0, 4096, MADV_DONTNEED}, TRAP, TRAP, ALLOW},
    {"madvise", {0, 4096, MADV_REMOVE}, TRAP, TRAP, ALLOW},
    {"remap_file_pages", {0}, TRAP, TRAP, TRAP},
    {"mlock", {0}, TRAP, TRAP, TRAP},
    {"msync", {0}, TRAP, TRAP, TRAP},
    {"futex", {0, FUTEX_WAIT}, ALLOW, ALLOW, ALLOW},
    {"futex", {0, FUTEX_WAIT | FUTEX_PRIVATE_FLAG}, ALLOW, ALLOW, ALLOW},
    {"futex", {0, FUTEX_WAKE | FUTEX_PRIVATE_FLAG}, ALLOW, ALLOW, ALLOW},
    {"futex",
     {0, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME},
     ALLOW,
     ALLOW,
     ALLOW},
    {"futex", {0, FUTEX_WAKE_OP}, TRAP, TRAP, ALLOW}, /* writes */
    {"futex", {0, FUTEX_CMP_REQUEUE}, TRAP, TRAP, ALLOW},
    {"futex", {0, FUTEX_LOCK_PI}, TRAP, TRAP, ALLOW},
    {"clock_gettime", {1}, ALLOW, ALLOW, ALLOW},
    {"exit", {0}, ALLOW, ALLOW, ALLOW},
    {"exit_group", {0}, ALLOW, ALLOW, ALLOW},
    {"sched_yield", {0}, TRAP, ALLOW, ALLOW},
    {"set_robust_list",
     {0},
     TRAP,
     TRAP,
     ALLOW}, /* the system writes through it when the thread ends: behind "done" */
    {"rseq", {0}, TRAP, TRAP, ALLOW},
    {"rt_sigreturn", {0}, TRAP, TRAP, ALLOW},
    {"openat", {0, 0, O_RDONLY}, TRAP, TRAP, ALLOW},
    {"openat", {0, 0, O_WRONLY}, TRAP, TRAP, ERROR},
    {"openat", {0, 0, O_RDWR}, TRAP, TRAP, ERROR},
    {"read", {0}, TRAP, TRAP, ALLOW},
    {"write", {1}, TRAP, TRAP, TRAP},
    {"pwrite64", {1}, TRAP, TRAP, TRAP},
    {"fork", {0}, TRAP, TRAP, TRAP},
    {"clone", {0}, TRAP, TRAP, TRAP},
    {"clone3", {0}, TRAP, TRAP, TRAP},
    {"execve", {0}, TRAP, TRAP, TRAP},
    {"execveat", {0}, TRAP, TRAP, TRAP},
    {"socket", {0}, TRAP, TRAP, TRAP},
    {"memfd_create", {0}, TRAP, TRAP, TRAP},
    {"shmget", {0}, TRAP, TRAP, TRAP},
    {"sched_setaffinity", {0}, TRAP, TRAP, ALLOW},
    {"sched_setscheduler", {0}, TRAP, TRAP, TRAP},
    {"prctl", {0}, TRAP, TRAP, TRAP},
    {"ptrace", {0}, TRAP, TRAP, TRAP},
    {"process_vm_writev", {0}, TRAP, TRAP, TRAP},
    {"kill", {0}, TRAP, TRAP, TRAP},
    {"tgkill", {0}, TRAP, TRAP, TRAP},
    {"userfaultfd", {0}, TRAP, TRAP, TRAP},
    {"io_uring_setup", {0}, TRAP, TRAP, TRAP},
    {"bpf", {0}, TRAP, TRAP, TRAP},
};

static int number_of(const char *call) { return seccomp_syscall_resolve_name(call); }

static void expect(const kli_filter *f, size_t row, verdict wanted, const char *filter) {
    int number = number_of(DECISIONS[row].call);
    if (number < 0) return; /* not on this architecture */
    verdict said = verdict_of(f, number, DECISIONS[row].args);
    if (said != wanted)
        fail_msg("row %zu: %s says %d to %s, not %d", row, filter, said, DECISIONS[row].call,
                 wanted);
}

static void test_filters__each_decision(void **state) {
    kli_filter kernel, threads, driver;
    (void)state;
    assert_true(kli_filter_build(&kernel, KLI_FILTER_KERNEL) &&
                kli_filter_build(&threads, KLI_FILTER_THREADS) &&
                kli_filter_build(&driver, KLI_FILTER_DRIVER));
    for (size_t i = 0; i < KL_COUNT(DECISIONS); i++) {
        expect(&kernel, i, DECISIONS[i].kernel, "kernel");
        expect(&threads, i, DECISIONS[i].threads, "threads");
        expect(&driver, i, DECISIONS[i].driver, "driver");
    }
    kli_filter_fini(&kernel);
    kli_filter_fini(&threads);
    kli_filter_fini(&driver);
}

static bool is_decided(int number) {
    for (size_t i = 0; i < KL_COUNT(DECISIONS); i++)
        if (number_of(DECISIONS[i].call) == number) return true;
    return false;
}

/* Whatever is in no row above is forbidden to kernels, with any arguments: a call that is added to
 * a filter has to be added there. */
static void test_filters__everything_else_is_forbidden_to_kernels(void **state) {
    static const uint64_t ARGUMENTS[][6] = {
        {0}, {0, 0, RW, OWN}, {1, 1, 1, 1, 1, 1}, {~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull}};
    static const kli_filter_kind KINDS[] = {KLI_FILTER_KERNEL, KLI_FILTER_THREADS};
    (void)state;
    for (size_t kind = 0; kind < KL_COUNT(KINDS); kind++) {
        kli_filter f;
        assert_true(kli_filter_build(&f, KINDS[kind]));
        for (int number = 0; number < LAST_CALL; number++)
            for (size_t k = 0; k < KL_COUNT(ARGUMENTS) && !is_decided(number); k++)
                if (verdict_of(&f, number, ARGUMENTS[k]) != TRAP)
                    fail_msg("call %d is allowed and in no row", number);
        kli_filter_fini(&f);
    }
}

static void test_filters__another_architecture_is_forbidden(void **state) {
    kli_filter f;
    struct seccomp_data data = {.nr = 0, .arch = AUDIT_ARCH_I386};
    (void)state;
    for (int kind = KLI_FILTER_KERNEL; kind <= KLI_FILTER_DRIVER; kind++) {
        assert_true(kli_filter_build(&f, (kli_filter_kind)kind));
        for (data.nr = 0; data.nr < LAST_CALL; data.nr++)
            assert_int_not_equal(decide(&f, &data) & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ALLOW);
        data.arch = ARCHITECTURE;
        for (data.nr = 0x40000000; data.nr < 0x40000000 + LAST_CALL; data.nr++) /* x32 */
            assert_int_not_equal(decide(&f, &data) & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ALLOW);
        data.arch = AUDIT_ARCH_I386;
        kli_filter_fini(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters__each_decision),
        cmocka_unit_test(test_filters__everything_else_is_forbidden_to_kernels),
        cmocka_unit_test(test_filters__another_architecture_is_forbidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
