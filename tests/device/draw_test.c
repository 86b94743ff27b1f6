/* draw_test.c - what a device draws is what the host draws, byte for byte: the kernel's own text,
 * compiled as C, beside kl_task_fill, for every distribution, type, size and place.
 *
 * It is built twice: with draw.cu, and with draw.ptx, which ptx_as_c.py makes C of, instruction by
 * instruction.  No fused product and no local memory are in it.  That a GPU computes it so, each
 * verdict on one shows by a digest.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/hash.h"
#include "base/test.h"
#include "draw_text.h"
#include "task/inputs.h"
#include "task/task.h"
#include <stdlib.h>

#define SEED 0x123456789abcdefull
#define GUARD 0xC3

static const kl_dist DISTS[] = {
    {.kind = KL_DIST_NORMAL, .scale = 1, .active = 1},
    {.kind = KL_DIST_NORMAL, .scale = 3.7, .active = 1},
    {.kind = KL_DIST_NORMAL, .scale = 1e-6, .active = 1},
    {.kind = KL_DIST_NORMAL, .scale = 1e30, .active = 1},
    {.kind = KL_DIST_NORMAL, .scale = 1, .active = 0.3},
    {.kind = KL_DIST_UNIFORM, .scale = 1.3, .active = 1, .low = -0.3, .high = 0.7},
    {.kind = KL_DIST_UNIFORM, .scale = 1, .active = 1, .low = 1, .high = 1.0000001},
    {.kind = KL_DIST_UNIFORM, .scale = 1, .active = 0.5, .high_expr = KL_S("K")},
    {.kind = KL_DIST_UNIFORM_INT, .scale = 1, .active = 1, .high = 100},
    {.kind = KL_DIST_UNIFORM_INT, .scale = 1, .active = 1, .low = -5, .high = 3},
    {.kind = KL_DIST_UNIFORM_INT, .scale = 1, .active = 1, .high = 0x1p62},
    {.kind = KL_DIST_UNIFORM_INT, .scale = 1, .active = 1, .high_expr = KL_S("K * 3")},
    {.kind = KL_DIST_DISTINCT, .scale = 1, .active = 1},
    {.kind = KL_DIST_BOOL, .scale = 1, .active = 1},
    {.kind = KL_DIST_TIES, .scale = 1, .active = 1},
    {.kind = KL_DIST_TIES, .scale = 0.3, .active = 0.9},
    {.kind = KL_DIST_CONSTANT, .scale = 1, .active = 1, .value = 7.3},
    {.kind = KL_DIST_CONSTANT, .scale = 1, .active = 0.1, .value = -100},
};
static const char *const SHAPES[][3] = {{"1"},        {"7"},         {"257"},
                                        {"13", "19"}, {"3", "1031"}, {"2", "3", "5"}};

/* A task of one input of this type, shape and distribution. */
typedef struct {
    kl_task task;
    kl_workload workload;
} one_input;

static void make_task(one_input *o, kl_dtype dtype, const char *const *shape, const kl_dist *dist) {
    *o = (one_input){.task = {.n_inputs = 1, .n_tensors = 1, .n_axes = 1}};
    o->task.axes[0] = (kl_axis){.name = KL_S("K"), .kind = KL_AXIS_CONST, .value = 93};
    kl_tensor *x = &o->task.tensors[0];
    *x = (kl_tensor){.name = KL_S("x"), .dtype = dtype};
    while (x->ndim < 3 && shape[x->ndim]) {
        x->dims[x->ndim] = kl_str_of(shape[x->ndim]);
        x->ndim++;
    }
    o->workload.axes[0] = 93;
    o->workload.dtypes[0] = dtype;
    o->workload.dists[0] = *dist;
}

typedef struct {
    size_t dist, shape;
    double scale;
} draw_case;

/* Into `room` at `offset` elements, as the runner launches it with these blocks. */
static void draw_as_device(char *room, size_t bytes, const kli_draw *draw, size_t offset,
                           unsigned blocks, unsigned threads) {
    memset(room, GUARD, bytes);
    kli_draw_job jobs[2] = {{.draw = *draw}, {.draw = *draw}};
    const size_t at = offset * kl_dtype_bytes((kl_dtype)draw->dtype);
    jobs[0].draw.elems = 0; /* a row of the grid without work is no other's */
    jobs[1].data = (uint64_t)(uintptr_t)(room + at);
    draw_text_run(jobs, (unsigned[]){blocks, 2, 1}, (unsigned[]){threads, 1, 1});
}

static bool is_guard(const char *room, size_t n) {
    for (size_t i = 0; i < n; i++)
        if ((uint8_t)room[i] != GUARD) return false;
    return true;
}

static void expect_same_bytes(const one_input *o, const draw_case *k) {
    static const unsigned LAUNCHES[][2] = {{1, 1}, {1, 256}, {3, 32}, {5, 7}};
    kl_error e = {0};
    kl_shape s;
    kli_draw draw;
    assert_ok(kl_task_shape(&s, &o->task, &o->workload, 0, &e));
    const size_t element = kl_dtype_bytes(o->workload.dtypes[0]);
    const size_t room_bytes = s.bytes + 16 * element;
    char *host = malloc(s.bytes), *room = malloc(room_bytes);
    assert_true(host && room && kli_task_draw(&draw, &o->task, &o->workload, 0, k->scale));
    kli_draw_seed(&draw, SEED, o->task.tensors[0].name);
    assert_ok(kl_task_fill(host, &o->task, &o->workload, 0, SEED, k->scale, 2, &e));
    for (size_t i = 0; i < KL_COUNT(LAUNCHES); i++)
        for (size_t offset = 0; offset < 16; offset += 5) {
            const size_t at = offset * element;
            draw_as_device(room, room_bytes, &draw, offset, LAUNCHES[i][0], LAUNCHES[i][1]);
            if (memcmp(host, room + at, s.bytes) != 0 || !is_guard(room, at) ||
                !is_guard(room + at + s.bytes, room_bytes - at - s.bytes))
                fail_msg("%s, shape %zu, distribution %zu, scale %g: at offset %zu, launch %zu, "
                         "the kernel draws other bytes",
                         kl_dtype_name(o->workload.dtypes[0]), k->shape, k->dist, k->scale, offset,
                         i);
        }
    free(host);
    free(room);
}

