/* runners.c - the table of everything that can execute kernels, and what its rows share.
 *
 * A new backend is one row here, one row in backends.c and the files behind them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_ops.h"
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>

extern const kli_runner_ops kli_runner_cpu, kli_runner_opencl, kli_runner_cuda;

static const kli_runner_ops *const RUNNERS_ROWS[] = {&kli_runner_cpu, &kli_runner_opencl,
                                                     &kli_runner_cuda};

const kli_runner_ops *kli_runner_ops_each(int i) {
    return i >= 0 && i < (int)KL_COUNT(RUNNERS_ROWS) ? RUNNERS_ROWS[i] : NULL;
}

int kli_fault(const kli_runner_ctx *c, kl_fault_kind kind, const char *fmt, ...) {
    va_list args;
    KL_ASSERT(kind > KL_FAULT_NONE && kind <= KL_FAULT_INPUT);
    c->reply->fault = kind;
    va_start(args, fmt);
    vsnprintf(c->reply->text, sizeof c->reply->text, fmt, args);
    va_end(args);
    return 1;
}

bool kli_artefact_read(kl_str *out, kl_arena *a, int fd, size_t most_bytes) {
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size < 1 || (size_t)info.st_size > most_bytes)
        return false;
    const size_t bytes = (size_t)info.st_size;
    char *to = kl_arena_alloc(a, 1, bytes + 1);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, to + done, bytes - done, (off_t)done);
        if (n <= 0) return false;
        done += (size_t)n;
    }
    *out = (kl_str){to, bytes};
    return true;
}

/* ---- arguments --------------------------------------------------------------------------- */

size_t kli_ctx_number(const kli_runner_ctx *c, const kl_value *v, uint64_t *bits) {
    static const kl_dtype TYPES[] = {[KL_VALUE_I32] = KL_I32,
                                     [KL_VALUE_I64] = KL_I64,
                                     [KL_VALUE_F32] = KL_F32,
                                     [KL_VALUE_F64] = KL_F64,
                                     [KL_VALUE_SCALAR] = KL_DTYPE_END};
    kl_dtype type = v->kind < KL_COUNT(TYPES) ? TYPES[v->kind] : 0;
    KL_ASSERT(type != KL_DTYPE_END || v->index < c->plan.n_tensors);
    if (type == KL_DTYPE_END) type = (kl_dtype)c->plan.tensors[v->index].dtype;
    *bits = 0;
    if (v->kind == KL_VALUE_I32 || type == KL_I64) /* a double would round it */
        memcpy(bits, &v->i, kl_dtype_bytes(type));
    else if (type)
        kl_dtype_store(type, bits, 0, v->f);
    return type ? kl_dtype_bytes(type) : 0;
}
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the low bytes of a word are taken for the narrower number"
#endif

/* ---- addresses --------------------------------------------------------------------------- */

char *kli_ctx_copy(const kli_runner_ctx *c, kli_region r, uint32_t copy) {
    KL_ASSERT(copy < kli_region_copies(&c->layout, r));
    return c->pages[r] + kli_region_stride(&c->layout, r) * copy;
}

char *kli_ctx_tensor(const kli_runner_ctx *c, uint32_t tensor, uint32_t set, uint32_t slot) {
    KL_ASSERT(tensor < c->plan.n_tensors);
    const bool input = c->plan.tensors[tensor].role == KL_ROLE_INPUT;
    return kli_ctx_copy(c, input ? KLI_INPUTS : KLI_OUTPUTS, input ? set : slot) +
           c->layout.tensor_offset[tensor];
}

char *kli_ctx_buffer(const kli_runner_ctx *c, uint32_t buffer, uint32_t slot) {
    KL_ASSERT(buffer < c->plan.n_buffers);
    return kli_ctx_copy(c, KLI_SCRATCH, slot) + c->layout.buffer_offset[buffer];
}

/* Guard pages that can be touched are canaries like the slack: filled before each use, so that they
 * carry no notes, and looked at. */
static kli_zone guarded(kli_zone z, uint32_t slot) {
    if (slot < KLI_FORBIDDEN_COPIES) return z;
    z.page = z.low;
    z.page_end = z.high;
    return z;
}

/* Slots that `calls` calls use. */
static uint32_t slots_of(const kli_runner_ctx *c, uint32_t calls) {
    return calls < c->layout.n_slots ? calls : c->layout.n_slots;
}

