/* image.c - all of a shared object that has a meaning when a kernel is loaded, and a refusal of
 * everything else.
 *
 *   ELF header -> program headers -> PT_LOAD      segments
 *                                    PT_TLS       the thread-local block
 *                                    PT_DYNAMIC   symbols, strings, relocations: each table once,
 * inside one segment, apart from the others
 *              -> section headers    must tell the same story
 *
 * Inspection and loading both go through this file, so that what is loaded is what was looked at: a
 * table, tag or relocation type that is not named here does not exist for the loader and makes the
 * inspection say no.  There is no field for code that runs by itself. Every offset is checked
 * against the file before it is followed. Not here: which names a kernel may import
 * (native_code.c), mapping and relocating (cpu_load.c).  SPDX-License-Identifier: Apache-2.0 */
#include "image.h"
#include "elf.h"
#include <string.h>

#define MAX_PROGRAM_HEADERS 32
#define MAX_DYNAMIC 128
#define MAX_SYMBOLS (1u << 16)
#define MAX_RELOCATIONS (1u << 20) /* a table of a million pointers */
#define MAX_SPAN ((uint64_t)8 << 30)
#define MAX_ALIGN ((uint64_t)64 << 20)
#define MAX_TLS ((uint64_t)64 << 20)

#if defined(__x86_64__)
#define MACHINE EM_X86_64
enum {
    T_RELATIVE = R_X86_64_RELATIVE,
    T_OBJECT = R_X86_64_GLOB_DAT,
    T_FUNCTION = R_X86_64_JUMP_SLOT,
    T_WORD = R_X86_64_64,
    T_MODULE = R_X86_64_DTPMOD64,
    T_IN_MODULE = R_X86_64_DTPOFF64,
    T_RESOLVED = R_X86_64_IRELATIVE
};
#else
#define MACHINE EM_AARCH64
enum {
    T_RELATIVE = R_AARCH64_RELATIVE,
    T_OBJECT = R_AARCH64_GLOB_DAT,
    T_FUNCTION = R_AARCH64_JUMP_SLOT,
    T_WORD = R_AARCH64_ABS64,
    T_MODULE = R_AARCH64_TLS_DTPMOD,
    T_IN_MODULE = R_AARCH64_TLS_DTPREL,
    T_RESOLVED = R_AARCH64_IRELATIVE
};
#endif

/* The tags that a kernel's dynamic table may have, each once; the last row may come again. */
static const struct {
    int64_t tag;
    const char *name;
} TAGS[] = {{DT_HASH, "HASH"},           {DT_STRTAB, "STRTAB"},         {DT_SYMTAB, "SYMTAB"},
            {DT_STRSZ, "STRSZ"},         {DT_SYMENT, "SYMENT"},         {DT_PLTGOT, "PLTGOT"},
            {DT_PLTRELSZ, "PLTRELSZ"},   {DT_PLTREL, "PLTREL"},         {DT_JMPREL, "JMPREL"},
            {DT_RELA, "RELA"},           {DT_RELASZ, "RELASZ"},         {DT_RELAENT, "RELAENT"},
            {DT_RELACOUNT, "RELACOUNT"}, {DT_FLAGS, "FLAGS"},           {DT_FLAGS_1, "FLAGS_1"},
            {DT_BIND_NOW, "BIND_NOW"},   {DT_GNU_HASH, "GNU_HASH"},     {DT_VERSYM, "VERSYM"},
            {DT_VERNEED, "VERNEED"},     {DT_VERNEEDNUM, "VERNEEDNUM"}, {DT_NEEDED, "NEEDED"}};
#define N_TAGS ((int)KL_COUNT(TAGS))

typedef struct {
    kli_image *image;
    kl_arena *arena;
    kl_str bytes;
    kl_error *e;
    const Elf64_Phdr *dynamic;
    uint64_t value[KL_COUNT(TAGS)];
    bool present[KL_COUNT(TAGS)];
} image_reader;

static kl_err image_refuse(const image_reader *r, const char *what) {
    return kl_fail(r->e, KL_EPARSE, "shared object", "%s", what);
}

static const void *items_at(const image_reader *r, uint64_t offset, uint64_t n, size_t size) {
    return kli_elf_items(r->arena, r->bytes, offset, n, size);
}

/* ---- program headers --------------------------------------------------------------------- */

static uint64_t page_down(uint64_t x) { return x & ~(uint64_t)(KLI_IMAGE_PAGE - 1); }

