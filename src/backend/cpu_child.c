/* cpu_child.c - a forked process in which one candidate's code runs: how it begins, how its end is
 * understood.
 *
 *   runner (never runs candidate code)       child (one run, or one timed batch)
 *   fork ---------------------------------->  close descriptors, settle pages, enter the filter
 *   waitpid                                   call the kernel; a fault writes the report and ends
 * the process report + status -> fault kind and text
 *
 * Not here: what is called (runner_cpu.c).  SPDX-License-Identifier: Apache-2.0 */
#include "cpu_child.h"
#include <errno.h>
#include <link.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CPU_CHILD_MADV_POPULATE_READ
#define CPU_CHILD_MADV_POPULATE_READ 22
#define CPU_CHILD_MADV_POPULATE_WRITE 23
#endif
#define EXIT_CAUGHT 97
#define STACK_SETTLED (128u << 10)
#define PAGE 4096u
#define CACHE_LINE 64u
#define FAULT_AROUND (64u << 10)

/* ---- faults ------------------------------------------------------------------------------ */

static kli_child_report *caught;
static bool ends_quietly;

kli_child_report *kli_child_report_open(void) {
    void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void cpu_child_on_fault(int sig, siginfo_t *info, void *context) {
    if (caught && !caught->signal) {
        caught->signal = (uint32_t)sig;
        caught->address = sig == SIGSYS ? 0 : (uint64_t)(uintptr_t)info->si_addr;
        caught->code = sig == SIGSYS ? (uint32_t)info->si_syscall : (uint32_t)info->si_code;
        caught->is_write = kli_fault_is_write(context);
    }
    if (ends_quietly) _exit(EXIT_CAUGHT);
    signal(sig, SIG_DFL);
    raise(sig);
}

void kli_child_catch(kli_child_report *report, bool contained) {
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
    static char stack[64u << 10]; /* a stack overflow needs another stack to be told */
    caught = report;
    ends_quietly = contained;
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_sigaction = cpu_child_on_fault,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t i = 0; i < KL_COUNT(SIGNALS); i++) sigaction(SIGNALS[i], &action, NULL);
}

static int forbidden_call(const kli_runner_ctx *c, uint32_t number) {
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);
    c->reply->signal = SIGSYS;
    int code =
        kli_fault(c, KL_FAULT_CRASH, "forbidden system call %s", name ? name : "of unknown number");
    free(name);
    return code;
}

int kli_child_wait(const kli_runner_ctx *c, pid_t child, const kli_child_report *report,
                   uint32_t sequence) {
    int status = 0;
    KL_ASSERT(child > 1); /* 0 and -1 would wait for others */
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    c->reply->wall_ns = report->wall_ns;
    if (WIFSIGNALED(status)) return kli_ctx_fault_at(c, WTERMSIG(status), UINTPTR_MAX, false);
    if (WEXITSTATUS(status) == EXIT_CAUGHT && report->signal == SIGSYS)
        return forbidden_call(c, report->code);
    if (WEXITSTATUS(status) == EXIT_CAUGHT && report->signal && report->signal < 64)
        return kli_ctx_fault_at(c, (int)report->signal, (uintptr_t)report->address,
                                report->is_write);
    if (atomic_load(&report->finished) != sequence || WEXITSTATUS(status) != 0)
        return kli_fault(c, KL_FAULT_PROTOCOL, "the kernel ended its process instead of returning");
    return 0;
}

/* ---- beginning --------------------------------------------------------------------------- */

pid_t kli_child_fork(kli_child_report *report) {
    memset(report, 0, PAGE); /* the whole page: one child must not leave notes for the next */
    pid_t runner = getpid();
    pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != runner) _exit(1);
    return 0;
}

void kli_child_enter(void) {
    prctl(PR_SET_DUMPABLE, 0);
    (void)close_range(0, ~0u,
                      0); /* the socket above all: a kernel must not answer for its runner */
}

/* Pages that the calls will use: tables filled for all of them. */
static void populate(char *from, char *to, bool writable) {
    (void)madvise(from, (size_t)(to - from),
                  writable ? CPU_CHILD_MADV_POPULATE_WRITE : CPU_CHILD_MADV_POPULATE_READ);
}

/* Populating fills page tables, only a touch fills the translation buffers.  Every line of the
 * cache: what the other side and the gate left there, by writing an output or by reading it, would
 * else make one half of a pair some percent faster than the other. */
static void touch(char *from, char *to, bool writable) {
    (void)writable;
    for (const volatile char *p = from; p < to; p += CACHE_LINE) (void)*p;
}

typedef void visit(char *from, char *to, bool writable);

