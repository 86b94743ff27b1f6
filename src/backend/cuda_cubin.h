/* cuda_cubin.h - what a cubin's tables say: which kernels it has, which blocks they need, and which
 * state of it outlives a launch.
 *
 * The file is the compiler's output for hostile source, so every offset is checked; a table that
 * does not fit its file is read as empty.  Not here: machine code.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_BACKEND_CUDA_CUBIN_H
#define KL_BACKEND_CUDA_CUBIN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    KLI_CUBIN_KERNEL,   /* can be launched */
    KLI_CUBIN_VARIABLE, /* __device__ or static: .nv.global, .nv.global.init */
    KLI_CUBIN_CONSTANT, /* __constant__: .nv.constant3 */
    KLI_CUBIN_EXTERNAL  /* provided by the driver: vprintf, malloc, cudaLaunchDevice... */
} kli_cubin_kind;

typedef struct {
    kli_cubin_kind kind;
    const char *name; /* inside the file; NUL-terminated */
    uint64_t bytes;
} kli_cubin_symbol;

typedef struct {
    const unsigned char *data;
    size_t bytes;
    uint64_t next;
} kli_cubin_walk;

void kli_cubin_begin(kli_cubin_walk *w, const void *data, size_t bytes);
bool kli_cubin_next(kli_cubin_walk *w, kli_cubin_symbol *out); /* false past the last */
bool kli_cubin_valid(const void *data, size_t bytes); /* an ELF file for an NVIDIA device */
/* The kernel that a directive calls `entry`: by its name, or, since names of C++ have no bound, as
 * "kernel_N" by its place among the kernels, from 0.  Inside the file; NULL: there is none. */
const char *kli_cubin_entry(const void *data, size_t bytes, const char *entry);
/* The block that kernel `entry` was compiled for (.reqntid); false where it says none. */
bool kli_cubin_block(const void *data, size_t bytes, const char *entry, uint32_t block[3]);

#endif
