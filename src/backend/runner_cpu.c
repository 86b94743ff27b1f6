/* runner_cpu.c - runs shared objects: candidates in forked children, trusted code and plugins in
 * the runner itself.
 *
 *   candidate   RUN   fork -> map -> filter -> relocate -> calls -> exit
 *               TIME  fork -> map, private view of the outputs -> filter -> relocate -> warm calls
 * -> exit   (warms caches, leaves no trace) fork -> map, settle pages -> filter -> relocate ->
 * armed .. go -> calls -> done -> exit plugin      the same calls in this process, so that a
 * library keeps its threads and its packing buffers trusted     kernels RUN here and are timed like
 * candidates, without the filter
 *
 * Warm calls of a candidate run in a process of their own: caches know physical pages, so they are
 * as warm afterwards, but nothing the kernel computed or kept is there when the timed calls begin.
 * For the same reason the pool of OpenMP threads is started by us, before the filter that forbids
 * new threads.
 *
 * The runner itself never holds candidate code (cpu_load.c).  What a child could write and the next
 * could read: nothing.  Its own slots are filled anew before each request, every other slot is
 * hidden, the report and the handshake's page are cleared at every fork, the page of samples is not
 * there, and all else is its private copy. Not here: what an end of a child means (cpu_child.c),
 * the handshake (runners.c).  SPDX-License-Identifier: Apache-2.0 */
#include "cpu_call.h"
#include "cpu_child.h"
#include "cpu_load.h"
#include "cpu_probe.h"
#include "runner_plugin.h"
#include "base/fs.h"
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    kli_object object; /* of a candidate */
    void *library;     /* of a trusted kernel */
    void (*entries[KL_MAX_LAUNCHES])(void);
    kli_plugin plugin;
    kli_plugin_frame frame; /* of every call, but for where its data lie */
    bool is_plugin;
    bool is_prepared;  /* the plugin, for the plan that was loaded */
    bool is_settled;   /* every page of this binding was touched by this process */
    bool code_settled; /* of the libraries in it, too */
    kli_filter kernel_filter, threads_filter;
    kli_child_report *report;
    uint32_t sequence;
} cpu_state;

/* One call of everything the plan launches, or of a plugin, with all arguments in place. */
typedef struct {
    kli_backend_call *launches;
    kl_plugin_call *plugin;
} prepared;

/* ---- open, load -------------------------------------------------------------------------- */

/* Some functions that kernels may call ask the system something the first time, which no filter
 * would allow: they ask now. */
static int compare_bytes(const void *a, const void *b) {
    return *(const char *)a - *(const char *)b;
}

static void ask_beforehand(void) {
    char many[4096] = {1};
    qsort(many, sizeof many, 1, compare_bytes);
}

static int cpu_open(kli_runner_ctx *c) {
    static cpu_state state;
    cpu_state *s = c->state = &state;
    s->report = kli_child_report_open();
    if (!s->report) return kli_fault(c, KL_FAULT_DEVICE, "no shared page: %s", strerror(errno));
    kli_child_catch(s->report, !c->trusted);
    if (c->trusted) return 0;
    ask_beforehand();
    if (kli_filter_build(&s->kernel_filter, KLI_FILTER_KERNEL) &&
        kli_filter_build(&s->threads_filter, KLI_FILTER_THREADS))
        c->reply->isolation |= KLI_ISOLATED_SECCOMP;
    return 0;
}

static void set_threads(const kli_runner_ctx *c, void *symbol) {
    void (*omp_set_num_threads)(int);
    memcpy(&omp_set_num_threads, &symbol, sizeof symbol);
    if (symbol) omp_set_num_threads(c->threads);
}

/* OpenMP's threads outlive the kernel that started them: their library stays when the kernel's is
 * closed. */
