/* export.h - a gated kernel as something that a user can build, call and ship.
 *
 * A form is a row of the table in forms.c: it makes files, all in memory, of a kernel, its task and
 * the verdict that it passed with.  Expressions of directives become checked C, so that one
 * launcher serves every shape.  Nothing is run here but the gate, and only by `check`.  Not here:
 * kernels that are compiled anew for each shape, and host code of models.  SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef KL_EXPORT_EXPORT_H
#define KL_EXPORT_EXPORT_H

#include <jansson.h>
#include <klineage/gate.h>
#include <klineage/store.h>

#include "backend/backend.h"
#include "task/task.h"

enum { KLI_EXPORT_FILES = 32, KLI_EXPORT_VARIANTS = 32, KLI_EXPORT_KEYS = 64 };

/* A file of the folder, `path` relative to it. */
typedef struct {
    kl_str path, text;
} kli_export_file;

typedef struct {
    kli_export_file at[KLI_EXPORT_FILES];
    int n;
} kli_export_files;

/* The sizes between which the gate compared outputs with the oracle's, for each axis of the task.
 */
typedef struct {
    int64_t least[KL_MAX_AXES], most[KL_MAX_AXES];
    int shapes;
} kli_domain;

/* A compiled code, and the shapes that it is for: those with these keys (variant.c). */
typedef struct {
    kl_str classes; /* what its compiler was told; empty: all shapes */
    kl_artefact artefact;
    int64_t keys[KLI_EXPORT_KEYS];
} kli_export_variant;

/* What is exported.  Everything lives in the arena. */
typedef struct {
    kl_arena *arena;
    const kl_task *task;
    const kl_kernel *kernel;
    const kl_workload *workload; /* its data types and constant axes hold in every call */
    kl_verdict verdict;
    char verdict_key[65];
    const char *name; /* of the function, a name of C that no shape or tensor has */
    kli_domain domain;
    kli_export_variant variants[KLI_EXPORT_VARIANTS]; /* of device code */
    int n_variants;
    kl_artefact artefact;       /* that of `workload`; `ok` false where sources are built */
    kl_str arch;                /* of that code */
    const char *into, *replace; /* form `patch`: a tree, and FILE:FUNCTION in it; NULL: none */
    json_t *origin; /* which run made it, with which cards, at what cost; NULL: not known */
    json_t *check;  /* what the gate said of the launcher; NULL: it was not asked */
} kli_export;

typedef struct {
    const char *name, *summary;
    /* Adds the files of this form.  Errors: KL_EINVAL, with what about the kernel cannot be said in
     * it. */
    kl_err (*files)(kli_export_files *out, const kli_export *x, kl_error *e);
} kli_export_form;

const kli_export_form *kli_export_form_each(int i); /* NULL past the last */

/* find.c.  The newest verdict of this kernel that passed, of `task` where it is named and at
 * `workload` where that is.  Fills verdict, verdict_key and origin.  Errors: KL_ENOENT: there is
 * none. */
KL_MUST_USE kl_err kli_export_find(kli_export *x, kl_store *s, const char *task,
                                   const char *workload, kl_error *e);
/* The shapes of the task that such a verdict stands for: at most KL_MAX_WORKLOADS, `w` first. */
int kli_export_shapes(const kl_workload **out, const kl_task *t, const kl_kernel *k,
                      const kl_workload *w, const kl_device_limits *limits);
kli_domain kli_export_domain(const kl_task *t, const kl_kernel *k, const kl_workload *w,
                             const kl_device_limits *limits);

/* variant.c.  Compiles device code for every class of those shapes: fills variants, artefact and
 * arch.  Errors: KL_EINVAL: it does not compile; KL_ELIMIT; those of kli_compile. */
KL_MUST_USE kl_err kli_export_compile(kli_export *x, const kl_device *device, kl_error *e);

/* names.c: an identifier, and no word of C, C++ or Python. */
bool kli_export_is_name(const char *name);
kl_str kli_export_default_name(kl_arena *a, const kl_task *t);
/* May such kernels be exported at all, and this one of this task?  Errors: KL_EINVAL. */
KL_MUST_USE kl_err kli_export_fits_surface(const kl_kernel *k, kl_error *e);
KL_MUST_USE kl_err kli_export_fits(const kli_export *x, kl_error *e);
/* provenance.c; the caller json_decref's. */
json_t *kli_export_provenance(const kli_export *x, const char *form, const kli_export_files *files);
/* check.c: what a gate loads to judge an export that lies in `folder` (kl_gate_opts.through). */
typedef struct {
    const char *file;   /* "check.c" or "check.py", to be written there */
    const char *target; /* what `make` builds there before; NULL: nothing */
    kl_str text;
} kli_export_checker_text;
/* Errors: KL_EINVAL: this form, or this task, is not judged so. */
KL_MUST_USE kl_err kli_export_checker(kli_export_checker_text *out, const kli_export *x,
                                      const char *form, const char *folder, kl_error *e);
/* c.c: the launcher, with the kernel behind it, as a kernel that the gate can judge: for native
 * code whose sizes no tensor tells.  Errors: KL_EINVAL: device code is not checked so. */
KL_MUST_USE kl_err kli_export_checkable(kl_kernel **out, const kli_export *x, kl_error *e);
bool kli_export_is_told(const kli_export *x); /* do tensors tell every size? */
/* folder.c: all of the files, or none: they are written beside `dir` and moved there.  A `dir` that
 * holds something is refused, or with `force` replaced. */
KL_MUST_USE kl_err kli_export_write(const kli_export_files *files, kl_arena *a, const char *dir,
                                    bool force, kl_error *e);

#endif
