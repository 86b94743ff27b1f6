/* runner_opencl.c - runs OpenCL on a CPU, in two phases that are two processes.
 *
 *   LOAD   a child opens the device, loads the program and executes one work-group of every launch
 * on pages of its own: the driver compiles code for the local size only then, starting its linker,
 * and keeps it in its cache.  The child is confined like a compiler, sees no input of a task, and
 * is killed with all it started. Then this process opens the device, for which a fork would have
 * come too late, and finds the cache warm. BIND   wraps the shared pages (CL_MEM_USE_HOST_PTR) and
 * closes the filter: from here on no program starts and no file is written, by any thread RUN, TIME
 * kernels run in this process: a crash ends it and is named by its handler
 *
 * OpenCL C has no state between launches (program-scope variables are refused by build or
 * inspection), so a batch needs no process of its own.  Not here: devices with memory of their own;
 * other shapes behind a closed filter (runner.c starts another process). SPDX-License-Identifier:
 * Apache-2.0 */
#include "isolation.h"
#include "opencl_api.h"
#include "opencl_probe.h"
#include "runner_ops.h"
#include "base/fs.h"
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPECIALISE_NS 20000000000ll /* the driver's compiler, for one launch */
#define AFTERWARDS_NS 20000000ll    /* from its object to its end: nothing depends on it any more */
#define INVALID_ARG_VALUE (-50)     /* a kind of argument that OpenCL does not have */
#define SMALL_GRID 65535u           /* PoCL compiles grids narrower than this differently */

typedef struct {
    kli_opencl_device device;
    bool opened, confined;
    cl_program program;
    cl_kernel kernels[KL_MAX_LAUNCHES];
    uint32_t n_kernels;
    cl_mem *memory; /* one per copy of every tensor and buffer ... */
    uint32_t n_memory;
    uint32_t first[KL_MAX_TENSORS + KL_MAX_BUFFERS]; /* ... where those of a piece begin */
    kli_filter filter;
    kl_plan plan; /* what the kernels were made for */
    ino_t artefact;
} opencl_state;

/* ---- faults ------------------------------------------------------------------------------ */

/* What the handler needs; a fault outside of a kernel's time is not a kernel's. */
static struct {
    const kli_runner_ctx *ctx;
    uint32_t reply_kind; /* 0: there is nothing to answer */
    bool in_kernel;
} running;

static void note_request(const kli_runner_ctx *c, uint32_t reply_kind) {
    running.ctx = c;
    running.reply_kind = reply_kind;
    running.in_kernel = reply_kind == KL_MSG_DONE;
}

/* The process is lost, its socket is not: say what happened, then end.  snprintf on plain integers
 * and text does not allocate. */
static void runner_opencl_on_fault(int sig, siginfo_t *info, void *context) {
    const kli_runner_ctx *c = running.ctx;
    if (!running.reply_kind) _exit(1);
    c->reply->head = (kl_msg_head){running.reply_kind, KL_WIRE_VERSION};
    c->reply->signal = sig;
    if (sig == SIGSYS)
        kli_fault(c, KL_FAULT_CRASH, "forbidden system call number %d", info->si_syscall);
    else if (running.in_kernel)
        kli_ctx_fault_at(c, sig, (uintptr_t)info->si_addr, kli_fault_is_write(context));
    else
        kli_fault(c, KL_FAULT_CRASH, "SIG%s outside a kernel", sigabbrev_np(sig));
    (void)send(KL_WIRE_FD, c->reply, sizeof *c->reply, MSG_NOSIGNAL);
    _exit(1);
}

static void catch_faults(void) {
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT};
    struct sigaction action = {.sa_sigaction = runner_opencl_on_fault, .sa_flags = SA_SIGINFO};
    for (size_t i = 0; i < KL_COUNT(SIGNALS); i++) sigaction(SIGNALS[i], &action, NULL);
}

static int runner_opencl_refuse(const kli_runner_ctx *c, cl_int code, const char *what) {
    return kli_fault(c, KL_FAULT_REFUSED, "%s: %s", what, kli_opencl_error(code));
}

/* ---- open, load -------------------------------------------------------------------------- */

/* The library alone: threads are fixed by the first call into it, and their number comes with the
 * plan. */
static int opencl_open(kli_runner_ctx *c) {
    char why[256] = "";
    static opencl_state state;
    opencl_state *s = c->state = &state;
    if (!kli_opencl_load(why, sizeof why)) return kli_fault(c, KL_FAULT_DEVICE, "%s", why);
    if (!c->trusted && kli_filter_build(&s->filter, KLI_FILTER_DRIVER))
        c->reply->isolation |= KLI_ISOLATED_SECCOMP;
    return 0;
}

