/* elf.c - read what tools see of a shared object, or of an object before it is linked, without
 * trusting a byte of it.
 *
 *   ELF header -> program headers  permissions; where the dynamic table is
 *              -> section headers  dynamic symbols, relocations, sizes
 *
 * Every offset is checked against the file before it is followed; a file that leads outside itself
 * is refused whole. Not here: what a kernel's loader acts on (image.c), relocation itself, 32-bit
 * and big-endian files, archives, notes.  SPDX-License-Identifier: Apache-2.0 */
#include "elf.h"
#include <string.h>

#define MAX_SECTIONS 4096
#define MAX_ENTRIES 65536
#define LOADER_SLOTS 3 /* at the head of a table of imported functions */

#ifndef R_AARCH64_IRELATIVE
#define R_AARCH64_IRELATIVE 1032
#endif

typedef struct {
    kl_arena *arena;
    kl_str bytes;
    const Elf64_Ehdr *header;
} file;

const void *kli_elf_items(kl_arena *a, kl_str bytes, uint64_t offset, uint64_t n, size_t size) {
    if (offset > bytes.len || n > (bytes.len - offset) / size) return NULL;
    void *copy = kl_arena_alloc(a, n ? n : 1, size);
    memcpy(copy, bytes.ptr + offset, n * size);
    return copy;
}

const Elf64_Ehdr *kli_elf_header(kl_arena *a, kl_str bytes, uint16_t type) {
    const Elf64_Ehdr *h = kli_elf_items(a, bytes, 0, 1, sizeof *h);
    const bool ok = h && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
                    h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == ELFDATA2LSB &&
                    h->e_type == type && h->e_shnum <= MAX_SECTIONS &&
                    h->e_shentsize == sizeof(Elf64_Shdr) &&
                    (type == ET_REL || h->e_phentsize == sizeof(Elf64_Phdr));
    return ok ? h : NULL;
}

static const void *aligned(const file *f, uint64_t offset, uint64_t count, size_t size) {
    return count > MAX_ENTRIES ? NULL : kli_elf_items(f->arena, f->bytes, offset, count, size);
}

/* A string of a string table, NULL unless it ends inside the table. */
static const char *elf_text_of(const file *f, const Elf64_Shdr *table, uint64_t offset) {
    if (table->sh_type != SHT_STRTAB || table->sh_offset > f->bytes.len ||
        table->sh_size > f->bytes.len - table->sh_offset)
        return NULL;
    if (offset >= table->sh_size) return NULL;
    const char *text = f->bytes.ptr + table->sh_offset + offset;
    return memchr(text, '\0', table->sh_size - offset) ? text : NULL;
}

static bool read_segments(kli_elf *out, const file *f) {
    const Elf64_Phdr *p = aligned(f, f->header->e_phoff, f->header->e_phnum, sizeof *p);
    for (int i = 0; p && i < f->header->e_phnum; i++) {
        if (p[i].p_type == PT_GNU_STACK && (p[i].p_flags & PF_X)) out->executable_stack = true;
        if (p[i].p_type == PT_LOAD && (p[i].p_flags & PF_X) && (p[i].p_flags & PF_W))
            out->writable_code = true;
        if (p[i].p_type == PT_INTERP) out->initialisers = true; /* a program, not a library */
    }
    return p != NULL;
}

static void note_entry(kli_elf *out, const Elf64_Dyn *d) {
    switch (d->d_tag) {
    case DT_INIT:
    case DT_FINI:
        out->initialisers = out->initialisers || d->d_un.d_ptr != 0;
        break;
    case DT_INIT_ARRAYSZ:
    case DT_FINI_ARRAYSZ:
    case DT_PREINIT_ARRAYSZ:
        out->initialisers = out->initialisers || d->d_un.d_val != 0;
        break;
    case DT_TEXTREL:
        out->text_relocations = true;
        break;
    case DT_SONAME:
    case DT_RPATH:
    case DT_RUNPATH:
    case DT_AUDIT:
    case DT_DEPAUDIT:
    case DT_FILTER:
    case DT_AUXILIARY:
        out->soname = true;
        break;
    default:
        break;
    }
}

