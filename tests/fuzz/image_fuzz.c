/* image_fuzz.c - any bytes as a candidate's shared object: whatever the reader accepts can be
 * mapped and relocated without a byte outside of its own address space, and the readers of tools
 * end on it too.  SPDX-License-Identifier: Apache-2.0 */
#include "backend/elf.h"
#include "backend/image.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SPAN ((uint64_t)4 << 20) /* larger ones are checked, not loaded */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_segments(const kli_image *m, size_t size) {
    uint64_t end = 0;
    for (int i = 0; i < m->n_segments; i++) {
        const kli_segment *s = &m->segments[i];
        KL_ASSERT(!(s->write && s->execute) && s->file_bytes <= s->bytes && s->offset <= size &&
                  s->file_bytes <= size - s->offset);
        KL_ASSERT(s->address / KLI_IMAGE_PAGE * KLI_IMAGE_PAGE >= end &&
                  s->address + s->bytes <= m->span);
        KL_ASSERT(s->address % KLI_IMAGE_PAGE == s->offset % KLI_IMAGE_PAGE);
        end = s->address + s->bytes;
    }
    KL_ASSERT(
        m->tls_file_bytes <= m->tls_bytes &&
        (!m->tls_bytes || (m->tls_offset <= size && m->tls_file_bytes <= size - m->tls_offset)));
}

/* Into an exactly sized block, where a sanitizer sees the first byte beside it. */
static void load(const kli_image *m, const uint8_t *data) {
    uint8_t *base = calloc(1, m->span ? m->span : 1);
    if (!base) kl_oom(m->span);
    for (int i = 0; i < m->n_segments; i++)
        if (m->segments[i].file_bytes)
            memcpy(base + m->segments[i].address, data + m->segments[i].offset,
                   m->segments[i].file_bytes);
    for (uint32_t i = 0; i < m->n_relocations; i++) {
        const kli_relocation *r = &m->relocations[i];
        KL_ASSERT(r->symbol == 0 || r->symbol < m->n_symbols);
        memset(base + r->at, 0, sizeof(uint64_t));
    }
    free(base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kli_image image;
    kli_elf elf;
    kli_elf_object object;
    const kl_str bytes = {(const char *)data, size};
    if (kli_image_read(&image, a, bytes, &e) == KL_OK) {
        check_segments(&image, size);
        for (uint32_t i = 0; i < image.n_symbols; i++)
            KL_ASSERT(strlen(image.symbols[i].name) < size);
        if (image.span <= MAX_SPAN) load(&image, data);
    } else {
        KL_ASSERT(e.code == KL_EPARSE && e.message[0]);
    }
    if (kli_elf_read(&elf, a, bytes, &e) == KL_OK)
        for (size_t i = 0; i < elf.n_symbols; i++) KL_ASSERT(strlen(elf.symbols[i].name) < size);
    if (kli_elf_read_object(&object, a, bytes, &e) == KL_OK)
        for (size_t i = 0; i < object.n_symbols; i++) KL_ASSERT(strlen(object.symbols[i]) < size);
    kl_arena_free(a);
    return 0;
}
