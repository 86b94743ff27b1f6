/* fake_cubin.h - a cubin with names and no code, for the fake device: kernels and one variable, in
 * ELF as the compiler writes it. SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_TEST_FAKE_CUBIN_H
#define KL_TEST_FAKE_CUBIN_H
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Elf64_Ehdr header;
    Elf64_Sym symbols[8];
    char names[512], section_names[128];
    Elf64_Shdr sections[7];
    struct {
        uint8_t format, name;
        uint16_t bytes;
        uint32_t block[3];
    } fact;
} fake_cubin;

static inline uint32_t fake_name(char *table, size_t bytes, size_t *used, const char *name) {
    size_t at = *used, n = strlen(name) + 1;
    if (at + n > bytes) abort();
    memcpy(table + at, name, n);
    *used += n;
    return (uint32_t)at;
}

static inline void fake_section(fake_cubin *c, int i, uint32_t name, uint32_t type, size_t offset,
                                size_t bytes, uint32_t link) {
    c->sections[i] = (Elf64_Shdr){
        .sh_name = name, .sh_type = type, .sh_offset = offset, .sh_size = bytes, .sh_link = link};
}

/* `kernels` is NULL-terminated, at most 6; `variable` may be NULL. */
static inline void fake_cubin_make(fake_cubin *c, const char *const *kernels,
                                   const char *variable) {
    size_t names = 1, sections = 1, n = 1;
    memset(c, 0, sizeof *c);
    for (; *kernels; kernels++)
        c->symbols[n++] =
            (Elf64_Sym){.st_name = fake_name(c->names, sizeof c->names, &names, *kernels),
                        .st_other = 0x10,
                        .st_shndx = 4,
                        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                        .st_size = 128};
    if (variable)
        c->symbols[n++] =
            (Elf64_Sym){.st_name = fake_name(c->names, sizeof c->names, &names, variable),
                        .st_shndx = 5,
                        .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
                        .st_size = 4};
    static const char *const titles[] = {"",        ".shstrtab", ".strtab",
                                         ".symtab", ".text.k",   ".nv.global"};
    uint32_t title[6] = {0};
    for (int i = 1; i < 6; i++)
        title[i] = fake_name(c->section_names, sizeof c->section_names, &sections, titles[i]);
    fake_section(c, 1, title[1], SHT_STRTAB, offsetof(fake_cubin, section_names),
                 sizeof c->section_names, 0);
    fake_section(c, 2, title[2], SHT_STRTAB, offsetof(fake_cubin, names), sizeof c->names, 0);
    fake_section(c, 3, title[3], SHT_SYMTAB, offsetof(fake_cubin, symbols), n * sizeof(Elf64_Sym),
                 2);
    fake_section(c, 4, title[4], SHT_PROGBITS, 0, 0, 0);
    fake_section(c, 5, title[5], SHT_NOBITS, 0, 4, 0);
    memcpy(c->header.e_ident, ELFMAG, SELFMAG);
    c->header.e_ident[EI_CLASS] = ELFCLASS64;
    c->header.e_ident[EI_DATA] = ELFDATA2LSB;
    c->header.e_type = ET_EXEC;
    c->header.e_machine = 190;
    c->header.e_shoff = offsetof(fake_cubin, sections);
    c->header.e_shentsize = sizeof(Elf64_Shdr);
    c->header.e_shnum = 6;
    c->header.e_shstrndx = 1;
}

/* Says that `kernel` was compiled for a block of `threads`. */
static inline void fake_cubin_for_block(fake_cubin *c, const char *kernel, uint32_t threads) {
    size_t used = 64;
    const uint32_t title = fake_name(c->section_names, sizeof c->section_names, &used, ".nv.info.");
    used--;
    (void)fake_name(c->section_names, sizeof c->section_names, &used, kernel);
    c->fact.format = 4, c->fact.name = 0x10, c->fact.bytes = sizeof c->fact.block;
    c->fact.block[0] = threads, c->fact.block[1] = c->fact.block[2] = 1;
    fake_section(c, 6, title, SHT_PROGBITS, offsetof(fake_cubin, fact), sizeof c->fact, 0);
    c->header.e_shnum = 7;
}

static inline void fake_cubin_write(const fake_cubin *c, const char *path) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(c, sizeof *c, 1, f) != 1 || fclose(f) != 0) abort();
}

#endif
