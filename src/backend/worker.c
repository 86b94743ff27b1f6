/* worker.c - klineage-worker: the one program that loads drivers and runs kernels.
 *
 *   run BACKEND [--trusted]   a runner: speaks wire.h on descriptor 3 until it is closed
 *   probe BACKEND             the device as one line of JSON
 *   build-opencl ...          one OpenCL build, for surface/opencl (confined by its caller)
 *   build-cuda ...            one CUDA build through NVRTC, for surface/cuda (likewise)
 *   --spool DIR [--stay N]    gate the requests of a spool folder, and those of the next N seconds
 *
 * A runner of native candidates confines itself before it is told of any artefact.  It is one loop:
 * every message is validated here, then a row of runners.c acts on it.  It links neither the store
 * nor a model, and needs libc alone. SPDX-License-Identifier: Apache-2.0 */
#include "cuda_build.h"
#include "isolation.h"
#include "opencl_build.h"
#include "runner_ops.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/terminal.h"
#include "executor/carrier.h"
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <klineage/executor.h>

#define KLI_MAX_PAGES_BYTES (1ull << 40) /* of one mapping */
#define OMP_STACK "16M" /* of each thread of a pool; the first thread has KLI_STACK_BYTES */

typedef struct {
    const kli_runner_ops *ops;
    kli_runner_ctx ctx;
    kl_msg_reply reply;
    bool loaded, bound;
    int fds[4], n_fds;
    size_t bytes;
    union {
        kl_msg_head head;
        kl_msg_load load;
        kl_msg_bind bind;
        kl_msg_upload upload;
        kl_msg_draw draw;
        kl_msg_audit audit;
        kl_msg_fetch fetch;
        kl_msg_compare compare;
        kl_msg_run run;
        kl_msg_time time;
    } message;
} worker_worker;

static const kli_runner_ops *ops_named(const char *name) {
    for (int i = 0; kli_runner_ops_each(i); i++)
        if (strcmp(kli_runner_ops_each(i)->name, name) == 0) return kli_runner_ops_each(i);
    return NULL;
}

/* ---- confinement ------------------------------------------------------------------------- */

static void worker_confine(worker_worker *w) {
    static const char *const READABLE[] = {
        "/usr",        "/lib",         "/lib64",        "/etc/ld.so.cache",
        "/etc/OpenCL", "/sys/devices", "/proc/cpuinfo", "/proc/meminfo",
        "/proc/self",  "/dev/urandom", "/dev/null",     NULL};
    const char *writable[] = {getenv("KLINEAGE_SCRATCH"), "/dev/null", NULL};
    kl_isolation applied = {0};
    kli_confine_runner(&applied, READABLE, writable[0] ? writable : writable + 1);
    (void)mallopt(M_ARENA_MAX, 1); /* another arena would need mprotect, which kernels do not get */
    uint32_t bits = 0;
    if (applied.landlock) bits |= KLI_ISOLATED_LANDLOCK | (uint32_t)applied.landlock_abi << 8;
    if (applied.user_switch) bits |= KLI_ISOLATED_USER;
    if (applied.rlimits) bits |= KLI_ISOLATED_LIMITS;
    KL_ASSERT(applied.landlock_abi >= 0 && applied.landlock_abi < 256); /* eight bits of the word */
    w->reply.isolation = bits;
}

static void worker_place(const kli_runner_ctx *c) {
    char number[16];
    snprintf(number, sizeof number, "%d", c->threads);
    setenv("OMP_NUM_THREADS", number, 1);
    setenv("OMP_DYNAMIC", "false", 1);
    if (!c->trusted)
        setenv("OMP_THREAD_LIMIT", number,
               1); /* asking for more gives what there is, not a forbidden call */
    setenv("OMP_STACKSIZE", OMP_STACK, 0);
    setenv("OPENBLAS_NUM_THREADS", number, 1);
    setenv("MKL_NUM_THREADS", number, 1);
    setenv("BLIS_NUM_THREADS", number, 1);
    static cpu_set_t all;
    cpu_set_t one;
    if (!CPU_COUNT(&all)) (void)sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    if (c->cpu >= 0 && c->cpu < CPU_SETSIZE) CPU_SET((size_t)c->cpu, &one);
    (void)sched_setaffinity(0, sizeof one, c->cpu >= 0 ? &one : &all);
}

