/* cpu_load.c - load a candidate's shared object without the system's loader.
 *
 *   runner                                    child (one run, or one timed batch)
 *   read the object (image.c), look up its    map the segments where they will be found
 *   imports, keep address space for it        enter the filter
 *   fork ---------------------------------->  relocate, call
 *
 * The system's loader obeys what it finds in an object: resolvers, constructors, search paths, and
 * needs open and mprotect to do so. This one knows segments and six relocations.  It runs nothing
 * of a candidate, looks names up among those that any kernel may call, and interprets the object
 * only where every filter is already on; a child costs no system call beyond the mapping. The
 * libraries behind those names are ours to load: by the system's loader, in the runner, before any
 * child. Not here: versions of symbols (the default is taken), thread-local storage of the static
 * model, debuggers. SPDX-License-Identifier: Apache-2.0 */
#include "cpu_load.h"
#include "compile.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef CPU_LOAD_MADV_POPULATE_READ
#define CPU_LOAD_MADV_POPULATE_READ 22
#define CPU_LOAD_MADV_POPULATE_WRITE 23
#endif

static const char *const CPU_LOAD_LIBRARIES[KLI_N_LIBRARIES] = {"libc.so.6", "libm.so.6",
                                                                "libmvec.so.1", "libgomp.so.1"};

/* ---- thread-local storage ---------------------------------------------------------------- */

/* A runner holds one object, so there is one block a thread. */
static const char *tls_image;
static uint64_t tls_file_bytes, tls_bytes, tls_align;
static _Thread_local char *tls_block;

typedef struct {
    uint64_t module, offset;
} tls_index;

/* What compiled code calls for each access; some compilers call it with a stack that is only half
 * aligned. */
#if defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
static void *
tls_address(const tls_index *i) {
    if (!tls_block) {
        const uint64_t room = (tls_bytes + tls_align) & ~(tls_align - 1);
        tls_block = aligned_alloc(tls_align, room ? room : tls_align);
        if (!tls_block) abort();
        memset(tls_block, 0, room);
        memcpy(tls_block, tls_image, tls_file_bytes);
    }
    return tls_block + i->offset;
}

static void cpu_load_set_tls(const kli_image *m, const char *bytes) {
    tls_image = bytes + m->tls_offset;
    tls_file_bytes = m->tls_file_bytes;
    tls_bytes = m->tls_bytes;
    tls_align = m->tls_align < 16 ? 16 : m->tls_align;
    KL_ASSERT((tls_align & (tls_align - 1)) == 0 && tls_file_bytes <= tls_bytes);
}

/* ---- in the runner ----------------------------------------------------------------------- */

static bool imports_openmp(const kli_image *m) {
    for (uint32_t i = 0; i < m->n_symbols; i++)
        if (!m->symbols[i].defined && kli_symbol_is_openmp(m->symbols[i].name)) return true;
    return false;
}

static void open_libraries(kli_object *o, const kli_runner_ctx *c) {
    const bool openmp = c->threads > 1 || imports_openmp(&o->image);
    for (int i = 0; i < KLI_N_LIBRARIES; i++)
        if (i != KLI_LIBRARY_OPENMP || openmp)
            o->libraries[i] = dlopen(CPU_LOAD_LIBRARIES[i], RTLD_NOW | RTLD_LOCAL);
}

/* Inspection has judged the names already; this is the list again, so that nothing else can be
 * bound whatever it has overlooked. */
static uintptr_t import(const kli_object *o, const char *name) {
    void *found = NULL;
    if (strcmp(name, "__tls_get_addr") == 0) return (uintptr_t)&tls_address;
    if (kli_symbol_is_openmp(name)) return (uintptr_t)kli_object_openmp(o, name);
    if (!kli_symbol_is_harmless(name)) return 0;
    for (int i = 0; i < KLI_LIBRARY_OPENMP && !found; i++)
        if (o->libraries[i]) found = dlsym(o->libraries[i], name);
    return (uintptr_t)found;
}

static int cpu_load_look_up(kli_object *o, const kli_runner_ctx *c) {
    const kli_image *m = &o->image;
    o->addresses = KL_ARRAY(o->arena, uintptr_t, m->n_symbols + 1);
    for (uint32_t i = 1; i < m->n_symbols; i++) {
        const kli_image_symbol *s = &m->symbols[i];
        o->addresses[i] = s->thread_local ? s->value
                          : s->defined    ? (uintptr_t)o->base + s->value
                                          : import(o, s->name);
        if (!o->addresses[i] && !s->defined && !s->weak)
            return kli_fault(c, KL_FAULT_REFUSED,
                             "it needs `%.100s`, which kernels are not offered here", s->name);
    }
    return 0;
}

