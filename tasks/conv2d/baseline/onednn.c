/* oneDNN convolution: what a user of a CPU calls.
 *
 * Activation and result keep the task's NHWC memory, described by strides.  The filter's layout is left to oneDNN; it
 * is an input that may change, so bringing it from HWCF into that layout is part of the timed call.
 *
 * Versions 2 and 3 differ in how descriptors are made: in 2 the caller owns the storage, in 3 the library does.  Either
 * way they are only handed around as pointers, so a large enough buffer serves where version 2 wants storage.
 * Strides describe what format tags would, because the numbers of tags changed between versions.
 * Not here: other data types than float32.  SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <klineage/plugin.h>
#include <stdio.h>

enum { FLOAT32 = 3, TAG_ANY = 1, FORWARD_INFERENCE = 96, CONVOLUTION_AUTO = 3, CPU = 1, IN_ORDER = 1 };
enum { QUERY_IMPLEMENTATION = 8, QUERY_WEIGHTS = 131 };
enum { ARG_SOURCE = 1, ARG_TARGET = 17, ARG_WEIGHTS = 33 };
enum { STRIDE = 1, PAD = 1 };    // the task's constants

typedef int64_t dims[12];

typedef struct {    // dnnl_exec_arg_t
    int   arg;
    void *memory;
} argument;

typedef struct {    // the head of dnnl_version_t
    int         major, minor, patch;
    const char *hash;
} version;

typedef union {    // version 2: dnnl_memory_desc_t takes 696 bytes, dnnl_convolution_desc_t 5976
    long double alignment;
    char        bytes[16384];
} storage;

static struct {
    void *library, *engine, *stream;
    int   major;
    void (*set_threads)(int);
    int (*execute)(const void *primitive, void *stream, int count, const argument *arguments);
    int (*set_data)(void *memory, void *data);
    void *convolution, *reorder;                          // primitives
    void *source, *plain_weights, *weights, *target;      // memories
    version number;
    char description[192];
} onednn;

static void *symbol(const char *name)
{
    return dlsym(onednn.library, name);
}

static int fail(char *why, size_t why_bytes, const char *what, int status)
{
    snprintf(why, why_bytes, "oneDNN: %s failed with status %d", what, status);
    return 1;
}

// Load one library, make an engine and a stream.  A build for SYCL has no plain CPU engine and fails here.
static int load(const char *name, char *why, size_t why_bytes)
{
    onednn.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!onednn.library) {
        snprintf(why, why_bytes, "oneDNN is not installed: %s", dlerror());
        return 1;
    }
    const version *(*get_version)(void) = (const version *(*)(void))symbol("dnnl_version");
    int (*engine_create)(void **, int, size_t) = (int (*)(void **, int, size_t))symbol("dnnl_engine_create");
    int (*stream_create)(void **, void *, unsigned) = (int (*)(void **, void *, unsigned))symbol("dnnl_stream_create");
    *(void **)&onednn.set_threads = symbol("omp_set_num_threads");    // found through its dependencies
    *(void **)&onednn.execute = symbol("dnnl_primitive_execute");
    *(void **)&onednn.set_data = symbol("dnnl_memory_set_data_handle");
    if (!get_version || !engine_create || !stream_create || !onednn.execute || !onednn.set_data) {
        snprintf(why, why_bytes, "this oneDNN lacks a function that the baseline calls");
        return 1;
    }
    onednn.number = *get_version();
    onednn.major = onednn.number.major;
    int status = engine_create(&onednn.engine, CPU, 0);
    if (!status)
        status = stream_create(&onednn.stream, onednn.engine, IN_ORDER);
    return status ? fail(why, why_bytes, "creating an engine and a stream", status) : 0;
}

int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    *state = &onednn;
    return load("libdnnl.so.3", why, why_bytes) ? load("libdnnl.so.2", why, why_bytes) : 0;
}

// A float32 descriptor of four dimensions.  No strides: the library chooses.  NULL on failure.
static void *describe_memory(storage *room, const dims extents, const int64_t *strides)
{
    const int old = onednn.major < 3;
    void *made = room;
    int (*make)(void *, int, const int64_t *, int, const int64_t *) = NULL;
    int (*make_any)(void *, int, const int64_t *, int, int) = NULL;
    *(void **)&make = symbol(old ? "dnnl_memory_desc_init_by_strides" : "dnnl_memory_desc_create_with_strides");
    *(void **)&make_any = symbol(old ? "dnnl_memory_desc_init_by_tag" : "dnnl_memory_desc_create_with_tag");
    if (!make || !make_any)
        return NULL;
    void *out = old ? (void *)room : (void *)&made;
    int status = strides ? make(out, 4, extents, FLOAT32, strides) : make_any(out, 4, extents, FLOAT32, TAG_ANY);
    return status ? NULL : made;
}

static int describe_convolution(void **described, const void *source, const void *weights, const void *target)
{
    static const int64_t strides[2] = {STRIDE, STRIDE}, padding[2] = {PAD, PAD}, no_dilation[2] = {0, 0};
    if (onednn.major >= 3) {
        int (*create)(void **, void *, int, int, const void *, const void *, const void *, const void *,
                      const int64_t *, const int64_t *, const int64_t *, const int64_t *, const void *) = NULL;
        *(void **)&create = symbol("dnnl_convolution_forward_primitive_desc_create");
        return !create ? -1 : create(described, onednn.engine, FORWARD_INFERENCE, CONVOLUTION_AUTO, source, weights,
                                     NULL, target, strides, no_dilation, padding, padding, NULL);
    }
    static storage operation;
    int (*fill)(void *, int, int, const void *, const void *, const void *, const void *, const int64_t *,
                const int64_t *, const int64_t *) = NULL;
    int (*create)(void **, const void *, const void *, void *, const void *) = NULL;
    *(void **)&fill = symbol("dnnl_convolution_forward_desc_init");
    *(void **)&create = symbol("dnnl_primitive_desc_create");
    if (!fill || !create)
        return -1;
    int status = fill(&operation, FORWARD_INFERENCE, CONVOLUTION_AUTO, source, weights, NULL, target, strides, padding,
                      padding);
    return status ? status : create(described, &operation, NULL, onednn.engine, NULL);
}

// Both primitives, and the four memories they work on; their data pointers are set by every run.
static int build(const void *source, const void *plain, const void *any, const void *target)
{
    int (*create)(void **, const void *) = NULL;
    int (*memory)(void **, const void *, void *, void *) = NULL;
    int (*describe_reorder)(void **, const void *, void *, const void *, void *, const void *) = NULL;
    const void *(*query)(const void *, int, int) = NULL;
    int (*query_text)(const void *, int, int, void *) = NULL;
    *(void **)&create = symbol("dnnl_primitive_create");
    *(void **)&memory = symbol("dnnl_memory_create");
    *(void **)&describe_reorder = symbol("dnnl_reorder_primitive_desc_create");
    *(void **)&query = symbol("dnnl_primitive_desc_query_md");
    *(void **)&query_text = symbol("dnnl_primitive_desc_query");
    void *convolution = NULL, *reorder = NULL, *allocate = (void *)(intptr_t)-1;    // DNNL_MEMORY_ALLOCATE
    const char *implementation = "unknown";
    int status = describe_convolution(&convolution, source, any, target);
    if (status || !create || !memory || !describe_reorder || !query || !query_text)
        return status ? status : -1;
    const void *chosen = query(convolution, QUERY_WEIGHTS, 0);
    query_text(convolution, QUERY_IMPLEMENTATION, 0, &implementation);
    snprintf(onednn.description, sizeof onednn.description, "oneDNN %d.%d.%d, %s, filter reordered in the timed call%s",
             onednn.number.major, onednn.number.minor, onednn.number.patch, implementation,
             onednn.set_threads ? "" : ", thread count not settable");
    status = describe_reorder(&reorder, plain, onednn.engine, chosen, onednn.engine, NULL);
    status = status ? status : create(&onednn.convolution, convolution);
    status = status ? status : create(&onednn.reorder, reorder);
    status = status ? status : memory(&onednn.source, source, onednn.engine, NULL);
    status = status ? status : memory(&onednn.plain_weights, plain, onednn.engine, NULL);
    status = status ? status : memory(&onednn.target, target, onednn.engine, NULL);
    return status ? status : memory(&onednn.weights, chosen, onednn.engine, allocate);
}

// What an earlier shape left behind.
static void release(void)
{
    int (*destroy_memory)(void *) = NULL;
    int (*destroy_primitive)(void *) = NULL;
    *(void **)&destroy_memory = symbol("dnnl_memory_destroy");
    *(void **)&destroy_primitive = symbol("dnnl_primitive_destroy");
    void **memories[] = {&onednn.source, &onednn.plain_weights, &onednn.weights, &onednn.target};
    for (int n = 0; n < 4; n++) {
        if (destroy_memory && *memories[n])
            destroy_memory(*memories[n]);
        *memories[n] = NULL;
    }
    void **primitives[] = {&onednn.convolution, &onednn.reorder};
    for (int n = 0; n < 2; n++) {
        if (destroy_primitive && *primitives[n])
            destroy_primitive(*primitives[n]);
        *primitives[n] = NULL;
    }
}

int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    (void)state;
    static storage rooms[4];
    const int64_t *x = call->tensors[0].dims, *w = call->tensors[1].dims, *y = call->tensors[2].dims;
    for (int n = 0; n < call->n_tensors; n++)
        if (call->tensors[n].dtype != KL_PLUGIN_F32) {
            snprintf(why, why_bytes, "this baseline takes float32 only, and %s is not", call->tensors[n].name);
            return 1;
        }
    if (onednn.set_threads)    // before the primitives are made: they divide the work by it
        onednn.set_threads(call->threads);
    release();
    // oneDNN names dimensions N C H W and F C R S; the strides say that memory is N H W C and R S C F.
    const dims source = {x[0], x[3], x[1], x[2]}, source_strides = {x[1] * x[2] * x[3], 1, x[2] * x[3], x[3]};
    const dims weights = {w[3], w[2], w[0], w[1]}, weights_strides = {1, w[3], w[1] * w[2] * w[3], w[2] * w[3]};
    const dims target = {y[0], y[3], y[1], y[2]}, target_strides = {y[1] * y[2] * y[3], 1, y[2] * y[3], y[3]};
    void *from = describe_memory(&rooms[0], source, source_strides);
    void *plain = describe_memory(&rooms[1], weights, weights_strides);
    void *any = describe_memory(&rooms[2], weights, NULL);
    void *to = describe_memory(&rooms[3], target, target_strides);
    if (!from || !plain || !any || !to)
        return fail(why, why_bytes, "describing the tensors", -1);
    int status = build(from, plain, any, to);
    return status ? fail(why, why_bytes, "creating the convolution", status) : 0;
}

int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    (void)state;
    int status = onednn.set_data(onednn.source, call->tensors[0].data);
    status = status ? status : onednn.set_data(onednn.plain_weights, call->tensors[1].data);
    status = status ? status : onednn.set_data(onednn.target, call->tensors[2].data);
    if (status)
        return status;
    const argument reorder[] = {{ARG_SOURCE, onednn.plain_weights}, {ARG_TARGET, onednn.weights}};
    const argument convolution[] = {
        {ARG_SOURCE, onednn.source}, {ARG_WEIGHTS, onednn.weights}, {ARG_TARGET, onednn.target}};
    status = onednn.execute(onednn.reorder, onednn.stream, 2, reorder);    // a CPU stream runs at once
    return status ? status : onednn.execute(onednn.convolution, onednn.stream, 3, convolution);
}

const char *kl_plugin_describe(void *state)
{
    (void)state;
    return onednn.description;
}