static void keep_openmp(void) {
    static const char *const RUNTIMES[] = {"libgomp.so.1", "libomp.so.5"};
    for (size_t i = 0; i < KL_COUNT(RUNTIMES); i++)
        (void)dlopen(RUNTIMES[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static int load_trusted(cpu_state *s, kli_runner_ctx *c) {
    s->library = kli_dlopen_fd(c->artefact_fd, false);
    if (!s->library) return kli_fault(c, KL_FAULT_REFUSED, "cannot be loaded: %s", dlerror());
    keep_openmp();
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        void *symbol = dlsym(s->library, c->plan.launches[i].entry);
        memcpy(&s->entries[i], &symbol, sizeof symbol);
    }
    set_threads(c, dlsym(s->library, "omp_set_num_threads"));
    return 0;
}

static int load_candidate(cpu_state *s, kli_runner_ctx *c) {
    if (kli_object_open(&s->object, c)) return 1;
    for (uint32_t i = 0; i < c->plan.n_launches; i++)
        s->entries[i] = kli_object_entry(&s->object, c->plan.launches[i].entry);
    set_threads(c, kli_object_openmp(&s->object, "omp_set_num_threads"));
    return 0;
}

static int runner_cpu_load_kernel(cpu_state *s, kli_runner_ctx *c) {
    if (c->trusted ? load_trusted(s, c) : load_candidate(s, c)) return 1;
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        if (!s->entries[i])
            return kli_fault(c, KL_FAULT_REFUSED, "no function `%s` in the kernel",
                             c->plan.launches[i].entry);
        c->reply->resources[i] = (kl_resources){.max_threads = (uint32_t)c->threads};
    }
    c->reply->n_resources = c->plan.n_launches;
    return 0;
}

static int cpu_load(kli_runner_ctx *c) {
    cpu_state *s = c->state;
    if (s->library) dlclose(s->library);
    s->library = NULL;
    kli_object_close(&s->object);
    kli_plugin_close(&s->plugin);
    s->is_prepared = s->code_settled = false;
    s->is_plugin = c->artefact_kind == KL_ARTEFACT_PLUGIN;
    if (!s->is_plugin && c->artefact_kind != KL_ARTEFACT_SHARED_OBJECT)
        return kli_fault(c, KL_FAULT_REFUSED, "this runner runs shared objects and plugins only");
    if (!s->is_plugin) return runner_cpu_load_kernel(s, c);
    kli_plugin_frame_init(&s->frame, c, NULL);
    return kli_plugin_load(&s->plugin, c);
}

/* ---- arguments --------------------------------------------------------------------------- */

/* C has no type for the narrow floats but one: their bits travel as an unsigned integer. */
static void add_scalar(kli_backend_call *call, kl_dtype type, double value) {
    uint64_t bits = 0;
    if (type == KL_F64) {
        kli_call_add_double(call, value);
    } else if (type == KL_F32) {
        kli_call_add_float(call, (float)value);
    } else if (!kl_dtype_is_float(type)) {
        kli_call_add_int(call, (uint64_t)(int64_t)value);
    } else {
        kl_dtype_store(type, &bits, 0, value);
        if (type == KL_F16)
            kli_call_add_half(call, (uint16_t)bits);
        else
            kli_call_add_int(call, bits);
    }
}

static bool add_argument(kli_backend_call *call, const kli_runner_ctx *c, const kl_value *v,
                         uint32_t set, uint32_t slot) {
    switch ((kl_value_kind)v->kind) {
    case KL_VALUE_TENSOR:
        kli_call_add_int(call, (uintptr_t)kli_ctx_tensor(c, v->index, set, slot));
        return true;
    case KL_VALUE_BUFFER:
        kli_call_add_int(call, (uintptr_t)kli_ctx_buffer(c, v->index, slot));
        return true;
    case KL_VALUE_I32:
        kli_call_add_int(call, (uint64_t)(int64_t)(int32_t)v->i);
        return true;
    case KL_VALUE_I64:
        kli_call_add_int(call, (uint64_t)v->i);
        return true;
    case KL_VALUE_F32:
        add_scalar(call, KL_F32, v->f);
        return true;
    case KL_VALUE_F64:
        add_scalar(call, KL_F64, v->f);
        return true;
    case KL_VALUE_SCALAR:
        add_scalar(call, (kl_dtype)c->plan.tensors[v->index].dtype, v->f);
        return true;
    default:
        return false;
    }
}

/* Of hundreds of calls no more than their own tensors: a whole frame each would be megabytes. */
static void prepare_plugin(prepared *p, const kli_runner_ctx *c, uint32_t set, uint32_t slot) {
    const cpu_state *s = c->state;
    const uint32_t n = c->plan.n_tensors;
    kl_plugin_tensor *tensors = KL_ARRAY(c->arena, kl_plugin_tensor, n);
    KL_ASSERT(n == (uint32_t)s->frame.call.n_tensors);
    memcpy(tensors, s->frame.tensors, n * sizeof *tensors);
    for (uint32_t i = 0; i < n; i++)
        if (c->plan.tensors[i].role != KL_ROLE_SCALAR)
            tensors[i].data = kli_ctx_tensor(c, i, set, slot);
    p->plugin = KL_NEW(c->arena, kl_plugin_call);
    *p->plugin = s->frame.call;
    p->plugin->tensors = tensors;
}

static int runner_cpu_prepare(prepared *p, const kli_runner_ctx *c, uint32_t set, uint32_t slot) {
    const cpu_state *s = c->state;
    *p = (prepared){0};
    if (s->is_plugin) return prepare_plugin(p, c, set, slot), 0;
    p->launches = KL_ARRAY(c->arena, kli_backend_call, c->plan.n_launches);
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        const kl_plan_launch *l = &c->plan.launches[i];
        kli_call_init(&p->launches[i], s->entries[i]);
        const kl_value *args = kli_launch_args(&c->plan, l);
        for (uint32_t k = 0; k < l->n_args; k++)
            if (!add_argument(&p->launches[i], c, &args[k], set, slot))
                return kli_fault(c, KL_FAULT_REFUSED, "argument %u of `%s` means nothing on a CPU",
                                 k + 1, l->entry);
    }
    return 0;
}

