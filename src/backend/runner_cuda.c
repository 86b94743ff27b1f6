/* runner_cuda.c - run one cubin on one GPU through the driver: open, load, launch, run.
 *
 *   open   driver, primary context, stream, our own helper kernels
 *   load   module, functions, limits; refuses what the device or the kernel's signature cannot
 * take, with numbers run    reset state -> poison -> launch and wait, one launch at a time ->
 * guards -> inputs -> outputs back
 *
 * State that outlives a launch is undone before every run and batch: module variables and constants
 * go back to their first bytes, and shared memory of every multiprocessor is cleared (30 MB on a
 * large GPU, which hardware keeps from launch to launch), and so are the frames of local memory,
 * where the kernel has any. Device code can still reach any address of this process where the
 * device can read pageable memory; that is why expected values and clocks live in the gate.  A
 * sticky error ends the context, so every reply after one is a fault too.
 *
 * Deliberately not here: cooperative launches, dynamic parallelism, programmatic dependent launch
 * (a tail that overlaps the next call would not be timed), access-policy windows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runner_cuda.h"
#include "cuda_cubin.h"
#include "base/fs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CUBIN_BYTES (256u << 20) /* a cubin; 64 KB is usual */
#define MAX_GLOBALS 1024
#define MAX_GLOBAL_BYTES (64u << 20) /* saved and restored before every run */

/* ---- errors ------------------------------------------------------------------------------ */

/* Errors that say "this launch or request is impossible here" rather than "the kernel broke". */
static bool is_refusal(kl_cu_result error) {
    switch (error) {
    case KL_CU_INVALID_VALUE:
    case KL_CU_OUT_OF_MEMORY:
    case KL_CU_NO_BINARY:
    case KL_CU_NOT_FOUND:
    case KL_CU_OUT_OF_RESOURCES:
    case KL_CU_NOT_SUPPORTED:
    case KL_CU_INVALID_CLUSTER:
        return true;
    default:
        return error >= 200 && error < 300; /* images that do not load */
    }
}

int kli_cuda_check(const kli_runner_ctx *c, kl_cu_result error, const char *doing, ...) {
    char what[192], text[224];
    va_list args;
    if (error == KL_CU_OK) return 0;
    va_start(args, doing);
    vsnprintf(what, sizeof what, doing, args);
    va_end(args);
    kli_cuda_error_text(kli_cuda_of(c)->api, error, text, sizeof text);
    return kli_fault(c, is_refusal(error) ? KL_FAULT_REFUSED : KL_FAULT_DEVICE, "%s: %s", what,
                     text);
}

/* ---- open -------------------------------------------------------------------------------- */

static void runner_cuda_read_limits(kli_cuda *r) {
    r->sms = kli_cuda_attribute(r->api, r->device, KL_CU_ATTR_SMS);
    r->sm_threads = kli_cuda_attribute(r->api, r->device, KL_CU_ATTR_SM_THREADS);
    r->smem_max = kli_cuda_attribute(r->api, r->device, KL_CU_ATTR_SMEM_OPTIN);
    r->l2_bytes = kli_cuda_attribute(r->api, r->device, KL_CU_ATTR_L2_BYTES);
    for (int i = 0; i < 3; i++)
        r->max_grid[i] = kli_cuda_attribute(r->api, r->device, KL_CU_ATTR_MAX_GRID_X + i);
}

/* The primary context, because vendor libraries of trusted plugins use it.  Limits a driver does
 * not know are not errors: they only make less room for state (device heap, printf buffer, L2 lines
 * that would survive a flush). */
static kl_cu_result open_context(kli_cuda *r) {
    const kli_cuda_api *api = r->api;
    kl_cu_context context;
    kl_cu_result error = api->device_get(&r->device, 0);
    if (error) return error;
    (void)api->primary_flags(r->device, KL_CU_SCHED_SPIN);
    if ((error = api->primary_retain(&context, r->device)) || (error = api->context_use(context)))
        return error;
    (void)api->context_limit(KL_CU_LIMIT_PRINTF_FIFO, 0);
    (void)api->context_limit(KL_CU_LIMIT_MALLOC_HEAP, 0);
    (void)api->context_limit(KL_CU_LIMIT_PERSISTING_L2, 0);
    return api->stream_new(&r->stream, KL_CU_STREAM_NON_BLOCKING);
}

