/* export_impl.h - what the files of src/export share; nobody outside this folder includes it.
 *
 * Templates are the files of templates/; {{name}} in them is replaced, once, by values that are
 * never looked into again.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_EXPORT_IMPL_H
#define KL_EXPORT_IMPL_H

#include "export.h"
#include "kernel/kernel.h"

enum { KLI_EXPORT_VALUES = 80 };

typedef struct {
    kl_arena *arena;
    struct {
        const char *name;
        kl_str text;
    } at[KLI_EXPORT_VALUES];
    int n;
} kli_values;

/* template.c */
void kli_value_set(kli_values *v, const char *name,
                   kl_str text); /* the last one of a name counts */
kl_str kli_template(const kli_values *v, const char *name);
kl_str kli_template_of(const kli_values *v, kl_str text);
void kli_files_add(kli_export_files *out, kl_str path, kl_str text);

/* names.c */
kl_str kli_export_name(kl_arena *a, kl_str name); /* of a tensor or an axis, as a parameter */
kl_str kli_export_upper(kl_arena *a, const char *name);
kl_str kli_entry_name(const kli_export *x,
                      kl_str entry); /* a symbol of the program that links it */
bool kli_is_device_code(const kli_export *x);

kl_str
kli_export_licence(kl_str source); /* what its SPDX line says, else NOASSERTION; launcher.c */

/* expression.c: an expression of a directive as C.  Integers are checked: where one has no value,
 * p->bad is set.  Names are members of the plan `p`.  In Python names are variables, and what has
 * no value raises. */
kl_str kli_expression(const kli_export *x, kl_str text);
kl_str kli_real_expression(const kli_export *x, kl_str text);
kl_str kli_python_expression(const kli_export *x, kl_str text);
kl_str kli_python_real_expression(const kli_export *x, kl_str text);
/* An expression of a completion, about that launch of the file. */
kl_str kli_decided_expression(const kli_export *x, kl_str text, int launch);

/* variant.c: what of a shape a compiler that specializes was told, in an order of its own. */
typedef enum {
    KLI_KEY_CLASS, /* of an integer: 1, 16 where that divides it, else 0 */
    KLI_KEY_VALUE, /* of an integer that is compiled in */
    KLI_KEY_BOX,   /* a size of a descriptor's box */
    KLI_KEY_WARPS,
    KLI_KEY_STAGES,
    KLI_KEY_CTAS,
    KLI_KEY_REGISTERS
} kli_key_kind;
typedef struct {
    kli_key_kind kind;
    int launch, arg, dim;
    kl_str text; /* its expression */
    bool scalar; /* it is a scalar input, by its name */
} kli_key;
typedef struct {
    kli_key at[KLI_EXPORT_KEYS];
    int n;
} kli_keys;
kli_keys kli_export_keys(const kli_export *x);

/* launcher.c: the values of templates that headers and launchers of both kinds share; what it
 * returns are the arguments of all launches, evaluated, where the directives say them all. */
kl_str kli_launcher_values(kli_values *v, const kli_export *x);
void kli_header_values(kli_values *v, const kli_export *x);
/* Arguments of launch `l` of a function that is called directly, and the parameters of its
 * declaration. */
kl_str kli_argument(const kli_export *x, const kl_arg *arg);
kl_str kli_argument_type(const kli_export *x, const kl_arg *arg);

const char *
kli_element_type(kl_dtype t); /* of an element in C: "float"; of narrow floats, its bits */
kl_str kli_libraries(const kli_export *x); /* c.c: what native code is linked with */

/* The forms; c.c and cuda.c are the two halves of `c`. */
kl_err kli_export_c(kli_export_files *out, const kli_export *x, kl_error *e);
kl_err kli_export_cuda(kli_export_files *out, const kli_export *x, kl_error *e);
kl_err kli_export_flashinfer(kli_export_files *out, const kli_export *x, kl_error *e);
kl_err kli_export_torch(kli_export_files *out, const kli_export *x, kl_error *e);
kl_err kli_export_triton(kli_export_files *out, const kli_export *x, kl_error *e);
kl_err kli_export_kernels(kli_export_files *out, const kli_export *x, kl_error *e);
kl_err kli_export_patch(kli_export_files *out, const kli_export *x, kl_error *e);
kl_err kli_export_tvm_ffi(kli_export_files *out, const kli_export *x, kl_error *e);
kl_err kli_export_kernelbench(kli_export_files *out, const kli_export *x, kl_error *e);
/* torch.c: the operator's package in `folder` ("": the root), Triton's own where the kernel is
 * Triton's. */
kl_err kli_package(kli_values *v, kli_export_files *out, const kli_export *x, const char *folder,
                   kl_error *e);
/* triton.c: launch.py and kernel.py in a folder of a package.  Errors: KL_EINVAL, with what of the
 * kernel Triton's own launcher cannot do. */
kl_err kli_triton_files(kli_values *v, kli_export_files *out, const kli_export *x,
                        const char *folder, kl_error *e);
/* torch.c: the files of `c` in a folder of their own. */
kl_err kli_export_native(kli_export_files *out, const kli_export *x, const char *folder,
                         kl_error *e);
/* python.c: the values of native.py; of an operator, on top of these.  Errors: KL_EINVAL, with an
 * task whose inputs are no tensors. */
const char *kli_torch_type(kl_dtype t); /* "torch.float32" */
kl_err kli_python_values(kli_values *v, const kli_export *x, kl_error *e);
const kl_axis *kli_untold_axis(const kli_export *x); /* NULL: tensors tell all of them */
void kli_operator_values(kli_values *v, const kli_export *x);
/* The macros that the kernel was compiled with, as lines of C. */
kl_str kli_export_macros(const kli_export *x);

#endif