static int runner_cpu_call_all(const kli_runner_ctx *c, const prepared *p) {
    const cpu_state *s = c->state;
    if (s->is_plugin) return s->plugin.run(s->plugin.state, p->plugin);
    for (uint32_t i = 0; i < c->plan.n_launches; i++) kli_call_make(&p->launches[i]);
    return 0;
}

static int cpu_bind(kli_runner_ctx *c) {
    cpu_state *s = c->state;
    prepared p;
    char why[256] = "";
    s->is_settled = false;
    if (!s->is_plugin || s->is_prepared) return 0;
    if (runner_cpu_prepare(&p, c, 0, 0)) return 1;
    s->is_prepared = s->plugin.prepare(s->plugin.state, p.plugin, why, sizeof why) == 0;
    if (!s->is_prepared)
        return kli_fault(c, KL_FAULT_REFUSED, "%s", why[0] ? why : "the plugin refuses this shape");
    const char *says = s->plugin.describe(s->plugin.state);
    if (says) (void)strncpy(c->reply->text, says, sizeof c->reply->text - 1);
    return 0;
}

/* ---- children ---------------------------------------------------------------------------- */

/* A core for each thread of a pool. */
typedef struct {
    cpu_set_t cores;
    atomic_int taken;
} core_share;

static void take_a_core(void *data) {
    core_share *share = data;
    int skip = atomic_fetch_add(&share->taken, 1);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t core = 0; core < CPU_SETSIZE && !CPU_COUNT(&one); core++)
        if (CPU_ISSET(core, &share->cores) && skip-- == 0) CPU_SET(core, &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

static void take_what_comes(void *data) { (void)data; }

/* Have libgomp make its threads now, by a parallel region of ours, before new threads are
 * forbidden; each on its core where there are enough: two that spin at one barrier on one core take
 * a time slice for every step. */
static void start_thread_pool(const kli_runner_ctx *c) {
    const cpu_state *s = c->state;
    core_share share = {0};
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
    void *symbol = c->trusted ? dlsym(s->library, "GOMP_parallel")
                              : kli_object_openmp(&s->object, "GOMP_parallel");
    memcpy(&parallel, &symbol, sizeof symbol);
    (void)sched_getaffinity(0, sizeof share.cores, &share.cores);
    const bool enough = CPU_COUNT(&share.cores) >= c->threads;
    if (symbol) parallel(enough ? take_a_core : take_what_comes, &share, (unsigned)c->threads, 0);
}

/* The last steps before candidate code, whose bytes are looked at behind the filter alone.  Where
 * no filter can be had the gate has been told so (READY).  A trusted kernel was loaded with its
 * runner. */
static void confine_child(const kli_runner_ctx *c) {
    const cpu_state *s = c->state;
    if (!c->trusted && !kli_object_map(&s->object)) _exit(1);
    kli_child_enter();
    if (c->threads > 1) start_thread_pool(c);
    const kli_filter *f = c->threads > 1 ? &s->threads_filter : &s->kernel_filter;
    if (f->program.len && !kli_filter_enter(f)) _exit(1);
    if (!c->trusted) kli_object_relocate(&s->object);
}

static _Noreturn void finish_child(const kli_runner_ctx *c, uint32_t sequence) {
    const cpu_state *s = c->state;
    atomic_store(&s->report->finished, sequence);
    _exit(0);
}

/* Notes of an earlier child between the words; `armed` is awaited by the gate, which has cleared
 * it. */
static void clear_handshake(const kli_runner_ctx *c) {
    memset((void *)c->control, 0, offsetof(kl_control, samples_ns));
}

static pid_t fork_child(kli_runner_ctx *c, uint32_t *sequence) {
    cpu_state *s = c->state;
    KL_ASSERT(c->control && s->report);
    *sequence = ++s->sequence;
    clear_handshake(c);
    pid_t child = kli_child_fork(s->report);
    if (child < 0) kli_fault(c, KL_FAULT_DEVICE, "cannot fork: %s", strerror(errno));
    return child;
}

static void *map_at(char *where, size_t bytes, int protection, int fd, uint64_t offset) {
    int how = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);
    return mmap(where, bytes, protection, how, fd, (off_t)offset);
}

