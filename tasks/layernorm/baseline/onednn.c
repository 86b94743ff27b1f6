/* onednn.c - layernorm as a user of oneDNN's C interface writes it.
 *
 * oneDNN 2 and 3 share their names and not their interface.  This plugin speaks version 2 (libdnnl.so.2), where
 * descriptors are structures that the caller owns: it gives them room and never looks inside.  Version 3 is recognised
 * and refused, so that the next baseline takes its place.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <klineage/plugin.h>
#include <stdio.h>
#include <stdlib.h>

/* Written from oneDNN 2's published interface; its header does not have to be installed. */
enum { ENGINE_CPU = 1, STREAM_DEFAULT = 1, FORWARD_INFERENCE = 96, QUERY_IMPLEMENTATION = 8 };
enum { TYPE_F32 = 3, USE_SCALE = 8, USE_SHIFT = 16 };
enum { ARGUMENT_SOURCE = 1, ARGUMENT_RESULT = 17, ARGUMENT_SCALE = 51, ARGUMENT_SHIFT = 52 };
typedef struct { int major, minor, patch; } dnnl_version_head;            // the fields that every version begins with
typedef struct { int argument; void *memory; } dnnl_argument;
typedef struct { _Alignas(64) unsigned char bytes[16384]; } dnnl_opaque;  // 696 to 3496 bytes in version 2.6

typedef struct {
    const dnnl_version_head *(*version)(void);
    int (*engine_create)(void **engine, int kind, size_t index);
    int (*stream_create)(void **stream, void *engine, unsigned flags);
    int (*stream_wait)(void *stream);
    int (*memory_desc_init_by_strides)(void *desc, int ndims, const int64_t *dims, int type, const int64_t *strides);
    int (*memory_create)(void **memory, const void *desc, void *engine, void *handle);
    int (*memory_set_data_handle)(void *memory, void *handle);
    int (*memory_destroy)(void *memory);
    int (*operation_init)(void *operation, int kind, const void *data, const void *statistics, float epsilon,
                          unsigned flags);
    int (*primitive_desc_create)(void **made, const void *operation, const void *attributes, void *engine,
                                 const void *hint);
    int (*primitive_desc_query)(const void *desc, int what, int index, void *result);
    int (*primitive_desc_destroy)(void *desc);
    int (*primitive_create)(void **primitive, const void *desc);
    int (*primitive_execute)(const void *primitive, void *stream, int count, const dnnl_argument *arguments);
    int (*primitive_destroy)(void *primitive);
    void (*set_num_threads)(int);   // OpenMP's; NULL when the library was built without it
} dnnl_functions;

typedef struct {
    dnnl_functions fn;
    void          *engine, *stream, *primitive;
    dnnl_argument  arguments[4];
    int            threads;
    char           implementation[64], description[160];
} onednn;

static int say(char *why, size_t why_bytes, const char *text)
{
    snprintf(why, why_bytes, "%s", text);
    return 1;
}

static int load_functions(dnnl_functions *fn, void *library)
{
    const struct { const char *name; void *slot; } wanted[] = {
        {"dnnl_version", &fn->version},
        {"dnnl_engine_create", &fn->engine_create},
        {"dnnl_stream_create", &fn->stream_create},
        {"dnnl_stream_wait", &fn->stream_wait},
        {"dnnl_memory_desc_init_by_strides", &fn->memory_desc_init_by_strides},
        {"dnnl_memory_create", &fn->memory_create},
        {"dnnl_memory_set_data_handle", &fn->memory_set_data_handle},
        {"dnnl_memory_destroy", &fn->memory_destroy},
        {"dnnl_layer_normalization_forward_desc_init", &fn->operation_init},
        {"dnnl_primitive_desc_create", &fn->primitive_desc_create},
        {"dnnl_primitive_desc_query", &fn->primitive_desc_query},
        {"dnnl_primitive_desc_destroy", &fn->primitive_desc_destroy},
        {"dnnl_primitive_create", &fn->primitive_create},
        {"dnnl_primitive_execute", &fn->primitive_execute},
        {"dnnl_primitive_destroy", &fn->primitive_destroy},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = dlsym(library, wanted[i].name);
        if (!found) return 1;
        *(void **)wanted[i].slot = found;
    }
    *(void **)&fn->set_num_threads = dlsym(library, "omp_set_num_threads");
    return 0;
}

static int load_library(void **library, char *why, size_t why_bytes)
{
    *library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (*library) return 0;
    void *newer = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!newer) return say(why, why_bytes, "libdnnl.so.2 is not installed");
    dlclose(newer);
    return say(why, why_bytes, "oneDNN 3 is installed; this baseline speaks oneDNN 2");
}

