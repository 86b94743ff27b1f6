/* runners.c - the table of everything that can execute kernels, and what its rows share.
 *
 * A new backend is one row here, one row in backends.c and the files behind them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_ops.h"
#include "layout.h"
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const kli_runner_ops kli_runner_cpu, kli_runner_opencl, kli_runner_cuda;

static const kli_runner_ops *const RUNNERS_ROWS[] = {&kli_runner_cpu, &kli_runner_opencl,
                                                     &kli_runner_cuda};

const kli_runner_ops *kli_runner_ops_each(int i) {
    return i >= 0 && i < (int)KL_COUNT(RUNNERS_ROWS) ? RUNNERS_ROWS[i] : NULL;
}

int kli_reply_fault(kl_msg_reply *reply, kl_fault_kind kind, int sig, const char *fmt, ...) {
    va_list args;
    reply->fault = kind;
    reply->signal = sig;
    va_start(args, fmt);
    (void)vsnprintf(reply->text, sizeof reply->text, fmt, args);
    va_end(args);
    return 1;
}

/* ---- addresses --------------------------------------------------------------------------- */

char *kli_ctx_tensor(const kli_runner_ctx *c, uint32_t tensor, uint32_t set, uint32_t slot) {
    KL_ASSERT(tensor < c->plan.n_tensors && set < c->layout.n_sets && slot < c->layout.n_slots);
    uint64_t offset = c->layout.tensor_offset[tensor];
    if (c->plan.tensors[tensor].role == KLI_ROLE_INPUT)
        return c->inputs + c->layout.set_bytes * set + offset;
    return c->outputs + c->layout.slot_bytes * slot + offset;
}

char *kli_ctx_buffer(const kli_runner_ctx *c, uint32_t buffer, uint32_t slot) {
    KL_ASSERT(buffer < c->plan.n_buffers && slot < c->layout.n_slots);
    return c->scratch + c->layout.scratch_bytes * slot + c->layout.buffer_offset[buffer];
}

/* Guard pages that can be touched are canaries like the slack: filled before each use, so that they
 * carry no notes, and looked at. */
static kli_zone guarded(kli_zone z, uint32_t slot) {
    if (slot < KLI_FORBIDDEN_COPIES) return z;
    z.page = z.low;
    z.page_end = z.high;
    return z;
}

void kli_ctx_scratch_fill(const kli_runner_ctx *c, uint32_t slot, uint8_t poison) {
    char *base = c->scratch + c->layout.scratch_bytes * slot;
    for (uint32_t i = 0; i < c->plan.n_buffers; i++) {
        const kl_plan_buffer *b = &c->plan.buffers[i];
        kli_zone z = kli_zone_of(c->layout.buffer_offset[i], b->bytes);
        kli_slack_fill(base, guarded(z, slot), (uint8_t)(poison ^ 0xFF));
        memset(base + z.data, b->zero ? 0 : poison, b->bytes);
    }
}

int kli_ctx_scratch_check(const kli_runner_ctx *c, uint32_t slot, uint8_t poison,
                          kl_msg_reply *reply) {
    const char *base = c->scratch + c->layout.scratch_bytes * slot;
    for (uint32_t i = 0; i < c->plan.n_buffers; i++) {
        kli_zone z = kli_zone_of(c->layout.buffer_offset[i], c->plan.buffers[i].bytes);
        if (!kli_slack_whole(base, guarded(z, slot), (uint8_t)(poison ^ 0xFF)))
            return kli_reply_fault(reply, KL_FAULT_GUARD, 0, "wrote outside buffer `%s`",
                                   c->plan.buffers[i].name);
    }
    return 0;
}

/* ---- faults ------------------------------------------------------------------------------ */

static int name_fault(kl_msg_reply *reply, int sig, bool is_write, bool is_input, kli_zone z,
                      uint64_t at, const char *name) {
    const char *did = is_write ? "wrote" : "read";
    if (at >= z.page && at < z.page_end && is_input && is_write)
        return kli_reply_fault(reply, KL_FAULT_INPUT, sig, "wrote to input `%s`", name);
    if (at < z.page)
        return kli_reply_fault(reply, KL_FAULT_GUARD, sig, "%s before the beginning of `%s`", did,
                               name);
    return kli_reply_fault(reply, KL_FAULT_GUARD, sig, "%s past the end of `%s`", did, name);
}

/* A guard page between two tensors belongs to the first, which ends before it: running past the end
 * is the common mistake. */
static int tensor_at(const kli_runner_ctx *c, int sig, bool is_write, bool inputs, uint64_t at,
                     kl_msg_reply *reply) {
    for (uint32_t i = 0; i < c->plan.n_tensors; i++) {
        const kl_plan_tensor *t = &c->plan.tensors[i];
        if (t->role == KLI_ROLE_SCALAR || (t->role == KLI_ROLE_INPUT) != inputs) continue;
        kli_zone z = kli_zone_of(c->layout.tensor_offset[i], t->bytes);
        if (at >= z.low && at < z.high)
            return name_fault(reply, sig, is_write, inputs, z, at, t->name);
    }
    return 0;
}

static int buffer_at(const kli_runner_ctx *c, int sig, bool is_write, uint64_t at,
                     kl_msg_reply *reply) {
    for (uint32_t i = 0; i < c->plan.n_buffers; i++) {
        kli_zone z = kli_zone_of(c->layout.buffer_offset[i], c->plan.buffers[i].bytes);
        if (at >= z.low && at < z.high)
            return name_fault(reply, sig, is_write, false, z, at, c->plan.buffers[i].name);
    }
    return 0;
}

static bool runners_within(uintptr_t address, const char *base, size_t bytes) {
    return base && address >= (uintptr_t)base && address - (uintptr_t)base < bytes;
}

int kli_ctx_fault_at(const kli_runner_ctx *c, int sig, uintptr_t address, bool is_write,
                     kl_msg_reply *reply) {
    int named = 0;
    if (runners_within(address, c->inputs, c->inputs_bytes))
        named = tensor_at(c, sig, is_write, true,
                          (address - (uintptr_t)c->inputs) % c->layout.set_bytes, reply);
    else if (runners_within(address, c->outputs, c->outputs_bytes))
        named = tensor_at(c, sig, is_write, false,
                          (address - (uintptr_t)c->outputs) % c->layout.slot_bytes, reply);
    else if (runners_within(address, c->scratch, c->scratch_bytes))
        named = buffer_at(c, sig, is_write,
                          (address - (uintptr_t)c->scratch) % c->layout.scratch_bytes, reply);
    if (named) return named;
    if ((sig == SIGSEGV || sig == SIGBUS) && address < 65536)
        return kli_reply_fault(reply, KL_FAULT_CRASH, sig, "SIG%s through a null pointer",
                               sigabbrev_np(sig));
    if (sig == SIGSEGV || sig == SIGBUS)
        return kli_reply_fault(reply, KL_FAULT_CRASH, sig, "SIG%s outside every tensor and buffer",
                               sigabbrev_np(sig));
    return kli_reply_fault(reply, KL_FAULT_CRASH, sig, "SIG%s",
                           sigabbrev_np(sig) ? sigabbrev_np(sig) : "?");
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
