/* cuda_draw_test.c - input sets that the CUDA runner draws on its device, which is the fake of
 * fake_cuda.c: what its kernels read, what the proof sees, and that no key stays.  And what a
 * script reads and what its proof sees, with torch.py of fake_torch on the same device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/draw.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/rng.h"
#include "base/test.h"
#include "fake_cubin.h"
#include "task/inputs.h"
#include <fcntl.h>
#include "backend/backend.h"
#include "task/task.h"
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define N 1001
#define SETS 5
#define SECOND 1000000000ll
enum { X, Z, S, Y, TENSORS };

/* x is drawn by the device, z (a gate, by libm) by the host; y = 2.5 x. */
typedef struct {
    kl_task task;
    kl_workload workload;
    kl_plan plan;
    kl_memory memory;
    kl_runner *runner;
    kl_fault fault;
    kli_draw_request request;
} scene;

static uint64_t seed_of(uint32_t set) { return 0xfeedfacecafe0000ull + 0x1111 * set; }

static void add_tensor(scene *s, int i, const char *name, uint32_t role, kl_dist dist) {
    kl_plan_tensor *t = &s->plan.tensors[i];
    *t = (kl_plan_tensor){.dtype = KL_F32, .role = role, .ndim = role == 3 ? 0 : 1, .bytes = 4};
    if (role != 3) t->bytes = N * 4, t->dims[0] = N;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    s->task.tensors[i] = (kl_tensor){.name = kl_str_of(t->name),
                                     .dtype = KL_F32,
                                     .is_scalar = role == 3,
                                     .ndim = role == 3 ? 0 : 1,
                                     .dims = {KL_S("1001")}};
    s->workload.dtypes[i] = KL_F32;
    s->workload.dists[i] = dist;
}

static void describe(scene *s, const char *entry) {
    const kl_dist normal = {.kind = KL_DIST_NORMAL, .scale = 1, .active = 0.5},
                  gate = {.kind = KL_DIST_SIGMOID, .scale = 1, .active = 1};
    s->task.n_inputs = Y, s->task.n_tensors = TENSORS;
    s->plan = (kl_plan){.magic = KL_PLAN_MAGIC, .version = KL_PLAN_VERSION, .threads = 1};
    s->plan.n_tensors = TENSORS, s->plan.n_launches = 1;
    add_tensor(s, X, "x", KL_ROLE_INPUT, normal);
    add_tensor(s, Z, "z", KL_ROLE_INPUT, gate);
    add_tensor(s, S, "s", KL_ROLE_SCALAR, normal);
    s->plan.tensors[S].value = 2.5;
    add_tensor(s, Y, "y", KL_ROLE_OUTPUT, normal);
    kl_plan_launch *l = &s->plan.launches[0];
    *l = (kl_plan_launch){.grid = {1, 1, 1}, .block = {256, 1, 1}, .cluster = {1, 1, 1}};
    (void)snprintf(l->entry, sizeof l->entry, "%s", entry);
    kl_value *args = kli_take_args(&s->plan, l, 4);
    args[0] = (kl_value){.kind = KL_VALUE_TENSOR, .index = X};
    args[1] = (kl_value){.kind = KL_VALUE_SCALAR, .index = S, .f = 2.5};
    args[2] = (kl_value){.kind = KL_VALUE_TENSOR, .index = Y};
    args[3] = (kl_value){.kind = KL_VALUE_I32, .i = N};
}

/* y = s x, in a type that holds the product until it is rounded. */
static const char SCRIPT[] = "import ctypes\n"
                             "def run(x, z, s, y):\n"
                             "    a, b = ((ctypes.c_float * x.numel()).from_address(t.data_ptr())\n"
                             "            for t in (x, y))\n"
                             "    for i, v in enumerate(a): b[i] = s * v\n";

static kl_artefact make_script(void) {
    static const char PYTHON[] =
        "#!/bin/sh\n"
        "PYTHONPATH='" KL_TEST_ROOT "/tests/device/fake_torch' exec python3 -B \"$@\"\n";
    kl_error e = {0};
    assert_ok(kli_fs_write("fake_python", kl_str_of(PYTHON), &e));
    assert_int_equal(chmod("fake_python", 0755), 0);
    assert_int_equal(setenv("KLINEAGE_PYTHON", "./fake_python", 1), 0);
    assert_ok(kli_fs_write("scale.py", kl_str_of(SCRIPT), &e));
    kl_artefact made = {.ok = true, .kind = KL_ARTEFACT_SCRIPT, .path = KL_S("scale.py")};
    (void)snprintf(made.hash, sizeof made.hash, "%s", kli_hash_of(kl_str_of(SCRIPT)).hex);
    return made;
}