static bool elf_read_dynamic(kli_elf *out, const file *f, const Elf64_Shdr *section,
                             const Elf64_Shdr *strings) {
    uint64_t n = section->sh_size / sizeof(Elf64_Dyn), k = 0;
    const Elf64_Dyn *d = aligned(f, section->sh_offset, n, sizeof *d);
    if (!d) return false;
    out->needed = KL_ARRAY(f->arena, const char *, n + 1);
    for (uint64_t i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
        note_entry(out, &d[i]);
        if (d[i].d_tag != DT_NEEDED) continue;
        out->needed[k] = elf_text_of(f, strings, d[i].d_un.d_val);
        if (!out->needed[k++]) return false;
    }
    return true;
}

static bool elf_read_symbols(kli_elf *out, const file *f, const Elf64_Shdr *section,
                             const Elf64_Shdr *strings, bool keep) {
    uint64_t n = section->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *s = aligned(f, section->sh_offset, n, sizeof *s);
    if (!s) return false;
    if (keep) out->symbols = KL_ARRAY(f->arena, kli_elf_symbol, n + 1);
    for (uint64_t i = 1; i < n; i++) {
        const char *name = elf_text_of(f, strings, s[i].st_name);
        if (!name) return false;
        bool ifunc = ELF64_ST_TYPE(s[i].st_info) == STT_GNU_IFUNC;
        out->ifuncs = out->ifuncs || ifunc;
        if (keep && name[0])
            out->symbols[out->n_symbols++] =
                (kli_elf_symbol){name, s[i].st_shndx != SHN_UNDEF, ifunc};
    }
    return true;
}

static bool elf_read_relocations(kli_elf *out, const file *f, const Elf64_Shdr *section) {
    uint64_t n = section->sh_size / sizeof(Elf64_Rela);
    const Elf64_Rela *r = aligned(f, section->sh_offset, n, sizeof *r);
    const bool arm = f->header->e_machine == EM_AARCH64;
    const uint32_t irelative = arm ? R_AARCH64_IRELATIVE : R_X86_64_IRELATIVE;
    const uint32_t function = arm ? R_AARCH64_JUMP_SLOT : R_X86_64_JUMP_SLOT,
                   object = arm ? R_AARCH64_GLOB_DAT : R_X86_64_GLOB_DAT;
    for (uint64_t i = 0; r && i < n; i++) {
        const uint64_t type = ELF64_R_TYPE(r[i].r_info);
        out->ifuncs = out->ifuncs || type == irelative;
        if (type != function && type != object) continue;
        out->linkage_bytes += sizeof(uint64_t) * (out->linkage_bytes ? 1 : 1 + LOADER_SLOTS);
    }
    return r != NULL;
}

static void add_size(kli_elf *out, const Elf64_Shdr *s) {
    if (!(s->sh_flags & SHF_ALLOC)) return;
    if (s->sh_flags & SHF_EXECINSTR)
        out->text_bytes += s->sh_size;
    else if ((s->sh_flags & SHF_WRITE) && s->sh_type == SHT_NOBITS)
        out->bss_bytes += s->sh_size;
    else if (s->sh_flags & SHF_WRITE && s->sh_type == SHT_PROGBITS)
        out->data_bytes += s->sh_size;
}

static bool read_section(kli_elf *out, const file *f, const Elf64_Shdr *all, uint32_t i) {
    const Elf64_Shdr *s = &all[i],
                     *strings = &all[s->sh_link < f->header->e_shnum ? s->sh_link : 0];
    add_size(out, s);
    switch (s->sh_type) {
    case SHT_DYNAMIC:
        return elf_read_dynamic(out, f, s, strings);
    case SHT_DYNSYM:
        return out->symbols ? false : elf_read_symbols(out, f, s, strings, true);
    case SHT_SYMTAB:
        return elf_read_symbols(out, f, s, strings, false);
    case SHT_RELA:
        return elf_read_relocations(out, f, s);
    case SHT_INIT_ARRAY:
    case SHT_FINI_ARRAY:
    case SHT_PREINIT_ARRAY:
        out->initialisers = out->initialisers || s->sh_size != 0;
        return true;
    default:
        return true;
    }
}

kl_err kli_elf_read(kli_elf *out, kl_arena *a, kl_str bytes, kl_error *e) {
    const file f = {a, bytes, kli_elf_header(a, bytes, ET_DYN)};
    *out = (kli_elf){0};
    bool ok = f.header && read_segments(out, &f);
    const Elf64_Shdr *sections =
        ok ? aligned(&f, f.header->e_shoff, f.header->e_shnum, sizeof *sections) : NULL;
    ok = ok && sections && f.header->e_shnum > 1;
    for (uint32_t i = 1; ok && i < f.header->e_shnum; i++) ok = read_section(out, &f, sections, i);
    if (!ok || !out->needed || !out->symbols)
        return kl_fail(e, KL_EPARSE, "artefact", "not a well-formed 64-bit shared object");
    return KL_OK;
}

