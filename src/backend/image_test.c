/* image_test.c - what the loader's reader accepts, and every lie about it that a linked object can
 * tell. SPDX-License-Identifier: Apache-2.0 */
#include "runner_fixture.h"
#include "backend/cpu_load.h"
#include "backend/elf.h"
#include "backend/image.h"
#include "base/fs.h"
#include "base/rng.h"
#include <elf.h>

#define SOURCE                                                                                     \
    "//! launch k args(x, s, y, N)\n#include <math.h>\n#include <string.h>\nstatic "               \
    "_Thread_local float kept = 2, zero[64];\n"                                                    \
    "static const char *const NAMES[] = {\"one\", \"two\"};\nfloat shared = 3;\n"                  \
    "void k(const float *x, float s, float *y, int n) { memset(y, 0, sizeof *y); kept *= s; "      \
    "zero[n % 64] = shared;"                                                                       \
    " for (int i = 0; i < n; i++) y[i] = expf(x[i]) * kept + zero[i % 64] + (float)NAMES[i % "     \
    "2][0]; }\n"

typedef struct {
    fixture f;
    char *bytes;
    size_t size;
} made;

static void made_open(made *m) {
    kl_error e = {0};
    kl_str text;
    fixture_open(&m->f, KL_BACKEND_CPU);
    fixture_compile_for(&m->f, SOURCE, false);
    if (!m->f.artefact.ok || m->f.artefact.suspicious.len)
        fail_msg("%s%s", m->f.artefact.log.ptr, m->f.artefact.suspicious.ptr);
    assert_ok(kli_fs_read(&text, m->f.arena, m->f.artefact.path.ptr, 1 << 24, &e));
    m->bytes = kl_arena_alloc(m->f.arena, 1, text.len);
    m->size = text.len;
    memcpy(m->bytes, text.ptr, text.len);
}

static Elf64_Phdr *header_of(const made *m, uint32_t type, uint32_t flags) {
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)m->bytes;
    for (int i = 0; i < h->e_phnum; i++) {
        Elf64_Phdr *p = (Elf64_Phdr *)(m->bytes + h->e_phoff) + i;
        if (p->p_type == type && (p->p_flags & flags) == flags) return p;
    }
    fail_msg("no program header %u", type);
    return NULL;
}

static Elf64_Dyn *entry_of(const made *m, int64_t tag) {
    Elf64_Dyn *d = (Elf64_Dyn *)(m->bytes + header_of(m, PT_DYNAMIC, 0)->p_offset);
    while (d->d_tag != tag && d->d_tag != DT_NULL) d++;
    if (d->d_tag != tag) fail_msg("no entry %ld", (long)tag);
    return d;
}

static Elf64_Rela *relocation(const made *m) {
    return (Elf64_Rela *)(m->bytes + entry_of(m, DT_RELA)->d_un.d_ptr);
}

static Elf64_Shdr *section_of(const made *m, uint32_t type) {
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)m->bytes;
    Elf64_Shdr *s = (Elf64_Shdr *)(m->bytes + h->e_shoff);
    for (int i = 0; i < h->e_shnum; i++)
        if (s[i].sh_type == type) return &s[i];
    fail_msg("no section %u", type);
    return NULL;
}

/* ---- lies -------------------------------------------------------------------------------- */

static void add_entry(made *m, int64_t tag, uint64_t value) {
    *entry_of(m, DT_NULL) = (Elf64_Dyn){.d_tag = tag, .d_un.d_val = value};
}