static bool hide(char *base, uint64_t stride, uint32_t from, uint32_t to) {
    return !stride || from >= to ||
           map_at(base + stride * from, stride * (to - from), PROT_NONE, -1, 0) != MAP_FAILED;
}

/* Only the call's own slots stay: the others hold answers of the baseline and could keep notes from
 * batch to batch. */
static bool hide_other_slots(const kli_runner_ctx *c, uint32_t first, uint32_t calls) {
    const uint32_t n = c->layout.n_slots, from = first % n, to = from + calls;
    bool ok = true;
    if (calls >= n) return true;
    KL_ASSERT(from < n && to < 2 * n);
    for (kli_region r = KLI_OUTPUTS; r < KLI_REGIONS && ok; r++) {
        char *base = c->pages[r];
        const uint64_t stride = base ? kli_region_stride(&c->layout, r) : 0;
        ok = to <= n ? hide(base, stride, 0, from) && hide(base, stride, to, n)
                     : hide(base, stride, to - n, from);
    }
    return ok;
}

/* Samples are for devices that time themselves; the handshake is for a timed batch. */
static bool hide_control(const kli_runner_ctx *c, bool keep_handshake) {
    size_t kept = keep_handshake ? offsetof(kl_control, samples_ns) : 0;
    return munmap((char *)c->control + kept, sizeof *c->control - kept) == 0;
}

