/* elf.h - read what the dynamic loader would act on in a shared object, without trusting a byte of
 * it. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BACKEND_ELF_H
#define KL_BACKEND_ELF_H
#include <klineage/base.h>
#include <elf.h>

/* An aligned copy of `n` items of `size` bytes at a file offset; NULL when they are not all in the
 * file. */
const void *kli_elf_items(kl_arena *a, kl_str file, uint64_t offset, uint64_t n, size_t size);
/* The header of a 64-bit little-endian file of this type; NULL when it is none. */
const Elf64_Ehdr *kli_elf_header(kl_arena *a, kl_str file, uint16_t type);

typedef struct {
    const char *name; /* NUL-terminated, inside the file */
    bool defined, ifunc;
} kli_elf_symbol;

typedef struct {
    bool initialisers; /* code that runs when it is loaded or unloaded: init, fini, their arrays */
    bool ifuncs;       /* resolvers, which run while it is loaded */
    bool text_relocations, soname, executable_stack, writable_code;
    const char **needed;     /* libraries, NULL-terminated */
    kli_elf_symbol *symbols; /* dynamic symbols */
    size_t n_symbols;
    uint64_t text_bytes, data_bytes, bss_bytes;
    uint64_t linkage_bytes; /* of data_bytes, what the loader fills in: a slot for each imported
                               symbol, three of its own */
} kli_elf;

/* An object before it is linked. */
typedef struct {
    const char *reserved; /* name of a section that only linker and loader may fill; NULL: none */
    bool initialisers, executable_stack;
    const char **symbols; /* all names, defined or not */
    size_t n_symbols;
} kli_elf_object;

KL_MUST_USE kl_err kli_elf_read_object(kli_elf_object *out, kl_arena *a, kl_str bytes, kl_error *e);

/* Errors: KL_EPARSE when it is not a well-formed 64-bit little-endian shared object. Points into
 * `bytes`. */
KL_MUST_USE kl_err kli_elf_read(kli_elf *out, kl_arena *a, kl_str bytes, kl_error *e);

#endif
