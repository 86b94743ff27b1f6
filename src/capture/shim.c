/* shim.c - the functions of the driver that a launch needs, in front of the driver's own.
 *
 * A program reaches a function of libcuda in three ways, and each ends here:
 *
 *   by its name      it is linked against libcuda; LD_PRELOAD puts ours first
 *   dlsym            of a libcuda that it opened itself; ours stands before the C library's
 *   cuGetProcAddress as the runtime does, by a name without version and a number
 *
 * Deliberately not here: what is kept of a call (record.c); functions that launch nothing and hand
 * out no code.  A program that is linked statically, C library and all, is not seen.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shim.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef void *find_symbol(void *library, const char *name);

/* ---- the driver itself ------------------------------------------------------------------- */

static find_symbol *real_dlsym;
static void *driver;
static pthread_once_t dlsym_once = PTHREAD_ONCE_INIT, driver_once = PTHREAD_ONCE_INIT;

/* Its version differs from machine to machine: that of the C library in which it moved there. */
static void find_dlsym(void) {
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0] && !real_dlsym; i++)
        *(void **)&real_dlsym = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (!real_dlsym) abort(); /* nothing in this process could go on */
}

static find_symbol *true_dlsym(void) {
    (void)pthread_once(&dlsym_once, find_dlsym);
    return real_dlsym;
}

static void open_driver(void) { driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); }

static void *of_driver(const char *name) {
    (void)pthread_once(&driver_once, open_driver);
    return driver ? true_dlsym()(driver, name) : NULL;
}

enum { NO_DRIVER = 3 /* CUDA_ERROR_NOT_INITIALIZED */ };

/* The driver's function of this name and type, asked for once; a call without it fails as the
 * driver would. */
#define REAL(name, ...)                                                                            \
    static kl_cu_result (*real)(__VA_ARGS__);                                                      \
    if (!real) *(void **)&real = of_driver(name);                                                  \
    if (!real) return NO_DRIVER

void capture_find_driver(capture_driver *d) {
    *(void **)&d->parameter = of_driver("cuFuncGetParamInfo");
    *(void **)&d->kernel_parameter = of_driver("cuKernelGetParamInfo");
    *(void **)&d->function_name = of_driver("cuFuncGetName");
    *(void **)&d->function_module = of_driver("cuFuncGetModule");
    *(void **)&d->kernel_name = of_driver("cuKernelGetName");
    *(void **)&d->kernel_library = of_driver("cuKernelGetLibrary");
    *(void **)&d->range = of_driver("cuMemGetAddressRange_v2");
    *(void **)&d->context_device = of_driver("cuCtxGetDevice");
    *(void **)&d->device_attribute = of_driver("cuDeviceGetAttribute");
    *(void **)&d->device_name = of_driver("cuDeviceGetName");
}

/* ---- code -------------------------------------------------------------------------------- */

EXPORT kl_cu_result cuModuleLoadData(const void **out, const void *code) {
    REAL("cuModuleLoadData", const void **, const void *);
    const kl_cu_result r = real(out, code);
    if (!r) capture_saw_image(*out, code);
    return r;
}

EXPORT kl_cu_result cuModuleLoadDataEx(const void **out, const void *code, unsigned n,
                                       void *options, void **values) {
    REAL("cuModuleLoadDataEx", const void **, const void *, unsigned, void *, void **);
    const kl_cu_result r = real(out, code, n, options, values);
    if (!r) capture_saw_image(*out, code);
    return r;
}

EXPORT kl_cu_result cuModuleLoadFatBinary(const void **out, const void *code) {
    REAL("cuModuleLoadFatBinary", const void **, const void *);
    const kl_cu_result r = real(out, code);
    if (!r) capture_saw_image(*out, code);
    return r;
}

EXPORT kl_cu_result cuModuleLoad(const void **out, const char *path) {
    REAL("cuModuleLoad", const void **, const char *);
    const kl_cu_result r = real(out, path);
    if (!r) capture_saw_image_file(*out, path);
    return r;
}