static int cuda_open(kli_runner_ctx *c) {
    static kli_cuda state;
    char why[256] = "", name[128] = "";
    c->state = &state;
    /* One queue to the device is enough for one stream, and the seven more of the driver's default
     * take longer to open and to close than the rest of a context. */
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", true);
    state.api = kli_cuda_api_load(why, sizeof why);
    if (!state.api) return kli_fault(c, KL_FAULT_REFUSED, "%s", why);
    kl_cu_result error = open_context(&state);
    if (kli_cuda_check(c, error, "opening the GPU")) return 1;
    runner_cuda_read_limits(&state);
    bool helpers = kli_cuda_open_helpers(c) == 0;
    if (helpers) kli_cuda_open_memory(&state);
    (void)state.api->device_name(name, (int)sizeof name, state.device);
    snprintf(
        c->reply->text, sizeof c->reply->text, "%s%s%s", state.api->fake ? "fake device " : "",
        name,
        !helpers
            ? " (no helper kernels: inputs are compared on the host, shared memory is not cleared)"
        : !state.clears_local ? " (local memory is not cleared)"
        : !state.draw         ? " (inputs are drawn on the host)"
                              : "");
    return 0;
}

/* ---- load: the module -------------------------------------------------------------------- */

void kli_cuda_drop_graphs(kli_cuda *r) {
    for (int i = 0; i < KLI_CUDA_GRAPHS; i++) {
        if (!r->graphs[i].exec) continue;
        (void)r->api->exec_free(r->graphs[i].exec);
        (void)r->api->graph_free(r->graphs[i].graph);
        r->graphs[i] = (kli_cuda_graph){0};
    }
}

static void unload(kli_cuda *r) {
    kl_arena_free(r->loaded);
    if (r->module) (void)r->api->module_unload(r->module);
    if (r->is_plugin) kli_plugin_close(&r->plugin);
    r->loaded = NULL, r->module = NULL;
    r->n_globals = 0, r->reload = false, r->is_plugin = false;
}

static int load_module(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    return kli_cuda_check(c, r->api->module_load(&r->module, r->image.ptr),
                          "loading the compiled kernel");
}

static int cuda_functions(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    KL_ASSERT(r->module);
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        const char *entry = c->plan.launches[i].entry;
        const char *name = kli_cubin_entry(r->image.ptr, r->image.len, entry);
        kl_cu_result error =
            r->api->module_function(&r->functions[i], r->module, name ? name : entry);
        if (error == KL_CU_NOT_FOUND)
            return kli_fault(c, KL_FAULT_REFUSED,
                             "there is no kernel named `%s`; declare it extern \"C\" __global__",
                             entry);
        if (kli_cuda_check(c, error, "kernel `%s`", entry)) return 1;
    }
    return 0;
}

/* Variables whose address the driver does not give (string literals, sometimes) are restored by
 * loading the module again. */
static int save_global(kli_runner_ctx *c, const char *name) {
    kli_cuda *r = kli_cuda_of(c);
    kli_cuda_global g = {.name = name};
    if (r->api->module_global(&g.data, &g.bytes, r->module, name) != KL_CU_OK ||
        g.bytes > MAX_GLOBAL_BYTES || r->n_globals >= MAX_GLOBALS) {
        r->reload = true;
        return 0;
    }
    g.initial = kl_arena_alloc(r->loaded, g.bytes, 1);
    kl_cu_result error = kli_cuda_read(r, g.initial, g.data, g.bytes);
    KL_ASSERT(r->n_globals < MAX_GLOBALS);
    r->globals[r->n_globals++] = g;
    return kli_cuda_check(c, error, "reading variable `%s`", name);
}