static void lie_init(made *m) { add_entry(m, DT_INIT, 0x1000); }
static void lie_debug(made *m) { add_entry(m, DT_DEBUG, 0); }
static void lie_relr(made *m) { add_entry(m, 36, 0x400); }
static void lie_rel(made *m) { add_entry(m, DT_REL, 0x400); }
static void lie_textrel(made *m) { add_entry(m, DT_TEXTREL, 0); }
static void lie_rpath(made *m) { add_entry(m, DT_RUNPATH, 1); }
static void lie_audit(made *m) { add_entry(m, 0x6ffffefc, 1); }
static void lie_twice(made *m) { add_entry(m, DT_RELA, entry_of(m, DT_RELA)->d_un.d_val); }
static void lie_symbols_twice(made *m) { add_entry(m, DT_SYMTAB, 0x200); }
static void lie_behind_the_end(made *m) { entry_of(m, DT_NULL)[1].d_un.d_val = 7; }
static void lie_two_dynamic(made *m) { header_of(m, PT_GNU_STACK, 0)->p_type = PT_DYNAMIC; }
static void lie_no_dynamic(made *m) { header_of(m, PT_DYNAMIC, 0)->p_type = PT_NULL; }
static void lie_interpreter(made *m) { header_of(m, PT_GNU_STACK, 0)->p_type = PT_INTERP; }
static void lie_stack(made *m) { header_of(m, PT_GNU_STACK, 0)->p_flags |= PF_X; }
static void lie_writable_code(made *m) { header_of(m, PT_LOAD, PF_X)->p_flags |= PF_W; }
static void lie_outside(made *m) {
    header_of(m, PT_LOAD, PF_W)->p_filesz = m->size * 2,
                          header_of(m, PT_LOAD, PF_W)->p_memsz = m->size * 2;
}
static void lie_overlap(made *m) { header_of(m, PT_LOAD, PF_X)->p_vaddr = 0; }
static void lie_alignment(made *m) { header_of(m, PT_LOAD, PF_X)->p_align = 3; }
static void lie_relocations_in_data(made *m) {
    entry_of(m, DT_RELA)->d_un.d_ptr = header_of(m, PT_LOAD, PF_W)->p_vaddr;
}
static void lie_tables_overlap(made *m) {
    entry_of(m, DT_STRTAB)->d_un.d_ptr = entry_of(m, DT_SYMTAB)->d_un.d_ptr;
}
static void lie_size(made *m) { entry_of(m, DT_RELASZ)->d_un.d_val -= 24; }
static void lie_cut(made *m) { entry_of(m, DT_RELASZ)->d_un.d_val -= 1; }
static void lie_entry_size(made *m) { entry_of(m, DT_RELAENT)->d_un.d_val = 16; }
static void lie_resolver(made *m) { relocation(m)->r_info = ELF64_R_INFO(0, 37); }
static void lie_copy(made *m) { relocation(m)->r_info = ELF64_R_INFO(1, R_X86_64_COPY); }
static void lie_static_tls(made *m) { relocation(m)->r_info = ELF64_R_INFO(0, R_X86_64_TPOFF64); }
static void lie_into_code(made *m) {
    relocation(m)->r_offset = header_of(m, PT_LOAD, PF_X)->p_vaddr;
}
static void lie_far_away(made *m) { relocation(m)->r_offset = ~0ull - 3; }
static void lie_last_bytes(made *m) {
    relocation(m)->r_offset =
        header_of(m, PT_LOAD, PF_W)->p_vaddr + header_of(m, PT_LOAD, PF_W)->p_memsz - 7;
}
static void lie_no_symbol(made *m) { relocation(m)->r_info = ELF64_R_INFO(60000, R_X86_64_64); }
static void lie_section_elsewhere(made *m) { section_of(m, SHT_DYNAMIC)->sh_offset += 16; }
static void lie_section_of_symbols(made *m) { section_of(m, SHT_DYNSYM)->sh_addr += 24; }
static void lie_section_of_relocations(made *m) { section_of(m, SHT_RELA)->sh_size -= 24; }
static void lie_section_of_initialisers(made *m) {
    section_of(m, SHT_DYNSYM)->sh_type = SHT_INIT_ARRAY;
}
static void lie_symbols(made *m) {
    ((uint32_t *)(m->bytes + entry_of(m, DT_HASH)->d_un.d_ptr))[1] += 100000;
}
static void lie_few_symbols(made *m) {
    ((uint32_t *)(m->bytes + entry_of(m, DT_HASH)->d_un.d_ptr))[1] = 1;
}
static void lie_ifunc(made *m) {
    ((Elf64_Sym *)(m->bytes + entry_of(m, DT_SYMTAB)->d_un.d_ptr))[1].st_info =
        ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
}
static void lie_nameless(made *m) {
    ((Elf64_Sym *)(m->bytes + entry_of(m, DT_SYMTAB)->d_un.d_ptr))[1].st_name = 1u << 30;
}
static void lie_tls(made *m) { header_of(m, PT_TLS, 0)->p_filesz = 1u << 30; }

static const struct {
    void (*tell)(made *);
    const char *why;
} LIES[] = {{lie_init, "entry 0xc in its dynamic"},
            {lie_debug, "entry 0x15 in its dynamic"},
            {lie_relr, "entry 0x24"},
            {lie_rel, "entry 0x11"},
            {lie_textrel, "entry 0x16"},
            {lie_rpath, "entry 0x1d"},
            {lie_audit, "entry 0x6ffffefc"},
            {lie_twice, "two entries RELA"},
            {lie_symbols_twice, "two entries SYMTAB"},
            {lie_behind_the_end, "behind the end"},
            {lie_two_dynamic, "two dynamic tables"},
            {lie_no_dynamic, "no dynamic table"},
            {lie_interpreter, "no kernel needs"},
            {lie_stack, "stack that can be executed"},
            {lie_writable_code, "can be written"},
            {lie_outside, "outside the file"},
            {lie_overlap, "overlap"},
            {lie_alignment, "alignment"},
            {lie_relocations_in_data, "outside its read-only part"},
            {lie_tables_overlap, "tables that overlap"},
            {lie_size, "a section that its dynamic table"},
            {lie_cut, "cut"},
            {lie_entry_size, "strange table"},
            {lie_resolver, "resolver"},
            {lie_copy, "relocation of type 5"},
            {lie_static_tls, "relocation of type 18"},
            {lie_into_code, "outside its data"},
            {lie_far_away, "outside its data"},
            {lie_last_bytes, "outside its data"},
            {lie_no_symbol, "relocation of no symbol"},
            {lie_section_elsewhere, "a section that its dynamic table"},
            {lie_section_of_symbols, "a section that its dynamic table"},
            {lie_section_of_relocations, "a section that its dynamic table"},
            {lie_section_of_initialisers, "a section that its dynamic table"},
            {lie_symbols, "too many symbols"},
            {lie_few_symbols, "no symbol"},
            {lie_ifunc, "resolver"},
            {lie_nameless, "without a name"},
            {lie_tls, "thread-local block"}};

