/* cuda_cubin.c - see cuda_cubin.h.  A cubin is a plain little-endian ELF64 file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda_cubin.h"
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE_CUDA 190
#define ENTRY_FLAG 0x10 /* in st_other: a kernel, not a device function */

/* `bytes` at `offset`, or NULL where the file does not hold them. */
static const void *cuda_cubin_at(const kli_cubin_walk *w, uint64_t offset, uint64_t bytes) {
    return offset <= w->bytes && bytes <= w->bytes - offset ? w->data + offset : NULL;
}

/* Nothing in the file need be aligned, so structs are copied out. */
static bool cuda_cubin_header(const kli_cubin_walk *w, Elf64_Ehdr *out) {
    const void *p = cuda_cubin_at(w, 0, sizeof *out);
    if (!p) return false;
    memcpy(out, p, sizeof *out);
    return memcmp(out->e_ident, ELFMAG, SELFMAG) == 0 && out->e_ident[EI_CLASS] == ELFCLASS64 &&
           out->e_machine == MACHINE_CUDA && out->e_shentsize == sizeof(Elf64_Shdr);
}

static bool cuda_cubin_section(const kli_cubin_walk *w, const Elf64_Ehdr *h, uint32_t index,
                               Elf64_Shdr *out) {
    if (index >= h->e_shnum || h->e_shoff > w->bytes) return false;
    const void *p = cuda_cubin_at(w, h->e_shoff + (uint64_t)index * sizeof *out, sizeof *out);
    if (p) memcpy(out, p, sizeof *out);
    return p != NULL;
}

/* A name in string table `table`; NULL unless its terminating NUL lies inside the table. */
static const char *cuda_cubin_name_in(const kli_cubin_walk *w, const Elf64_Ehdr *h, uint32_t table,
                                      uint64_t offset) {
    Elf64_Shdr s;
    const char *text;
    if (!cuda_cubin_section(w, h, table, &s) ||
        !(text = cuda_cubin_at(w, s.sh_offset, s.sh_size)) || offset >= s.sh_size)
        return NULL;
    return memchr(text + offset, 0, s.sh_size - offset) ? text + offset : NULL;
}

static bool symbol_table(const kli_cubin_walk *w, const Elf64_Ehdr *h, Elf64_Shdr *out) {
    for (uint32_t i = 0; i < h->e_shnum; i++)
        if (cuda_cubin_section(w, h, i, out) && out->sh_type == SHT_SYMTAB &&
            cuda_cubin_at(w, out->sh_offset, out->sh_size))
            return true;
    return false;
}

static bool starts(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool classify(const kli_cubin_walk *w, const Elf64_Ehdr *h, const Elf64_Sym *s,
                     kli_cubin_symbol *out) {
    unsigned char type = ELF64_ST_TYPE(s->st_info);
    out->bytes = s->st_size;
    if (type == STT_FUNC && s->st_shndx == SHN_UNDEF) return out->kind = KLI_CUBIN_EXTERNAL, true;
    if (type == STT_FUNC) return out->kind = KLI_CUBIN_KERNEL, (s->st_other & ENTRY_FLAG) != 0;
    Elf64_Shdr home;
    if (type != STT_OBJECT || !cuda_cubin_section(w, h, s->st_shndx, &home)) return false;
    const char *where = cuda_cubin_name_in(w, h, h->e_shstrndx, home.sh_name);
    if (!where) return false;
    if (starts(where, ".nv.global")) return out->kind = KLI_CUBIN_VARIABLE, true;
    if (starts(where, ".nv.constant3")) return out->kind = KLI_CUBIN_CONSTANT, true;
    return false;
}

bool kli_cubin_valid(const void *data, size_t bytes) {
    Elf64_Ehdr h;
    kli_cubin_walk w = {.data = data, .bytes = bytes};
    return cuda_cubin_header(&w, &h);
}

void kli_cubin_begin(kli_cubin_walk *w, const void *data, size_t bytes) {
    *w = (kli_cubin_walk){.data = data, .bytes = bytes};
}

bool kli_cubin_next(kli_cubin_walk *w, kli_cubin_symbol *out) {
    Elf64_Ehdr h;
    Elf64_Shdr table;
    if (!cuda_cubin_header(w, &h) || !symbol_table(w, &h, &table)) return false;
    while (w->next < table.sh_size / sizeof(Elf64_Sym)) {
        Elf64_Sym s;
        memcpy(&s, w->data + table.sh_offset + w->next++ * sizeof s, sizeof s);
        out->name = cuda_cubin_name_in(w, &h, table.sh_link, s.st_name);
        if (out->name && *out->name && classify(w, &h, &s, out)) return true;
    }
    return false;
}

const char *kli_cubin_entry(const void *data, size_t bytes, const char *entry) {
    static const char PLACE[] = "kernel_";
    const char *by_place = NULL;
    kli_cubin_walk walk;
    kli_cubin_symbol s;
    char *end = NULL;
    const bool has_place = starts(entry, PLACE);
    const unsigned long place = has_place ? strtoul(entry + sizeof PLACE - 1, &end, 10) : 0;
    unsigned long n = 0;
    kli_cubin_begin(&walk, data, bytes);
    while (kli_cubin_next(&walk, &s)) {
        if (s.kind != KLI_CUBIN_KERNEL) continue;
        if (strcmp(s.name, entry) == 0) return s.name;
        if (has_place && end > entry + sizeof PLACE - 1 && !*end && n == place) by_place = s.name;
        n++;
    }
    return by_place;
}

/* Facts about one kernel, each with a format, a name and 16 bits of value, or of the length of what
 * follows. */
enum { FACT_BYTES = 4, FACT_WITH_BYTES = 4, FACT_BLOCK = 0x10 };

static bool cuda_cubin_fact(const unsigned char *facts, size_t bytes, uint32_t block[3]) {
    size_t at = 0;
    while (at + FACT_BYTES <= bytes) {
        const unsigned char *f = facts + at;
        const size_t more = f[0] == FACT_WITH_BYTES ? f[2] | (size_t)f[3] << 8 : 0;
        at += FACT_BYTES + more;
        if (at > bytes || f[0] != FACT_WITH_BYTES || f[1] != FACT_BLOCK || more != 12) continue;
        memcpy(block, f + FACT_BYTES, more);
        return true;
    }
    return false;
}

bool kli_cubin_block(const void *data, size_t bytes, const char *entry, uint32_t block[3]) {
    static const char INFO[] = ".nv.info.";
    const kli_cubin_walk w = {.data = data, .bytes = bytes};
    Elf64_Ehdr h;
    Elf64_Shdr s;
    if (!cuda_cubin_header(&w, &h)) return false;
    for (uint32_t i = 0; i < h.e_shnum && cuda_cubin_section(&w, &h, i, &s); i++) {
        const char *name = cuda_cubin_name_in(&w, &h, h.e_shstrndx, s.sh_name);
        if (!name || !starts(name, INFO) || strcmp(name + sizeof INFO - 1, entry) != 0) continue;
        const void *facts = cuda_cubin_at(&w, s.sh_offset, s.sh_size);
        return facts && cuda_cubin_fact(facts, s.sh_size, block);
    }
    return false;
}