static int save_globals(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    kli_cubin_walk walk;
    kli_cubin_symbol symbol;
    r->globals = KL_ARRAY(r->loaded, kli_cuda_global, MAX_GLOBALS);
    kli_cubin_begin(&walk, r->image.ptr, r->image.len);
    while (kli_cubin_next(&walk, &symbol)) {
        bool lives = symbol.kind == KLI_CUBIN_VARIABLE || symbol.kind == KLI_CUBIN_CONSTANT;
        if (lives && save_global(c, symbol.name)) return 1;
    }
    return 0;
}

/* ---- load: what the device and the kernel's signature allow ------------------------------ */

static int function_number(const kli_cuda *r, kl_cu_function f, int which) {
    int value = 0;
    return r->api->function_get(&value, which, f) == KL_CU_OK ? value : 0;
}

static size_t argument_bytes(const kli_runner_ctx *c, const kl_value *v) {
    uint64_t bits;
    if (v->kind == KL_VALUE_TENSORMAP) return sizeof(kli_cu_tensormap);
    const bool pointer = v->kind == KL_VALUE_TENSOR || v->kind == KL_VALUE_BUFFER;
    return pointer ? sizeof(kl_cu_ptr) : kli_ctx_number(c, v, &bits);
}

/* The bytes of the parameter that begins with argument `*i`, which becomes the first of the next.
 */
static size_t parameter_bytes(const kli_runner_ctx *c, const kl_plan_launch *l, uint32_t *i) {
    const kl_value *args = kli_launch_args(&c->plan, l);
    size_t bytes = argument_bytes(c, &args[(*i)++]);
    while (*i < l->n_args && args[*i].joined) bytes += argument_bytes(c, &args[(*i)++]);
    return bytes;
}

/* The driver reads as many arguments as the kernel declares, whatever we pass: a directive with too
 * few would make it read past our array, so number and sizes must agree before anything is
 * launched. */
static int check_signature(kli_runner_ctx *c, uint32_t launch) {
    kli_cuda *r = kli_cuda_of(c);
    const kl_plan_launch *l = &c->plan.launches[launch];
    size_t offset, bytes, n = 0, passed = 0;
    uint32_t at = 0;
    while (r->api->function_parameter(r->functions[launch], n, &offset, &bytes) == KL_CU_OK) {
        n++;
        if (at == l->n_args) continue;
        const size_t ours = parameter_bytes(c, l, &at);
        passed++;
        if (bytes != ours)
            return kli_fault(
                c, KL_FAULT_REFUSED,
                "launch `%s`: argument %zu has %zu bytes in the directive and %zu in the kernel",
                l->entry, n, ours, bytes);
    }
    for (; at < l->n_args; passed++) (void)parameter_bytes(c, l, &at);
    if (n == passed) return 0;
    return kli_fault(c, KL_FAULT_REFUSED,
                     "launch `%s`: the directive passes %zu arguments, the kernel takes %zu",
                     l->entry, passed, n);
}

/* What the compiler said beside the code may be a lie of what it compiled: the code itself says the
 * block that it was made for. */
static int check_block(kli_runner_ctx *c, uint32_t launch) {
    const kl_plan_launch *l = &c->plan.launches[launch];
    const kl_str image = kli_cuda_of(c)->image;
    const char *name = kli_cubin_entry(image.ptr, image.len, l->entry);
    uint32_t need[3];
    if (!name || !kli_cubin_block(image.ptr, image.len, name, need) ||
        memcmp(need, l->block, sizeof need) == 0)
        return 0;
    return kli_fault(c, KL_FAULT_REFUSED,
                     "launch `%s`: a block of %u,%u,%u, but the kernel was compiled for %u,%u,%u",
                     l->entry, l->block[0], l->block[1], l->block[2], need[0], need[1], need[2]);
}

