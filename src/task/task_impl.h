/* task_impl.h - what the files of src/task share: documents with positions, and the steps of
 * loading.
 *
 * A kli_doc is JSON text that was parsed; a kli_doc_path is the path to one value of it, built on
 * the stack while walking down.  Positions are found again in the text only when an error needs
 * one, so that loading pays nothing for carets. Deliberately not here: anything that another folder
 * may use; that is include/klineage/task.h. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_TASK_IMPL_H
#define KL_TASK_IMPL_H

#include <jansson.h>
#include <klineage/task.h>

/* ---- document.c -------------------------------------------------------------------------- */

typedef struct {
    kl_arena *arena;
    kl_str file;  /* shown in errors */
    kl_str text;  /* the whole file */
    size_t start; /* where this JSON value begins in `text`: a line of a JSONL file */
    kl_error *e;
} kli_doc;

typedef struct kli_doc_path {
    const struct kli_doc_path *up; /* NULL: the whole value */
    kl_str key;                    /* member of an object, or */
    size_t index;                  /* element of an array when `key` is empty */
    bool at_name;                  /* point at the member's name instead of its value */
} kli_doc_path;

/* Fail with the caret at `p`; `inside` moves it into a string value.  Returns `code`. */
kl_err kli_doc_fail(const kli_doc *d, const kli_doc_path *p, kl_err code, const char *fmt, ...)
    KL_PRINTF(4, 5);
kl_err kli_doc_fail_inside(const kli_doc *d, const kli_doc_path *p, size_t inside, kl_err code,
                           const char *fmt, ...) KL_PRINTF(5, 6);

/* Optional members: absent and null leave `*out` as it is.  A wrong type is KL_EPARSE at its place.
 * Text is copied into the document's arena. */
KL_MUST_USE kl_err kli_doc_text(kl_str *out, const kli_doc *d, const kli_doc_path *up,
                                const json_t *o, const char *key);
KL_MUST_USE kl_err kli_doc_real(double *out, const kli_doc *d, const kli_doc_path *up,
                                const json_t *o, const char *key);
KL_MUST_USE kl_err kli_doc_bool(bool *out, const kli_doc *d, const kli_doc_path *up,
                                const json_t *o, const char *key);
KL_MUST_USE kl_err kli_doc_host(kl_host_kind *out, const kli_doc *d, const kli_doc_path *up,
                                const json_t *o);
/* `*out` is NULL when absent or null; `required` makes that KL_EPARSE.  Borrowed from `o`. */
KL_MUST_USE kl_err kli_doc_object(json_t **out, const kli_doc *d, const kli_doc_path *up,
                                  const json_t *o, const char *key, bool required);
KL_MUST_USE kl_err kli_doc_array(json_t **out, const kli_doc *d, const kli_doc_path *up,
                                 const json_t *o, const char *key);
/* Refuse members that are not in `known` (blank-separated): our own sections have no free keys, so
 * a typo is found. */
KL_MUST_USE kl_err kli_doc_known(const kli_doc *d, const kli_doc_path *p, json_t *o,
                                 const char *known);

/* Text that can be shown and compared: 1..max bytes, no control characters. */
bool kli_is_printable(kl_str s, size_t max);
/* A relative path that stays below where it starts.  `file` is NUL-terminated. */
bool kli_is_inside(kl_str file);

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

/* ---- definition.c, section.c ------------------------------------------------------------- */

KL_MUST_USE kl_err kli_definition_parse(kl_task *t, kl_arena *a, kl_str text, kl_str file,
                                        kl_error *e);
/* The "klineage" section of a definition; `o` may be NULL. */
KL_MUST_USE kl_err kli_section_parse(kl_task *t, const kli_doc *d, const kli_doc_path *up,
                                     json_t *o);
KL_MUST_USE kl_err kli_dist_parse(kl_dist *out, const kli_doc *d, const kli_doc_path *p, json_t *o,
                                  const kl_task *t);
KL_MUST_USE kl_err kli_dtype_at(kl_dtype *out, const kli_doc *d, const kli_doc_path *p,
                                const json_t *value);
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