/* ---- messages ---------------------------------------------------------------------------- */

static bool receive(worker_worker *w) {
    char control[CMSG_SPACE(sizeof w->fds)];
    struct iovec part = {.iov_base = &w->message, .iov_len = sizeof w->message};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof control};
    ssize_t n;
    do n = recvmsg(KL_WIRE_FD, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    w->n_fds = 0;
    w->bytes = n > 0 ? (size_t)n : 0;
    for (struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL; c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        w->n_fds = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        KL_ASSERT(w->n_fds >= 0 && w->n_fds <= (int)KL_COUNT(w->fds));
        memcpy(w->fds, CMSG_DATA(c), (size_t)w->n_fds * sizeof(int));
    }
    return n >= (ssize_t)sizeof w->message.head && w->message.head.version == KL_WIRE_VERSION;
}

static bool worker_answer(worker_worker *w, uint32_t kind) {
    w->reply.head = (kl_msg_head){kind, KL_WIRE_VERSION};
    return send(KL_WIRE_FD, &w->reply, sizeof w->reply, MSG_NOSIGNAL) == (ssize_t)sizeof w->reply;
}

static int misunderstood(worker_worker *w, const char *what) {
    return kli_fault(&w->ctx, KL_FAULT_PROTOCOL, "the runner was sent a bad %s", what);
}

static bool terminated(const char *text) { return memchr(text, '\0', KL_MAX_NAME) != NULL; }

static bool argument_is_valid(const kl_plan *p, const kl_value *v) {
    switch ((kl_value_kind)v->kind) {
    case KL_VALUE_TENSOR:
        return v->index < p->n_tensors && p->tensors[v->index].role != KL_ROLE_SCALAR;
    case KL_VALUE_SCALAR:
        return v->index < p->n_tensors;
    case KL_VALUE_BUFFER:
        return v->index < p->n_buffers;
    case KL_VALUE_TENSORMAP:
        return v->index < p->n_tensormaps;
    default:
        return v->kind <= KL_VALUE_SCALAR;
    }
}

static bool launch_is_valid(const kl_plan *p, const kl_plan_launch *l) {
    if (!terminated(l->entry) || l->n_args > KL_MAX_ARGS || l->first_arg > p->n_args ||
        l->n_args > p->n_args - l->first_arg)
        return false;
    const kl_value *args = kli_launch_args(p, l);
    for (uint32_t i = 0; i < l->n_args; i++)
        if (!argument_is_valid(p, &args[i]) || args[i].joined > (i > 0)) return false;
    return true;
}

static bool plan_is_valid(const kl_plan *p) {
    if (p->magic != KL_PLAN_MAGIC || p->version != KL_PLAN_VERSION ||
        p->n_tensors > KL_MAX_TENSORS || p->n_buffers > KL_MAX_BUFFERS ||
        p->n_tensormaps > KL_MAX_TENSORMAPS || p->n_launches > KL_MAX_LAUNCHES ||
        p->n_args > KL_MAX_PLAN_ARGS)
        return false;
    for (uint32_t i = 0; i < p->n_tensors; i++)
        if (!terminated(p->tensors[i].name) || p->tensors[i].role > KL_ROLE_SCALAR ||
            p->tensors[i].dtype < KL_F64 || p->tensors[i].dtype >= KL_DTYPE_END)
            return false;
    for (uint32_t i = 0; i < p->n_buffers; i++)
        if (!terminated(p->buffers[i].name)) return false;
    for (uint32_t i = 0; i < p->n_launches; i++)
        if (!launch_is_valid(p, &p->launches[i])) return false;
    return true;
}

/* A descriptor that stays; what nobody took is closed after the reply is made. */
static int take_fd(worker_worker *w, int i) {
    const int fd = w->fds[i];
    KL_ASSERT(i < w->n_fds && fd >= 0);
    w->fds[i] = -1;
    return fd;
}

static void close_fds(worker_worker *w) {
    while (w->n_fds > 0)
        if (w->fds[--w->n_fds] >= 0) close(w->fds[w->n_fds]);
}

/* ---- load -------------------------------------------------------------------------------- */

