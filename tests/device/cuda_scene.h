/* cuda_scene.h - one kernel with its inputs in the CUDA runner, on the fake of fake_cuda.c: y = 2.5
 * x on a few sets and slots.  For cuda_runner_test.c.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_TEST_CUDA_SCENE_H
#define KL_TEST_CUDA_SCENE_H
#include "backend/runner_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/test.h"
#include "fake_cubin.h"
#include "backend/backend.h"
#include <math.h>

#define N 1000
#define SETS 3
#define SLOTS 5
#define SECOND 1000000000ll

typedef struct {
    kl_plan plan;
    kl_memory memory;
    kl_runner *runner;
    kl_resources resources[KL_MAX_LAUNCHES];
    kl_fault fault;
    kl_artefact artefact;
    uint32_t compiled_for; /* threads of a block; 0: the code says none */
} scene;

static kl_plan_tensor tensor(const char *name, uint32_t role) {
    kl_plan_tensor t = {.dtype = KL_F32,
                        .role = role,
                        .ndim = role == 3 ? 0 : 1,
                        .dims = {role == 3 ? 0 : N},
                        .bytes = role == 3 ? 4 : N * 4};
    (void)snprintf(t.name, sizeof t.name, "%s", name);
    return t;
}

/* x[N], s = 2.5 -> y[N], through one launch of `entry` */
static void plan_for(kl_plan *p, const char *entry) {
    memset(p, 0, sizeof *p);
    p->magic = KL_PLAN_MAGIC, p->version = KL_PLAN_VERSION, p->threads = 1;
    p->n_tensors = 3, p->n_launches = 1;
    p->tensors[0] = tensor("x", 0), p->tensors[1] = tensor("s", 3), p->tensors[2] = tensor("y", 1);
    kl_plan_launch *l = &p->launches[0];
    (void)snprintf(l->entry, sizeof l->entry, "%s", entry);
    for (int i = 0; i < 3; i++) l->grid[i] = l->block[i] = l->cluster[i] = 1;
    l->block[0] = 256;
    kl_value *args = kli_take_args(p, l, 4);
    args[0] = (kl_value){.kind = KL_VALUE_TENSOR, .index = 0};
    args[1] = (kl_value){.kind = KL_VALUE_SCALAR, .index = 1, .f = 2.5};
    args[2] = (kl_value){.kind = KL_VALUE_TENSOR, .index = 2};
    args[3] = (kl_value){.kind = KL_VALUE_I32, .i = N};
}

/* One buffer between y and n. */
static void plan_with_buffer(kl_plan *p, const char *entry) {
    plan_for(p, entry);
    p->n_buffers = 1;
    p->buffers[0] = (kl_plan_buffer){.bytes = N * 4, .dtype = KL_F32, .name = "tmp"};
    p->args[3] = (kl_value){.kind = KL_VALUE_BUFFER, .index = 0};
    p->args[4] = (kl_value){.kind = KL_VALUE_I32, .i = N};
    p->launches[0].n_args = p->n_args = 5;
}

static void start(scene *s, const char *faults) {
    kl_error e = {0};
    const kl_runner_opts how = {.backend = KL_BACKEND_CUDA, .cpu = -1, .threads = 1};
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", KL_FAKE_CUDA, 1), 0);
    assert_int_equal(setenv("KLINEAGE_FAKE_CUDA", faults, 1), 0);
    s->runner = NULL;
    s->fault = (kl_fault){0};
    assert_ok(kli_runner_start(&s->runner, &how, &e));
}

static void make_artefact(scene *s) {
    fake_cubin image;
    const char *kernels[] = {s->plan.launches[0].entry, NULL};
    fake_cubin_make(&image, kernels, "counter");
    if (s->compiled_for) fake_cubin_for_block(&image, kernels[0], s->compiled_for);
    fake_cubin_write(&image, "fake.cubin");
    s->artefact = (kl_artefact){.ok = true, .kind = KL_ARTEFACT_CUBIN, .path = KL_S("fake.cubin")};
    (void)snprintf(s->artefact.hash, sizeof s->artefact.hash, "%s",
                   kli_hash_of((kl_str){(const char *)&image, sizeof image}).hex);
}

