/* fatbin_test.c - the cubin of a device, out of what drivers are given.
 * SPDX-License-Identifier: Apache-2.0 */
#include "capture/fatbin.h"
#include "base/fs.h"
#include "kit/kit.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { CUBIN = 2, PTX = 1, BY_ZSTD_FLAG = 0x8000, BY_LZ4_FLAG = 0x2000 };

/* The least that is a cubin with one kernel called `name`. */
typedef struct {
    Elf64_Ehdr header;
    Elf64_Sym symbols[2];
    char names[32];
    Elf64_Shdr sections[3];
} least;

static kl_str cubin_of(const char *name) {
    least *c = KL_NEW(arena, least);
    memcpy(c->header.e_ident, ELFMAG, SELFMAG);
    c->header.e_ident[EI_CLASS] = ELFCLASS64;
    c->header.e_machine = 190;
    c->header.e_shoff = offsetof(least, sections);
    c->header.e_shentsize = sizeof(Elf64_Shdr);
    c->header.e_shnum = 3;
    (void)snprintf(c->names + 1, sizeof c->names - 1, "%s", name);
    c->symbols[1] = (Elf64_Sym){.st_name = 1,
                                .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                .st_other = 0x10,
                                .st_shndx = 1};
    c->sections[1] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = offsetof(least, names), .sh_size = sizeof c->names};
    c->sections[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                  .sh_offset = offsetof(least, symbols),
                                  .sh_size = sizeof c->symbols,
                                  .sh_link = 1};
    return (kl_str){(const char *)c, sizeof *c};
}

static void add_entry(kl_buf *to, int kind, uint32_t arch, uint64_t flags, uint64_t bytes,
                      kl_str code) {
    char head[64] = {0};
    const uint16_t kind16 = (uint16_t)kind;
    const uint32_t head_bytes = sizeof head, packed = (uint32_t)code.len;
    const uint64_t padded = (code.len + 7) / 8 * 8;
    memcpy(head, &kind16, 2), memcpy(head + 4, &head_bytes, 4), memcpy(head + 8, &padded, 8);
    memcpy(head + 16, &packed, 4), memcpy(head + 28, &arch, 4), memcpy(head + 40, &flags, 8);
    memcpy(head + 56, &bytes, 8);
    kl_buf_add(to, (kl_str){head, sizeof head});
    kl_buf_add(to, code);
    kl_buf_add(to, (kl_str){"\0\0\0\0\0\0\0", padded - code.len});
}

static kl_str whole(kl_buf *entries) {
    kl_buf out = {0};
    const uint32_t magic = 0xBA55ED50, versions = 1 | 16 << 16;
    const uint64_t bytes = entries->len;
    kl_buf_add(&out, (kl_str){(const char *)&magic, 4});
    kl_buf_add(&out, (kl_str){(const char *)&versions, 4});
    kl_buf_add(&out, (kl_str){(const char *)&bytes, 8});
    kl_buf_add(&out, kl_buf_str(entries));
    kl_buf_fini(entries);
    return kl_buf_take(&out, arena);
}

static void test_capture_fatbin__takes_the_newest_that_the_device_runs(void **state) {
    kl_buf entries = {0};
    kl_str found;
    (void)state;
    add_entry(&entries, PTX, 90, 0, 0, KL_S(".version 8.0"));
    add_entry(&entries, CUBIN, 80, 0, 0, cubin_of("a"));
    add_entry(&entries, CUBIN, 86, 0, 0, cubin_of("b"));
    add_entry(&entries, CUBIN, 89, 0, 0, cubin_of("a"));
    add_entry(&entries, CUBIN, 100, 0, 0, cubin_of("a"));
    const kl_str image = whole(&entries);
    assert_ok(kli_fatbin_cubin(&found, arena, image, 80, "a", &e));
    assert_true(found.len == sizeof(least) && found.ptr == image.ptr + 16 + 64 + 16 + 64);
    assert_ok(kli_fatbin_cubin(&found, arena, image, 86, "b", &e));
    assert_ok(kli_fatbin_cubin(&found, arena, image, 86, "a", &e)); /* 80 runs there too */
    assert_err(KL_ENOENT, kli_fatbin_cubin(&found, arena, image, 80, "b", &e));
    assert_err(KL_ENOENT, kli_fatbin_cubin(&found, arena, image, 90, "a", &e));
    assert_non_null(strstr(e.message, "sm_90"));
}

