/* forms.c - the table of forms, and what no form can express.  SPDX-License-Identifier: Apache-2.0
 */
#include "export_impl.h"

static const kli_export_form EXPORT_FORMS[] = {
    {"c", "C header, launcher and Makefile; device code embedded", kli_export_c},
    {"flashinfer", "FlashInfer-Bench Solution and Trace", kli_export_flashinfer},
    {"torch", "Python package with a torch.library operator", kli_export_torch},
    {"kernelbench", "the same, behind a KernelBench ModelNew", kli_export_kernelbench},
    {"triton", "Python package with the Triton kernel and its wrapper", kli_export_triton},
    {"kernels", "repository of the Hugging Face package kernels", kli_export_kernels},
    {"patch", "change of another tree that calls it, for git am", kli_export_patch},
    {"tvm-ffi", "module for tvm_ffi.load_module", kli_export_tvm_ffi},
};

const kli_export_form *kli_export_form_each(int i) {
    return i >= 0 && i < (int)KL_COUNT(EXPORT_FORMS) ? &EXPORT_FORMS[i] : NULL;
}

/* ---- what cannot be exported ------------------------------------------------------------- */

kl_err kli_export_fits_surface(const kl_kernel *k, kl_error *e) {
    for (int i = 0; i < k->n_launches; i++)
        for (int j = 0; j < k->launches[i].n_args; j++)
            if (k->launches[i].args[j].joined)
                return kl_fail(e, KL_EINVAL, k->path.ptr,
                               "a launch joins arguments in one parameter, which no launcher does");
    if (k->surface->families & (KL_FAMILY_C | KL_FAMILY_NVIDIA)) return KL_OK;
    kl_fail(e, KL_EINVAL, k->path.ptr, "a kernel of surface %s cannot be exported",
            k->surface->name);
    return kl_hint(e, "those of c, cuda, triton and tilelang can: docs/how-to/export.md");
}

static kl_str name_of_thing(const kli_export *x, int i) {
    const int n = x->task->n_axes;
    return i < n ? x->task->axes[i].name : x->task->tensors[i - n].name;
}

static kl_err fits_names(const kli_export *x, kl_error *e) {
    const int n = x->task->n_axes + x->task->n_tensors;
    for (int i = 0; i < n; i++) {
        const kl_str name = kli_export_name(x->arena, name_of_thing(x, i));
        for (int j = 0; j < i; j++)
            if (kl_str_eq(name, kli_export_name(x->arena, name_of_thing(x, j))))
                return kl_fail(e, KL_EINVAL, x->task->name.ptr,
                               "two names of the task are '%s' in C", name.ptr);
        if (kl_str_eq(name, kl_str_of(x->name)))
            return kl_hint((kl_fail(e, KL_EINVAL, x->name,
                                    "the task has an axis or a tensor of "
                                    "this name"),
                            e),
                           "name the function with --name");
    }
    return KL_OK;
}

static kl_err fits_scalars(const kli_export *x, kl_error *e) {
    for (int i = 0; i < x->task->n_tensors; i++) {
        const kl_dtype t = x->workload->dtypes[i];
        if (x->task->tensors[i].is_scalar && kl_dtype_is_float(t) && kl_dtype_bytes(t) < 4)
            return kl_fail(e, KL_EINVAL, x->task->name.ptr,
                           "scalar input %.*s is %s, which C cannot pass",
                           KL_STR_ARG(x->task->tensors[i].name), kl_dtype_name(t));
    }
    return KL_OK;
}

kl_err kli_export_fits(const kli_export *x, kl_error *e) {
    const kl_err err = fits_names(x, e);
    return err ? err : fits_scalars(x, e);
}
