/* backend.h - compilers, shared pages and the runners that execute one kernel each: what the gate
 * has of klineage/backend.h beyond its devices.
 *
 * The process that uses this header (the gate) never loads a driver and never runs a kernel:
 * devices are probed and kernels are run by `klineage-worker`, a program that needs libc and dlopen
 * alone.  One runner is one process and one kernel.  What a runner says is data: timings are
 * cross-checked, outputs are compared, sizes are validated. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_BACKEND_H
#define KL_BACKEND_BACKEND_H

#include <klineage/backend.h>

#include "kernel/kernel.h"

/* ---- isolation --------------------------------------------------------------------------- */

/* What confines a process here; each false is a degradation that the verdict lists. */
typedef struct {
    bool seccomp, landlock, namespaces, user_switch, rlimits;
    int landlock_abi;
} kl_isolation;

void kli_isolation_probe(kl_isolation *out);
const char *kli_isolation_text(const kl_isolation *i, char *buf,
                               size_t n); /* "seccomp+landlock7+ns+rlimits" */

/* ---- compile ----------------------------------------------------------------------------- */

typedef enum {
    KL_ARTEFACT_NONE,
    KL_ARTEFACT_SHARED_OBJECT,
    KL_ARTEFACT_CUBIN,
    KL_ARTEFACT_OPENCL,
    KL_ARTEFACT_PLUGIN,
    KL_ARTEFACT_SCRIPT
} kl_artefact_kind;

struct kl_artefact {
    bool ok; /* false: the compiler said no; `log` says why */
    kl_artefact_kind kind;
    kl_str path;      /* file in the compile cache */
    kl_str log;       /* compiler output, paths removed, at most 16 KiB */
    kl_str toolchain; /* "nvcc 13.0.88", "gcc 12.2.0" */
    char hash[65];    /* sha256 of the artefact */
    bool cached;
    kl_str degraded; /* what this compile had to do without; not kept in the cache */
    int64_t wall_ns;
    kl_str suspicious; /* binary inspection: why this is a cheat or cannot be trusted; empty when
                          clean */
    kl_str refused;    /* what it needs is not offered to kernels, and what to use instead; no word
                          about honesty */
    kl_str completion; /* what the compiler decided of the launches, for kli_plan_complete; empty
                          where it decides nothing */
    kl_str remarks, hot_loop; /* what the compiler said of loops, and the instructions of one: for
                                 readers, may be empty */
    kl_feature features[64];
    int n_features;
};

/* One compile, as the `compile` slot of a surface gets it. */
struct kl_compile_job {
    kl_arena *arena;
    const kl_device *device;
    const kl_kernel *kernel;
    const char *const *defines; /* "-DKL_BM=64" ..., NULL-terminated */
    kl_str classes;             /* what kl_surface.specialize said; empty without it */
    const char *dir;            /* private and empty; removed afterwards */
};

/* May shapes of `k` need artefacts of their own?  Then it is compiled for each. */
bool kli_compile_depends_on_shape(const kl_kernel *k);
/* Is its code for `x` the one for `y`?  False where that cannot be said. */
bool kli_compile_is_same(kl_arena *a, const kl_device *d, const kl_kernel *k, const kl_task *t,
                         const kl_workload *x, const kl_workload *y);
/* Compile `k` for `w` on `d`, in a sandbox, cached by content (source, flags, defines, compiler
 * version, device arch).  A refusal by the compiler is KL_OK with ok=false.  Plugins (a .c that is
 * not a kernel) and scripts of trusted baselines too. Errors: KL_ENODEV (no compiler),
 * KL_EISOLATION, KL_EIO. */
KL_MUST_USE kl_err kli_compile(kl_artefact *out, kl_arena *a, const kl_device *d,
                               const kl_kernel *k, const kl_task *t, const kl_workload *w,
                               const kl_compile_opts *o, kl_error *e);
/* The same in two parts: what decides about a kernel, and then what is for readers alone
 * (kl_surface.describe), which goes into the cache as well.  A description that fails, or is
 * interrupted, is made by whoever compiles the kernel next. */
