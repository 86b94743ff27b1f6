/* cuda_impl.h - what the launcher of device code is made of: shared by cuda.c, which writes what
 * directives say, and decided.c, which writes what a compiler made of that.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_EXPORT_CUDA_IMPL_H
#define KL_EXPORT_CUDA_IMPL_H

#include "export_impl.h"

/* A tensor or buffer: its type, its shape as expressions, outermost first, and its address in C. */
typedef struct {
    kl_dtype type;
    int n;
    kl_str dims[KL_MAX_DIMS];
    const char *base;
} kli_described;

const char *kli_map_type(kl_dtype t);
kli_described kli_describe_memory(const kli_export *x, kl_str name);
void kli_add_view(kl_buf *b, const kli_export *x, const kl_tensormap *m);
/* "arg_0_1", and the real numbers that are its like; launcher.c. */
void kli_add_argument(kl_buf *b, const kli_export *x, int launch, int j, const kl_arg *arg);
kl_str kli_reals_text(const kli_export *x);
/* Sizes as the directives have them; `decided`: the compiler has the last word, on all but the
 * grid. */
kl_str kli_sizes_of_launches(const kli_export *x, bool decided);
kl_str kli_cleared_text(const kli_export *x); /* buffers that begin as zeros */

/* decided.c: what the launch of one code does, its functions from `first_function` on in the
 * module; and how much workspace the compiler wants beyond the kernel's own, empty where none. */
kl_str kli_decided_body(const kli_export *x, const json_t *completion, int first_function);
kl_str kli_decided_hidden(const kli_export *x, const json_t *completion);

#endif