static kl_artefact make_cubin(const char *entry) {
    fake_cubin image;
    const char *kernels[] = {entry, NULL};
    fake_cubin_make(&image, kernels, NULL);
    fake_cubin_write(&image, "fake.cubin");
    kl_artefact made = {.ok = true, .kind = KL_ARTEFACT_CUBIN, .path = KL_S("fake.cubin")};
    (void)snprintf(made.hash, sizeof made.hash, "%s",
                   kli_hash_of((kl_str){(const char *)&image, sizeof image}).hex);
    return made;
}

static void start(scene *s, const char *faults) {
    kl_error e = {0};
    const char *entry = s->plan.launches[0].entry;
    const bool is_script = strcmp(entry, "script") == 0;
    const kl_runner_opts how = {.backend = KL_BACKEND_CUDA,
                                .cpu = -1,
                                .threads = 1,
                                .trusted = is_script,
                                .script = is_script};
    assert_int_equal(setenv("KLINEAGE_LIBCUDA", KL_FAKE_CUDA, 1), 0);
    assert_int_equal(setenv("KLINEAGE_FAKE_CUDA", faults, 1), 0);
    kl_artefact made = is_script ? make_script() : make_cubin(entry);
    assert_ok(kli_runner_start(&s->runner, &how, &e));
    assert_ok(kli_runner_load(s->runner, &s->fault, NULL, &made, &s->plan, &e));
    assert_int_equal(s->fault.kind, KL_FAULT_NONE);
}

static void *here(scene *s, int tensor, uint32_t set) {
    return kli_memory_input(&s->memory, &s->plan, (uint32_t)tensor, set);
}

static void fill(scene *s, int tensor, uint32_t set, void *data) {
    kl_error e = {0};
    assert_ok(kl_task_fill(data, &s->task, &s->workload, tensor, seed_of(set), 1, 1, &e));
}

/* All sets, of which the shared pages hold z, and x of set 3, which is the proof. */
static void open_scene(scene *s, const char *entry, const char *faults) {
    kl_error e = {0};
    kl_layout layout;
    describe(s, entry);
    start(s, faults);
    assert_ok(kli_layout_make(&layout, &s->plan, SETS, SETS, &e));
    assert_ok(kli_memory_open(&s->memory, &layout, &e));
    s->request = (kli_draw_request){.n = SETS, .proof = 3};
    for (uint32_t set = 0; set < SETS; set++) {
        fill(s, Z, set, here(s, Z, set));
        s->request.seeds[set] = seed_of(set);
    }
    fill(s, X, 3, here(s, X, 3));
    for (int i = X; i <= Z; i++)
        assert_int_equal(kli_task_draw(&s->request.draws[i], &s->task, &s->workload, i, 1), i == X);
    assert_ok(kli_runner_bind(s->runner, &s->fault, &s->memory, &e));
    assert_int_equal(s->fault.kind, KL_FAULT_NONE);
}

static void close_scene(scene *s) {
    kli_runner_stop(s->runner);
    kli_memory_close(&s->memory);
}

static bool draw(scene *s) {
    kl_error e = {0};
    bool drawn = false;
    assert_ok(kli_runner_draw(s->runner, &s->fault, &s->request, &drawn, &e));
    assert_int_equal(s->fault.kind, KL_FAULT_NONE);
    return drawn;
}

static void run(scene *s, uint32_t set) {
    kl_error e = {0};
    int64_t wall = 0;
    kli_memory_poison(&s->memory, &s->plan, set, 0xFF);
    assert_ok(kli_runner_run(s->runner, &s->fault, set, set, 0xFF, 20 * SECOND, &wall, &e));
}

static void expect_fault(const scene *s, kl_fault_kind kind, const char *text) {
    if (s->fault.kind != kind || !strstr(s->fault.text, text))
        fail_msg("expected fault %d with '%s', got %d: %s", kind, text, s->fault.kind,
                 s->fault.text);
}

/* ---- what kernels read ------------------------------------------------------------------- */

