/* kernel.c - from a file to a kernel: surface, directives, overrides of params, identity.
 *
 * Nothing runs here and nothing is compiled.  SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include <stdio.h>
#include <string.h>

#define INDEX_BY_NAME(k, name, list, count)                                                        \
    for (int i = 0; i < (k)->count; i++)                                                           \
        if (kl_str_eq((k)->list[i].name, name)) return i;                                          \
    return -1

int kli_param_index(const kl_kernel *k, kl_str name) { INDEX_BY_NAME(k, name, params, n_params); }
int kli_let_index(const kl_kernel *k, kl_str name) { INDEX_BY_NAME(k, name, lets, n_lets); }
int kli_buffer_index(const kl_kernel *k, kl_str name) {
    INDEX_BY_NAME(k, name, buffers, n_buffers);
}
int kli_tensormap_index(const kl_kernel *k, kl_str name) {
    INDEX_BY_NAME(k, name, tensormaps, n_tensormaps);
}

kl_str kl_kernel_source(const kl_kernel *k) { return k->source; }
const kl_surface *kl_kernel_surface(const kl_kernel *k) { return k->surface; }
const char *kl_kernel_hash(const kl_kernel *k) { return k->hash; }

static kl_err refuse_override(kl_error *e, const kl_kernel *k, kl_str name) {
    kl_str known[KL_MAX_PARAMS];
    char list[384] = "";
    size_t used = 0;
    for (int i = 0; i < k->n_params; i++) {
        known[i] = k->params[i].name;
        if (used < sizeof list)
            used +=
                (size_t)snprintf(list + used, sizeof list - used, " %.*s", KL_STR_ARG(known[i]));
    }
    char path[256];
    snprintf(path, sizeof path, "%.*s", KL_STR_ARG(k->path));
    kl_fail(e, KL_EINVAL, path, "no param '%s'", kli_show(name).text);
    int close = kli_closest(name, known, k->n_params);
    if (k->n_params == 0)
        return kl_hint(e, "this kernel has no params; declare one: `%s param BM = 64 {32, 64}`",
                       k->surface->comment);
    if (close < 0) return kl_hint(e, "params:%s", list);
    return kl_hint(e, "did you mean '%.*s'?  params:%s", KL_STR_ARG(known[close]), list);
}

/* override = NAME "=" INT; values outside the declared set are allowed, since a tuner may try any
 */
static kl_err override_param(kl_kernel *k, const char *text, kl_error *e) {
    const char *equals = strchr(text, '=');
    kl_str name = kl_str_trim((kl_str){text, equals ? (size_t)(equals - text) : strlen(text)});
    int i = kli_param_index(k, name);
    if (i < 0) return refuse_override(e, k, name);
    kl_str value = equals ? kl_str_trim(kl_str_of(equals + 1)) : (kl_str){0};
    if (kli_parse_int(&k->params[i].value, value)) return KL_OK;
    char path[256];
    snprintf(path, sizeof path, "%.*s", KL_STR_ARG(k->path));
    kl_fail(e, KL_EINVAL, path, "param %.*s: '%s' is not a 64-bit integer", KL_STR_ARG(name),
            kli_show(value).text);
    return kl_hint(e, "write %.*s=%lld", KL_STR_ARG(name), (long long)k->params[i].values[0]);
}

/* `surface NAME` decides between those whose files end alike; a name that is none of them is
 * refused when it is read. */
static kl_err choose_surface(kl_kernel *k, kl_arena *a, const kli_scan *scan, bool given,
                             kl_error *e) {
    const kl_str path = kl_str_of(k->surface->suffix);
    const kl_surface *s;
    if (given || !kl_surface_of_path(path, 1)) return KL_OK;
    for (int i = 0; i < scan->n_lines; i++) {
        if (!kl_str_eq(kli_line_word(scan, i), KL_S("surface"))) continue;
        const kli_line *l = &scan->lines[i];
        const size_t n = sizeof "surface" - 1;
        const kl_str rest = kl_str_trim((kl_str){scan->clean + l->text + n, l->end - l->text - n});
        for (int c = 0; (s = kl_surface_of_path(path, c)) != NULL; c++)
            if (kl_str_eq(rest, kl_str_of(s->name))) k->surface = s;
        return KL_OK;
    }
    kl_str lines = {0};
    for (int c = 0; (s = kl_surface_of_path(path, c)) != NULL; c++)
        lines = kl_arena_printf(a, "%s%s`%s surface %s`", lines.len ? lines.ptr : "",
                                c ? " or " : "", s->comment, s->name);
    kl_fail_at(e, KL_EPARSE, k->path, k->source, 0, "a %s file must name its surface",
               k->surface->suffix);
    return kl_hint(e, "add the line %s", lines.ptr);
}

static kl_err require_launch(const kl_kernel *k, kl_error *e) {
    if (k->n_launches) return KL_OK;
    kl_fail_at(e, KL_EPARSE, k->path, k->source, 0,
               "no launch directive: nothing says which function to run");
    return kl_hint(e, "add a line such as `%s launch NAME %s`", k->surface->comment,
                   k->surface->example);
}

static kl_err read_kernel(kl_kernel *k, kl_arena *a, bool given, const kl_kernel_opts *o,
                          kl_error *e) {
    kli_scan *scan = KL_NEW(a, kli_scan);
    if (kli_scan_source(scan, a, k, e) || choose_surface(k, a, scan, given, e) ||
        kli_read_directives(k, a, scan, o->oracle, e) || require_launch(k, e))
        return e->code;
    for (const char *const *p = o->params; p && *p; p++)
        if (override_param(k, *p, e)) return e->code;
    kli_identify(k, scan);
    return KL_OK;
}

kl_err kl_kernel_parse(kl_kernel **out, kl_arena *a, kl_str text, kl_str path,
                       const kl_surface *surface, const kl_kernel_opts *o, kl_error *e) {
    static const kl_kernel_opts defaults = {0};
    if (!o) o = &defaults;
    *out = NULL;
    kl_kernel *k = KL_NEW(a, kl_kernel);
    k->path = kl_arena_copy(a, path);
    if (text.len > KL_MAX_SOURCE_BYTES)
        return kl_fail(e, KL_ELIMIT, k->path.ptr, "%zu bytes; a kernel file has at most %u",
                       text.len, KL_MAX_SOURCE_BYTES);
    k->source = kl_arena_copy(a, text);
    k->surface = surface ? surface : kl_surface_of_path(k->path, 0);
    if (!k->surface) {
        kl_fail(e, KL_EPARSE, k->path.ptr, "the file's ending names no kernel language");
        return kl_hint(e, "kernel files end in %s", kl_surface_endings(a).ptr);
    }
    k->trusted = o->trusted || o->oracle;
    k->may_be_code = o->may_be_code || k->trusted;
    k->result = o->oracle ? KL_F64 : 0;
    kl_err err = read_kernel(k, a, surface != NULL, o, e);
    KL_ASSERT(err || (k->n_launches > 0 && k->hash[0]));
    *out = err ? NULL : k;
    return err;
}

kl_err kl_kernel_load(kl_kernel **out, kl_arena *a, const char *path, const kl_kernel_opts *o,
                      kl_error *e) {
    kl_str text, name = kl_str_of(path);
    kl_err err = kl_kernel_read(&text, &name, a, e);
    return err ? err : kl_kernel_parse(out, a, text, name, NULL, o, e);
}
