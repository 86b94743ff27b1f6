/* cpu_call.h - call a C function whose arguments are known at run time only.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_CPU_CALL_H
#define KL_BACKEND_CPU_CALL_H
#include "kernel/kernel.h"

#if defined(__x86_64__)
#define KLI_INT_REGISTERS 6
#elif defined(__aarch64__)
#define KLI_INT_REGISTERS 8
#else
#error "add the calling convention of this architecture to cpu_call.c"
#endif
#define KLI_FLOAT_REGISTERS 8

/* One call, ready to be made: filling it is not part of any timed interval. */
typedef struct {
    void (*entry)(void);
    uint64_t ints[KLI_INT_REGISTERS];
    double floats[KLI_FLOAT_REGISTERS];
    uint64_t stack[KL_MAX_SOURCE_ARGS];
    uint32_t n_ints, n_floats, n_stack;
} kli_backend_call;

void kli_call_init(kli_backend_call *c, void (*entry)(void));
void kli_call_add_int(kli_backend_call *c,
                      uint64_t value); /* pointers and integers, already widened by their sign */
void kli_call_add_float(kli_backend_call *c, float value);
void kli_call_add_double(kli_backend_call *c, double value);
void kli_call_add_half(kli_backend_call *c, uint16_t bits); /* _Float16 */
void kli_call_make(const kli_backend_call *c);

#endif