/* The gate seals what it sends, and keeps it as long as it means the same bytes. */
static bool is_same_file(int a, int b) {
    struct stat one, other;
    return a >= 0 && fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

static int on_load(worker_worker *w) {
    kli_runner_ctx *c = &w->ctx;
    const kl_msg_load *m = &w->message.load;
    if (w->bytes != sizeof *m || w->n_fds != 1 || !plan_is_valid(&m->plan) || m->threads < 1)
        return misunderstood(w, "plan");
    c->same_artefact = w->loaded && c->artefact_kind == m->artefact_kind &&
                       is_same_file(c->artefact_fd, w->fds[0]);
    if (c->artefact_fd >= 0) close(c->artefact_fd);
    c->artefact_fd = take_fd(w, 0);
    c->artefact_kind = m->artefact_kind;
    c->plan = m->plan;
    c->cpu = m->cpu;
    c->threads = m->threads;
    worker_place(c);
    w->bound = false;
    w->loaded = w->ops->load(c) == 0;
    return 0;
}

/* ---- bind -------------------------------------------------------------------------------- */

static void unmap(char **p, size_t bytes) {
    if (*p && bytes) munmap(*p, bytes);
    *p = NULL;
}

static void release_pages(kli_runner_ctx *c) {
    for (kli_region r = 0; r < KLI_REGIONS; r++) unmap(&c->pages[r], c->page_bytes[r]);
    if (c->control) munmap(c->control, sizeof *c->control);
    if (c->outputs_fd >= 0) close(c->outputs_fd);
    c->control = NULL;
    c->outputs_fd = -1;
}

static bool map(void *slot, size_t bytes, int protection, int fd, size_t huge_from) {
    struct stat info;
    void *p = NULL;
    if (bytes) {
        if (fstat(fd, &info) != 0 || info.st_size < 0 || (size_t)info.st_size < bytes) return false;
        p = kli_pages_map(fd, bytes, protection, huge_from);
        if (!p) return false;
    }
    memcpy(slot, &p, sizeof p);
    return true;
}

/* The descriptors of BIND: one of each region, in that order, and the control page's. */
enum { CONTROL = KLI_REGIONS, BIND_FDS };
#define SPOOL_LOOK_NS 200000000

static bool worker_map_pages(worker_worker *w) {
    kli_runner_ctx *c = &w->ctx;
    bool mapped = map(&c->control, sizeof *c->control, PROT_READ | PROT_WRITE, w->fds[CONTROL],
                      sizeof *c->control);
    for (kli_region r = 0; r < KLI_REGIONS; r++) {
        const bool needed = r != KLI_SCRATCH || w->ops->shared_memory;
        c->page_bytes[r] = needed ? kli_region_bytes(&c->layout, r) : 0;
        mapped = mapped &&
                 map(&c->pages[r], c->page_bytes[r], PROT_READ | (r == KLI_INPUTS ? 0 : PROT_WRITE),
                     w->fds[r], kli_huge_from(&c->layout, r));
    }
    c->outputs_fd = take_fd(w, KLI_OUTPUTS);
    return mapped;
}

static void worker_forbid(char *base, kli_zone z) {
    (void)mprotect(base + z.low, z.page - z.low, PROT_NONE);
    (void)mprotect(base + z.page_end, z.high - z.page_end, PROT_NONE);
}

static void forbid_guards(const kli_runner_ctx *c) {
    for (kli_piece p = {0}; kli_piece_next(&p, &c->plan, &c->layout);)
        for (uint32_t k = 0;
             k < KLI_FORBIDDEN_COPIES && k < kli_region_copies(&c->layout, p.region); k++)
            worker_forbid(kli_ctx_copy(c, p.region, k), p.zone);
}

/* The layout that this plan must have; whatever differs was not made by our gate. */
static bool layout_is_valid(const worker_worker *w) {
    kl_layout own;
    const kl_layout *l = &w->message.bind.layout;
    return kli_layout_make(&own, &w->ctx.plan, l->n_sets, l->n_slots, kl_ignored()) == KL_OK &&
           memcmp(&own, l, sizeof own) == 0;
}

static int on_bind(worker_worker *w) {
    if (!w->loaded || w->bytes != sizeof w->message.bind || w->n_fds != BIND_FDS ||
        !layout_is_valid(w))
        return misunderstood(w, "layout");
    release_pages(&w->ctx);
    w->ctx.layout = w->message.bind.layout;
    w->bound = false;
    if (!worker_map_pages(w))
        return kli_fault(&w->ctx, KL_FAULT_DEVICE, "cannot map the shared pages: %s",
                         strerror(errno));
    if (w->ops->shared_memory && !w->ctx.trusted) forbid_guards(&w->ctx);
    w->bound = w->ops->bind(&w->ctx) == 0;
    return 0;
}

/* ---- upload, run, time ------------------------------------------------------------------- */

static int on_upload(worker_worker *w) {
    const kl_msg_upload *m = &w->message.upload;
    if (!w->bound || w->bytes != sizeof *m || m->first >= w->ctx.layout.n_sets ||
        m->n > w->ctx.layout.n_sets - m->first)
        return misunderstood(w, "upload");
    return w->ops->upload ? w->ops->upload(&w->ctx, m) : 0;
}

static bool draw_is_valid(const kl_plan_tensor *t, const kli_draw *d) {
    if (d->kind == KLI_DRAW_NONE) return true;
    return t->role == KL_ROLE_INPUT && d->kind > 0 && d->kind <= KLI_DRAW_INTEGER_CONSTANT &&
           d->dtype == (int32_t)t->dtype && d->row >= 1 && d->elems >= 1 &&
           (uint64_t)d->elems <= t->bytes &&
           (uint64_t)d->elems * kl_dtype_bytes((kl_dtype)t->dtype) == t->bytes;
}

static int draw_if_valid(worker_worker *w) {
    const kli_draw_request *q = &w->message.draw.request;
    const uint32_t n_sets = w->ctx.layout.n_sets;
    bool valid = w->bound && w->bytes == sizeof w->message.draw && q->first < n_sets &&
                 q->n <= n_sets - q->first &&
                 (q->proof == KLI_NO_PROOF || q->proof - q->first < q->n);
    for (uint32_t i = 0; valid && i < w->ctx.plan.n_tensors; i++)
        valid = draw_is_valid(&w->ctx.plan.tensors[i], &q->draws[i]);
    if (!valid) return misunderstood(w, "draw");
    return w->ops->draw ? w->ops->draw(&w->ctx, &w->message.draw)
                        : kli_fault(&w->ctx, KL_FAULT_REFUSED, "no kernel draws here");
}

/* Devices may read a host's pages: no seed stays, of a request that makes no sense either. */
static int on_draw(worker_worker *w) {
    const int failed = draw_if_valid(w);
    explicit_bzero(&w->message, sizeof w->message);
    return failed;
}

static int on_run(worker_worker *w) {
    const kl_msg_run *m = &w->message.run;
    if (!w->bound || w->bytes != sizeof *m || m->set >= w->ctx.layout.n_sets ||
        m->slot >= w->ctx.layout.n_slots || m->poison > 255 || m->slack > KL_WIRE_ANY_SLACK)
        return misunderstood(w, "run");
    return w->ops->run(&w->ctx, m);
}

static int on_fetch(worker_worker *w) {
    const kl_msg_fetch *m = &w->message.fetch;
    bool known = w->bound && w->bytes == sizeof *m && m->poison <= 255 && m->n <= KL_FETCH_SLOTS;
    for (uint32_t i = 0; known && i < m->n; i++) known = m->slots[i] < w->ctx.layout.n_slots;
    if (!known) return misunderstood(w, "fetch");
    return w->ops->fetch ? w->ops->fetch(&w->ctx, m) : 0;
}

static int on_audit(worker_worker *w) {
    const kl_msg_audit *m = &w->message.audit;
    if (!w->bound || w->bytes != sizeof *m || m->calls > KL_WIRE_MAX_SAMPLES || m->poison > 255)
        return misunderstood(w, "audit");
    return w->ops->audit ? w->ops->audit(&w->ctx, m) : 0;
}

/* Answers are the oracle's, and no candidate's process has any. */
static bool compare_is_valid(const worker_worker *w) {
    const kl_msg_compare *m = &w->message.compare;
    bool valid = w->bound && w->ctx.trusted && w->bytes == sizeof *m &&
                 w->n_fds == !m->has_handle && m->n >= 1 && m->n <= KL_FETCH_SLOTS &&
                 m->tensor < w->ctx.plan.n_tensors &&
                 w->ctx.plan.tensors[m->tensor].role == KL_ROLE_OUTPUT && m->got_type >= KL_F64 &&
                 m->got_type < KL_DTYPE_END;
    for (uint32_t i = 0; valid && i < m->n; i++)
        valid = m->slots[i] < w->ctx.layout.n_slots && m->offsets[i] < KLI_MAX_PAGES_BYTES &&
                (m->sets[i] == KLI_NO_SET || m->sets[i] < w->ctx.layout.n_sets);
    return valid;
}

/* From the first output to the end of the last. */
static void compared_range(const worker_worker *w, uint64_t *from, uint64_t *to) {
    const kl_msg_compare *m = &w->message.compare;
    const kl_plan_tensor *want = &w->ctx.plan.tensors[m->tensor];
    const uint64_t n = want->bytes / kl_dtype_bytes((kl_dtype)want->dtype),
                   bytes = n * kl_dtype_bytes((kl_dtype)m->got_type);
    *from = *to = m->offsets[0];
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->offsets[i] < *from) *from = m->offsets[i];
        if (m->offsets[i] > *to) *to = m->offsets[i];
    }
    *from &= ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
    *to += bytes;
}