static bool is_power_of_two(uint64_t x) { return x && (x & (x - 1)) == 0; }

static kl_err add_segment(image_reader *r, const Elf64_Phdr *p) {
    kli_image *m = r->image;
    if (m->n_segments == KLI_MAX_SEGMENTS) return image_refuse(r, "too many segments");
    if ((p->p_flags & PF_W) && (p->p_flags & PF_X))
        return image_refuse(r, "code that can be written");
    if (p->p_offset > r->bytes.len || p->p_filesz > r->bytes.len - p->p_offset ||
        p->p_filesz > p->p_memsz || p->p_vaddr > MAX_SPAN || p->p_memsz > MAX_SPAN - p->p_vaddr ||
        p->p_vaddr % KLI_IMAGE_PAGE != p->p_offset % KLI_IMAGE_PAGE)
        return image_refuse(r, "a segment outside the file or above the limit");
    if (p->p_align && (!is_power_of_two(p->p_align) || p->p_align > MAX_ALIGN))
        return image_refuse(r, "a segment of impossible alignment");
    if (page_down(p->p_vaddr) < m->span || (p->p_memsz > p->p_filesz && !(p->p_flags & PF_W)))
        return image_refuse(r, "segments that overlap");
    m->segments[m->n_segments++] = (kli_segment){.address = p->p_vaddr,
                                                 .bytes = p->p_memsz,
                                                 .offset = p->p_offset,
                                                 .file_bytes = p->p_filesz,
                                                 .write = p->p_flags & PF_W,
                                                 .execute = p->p_flags & PF_X};
    m->span = page_down(p->p_vaddr + p->p_memsz + KLI_IMAGE_PAGE - 1);
    if (p->p_align > m->align) m->align = p->p_align;
    KL_ASSERT(m->n_segments <= KLI_MAX_SEGMENTS && m->span <= 2 * MAX_SPAN);
    return KL_OK;
}

static kl_err image_set_tls(image_reader *r, const Elf64_Phdr *p) {
    if (r->image->tls_bytes) return image_refuse(r, "two thread-local blocks");
    if (p->p_memsz > MAX_TLS || p->p_filesz > p->p_memsz ||
        !items_at(r, p->p_offset, p->p_filesz, 1) ||
        (p->p_align && (!is_power_of_two(p->p_align) || p->p_align > KLI_IMAGE_PAGE)))
        return image_refuse(r, "an impossible thread-local block");
    r->image->tls_offset = p->p_offset;
    r->image->tls_file_bytes = p->p_filesz;
    r->image->tls_bytes = p->p_memsz;
    r->image->tls_align = p->p_align ? p->p_align : 1;
    return KL_OK;
}

static kl_err read_program_header(image_reader *r, const Elf64_Phdr *p) {
    switch (p->p_type) {
    case PT_LOAD:
        return add_segment(r, p);
    case PT_TLS:
        return image_set_tls(r, p);
    case PT_DYNAMIC:
        if (r->dynamic) return image_refuse(r, "two dynamic tables");
        r->dynamic = p;
        return KL_OK;
    case PT_GNU_STACK:
        return p->p_flags & PF_X ? image_refuse(r, "a stack that can be executed") : KL_OK;
    case PT_NULL:
    case PT_NOTE:
    case PT_GNU_EH_FRAME:
    case PT_GNU_RELRO:
    case 0x6474e553 /* PT_GNU_PROPERTY */:
        return KL_OK;
    default:
        return image_refuse(r, "a program header that no kernel needs");
    }
}

static const Elf64_Ehdr *image_read_header(const image_reader *r) {
    const Elf64_Ehdr *h = kli_elf_header(r->arena, r->bytes, ET_DYN);
    return h && h->e_machine == MACHINE && h->e_phnum <= MAX_PROGRAM_HEADERS ? h : NULL;
}

static kl_err read_program_headers(image_reader *r, const Elf64_Ehdr *h) {
    const Elf64_Phdr *p = items_at(r, h->e_phoff, h->e_phnum, sizeof *p);
    kl_err code = p ? KL_OK : image_refuse(r, "program headers outside the file");
    for (int i = 0; !code && i < h->e_phnum; i++) code = read_program_header(r, &p[i]);
    if (!code && !r->dynamic) code = image_refuse(r, "no dynamic table");
    return code;
}

/* ---- the dynamic table ------------------------------------------------------------------- */