static void read_what_the_host_would_have_drawn(const char *entry) {
    static scene s;
    float x[N];
    open_scene(&s, entry, "");
    assert_true(draw(&s));
    for (uint32_t set = 0; set < SETS; set++) {
        fill(&s, X, set, x);
        run(&s, set);
        assert_int_equal(s.fault.kind, KL_FAULT_NONE);
        const float *y = kli_memory_output(&s.memory, &s.plan, Y, set);
        for (int i = 0; i < N; i++)
            if (y[i] != 2.5f * x[i]) fail_msg("set %u, element %d", set, i);
    }
    close_scene(&s);
}

static void test_cuda_draw__kernels_read_what_the_host_would_have_drawn(void **state) {
    (void)state;
    read_what_the_host_would_have_drawn("scale");
}

/* A request for some of the sets leaves the others as they were. */
static void draw_again_from_another_seed(const char *entry) {
    static scene s;
    float x[N];
    open_scene(&s, entry, "");
    assert_true(draw(&s));
    s.request.first = 1, s.request.n = 1, s.request.proof = KLI_NO_PROOF;
    s.request.seeds[1] = seed_of(0);
    assert_true(draw(&s));
    for (uint32_t set = 0; set < 3; set++) {
        fill(&s, X, set == 1 ? 0 : set, x);
        run(&s, set);
        const float *y = kli_memory_output(&s.memory, &s.plan, Y, set);
        assert_true(y[0] == 2.5f * x[0] && y[N - 1] == 2.5f * x[N - 1]);
    }
    close_scene(&s);
}

static void test_cuda_draw__a_set_can_be_drawn_again_from_another_seed(void **state) {
    (void)state;
    draw_again_from_another_seed("scale");
}

static void upload_where_nothing_is_drawn(const char *entry, const char *said) {
    static scene s;
    kl_error e = {0};
    open_scene(&s, entry, "no_ptx");
    assert_contains(kli_runner_describe(s.runner), said);
    assert_false(draw(&s));
    assert_ok(kli_runner_upload(s.runner, &s.fault, 3, 1, &e));
    run(&s, 3);
    assert_int_equal(s.fault.kind, KL_FAULT_NONE);
    const float *y = kli_memory_output(&s.memory, &s.plan, Y, 3), *x = here(&s, X, 3);
    for (int i = 0; i < N; i++) assert_true(y[i] == 2.5f * x[i]);
    close_scene(&s);
}

static void test_cuda_draw__without_ptx_nothing_is_drawn_and_an_upload_serves(void **state) {
    (void)state;
    upload_where_nothing_is_drawn("scale", "no helper kernels");
}

/* ---- proof ------------------------------------------------------------------------------- */

static void expect_other_bytes(scene *s) {
    kl_error e = {0};
    bool drawn = true;
    assert_err(KL_EIO, kli_runner_draw(s->runner, &s->fault, &s->request, &drawn, &e));
    assert_non_null(strstr(e.message, "the device drew other bytes for input set"));
}

static void end_where_bytes_differ(const char *entry) {
    static scene s;
    open_scene(&s, entry, "draws_other"); /* of the first set */
    s.request.first = 3, s.request.n = 2;
    expect_other_bytes(&s);
    close_scene(&s);
    open_scene(&s, entry, "");
    ((uint8_t *)here(&s, X, 3))[N * 4 - 1] ^= 1; /* the last byte of what is compared with */
    expect_other_bytes(&s);
    close_scene(&s);
    open_scene(&s, entry, "");
    s.request.seeds[3]++;
    expect_other_bytes(&s);
    close_scene(&s);
}

static void test_cuda_draw__other_bytes_are_an_error_and_no_verdict(void **state) {
    (void)state;
    end_where_bytes_differ("scale");
}

static void test_cuda_draw__writes_to_drawn_inputs_are_seen(void **state) {
    static scene s;
    (void)state;
    open_scene(&s, "scale_input", "");
    assert_true(draw(&s));
    run(&s, 1); /* what it was is not here to be compared with */
    expect_fault(&s, KL_FAULT_INPUT, "wrote to input set 1");
    s.request.first = 3, s.request.n = 1, s.request.in_pages = true;
    assert_true(draw(&s));
    run(&s, 3);
    expect_fault(&s, KL_FAULT_INPUT, "wrote to input `x`");
    close_scene(&s);
    open_scene(&s, "past_input", "");
    assert_true(draw(&s));
    run(&s, 1);
    expect_fault(&s, KL_FAULT_GUARD, "past the end of input `x`");
    close_scene(&s);
}

/* ---- scripts ----------------------------------------------------------------------------- */