static void release_memory(opencl_state *s) {
    for (uint32_t i = 0; i < s->n_memory; i++)
        if (s->memory[i]) (void)s->device.api->clReleaseMemObject(s->memory[i]);
    free(s->memory);
    s->memory = NULL;
    s->n_memory = 0;
}

static void release_kernels(opencl_state *s) {
    for (uint32_t i = 0; i < s->n_kernels; i++) (void)s->device.api->clReleaseKernel(s->kernels[i]);
    if (s->program) (void)s->device.api->clReleaseProgram(s->program);
    s->n_kernels = 0;
    s->program = NULL;
}

static int make_program(opencl_state *s, const kli_runner_ctx *c) {
    kl_str binary;
    cl_int code, status;
    if (!kli_artefact_read(&binary, c->arena, c->artefact_fd, KLI_MAX_ARTEFACT_BYTES))
        return kli_fault(c, KL_FAULT_REFUSED, "the program binary cannot be read");
    s->program = s->device.api->clCreateProgramWithBinary(
        s->device.context, 1, &s->device.device, &binary.len,
        (const unsigned char **)(uintptr_t)&binary.ptr, &status, &code);
    if (code == CL_SUCCESS)
        code = s->device.api->clBuildProgram(s->program, 1, &s->device.device, "", NULL, NULL);
    return code == CL_SUCCESS ? 0 : runner_opencl_refuse(c, code, "the program does not load");
}

static void launch_sizes(const kl_plan_launch *l, cl_uint *dims, size_t *global, size_t *local,
                         const size_t **local_or_null) {
    *dims = l->grid[2] > 1 ? 3 : l->grid[1] > 1 ? 2 : 1;
    if (l->block[2] > 1) *dims = 3;
    if (l->block[1] > 1 && *dims < 2) *dims = 2;
    for (int i = 0; i < 3; i++) {
        global[i] = l->grid[i] ? l->grid[i] : 1;
        local[i] = l->block[i] ? l->block[i] : 1;
    }
    *local_or_null = l->block[0] ? local : NULL;
}

static cl_int enqueue(const opencl_state *s, const kli_runner_ctx *c, uint32_t launch) {
    size_t global[3], local[3];
    const size_t *chosen;
    cl_uint dims;
    launch_sizes(&c->plan.launches[launch], &dims, global, local, &chosen);
    return s->device.api->clEnqueueNDRangeKernel(s->device.queue, s->kernels[launch], dims, NULL,
                                                 global, chosen, 0, NULL, NULL);
}

static uint32_t work_group_number(const opencl_state *s, uint32_t launch, cl_uint which,
                                  size_t bytes) {
    uint64_t value = 0; /* little-endian hosts only: a narrower one fills the low half */
    return s->device.api->clGetKernelWorkGroupInfo(s->kernels[launch], s->device.device, which,
                                                   bytes, &value, NULL) == CL_SUCCESS
               ? (uint32_t)value
               : 0;
}

static int note_all(const opencl_state *s, const kli_runner_ctx *c) {
    for (uint32_t i = 0; i < c->plan.n_launches; i++)
        c->reply->resources[i] = (kl_resources){
            .static_smem = work_group_number(s, i, CL_KERNEL_LOCAL_MEM_ID, sizeof(uint64_t)),
            .local_bytes = work_group_number(s, i, CL_KERNEL_PRIVATE_MEM_ID, sizeof(uint64_t)),
            .max_threads = work_group_number(s, i, CL_KERNEL_WORK_GROUP_ID, sizeof(size_t))};
    c->reply->n_resources = c->plan.n_launches;
    return 0;
}

static int make_kernels(opencl_state *s, const kli_runner_ctx *c) {
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        cl_int code;
        s->kernels[i] = s->device.api->clCreateKernel(s->program, c->plan.launches[i].entry, &code);
        if (code == -46)
            return kli_fault(c, KL_FAULT_REFUSED, "no kernel `%s` in the program",
                             c->plan.launches[i].entry);
        if (code != CL_SUCCESS) return runner_opencl_refuse(c, code, c->plan.launches[i].entry);
        s->n_kernels = i + 1;
    }
    return 0;
}

/* On fresh pages with the same plan everything compiled still fits; nothing else could be compiled
 * behind the filter. */
static bool is_the_same(opencl_state *s, const kli_runner_ctx *c) {
    struct stat info;
    ino_t before = s->artefact;
    bool same_plan = memcmp(&s->plan, &c->plan, sizeof s->plan) == 0;
    s->plan = c->plan;
    s->artefact = fstat(c->artefact_fd, &info) == 0 ? info.st_ino : 0;
    return same_plan && s->artefact && s->artefact == before && s->n_kernels == c->plan.n_launches;
}