static int image_row_of(int64_t tag) {
    for (int i = 0; i < N_TAGS; i++)
        if (TAGS[i].tag == tag) return i;
    return -1;
}

/* Of a tag that the table has. */
static int known_row(int64_t tag) {
    const int row = image_row_of(tag);
    KL_ASSERT(row >= 0 && row < N_TAGS);
    return row;
}

static bool image_has(const image_reader *r, int64_t tag) { return r->present[known_row(tag)]; }

static uint64_t image_value(const image_reader *r, int64_t tag) { return r->value[known_row(tag)]; }

static kl_err note_tag(image_reader *r, const Elf64_Dyn *d) {
    int row = image_row_of(d->d_tag);
    if (row < 0)
        return kl_fail(r->e, KL_EPARSE, "shared object", "an entry 0x%llx in its dynamic table",
                       (unsigned long long)d->d_tag);
    if (r->present[row] && d->d_tag != DT_NEEDED)
        return kl_fail(r->e, KL_EPARSE, "shared object", "two entries %s in its dynamic table",
                       TAGS[row].name);
    r->present[row] = true;
    r->value[row] = d->d_un.d_val;
    return KL_OK;
}

static kl_err image_read_dynamic(image_reader *r) {
    uint64_t n = r->dynamic->p_filesz / sizeof(Elf64_Dyn), i = 0;
    const Elf64_Dyn *d = n <= MAX_DYNAMIC ? items_at(r, r->dynamic->p_offset, n, sizeof *d) : NULL;
    kl_err code =
        d ? KL_OK : image_refuse(r, "a dynamic table outside the file or above the limit");
    for (; !code && i < n && d[i].d_tag != DT_NULL; i++) code = note_tag(r, &d[i]);
    if (!code && i == n) code = image_refuse(r, "a dynamic table without an end");
    for (; !code && i < n; i++)
        if (d[i].d_tag != DT_NULL || d[i].d_un.d_val)
            code = image_refuse(r, "entries behind the end of its dynamic table");
    return code;
}

/* ---- the tables it names ----------------------------------------------------------------- */

typedef struct {
    uint64_t address, bytes;
} range;

/* File offset of [address, address + bytes), which one read-only segment's file part must hold
 * whole. */
static bool image_offset_of(const image_reader *r, range t, uint64_t *offset) {
    for (int i = 0; i < r->image->n_segments; i++) {
        const kli_segment *s = &r->image->segments[i];
        if (s->write || t.address < s->address || t.address - s->address > s->file_bytes) continue;
        if (t.bytes > s->file_bytes - (t.address - s->address)) continue;
        *offset = s->offset + (t.address - s->address);
        return true;
    }
    return false;
}

static const void *table_at(const image_reader *r, range t, size_t item) {
    uint64_t offset;
    return t.bytes % item == 0 && image_offset_of(r, t, &offset)
               ? items_at(r, offset, t.bytes / item, item)
               : NULL;
}

static bool overlap(range a, range b) {
    return a.bytes && b.bytes && a.address < b.address + b.bytes && b.address < a.address + a.bytes;
}

enum { STRINGS, SYMBOLS, HASH, RELOCATIONS, JUMPS, N_TABLES };

static kl_err find_tables(const image_reader *r, range t[N_TABLES]) {
    const uint32_t *counts =
        image_has(r, DT_HASH) ? table_at(r, (range){image_value(r, DT_HASH), 8}, 4) : NULL;
    if (!counts || !image_has(r, DT_STRTAB) || !image_has(r, DT_STRSZ) ||
        !image_has(r, DT_SYMTAB) || image_value(r, DT_SYMENT) != sizeof(Elf64_Sym))
        return image_refuse(r, "no table of symbols");
    if (counts[0] > MAX_SYMBOLS || counts[1] > MAX_SYMBOLS)
        return image_refuse(r, "too many symbols");
    if (image_has(r, DT_RELA) &&
        (image_value(r, DT_RELAENT) != sizeof(Elf64_Rela) || !image_has(r, DT_RELASZ)))
        return image_refuse(r, "a strange table of relocations");
    if (image_has(r, DT_JMPREL) &&
        (image_value(r, DT_PLTREL) != DT_RELA || !image_has(r, DT_PLTRELSZ)))
        return image_refuse(r, "a strange table of imported functions");
    t[STRINGS] = (range){image_value(r, DT_STRTAB), image_value(r, DT_STRSZ)};
    t[SYMBOLS] = (range){image_value(r, DT_SYMTAB), counts[1] * sizeof(Elf64_Sym)};
    t[HASH] = (range){image_value(r, DT_HASH), 4 * (2 + (uint64_t)counts[0] + counts[1])};
    t[RELOCATIONS] = image_has(r, DT_RELA)
                         ? (range){image_value(r, DT_RELA), image_value(r, DT_RELASZ)}
                         : (range){0};
    t[JUMPS] = image_has(r, DT_JMPREL)
                   ? (range){image_value(r, DT_JMPREL), image_value(r, DT_PLTRELSZ)}
                   : (range){0};
    for (int i = 0; i < N_TABLES; i++) {
        uint64_t unused;
        if (t[i].bytes && !image_offset_of(r, t[i], &unused))
            return image_refuse(r, "a table outside its read-only part");
        for (int k = 0; k < i; k++)
            if (overlap(t[i], t[k])) return image_refuse(r, "tables that overlap");
    }
    return KL_OK;
}