KL_MUST_USE kl_err kli_compile_code(kl_artefact *out, kl_arena *a, const kl_device *d,
                                    const kl_kernel *k, const kl_task *t, const kl_workload *w,
                                    const kl_compile_opts *o, kl_error *e);
bool kli_compile_is_described(const kl_artefact *made, const kl_kernel *k);
void kli_compile_describe(kl_artefact *out, kl_arena *a, const kl_kernel *k);
/* A trusted host plugin or script by path; no kernel directives. */
KL_MUST_USE kl_err kli_compile_plugin(kl_artefact *out, kl_arena *a, const kl_device *d,
                                      const char *path, const kl_compile_opts *o, kl_error *e);

/* ---- backends ---------------------------------------------------------------------------- */

/* One row per backend in src/backend/backends.c; what is compiled for it is the business of
 * surfaces. */
typedef struct {
    kl_backend_id id;
    const char *name; /* "cpu" */
    kl_host_kind on;
    const char *probe_verb; /* `klineage-worker probe VERB` prints the device as JSON */
    bool shared_memory; /* kernels work on the shared pages themselves (no upload, no download) */
    bool parent_clock;  /* the gate's clock times it; otherwise device events, cross-checked */
} kl_backend;

const kl_backend *kli_backend_get(kl_backend_id id);
/* The i-th back end that runs a surface, the preferred one first; NULL past the last. */
const kl_backend *kli_backend_of_surface(const kl_surface *s, int i);
const kl_backend *kli_backend_each(int i);

/* ---- runner ------------------------------------------------------------------------------ */

/* Where a tensor's bytes are: `n_sets` copies of every input, `n_slots` copies of every output,
 * mutable input and buffer.  Call i works on set i % n_sets and slot i % n_slots.  Every copy has a
 * guard zone of at least KL_GUARD_BYTES on both sides, begins on a 256-byte boundary and ends less
 * than 256 bytes before its upper guard page. */
#define KL_DEF_STRUCT(name) typedef struct name {
#define KL_DEF_FIELD(type, member, dims) type member dims;
#define KL_DEF_END(name)                                                                           \
    }                                                                                              \
    name;
#include "backend/layout.def"

KL_MUST_USE kl_err kli_layout_make(kl_layout *out, const kl_plan *plan, uint32_t n_sets,
                                   uint32_t n_slots, kl_error *e);

/* Shared pages: the gate writes inputs and poison, the runner maps inputs read-only. */
typedef struct kl_memory {
    int inputs_fd, inputs_ro_fd, outputs_fd;
    char *inputs, *outputs; /* the gate's mapping */
    size_t inputs_bytes, outputs_bytes;
    bool borrows_inputs; /* inputs belong to another kl_memory, which must outlive this one */
    bool huge;           /* many sets of inputs lie in huge pages */
    kl_layout layout;    /* scratch fields unused: scratch belongs to a runner */
} kl_memory;

bool kli_huge_pages_here(void); /* for who asks how this host is set up */
KL_MUST_USE kl_err kli_memory_open(kl_memory *out, const kl_layout *l, kl_error *e);
/* Own outputs, the inputs of another: the oracle sees the candidate's inputs, the candidate never
 * the oracle's pages. */
KL_MUST_USE kl_err kli_memory_open_beside(kl_memory *out, const kl_layout *l,
                                          const kl_memory *inputs_of, kl_error *e);
void kli_memory_close(kl_memory *m);
void *kli_memory_input(const kl_memory *m, const kl_plan *p, uint32_t tensor,
                       uint32_t set); /* data of an input */
void *kli_memory_output(const kl_memory *m, const kl_plan *p, uint32_t tensor,
                        uint32_t slot); /* data of an output or mutable input */
/* Fill outputs of a slot, and the guards around them, with one byte.  Guards hold byte ^ 0xFF. */
void kli_memory_poison(kl_memory *m, const kl_plan *p, uint32_t slot, uint8_t byte);
/* Fill what lies beside the data of an input set's tensors, up to their guard pages, with one byte;
 * `only`: of this tensor, -1: of all. */
void kli_memory_slack(kl_memory *m, const kl_plan *p, uint32_t set, int only, uint8_t byte);
/* First damaged guard byte of a slot: index of the tensor, or -1 when all are whole. */
int kli_memory_guard_damage(const kl_memory *m, const kl_plan *p, uint32_t slot, uint8_t byte);