static int runner_cuda_check_shape(kli_runner_ctx *c, uint32_t launch, const kl_resources *have) {
    kli_cuda *r = kli_cuda_of(c);
    const kl_plan_launch *l = &c->plan.launches[launch];
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2],
             smem = (uint64_t)l->smem + have->static_smem;
    if (threads > have->max_threads)
        return kli_fault(c, KL_FAULT_REFUSED,
                         "launch `%s`: a block of %llu threads, but with %u registers a "
                         "thread the kernel allows %u",
                         l->entry, (unsigned long long)threads, have->registers, have->max_threads);
    if (smem > (uint64_t)r->smem_max)
        return kli_fault(c, KL_FAULT_REFUSED,
                         "launch `%s`: %llu bytes of shared memory (%u dynamic + %u static), "
                         "but the device allows %d",
                         l->entry, (unsigned long long)smem, l->smem, have->static_smem,
                         r->smem_max);
    for (int i = 0; i < 3; i++)
        if (l->grid[i] == 0 || l->grid[i] > (uint32_t)r->max_grid[i])
            return kli_fault(c, KL_FAULT_REFUSED,
                             "launch `%s`: grid dimension %d is %u, the device allows 1 to %d",
                             l->entry, i + 1, l->grid[i], r->max_grid[i]);
    return 0;
}

static uint32_t cluster_blocks(const kl_plan_launch *l) {
    uint32_t n = 1;
    for (int i = 0; i < 3; i++) n *= l->cluster[i] ? l->cluster[i] : 1;
    return n;
}

static int load_launch(kli_runner_ctx *c, uint32_t i) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_function f = r->functions[i];
    const kl_plan_launch *l = &c->plan.launches[i];
    kl_resources have = {.registers = (uint32_t)function_number(r, f, KL_CU_FUNC_REGISTERS),
                         .static_smem = (uint32_t)function_number(r, f, KL_CU_FUNC_STATIC_SMEM),
                         .local_bytes = (uint32_t)function_number(r, f, KL_CU_FUNC_LOCAL_BYTES),
                         .max_threads = (uint32_t)function_number(r, f, KL_CU_FUNC_MAX_THREADS)};
    c->reply->resources[i] = have;
    c->reply->n_resources = i + 1;
    if (runner_cuda_check_shape(c, i, &have) || check_signature(c, i) || check_block(c, i))
        return 1;
    kl_cu_result error = r->api->function_set(f, KL_CU_FUNC_MAX_DYNAMIC_SMEM, (int)l->smem);
    if (kli_cuda_check(c, error, "launch `%s`: %u bytes of shared memory", l->entry, l->smem))
        return 1;
    if (cluster_blocks(l) > 8) error = r->api->function_set(f, KL_CU_FUNC_LARGE_CLUSTERS, 1);
    return kli_cuda_check(c, error, "launch `%s`: clusters of %u blocks", l->entry,
                          cluster_blocks(l));
}

static int read_module(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    if (c->artefact_kind != KL_ARTEFACT_CUBIN)
        return kli_fault(c, KL_FAULT_PROTOCOL, "a CUDA runner loads cubins and plugins");
    r->loaded = kl_arena_new();
    if (!kli_artefact_read(&r->image, r->loaded, c->artefact_fd, MAX_CUBIN_BYTES) ||
        !kli_cubin_valid(r->image.ptr, r->image.len))
        return kli_fault(c, KL_FAULT_PROTOCOL, "the artefact is not a cubin");
    return load_module(c) || save_globals(c);
}

/* Another shape of the same code.  A candidate's module is loaded anew all the same: nothing that
 * its runs at one shape left in it is there at the next. */
static int cuda_load(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    const bool stays = c->same_artefact && c->trusted;
    kli_cuda_drop_graphs(r);
    if (!stays) unload(r);
    if (c->artefact_kind == KL_ARTEFACT_PLUGIN) return kli_cuda_plugin_load(c);
    if ((!stays && read_module(c)) || cuda_functions(c)) return 1;
    uint32_t frames[KL_MAX_LAUNCHES];
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        if (load_launch(c, i)) return 1;
        frames[i] = c->reply->resources[i].local_bytes;
    }
    return kli_cuda_make_brooms(c, frames, c->plan.n_launches);
}

