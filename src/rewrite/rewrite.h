/* rewrite.h - the facts of a kernel: klineage/rewrite.h with the body of its handle.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_REWRITE_REWRITE_H
#define KL_REWRITE_REWRITE_H

#include <klineage/rewrite.h>

#include "kernel/kernel.h"

typedef enum {
#define KL_DEF_FACT(id, ...) KL_FACT_##id,
#include <klineage/rewrite.def>
    KL_FACT_COUNT
} kl_fact_id;
typedef enum {
#define KL_DEF_LOOP_FACT(id, ...) KL_LOOP_##id,
#include <klineage/rewrite.def>
    KL_LOOP_COUNT
} kl_loop_fact_id;
typedef enum {
#define KL_DEF_BUFFER_FACT(id, ...) KL_BUFFER_##id,
#include <klineage/rewrite.def>
    KL_BUFFER_COUNT
} kl_buffer_fact_id;

typedef struct {
    kl_fact at[KL_LOOP_COUNT];
} kl_loop_facts;
typedef struct {
    kl_fact at[KL_BUFFER_COUNT];
} kl_buffer_facts;

struct kl_facts {
    kl_fact at[KL_FACT_COUNT];
    kl_loop_facts *loops; /* in the order in which they run, one of each place in the text */
    kl_buffer_facts *buffers;
    int n_loops, n_buffers;
    kl_traits traits;
    bool nests; /* loops and buffers are known; false for what only Python can read */
};

#endif