static void load(scene *s) {
    kl_error e = {0};
    make_artefact(s);
    assert_ok(kli_runner_load(s->runner, &s->fault, s->resources, &s->artefact, &s->plan, &e));
}

static float input(uint32_t set, int i) { return (float)(i + 1) + 1000.0f * (float)set; }

static void bind(scene *s) {
    kl_error e = {0};
    kl_layout layout;
    assert_ok(kli_layout_make(&layout, &s->plan, SETS, SLOTS, &e));
    assert_ok(kli_memory_open(&s->memory, &layout, &e));
    for (uint32_t set = 0; set < SETS; set++)
        for (int i = 0; i < N; i++)
            ((float *)kli_memory_input(&s->memory, &s->plan, 0, set))[i] = input(set, i);
    assert_ok(kli_runner_bind(s->runner, &s->fault, &s->memory, &e));
    if (s->fault.kind == KL_FAULT_NONE)
        assert_ok(kli_runner_upload(s->runner, &s->fault, 0, SETS, &e));
}

/* Of a plan without inputs in sets. */
static void bind_outputs_only(scene *s) {
    kl_error e = {0};
    kl_layout layout;
    assert_ok(kli_layout_make(&layout, &s->plan, SETS, SLOTS, &e));
    assert_ok(kli_memory_open(&s->memory, &layout, &e));
    assert_ok(kli_runner_bind(s->runner, &s->fault, &s->memory, &e));
    assert_int_equal(s->fault.kind, KL_FAULT_NONE);
    assert_ok(kli_runner_upload(s->runner, &s->fault, 0, SETS, &e));
}

static void open_scene(scene *s, const char *entry, const char *faults) {
    plan_for(&s->plan, entry);
    start(s, faults);
    load(s);
    assert_int_equal(s->fault.kind, KL_FAULT_NONE);
    bind(s);
    assert_int_equal(s->fault.kind, KL_FAULT_NONE);
}

static void close_scene(scene *s) {
    kli_runner_stop(s->runner);
    kli_memory_close(&s->memory);
}

static void run(scene *s, uint32_t set, uint32_t slot, uint8_t poison) {
    kl_error e = {0};
    int64_t wall = 0;
    kli_memory_poison(&s->memory, &s->plan, slot, poison);
    assert_ok(kli_runner_run(s->runner, &s->fault, set, slot, poison, 20 * SECOND, &wall, &e));
}

/* What the gate may ask for when a batch is over: the whole of it. */
static void bring_back(scene *s, uint32_t first, uint32_t calls) {
    kl_error e = {0};
    uint32_t slots[SLOTS];
    if (s->fault.kind) return;
    for (uint32_t j = 0; j < calls; j++) slots[j] = (first + j) % SLOTS;
    assert_ok(kli_runner_audit(s->runner, &s->fault, first, calls, 0xFF, &e));
    if (!s->fault.kind) assert_ok(kli_runner_fetch(s->runner, &s->fault, slots, calls, 0xFF, &e));
}

static void assert_output(scene *s, uint32_t set, uint32_t slot) {
    const float *y = kli_memory_output(&s->memory, &s->plan, 2, slot);
    for (int i = 0; i < N; i++)
        if (y[i] != 2.5f * input(set, i))
            fail_msg("slot %u, element %d is %g, not %g", slot, i, (double)y[i],
                     (double)(2.5f * input(set, i)));
}

static void assert_fault(scene *s, kl_fault_kind kind, const char *text) {
    if (s->fault.kind != kind || !strstr(s->fault.text, text))
        fail_msg("expected fault %d with '%s', got %d: %s", kind, text, s->fault.kind,
                 s->fault.text);
}

#endif