/* ---- arguments --------------------------------------------------------------------------- */

static cl_mem wrap(opencl_state *s, char *data, uint64_t bytes, bool read_only, cl_int *code) {
    cl_bits flags =
        CL_MEM_USE_HOST_PTR_BIT | (read_only ? CL_MEM_READ_ONLY_BIT : CL_MEM_READ_WRITE_BIT);
    return s->device.api->clCreateBuffer(s->device.context, flags, bytes ? bytes : 1, data, code);
}

static cl_mem tensor_memory(const kli_runner_ctx *c, uint32_t tensor, uint32_t set, uint32_t slot) {
    const opencl_state *s = c->state;
    const bool input = c->plan.tensors[tensor].role == KL_ROLE_INPUT;
    KL_ASSERT(s->first[tensor] + (input ? set : slot) < s->n_memory);
    return s->memory[s->first[tensor] + (input ? set : slot)];
}

static cl_mem buffer_memory(const kli_runner_ctx *c, uint32_t buffer, uint32_t slot) {
    const opencl_state *s = c->state;
    KL_ASSERT(s->first[c->plan.n_tensors + buffer] + slot < s->n_memory);
    return s->memory[s->first[c->plan.n_tensors + buffer] + slot];
}

static int make_memory(kli_runner_ctx *c) {
    opencl_state *s = c->state;
    const kl_layout *l = &c->layout;
    uint32_t most = (c->plan.n_tensors + c->plan.n_buffers) * (l->n_sets + l->n_slots);
    cl_int code = CL_SUCCESS;
    release_memory(s);
    s->memory = calloc(most ? most : 1, sizeof(cl_mem));
    if (!s->memory) kl_oom(most * sizeof(cl_mem));
    for (kli_piece p = {0}; code == CL_SUCCESS && kli_piece_next(&p, &c->plan, l);) {
        s->first[p.index] = s->n_memory;
        for (uint32_t k = 0; k < kli_region_copies(l, p.region) && code == CL_SUCCESS; k++)
            s->memory[s->n_memory++] = wrap(s, kli_ctx_copy(c, p.region, k) + p.zone.data, p.bytes,
                                            p.region == KLI_INPUTS, &code);
        KL_ASSERT(s->n_memory <= most);
    }
    return code == CL_SUCCESS ? 0
                              : runner_opencl_refuse(c, code, "the shared pages cannot be wrapped");
}

static cl_int set_argument(const kli_runner_ctx *c, uint32_t launch, uint32_t at, uint32_t set,
                           uint32_t slot) {
    const opencl_state *s = c->state;
    const kl_value *v = &kli_launch_args(&c->plan, &c->plan.launches[launch])[at];
    const bool buffer = v->kind == KL_VALUE_BUFFER;
    uint64_t bits;
    cl_mem memory;
    const void *value = &bits;
    size_t bytes = kli_ctx_number(c, v, &bits);
    if (buffer || v->kind == KL_VALUE_TENSOR) {
        memory = buffer ? buffer_memory(c, v->index, slot) : tensor_memory(c, v->index, set, slot);
        bytes = sizeof memory;
        value = &memory;
    } else if (v->kind == KL_VALUE_LOCAL) {
        bytes = (size_t)v->i;
        value = NULL;
    } else if (!bytes) {
        return INVALID_ARG_VALUE;
    }
    return s->device.api->clSetKernelArg(s->kernels[launch], at, bytes, value);
}

static int set_arguments(const kli_runner_ctx *c, uint32_t launch, uint32_t set, uint32_t slot) {
    for (uint32_t i = 0; i < c->plan.launches[launch].n_args; i++) {
        cl_int code = set_argument(c, launch, i, set, slot);
        if (code != CL_SUCCESS)
            return kli_fault(c, KL_FAULT_REFUSED, "argument %u of `%s`: %s", i + 1,
                             c->plan.launches[launch].entry, kli_opencl_error(code));
    }
    return 0;
}

static int runner_opencl_finish(const kli_runner_ctx *c) {
    const opencl_state *s = c->state;
    cl_int code = s->device.api->clFinish(s->device.queue);
    return code == CL_SUCCESS
               ? 0
               : kli_fault(c, KL_FAULT_DEVICE, "clFinish: %s", kli_opencl_error(code));
}

/* ---- load -------------------------------------------------------------------------------- */

