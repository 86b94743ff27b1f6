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
#include "layout.h"
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
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPECIALISE_NS 20000000000ll /* the driver's compiler, for one launch */
#define AFTERWARDS_NS 20000000ll    /* from its object to its end: nothing depends on it any more */
#define SMALL_GRID 65535u           /* PoCL compiles grids narrower than this differently */

typedef struct {
    kli_opencl_device device;
    bool opened, confined;
    cl_program program;
    cl_kernel kernels[KL_MAX_LAUNCHES];
    uint32_t n_kernels;
    cl_mem *memory; /* one per copy of every tensor and buffer */
    uint32_t n_memory;
    kli_filter filter;
    kl_plan plan; /* what the kernels were made for */
    ino_t artefact;
} opencl_state;

/* ---- faults ------------------------------------------------------------------------------ */

/* What the handler needs while a kernel runs; a fault of another time is not a kernel's. */
static struct {
    const kli_runner_ctx *ctx;
    uint32_t reply_kind;
} running;

/* The process is lost, its socket is not: say what happened, then end.  snprintf on plain integers
 * and text does not allocate. */
static void runner_opencl_on_fault(int sig, siginfo_t *info, void *context) {
    static kl_msg_reply reply;
    bool is_write = false;
#if defined(__x86_64__)
    is_write = (((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
#endif
    reply.head = (kl_msg_head){running.reply_kind, KL_WIRE_VERSION};
    if (sig == SIGSYS)
        kli_reply_fault(&reply, KL_FAULT_CRASH, sig, "forbidden system call number %d",
                        info->si_syscall);
    else if (running.ctx)
        kli_ctx_fault_at(running.ctx, sig, (uintptr_t)info->si_addr, is_write, &reply);
    else
        kli_reply_fault(&reply, KL_FAULT_CRASH, sig, "SIG%s outside a kernel", sigabbrev_np(sig));
    if (running.reply_kind) (void)send(KL_WIRE_FD, &reply, sizeof reply, MSG_NOSIGNAL);
    _exit(1);
}

static void catch_faults(void) {
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT};
    struct sigaction action = {.sa_sigaction = runner_opencl_on_fault, .sa_flags = SA_SIGINFO};
    for (size_t i = 0; i < KL_COUNT(SIGNALS); i++) sigaction(SIGNALS[i], &action, NULL);
}

static int runner_opencl_refuse(kl_msg_reply *reply, cl_int code, const char *what) {
    return kli_reply_fault(reply, KL_FAULT_REFUSED, 0, "%s: %s", what, kli_opencl_error(code));
}

/* ---- open, load -------------------------------------------------------------------------- */

/* The library alone: threads are fixed by the first call into it, and their number comes with the
 * plan. */
static int opencl_open(kli_runner_ctx *c, kl_msg_reply *reply) {
    char why[256] = "";
    opencl_state *s = calloc(1, sizeof *s);
    if (!s) kl_oom(sizeof *s);
    c->state = s;
    if (!kli_opencl_load(why, sizeof why))
        return kli_reply_fault(reply, KL_FAULT_DEVICE, 0, "%s", why);
    if (!c->trusted && kli_filter_build(&s->filter, KLI_FILTER_DRIVER))
        reply->isolation |= KLI_ISOLATED_SECCOMP;
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

static unsigned char *runner_opencl_read_artefact(int fd, size_t *n) {
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size <= 0) return NULL;
    unsigned char *bytes = malloc((size_t)info.st_size);
    if (!bytes) kl_oom((size_t)info.st_size);
    *n = (size_t)info.st_size;
    if (pread(fd, bytes, *n, 0) == info.st_size) return bytes;
    free(bytes);
    return NULL;
}

static int make_program(opencl_state *s, const kli_runner_ctx *c, kl_msg_reply *reply) {
    size_t n = 0;
    cl_int code, status;
    unsigned char *bytes = runner_opencl_read_artefact(c->artefact_fd, &n);
    if (!bytes)
        return kli_reply_fault(reply, KL_FAULT_REFUSED, 0, "the program binary cannot be read");
    s->program = s->device.api->clCreateProgramWithBinary(
        s->device.context, 1, &s->device.device, &n, (const unsigned char **)(uintptr_t)&bytes,
        &status, &code);
    free(bytes);
    if (code == CL_SUCCESS)
        code = s->device.api->clBuildProgram(s->program, 1, &s->device.device, "", NULL, NULL);
    return code == CL_SUCCESS ? 0 : runner_opencl_refuse(reply, code, "the program does not load");
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

static void note_resources(const opencl_state *s, uint32_t launch, kl_msg_reply *reply) {
    uint64_t value = 0;
    size_t threads = 0;
    kl_resources *r = &reply->resources[launch];
    if (s->device.api->clGetKernelWorkGroupInfo(s->kernels[launch], s->device.device,
                                                CL_KERNEL_LOCAL_MEM_ID, sizeof value, &value,
                                                NULL) == CL_SUCCESS)
        r->static_smem = (uint32_t)value;
    if (s->device.api->clGetKernelWorkGroupInfo(s->kernels[launch], s->device.device,
                                                CL_KERNEL_PRIVATE_MEM_ID, sizeof value, &value,
                                                NULL) == CL_SUCCESS)
        r->local_bytes = (uint32_t)value;
    if (s->device.api->clGetKernelWorkGroupInfo(s->kernels[launch], s->device.device,
                                                CL_KERNEL_WORK_GROUP_ID, sizeof threads, &threads,
                                                NULL) == CL_SUCCESS)
        r->max_threads = (uint32_t)threads;
}

static int make_kernels(opencl_state *s, const kli_runner_ctx *c, kl_msg_reply *reply) {
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        cl_int code;
        s->kernels[i] = s->device.api->clCreateKernel(s->program, c->plan.launches[i].entry, &code);
        if (code == -46)
            return kli_reply_fault(reply, KL_FAULT_REFUSED, 0, "no kernel `%s` in the program",
                                   c->plan.launches[i].entry);
        if (code != CL_SUCCESS) return runner_opencl_refuse(reply, code, c->plan.launches[i].entry);
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

static int note_all(const opencl_state *s, const kli_runner_ctx *c, kl_msg_reply *reply) {
    for (uint32_t i = 0; i < c->plan.n_launches; i++) note_resources(s, i, reply);
    reply->n_resources = c->plan.n_launches;
    return 0;
}

/* ---- arguments --------------------------------------------------------------------------- */

static cl_mem wrap(opencl_state *s, char *data, uint64_t bytes, bool read_only, cl_int *code) {
    cl_bits flags =
        CL_MEM_USE_HOST_PTR_BIT | (read_only ? CL_MEM_READ_ONLY_BIT : CL_MEM_READ_WRITE_BIT);
    return s->device.api->clCreateBuffer(s->device.context, flags, bytes ? bytes : 1, data, code);
}

/* memory[]: for every tensor its sets or slots, then for every buffer its slots; `base` finds the
 * first copy of each. */
static uint32_t copies_before(const kli_runner_ctx *c, uint32_t tensors, uint32_t buffers) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < tensors; i++)
        n += c->plan.tensors[i].role == KLI_ROLE_INPUT    ? c->layout.n_sets
             : c->plan.tensors[i].role == KLI_ROLE_SCALAR ? 0
                                                          : c->layout.n_slots;
    return n + buffers * c->layout.n_slots;
}

static cl_mem tensor_memory(const kli_runner_ctx *c, uint32_t tensor, uint32_t set, uint32_t slot) {
    const opencl_state *s = c->state;
    return s->memory[copies_before(c, tensor, 0) +
                     (c->plan.tensors[tensor].role == KLI_ROLE_INPUT ? set : slot)];
}

static cl_mem buffer_memory(const kli_runner_ctx *c, uint32_t buffer, uint32_t slot) {
    const opencl_state *s = c->state;
    return s->memory[copies_before(c, c->plan.n_tensors, buffer) + slot];
}

static int make_memory(kli_runner_ctx *c, kl_msg_reply *reply) {
    opencl_state *s = c->state;
    cl_int code = CL_SUCCESS;
    release_memory(s);
    s->n_memory = copies_before(c, c->plan.n_tensors, c->plan.n_buffers);
    s->memory = calloc(s->n_memory ? s->n_memory : 1, sizeof(cl_mem));
    if (!s->memory) kl_oom(s->n_memory * sizeof(cl_mem));
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->plan.n_tensors; i++) {
        const kl_plan_tensor *t = &c->plan.tensors[i];
        bool input = t->role == KLI_ROLE_INPUT;
        for (uint32_t k = 0;
             t->role != KLI_ROLE_SCALAR && k < (input ? c->layout.n_sets : c->layout.n_slots) &&
             code == CL_SUCCESS;
             k++)
            s->memory[n++] =
                wrap(s, kli_ctx_tensor(c, i, input ? k : 0, input ? 0 : k), t->bytes, input, &code);
    }
    for (uint32_t i = 0; i < c->plan.n_buffers; i++)
        for (uint32_t k = 0; k < c->layout.n_slots && code == CL_SUCCESS; k++)
            s->memory[n++] =
                wrap(s, kli_ctx_buffer(c, i, k), c->plan.buffers[i].bytes, false, &code);
    return code == CL_SUCCESS
               ? 0
               : runner_opencl_refuse(reply, code, "the shared pages cannot be wrapped");
}

static cl_int set_scalar(const opencl_state *s, cl_kernel kernel, uint32_t at, kl_dtype type,
                         double value) {
    uint64_t bits = 0;
    kl_dtype_store(type, &bits, 0, value);
    return s->device.api->clSetKernelArg(kernel, at, kl_dtype_bytes(type), &bits);
}

static cl_int set_argument(const kli_runner_ctx *c, uint32_t launch, uint32_t at, uint32_t set,
                           uint32_t slot) {
    const opencl_state *s = c->state;
    const kl_value *v = &c->plan.launches[launch].args[at];
    cl_kernel k = s->kernels[launch];
    cl_mem memory;
    int32_t narrow = (int32_t)v->i;
    float single = (float)v->f;
    switch ((kl_value_kind)v->kind) {
    case KL_VALUE_TENSOR:
        memory = tensor_memory(c, v->index, set, slot);
        return s->device.api->clSetKernelArg(k, at, sizeof memory, &memory);
    case KL_VALUE_BUFFER:
        memory = buffer_memory(c, v->index, slot);
        return s->device.api->clSetKernelArg(k, at, sizeof memory, &memory);
    case KL_VALUE_I32:
        return s->device.api->clSetKernelArg(k, at, sizeof narrow, &narrow);
    case KL_VALUE_I64:
        return s->device.api->clSetKernelArg(k, at, sizeof v->i, &v->i);
    case KL_VALUE_F32:
        return s->device.api->clSetKernelArg(k, at, sizeof single, &single);
    case KL_VALUE_F64:
        return s->device.api->clSetKernelArg(k, at, sizeof v->f, &v->f);
    case KL_VALUE_LOCAL:
        return s->device.api->clSetKernelArg(k, at, (size_t)v->i, NULL);
    case KL_VALUE_SCALAR:
        return set_scalar(s, k, at, (kl_dtype)c->plan.tensors[v->index].dtype, v->f);
    case KL_VALUE_TENSORMAP:
        break;
    }
    return -50;
}

static int set_arguments(const kli_runner_ctx *c, uint32_t launch, uint32_t set, uint32_t slot,
                         kl_msg_reply *reply) {
    for (uint32_t i = 0; i < c->plan.launches[launch].n_args; i++) {
        cl_int code = set_argument(c, launch, i, set, slot);
        if (code != CL_SUCCESS)
            return kli_reply_fault(reply, KL_FAULT_REFUSED, 0, "argument %u of `%s`: %s", i + 1,
                                   c->plan.launches[launch].entry, kli_opencl_error(code));
    }
    return 0;
}

static int runner_opencl_finish(const kli_runner_ctx *c, kl_msg_reply *reply) {
    const opencl_state *s = c->state;
    cl_int code = s->device.api->clFinish(s->device.queue);
    return code == CL_SUCCESS
               ? 0
               : kli_reply_fault(reply, KL_FAULT_DEVICE, 0, "clFinish: %s", kli_opencl_error(code));
}

/* ---- load -------------------------------------------------------------------------------- */

/* Pages of the child's own instead of the task's, of which nothing is bound yet. */
static bool make_stand_ins(kli_runner_ctx *c) {
    char *pages[3];
    if (kl_layout_make(&c->layout, &c->plan, 1, 1, kl_ignored()) != KL_OK) return false;
    const uint64_t bytes[3] = {c->layout.set_bytes, c->layout.slot_bytes, c->layout.scratch_bytes};
    for (int i = 0; i < 3; i++) {
        pages[i] = mmap(NULL, bytes[i] ? bytes[i] : 1, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages[i] == MAP_FAILED) return false;
    }
    c->inputs = pages[0];
    c->outputs = pages[1];
    c->scratch = pages[2];
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
    kl_msg_reply reply = {0};
    opencl_state *s = c->state;
    kli_filter compiler;
    setpgid(0, 0);
    (void)close(KL_WIRE_FD);
    if (!c->trusted && kli_filter_build(&compiler, KLI_FILTER_COMPILE) &&
        !kli_filter_enter(&compiler))
        _exit(1);
    shrink_grid(&c->plan.launches[launch]);
    if (!kli_opencl_open(&s->device, c->threads, c->cpu >= 0, why, sizeof why) ||
        make_program(s, c, &reply) || make_kernels(s, c, &reply))
        _exit(1);
    if (!make_stand_ins(c) || make_memory(c, &reply) || set_arguments(c, launch, 0, 0, &reply))
        _exit(1);
    _exit(enqueue(s, c, launch) != CL_SUCCESS || runner_opencl_finish(c, &reply));
}

/* PoCL keeps the code of a kernel for one size under CACHE/xx/program/kernel/size/, and for any
 * size under 0-0-0. */
static size_t count_compiled(const kl_plan_launch *l) {
    char pattern[512];
    glob_t found = {0};
    size_t n = 0;
    const char *scratch = getenv("KLINEAGE_SCRATCH");
    (void)snprintf(pattern, sizeof pattern, "%s/*/*/%s/[1-9]*/%s.so", scratch ? scratch : "",
                   l->entry, l->entry);
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

static int opencl_load(kli_runner_ctx *c, kl_msg_reply *reply) {
    opencl_state *s = c->state;
    char why[256] = "";
    running.ctx = NULL;
    running.reply_kind = KL_MSG_LOADED;
    if (c->artefact_kind != KL_ARTEFACT_OPENCL)
        return kli_reply_fault(reply, KL_FAULT_REFUSED, 0, "this runner runs OpenCL programs only");
    if (!s->opened) specialise_all(c);
    if (!s->opened && !kli_opencl_open(&s->device, c->threads, c->cpu >= 0, why, sizeof why))
        return kli_reply_fault(reply, KL_FAULT_DEVICE, 0, "%s", why);
    if (!s->opened && !c->trusted) catch_faults();
    s->opened = true;
    release_memory(s);
    if (is_the_same(s, c)) return note_all(s, c, reply);
    release_kernels(s);
    return make_program(s, c, reply) || make_kernels(s, c, reply) || note_all(s, c, reply);
}

/* Candidate code has not run in this process yet. */
static int opencl_bind(kli_runner_ctx *c, kl_msg_reply *reply) {
    opencl_state *s = c->state;
    running.ctx = NULL;
    running.reply_kind = KL_MSG_BOUND;
    if (make_memory(c, reply)) return 1;
    if (c->trusted || s->confined || !s->filter.program.len) return 0;
    if (!kli_filter_enter(&s->filter))
        return kli_reply_fault(reply, KL_FAULT_DEVICE, 0, "the system call filter was refused: %s",
                               strerror(errno));
    s->confined = true;
    return 0;
}

/* ---- run, time --------------------------------------------------------------------------- */

static int runner_opencl_call_all(kli_runner_ctx *c, uint32_t set, uint32_t slot,
                                  kl_msg_reply *reply) {
    const opencl_state *s = c->state;
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        if (set_arguments(c, i, set, slot, reply)) return 1;
        cl_int code = enqueue(s, c, i);
        if (code != CL_SUCCESS) return runner_opencl_refuse(reply, code, c->plan.launches[i].entry);
    }
    return 0;
}

static int opencl_run(kli_runner_ctx *c, const kl_msg_run *m, kl_msg_reply *reply) {
    running.ctx = c;
    running.reply_kind = KL_MSG_DONE;
    kli_ctx_scratch_fill(c, m->slot, (uint8_t)m->poison);
    int64_t start = kli_now_ns();
    if (runner_opencl_call_all(c, m->set, m->slot, reply) || runner_opencl_finish(c, reply))
        return 1;
    reply->wall_ns = kli_now_ns() - start;
    return kli_ctx_scratch_check(c, m->slot, (uint8_t)m->poison, reply);
}

static int batch(kli_runner_ctx *c, uint32_t first, uint32_t calls, kl_msg_reply *reply) {
    int failed = 0;
    for (uint32_t j = 0; j < calls && !failed; j++)
        failed = runner_opencl_call_all(c, (first + j) % c->layout.n_sets,
                                        (first + j) % c->layout.n_slots, reply);
    return failed || (calls && runner_opencl_finish(c, reply));
}

/* Warm calls write the batch's own slots, whose outputs are put back afterwards: results of warm
 * calls must not pass for timed ones. */
static int runner_opencl_warm_up(kli_runner_ctx *c, const kl_msg_time *m, kl_msg_reply *reply) {
    uint32_t n = m->warm < c->layout.n_slots ? m->warm : c->layout.n_slots;
    if (!n || !m->calls) return 0;
    char *before = malloc((size_t)c->layout.slot_bytes * n);
    if (!before) kl_oom((size_t)c->layout.slot_bytes * n);
    /* Slots have guard pages that cannot be read, so tensors are saved one by one. */
    for (int restore = 0, failed = 0; restore < 2; restore++) {
        for (uint32_t j = 0; j < n; j++)
            for (uint32_t i = 0; i < c->plan.n_tensors; i++) {
                const kl_plan_tensor *t = &c->plan.tensors[i];
                if (t->role == KLI_ROLE_INPUT || t->role == KLI_ROLE_SCALAR) continue;
                char *saved = before + c->layout.slot_bytes * j + c->layout.tensor_offset[i];
                char *data = kli_ctx_tensor(c, i, 0, (m->first + j) % c->layout.n_slots);
                memcpy(restore ? data : saved, restore ? saved : data, t->bytes);
            }
        if (!restore) failed = batch(c, m->first, m->warm, reply);
        if (failed) return free(before), 1;
    }
    free(before);
    return 0;
}

static int runner_opencl_time_batch(kli_runner_ctx *c, const kl_msg_time *m, kl_msg_reply *reply) {
    kli_control_arm(c->control, m->sequence, m->spin);
    int failed = batch(c, m->first, m->calls, reply);
    kli_control_done(c->control, m->sequence, m->spin);
    return failed;
}

static int opencl_time(kli_runner_ctx *c, const kl_msg_time *m, kl_msg_reply *reply) {
    running.ctx = c;
    running.reply_kind = KL_MSG_DONE;
    if (m->method != KL_TIME_BATCH)
        return kli_reply_fault(reply, KL_FAULT_REFUSED, 0,
                               "OpenCL on a CPU is timed in batches only");
    uint32_t slots = m->calls < c->layout.n_slots ? m->calls : c->layout.n_slots;
    int failed = runner_opencl_warm_up(c, m, reply);
    for (uint32_t j = 0; j < slots; j++)
        kli_ctx_scratch_fill(c, (m->first + j) % c->layout.n_slots, (uint8_t)m->poison);
    if (!failed) failed = runner_opencl_time_batch(c, m, reply);
    for (uint32_t j = 0; j < slots && !failed; j++)
        failed =
            kli_ctx_scratch_check(c, (m->first + j) % c->layout.n_slots, (uint8_t)m->poison, reply);
    return failed;
}

static int opencl_upload(kli_runner_ctx *c, const kl_msg_upload *m, kl_msg_reply *reply) {
    (void)c, (void)m, (void)reply;
    return 0;
}

const kli_runner_ops kli_runner_opencl = {.name = "opencl",
                                          .shared_memory = true,
                                          .probe = kli_opencl_probe,
                                          .open = opencl_open,
                                          .load = opencl_load,
                                          .bind = opencl_bind,
                                          .upload = opencl_upload,
                                          .run = opencl_run,
                                          .time = opencl_time};