static void visit_pieces(visit *f, const kli_runner_ctx *c, uint32_t call) {
    for (kli_piece p = {0}; kli_piece_next(&p, &c->plan, &c->layout);) {
        char *base = kli_ctx_copy(c, p.region, call % kli_region_copies(&c->layout, p.region));
        f(base + p.zone.page, base + p.zone.page_end, p.region != KLI_INPUTS);
    }
}

/* Copies [from, to) of a region whose guard pages are pages like any other. */
static void populate_copies(const kli_runner_ctx *c, kli_region r, uint32_t from, uint32_t to) {
    if (from >= to || !kli_region_bytes(&c->layout, r)) return;
    char *base = kli_ctx_copy(c, r, from);
    populate(base, base + (to - from) * kli_region_stride(&c->layout, r), r != KLI_INPUTS);
}

/* `calls` copies of a region from `first` on, around its end; those with forbidden guards are left
 * to visit_pieces, which goes around the guards. */
static void populate_region(const kli_runner_ctx *c, kli_region r, uint32_t first, uint32_t calls) {
    const uint32_t copies = kli_region_copies(&c->layout, r), from = first % copies,
                   n = calls < copies ? calls : copies, end = from + n < copies ? from + n : copies,
                   low = from > KLI_FORBIDDEN_COPIES ? from : KLI_FORBIDDEN_COPIES;
    populate_copies(c, r, low, end);
    populate_copies(c, r, KLI_FORBIDDEN_COPIES, from + n - end);
}

static void populate_pieces(const kli_runner_ctx *c, uint32_t first, uint32_t calls) {
    const kl_layout *l = &c->layout;
    for (int r = 0; r < KLI_REGIONS; r++) populate_region(c, (kli_region)r, first, calls);
    for (uint32_t j = first; j < first + calls; j++)
        if (j % l->n_sets < KLI_FORBIDDEN_COPIES || j % l->n_slots < KLI_FORBIDDEN_COPIES)
            visit_pieces(populate, c, j);
}

/* A fault on a page of a file maps its neighbours in memory with it, as far as they lie in one
 * aligned stretch: many times faster than asking for each. */
static void touch_file(uintptr_t from, uintptr_t to) {
    for (uintptr_t at = from; at < to; at = (at | (FAULT_AROUND - 1)) + 1)
        (void)*(const volatile char *)at;
}

static bool is_called(const kli_object *o, const struct dl_phdr_info *info) {
    bool called = false;
    for (int i = 0; i < info->dlpi_phnum && !called; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const uintptr_t from = info->dlpi_addr + h->p_vaddr;
        called = h->p_type == PT_LOAD && kli_object_imports_from(o, from, from + h->p_memsz);
    }
    return called;
}

/* Code and data of the libraries that a kernel calls, or of all: a fork shares them, so the first
 * write to a page copies it and the first call maps it.  This program's own data, which have no
 * name here and are not written in the interval, are left as they are. */
static int settle_library(struct dl_phdr_info *info, size_t size, void *object) {
    (void)size;
    if (object && info->dlpi_name[0] && !is_called(object, info)) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const bool writable = h->p_flags & PF_W;
        if (h->p_type != PT_LOAD || !h->p_memsz || (writable && !info->dlpi_name[0])) continue;
        uintptr_t from = (info->dlpi_addr + h->p_vaddr) & ~(uintptr_t)(PAGE - 1);
        uintptr_t to =
            (info->dlpi_addr + h->p_vaddr + h->p_memsz + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
        /* Write-populating fails where relocated data was made read-only; the rest of the segment
         * is then read. */
        if (!writable)
            touch_file(from, to);
        else if (madvise((void *)from, to - from, CPU_CHILD_MADV_POPULATE_WRITE) != 0)
            (void)madvise((void *)from, to - from, CPU_CHILD_MADV_POPULATE_READ);
    }
    return 0;
}

static void __attribute__((noinline)) settle_stack(void) {
    volatile char room[STACK_SETTLED];
    for (size_t i = 0; i < sizeof room; i += PAGE) room[i] = 0;
}

static uint32_t distinct_calls(const kl_layout *l, uint32_t calls) {
    return calls < l->n_slots * l->n_sets ? calls : l->n_slots * l->n_sets;
}

void kli_child_touch(const kli_runner_ctx *c, uint32_t first, uint32_t calls) {
    const uint32_t distinct = distinct_calls(&c->layout, calls);
    for (uint32_t j = first; j < first + distinct; j++) visit_pieces(touch, c, j);
}

void kli_child_settle_code(const kli_object *o) {
    settle_stack();
    (void)dl_iterate_phdr(settle_library, (void *)(uintptr_t)o);
}

void kli_child_settle_data(const kli_runner_ctx *c, uint32_t first, uint32_t calls) {
    populate_pieces(c, first, distinct_calls(&c->layout, calls));
    kli_child_touch(c, first, calls);
}