/* ---- launch ------------------------------------------------------------------------------ */

typedef struct {
    _Alignas(64) char bytes[sizeof(kli_cu_tensormap)];
} runner_cuda_cell;

typedef struct {
    _Alignas(64) char bytes[KL_MAX_ARGS * sizeof(kli_cu_tensormap)];
    void *arguments[KL_MAX_ARGS];
} runner_cuda_cells;

static int encode_dtype(uint32_t dtype) {
    switch ((kl_dtype)dtype) { /* the driver's numbers: u8 u16 u32 i32 u64 i64 f16 f32 f64 bf16 */
    case KL_F16:
        return 6;
    case KL_F32:
        return 7;
    case KL_F64:
        return 8;
    case KL_BF16:
        return 9;
    case KL_I64:
        return 5;
    case KL_I32:
        return 3;
    case KL_I16:
        return 1;
    default:
        return 0;
    }
}

/* The descriptor contains the address, so each call has its own. */
static int encode_tensormap(kli_runner_ctx *c, uint32_t index, uint32_t set, uint32_t slot,
                            runner_cuda_cell *out) {
    kli_cuda *r = kli_cuda_of(c);
    const kl_plan_tensormap *m = &c->plan.tensormaps[index];
    static const uint32_t ones[5] = {1, 1, 1, 1, 1};
    if (m->rank < 1 || m->rank > 5 ||
        m->index >= (m->of_buffer ? c->plan.n_buffers : c->plan.n_tensors))
        return kli_fault(c, KL_FAULT_PROTOCOL, "tensormap %u describes nothing", index + 1);
    uintptr_t base = (uintptr_t)(m->of_buffer ? kli_cuda_buffer(c, m->index, slot)
                                              : kli_cuda_tensor(c, m->index, set, slot));
    int swizzle = m->swizzle == 128 ? 3 : (int)(m->swizzle / 32),
        l2 = m->l2 == 256 ? 3 : (int)(m->l2 / 64);
    return kli_cuda_check(c,
                          r->api->tensormap_encode((kli_cu_tensormap *)(void *)out->bytes,
                                                   encode_dtype(m->dtype), m->rank, (kl_cu_ptr)base,
                                                   m->dims, m->strides + 1, m->box, ones,
                                                   (int)(m->interleave / 16), swizzle, l2, 0),
                          "encoding tensormap %u", index + 1);
}

static int fill_argument(kli_runner_ctx *c, const kl_value *v, uint32_t set, uint32_t slot,
                         runner_cuda_cell *out) {
    uint64_t word = 0;
    if (v->kind == KL_VALUE_TENSORMAP) return encode_tensormap(c, v->index, set, slot, out);
    if (v->kind == KL_VALUE_TENSOR)
        word = kli_cuda_tensor(c, v->index, set, slot);
    else if (v->kind == KL_VALUE_BUFFER)
        word = kli_cuda_buffer(c, v->index, slot);
    else if (!kli_ctx_number(c, v, &word))
        return kli_fault(c, KL_FAULT_PROTOCOL,
                         "an argument of kind %u has no place in a CUDA launch", v->kind);
    return memcpy(out->bytes, &word, sizeof word), 0;
}

/* Each parameter in a place of its own, aligned as a descriptor must be; what is joined to it lies
 * behind it, byte by byte. */
static int fill_arguments(kli_runner_ctx *c, const kl_plan_launch *l, uint32_t set, uint32_t slot,
                          runner_cuda_cells *to) {
    const kl_value *args = kli_launch_args(&c->plan, l);
    size_t end = 0, n = 0;
    for (uint32_t i = 0; i < l->n_args; i++) {
        runner_cuda_cell cell;
        const size_t bytes = argument_bytes(c, &args[i]);
        if (fill_argument(c, &args[i], set, slot, &cell)) return 1;
        if (!args[i].joined) {
            end = (end + 63) / 64 * 64;
            to->arguments[n++] = to->bytes + end;
        }
        KL_ASSERT(bytes <= sizeof cell.bytes && end + bytes <= sizeof to->bytes);
        memcpy(to->bytes + end, cell.bytes, bytes);
        end += bytes;
    }
    return 0;
}

