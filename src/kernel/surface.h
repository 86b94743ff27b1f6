/* surface.h - a kernel language as operations: klineage/surface.h with the body of its handle.
 *
 * A surface is a folder src/surface/NAME/ and a row of src/surface/surfaces.def.  No code outside
 * that folder names a surface: it holds a `kl_surface *`, compares it by identity, and reads its
 * fields.
 *
 * What every slot may rely on: it is called in the gate's process, never in a runner; it loads no
 * driver and runs no kernel.  Strings and lists are static; lists end in NULL.  What may be NULL
 * says so.  How to add one: docs/how-to/add-a-surface.md.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_KERNEL_SURFACE_H
#define KL_KERNEL_SURFACE_H

#include <klineage/kernel.h>

typedef struct kl_launch kl_launch;           /* src/kernel/kernel.h */
typedef struct kl_plan_launch kl_plan_launch; /* src/kernel/kernel.h */
typedef struct kl_plan kl_plan;               /* src/kernel/kernel.h */
typedef struct kli_planner kli_planner;       /* src/kernel/launch.h */
typedef struct kl_artefact kl_artefact;       /* src/backend/backend.h */
typedef struct kl_compile_job kl_compile_job; /* src/backend/backend.h */

/* What the kernels of a surface have in common with those of others.  The vocabulary of actions,
 * the words of sources and the mechanical changes name families; a surface lists those that it
 * belongs to, and a new one rarely needs another. */
typedef enum {
    KL_FAMILY_CPU = 1 << 0,      /* native code on cores */
    KL_FAMILY_GRID = 1 << 1,     /* a grid of work-groups */
    KL_FAMILY_NVIDIA = 1 << 2,   /* compiled to NVIDIA's instructions */
    KL_FAMILY_C = 1 << 3,        /* C with GCC's extensions and intrinsics */
    KL_FAMILY_OPENCL = 1 << 4,   /* OpenCL C */
    KL_FAMILY_CUDA = 1 << 5,     /* CUDA C++, a thread at a time */
    KL_FAMILY_PYTHON = 1 << 6,   /* blocks by indentation, comments by '#' */
    KL_FAMILY_TRITON = 1 << 7,   /* tl.* on tiles */
    KL_FAMILY_TILELANG = 1 << 8, /* T.* on tiles */
    KL_FAMILY_ANY = (1 << 9) - 1
} kl_family;

struct kl_surface {
    /* ---- what it is */

    /* "cuda": in journals, jobs and messages, and part of every kernel's identity. */
    const char *name;
    /* Bits of kl_family. */
    unsigned families;
    /* Which workloads and baselines its kernels meet by default. */
    kl_host_kind on;
    /* The best there can be: 'A' nothing but device code runs, 'B' native code in a sandbox. */
    char assurance;

    /* ---- its files */

    /* ".cu".  Where two surfaces share one, a file says which with `surface NAME`. */
    const char *suffix;
    /* What the line of a directive begins with: "//!" or "#!". */
    const char *comment;
    /* What the task's plainest kernel and its oracle are called; NULL: tasks have none in it. */
    const char *naive, *oracle;

    /* ---- its directives, read by src/kernel */

    /* Those that not every surface has: "threads", "tensormap". */
    const char *const *directives;
    /* Of a launch, in the order in which they are shown; "args" is one of them. */
    const char *const *clauses;
    /* The clauses without which there is no launch, beside args. */
    const char *const *required;
    /* args(...) may hold local(BYTES). */
    bool local_args;
    /* args(...) may hold NAME=value, dtype(TENSOR), None, True, False and 'text'. */
    bool named_args;
    /* Clauses of a launch as messages show them. */
    const char *example;
    /* What a candidate may ask its compiler for; a last '=' or '*' allows a plain suffix.  A flag
     * that names a file, loads code or switches off what the gate relies on has no place here. */
    const char *const *flags;
    /* How an element type is written, by kl_dtype: what kl_t_TENSOR stands for.  NULL: no types. */
    const char *const *types;