/* Pages of the child's own instead of the task's, of which nothing is bound yet. */
static bool make_stand_ins(kli_runner_ctx *c) {
    if (kli_layout_make(&c->layout, &c->plan, 1, 1, kl_ignored()) != KL_OK) return false;
    for (kli_region r = 0; r < KLI_REGIONS; r++) {
        const uint64_t bytes = kli_region_bytes(&c->layout, r);
        c->pages[r] = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (c->pages[r] == MAP_FAILED) return false;
    }
    return true;
}

/* The driver compiles for a local size and for "small" or "large" grids, not for the exact grid:
 * one work-group will do. */
static void shrink_grid(kl_plan_launch *l) {
    for (int i = 0; i < 3 && l->block[0]; i++) {
        uint32_t local = l->block[i] ? l->block[i] : 1;
        l->grid[i] = l->grid[i] < SMALL_GRID ? local : (SMALL_GRID + local - 1) / local * local;
    }
}

static _Noreturn void specialise(kli_runner_ctx *c, uint32_t launch) {
    char why[256];
    opencl_state *s = c->state;
    kli_filter compiler;
    setpgid(0, 0);
    (void)close(KL_WIRE_FD);
    if (!c->trusted && kli_filter_build(&compiler, KLI_FILTER_COMPILE) &&
        !kli_filter_enter(&compiler))
        _exit(1);
    shrink_grid(&c->plan.launches[launch]);
    if (!kli_opencl_open(&s->device, c->threads, c->cpu >= 0, why, sizeof why) ||
        make_program(s, c) || make_kernels(s, c))
        _exit(1);
    if (!make_stand_ins(c) || make_memory(c) || set_arguments(c, launch, 0, 0)) _exit(1);
    _exit(enqueue(s, c, launch) != CL_SUCCESS || runner_opencl_finish(c));
}

/* PoCL keeps the code of a kernel for one size under CACHE/xx/program/kernel/size/, and for any
 * size under 0-0-0. */
static size_t count_compiled(const kl_plan_launch *l) {
    char pattern[512];
    glob_t found = {0};
    size_t n = 0;
    const char *scratch = getenv("KLINEAGE_SCRATCH");
    snprintf(pattern, sizeof pattern, "%s/*/*/%s/[1-9]*/%s.so", scratch ? scratch : "", l->entry,
             l->entry);
    if (scratch && glob(pattern, GLOB_NOSORT, NULL, &found) == 0) n = found.gl_pathc;
    globfree(&found);
    return n;
}

static void runner_opencl_end_group(pid_t child) {
    kill(-child, SIGKILL);
    if (getpid() == 1)
        kill(-1, SIGKILL); /* a process number space of our own: whatever left the group ends too */
    while (waitpid(-1, NULL, 0) > 0) {
    }
}

/* How the child fares is not the kernel's verdict: on pages full of zeros it may fail where it
 * would not.  Once the code is there the child has done its work. */
static void specialise_in_child(kli_runner_ctx *c, uint32_t launch) {
    size_t before = count_compiled(&c->plan.launches[launch]);
    int64_t now = kli_now_ns(), deadline = now + SPECIALISE_NS;
    pid_t child = fork();
    if (child == 0) specialise(c, launch);
    if (child < 0) return;
    setpgid(child, child);
    bool compiled = false;
    for (; now < deadline && waitpid(child, NULL, WNOHANG) == 0; now = kli_now_ns()) {
        (void)usleep(1000);
        if (!compiled && count_compiled(&c->plan.launches[launch]) > before) {
            compiled = true;
            deadline = kli_now_ns() + AFTERWARDS_NS;
        }
    }
    runner_opencl_end_group(child);
}

/* Sizes that an earlier process of this runner compiled are in the cache already; it is not asked,
 * since a warm child is quick. */
static void specialise_all(kli_runner_ctx *c) {
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        bool known = false;
        for (uint32_t k = 0; k < i && !known; k++)
            known = strcmp(c->plan.launches[i].entry, c->plan.launches[k].entry) == 0 &&
                    memcmp(c->plan.launches[i].block, c->plan.launches[k].block,
                           sizeof c->plan.launches[k].block) == 0;
        if (!known) specialise_in_child(c, i);
    }
}

static int opencl_load(kli_runner_ctx *c) {
    opencl_state *s = c->state;
    char why[256] = "";
    note_request(c, KL_MSG_LOADED);
    if (c->artefact_kind != KL_ARTEFACT_OPENCL)
        return kli_fault(c, KL_FAULT_REFUSED, "this runner runs OpenCL programs only");
    if (!s->opened) specialise_all(c);
    if (!s->opened && !kli_opencl_open(&s->device, c->threads, c->cpu >= 0, why, sizeof why))
        return kli_fault(c, KL_FAULT_DEVICE, "%s", why);
    if (!s->opened && !c->trusted) catch_faults();
    s->opened = true;
    release_memory(s);
    if (is_the_same(s, c)) return note_all(s, c);
    release_kernels(s);
    return make_program(s, c) || make_kernels(s, c) || note_all(s, c);
}