typedef enum {
    KL_FAULT_NONE,
    KL_FAULT_CRASH,
    KL_FAULT_HANG,
    KL_FAULT_DEVICE,
    KL_FAULT_REFUSED,
    KL_FAULT_PROTOCOL,
    KL_FAULT_GUARD,
    KL_FAULT_INPUT /* an input that is not mutable was changed */
} kl_fault_kind;

/* How a runner failed.  These are results about a kernel, not errors of ours. */
typedef struct {
    kl_fault_kind kind;
    int signal;
    char text[512]; /* "illegal memory access", "SIGSEGV at a guard page of `C`" */
} kl_fault;

typedef struct {
    kl_backend_id backend;
    bool trusted; /* oracle, baseline: no seccomp, may dlopen */
    bool script;  /* a trusted Python script: runner_script.py instead of klineage-worker */
    int cpu;      /* pin to this core; -1: no pin (several threads) */
    int threads;
    const char *worker; /* path of klineage-worker; NULL: beside the running program */
} kl_runner_opts;

typedef struct kl_runner kl_runner;

/* Start a process and its device context; nothing of a candidate is loaded yet, so runners may be
 * started ahead. Errors: KL_ESPAWN, KL_ENODEV, KL_EISOLATION. */
KL_MUST_USE kl_err kli_runner_start(kl_runner **out, const kl_runner_opts *o, kl_error *e);
/* Wait until it is up, where it is not: from then on it does nothing that it was not asked for.
 * Errors: as kli_runner_start. */
KL_MUST_USE kl_err kli_runner_await(kl_runner *r, kl_error *e);
bool kli_runner_is_up(kl_runner *r); /* it waits for a request, or its process ended */
/* One that is not up stands still until it may go on, or is awaited; one that is up does nothing
 * anyway.  False: it could not be held, and goes on. */
bool kli_runner_hold(kl_runner *r);
void kli_runner_go_on(kl_runner *r);
/* Pin the runner to a core (-1: none) and set the number of threads its kernels may use; may be
 * called before every load. */
KL_MUST_USE kl_err kli_runner_place(kl_runner *r, int cpu, int threads, kl_error *e);
/* Ask a trusted runner of a device to load what it will be asked to load later: a vendor's library
 * takes a while to open, and this does not wait.  Whatever goes wrong, the load will say. */
void kli_runner_load_ahead(kl_runner *r, const kl_artefact *artefact, const kl_plan *plan);
/* Load an artefact for a plan; may be called again for another shape (see wire.h).  Launches that
 * the device refuses (shared memory, registers) are KL_FAULT_REFUSED. `resources`: one per launch.
 */
KL_MUST_USE kl_err kli_runner_load(kl_runner *r, kl_fault *fault, kl_resources *resources,
                                   const kl_artefact *artefact, const kl_plan *plan, kl_error *e);
/* Bind the shared pages; allocates device buffers where the backend has its own memory. Scratch is
 * allocated and guarded by the runner's side. */
KL_MUST_USE kl_err kli_runner_bind(kl_runner *r, kl_fault *fault, const kl_memory *m, kl_error *e);
/* Copy input sets [first, first+n) to the device; nothing to do on shared memory. */
KL_MUST_USE kl_err kli_runner_upload(kl_runner *r, kl_fault *fault, uint32_t first, uint32_t n,
                                     kl_error *e);
/* Reset kernel state (device globals), poison outputs and scratch of the slot with `poison`,
 * restore mutable inputs from the shared pages, run once on (set, slot), bring outputs, mutable
 * inputs, inputs' checksum and guards back.  Guard damage in scratch or inputs, or a changed input,
 * is KL_FAULT_GUARD with the name.  After timeout_ns on a core the process is killed:
 * KL_FAULT_HANG; one that waits for its turn on a core is waited for, twenty times as long, and
 * then it is KL_EBUSY.  One that sleeps hangs after four times as long. */
KL_MUST_USE kl_err kli_runner_run(kl_runner *r, kl_fault *fault, uint32_t set, uint32_t slot,
                                  uint8_t poison, int64_t timeout_ns, int64_t *wall_ns,
                                  kl_error *e);

