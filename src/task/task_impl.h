/* task_impl.h - what the files of src/task share: documents with positions, and the steps of
 * loading.
 *
 * A kli_doc is JSON text that was parsed; a kli_node is one value of it with the path to it, built
 * on the stack while walking down.  Positions are found again in the text only when an error needs
 * one, so that loading pays nothing for carets. Deliberately not here: anything that another folder
 * may use; that is include/klineage/task.h. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_TASK_IMPL_H
#define KL_TASK_IMPL_H

#include <jansson.h>
#include "task/task.h"

/* ---- expr.c ------------------------------------------------------------------------------ */

typedef struct {
    kl_err code;         /* KL_EPARSE, KL_EINVAL */
    size_t offset;       /* into the expression */
    kl_str unknown_name; /* a name that `lookup` does not have; empty for other faults */
    char message[160];
} kli_fault;

/* kl_expr_eval for callers that place the caret themselves.  `names_only` checks grammar and names
 * and computes nothing. */
KL_MUST_USE kl_err kli_expr_run(int64_t *out, kl_str expr, bool names_only, kl_lookup *lookup,
                                void *ctx, kli_fault *fault);

/* ---- document.c -------------------------------------------------------------------------- */

typedef struct {
    kl_arena *arena;
    kl_str file;  /* shown in errors */
    kl_str text;  /* the whole file */
    size_t start; /* where this JSON value begins in `text`: a line of a JSONL file */
    kl_error *e;
    kl_err err; /* of the first mistake; those behind it are not told */
} kli_doc;

typedef struct kli_node {
    kli_doc *doc;
    const struct kli_node *up; /* NULL: the whole value */
    kl_str key;                /* member of an object, or */
    size_t index;              /* element of an array when `key` is empty */
    json_t *value;             /* NULL: there is none; borrowed */
    bool at_name;              /* point at the member's name instead of its value */
} kli_node;

/* A mistake, with the caret at `p`, at its name, or where an expression in it went wrong. */
void kli_doc_fail(const kli_node *p, kl_err code, const char *fmt, ...) KL_PRINTF(3, 4);
void kli_doc_fail_name(const kli_node *p, kl_err code, const char *fmt, ...) KL_PRINTF(3, 4);
void kli_doc_fault(const kli_node *p, const kli_fault *fault);

kli_node kli_doc_member(const kli_node *up, const char *key);
/* Every member or element of `up`: the first, the one behind it; without a value at the end, and
 * after a mistake. */
kli_node kli_doc_first(const kli_node *up);
kli_node kli_doc_next(const kli_node *before);

/* Optional members: absent and null leave `*out` as it is.  A wrong type is KL_EPARSE at its place.
 * Text is copied into the document's arena. */
void kli_doc_text(kl_str *out, const kli_node *up, const char *key);
void kli_doc_real(double *out, const kli_node *up, const char *key);
void kli_doc_bool(bool *out, const kli_node *up, const char *key);
void kli_doc_host(kl_host_kind *out, const kli_node *up);
/* Without a value when absent or null; `required` makes that KL_EPARSE. */
kli_node kli_doc_object(const kli_node *up, const char *key, bool required);
kli_node kli_doc_array(const kli_node *up, const char *key, size_t most, const char *what);
/* Refuse members that are not in `known` (blank-separated): our own sections have no free keys, so
 * a typo is found. */
void kli_doc_known(const kli_node *p, const char *known);

/* Text that can be shown and compared: 1..max bytes, no control characters. */
bool kli_is_printable(kl_str s, size_t max);
/* A relative path that stays below where it starts.  `file` is NUL-terminated. */
bool kli_is_inside(kl_str file);

/* ---- definition.c, section.c ------------------------------------------------------------- */

KL_MUST_USE kl_err kli_definition_parse(kl_task *t, kl_arena *a, kl_str text, kl_str file,
                                        kl_error *e);
/* The "klineage" section of a definition. */
void kli_section_parse(kl_task *t, const kli_node *p);
void kli_dist_parse(kl_dist *out, const kli_node *p, const kl_task *t);
bool kli_dtype_at(kl_dtype *out, const kli_node *p); /* false after a mistake */
/* The tensor that the member `p` is named after; -1 after a mistake. */
typedef enum { KLI_TENSOR, KLI_INPUT, KLI_OUTPUT } kli_tensor_side;
int kli_tensor_at(const kl_task *t, kli_tensor_side side, const kli_node *p);
kl_dist kli_dist_default(kl_dtype dtype);
kl_check kli_check_default(kl_dtype dtype);
double kli_check_tolerance(kl_dtype dtype); /* rtol and atol when the task gives none */

/* ---- workload.c, shape.c ----------------------------------------------------------------- */

KL_MUST_USE kl_err kli_workloads_parse(kl_task *t, kl_arena *a, kl_str text, kl_str file,
                                       kl_error *e);
/* After the var axes are set: derive the others, then refuse what cannot be run (sizes,
 * constraints, distributions). */
KL_MUST_USE kl_err kli_workload_complete(kl_workload *w, const kl_task *t, kl_error *e);

typedef struct {
    const kl_task *task;
    const kl_workload *workload; /* NULL: every axis counts as 1 */
    int known;                   /* expr axes from this index on have no value yet */
} kli_axes;
bool kli_axes_lookup(void *axes, kl_str name, int64_t *value);

/* Smallest and largest value of an integer type; bool counts as 0 and 1. */
void kli_integer_range(kl_dtype dtype, int64_t *low, int64_t *high);
/* An axis bound of a distribution: the expression when there is one, else the number. */
KL_MUST_USE kl_err kli_dist_bound(int64_t *out, kl_str expr, double number, const kl_task *t,
                                  const kl_workload *w, kl_error *e);

/* ---- inputs.c, safetensors.c ------------------------------------------------------------- */

/* How many different values `distinct` can give in one row of this type. */
int64_t kli_distinct_capacity(kl_dtype dtype);
/* The fixed value of a scalar input whose workload leaves it to chance. */
double kli_scalar_draw(const kl_task *t, const kl_workload *w, int tensor);
/* Read one tensor.  Errors: KL_EIO for the file, KL_EINVAL when it is not the tensor that is
 * wanted. */
KL_MUST_USE kl_err kli_safetensors_read(void *data, const char *path, kl_str key, kl_dtype dtype,
                                        const kl_shape *shape, kl_error *e);

#endif