/* ---- an object before it is linked ------------------------------------------------------- */

static bool elf_begins(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Sections whose bytes the linker makes and the loader believes. */
static bool is_reserved(const char *name, uint32_t type) {
    static const char *const NAMES[] = {".dyn",
                                        ".interp",
                                        ".got",
                                        ".plt",
                                        ".hash",
                                        ".gnu.hash",
                                        ".gnu.version",
                                        ".gnu.lto_",
                                        ".eh_frame_hdr",
                                        ".relr",
                                        ".note.gnu.build-id",
                                        ".gnu_object_only"};
    for (size_t i = 0; i < KL_COUNT(NAMES); i++)
        if (elf_begins(name, NAMES[i])) return true;
    return type == SHT_DYNAMIC || type == SHT_HASH || type == SHT_DYNSYM || type == SHT_GNU_HASH ||
           type == SHT_GNU_verdef || type == SHT_GNU_verneed || type == SHT_GNU_versym ||
           type == SHT_REL || type == SHT_SHLIB;
}

/* A table of relocations is named after the section that it is for; one that a source wrote is for
 * none. */
static bool is_forged_table(const file *f, const Elf64_Shdr *all, const Elf64_Shdr *s,
                            const char *name) {
    if (!elf_begins(name, ".rel")) return false;
    if (!elf_begins(name, ".rela")) return true;
    const Elf64_Shdr *target =
        s->sh_type == SHT_RELA && s->sh_info < f->header->e_shnum ? &all[s->sh_info] : NULL;
    const char *of = target ? elf_text_of(f, &all[f->header->e_shstrndx], target->sh_name) : NULL;
    return !of || !of[0] || strcmp(name + strlen(".rela"), of) != 0;
}

static bool runs_by_itself(const char *name, uint32_t type) {
    static const char *const NAMES[] = {".init", ".fini", ".preinit_array", ".ctors", ".dtors"};
    for (size_t i = 0; i < KL_COUNT(NAMES); i++)
        if (elf_begins(name, NAMES[i])) return true;
    return type == SHT_INIT_ARRAY || type == SHT_FINI_ARRAY || type == SHT_PREINIT_ARRAY;
}

static bool add_object_symbols(kli_elf_object *out, const file *f, const Elf64_Shdr *section,
                               const Elf64_Shdr *strings) {
    const uint64_t n = section->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *s = aligned(f, section->sh_offset, n, sizeof *s);
    if (!s || out->symbols) return false;
    out->symbols = KL_ARRAY(f->arena, const char *, n + 1);
    for (uint64_t i = 0; i < n; i++) {
        const char *name = elf_text_of(f, strings, s[i].st_name);
        if (!name) return false;
        if (name[0]) out->symbols[out->n_symbols++] = name;
    }
    return true;
}

kl_err kli_elf_read_object(kli_elf_object *out, kl_arena *a, kl_str bytes, kl_error *e) {
    const file f = {a, bytes, kli_elf_header(a, bytes, ET_REL)};
    *out = (kli_elf_object){0};
    bool ok = f.header != NULL;
    const Elf64_Shdr *s = ok ? aligned(&f, f.header->e_shoff, f.header->e_shnum, sizeof *s) : NULL;
    ok = s && f.header->e_shstrndx < f.header->e_shnum;
    for (uint32_t i = 1; ok && i < f.header->e_shnum; i++) {
        const char *name = elf_text_of(&f, &s[f.header->e_shstrndx], s[i].sh_name);
        ok = name != NULL;
        if (ok && (is_reserved(name, s[i].sh_type) || is_forged_table(&f, s, &s[i], name)))
            out->reserved = name;
        if (ok && runs_by_itself(name, s[i].sh_type)) out->initialisers = true;
        if (ok && strcmp(name, ".note.GNU-stack") == 0 && (s[i].sh_flags & SHF_EXECINSTR))
            out->executable_stack = true;
        if (ok && s[i].sh_type == SHT_SYMTAB)
            ok = s[i].sh_link < f.header->e_shnum &&
                 add_object_symbols(out, &f, &s[i], &s[s[i].sh_link]);
    }
    return ok ? KL_OK : kl_fail(e, KL_EPARSE, "kernel.o", "not a well-formed 64-bit object");
}