EXPORT kl_cu_result cuLibraryLoadData(const void **out, const void *code, void *jit, void **jits,
                                      unsigned n_jit, void *options, void **values, unsigned n) {
    REAL("cuLibraryLoadData", const void **, const void *, void *, void **, unsigned, void *,
         void **, unsigned);
    const kl_cu_result r = real(out, code, jit, jits, n_jit, options, values, n);
    if (!r) capture_saw_image(*out, code);
    return r;
}

EXPORT kl_cu_result cuLibraryLoadFromFile(const void **out, const char *path, void *jit,
                                          void **jits, unsigned n_jit, void *options, void **values,
                                          unsigned n) {
    REAL("cuLibraryLoadFromFile", const void **, const char *, void *, void **, unsigned, void *,
         void **, unsigned);
    const kl_cu_result r = real(out, path, jit, jits, n_jit, options, values, n);
    if (!r) capture_saw_image_file(*out, path);
    return r;
}

EXPORT kl_cu_result cuLibraryGetModule(const void **out, const void *library) {
    REAL("cuLibraryGetModule", const void **, const void *);
    const kl_cu_result r = real(out, library);
    if (!r) capture_saw_alias(*out, library);
    return r;
}

EXPORT kl_cu_result cuModuleGetFunction(const void **out, const void *module, const char *name) {
    REAL("cuModuleGetFunction", const void **, const void *, const char *);
    const kl_cu_result r = real(out, module, name);
    if (!r) capture_saw_function(*out, module, name, false);
    return r;
}

EXPORT kl_cu_result cuLibraryGetKernel(const void **out, const void *library, const char *name) {
    REAL("cuLibraryGetKernel", const void **, const void *, const char *);
    const kl_cu_result r = real(out, library, name);
    if (!r) capture_saw_function(*out, library, name, true);
    return r;
}

EXPORT kl_cu_result cuKernelGetFunction(const void **out, const void *kernel) {
    REAL("cuKernelGetFunction", const void **, const void *);
    const kl_cu_result r = real(out, kernel);
    if (!r) capture_saw_alias(*out, kernel);
    return r;
}

/* ---- launches ---------------------------------------------------------------------------- */

enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_OVERLAP = 6 };

static void saw_config(const kli_cu_launch_config *c, const void *function, void **arguments,
                       void **extra) {
    capture_launch l = {.function = function,
                        .shared_bytes = c->shared_bytes,
                        .cluster = {1, 1, 1},
                        .arguments = arguments,
                        .extra = extra};
    memcpy(l.grid, c->grid, sizeof l.grid);
    memcpy(l.block, c->block, sizeof l.block);
    for (unsigned i = 0; i < c->n_attributes && c->attributes; i++) {
        const kli_cu_launch_attribute *a = &c->attributes[i];
        if (a->id == KL_CU_LAUNCH_CLUSTER) memcpy(l.cluster, &a->value.cluster, sizeof l.cluster);
        if (a->id == ATTRIBUTE_COOPERATIVE) l.cooperative = a->value.cluster.x != 0;
        if (a->id == ATTRIBUTE_OVERLAP) l.overlaps = a->value.cluster.x != 0;
    }
    capture_saw_launch(&l);
}

#define LAUNCH_PARAMETERS                                                                          \
    const void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,   \
        unsigned shared, void *stream, void **arguments
#define LAUNCH_TYPES                                                                               \
    const void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,    \
        void **