/* Candidate code has not run in this process yet. */
static int opencl_bind(kli_runner_ctx *c) {
    opencl_state *s = c->state;
    note_request(c, KL_MSG_BOUND);
    if (make_memory(c)) return 1;
    if (c->trusted || s->confined || !s->filter.program.len) return 0;
    if (!kli_filter_enter(&s->filter))
        return kli_fault(c, KL_FAULT_DEVICE, "the system call filter was refused: %s",
                         strerror(errno));
    s->confined = true;
    return 0;
}

/* ---- run, time --------------------------------------------------------------------------- */

static int runner_opencl_call_all(kli_runner_ctx *c, uint32_t set, uint32_t slot) {
    const opencl_state *s = c->state;
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        if (set_arguments(c, i, set, slot)) return 1;
        cl_int code = enqueue(s, c, i);
        if (code != CL_SUCCESS) return runner_opencl_refuse(c, code, c->plan.launches[i].entry);
    }
    return 0;
}

static int opencl_run(kli_runner_ctx *c, const kl_msg_run *m) {
    note_request(c, KL_MSG_DONE);
    kli_ctx_scratch_fill(c, m->slot, 1, m->poison);
    int64_t start = kli_now_ns();
    if (runner_opencl_call_all(c, m->set, m->slot) || runner_opencl_finish(c)) return 1;
    c->reply->wall_ns = kli_now_ns() - start;
    return kli_ctx_scratch_check(c, m->slot, 1, m->poison);
}

static int batch(kli_runner_ctx *c, uint32_t first, uint32_t calls) {
    int failed = 0;
    for (uint32_t j = 0; j < calls && !failed; j++)
        failed = runner_opencl_call_all(c, (first + j) % c->layout.n_sets,
                                        (first + j) % c->layout.n_slots);
    return failed || (calls && runner_opencl_finish(c));
}

/* Warm calls write the batch's own slots, whose outputs are put back afterwards: results of warm
 * calls must not pass for timed ones. */
static int runner_opencl_warm_up(kli_runner_ctx *c, const kl_msg_time *m) {
    uint32_t n = m->warm < c->layout.n_slots ? m->warm : c->layout.n_slots;
    if (!n || !m->calls) return 0;
    kli_ctx_scratch_fill(c, m->first, m->warm, m->poison);
    char *before = kl_arena_alloc(c->arena, n, c->layout.slot_bytes);
    /* Slots have guard pages that cannot be read, so tensors are saved one by one. */
    for (int restore = 0; restore < 2; restore++) {
        for (uint32_t j = 0; j < n; j++)
            for (kli_piece p = {0}; kli_piece_next(&p, &c->plan, &c->layout);) {
                if (p.region != KLI_OUTPUTS) continue;
                char *saved = before + c->layout.slot_bytes * j + p.zone.data;
                char *data =
                    kli_ctx_copy(c, p.region, (m->first + j) % c->layout.n_slots) + p.zone.data;
                memcpy(restore ? data : saved, restore ? saved : data, p.bytes);
            }
        if (!restore && batch(c, m->first, m->warm)) return 1;
    }
    return 0;
}

static int runner_opencl_time_batch(kli_runner_ctx *c, const kl_msg_time *m) {
    kli_control_arm(c->control, m->sequence, m->spin);
    int failed = batch(c, m->first, m->calls);
    kli_control_done(c->control, m->sequence, m->spin);
    return failed;
}

static int opencl_time(kli_runner_ctx *c, const kl_msg_time *m) {
    note_request(c, KL_MSG_DONE);
    if (m->method != KL_TIME_BATCH)
        return kli_fault(c, KL_FAULT_REFUSED, "OpenCL on a CPU is timed in batches only");
    int failed = runner_opencl_warm_up(c, m);
    kli_ctx_scratch_fill(c, m->first, m->calls, m->poison);
    return failed || runner_opencl_time_batch(c, m) ||
           kli_ctx_scratch_check(c, m->first, m->calls, m->poison);
}

const kli_runner_ops kli_runner_opencl = {.name = "opencl",
                                          .shared_memory = true,
                                          .probe = kli_opencl_probe,
                                          .open = opencl_open,
                                          .load = opencl_load,
                                          .bind = opencl_bind,
                                          .run = opencl_run,
                                          .time = opencl_time};