/* A sanitized driver cannot be loaded into Python. */
static void test_cuda_draw__scripts_draw_as_kernels_do(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip();
#endif
    if (system("command -v python3 >/dev/null") != 0) skip();
    read_what_the_host_would_have_drawn("script");
    draw_again_from_another_seed("script");
    upload_where_nothing_is_drawn("script",
                                  "fake device host memory (inputs are drawn on the host)");
    end_where_bytes_differ("script");
}

/* ---- keys -------------------------------------------------------------------------------- */

static pid_t child_of_this(void) {
    char path[64];
    int pid = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%d", &pid) != 1) pid = 0;
    if (f) (void)fclose(f);
    return pid;
}

static int count_words(int memory, uint64_t from, uint64_t to, const uint64_t *words, int n) {
    static uint64_t piece[1 << 13];
    int found = 0;
    for (uint64_t at = from; at < to; at += sizeof piece) {
        const ssize_t got = pread(memory, piece, sizeof piece, (off_t)at);
        const uint64_t here = got > 0 ? (uint64_t)got : 0, end = at + here < to ? here : to - at;
        for (uint64_t i = 0; i < end / sizeof *piece; i++)
            for (int k = 0; k < n; k++) found += piece[i] == words[k];
    }
    return found;
}

/* How often one of these words lies in what a process can write. */
static int words_in(pid_t pid, const uint64_t *words, int n) {
    char path[64], line[512], mode[8];
    unsigned long long from, to;
    int found = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    const int memory = open(path, O_RDONLY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    assert_true(maps && memory >= 0);
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%llx-%llx %7s", &from, &to, mode) == 3 && mode[0] == 'r' &&
            mode[1] == 'w' && to - from < 1ull << 40) /* not the shadow of a sanitized process */
            found += count_words(memory, from, to, words, n);
    (void)fclose(maps);
    (void)close(memory);
    return found;
}

static void test_cuda_draw__no_seed_and_no_key_stays_in_the_runner(void **state) {
    static scene s;
    uint64_t words[3 * SETS];
    (void)state;
    open_scene(&s, "scale", "");
    assert_true(draw(&s));
    for (uint32_t set = 0; set < SETS; set++) {
        kli_draw d;
        kli_draw_seed(&d, seed_of(set), KL_S("x"));
        words[3 * set] = seed_of(set), words[3 * set + 1] = d.values, words[3 * set + 2] = d.order;
    }
    const pid_t runner = child_of_this();
    assert_true(runner > 0);
    float z;
    memcpy(&z, here(&s, Z, 0), sizeof z);
    uint64_t known; /* of the sets themselves: what is there is found */
    memcpy(&known, here(&s, X, 3), sizeof known);
    for (int i = 0; known == 0 && i < N / 2; i++) memcpy(&known, (float *)here(&s, X, 3) + i, 8);
    assert_true(known != 0 && words_in(runner, &known, 1) > 0);
    assert_int_equal(words_in(runner, words, 3 * SETS), 0);
    close_scene(&s);
}

static void test_cuda_draw__no_seed_stays_of_a_request_that_makes_no_sense(void **state) {
    static scene s;
    kl_error e = {0};
    bool drawn = false;
    uint64_t words[SETS];
    (void)state;
    open_scene(&s, "scale", "");
    for (uint32_t set = 0; set < SETS; set++) words[set] = seed_of(set);
    s.request.draws[X].elems++;
    assert_err(KL_EIO, kli_runner_draw(s.runner, &s.fault, &s.request, &drawn, &e));
    assert_non_null(strstr(e.message, "a bad draw"));
    assert_int_equal(words_in(child_of_this(), words, SETS), 0);
    close_scene(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuda_draw__kernels_read_what_the_host_would_have_drawn),
        cmocka_unit_test(test_cuda_draw__a_set_can_be_drawn_again_from_another_seed),
        cmocka_unit_test(test_cuda_draw__without_ptx_nothing_is_drawn_and_an_upload_serves),
        cmocka_unit_test(test_cuda_draw__other_bytes_are_an_error_and_no_verdict),
        cmocka_unit_test(test_cuda_draw__no_seed_stays_of_a_request_that_makes_no_sense),
        cmocka_unit_test(test_cuda_draw__writes_to_drawn_inputs_are_seen),
        cmocka_unit_test(test_cuda_draw__scripts_draw_as_kernels_do),
        cmocka_unit_test(test_cuda_draw__no_seed_and_no_key_stays_in_the_runner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