/* Each function twice where the driver has one for streams of a thread. */
#define LAUNCH(name)                                                                               \
    EXPORT kl_cu_result name(LAUNCH_PARAMETERS, void **extra) {                                    \
        REAL(#name, LAUNCH_TYPES, void **);                                                        \
        const kl_cu_result r = real(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra);  \
        const kli_cu_launch_config c = {                                                           \
            .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared_bytes = shared};                  \
        if (!r) saw_config(&c, f, arguments, extra);                                               \
        return r;                                                                                  \
    }
#define LAUNCH_EX(name)                                                                            \
    EXPORT kl_cu_result name(const kli_cu_launch_config *c, const void *f, void **arguments,       \
                             void **extra) {                                                       \
        REAL(#name, const kli_cu_launch_config *, const void *, void **, void **);                 \
        const kl_cu_result r = real(c, f, arguments, extra);                                       \
        if (!r) saw_config(c, f, arguments, extra);                                                \
        return r;                                                                                  \
    }
#define LAUNCH_TOGETHER(name)                                                                      \
    EXPORT kl_cu_result name(LAUNCH_PARAMETERS) {                                                  \
        REAL(#name, LAUNCH_TYPES);                                                                 \
        const kl_cu_result r = real(f, gx, gy, gz, bx, by, bz, shared, stream, arguments);         \
        const capture_launch l = {.function = f,                                                   \
                                  .grid = {gx, gy, gz},                                            \
                                  .block = {bx, by, bz},                                           \
                                  .cluster = {1, 1, 1},                                            \
                                  .shared_bytes = shared,                                          \
                                  .cooperative = true,                                             \
                                  .arguments = arguments};                                         \
        if (!r) capture_saw_launch(&l);                                                            \
        return r;                                                                                  \
    }

LAUNCH(cuLaunchKernel)
LAUNCH(cuLaunchKernel_ptsz)
LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)
LAUNCH_TOGETHER(cuLaunchCooperativeKernel)
LAUNCH_TOGETHER(cuLaunchCooperativeKernel_ptsz)

/* CUDA_KERNEL_NODE_PARAMS; the second version has a kernel and a context behind it. */
typedef struct {
    const void *function;
    uint32_t grid[3], block[3], shared_bytes;
    void **arguments, **extra;
    const void *kernel, *context; /* of the second */
} node_parameters;

static void saw_node(const node_parameters *p, bool second) {
    capture_launch l = {.function = second && !p->function ? p->kernel : p->function,
                        .cluster = {1, 1, 1},
                        .shared_bytes = p->shared_bytes,
                        .in_graph = true,
                        .arguments = p->arguments,
                        .extra = p->extra};
    memcpy(l.grid, p->grid, sizeof l.grid);
    memcpy(l.block, p->block, sizeof l.block);
    capture_saw_launch(&l);
}

#define ADD_NODE(name, second)                                                                     \
    EXPORT kl_cu_result name(void **node, void *graph, const void *from, size_t n,                 \
                             const node_parameters *p) {                                           \
        REAL(#name, void **, void *, const void *, size_t, const node_parameters *);               \
        const kl_cu_result r = real(node, graph, from, n, p);                                      \
        if (!r) saw_node(p, second);                                                               \
        return r;                                                                                  \
    }
ADD_NODE(cuGraphAddKernelNode, false)
ADD_NODE(cuGraphAddKernelNode_v2, true)

/* CUgraphNodeParams: a kind, and behind 12 bytes of reserve what belongs to it. */
typedef struct {
    int kind, reserved[3];
    node_parameters kernel;
} any_parameters;

EXPORT kl_cu_result cuGraphAddNode(void **node, void *graph, const void *from, size_t n,
                                   const any_parameters *p) {
    REAL("cuGraphAddNode", void **, void *, const void *, size_t, const any_parameters *);
    const kl_cu_result r = real(node, graph, from, n, p);
    if (!r && p->kind == 0) saw_node(&p->kernel, true);
    return r;
}

EXPORT kl_cu_result cuGraphAddNode_v2(void **node, void *graph, const void *from, const void *edges,
                                      size_t n, const any_parameters *p) {
    REAL("cuGraphAddNode_v2", void **, void *, const void *, const void *, size_t,
         const any_parameters *);
    const kl_cu_result r = real(node, graph, from, edges, n, p);
    if (!r && p->kind == 0) saw_node(&p->kernel, true);
    return r;
}

/* ---- memory ------------------------------------------------------------------------------ */

EXPORT kl_cu_result cuMemAlloc_v2(kl_cu_ptr *out, size_t bytes) {
    REAL("cuMemAlloc_v2", kl_cu_ptr *, size_t);
    const kl_cu_result r = real(out, bytes);
    if (!r) capture_saw_memory(*out, bytes);
    return r;
}

EXPORT kl_cu_result cuMemAllocPitch_v2(kl_cu_ptr *out, size_t *pitch, size_t width, size_t height,
                                       unsigned element) {
    REAL("cuMemAllocPitch_v2", kl_cu_ptr *, size_t *, size_t, size_t, unsigned);
    const kl_cu_result r = real(out, pitch, width, height, element);
    if (!r) capture_saw_memory(*out, *pitch * height);
    return r;
}

EXPORT kl_cu_result cuMemAllocManaged(kl_cu_ptr *out, size_t bytes, unsigned flags) {
    REAL("cuMemAllocManaged", kl_cu_ptr *, size_t, unsigned);
    const kl_cu_result r = real(out, bytes, flags);
    if (!r) capture_saw_memory(*out, bytes);
    return r;
}

EXPORT kl_cu_result cuMemFree_v2(kl_cu_ptr data) {
    REAL("cuMemFree_v2", kl_cu_ptr);
    const kl_cu_result r = real(data);
    if (!r) capture_saw_free(data);
    return r;
}

#define ALLOC_ASYNC(name)                                                                          \
    EXPORT kl_cu_result name(kl_cu_ptr *out, size_t bytes, void *stream) {                         \
        REAL(#name, kl_cu_ptr *, size_t, void *);                                                  \
        const kl_cu_result r = real(out, bytes, stream);                                           \
        if (!r) capture_saw_memory(*out, bytes);                                                   \
        return r;                                                                                  \
    }
#define ALLOC_OF_POOL(name)                                                                        \
    EXPORT kl_cu_result name(kl_cu_ptr *out, size_t bytes, void *pool, void *stream) {             \
        REAL(#name, kl_cu_ptr *, size_t, void *, void *);                                          \
        const kl_cu_result r = real(out, bytes, pool, stream);                                     \
        if (!r) capture_saw_memory(*out, bytes);                                                   \
        return r;                                                                                  \
    }
#define FREE_ASYNC(name)                                                                           \
    EXPORT kl_cu_result name(kl_cu_ptr data, void *stream) {                                       \
        REAL(#name, kl_cu_ptr, void *);                                                            \
        const kl_cu_result r = real(data, stream);                                                 \
        if (!r) capture_saw_free(data);                                                            \
        return r;                                                                                  \
    }
ALLOC_ASYNC(cuMemAllocAsync)
ALLOC_ASYNC(cuMemAllocAsync_ptsz)
ALLOC_OF_POOL(cuMemAllocFromPoolAsync)
ALLOC_OF_POOL(cuMemAllocFromPoolAsync_ptsz)
FREE_ASYNC(cuMemFreeAsync)
FREE_ASYNC(cuMemFreeAsync_ptsz)

EXPORT kl_cu_result cuTensorMapEncodeTiled(kli_cu_tensormap *map, int dtype, uint32_t rank,
                                           kl_cu_ptr base, const uint64_t *dims,
                                           const uint64_t *strides, const uint32_t *box,
                                           const uint32_t *element_strides, int interleave,
                                           int swizzle, int l2, int fill) {
    REAL("cuTensorMapEncodeTiled", kli_cu_tensormap *, int, uint32_t, kl_cu_ptr, const uint64_t *,
         const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int);
    const kl_cu_result r = real(map, dtype, rank, base, dims, strides, box, element_strides,
                                interleave, swizzle, l2, fill);
    const capture_map m = {dtype,           rank,       base,    dims, strides, box,
                           element_strides, interleave, swizzle, l2,   fill};
    if (!r) capture_saw_map(map, &m);
    return r;
}

/* ---- how a program finds them ------------------------------------------------------------ */

/* A name as cuGetProcAddress takes it, from which version of CUDA on, and whether for streams of a
 * thread; the function that it means. */
typedef struct {
    const char *name;
    int since;
    bool of_thread;
    const char *exported;
    void *ours;
} hook;

EXPORT kl_cu_result cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);
EXPORT kl_cu_result cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                        int *status);

#define H(name, since)                                                                             \
    { #name, since, false, #name, (void *)name }
#define H2(name, since)                                                                            \
    { #name, since, false, #name "_v2", (void *)name##_v2 }
#define HT(name, since)                                                                            \
    H(name, since), { #name, since, true, #name "_ptsz", (void *)name##_ptsz }

static const hook HOOKS[] = {H(cuModuleLoadData, 0),
                             H(cuModuleLoadDataEx, 0),
                             H(cuModuleLoadFatBinary, 0),
                             H(cuModuleLoad, 0),
                             H(cuLibraryLoadData, 0),
                             H(cuLibraryLoadFromFile, 0),
                             H(cuLibraryGetModule, 0),
                             H(cuModuleGetFunction, 0),
                             H(cuLibraryGetKernel, 0),
                             H(cuKernelGetFunction, 0),
                             HT(cuLaunchKernel, 0),
                             HT(cuLaunchKernelEx, 0),
                             HT(cuLaunchCooperativeKernel, 0),
                             H(cuGraphAddKernelNode, 0),
                             H2(cuGraphAddKernelNode, 12000),
                             H(cuGraphAddNode, 0),
                             H2(cuGraphAddNode, 12030),
                             H2(cuMemAlloc, 0),
                             H2(cuMemAllocPitch, 0),
                             H(cuMemAllocManaged, 0),
                             H2(cuMemFree, 0),
                             HT(cuMemAllocAsync, 0),
                             HT(cuMemAllocFromPoolAsync, 0),
                             HT(cuMemFreeAsync, 0),
                             H(cuTensorMapEncodeTiled, 0),
                             H(cuGetProcAddress, 0),
                             H2(cuGetProcAddress, 12000)};

static const size_t N_HOOKS = sizeof HOOKS / sizeof HOOKS[0];

/* The newest that is not newer than what was asked for. */
static const hook *hook_of(const char *name, int version, bool of_thread) {
    const hook *found = NULL;
    for (size_t i = 0; i < N_HOOKS; i++)
        if (strcmp(HOOKS[i].name, name) == 0 && HOOKS[i].since <= version &&
            (!HOOKS[i].of_thread || of_thread))
            found = &HOOKS[i];
    return found;
}

enum { OF_THREAD = 2 /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */ };

/* Only what the driver has: a program may ask to learn what there is. */
static void put_before(void **out, const char *name, int version, uint64_t flags) {
    const hook *h = name && out && *out ? hook_of(name, version, (flags & OF_THREAD) != 0) : NULL;
    if (h && of_driver(h->exported)) *out = h->ours;
}

kl_cu_result cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
    REAL("cuGetProcAddress", const char *, void **, int, uint64_t);
    const kl_cu_result r = real(name, out, version, flags);
    if (!r) put_before(out, name, version, flags);
    return r;
}

kl_cu_result cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                                 int *status) {
    REAL("cuGetProcAddress_v2", const char *, void **, int, uint64_t, int *);
    const kl_cu_result r = real(name, out, version, flags, status);
    if (!r) put_before(out, name, version, flags);
    return r;
}

static void *exported_hook(const char *name) {
    for (size_t i = 0; i < N_HOOKS; i++)
        if (strcmp(HOOKS[i].exported, name) == 0) return HOOKS[i].ours;
    return NULL;
}

/* Ours in the place of the driver's own, never where another library was asked.  The last call is a
 * jump (this file is always optimized), so that the C library still sees who asks: RTLD_NEXT means
 * what comes behind the caller. */
EXPORT void *dlsym(void *restrict library, const char *restrict name) {
    find_symbol *real = true_dlsym();
    if (strncmp(name, "cu", 2) == 0 && library != RTLD_NEXT) {
        void *ours = exported_hook(name), *theirs = ours ? real(library, name) : NULL;
        if (theirs && theirs == of_driver(name)) return ours;
    }
    return real(library, name);
}
