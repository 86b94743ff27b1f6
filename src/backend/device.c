/* device.c - what a device is, asked of the worker once: this process loads no driver.
 * SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"
#include "device_json.h"
#include "base/fs.h"
#include "base/proc.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>

#define DEVICE_PROBE_NS 60000000000ll

static struct {
    pthread_mutex_t lock;
    kl_arena *arena;
    kl_device devices[KL_BACKEND_CUDA + 1];
    bool known[KL_BACKEND_CUDA + 1];
} probed = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const HINTS[] = {
    [KL_BACKEND_CPU] =
        "on Debian: apt-get install gcc libc6-dev; or name a C compiler in KLINEAGE_CC",
    [KL_BACKEND_OPENCL] = "on Debian: apt install pocl-opencl-icd ocl-icd-libopencl1",
    [KL_BACKEND_CUDA] =
        "nvidia-smi shows whether the driver sees a GPU; --spool DIR carries the job to a "
        "host that has one"};

/* No answer is not the answer "nothing there". */
static bool gave_no_answer(const kli_proc_result *r) {
    return r->timed_out || r->signal == SIGKILL || r->exit_code == KLI_PROBE_BUSY;
}

static kl_err device_probe(kl_device *out, kl_arena *a, const kl_backend *b, kl_error *e) {
    kl_str worker = kli_worker_path(a);
    const char *argv[] = {worker.ptr, "probe", b->probe_verb, NULL};
    kli_proc_spec spec = {.argv = argv, .timeout_ns = DEVICE_PROBE_NS};
    kli_proc_result r;
    if (!kli_fs_exists(worker.ptr)) {
        kl_fail(e, KL_ENODEV, worker.ptr, "the runner program is missing");
        return kl_hint(e, "klineage-worker must be in the same folder as klineage");
    }
    kl_err code = kli_proc_run(&r, a, &spec, e);
    if (code) return code;
    if (gave_no_answer(&r)) {
        kl_str why = kl_str_trim(r.err);
        kl_fail(e, KL_EBUSY, b->name, "%.*s: the machine is overloaded",
                why.len ? (int)why.len : 24, why.len ? why.ptr : "the device did not answer");
        return kl_hint(e, "re-run the same command when the machine is less loaded; uptime shows "
                          "the load, free -h the memory");
    }
    if (r.exit_code != 0) {
        kl_str why = kl_str_trim(r.err);
        kl_fail(e, KL_ENODEV, b->name, "%.*s", why.len ? (int)why.len : 9,
                why.len ? why.ptr : "no device");
        return kl_hint(e, "%s", HINTS[b->id]);
    }
    *out = (kl_device){.backend = b->id};
    return kli_device_parse(out, a, r.out, e);
}

kl_err kl_device_probe(kl_device *out, kl_arena *a, kl_backend_id id, kl_error *e) {
    const kl_backend *b = kl_backend_get(id);
    kl_err code = KL_OK;
    (void)a; /* the text of a device lives as long as the process */
    KL_ASSERT(b);
    pthread_mutex_lock(&probed.lock);
    if (!probed.arena) probed.arena = kl_arena_new();
    if (!probed.known[id]) code = device_probe(&probed.devices[id], probed.arena, b, e);
    if (!code) {
        probed.known[id] = true;
        *out = probed.devices[id];
    }
    pthread_mutex_unlock(&probed.lock);
    return code;
}

kl_err kl_device_target(kl_device *out, kl_arena *a, kl_backend_id id, const char *arch,
                        kl_error *e) {
    if (id != KL_BACKEND_CUDA) return kl_device_probe(out, a, id, e);
    const char *name = arch && *arch ? arch : "sm_90a";
    *out = (kl_device){.backend = id,
                       .name = KL_S("target"),
                       .arch = kl_arena_copy(a, kl_str_of(name)),
                       .toolchain = KL_S("unknown")};
    out->platform = kl_arena_printf(a, "nvidia-%s", name);
    return KL_OK;
}