static int run_in_child(kli_runner_ctx *c, uint32_t slot, const prepared *p) {
    const cpu_state *s = c->state;
    uint32_t sequence;
    pid_t child = fork_child(c, &sequence);
    if (child < 0) return 1;
    if (child > 0) return kli_child_wait(c, child, s->report, sequence);
    if (!hide_other_slots(c, slot, 1) || !hide_control(c, false)) _exit(1);
    confine_child(c);
    int64_t start = kli_now_ns();
    (void)runner_cpu_call_all(c, p);
    s->report->wall_ns = kli_now_ns() - start;
    finish_child(c, sequence);
}

static int runner_cpu_run_here(kli_runner_ctx *c, const prepared *p) {
    int64_t start = kli_now_ns();
    int code = runner_cpu_call_all(c, p);
    c->reply->wall_ns = kli_now_ns() - start;
    return code ? kli_fault(c, KL_FAULT_REFUSED, "the plugin's run returned %d", code) : 0;
}

/* Outputs of the slot were poisoned by the gate, through its own mapping. */
static int cpu_run(kli_runner_ctx *c, const kl_msg_run *m) {
    prepared p;
    kli_ctx_scratch_fill(c, m->slot, 1, m->poison);
    return runner_cpu_prepare(&p, c, m->set, m->slot) ||
           (c->trusted ? runner_cpu_run_here(c, &p) : run_in_child(c, m->slot, &p)) ||
           kli_ctx_scratch_check(c, m->slot, 1, m->poison);
}

/* ---- time -------------------------------------------------------------------------------- */

static int make_calls(prepared **out, kli_runner_ctx *c, uint32_t first, uint32_t n) {
    int failed = 0;
    KL_ASSERT(n <= KL_WIRE_MAX_SAMPLES && c->layout.n_sets >= 1 && c->layout.n_slots >= 1);
    *out = KL_ARRAY(c->arena, prepared, n);
    for (uint32_t j = 0; j < n && !failed; j++)
        failed = runner_cpu_prepare(&(*out)[j], c, (first + j) % c->layout.n_sets,
                                    (first + j) % c->layout.n_slots);
    return failed;
}

/* Copy-on-write views of the slots that warm calls use, at the same addresses; nothing where the
 * other slots and the control words were.  A warm call sees what a timed one will and leaves
 * nothing. */
static bool make_private(const kli_runner_ctx *c, uint32_t first, uint32_t calls) {
    const uint32_t n = c->layout.n_slots;
    bool ok = hide_control(c, false);
    for (kli_region r = KLI_OUTPUTS; r < KLI_REGIONS && ok; r++) {
        if (!c->page_bytes[r]) continue;
        const uint64_t stride = kli_region_stride(&c->layout, r);
        const int fd = r == KLI_OUTPUTS ? c->outputs_fd : -1;
        ok = map_at(c->pages[r], c->page_bytes[r], PROT_NONE, -1, 0) != MAP_FAILED;
        for (uint32_t j = 0; ok && j < calls && j < n; j++) {
            const uint64_t at = (first + j) % n * stride;
            ok = map_at(c->pages[r] + at, stride, PROT_READ | PROT_WRITE, fd, fd < 0 ? 0 : at) !=
                 MAP_FAILED;
        }
    }
    return ok;
}

static int warm_in_child(kli_runner_ctx *c, const kl_msg_time *m, const prepared *calls) {
    const cpu_state *s = c->state;
    uint32_t sequence;
    if (!m->warm || !m->calls) return 0;
    pid_t child = fork_child(c, &sequence);
    if (child < 0) return 1;
    if (child > 0) return kli_child_wait(c, child, s->report, sequence);
    if (!make_private(c, m->first, m->warm < m->calls ? m->warm : m->calls))
        finish_child(c, sequence); /* no room: not warmed */
    confine_child(c);
    for (uint32_t j = 0; j < m->warm; j++) (void)runner_cpu_call_all(c, &calls[j % m->calls]);
    finish_child(c, sequence);
}

/* A library keeps its threads and packing buffers from call to call, as it would for its user.  A
 * trusted kernel is timed as a candidate is, in a child: what a fork costs the first microseconds
 * must not tell the two apart. */