/* `pages`: where the offsets count from; NULL for outputs behind a handle. */
static int compare_with(worker_worker *w, const char *pages) {
    return w->ops->compare ? w->ops->compare(&w->ctx, &w->message.compare, pages)
                           : kli_fault(&w->ctx, KL_FAULT_REFUSED, "no kernel compares here");
}

static int on_compare(worker_worker *w) {
    const kl_msg_compare *m = &w->message.compare;
    if (!compare_is_valid(w)) return misunderstood(w, "comparison");
    if (m->has_handle) return compare_with(w, NULL);
    uint64_t from, to;
    struct stat info;
    compared_range(w, &from, &to);
    const bool is_there =
        fstat(w->fds[0], &info) == 0 && info.st_size >= 0 && (uint64_t)info.st_size >= to;
    char *pages = is_there ? mmap(NULL, to - from, PROT_READ, MAP_SHARED, w->fds[0], (off_t)from)
                           : MAP_FAILED;
    if (pages == MAP_FAILED) return misunderstood(w, "comparison");
    for (uint32_t i = 0; i < w->message.compare.n; i++) w->message.compare.offsets[i] -= from;
    const int failed = compare_with(w, pages);
    munmap(pages, to - from);
    return failed;
}

static int on_time(worker_worker *w) {
    const kl_msg_time *m = &w->message.time;
    if (!w->bound || w->bytes != sizeof *m || m->calls > KL_WIRE_MAX_SAMPLES ||
        m->warm > KL_WIRE_MAX_SAMPLES || m->poison > 255)
        return misunderstood(w, "time");
    return w->ops->time(&w->ctx, m);
}