static int launch_one(kli_runner_ctx *c, uint32_t index, uint32_t set, uint32_t slot) {
    kli_cuda *r = kli_cuda_of(c);
    const kl_plan_launch *l = &c->plan.launches[index];
    static runner_cuda_cells cells; /* 136 KiB; launches come from one thread */
    KL_ASSERT(l->n_args <= KL_MAX_ARGS && r->functions[index]);
    KL_ASSERT(!r->is_lent); /* no candidate runs beside a key */
    r->has_candidate = true;
    kli_cu_launch_attribute cluster = {.id = KL_CU_LAUNCH_CLUSTER};
    kli_cu_launch_config config = {.shared_bytes = l->smem, .stream = r->stream};
    if (fill_arguments(c, l, set, slot, &cells)) return 1;
    memcpy(config.grid, l->grid, sizeof config.grid);
    memcpy(config.block, l->block, sizeof config.block);
    if (cluster_blocks(l) > 1) {
        cluster.value.cluster.x = l->cluster[0] ? l->cluster[0] : 1;
        cluster.value.cluster.y = l->cluster[1] ? l->cluster[1] : 1;
        cluster.value.cluster.z = l->cluster[2] ? l->cluster[2] : 1;
        config.attributes = &cluster;
        config.n_attributes = 1;
    }
    return kli_cuda_check(c, r->api->launch(&config, r->functions[index], cells.arguments, NULL),
                          "launch `%s`", l->entry);
}

int kli_cuda_enqueue(kli_runner_ctx *c, uint32_t set, uint32_t slot) {
    if (kli_cuda_of(c)->is_plugin) return kli_cuda_plugin_enqueue(c, set, slot);
    for (uint32_t i = 0; i < c->plan.n_launches; i++)
        if (launch_one(c, i, set, slot)) return 1;
    return 0;
}

/* ---- state between runs ------------------------------------------------------------------ */

static int reload_module(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    kl_cu_result error = kli_cuda_wait(r); /* nothing of the old module may still be queued */
    if (kli_cuda_check(c, error, "loading the module again")) return 1;
    kli_cuda_drop_graphs(r);
    (void)r->api->module_unload(r->module);
    r->module = NULL;
    if (load_module(c) || cuda_functions(c)) return 1;
    for (uint32_t i = 0; i < c->plan.n_launches; i++)
        if (load_launch(c, i)) return 1;
    for (size_t i = 0; i < r->n_globals; i++) {
        kli_cuda_global *g = &r->globals[i];
        error = r->api->module_global(&g->data, &g->bytes, r->module, g->name);
        if (kli_cuda_check(c, error, "variable `%s`", g->name)) return 1;
    }
    return 0;
}

/* A kernel that asks for all shared memory of every multiprocessor and writes zeros. */
static kl_cu_result scrub_shared_memory(kli_cuda *r) {
    if (!r->scrub) return KL_CU_OK;
    uint32_t bytes = (uint32_t)r->smem_max & ~15u;
    void *arguments[] = {&bytes};
    kli_cu_launch_config config = {.grid = {(unsigned)r->sms, 1, 1},
                                   .block = {512, 1, 1},
                                   .shared_bytes = bytes,
                                   .stream = r->stream};
    return r->api->launch(&config, r->scrub, arguments, NULL);
}