    /* Fill grid, block, cluster, smem, warps and stages of a launch from its clauses, with what
     * src/kernel/launch.h offers.  Called for every launch of every plan, before anything is
     * compiled; `out` is zero but for its entry.  NULL: a launch has no shape, it is one call.
     * Errors: KL_EINVAL with line and caret. */
    kl_err (*shape)(kli_planner *p, const kl_launch *l, kl_plan_launch *out);

    /* ---- its words to and from a model */

    /* Tags of fenced code that hold a file of it; the first is the one that we write. */
    const char *const *fences;
    /* What a model cannot know otherwise, as lines of the system prompt; may be "". */
    const char *note;

    /* ---- from text to what runs */

    /* Rows of src/backend/backends.c that run it, by name, the preferred one first; may be empty.
     */
    const char *const *backends;

    /* What this machine lacks to compile it, and how to get that: one line in `a`, empty when
     * nothing is missing.  Looks at files alone.  Called by doctor.  NULL: it needs no program. */
    kl_str (*missing)(kl_arena *a);

    /* The version of a compiler that the device's toolchain does not name, as one line in `a`: part
     * of the compile key.  Called before each compile.  NULL: the device names all. */
    kl_str (*toolchain)(kl_arena *a);

    /* What its compiler must know of a shape's plan, as text: kli_plan_classes, or more.  Shapes
     * with the same text share an artefact; it is part of the key, and job->classes.  Called before
     * each compile.  NULL: one artefact serves all shapes. */
    kl_str (*specialize)(kl_arena *a, const kl_kernel *k, const kl_plan *plan);

    /* Compile job->kernel.  Called once per miss of the cache; may take KL_COMPILE_SECONDS.  Runs
     * programs through src/backend/compile.h alone, writes into job->dir alone, and leaves one file
     * there, with the code of all launches: sets out->path, kind, ok and log.  What the compiler
     * decides of a launch goes into out->completion (docs/formats/completion.md), which is applied
     * to every plan that the artefact is loaded with.  A compiler that says no is KL_OK, ok=false.
     * Errors: KL_ENODEV (no compiler), KL_EISOLATION, KL_EIO.  NULL when `backends` is empty. */
    kl_err (*compile)(kl_artefact *out, const kl_compile_job *job, kl_error *e);

    /* What a build elsewhere tells its compiler, so that it makes what `compile` makes: flags in
     * `a`, NULL-terminated, without macros and file names.  Called for exports.  NULL: they hold
     * what was compiled, or there are none. */
    const char *const *(*build_flags)(kl_arena *a, const kl_kernel *k);

    /* Read the features of what was compiled, and look for what must not be there (constructors,
     * forbidden symbols, launches from the device): fills `features`, `suspicious`, `refused`.
     * Whatever refuses or accuses is said here.
     * Called after each successful compile, and again for native code that another host brought:
     * then out->cached, and nothing lies beside the artefact.  Errors: KL_EIO, KL_EPARSE.
     * NULL when `compile` is. */
    kl_err (*inspect)(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e);

    /* Read again, from a copy with nothing beside it, what takes long and is for readers alone:
     * fills `features`, with "disassembled" among them, and `hot_loop`.  Called once for an
     * artefact of the cache, after `inspect`; a gate checks the kernel meanwhile.  Errors: KL_EIO,
     * KL_EINTR.  NULL: `inspect` reads all. */
    kl_err (*describe)(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e);
};

/* May a candidate ask for this flag? */
bool kli_surface_has_flag(const kl_surface *s, kl_str flag);
bool kli_surface_has_clause(const kl_surface *s, kl_str clause);
/* One of `directives`, or "surface" where its suffix is shared. */
bool kli_surface_has_directive(const kl_surface *s, kl_str name);

#endif
