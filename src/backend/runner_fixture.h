/* runner_fixture.h - what the tests of runners share: a one-line task (y = f(x), N floats),
 * compile, load, bind, run. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_RUNNER_FIXTURE_H
#define KL_BACKEND_RUNNER_FIXTURE_H
#include "base/test.h"
#include "backend/backend.h"
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_FLOATS 1000
#define N_SETS 4
#define N_SLOTS 12 /* more than have guard pages */
#define SECOND 1000000000ll

typedef struct {
    kl_arena *arena;
    kl_task task;
    kl_workload workload;
    kl_device device;
    kl_kernel *kernel;
    kl_artefact artefact;
    kl_plan plan;
    kl_memory memory;
    kl_runner *runner;
    kl_resources resources[KL_MAX_LAUNCHES];
    kl_fault fault;
    kl_error e;
} fixture;

static inline kl_tensor tensor_of(const char *name, bool output, bool scalar) {
    return (kl_tensor){.name = kl_str_of(name),
                       .dtype = KL_F32,
                       .is_output = output,
                       .is_scalar = scalar,
                       .ndim = scalar ? 0 : 1,
                       .dims = {scalar ? (kl_str){0} : KL_S("N")}};
}

/* x[N], s (a scalar 2.5) -> y[N] */
static inline void fixture_open(fixture *f, kl_backend_id backend) {
    *f = (fixture){.arena = kl_arena_new()};
    kl_error e = {0};
    f->task = (kl_task){.name = KL_S("line"), .n_axes = 1, .n_inputs = 2, .n_tensors = 3};
    f->task.axes[0] = (kl_axis){.name = KL_S("N"), .kind = KL_AXIS_VAR};
    f->task.tensors[0] = tensor_of("x", false, false);
    f->task.tensors[1] = tensor_of("s", false, true);
    f->task.tensors[2] = tensor_of("y", true, false);
    f->workload = (kl_workload){
        .axes = {N_FLOATS}, .dtypes = {KL_F32, KL_F32, KL_F32}, .scalars = {0, 2.5, 0}};
    assert_ok(kl_device_probe(&f->device, f->arena, backend, &e));
}

static inline void fixture_compile_for(fixture *f, const char *source, bool trusted) {
    kl_error e = {0};
    const kl_kernel_opts how = {.trusted = trusted};
    const kl_compile_opts compile = {.cache_dir = "cache"};
    const kl_surface *surface =
        kl_surface_by_name(f->device.backend == KL_BACKEND_CPU ? KL_S("c") : KL_S("opencl"));
    assert_ok(kl_kernel_parse(&f->kernel, f->arena, kl_str_of(source), KL_S("test.c"), surface,
                              &how, &e));
    assert_ok(kli_kernel_plan(&f->plan, f->kernel, &f->task, &f->workload, &f->device.limits, &e));
    assert_ok(kli_compile(&f->artefact, f->arena, &f->device, f->kernel, &f->task, &f->workload,
                          &compile, &e));
}

static inline void fixture_start(fixture *f, bool trusted) {
    kl_error e = {0};
    kl_layout layout;
    const kl_runner_opts how = {
        .backend = f->device.backend, .trusted = trusted, .cpu = -1, .threads = 1};
    assert_ok(kli_runner_start(&f->runner, &how, &e));
    assert_ok(kli_layout_make(&layout, &f->plan, N_SETS, N_SLOTS, &e));
    assert_ok(kli_memory_open(&f->memory, &layout, &e));
    for (uint32_t set = 0; set < N_SETS; set++) {
        float *x = kli_memory_input(&f->memory, &f->plan, 0, set);
        for (int i = 0; i < N_FLOATS; i++) x[i] = (float)(i + 1000 * (int)set);
    }
}

static inline void fixture_load(fixture *f) {
    kl_error e = {0};
    assert_ok(kli_runner_place(f->runner, f->runner && f->plan.threads == 1 ? 1 : -1,
                               (int)f->plan.threads, &e));
    assert_ok(kli_runner_load(f->runner, &f->fault, f->resources, &f->artefact, &f->plan, &e));
    if (f->fault.kind) return;
    assert_ok(kli_runner_bind(f->runner, &f->fault, &f->memory, &e));
}

/* Compile, start, load, bind; the source must compile and be clean. */
static inline void fixture_ready(fixture *f, const char *source, bool trusted) {
    fixture_compile_for(f, source, trusted);
    if (!f->artefact.ok) fail_msg("%s", f->artefact.log.ptr);
    fixture_start(f, trusted);
    fixture_load(f);
    if (f->fault.kind) fail_msg("%s", f->fault.text);
}

static inline void fixture_run(fixture *f, uint32_t set, uint32_t slot) {
    kl_error e = {0};
    int64_t wall;
    assert_ok(kli_runner_run(f->runner, &f->fault, set, slot, 0xA5, 20 * SECOND, &wall, &e));
}

static inline void fixture_expect_fault(fixture *f, kl_fault_kind kind, int sig, const char *text) {
    if (f->fault.kind != kind || f->fault.signal != sig || !strstr(f->fault.text, text))
        fail_msg("fault %d signal %d \"%s\", not %d %d \"%s\"", f->fault.kind, f->fault.signal,
                 f->fault.text, kind, sig, text);
}

/* Everything mapped in the worker that this process has started: the calls `each` for every line of
 * its maps. */
typedef void fixture_mapping(void *to, uintptr_t from, uintptr_t end, const char *permissions,
                             const char *name);

static inline bool fixture_is_our_worker(const char *pid) {
    char path[64], text[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *f = fopen(path, "re");
    bool read = f && fgets(text, sizeof text, f);
    char *after = read ? strrchr(text, ')') : NULL;
    if (f) (void)fclose(f);
    return after && strstr(text, "(klineage-worker") &&
           strtol(after + 4, NULL, 10) == (long)getpid();
}

static inline bool fixture_each_mapping(fixture_mapping *each, void *to) {
    DIR *proc = opendir("/proc");
    bool found = false;
    for (struct dirent *d = proc ? readdir(proc) : NULL; d && !found; d = readdir(proc)) {
        char line[512], path[64];
        if (!isdigit((unsigned char)d->d_name[0]) || !fixture_is_our_worker(d->d_name)) continue;
        (void)snprintf(path, sizeof path, "/proc/%.20s/maps", d->d_name);
        FILE *maps = fopen(path, "re");
        while (maps && fgets(line, sizeof line, maps)) {
            char *at = line;
            uintptr_t from = strtoul(at, &at, 16), end = strtoul(at + 1, &at, 16);
            char *name = strchr(at, '/') ? strchr(at, '/') : strchr(at, '[');
            each(to, from, end, at + 1, name ? name : "");
            found = true;
        }
        if (maps) (void)fclose(maps);
    }
    if (proc) (void)closedir(proc);
    return found;
}

static inline const float *fixture_y(const fixture *f, uint32_t slot) {
    return kli_memory_output(&f->memory, &f->plan, 2, slot);
}

static inline void fixture_expect_scaled(const fixture *f, uint32_t set, uint32_t slot) {
    const float *y = fixture_y(f, slot);
    for (int i = 0; i < N_FLOATS; i++)
        if (y[i] != 2.5f * (float)(i + 1000 * (int)set))
            fail_msg("y[%d] of slot %u is %g", i, slot, (double)y[i]);
}

static inline void fixture_close(fixture *f) {
    kli_runner_stop(f->runner);
    kli_memory_close(&f->memory);
    kl_arena_free(f->arena);
}

#endif