static bool stays_here(const kli_runner_ctx *c) {
    const cpu_state *s = c->state;
    return c->trusted && s->is_plugin;
}

static int time_in_child(kli_runner_ctx *c, const kl_msg_time *m, const prepared *calls) {
    const cpu_state *s = c->state;
    uint32_t sequence;
    KL_ASSERT(!stays_here(c)); /* a plugin keeps its threads */
    if (warm_in_child(c, m, calls)) return 1;
    pid_t child = fork_child(c, &sequence);
    if (child < 0) return 1;
    if (child > 0) return kli_child_wait(c, child, s->report, sequence);
    kli_child_settle_code(c->trusted || c->threads > 1 ? NULL : &s->object);
    kli_child_settle_data(c, m->first, m->calls);
    if (!hide_other_slots(c, m->first, m->calls) || !hide_control(c, true)) _exit(1);
    confine_child(c);
    kli_control_arm(c->control, m->sequence, m->spin);
    for (uint32_t j = 0; j < m->calls; j++) (void)runner_cpu_call_all(c, &calls[j]);
    kli_control_done(c->control, m->sequence, m->spin);
    finish_child(c, sequence);
}

/* Fresh pages fault in outside the interval, as they do for a child.  They stay: a process that
 * lives on has them from its first batch. */
static void settle_here(kli_runner_ctx *c, const kl_msg_time *m) {
    cpu_state *s = c->state;
    const uint32_t all =
        c->layout.n_sets > c->layout.n_slots ? c->layout.n_sets : c->layout.n_slots;
    if (!s->code_settled) kli_child_settle_code(NULL);
    if (!s->is_settled) kli_child_settle_data(c, 0, all);
    s->code_settled = s->is_settled = true;
    kli_child_touch(c, m->first, m->calls);
}

/* What no thread of this process ran so far: exact, since it is the one that runs. */
static int64_t idle_ns_so_far(void) {
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return kli_now_ns() - (t.tv_sec * 1000000000ll + t.tv_nsec);
}

/* Trusted warm calls use the sets and slots behind the batch's own. */
static int time_here(kli_runner_ctx *c, const kl_msg_time *m, const prepared *calls) {
    prepared *warm;
    int failed = make_calls(&warm, c, m->first + m->calls, m->warm);
    for (uint32_t j = 0; j < m->warm && !failed; j++) failed = runner_cpu_call_all(c, &warm[j]);
    if (!failed) {
        settle_here(c, m);
        const int64_t idle_ns = idle_ns_so_far();
        kli_control_arm(c->control, m->sequence, m->spin);
        for (uint32_t j = 0; j < m->calls; j++) failed |= runner_cpu_call_all(c, &calls[j]);
        kli_control_done(c->control, m->sequence, m->spin);
        const int64_t lost_ns = idle_ns_so_far() - idle_ns;
        c->reply->lost_ns = lost_ns > 0 ? lost_ns : 1;
    }
    return failed ? kli_fault(c, KL_FAULT_REFUSED, "the plugin's run returned %d", failed) : 0;
}

static int cpu_time(kli_runner_ctx *c, const kl_msg_time *m) {
    prepared *calls;
    if (m->method != KL_TIME_BATCH)
        return kli_fault(c, KL_FAULT_REFUSED, "a CPU is timed in batches only");
    kli_ctx_scratch_fill(c, m->first, m->calls, m->poison);
    return make_calls(&calls, c, m->first, m->calls) ||
           (stays_here(c) ? time_here(c, m, calls) : time_in_child(c, m, calls)) ||
           kli_ctx_scratch_check(c, m->first, m->calls, m->poison);
}

const kli_runner_ops kli_runner_cpu = {.name = "cpu",
                                       .shared_memory = true,
                                       .probe = kli_cpu_probe,
                                       .open = cpu_open,
                                       .load = cpu_load,
                                       .bind = cpu_bind,
                                       .run = cpu_run,
                                       .time = cpu_time};
