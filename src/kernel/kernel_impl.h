/* kernel_impl.h - what the files of src/kernel share; nobody outside this folder includes it.
 *
 * Offsets.  The scanner keeps a second copy of the source in which a continued directive is blanked
 * into one line: the backslash, the line end and the next line's prefix become spaces, so every
 * byte keeps its offset.  Expressions point into that copy, names point into the source itself;
 * both give a caret by subtraction. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_KERNEL_IMPL_H
#define KL_KERNEL_IMPL_H

#include "kernel/kernel.h"

#include "kernel/launch.h"

/* Directive lines of one file: more than the sum of everything that limits.h lets a kernel declare.
 */
#define KLI_MAX_DIRECTIVES 512

/* One directive: all of its physical lines are source[begin..next), its text is clean[text..end).
 */
typedef struct {
    size_t begin, text, end, next;
} kli_line;

typedef struct {
    const char *clean;
    kli_line lines[KLI_MAX_DIRECTIVES];
    int n_lines;
} kli_scan;

/* scan.c: find the directive lines.  Errors: KL_EPARSE (NUL byte, broken continuation), KL_ELIMIT.
 */
KL_MUST_USE kl_err kli_scan_source(kli_scan *out, kl_arena *a, const kl_kernel *k, kl_error *e);
/* First word of a directive; empty when there is none. */
kl_str kli_line_word(const kli_scan *scan, int line);

/* directive.c: read every directive into `k`.  Errors: KL_EPARSE, KL_ELIMIT. */
KL_MUST_USE kl_err kli_read_directives(kl_kernel *k, kl_arena *a, const kli_scan *scan, bool oracle,
                                       kl_error *e);

/* ident.c: fill k->hash. */
void kli_identify(kl_kernel *k, const kli_scan *scan);

/* text.c: small helpers of parsing and of messages. */
bool kli_is_space(char c);
bool kli_is_digit(char c);
bool kli_is_name_start(char c);
bool kli_is_name_part(char c);
bool kli_is_name(kl_str s);                               /* one identifier and nothing else */
bool kli_parse_int(int64_t *out, kl_str s);               /* decimal, optional minus, no overflow */
bool kli_parse_real(double *out, kl_str s);               /* decimal, finite */
int kli_closest(kl_str word, const kl_str *names, int n); /* index of a likely meant name, or -1 */
int kli_line_number(kl_str source, size_t offset);        /* from 1 */
/* `word` as it may stand in a message: printable, at most 40 bytes. */
typedef struct {
    char text[48];
} kli_kernel_shown;
kli_kernel_shown kli_show(kl_str word);
/* Re-issue an error that kl_expr_eval reported inside `expr` at its place in the kernel's source.
 */
kl_err kli_rebase(kl_error *e, const kl_kernel *k, const kl_expr *expr);

/* real.c: an expression of real numbers.  Errors: KL_EPARSE; KL_EINVAL (a name that `lookup` does
 * not know, no finite value). */
typedef bool kli_real_lookup(void *ctx, kl_str name, double *out);
KL_MUST_USE kl_err kli_real_eval(double *out, kl_str text, kli_real_lookup *lookup, void *ctx,
                                 kl_error *e);

/* plan.c: everything that one evaluation needs. */
struct kli_planner {
    const kl_kernel *kernel;
    const kl_task *task;
    const kl_workload *workload;
    kl_device_limits limits;
    kl_plan *plan;
    kl_error *error;
    int64_t lets[KL_MAX_LETS];
    double reals[KL_MAX_LETS]; /* of the lets that are real */
    int n_lets;                /* evaluated so far */
    kl_str unknown;            /* name that the last evaluation looked for in vain */
    int64_t buffer_dims[KL_MAX_BUFFERS][KL_MAX_DIMS];
};

KL_MUST_USE kl_err kli_eval(kli_planner *p, int64_t *out, const kl_expr *expr);
/* kli_eval and refuse what lies outside low..high; `what` names it ("grid"). */
KL_MUST_USE kl_err kli_eval_range(kli_planner *p, int64_t *out, const kl_expr *expr,
                                  const char *what, int64_t low, int64_t high);
int kli_param_index(const kl_kernel *k, kl_str name);
int kli_let_index(const kl_kernel *k, kl_str name);
int kli_buffer_index(const kl_kernel *k, kl_str name);
int kli_tensormap_index(const kl_kernel *k, kl_str name);
bool kli_value_of(kli_planner *p, kl_str name,
                  int64_t *out); /* axis, param, let, device constant */
/* The same as a number, scalar inputs and real lets too. */
bool kli_real_of(void *planner, kl_str name, double *out);
/* "tensors A B; buffers tmp": what has an address, into `out`. */
void kli_list_pointers(kli_planner *p, char *out, size_t out_bytes);
KL_MUST_USE kl_err kli_unknown_name(kli_planner *p, kl_str name, size_t offset, bool with_pointers);
/* tensormap.c, launch.c */
/* Behind the last byte of the view; dims are at most 2^32 and strides below 2^40, so every product
 * fits. */
unsigned __int128 kli_tensormap_end(const kl_plan_tensormap *m);
KL_MUST_USE kl_err kli_plan_tensormaps(kli_planner *p);
KL_MUST_USE kl_err kli_plan_launches(kli_planner *p);
/* dtype of task tensor `i` as this kernel sees it: an oracle's float outputs are wider. */
kl_dtype kli_tensor_dtype(const kl_kernel *k, const kl_task *t, const kl_workload *w, int i);

#endif
