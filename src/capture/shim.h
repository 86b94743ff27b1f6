/* shim.h - the two halves of libklineage-capture.so: shim.c stands before the driver, record.c
 * writes down what it is told.
 *
 * The library is loaded into programs that are not ours.  It needs the C library alone, owns no
 * thread, says nothing on any stream, and changes no call: the driver is asked first, and what it
 * answered is what the program gets.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_CAPTURE_SHIM_H
#define KL_CAPTURE_SHIM_H
#include "backend/cuda_api.h"

/* What is asked of the driver while something is written down; each may be NULL. */
typedef struct {
    kl_cu_result (*parameter)(const void *function, size_t i, size_t *offset, size_t *bytes);
    kl_cu_result (*kernel_parameter)(const void *kernel, size_t i, size_t *offset, size_t *bytes);
    kl_cu_result (*function_name)(const char **name, const void *function);
    kl_cu_result (*function_module)(const void **module, const void *function);
    kl_cu_result (*kernel_name)(const char **name, const void *kernel);
    kl_cu_result (*kernel_library)(const void **library, const void *kernel);
    kl_cu_result (*range)(kl_cu_ptr *base, size_t *bytes, kl_cu_ptr data);
    kl_cu_result (*context_device)(kl_cu_device *device);
    kl_cu_result (*device_attribute)(int *value, int attribute, kl_cu_device device);
    kl_cu_result (*device_name)(char *name, int bytes, kl_cu_device device);
} capture_driver;

typedef struct {
    const void *function; /* CUfunction, or CUkernel in its place */
    uint32_t grid[3], block[3], cluster[3], shared_bytes;
    bool cooperative, in_graph, overlaps; /* the last: programmatic dependent launch */
    void **arguments, **extra;            /* as cuLaunchKernel has them; one is NULL */
} capture_launch;

typedef struct {
    int dtype;
    uint32_t rank;
    kl_cu_ptr base;
    const uint64_t *dims, *strides;
    const uint32_t *box, *element_strides;
    int interleave, swizzle, l2, fill;
} capture_map;

/* Called by record.c with its lock held, once: fills the table. */
void capture_find_driver(capture_driver *out);

void capture_saw_image(const void *handle, const void *code); /* a module or library of memory */
void capture_saw_image_file(const void *handle, const char *path);
void capture_saw_alias(const void *handle, const void *of); /* module of a library, and the like */
/* A function of a module; or, of a library, a kernel, which is asked in other ways. */
void capture_saw_function(const void *handle, const void *image, const char *name, bool is_kernel);
void capture_saw_launch(const capture_launch *l);
void capture_saw_memory(kl_cu_ptr data, size_t bytes);
void capture_saw_free(kl_cu_ptr data);
void capture_saw_map(const kli_cu_tensormap *made, const capture_map *m);

#endif