static void test_draw__the_kernels_text_gives_the_hosts_bytes(void **state) {
    static one_input o;
    draw_case k = {0};
    int refused = 0;
    (void)state;
    for (int dtype = KL_F64; dtype < KL_DTYPE_END; dtype++)
        for (k.dist = 0; k.dist < KL_COUNT(DISTS); k.dist++)
            for (k.shape = 0; k.shape < KL_COUNT(SHAPES); k.shape++) {
                make_task(&o, (kl_dtype)dtype, SHAPES[k.shape], &DISTS[k.dist]);
                kli_draw draw;
                if (!kli_task_draw(&draw, &o.task, &o.workload, 0, 1)) {
                    refused++;
                    continue;
                }
                for (k.scale = 1; k.scale > 1e-12; k.scale *= 0x1p-20) expect_same_bytes(&o, &k);
            }
    /* Rows that are longer than a type has distinct values, which the host refuses too. */
    assert_int_equal(refused, 13);
}

static void test_draw__what_needs_libm_or_an_order_stays_on_the_host(void **state) {
    static const kl_dist OF_THE_HOST[] = {
        {.kind = KL_DIST_NORMAL, .scale = 1, .active = 1, .l2norm = true},
        {.kind = KL_DIST_SIGMOID, .scale = 1, .active = 1},
        {.kind = KL_DIST_LOGSIGMOID, .scale = 1, .active = 1},
        {.kind = KL_DIST_OFFSETS, .scale = 1, .active = 1, .total = KL_S("K")},
        {.kind = KL_DIST_FILE, .scale = 1, .active = 1},
        {.kind = KL_DIST_CUSTOM, .scale = 1, .active = 1},
    };
    static one_input o;
    (void)state;
    for (size_t i = 0; i < KL_COUNT(OF_THE_HOST); i++) {
        kli_draw draw = {.kind = KLI_DRAW_BIT};
        make_task(&o, KL_F32, SHAPES[3], &OF_THE_HOST[i]);
        assert_false(kli_task_draw(&draw, &o.task, &o.workload, 0, 1));
        assert_int_equal(draw.kind, KLI_DRAW_NONE);
    }
}

/* ---- the text that the driver gets ------------------------------------------------------- */

static kl_str source(kl_arena *a, const char *name) {
    kl_str text;
    kl_error e = {0};
    const char *path = kl_arena_printf(a, "%s/src/%s", KL_TEST_ROOT, name).ptr;
    assert_ok(kli_fs_read(&text, a, path, 1 << 20, &e));
    return text;
}

static void test_draw__the_ptx_is_of_these_sources(void **state) {
    kl_arena *a = kl_arena_new();
    const kl_str header = source(a, "base/draw.h"), kernel = source(a, "backend/draw.cu");
    const kl_str both = kl_arena_printf(a, "%.*s%.*s", KL_STR_ARG(header), KL_STR_ARG(kernel));
    const kl_str ptx = source(a, "backend/draw.ptx");
    (void)state;
    if (!strstr(ptx.ptr, kli_hash_of(both).hex))
        fail_msg("src/backend/draw.ptx is of other sources: run tools/device-ptx");
    kl_arena_free(a);
}

static void test_draw__no_product_is_fused_and_no_key_leaves_its_register(void **state) {
    static const char *const FORBIDDEN[] = {"fma",        ".local",  ".shared",  "mad.f",
                                            "mul.f",      "add.f",   "sub.f",    "mul.ftz",
                                            "mul.rn.ftz", ".approx", "st.param", "call"};
    kl_arena *a = kl_arena_new();
    const kl_str ptx = source(a, "backend/draw.ptx");
    (void)state;
    assert_non_null(strstr(ptx.ptr, "mul.rn.f32"));
    for (size_t i = 0; i < KL_COUNT(FORBIDDEN); i++)
        if (strstr(ptx.ptr, FORBIDDEN[i])) fail_msg("draw.ptx has `%s`", FORBIDDEN[i]);
    kl_arena_free(a);
}

/* A toolkit's compiler still takes the source, and its assembler the text. */
static void test_draw__a_toolkit_takes_both(void **state) {
    static const char *const COMMANDS[] = {"nvcc -arch=sm_90a -fmad=false -I" KL_TEST_ROOT
                                           "/src --ptx " KL_TEST_ROOT
                                           "/src/backend/draw.cu -o new.ptx",
                                           "ptxas -arch=sm_90a --warning-as-error " KL_TEST_ROOT
                                           "/src/backend/draw.ptx -o draw.cubin"};
    (void)state;
    if (system("command -v nvcc ptxas >/dev/null") != 0) skip();
    for (size_t i = 0; i < KL_COUNT(COMMANDS); i++)
        if (system(COMMANDS[i]) != 0) fail_msg("%s", COMMANDS[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draw__the_kernels_text_gives_the_hosts_bytes),
        cmocka_unit_test(test_draw__what_needs_libm_or_an_order_stays_on_the_host),
        cmocka_unit_test(test_draw__the_ptx_is_of_these_sources),
        cmocka_unit_test(test_draw__no_product_is_fused_and_no_key_leaves_its_register),
        cmocka_unit_test(test_draw__a_toolkit_takes_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
