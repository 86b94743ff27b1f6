/* fixture.h - a small task in memory, for tests and the fuzzer of this folder: planning needs one
 * and no file should.
 *
 * C = alpha * A B^T with the kinds of tensors and axes that directives can meet.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef KL_KERNEL_FIXTURE_H
#define KL_KERNEL_FIXTURE_H

#include "kernel/kernel.h"

typedef struct {
    kl_task task;
    kl_workload workload;
} kl_fixture;

enum {
    FIXTURE_A,
    FIXTURE_B,
    FIXTURE_IDX,
    FIXTURE_ALPHA,
    FIXTURE_LIMIT,
    FIXTURE_STATE,
    FIXTURE_C,
    FIXTURE_TENSORS
};

static inline void fixture_tensor(kl_fixture *f, int i, kl_str name, kl_dtype dtype, int ndim,
                                  kl_str d0, kl_str d1) {
    kl_tensor *t = &f->task.tensors[i];
    t->name = name;
    t->dtype = f->workload.dtypes[i] = dtype;
    t->ndim = ndim;
    t->dims[0] = d0;
    t->dims[1] = d1;
}

static inline void fixture_init(kl_fixture *f, int64_t m, int64_t n) {
    const kl_str none = {0};
    *f = (kl_fixture){0};
    f->task.name = KL_S("small");
    f->task.n_axes = 3;
    f->task.axes[0] = (kl_axis){.name = KL_S("M"), .kind = KL_AXIS_VAR};
    f->task.axes[1] = (kl_axis){.name = KL_S("N"), .kind = KL_AXIS_VAR};
    f->task.axes[2] = (kl_axis){.name = KL_S("K"), .kind = KL_AXIS_CONST, .value = 64};
    f->workload.axes[0] = m;
    f->workload.axes[1] = n;
    f->workload.axes[2] = 64;
    f->task.n_tensors = FIXTURE_TENSORS;
    f->task.n_inputs = FIXTURE_C;
    fixture_tensor(f, FIXTURE_A, KL_S("A"), KL_BF16, 2, KL_S("M"), KL_S("K"));
    fixture_tensor(f, FIXTURE_B, KL_S("B"), KL_BF16, 2, KL_S("N"), KL_S("K"));
    fixture_tensor(f, FIXTURE_IDX, KL_S("idx"), KL_I64, 1, KL_S("M"), none);
    fixture_tensor(f, FIXTURE_ALPHA, KL_S("alpha"), KL_F32, 0, none, none);
    fixture_tensor(f, FIXTURE_LIMIT, KL_S("limit"), KL_I32, 0, none, none);
    fixture_tensor(f, FIXTURE_STATE, KL_S("state"), KL_F32, 1, KL_S("M"), none);
    fixture_tensor(f, FIXTURE_C, KL_S("C"), KL_BF16, 2, KL_S("M"), KL_S("N"));
    f->task.tensors[FIXTURE_ALPHA].is_scalar = f->task.tensors[FIXTURE_LIMIT].is_scalar = true;
    f->task.tensors[FIXTURE_STATE].is_mutable = true;
    f->task.tensors[FIXTURE_C].is_output = true;
    f->workload.scalars[FIXTURE_ALPHA] = 0.5;
    f->workload.scalars[FIXTURE_LIMIT] = 7;
}

#endif