static uint32_t dispatch(worker_worker *w) {
    memset(&w->reply, 0, sizeof w->reply);
    kl_arena_free(w->ctx.arena);
    w->ctx.arena = kl_arena_new();
    switch ((kl_msg_kind)w->message.head.kind) {
    case KL_MSG_LOAD:
        return (void)on_load(w), KL_MSG_LOADED;
    case KL_MSG_BIND:
        return (void)on_bind(w), KL_MSG_BOUND;
    case KL_MSG_UPLOAD:
        return (void)on_upload(w), KL_MSG_DONE;
    case KL_MSG_DRAW:
        return (void)on_draw(w), KL_MSG_DONE;
    case KL_MSG_RUN:
        return (void)on_run(w), KL_MSG_DONE;
    case KL_MSG_AUDIT:
        return (void)on_audit(w), KL_MSG_DONE;
    case KL_MSG_FETCH:
        return (void)on_fetch(w), KL_MSG_DONE;
    case KL_MSG_COMPARE:
        return (void)on_compare(w), KL_MSG_DONE;
    case KL_MSG_TIME:
        return (void)on_time(w), KL_MSG_DONE;
    default:
        return (void)misunderstood(w, "message"), KL_MSG_DONE;
    }
}

static int worker_run(const char *backend, bool trusted) {
    static worker_worker w; /* a plan is too large for a comfortable stack */
    w.ops = ops_named(backend);
    if (!w.ops) return fprintf(stderr, "klineage-worker: no backend '%s'\n", backend), 2;
    w.ctx = (kli_runner_ctx){.trusted = trusted,
                             .cpu = -1,
                             .threads = 1,
                             .artefact_fd = -1,
                             .outputs_fd = -1,
                             .reply = &w.reply,
                             .arena = kl_arena_new()};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (w.ops->shared_memory && !trusted) worker_confine(&w);
    (void)w.ops->open(&w.ctx);
    if (!worker_answer(&w, KL_MSG_READY)) return 1;
    while (receive(&w)) {
        const uint32_t kind = dispatch(&w);
        close_fds(&w);
        if (!worker_answer(&w, kind)) return 1;
    }
    return 0;
}