static kl_err read_symbol(kli_image_symbol *out, const image_reader *r, const Elf64_Sym *s,
                          kl_str strings) {
    const int type = ELF64_ST_TYPE(s->st_info);
    if (s->st_name >= strings.len ||
        !memchr(strings.ptr + s->st_name, '\0', strings.len - s->st_name))
        return image_refuse(r, "a symbol without a name");
    *out = (kli_image_symbol){.name = strings.ptr + s->st_name,
                              .value = s->st_value,
                              .defined = s->st_shndx != SHN_UNDEF,
                              .weak = ELF64_ST_BIND(s->st_info) == STB_WEAK,
                              .thread_local = type == STT_TLS};
    if (type == STT_GNU_IFUNC)
        return image_refuse(r, "a resolver (ifunc), which would run while it is loaded");
    if (out->defined && s->st_value > (out->thread_local ? r->image->tls_bytes : r->image->span))
        return image_refuse(r, "a symbol outside itself");
    return KL_OK;
}

static kl_err image_read_symbols(image_reader *r, range symbols, range strings) {
    kli_image *m = r->image;
    uint64_t offset = 0;
    const Elf64_Sym *s = table_at(r, symbols, sizeof *s);
    if (!s || !image_offset_of(r, strings, &offset))
        return image_refuse(r, "a table of symbols outside the file");
    m->n_symbols = (uint32_t)(symbols.bytes / sizeof *s);
    m->symbols = KL_ARRAY(r->arena, kli_image_symbol, m->n_symbols + 1);
    kl_err code = KL_OK;
    for (uint32_t i = 0; i < m->n_symbols && !code; i++)
        code =
            read_symbol(&m->symbols[i], r, &s[i], (kl_str){r->bytes.ptr + offset, strings.bytes});
    return code;
}

/* ---- relocations ------------------------------------------------------------------------- */

static bool is_writable(const kli_image *m, uint64_t at) {
    for (int i = 0; i < m->n_segments; i++)
        if (m->segments[i].write && at >= m->segments[i].address && m->segments[i].bytes >= 8 &&
            at - m->segments[i].address <= m->segments[i].bytes - 8)
            return true;
    return false;
}

static kl_err read_relocation(kli_relocation *out, const image_reader *r, const Elf64_Rela *from) {
    const kli_image *m = r->image;
    *out = (kli_relocation){.at = from->r_offset,
                            .addend = from->r_addend,
                            .symbol = (uint32_t)ELF64_R_SYM(from->r_info)};
    if (out->symbol && out->symbol >= m->n_symbols)
        return image_refuse(r, "a relocation of no symbol");
    if (!is_writable(m, out->at)) return image_refuse(r, "a relocation outside its data");
    const bool local = out->symbol && m->symbols[out->symbol].thread_local;
    switch (ELF64_R_TYPE(from->r_info)) {
    case T_RELATIVE:
        out->kind = KLI_RELOCATE_BASE;
        return out->symbol ? image_refuse(r, "a strange relocation") : KL_OK;
    case T_OBJECT:
    case T_FUNCTION:
    case T_WORD:
        out->kind = KLI_RELOCATE_SYMBOL;
        return local ? image_refuse(r, "a relocation of a thread-local symbol to an address")
                     : KL_OK;
    case T_MODULE:
        out->kind = KLI_RELOCATE_MODULE;
        break;
    case T_IN_MODULE:
        out->kind = KLI_RELOCATE_IN_MODULE;
        break;
    case T_RESOLVED:
        return image_refuse(r, "a resolver (ifunc), which would run while it is loaded");
    default:
        return kl_fail(r->e, KL_EPARSE, "shared object", "a relocation of type %llu",
                       (unsigned long long)ELF64_R_TYPE(from->r_info));
    }
    if (!m->tls_bytes || (out->symbol && (!local || !m->symbols[out->symbol].defined)))
        return image_refuse(r, "a thread-local variable of another object");
    return KL_OK;
}