static void test_capture_fatbin__unpacks(void **state) {
    kl_buf entries = {0};
    kl_str found;
    char packed[1024];
    const kl_str code = cubin_of("a");
    const size_t n = ZSTD_compress(packed, sizeof packed, code.ptr, code.len, 3);
    (void)state;
    assert_false(ZSTD_isError(n));
    add_entry(&entries, CUBIN, 90, BY_ZSTD_FLAG, code.len, (kl_str){packed, n});
    assert_ok(kli_fatbin_cubin(&found, arena, whole(&entries), 90, "a", &e));
    assert_true(kl_str_eq(found, code));
    add_entry(&entries, CUBIN, 90, BY_ZSTD_FLAG, code.len + 1, (kl_str){packed, n});
    assert_err(KL_EPARSE, kli_fatbin_cubin(&found, arena, whole(&entries), 90, "a", &e));
    add_entry(&entries, CUBIN, 90, BY_ZSTD_FLAG, (uint64_t)1 << 40, (kl_str){packed, n});
    assert_err(KL_EPARSE, kli_fatbin_cubin(&found, arena, whole(&entries), 90, "a", &e));
    add_entry(&entries, CUBIN, 90, BY_LZ4_FLAG, code.len, KL_S("no LZ4 at all"));
    const kl_err err = kli_fatbin_cubin(&found, arena, whole(&entries), 90, "a", &e);
    assert_true(err == KL_EPARSE || err == KL_ENODEV); /* as this build can read it */
}

/* As nvcc 13 writes them, by two of its ways to compress. */
static void test_capture_fatbin__reads_what_a_compiler_wrote(void **state) {
    static const char folder[] = KL_TEST_ROOT "/tests/fuzz/corpora/capture";
    kl_str image, found;
    (void)state;
    assert_ok(
        kli_fs_read(&image, arena, kli_fs_join(arena, folder, "zstd.fatbin").ptr, 1 << 20, &e));
    assert_ok(kli_fatbin_cubin(&found, arena, image, 90, "scale", &e));
    assert_ok(kli_fatbin_cubin(&found, arena, image, 89, "scale", &e));
    assert_ok(
        kli_fs_read(&image, arena, kli_fs_join(arena, folder, "lz4.fatbin").ptr, 1 << 20, &e));
    const kl_err err = kli_fatbin_cubin(&found, arena, image, 90, "scale", &e);
    if (err == KL_ENODEV) print_message("SKIPPED: no liblz4 in this build: %s\n", e.hint);
    assert_true(!err || (err == KL_ENODEV && strstr(e.hint, "liblz4-dev")));
}

/* Every prefix, in a block of exactly its length, where a sanitizer sees the byte behind it. */
static void test_capture_fatbin__cut_short_is_said(void **state) {
    kl_buf entries = {0};
    kl_str found;
    (void)state;
    add_entry(&entries, CUBIN, 90, 0, 0, cubin_of("a"));
    const kl_str image = whole(&entries);
    for (size_t n = 0; n < image.len; n++) {
        char *exact = malloc(n ? n : 1);
        assert_non_null(exact);
        memcpy(exact, image.ptr, n);
        const kl_err err = kli_fatbin_cubin(&found, arena, (kl_str){exact, n}, 90, "a", &e);
        assert_true(err == KL_EPARSE || err == KL_ENOENT);
        free(exact);
    }
}

static void test_capture_fatbin__what_is_no_code(void **state) {
    kl_str found;
    (void)state;
    assert_err(KL_ENOENT,
               kli_fatbin_cubin(&found, arena, KL_S(".version 8.0\n.target sm_90\n"), 90, "a", &e));
    assert_non_null(strstr(e.message, "text for the driver's compiler"));
    assert_ok(kli_fatbin_cubin(&found, arena, cubin_of("a"), 90, "a", &e));
    assert_err(KL_ENOENT, kli_fatbin_cubin(&found, arena, cubin_of("a"), 90, "b", &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_TEST(test_capture_fatbin__takes_the_newest_that_the_device_runs),
        KIT_TEST(test_capture_fatbin__unpacks),
        KIT_TEST(test_capture_fatbin__reads_what_a_compiler_wrote),
        KIT_TEST(test_capture_fatbin__cut_short_is_said),
        KIT_TEST(test_capture_fatbin__what_is_no_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