static int start(onednn *self, void *library, char *why, size_t why_bytes)
{
    if (load_functions(&self->fn, library)) return say(why, why_bytes, "libdnnl lacks a function of oneDNN 2");
    if (self->fn.version()->major != 2) return say(why, why_bytes, "libdnnl.so.2 is not oneDNN 2");
    if (self->fn.engine_create(&self->engine, ENGINE_CPU, 0)) return say(why, why_bytes, "oneDNN has no CPU engine");
    if (self->fn.stream_create(&self->stream, self->engine, STREAM_DEFAULT))
        return say(why, why_bytes, "dnnl_stream_create failed");
    return 0;
}

int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    void *library;
    unsetenv("ONEDNN_MAX_CPU_ISA");   // would hide the processor's vector units from the baseline
    unsetenv("DNNL_MAX_CPU_ISA");
    if (load_library(&library, why, why_bytes)) return 1;
    onednn *self = calloc(1, sizeof *self);
    if (!self) return say(why, why_bytes, "out of memory");
    if (start(self, library, why, why_bytes)) {
        free(self);
        return 1;
    }
    *state = self;
    return 0;
}

const char *kl_plugin_describe(void *state)
{
    onednn                  *self = state;
    const dnnl_version_head *version = self->fn.version();
    snprintf(self->description, sizeof self->description, "oneDNN %d.%d.%d %s, %d thread%s", version->major,
             version->minor, version->patch, self->implementation, self->threads, self->threads == 1 ? "" : "s");
    return self->description;
}

static void use_threads(onednn *self, int threads)
{
    if (threads < 1) threads = 1;
    if (threads != self->threads && self->fn.set_num_threads) self->fn.set_num_threads(threads);
    self->threads = threads;
}

static int describe_rows(const dnnl_functions *fn, dnnl_opaque *desc, int64_t rows, int64_t length)
{
    int64_t dims[2] = {rows, length}, strides[2] = {length, 1};
    return fn->memory_desc_init_by_strides(desc, 2, dims, TYPE_F32, strides);
}

static void release_shape(onednn *self)
{
    for (int i = 0; i < 4; i++) {
        if (self->arguments[i].memory) self->fn.memory_destroy(self->arguments[i].memory);
        self->arguments[i].memory = NULL;
    }
    if (self->primitive) self->fn.primitive_destroy(self->primitive);
    self->primitive = NULL;
}

static int create_primitive(onednn *self, const dnnl_opaque *operation)
{
    const char *name = "";
    void       *desc = NULL;
    if (self->fn.primitive_desc_create(&desc, operation, NULL, self->engine, NULL)) return 1;
    if (self->fn.primitive_desc_query(desc, QUERY_IMPLEMENTATION, 0, &name) == 0)
        snprintf(self->implementation, sizeof self->implementation, "%s", name);
    int failed = self->fn.primitive_create(&self->primitive, desc);
    self->fn.primitive_desc_destroy(desc);
    return failed;
}

/* The task's tensors (x, weight, bias, eps, output) behind the primitive's arguments. */
static const int tensor_of[4] = {0, 1, 2, 4};
static const int argument_of[4] = {ARGUMENT_SOURCE, ARGUMENT_SCALE, ARGUMENT_SHIFT, ARGUMENT_RESULT};

static int build_shape(onednn *self, const kl_plugin_call *call)
{
    const int64_t *dims = call->tensors[0].dims, stride = 1;
    const float    epsilon = *(const float *)call->tensors[3].data;
    dnnl_opaque    rows, vector, operation;
    if (describe_rows(&self->fn, &rows, dims[0], dims[1])) return 1;
    if (self->fn.memory_desc_init_by_strides(&vector, 1, &dims[1], TYPE_F32, &stride)) return 1;
    if (self->fn.operation_init(&operation, FORWARD_INFERENCE, &rows, NULL, epsilon, USE_SCALE | USE_SHIFT)) return 1;
    for (int i = 0; i < 4; i++) {
        const dnnl_opaque *desc = tensor_of[i] == 1 || tensor_of[i] == 2 ? &vector : &rows;
        self->arguments[i].argument = argument_of[i];
        if (self->fn.memory_create(&self->arguments[i].memory, desc, self->engine, NULL)) return 1;
    }
    return create_primitive(self, &operation);
}

int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    onednn *self = state;
    if (call->n_tensors != 5) return say(why, why_bytes, "expects the tensors x, weight, bias, eps, output");
    for (int i = 0; i < 5; i++)
        if (call->tensors[i].dtype != KL_PLUGIN_F32) return say(why, why_bytes, "this baseline takes float32 only");
    release_shape(self);
    use_threads(self, call->threads);   // oneDNN plans for the number of threads it sees now
    if (build_shape(self, call)) return say(why, why_bytes, "oneDNN has no layer normalization for this shape");
    return 0;
}

int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    onednn *self = state;
    int     failed = 0;
    use_threads(self, call->threads);
    for (int i = 0; i < 4; i++)
        failed |= self->fn.memory_set_data_handle(self->arguments[i].memory, call->tensors[tensor_of[i]].data);
    failed |= self->fn.primitive_execute(self->primitive, self->stream, 4, self->arguments);
    failed |= self->fn.stream_wait(self->stream);
    return failed;
}