/* ---- main -------------------------------------------------------------------------------- */

static int worker_probe(const char *backend) {
    const kli_runner_ops *ops = ops_named(backend);
    if (!ops) return fprintf(stderr, "klineage-worker: no backend '%s'\n", backend), 2;
    return ops->probe();
}

static int usage(FILE *to) {
    fputs(
        "usage: klineage-worker probe cpu|opencl|cuda    describe the device as JSON\n"
        "       klineage-worker --spool DIR             gate the requests of a spool folder\n"
        "                       [--stay SECONDS]        and those that come within SECONDS\n"
        "       klineage-worker --version\n"
        "\n"
        "Started by klineage from its own folder; `run`, `build-...` and `--carry` are internal.\n",
        to);
    return to == stdout ? 0 : 2;
}

/* The spool until nothing is left, and, so that what is warm stays warm, until nothing came for
 * `stay` seconds. */
static kl_err spool_until_idle(const char *dir, long stay, int *done, int *failed, kl_error *e) {
    kl_executor *here = NULL;
    kl_err err = kl_executor_open(&here, "local", e);
    int64_t idle_since = kli_now_ns();
    while (!err) {
        int now_done = 0, now_failed = 0;
        err = kl_spool_work(dir, here, &now_done, &now_failed, e);
        *done += now_done;
        *failed += now_failed;
        if (now_done + now_failed) idle_since = kli_now_ns();
        if (kli_now_ns() - idle_since >= stay * INT64_C(1000000000)) break;
        if (!err && kli_interrupted()) break;
        nanosleep(&(struct timespec){.tv_nsec = SPOOL_LOOK_NS}, NULL);
    }
    kl_executor_close(here);
    return err;
}

static int spool(const char *dir, long stay) {
    kl_error e = {0};
    int done = 0, failed = 0;
    kli_terminal_watch(KL_NORMAL);
    kli_interrupt_install(); /* whoever stops it gets the job back */
    const kl_err code = spool_until_idle(dir, stay, &done, &failed, &e);
    fprintf(stderr, "klineage-worker: %d done, %d failed\n", done, failed);
    if (!code) return failed ? 1 : 0;
    kl_buf text = {0};
    kl_error_render(&e, &text);
    fputs(text.ptr, stderr);
    kl_buf_fini(&text);
    return 1;
}

/* --spool DIR [--stay SECONDS] */
static int spool_command(int argc, char **argv) {
    const bool stays = argc == 5 && strcmp(argv[3], "--stay") == 0;
    return argc == 3 || stays ? spool(argv[2], stays ? strtol(argv[4], NULL, 10) : 0)
                              : usage(stderr);
}

/* --carry SPOOL HOST DIR: for executor ssh. */
static int carry_command(int argc, char **argv) {
    kl_error e = {0};
    if (argc != 5) return usage(stderr);
    kli_terminal_watch(KL_QUIET);
    kli_interrupt_install();
    return kli_carry(argv[2], argv[3], argv[4], &e) ? 1 : 0;
}

int main(int argc, char **argv) {
    const char *verb = argc > 1 ? argv[1] : "";
    if (strcmp(verb, "--help") == 0) return usage(stdout);
    if (strcmp(verb, "--version") == 0) return puts("klineage-worker " KL_VERSION) < 0;
    if (strcmp(verb, "run") == 0 && argc > 2)
        return worker_run(argv[2], argc > 3 && strcmp(argv[3], "--trusted") == 0);
    if (strcmp(verb, "probe") == 0 && argc == 3) return worker_probe(argv[2]);
    if (strcmp(verb, "build-opencl") == 0) return kli_opencl_build_main(argc - 2, argv + 2);
    if (strcmp(verb, "build-cuda") == 0) return kli_cuda_build_main(argc - 2, argv + 2);
    if (strcmp(verb, "--carry") == 0) return carry_command(argc, argv);
    if (strcmp(verb, "--spool") == 0) return spool_command(argc, argv);
    return usage(stderr);
}
