/* doctor_machine.c - devices, sandbox, cores, counters and the environment.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/doctor.h"
#include "backend/backend.h"
#include "base/fs.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- devices ----------------------------------------------------------------------------- */

static kl_str device_text(kl_arena *a, const kl_device *v) {
    return kl_arena_printf(a, "%.*s (%.*s)", KL_STR_ARG(v->name), KL_STR_ARG(v->platform));
}

static void device(kli_doctor *d, kl_backend_id id, const char *name, const char *mend) {
    kl_device v = {0};
    kl_error e = {0};
    KL_ASSERT((size_t)id < KL_COUNT(d->has_device));
    d->has_device[id] = kl_device_measure(&v, id, &e) == KL_OK;
    if (d->has_device[id])
        return kli_doctor_add(d, "devices", name, KL_DOCTOR_OK, device_text(d->arena, &v), NULL);
    kli_doctor_add(d, "devices", name, KL_DOCTOR_MISSING,
                   kl_arena_copy(d->arena, kl_str_of(e.message)), mend);
}

void kli_doctor_devices(kli_doctor *d) {
    kl_str worker = kli_fs_find_part(d->arena, "klineage-worker");
    d->has_worker = access(worker.ptr, X_OK) == 0;
    kli_doctor_add(d, "devices", "worker", d->has_worker ? KL_DOCTOR_OK : KL_DOCTOR_MISSING, worker,
                   "build again and keep klineage-worker beside klineage: ./run build");
    device(d, KL_BACKEND_CPU, "cpu", "apt-get install gcc libc6-dev");
    device(d, KL_BACKEND_OPENCL, "opencl", "apt-get install ocl-icd-libopencl1 pocl-opencl-icd");
    device(d, KL_BACKEND_CUDA, "cuda",
           "needs an NVIDIA GPU and driver; to use a GPU of another host: klineage help spool");
}

/* ---- sandbox ----------------------------------------------------------------------------- */

static void doctor_machine_level(kli_doctor *d, const char *name, bool has, kl_str found,
                                 const char *mend) {
    kli_doctor_add(d, "sandbox", name, has ? KL_DOCTOR_OK : KL_DOCTOR_WEAK,
                   has ? found : KL_S("not available"), mend);
}

void kli_doctor_sandbox(kli_doctor *d) {
    kl_isolation *i = &d->isolation;
    kli_isolation_probe(i);
    doctor_machine_level(
        d, "seccomp", i->seccomp, KL_S("yes"),
        "a Linux kernel with CONFIG_SECCOMP_FILTER; in a container: a profile that allows seccomp");
    doctor_machine_level(d, "landlock", i->landlock,
                         kl_arena_printf(d->arena, "version %d", i->landlock_abi),
                         "Linux 5.13 or newer with landlock in the lsm= boot parameter");
    doctor_machine_level(d, "namespaces", i->namespaces, KL_S("yes"),
                         "sysctl -w kernel.unprivileged_userns_clone=1 (Debian) or "
                         "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu)");
    doctor_machine_level(d, "user switch", i->user_switch, KL_S("yes"),
                         "only root can run candidates as another user; namespaces do the same");
    doctor_machine_level(d, "limits", i->rlimits, KL_S("yes"), "setrlimit is refused here");
}

/* ---- machine ----------------------------------------------------------------------------- */

static void cores(kli_doctor *d) {
    cpu_set_t set;
    CPU_ZERO(&set);
    bool got = sched_getaffinity(0, sizeof set, &set) == 0;
    int n = got ? CPU_COUNT(&set) : 1;
    kli_doctor_add(d, "machine", "cores", n > 1 ? KL_DOCTOR_OK : KL_DOCTOR_WEAK,
                   kl_arena_printf(d->arena, "%d usable", n),
                   "give this machine or container two cores: one for the kernel, one for the "
                   "clock of the gate");
    bool pins = got && sched_setaffinity(0, sizeof set, &set) == 0;
    kli_doctor_add(d, "machine", "pinning", pins ? KL_DOCTOR_OK : KL_DOCTOR_WEAK,
                   pins ? KL_S("yes") : KL_S("refused"),
                   "allow sched_setaffinity in the container's seccomp profile");
}

static const char *const known_sets[] = {"avx2",        "fma",         "f16c",     "avx512f",
                                         "avx512_bf16", "avx512_fp16", "amx_tile", "sve",
                                         "sve2",        "asimd"};

static int pages_put_aside(void) {
    char line[128];
    int n = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "HugePages_Free: %d", &n) == 1) break;
    if (f) fclose(f);
    return n;
}

/* Of memory that is shared with runners. */
static void huge_pages(kli_doctor *d) {
    const bool advised = kli_huge_pages_here();
    const int aside = pages_put_aside();
    const kl_str found = advised ? KL_S("on advice, for input sets")
                         : aside
                             ? kl_arena_printf(d->arena, "%d put aside, for large inputs", aside)
                             : KL_S("none for shared memory: more address translations");
    kli_doctor_add(d, "machine", "huge pages", advised ? KL_DOCTOR_OK : KL_DOCTOR_WEAK, found,
                   "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled, as root; for "
                   "large inputs alone: sysctl vm.nr_hugepages=N, as many as the inputs take");
}

/* The first line of /proc/cpuinfo that names instruction sets ("flags" on x86, "Features" on Arm).
 */
