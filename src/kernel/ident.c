/* ident.c - what makes two kernels the same: surface, source, flags and the chosen params.
 *
 * White space inside directives does not count, so that reformatting a launch line does not buy a
 * new gate run; white space in code does, because it can change a program (strings, macros,
 * Python).  The path does not count. SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include "base/hash.h"

#include <string.h>

static void add_directive(kl_buf *out, const kl_kernel *k, const char *clean,
                          const kli_line *line) {
    kl_buf_add(out, kl_str_of(k->surface->comment));
    for (size_t i = line->text; i < line->end; i++)
        if (!kli_is_space(clean[i])) kl_buf_add(out, (kl_str){clean + i, 1});
    kl_buf_add(out, KL_S("\n"));
}

static void add_source(kl_buf *out, const kl_kernel *k, const kli_scan *scan) {
    size_t done = 0;
    for (int i = 0; i < scan->n_lines; i++) {
        const kli_line *line = &scan->lines[i];
        KL_ASSERT(done <= line->begin && line->next <= k->source.len); /* in order, apart */
        kl_buf_add(out, (kl_str){k->source.ptr + done, line->begin - done});
        add_directive(out, k, scan->clean, line);
        done = line->next;
    }
    kl_buf_add(out, (kl_str){k->source.ptr + done, k->source.len - done});
}

void kli_identify(kl_kernel *k, const kli_scan *scan) {
    kl_hasher h;
    kl_buf text = {0};
    kli_hasher_init(&h);
    kli_hasher_add(&h, kl_str_of(k->surface->name));
    add_source(&text, k, scan);
    kli_hasher_add(&h, kl_buf_str(&text));
    for (int i = 0; i < k->n_flags; i++) kli_hasher_add(&h, k->flags[i]);
    text.len = 0;
    for (int i = 0; i < k->n_params; i++)
        kl_buf_printf(&text, "%.*s=%lld\n", KL_STR_ARG(k->params[i].name),
                      (long long)k->params[i].value);
    kli_hasher_add(&h, kl_buf_str(&text));
    kl_hash hash = kli_hasher_end(&h);
    _Static_assert(sizeof k->hash == sizeof hash.hex, "a kernel's identity is a whole hash");
    memcpy(k->hash, hash.hex, sizeof k->hash);
    kl_buf_fini(&text);
}