static kl_err image_read_relocations(image_reader *r, range table) {
    kli_image *m = r->image;
    const uint64_t n = table.bytes / sizeof(Elf64_Rela);
    const Elf64_Rela *from = n ? table_at(r, table, sizeof *from) : NULL;
    kl_err code = n && !from ? image_refuse(r, "a table of relocations that is cut") : KL_OK;
    for (uint64_t i = 0; i < n && !code; i++)
        code = read_relocation(&m->relocations[m->n_relocations++], r, &from[i]);
    return code;
}

static kl_err read_all_relocations(image_reader *r, const range *t) {
    const uint64_t n = (t[RELOCATIONS].bytes + t[JUMPS].bytes) / sizeof(Elf64_Rela);
    if (n > MAX_RELOCATIONS) return image_refuse(r, "too many relocations");
    r->image->relocations = KL_ARRAY(r->arena, kli_relocation, n + 1);
    const kl_err code = image_read_relocations(r, t[RELOCATIONS]);
    if (!code) KL_ASSERT(r->image->n_relocations <= n);
    return code ? code : image_read_relocations(r, t[JUMPS]);
}

/* ---- section headers --------------------------------------------------------------------- */

static bool is_table(const range *t, int i, const Elf64_Shdr *s) {
    return s->sh_addr == t[i].address && s->sh_size == t[i].bytes;
}

/* Tools read sections, loaders do not: a table that only one of the two sees is a lie to the other.
 */
static kl_err compare_section(const image_reader *r, const range *t, const Elf64_Shdr *s) {
    bool same = true;
    switch (s->sh_type) {
    case SHT_DYNAMIC:
        same = s->sh_offset == r->dynamic->p_offset && s->sh_size == r->dynamic->p_filesz;
        break;
    case SHT_DYNSYM:
        same = is_table(t, SYMBOLS, s);
        break;
    case SHT_HASH:
        same = is_table(t, HASH, s);
        break;
    case SHT_RELA:
        same = !(s->sh_flags & SHF_ALLOC) || is_table(t, RELOCATIONS, s) || is_table(t, JUMPS, s);
        break;
    case SHT_REL:
    case 19 /* SHT_RELR */:
        same = !(s->sh_flags & SHF_ALLOC);
        break;
    case SHT_INIT_ARRAY:
    case SHT_FINI_ARRAY:
    case SHT_PREINIT_ARRAY:
        same = s->sh_size == 0;
        break;
    default:
        break;
    }
    return same ? KL_OK : image_refuse(r, "a section that its dynamic table does not know");
}

static kl_err compare_sections(const image_reader *r, const Elf64_Ehdr *h, const range *t) {
    const Elf64_Shdr *s = items_at(r, h->e_shoff, h->e_shnum, sizeof *s);
    kl_err code = s && h->e_shnum > 1 ? KL_OK : image_refuse(r, "no section headers");
    for (int i = 1; !code && i < h->e_shnum; i++) code = compare_section(r, t, &s[i]);
    return code;
}

kl_err kli_image_read(kli_image *out, kl_arena *a, kl_str bytes, kl_error *e) {
    image_reader r = {.image = out, .arena = a, .bytes = bytes, .e = e};
    range tables[N_TABLES];
    const Elf64_Ehdr *h = image_read_header(&r);
    *out = (kli_image){.align = KLI_IMAGE_PAGE};
    kl_err code = h ? read_program_headers(&r, h)
                    : image_refuse(&r, "no header of a shared object of this machine");
    if (!code) code = image_read_dynamic(&r);
    if (!code) code = find_tables(&r, tables);
    if (!code) code = image_read_symbols(&r, tables[SYMBOLS], tables[STRINGS]);
    if (!code) code = read_all_relocations(&r, tables);
    return code ? code : compare_sections(&r, h, tables);
}
