/* template.c - texts with {{name}} in them, and the files that they become.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include <string.h>

#define EXPORT_TEMPLATE(name)                                                                      \
    extern const unsigned char kl_export_text_##name[];                                            \
    extern const size_t kl_export_text_##name##_bytes;
#include "templates.def"
#undef EXPORT_TEMPLATE

static const struct {
    const char *name;
    const unsigned char *text;
    const size_t *bytes;
} EXPORT_TEMPLATES[] = {
#define EXPORT_TEMPLATE(name) {#name, kl_export_text_##name, &kl_export_text_##name##_bytes},
#include "templates.def"
#undef EXPORT_TEMPLATE
};

static kl_str template_text(const char *name) {
    for (size_t i = 0; i < KL_COUNT(EXPORT_TEMPLATES); i++)
        if (strcmp(EXPORT_TEMPLATES[i].name, name) == 0)
            return (kl_str){(const char *)EXPORT_TEMPLATES[i].text, *EXPORT_TEMPLATES[i].bytes};
    kl_bug("a template that exists", __FILE__, __LINE__);
}

void kli_value_set(kli_values *v, const char *name, kl_str text) {
    for (int i = 0; i < v->n; i++)
        if (strcmp(v->at[i].name, name) == 0) {
            v->at[i].text = text;
            return;
        }
    KL_ASSERT(v->n < KLI_EXPORT_VALUES);
    v->at[v->n].name = name;
    v->at[v->n++].text = text;
}

static kl_str template_value(const kli_values *v, kl_str name) {
    for (int i = 0; i < v->n; i++)
        if (kl_str_eq(kl_str_of(v->at[i].name), name)) return v->at[i].text;
    kl_bug("a value for every placeholder", __FILE__, __LINE__);
}

/* "{{name}}" at the beginning of `s`: its length, or 0. */
static size_t template_placeholder(kl_str s, kl_str *name) {
    size_t n = 2;
    if (!kl_str_starts(s, KL_S("{{"))) return 0;
    while (n < s.len && ((s.ptr[n] >= 'a' && s.ptr[n] <= 'z') || s.ptr[n] == '_')) n++;
    *name = (kl_str){s.ptr + 2, n - 2};
    return n > 2 && kl_str_starts((kl_str){s.ptr + n, s.len - n}, KL_S("}}")) ? n + 2 : 0;
}

kl_str kli_template(const kli_values *v, const char *name) {
    return kli_template_of(v, template_text(name));
}

kl_str kli_template_of(const kli_values *v, kl_str rest) {
    kl_str key = {0};
    kl_buf b = {0};
    while (rest.len) {
        const char *brace = memchr(rest.ptr, '{', rest.len);
        const size_t plain = brace ? (size_t)(brace - rest.ptr) : rest.len;
        kl_buf_add(&b, (kl_str){rest.ptr, plain});
        rest = (kl_str){rest.ptr + plain, rest.len - plain};
        size_t used = template_placeholder(rest, &key);
        kl_buf_add(&b, used ? template_value(v, key) : (kl_str){rest.ptr, rest.len ? 1 : 0});
        if (!used) used = rest.len ? 1 : 0;
        rest = (kl_str){rest.ptr + used, rest.len - used};
    }
    return kl_buf_take(&b, v->arena);
}

void kli_files_add(kli_export_files *out, kl_str path, kl_str text) {
    KL_ASSERT(out->n < KLI_EXPORT_FILES && path.len && path.ptr[0] != '/');
    out->at[out->n++] = (kli_export_file){path, text};
}
