/* cpu_load.h - load a candidate's shared object without the system's loader.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_CPU_LOAD_H
#define KL_BACKEND_CPU_LOAD_H
#include "image.h"
#include "runner_ops.h"

enum { KLI_LIBRARY_C, KLI_LIBRARY_MATH, KLI_LIBRARY_VECTOR, KLI_LIBRARY_OPENMP, KLI_N_LIBRARIES };

/* One object: read, and its imports looked up, in the runner; its bytes are mapped and its pointers
 * filled in by each child. */
typedef struct {
    kl_arena *arena;
    kli_image image;
    int fd;                /* the runner context's, borrowed */
    char *base, *reserved; /* address space that is kept free for it; nothing is mapped there in the
                              runner */
    size_t reserved_bytes;
    uintptr_t *addresses;             /* of its symbols */
    void *libraries[KLI_N_LIBRARIES]; /* NULL: not needed or not here */
} kli_object;

/* In the runner.  Nonzero after filling the reply. */
int kli_object_open(kli_object *o, const kli_runner_ctx *c);
void kli_object_close(kli_object *o); /* accepts one that is all zero */
/* Address of a function that it defines and exports; NULL when it does not. */
void (*kli_object_entry(const kli_object *o, const char *name))(void);
/* A symbol of the OpenMP library, NULL when it was not needed. */
void *kli_object_openmp(const kli_object *o, const char *name);

/* Does it call or read what lies in [from, to)?  What has thread-local variables calls for memory.
 */
bool kli_object_imports_from(const kli_object *o, uintptr_t from, uintptr_t to);

/* In a child.  Map: before the filter, no byte is looked at.  Relocate: behind the filter. */
bool kli_object_map(const kli_object *o);
void kli_object_relocate(const kli_object *o);

#endif