static void instruction_sets(kli_doctor *d) {
    char line[8192];
    kl_buf found = {0};
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && !found.len && fgets(line, sizeof line, f)) {
        if (strncmp(line, "flags", 5) != 0 && strncmp(line, "Features", 8) != 0) continue;
        for (char *save = NULL, *word = strtok_r(line, " \t\n:", &save); word;
             word = strtok_r(NULL, " \t\n:", &save))
            for (size_t i = 0; i < KL_COUNT(known_sets); i++)
                if (strcmp(word, known_sets[i]) == 0)
                    kl_buf_printf(&found, "%s%s", found.len ? " " : "", word);
    }
    if (f) fclose(f);
    kli_doctor_add(d, "machine", "instructions", KL_DOCTOR_OK,
                   found.len ? kl_arena_copy(d->arena, kl_buf_str(&found)) : KL_S("base set only"),
                   NULL);
    kl_buf_fini(&found);
}

static void counters(kli_doctor *d) {
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = PERF_TYPE_HARDWARE,
                                   .config = PERF_COUNT_HW_CPU_CYCLES,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return kli_doctor_add(d, "machine", "counters", KL_DOCTOR_OK,
                              KL_S("hardware counters can be read"), NULL);
    }
    bool denied = errno == EACCES || errno == EPERM;
    kli_doctor_add(d, "machine", "counters", KL_DOCTOR_WEAK,
                   kl_arena_copy(d->arena, kl_str_of(strerror(errno))),
                   denied ? "sysctl -w kernel.perf_event_paranoid=1"
                          : "no hardware counters on this machine; timing works without them");
}

/* Who may read an NVIDIA GPU's counters, as its driver says; no row where there is no driver. */
static void gpu_counters(kli_doctor *d) {
    char line[128];
    int restricted = -1;
    FILE *f = fopen("/proc/driver/nvidia/params", "re");
    while (f && restricted < 0 && fgets(line, sizeof line, f))
        (void)sscanf(line, "RmProfilingAdminOnly: %d", &restricted);
    if (f) fclose(f);
    if (restricted < 0) return;
    const bool may = !restricted || geteuid() == 0,
               ncu = kli_fs_find_program(d->arena, "ncu").len > 0;
    kli_doctor_add(d, "machine", "GPU counters", may && ncu ? KL_DOCTOR_OK : KL_DOCTOR_WEAK,
                   !may  ? KL_S("the driver shows them to root alone")
                   : ncu ? KL_S("ncu may read them")
                         : KL_S("they may be read, and ncu is not installed"),
                   !may  ? "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in "
                           "/etc/modprobe.d, then load the driver again"
                   : ncu ? NULL
                         : "install Nsight Compute; verdicts do not need it");
}

static const char QUIETER[] = "close other programs, or use --wait-quiet";

/* The same look that walk, optimize, experiment and admit take before they spend anything. */
static void quiet(kli_doctor *d) {
    char text[160];
    if (!d->has_compiler || !d->has_worker || !d->has_device[KL_BACKEND_CPU] ||
        kl_gate_noise(&d->noise, d->arena, kl_ignored()))
        return;
    kli_doctor_add(d, "machine", "quiet", d->noise.noisy ? KL_DOCTOR_WEAK : KL_DOCTOR_OK,
                   kl_arena_copy(d->arena, kl_str_of(kl_noise_text(&d->noise, text, sizeof text))),
                   QUIETER);
}

static kl_str record_text(kl_arena *a, const kl_noise_record *r) {
    const kl_str all = kl_arena_printf(
        a, "median %.4f, spread %.2g %%, cv %.2g %% of %d measurement%s since %.*s", r->median,
        100 * r->spread, 100 * r->cv, r->n, r->n == 1 ? "" : "s", KL_STR_ARG(r->since));
    if (!r->fresh) return kl_arena_printf(a, "%s; none of the last day", all.ptr);
    return kl_arena_printf(a, "%s; floor today %.2g %%", all.ptr, 100 * r->noise);
}

/* In the journal that commands use without --store, where there is one. */
static void noise_record(kli_doctor *d) {
    kl_store *journal = NULL;
    const kl_str path = kl_store_default_path(d->arena);
    kl_noise_record *r = &d->noise_record;
    if (!kli_fs_exists(path.ptr) || kl_store_open(&journal, path.ptr, kl_ignored())) return;
    if (d->noise.pairs) (void)!kl_noise_keep(journal, d->arena, &d->noise, kl_ignored());
    (void)!kl_noise_recall(r, journal, d->arena, kl_ignored());
    kl_store_close(journal);
    if (r->n)
        kli_doctor_add(d, "machine", "A/A record",
                       r->noise > KL_NOISY ? KL_DOCTOR_WEAK : KL_DOCTOR_OK,
                       record_text(d->arena, r), r->noise > KL_NOISY ? QUIETER : NULL);
}

void kli_doctor_machine(kli_doctor *d) {
    cores(d);
    huge_pages(d);
    quiet(d);
    noise_record(d);
    instruction_sets(d);
    counters(d);
    gpu_counters(d);
}

/* ---- environment ------------------------------------------------------------------------- */

void kli_doctor_environment(kli_doctor *d) {
    static const char *const cripplers[][2] = {
        {"OPENBLAS_CORETYPE",
         "unset OPENBLAS_CORETYPE: it makes OpenBLAS use another core's kernels"},
        {"BLIS_ARCH_TYPE", "unset BLIS_ARCH_TYPE: it makes BLIS use another core's kernels"}};
    for (size_t i = 0; i < KL_COUNT(cripplers); i++) {
        const char *value = getenv(cripplers[i][0]);
        if (value)
            kli_doctor_add(d, "environment", cripplers[i][0], KL_DOCTOR_WEAK,
                           kl_arena_printf(d->arena, "%s; the gate clears it for baselines", value),
                           cripplers[i][1]);
    }
}