static void test_image__reads_what_a_compiler_makes(void **state) {
    made m;
    kli_image image;
    kl_error e = {0};
    (void)state;
    made_open(&m);
    assert_ok(kli_image_read(&image, m.f.arena, (kl_str){m.bytes, m.size}, &e));
    assert_true(image.n_segments >= 3 && image.n_relocations >= 4 && image.n_symbols >= 4 &&
                image.tls_bytes >= 64 * 4 + 4);
    int defined = 0, imported = 0;
    for (uint32_t i = 1; i < image.n_symbols; i++) {
        defined += image.symbols[i].defined && strcmp(image.symbols[i].name, "k") == 0;
        imported += !image.symbols[i].defined && strcmp(image.symbols[i].name, "expf") == 0;
    }
    assert_true(defined == 1 && imported == 1);
    fixture_close(&m.f);
}

static void test_image__refuses_each_lie(void **state) {
    (void)state;
#if !defined(__x86_64__)
    skip(); /* the relocation types above are those of x86-64 */
#endif
    for (size_t i = 0; i < KL_COUNT(LIES); i++) {
        made m;
        kli_image image;
        kl_error e = {0};
        made_open(&m);
        LIES[i].tell(&m);
        if (kli_image_read(&image, m.f.arena, (kl_str){m.bytes, m.size}, &e) != KL_EPARSE)
            fail_msg("lie %zu (%s) is believed", i, LIES[i].why);
        if (!strstr(e.message, LIES[i].why))
            fail_msg("lie %zu: \"%s\", not \"%s\"", i, e.message, LIES[i].why);
        fixture_close(&m.f);
    }
}

/* Before a batch the libraries that it calls are made present, and no others. */
static void test_image__says_which_library_is_called(void **state) {
    kli_image_symbol symbols[] = {{0}, {.name = "own", .defined = true}, {.name = "expf"}};
    uintptr_t addresses[] = {0, 0x1000, 0x5000};
    kli_object o = {.image = {.symbols = symbols, .n_symbols = 3}, .addresses = addresses};
    (void)state;
    assert_true(kli_object_imports_from(&o, 0x5000, 0x6000));
    assert_false(kli_object_imports_from(&o, 0x4000, 0x5000));
    assert_false(kli_object_imports_from(&o, 0x1000, 0x2000)); /* its own */
    assert_false(kli_object_imports_from(&o, 0, 0x1000));
    o.image.tls_bytes = 8; /* a block of memory for each thread, from the C library */
    assert_true(kli_object_imports_from(&o, 0, 0x1000));
}

/* Every reader of foreign bytes must end, whatever they are. */
static void test_elf__survives_damage(void **state) {
    fixture f;
    kl_error e = {0};
    kl_str bytes;
    kli_elf elf;
    (void)state;
    fixture_open(&f, KL_BACKEND_CPU);
    fixture_compile_for(&f, SOURCE, false);
    assert_ok(kli_fs_read(&bytes, f.arena, f.artefact.path.ptr, 1 << 24, &e));
    assert_ok(kli_elf_read(&elf, f.arena, bytes, &e));
    assert_true(elf.n_symbols >= 1 && elf.text_bytes > 0 && !elf.initialisers && !elf.ifuncs);
    kl_stream s = kli_stream_of(7, "damage");
    for (uint64_t i = 0; i < 3000; i++) {
        kl_arena *a = kl_arena_new();
        char *copy = kl_arena_alloc(a, 1, bytes.len);
        size_t len = kli_stream_below(s, i * 8, 4)
                         ? bytes.len
                         : (size_t)kli_stream_below(s, i * 8 + 1, bytes.len);
        memcpy(copy, bytes.ptr, bytes.len);
        for (uint64_t k = 0; k < 4; k++) {
            uint64_t headers = kli_stream_below(s, i * 8 + 2, 2) ? 64 : bytes.len;
            copy[kli_stream_below(s, i * 32 + 3 + k, headers)] =
                (char)kli_stream_u64(s, i * 32 + 16 + k);
        }
        (void)!kli_elf_read(&elf, a, (kl_str){copy, len}, kl_ignored());
        kl_arena_free(a);
    }
    fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_image__says_which_library_is_called),
        cmocka_unit_test(test_image__reads_what_a_compiler_makes),
        cmocka_unit_test(test_image__refuses_each_lie),
        cmocka_unit_test(test_elf__survives_damage),
    };
    kli_fs_remove_tree("cache");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