/* What lies beside the inputs of a device in the runs that follow; shared pages are filled by
 * kli_memory_slack. */
void kli_runner_slack(kl_runner *r, uint8_t byte);

typedef enum {
    KL_TIME_BATCH,  /* parent's clock around `calls` calls, each on its own slot; state of the
                       process is a fresh fork */
    KL_TIME_EVENTS, /* device events around each of `calls` launches, the cache flushed before each
                     */
    KL_TIME_GRAPH   /* device events around one graph of `calls` launches, each on its own slot */
} kl_time_method;

typedef struct {
    kl_time_method method;
    uint32_t first, calls; /* call j works on set (first+j) % n_sets and slot (first+j) % n_slots */
    uint32_t warm;         /* untimed calls before, in the same process state */
    uint8_t poison;        /* outputs are poisoned before (by the caller on shared memory) */
    bool flush;            /* EVENTS: write 2 x L2 before each launch */
    bool alone;  /* GRAPH: slots of no call must be at the end as they were at the beginning */
    bool freeze; /* BATCH: stop the process the moment it says done, before outputs are looked at */
} kl_time_request;

/* One timed sample: ns per call in `ns` (EVENTS: `calls` values; else one, already divided). Errors
 * as kli_runner_run. */
KL_MUST_USE kl_err kli_runner_time(kl_runner *r, kl_fault *fault, double *ns,
                                   const kl_time_request *q, int64_t timeout_ns, kl_error *e);
/* Digests of the slots that the last timed sample wrote, guards included, one per call; NULL where
 * the device gave none (shared pages need none). */
const uint64_t *kli_runner_digests(const kl_runner *r, uint32_t calls);
/* The digest that a slot of that sample has where nothing was written to it; 0: not known. */
uint64_t kli_runner_blank_digest(const kl_runner *r);
/* After a batch, which is not told of it before: are the guards of all its slots and all its input
 * sets whole on the device?  Nothing comes back, and there is nothing to do on shared memory. */
KL_MUST_USE kl_err kli_runner_audit(kl_runner *r, kl_fault *fault, uint32_t first, uint32_t calls,
                                    uint8_t poison, kl_error *e);
enum { KL_FETCH_SLOTS = 64 };
#define KLI_NO_SET (~0u)
/* Check the guards of up to KL_FETCH_SLOTS slots on the device and bring their outputs back;
 * nothing to do on shared memory. */
KL_MUST_USE kl_err kli_runner_fetch(kl_runner *r, kl_fault *fault, const uint32_t *slots,
                                    uint32_t n, uint8_t poison, kl_error *e);
/* Overhead of an empty BATCH handshake, ns: the least that was seen.  kli_runner_time subtracts it,
 * though never more than a twentieth of the batch. */
double kli_runner_handshake_ns(const kl_runner *r);

/* What is known about the clock of the last sample that kli_runner_time took; from the scheduler
 * and this thread's own clock, never from the sample's value.  All false where the operating system
 * does not say, and for device events. */
typedef struct {
    bool preempted;         /* the process that runs the batch was ready and had no core */
    bool late;              /* this thread was not there when the batch began or ended */
    bool stolen;            /* a hypervisor gave the core to another guest */
    double handshake_share; /* of the empty exchange in the interval */
} kl_sample;
kl_sample kli_runner_sample(const kl_runner *r);
const char *kli_runner_describe(
    const kl_runner *r); /* of a plugin or script: what it says of itself; borrowed */
/* What confines this runner, as it said before it was told of any kernel; all false before the
 * first load and for trusted ones. */
const kl_isolation *kli_runner_isolation(const kl_runner *r);
/* Kill it and go on; kli_runner_stop, which must follow, waits for its end.  A device's driver
 * takes a while to clean up behind a process.  Accepts NULL. */
void kli_runner_dismiss(kl_runner *r);
void kli_runner_stop(kl_runner *r); /* kill and reap; accepts NULL */
/* kli_runner_stop, which leaves it to a thread of its own to wait for a device's driver: for who
 * needs nothing of the device any more. */
void kli_runner_leave(kl_runner *r);

#endif