void kli_ctx_scratch_fill(const kli_runner_ctx *c, uint32_t first, uint32_t calls,
                          uint32_t poison) {
    for (uint32_t j = 0; j < slots_of(c, calls); j++) {
        const uint32_t slot = (first + j) % c->layout.n_slots;
        for (kli_piece p = {0}; kli_piece_next(&p, &c->plan, &c->layout);) {
            if (p.region != KLI_SCRATCH) continue;
            char *base = kli_ctx_copy(c, KLI_SCRATCH, slot);
            kli_slack_fill(base, guarded(p.zone, slot), (uint8_t)~poison);
            memset(base + p.zone.data, p.zero ? 0 : (int)poison, p.bytes);
        }
    }
}

int kli_ctx_scratch_check(const kli_runner_ctx *c, uint32_t first, uint32_t calls,
                          uint32_t poison) {
    for (uint32_t j = 0; j < slots_of(c, calls); j++) {
        const uint32_t slot = (first + j) % c->layout.n_slots;
        for (kli_piece p = {0}; kli_piece_next(&p, &c->plan, &c->layout);)
            if (p.region == KLI_SCRATCH &&
                !kli_slack_whole(kli_ctx_copy(c, KLI_SCRATCH, slot), guarded(p.zone, slot),
                                 (uint8_t)~poison))
                return kli_fault(c, KL_FAULT_GUARD, "wrote outside buffer `%s`", p.name);
    }
    return 0;
}

/* ---- faults ------------------------------------------------------------------------------ */

static int name_fault(const kli_runner_ctx *c, bool is_write, const kli_piece *p, uint64_t at) {
    const char *did = is_write ? "wrote" : "read";
    if (at >= p->zone.page && at < p->zone.page_end && p->region == KLI_INPUTS && is_write)
        return kli_fault(c, KL_FAULT_INPUT, "wrote to input `%s`", p->name);
    if (at < p->zone.page)
        return kli_fault(c, KL_FAULT_GUARD, "%s before the beginning of `%s`", did, p->name);
    return kli_fault(c, KL_FAULT_GUARD, "%s past the end of `%s`", did, p->name);
}

/* A guard page between two tensors belongs to the first, which ends before it: running past the end
 * is the common mistake. */
static int piece_at(const kli_runner_ctx *c, bool is_write, kli_region r, uint64_t at) {
    for (kli_piece p = {0}; kli_piece_next(&p, &c->plan, &c->layout);)
        if (p.region == r && at >= p.zone.low && at < p.zone.high)
            return name_fault(c, is_write, &p, at);
    return 0;
}

int kli_ctx_fault_at(const kli_runner_ctx *c, int sig, uintptr_t address, bool is_write) {
    c->reply->signal = sig;
    for (kli_region r = 0; r < KLI_REGIONS; r++) {
        const uint64_t at = address - (uintptr_t)c->pages[r]; /* wraps where it lies before them */
        if (c->pages[r] && at < c->page_bytes[r] &&
            piece_at(c, is_write, r, at % kli_region_stride(&c->layout, r)))
            return 1;
    }
    const char *name = sigabbrev_np(sig);
    if (sig != SIGSEGV && sig != SIGBUS)
        return kli_fault(c, KL_FAULT_CRASH, "SIG%s", name ? name : "?");
    return kli_fault(c, KL_FAULT_CRASH, "SIG%s %s", name,
                     address < 65536 ? "through a null pointer"
                                     : "outside every tensor and buffer");
}

/* Of the page fault's error code on x86-64, bit 1 is a write. */
bool kli_fault_is_write(const void *context) {
#if defined(__x86_64__)
    return ((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
    return (void)context, false;
#endif
}

/* ---- handshake --------------------------------------------------------------------------- */

static void runners_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value) {
    (void)syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

void kli_control_arm(kl_control *c, uint32_t sequence, bool spin) {
    atomic_store_explicit(&c->armed, sequence, memory_order_release);
    if (!spin) futex(&c->armed, FUTEX_WAKE, 1);
    for (;;) {
        uint32_t go = atomic_load_explicit(&c->go, memory_order_acquire);
        if (go == sequence) return;
        if (spin)
            runners_relax();
        else
            futex(&c->go, FUTEX_WAIT, go);
    }
}

void kli_control_done(kl_control *c, uint32_t sequence, bool spin) {
    atomic_store_explicit(&c->done, sequence, memory_order_release);
    if (!spin) futex(&c->done, FUTEX_WAKE, 1);
}