int kli_cuda_reset(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    if (r->is_plugin) return 0;
    if (r->reload && reload_module(c)) return 1;
    for (size_t i = 0; i < r->n_globals; i++) {
        const kli_cuda_global *g = &r->globals[i];
        kl_cu_result error = r->api->copy_in(g->data, g->initial, g->bytes, r->stream);
        if (kli_cuda_check(c, error, "restoring variable `%s`", g->name)) return 1;
    }
    if (c->trusted) return 0; /* it leaves no notes */
    kl_cu_result error = scrub_shared_memory(r);
    if (kli_cuda_check(c, error, "clearing shared memory")) return 1;
    if ((error = kli_cuda_clear_tails(r)))
        return kli_cuda_check(c, error, "clearing the ends of device memory");
    error = kli_cuda_sweep_local(r);
    return kli_cuda_check(c, error, "clearing local memory");
}

/* ---- run --------------------------------------------------------------------------------- */

/* Wait after every launch, so that a fault has the name of its launch. */
static int run_launches(kli_runner_ctx *c, uint32_t set, uint32_t slot) {
    kli_cuda *r = kli_cuda_of(c);
    if (r->is_plugin) {
        if (kli_cuda_plugin_enqueue(c, set, slot)) return 1;
        kl_cu_result error = kli_cuda_wait(r);
        return kli_cuda_check(c, error, "the plugin's run");
    }
    for (uint32_t i = 0; i < c->plan.n_launches; i++) {
        if (launch_one(c, i, set, slot)) return 1;
        kl_cu_result error = kli_cuda_wait(r);
        if (kli_cuda_check(c, error, "launch `%s` (%u of %u)", c->plan.launches[i].entry, i + 1,
                           c->plan.n_launches))
            return 1;
    }
    return 0;
}

static int cuda_run(kli_runner_ctx *c, const kl_msg_run *m) {
    kli_cuda *r = kli_cuda_of(c);
    uint8_t poison = (uint8_t)m->poison;
    if (!r->uploaded[m->set])
        return kli_fault(c, KL_FAULT_PROTOCOL, "input set %u was never uploaded", m->set);
    if (m->slack != KL_WIRE_ANY_SLACK && kli_cuda_slack(c, m->set, (uint8_t)m->slack)) return 1;
    if (kli_cuda_reset(c) || kli_cuda_prepare_slots(c, m->slot, 1, poison)) return 1;
    kl_cu_result error = kli_cuda_wait(r);
    if (kli_cuda_check(c, error, "preparing a run")) return 1;
    int64_t begin = kli_now_ns();
    if (run_launches(c, m->set, m->slot)) return 1;
    c->reply->wall_ns = kli_now_ns() - begin;
    /* Damage explains wrong outputs better than their values do: it is what the reply says. */
    const kli_cuda_left left = {m->slot, 1, m->set, 1, poison};
    const kl_cu_result brought = m->stays ? KL_CU_OK : kli_cuda_bring(c, m->slot);
    if (kli_cuda_check(c, brought, "bringing back output slot %u", m->slot) ||
        kli_cuda_look_over(c, &left))
        return 1;
    const bool is_printed = m->stays && !c->trusted && r->digest; /* a candidate's */
    return is_printed && kli_cuda_check(c, kli_cuda_print(c, &m->slot, 1, c->reply->prints),
                                        "the digest of output slot %u", m->slot);
}

/* ---- the row ----------------------------------------------------------------------------- */

static int cuda_bind(kli_runner_ctx *c) {
    kli_cuda *r = kli_cuda_of(c);
    kli_cuda_drop_graphs(r);
    if (kli_cuda_bind(c)) return 1;
    return r->is_plugin ? kli_cuda_plugin_prepare(c) : 0;
}

const kli_runner_ops kli_runner_cuda = {
    .name = "cuda",
    .shared_memory = false,
    .probe = kli_cuda_probe,
    .open = cuda_open,
    .load = cuda_load,
    .bind = cuda_bind,
    .upload = kli_cuda_upload,
    .draw = kli_cuda_draw,
    .run = cuda_run,
    .time = kli_cuda_time,
    .audit = kli_cuda_audit,
    .fetch = kli_cuda_fetch,
    .compare = kli_cuda_compare,
};