static int cpu_load_reserve(kli_object *o, const kli_runner_ctx *c) {
    const uint64_t align = o->image.align;
    o->reserved_bytes = o->image.span + align;
    o->reserved = mmap(NULL, o->reserved_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (o->reserved == MAP_FAILED) {
        o->reserved = NULL;
        return kli_fault(c, KL_FAULT_REFUSED, "no room for %.1f MiB of code and data: %s",
                         (double)o->image.span / 1048576.0, strerror(errno));
    }
    const uintptr_t from = (uintptr_t)o->reserved;
    KL_ASSERT(align && (align & (align - 1)) == 0);
    o->base = o->reserved + (((from + align - 1) & ~(uintptr_t)(align - 1)) - from);
    return 0;
}

int kli_object_open(kli_object *o, const kli_runner_ctx *c) {
    kl_str bytes;
    kl_error e = {0};
    *o = (kli_object){.arena = kl_arena_new(), .fd = c->artefact_fd};
    if (!kli_artefact_read(&bytes, o->arena, o->fd, KLI_MAX_ARTEFACT_BYTES))
        return kli_fault(c, KL_FAULT_REFUSED, "the artefact cannot be read");
    if (kli_image_read(&o->image, o->arena, bytes, &e))
        return kli_fault(c, KL_FAULT_REFUSED, "it has %s", e.message);
    cpu_load_set_tls(&o->image, bytes.ptr);
    open_libraries(o, c);
    return cpu_load_reserve(o, c) || cpu_load_look_up(o, c);
}

/* OpenMP's library alone is closed with the object: it reads its limits when it is opened.  No
 * thread of it ever starts in the runner. */
void kli_object_close(kli_object *o) {
    if (o->libraries[KLI_LIBRARY_OPENMP]) (void)dlclose(o->libraries[KLI_LIBRARY_OPENMP]);
    if (o->reserved) munmap(o->reserved, o->reserved_bytes);
    if (o->arena) kl_arena_free(o->arena);
    *o = (kli_object){0};
}

void (*kli_object_entry(const kli_object *o, const char *name))(void) {
    void (*entry)(void) = NULL;
    for (uint32_t i = 1; i < o->image.n_symbols && !entry; i++)
        if (o->image.symbols[i].defined && !o->image.symbols[i].thread_local &&
            strcmp(o->image.symbols[i].name, name) == 0)
            memcpy(&entry, &o->addresses[i], sizeof entry);
    return entry;
}

void *kli_object_openmp(const kli_object *o, const char *name) {
    return o->libraries[KLI_LIBRARY_OPENMP] ? dlsym(o->libraries[KLI_LIBRARY_OPENMP], name) : NULL;
}

bool kli_object_imports_from(const kli_object *o, uintptr_t from, uintptr_t to) {
    bool found = o->image.tls_bytes > 0;
    KL_ASSERT(from <= to);
    for (uint32_t i = 1; i < o->image.n_symbols && !found; i++)
        found = !o->image.symbols[i].defined && o->addresses[i] >= from && o->addresses[i] < to;
    return found;
}

/* ---- in a child -------------------------------------------------------------------------- */

static uint64_t page_up(uint64_t x) {
    return (x + KLI_IMAGE_PAGE - 1) & ~(uint64_t)(KLI_IMAGE_PAGE - 1);
}

static bool map_segment(const kli_object *o, const kli_segment *s) {
    const int protection = PROT_READ | (s->write ? PROT_WRITE : 0) | (s->execute ? PROT_EXEC : 0);
    const uint64_t lead = s->address % KLI_IMAGE_PAGE, from = s->address - lead;
    const uint64_t file_end = page_up(s->address + s->file_bytes),
                   end = page_up(s->address + s->bytes);
    if (s->file_bytes && mmap(o->base + from, file_end - from, protection, MAP_PRIVATE | MAP_FIXED,
                              o->fd, (off_t)(s->offset - lead)) == MAP_FAILED)
        return false;
    const uint64_t zeros = s->file_bytes ? file_end : from;
    if (end > zeros && mmap(o->base + zeros, end - zeros, protection,
                            MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        return false;
    (void)madvise(o->base + from, end - from,
                  s->write ? CPU_LOAD_MADV_POPULATE_WRITE : CPU_LOAD_MADV_POPULATE_READ);
    return true;
}

bool kli_object_map(const kli_object *o) {
    for (int i = 0; i < o->image.n_segments; i++)
        if (o->image.segments[i].bytes && !map_segment(o, &o->image.segments[i])) return false;
    return true;
}

/* The last page of the file's part shows what lies behind it in the file: those bytes are zero by
 * definition. */
static void clear_tails(const kli_object *o) {
    for (int i = 0; i < o->image.n_segments; i++) {
        const kli_segment *s = &o->image.segments[i];
        const uint64_t file_end = s->address + s->file_bytes;
        if (s->write && s->file_bytes) memset(o->base + file_end, 0, page_up(file_end) - file_end);
    }
}

void kli_object_relocate(const kli_object *o) {
    clear_tails(o);
    for (uint32_t i = 0; i < o->image.n_relocations; i++) {
        const kli_relocation *r = &o->image.relocations[i];
        const uint64_t symbol = o->addresses[r->symbol];
        uint64_t word = 0;
        switch (r->kind) {
        case KLI_RELOCATE_BASE:
            word = (uint64_t)(uintptr_t)o->base + (uint64_t)r->addend;
            break;
        case KLI_RELOCATE_SYMBOL:
        case KLI_RELOCATE_IN_MODULE:
            word = symbol + (uint64_t)r->addend;
            break;
        case KLI_RELOCATE_MODULE:
            word = 1;
            break;
        }
        memcpy(o->base + r->at, &word, sizeof word);
    }
}
