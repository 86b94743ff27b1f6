/* cpu_call.c - call a C function whose arguments are known at run time only, without a library for
 * it.
 *
 * In the calling conventions of x86-64 (System V) and aarch64 integer and floating arguments fill
 * two independent rows of registers, and what is left goes to the stack in order, eight bytes each.
 * So one prototype serves every function: all integer registers, all floating registers, then stack
 * words.  A callee never looks at the words it did not declare. Not here: structures by value, long
 * double, functions that return something.  SPDX-License-Identifier: Apache-2.0 */
#include "cpu_call.h"
#include <string.h>

#if KLI_INT_REGISTERS == 6
#define INT_TYPES uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t
#define INT_VALUES i[0], i[1], i[2], i[3], i[4], i[5]
#else
#define INT_TYPES uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t
#define INT_VALUES i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7]
#endif
#define FLOAT_TYPES double, double, double, double, double, double, double, double
#define FLOAT_VALUES f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]
#define WORDS_8 uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t
#define VALUES_8(k)                                                                                \
    s[k], s[(k) + 1], s[(k) + 2], s[(k) + 3], s[(k) + 4], s[(k) + 5], s[(k) + 6], s[(k) + 7]
#define WORDS_64 WORDS_8, WORDS_8, WORDS_8, WORDS_8, WORDS_8, WORDS_8, WORDS_8, WORDS_8
#define VALUES_64(k)                                                                               \
    VALUES_8(k), VALUES_8((k) + 8), VALUES_8((k) + 16), VALUES_8((k) + 24), VALUES_8((k) + 32),    \
        VALUES_8((k) + 40), VALUES_8((k) + 48), VALUES_8((k) + 56)

typedef void short_call(INT_TYPES, FLOAT_TYPES);
typedef void medium_call(INT_TYPES, FLOAT_TYPES, WORDS_8);
typedef void long_call(INT_TYPES, FLOAT_TYPES, WORDS_8, WORDS_8, WORDS_8, WORDS_8, WORDS_8,
                       WORDS_8);
typedef void longest_call(INT_TYPES, FLOAT_TYPES, WORDS_64, WORDS_64);
_Static_assert(KL_MAX_SOURCE_ARGS == 128, "longest_call passes two groups of 64 words");

void kli_call_init(kli_backend_call *c, void (*entry)(void)) {
    *c = (kli_backend_call){.entry = entry};
}

static void push(kli_backend_call *c, uint64_t word) {
    KL_ASSERT(c->n_stack < KL_MAX_SOURCE_ARGS);
    c->stack[c->n_stack++] = word;
}

void kli_call_add_int(kli_backend_call *c, uint64_t value) {
    if (c->n_ints < KLI_INT_REGISTERS)
        c->ints[c->n_ints++] = value;
    else
        push(c, value);
}

/* A narrower value lies in the low bits of its register or stack word; the upper bits are nobody's.
 */
static void add_bits(kli_backend_call *c, uint64_t bits) {
    if (c->n_floats < KLI_FLOAT_REGISTERS)
        memcpy(&c->floats[c->n_floats++], &bits, sizeof bits);
    else
        push(c, bits);
}

void kli_call_add_float(kli_backend_call *c, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_bits(c, bits);
}

void kli_call_add_double(kli_backend_call *c, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_bits(c, bits);
}

void kli_call_add_half(kli_backend_call *c, uint16_t bits) { add_bits(c, bits); }

/* Through uintptr_t: the true type is the kernel author's, which no cast here could name. */
void kli_call_make(const kli_backend_call *c) {
    const uint64_t *i = c->ints, *s = c->stack;
    const double *f = c->floats;
    uintptr_t entry = (uintptr_t)c->entry;
    if (c->n_stack == 0)
        ((short_call *)entry)(INT_VALUES, FLOAT_VALUES);
    else if (c->n_stack <= 8)
        ((medium_call *)entry)(INT_VALUES, FLOAT_VALUES, VALUES_8(0));
    else if (c->n_stack > 48)
        ((longest_call *)entry)(INT_VALUES, FLOAT_VALUES, VALUES_64(0), VALUES_64(64));
    else
        ((long_call *)entry)(INT_VALUES, FLOAT_VALUES, VALUES_8(0), VALUES_8(8), VALUES_8(16),
                             VALUES_8(24), VALUES_8(32), VALUES_8(40));
}
