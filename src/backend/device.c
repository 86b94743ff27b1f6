/* device.c - what a device is, asked of the worker once: this process loads no driver.
 * SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"
#include "device_json.h"
#include "device_key.h"
#include "base/fs.h"
#include "base/proc.h"
#include "base/recall.h"
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

static kl_err ask_device(kl_str *out, kl_arena *a, const kl_backend *b, kl_error *e) {
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
    *out = r.out;
    return KL_OK;
}

kl_err kli_device_answer(kl_device *out, kl_arena *a, const kl_backend *b, kl_str key,
                         kl_error *e) {
    const char *name = kl_arena_printf(a, "device-%s", b->name).ptr;
    kl_str text;
    *out = (kl_device){.backend = b->id};
    if (key.len && kli_recall(&text, a, name, key) &&
        kli_device_parse(out, a, text, kl_ignored()) == KL_OK)
        return KL_OK;
    kl_err code = ask_device(&text, a, b, e);
    *out = (kl_device){.backend = b->id};
    if (!code) code = kli_device_parse(out, a, text, e);
    if (!code && key.len) kli_remember(name, key, text);
    return code;
}

static kl_err device_probe(kl_device *out, kl_arena *a, const kl_backend *b, bool anew,
                           kl_error *e) {
    const bool kept = b->id == KL_BACKEND_CUDA && !anew;
    return kli_device_answer(out, a, b, kept ? kli_device_key(a, "/proc") : (kl_str){0}, e);
}

static kl_err device_known(kl_device *out, kl_backend_id id, bool anew, kl_error *e) {
    const kl_backend *b = kli_backend_get(id);
    kl_err code = KL_OK;
    KL_ASSERT(b);
    pthread_mutex_lock(&probed.lock);
    if (!probed.arena) probed.arena = kl_arena_new();
    if (!probed.known[id] || anew)
        code = device_probe(&probed.devices[id], probed.arena, b, anew, e);
    if (!code) {
        probed.known[id] = true;
        *out = probed.devices[id];
    }
    pthread_mutex_unlock(&probed.lock);
    return code;
}

/* The text of a device lives as long as the process. */
kl_err kl_device_probe(kl_device *out, kl_arena *a, kl_backend_id id, kl_error *e) {
    (void)a;
    return device_known(out, id, false, e);
}

kl_err kl_device_of_surface(kl_device *out, kl_arena *a, const kl_surface *s, int i, kl_error *e) {
    const kl_backend *b = kli_backend_of_surface(s, i);
    return b ? kl_device_probe(out, a, b->id, e)
             : kl_fail(e, KL_ENOENT, s->name, "runs on no further kind of device");
}

kl_err kl_device_measure(kl_device *out, kl_backend_id id, kl_error *e) {
    return device_known(out, id, true, e);
}

kl_err kl_device_target(kl_device *out, kl_arena *a, kl_backend_id id, const char *arch,
                        kl_error *e) {
    if (id != KL_BACKEND_CUDA) return kl_device_probe(out, a, id, e);
    const char *name = arch && *arch ? arch : "sm_90a";
    *out = (kl_device){.backend = id,
                       .name = KL_S("target"),
                       .arch = kl_arena_copy(a, kl_str_of(name)),
                       .toolchain = KL_S("unknown"),
                       .limits.smem_max = kli_arch_smem_max(kl_str_of(name))};
    out->platform = kl_arena_printf(a, "nvidia-%s", name);
    return KL_OK;
}
