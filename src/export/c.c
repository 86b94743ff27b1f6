/* c.c - the form `c`, for a kernel in C: header, launcher, the kernel as it is, and a Makefile.
 *
 * The entry points are declared with the types that the gate calls them with, under a name of their
 * own bound to the symbol: the kernel's own prototype is its author's and is not parsed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include <string.h>

kl_str kli_export_macros(const kli_export *x) {
    const char **flags = kli_kernel_defines(x->arena, x->kernel, x->task, x->workload);
    kl_buf b = {0};
    for (; *flags; flags++) {
        const char *equals = strchr(*flags, '=');
        KL_ASSERT(equals && kl_str_starts(kl_str_of(*flags), KL_S("-D")));
        kl_buf_printf(&b, "#define %.*s %s\n", (int)(equals - *flags - 2), *flags + 2, equals + 1);
    }
    return kl_buf_take(&b, x->arena);
}

/* Is this the first launch of its entry? */
static bool is_first(const kl_kernel *k, int launch) {
    for (int i = 0; i < launch; i++)
        if (kl_str_eq(k->launches[i].entry, k->launches[launch].entry)) return false;
    return true;
}

static kl_str renames_text(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->kernel->n_launches; i++)
        if (is_first(x->kernel, i))
            kl_buf_printf(&b, "#define %.*s %s\n", KL_STR_ARG(x->kernel->launches[i].entry),
                          kli_entry_name(x, x->kernel->launches[i].entry).ptr);
    return kl_buf_take(&b, x->arena);
}

static kl_str prototypes_text(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->kernel->n_launches; i++) {
        const kl_launch *l = &x->kernel->launches[i];
        kl_buf_printf(&b, "extern void %s_call_%d(", x->name, i);
        for (int j = 0; j < l->n_args; j++)
            kl_buf_printf(&b, "%s%s", j ? ", " : "", kli_argument_type(x, &l->args[j]).ptr);
        kl_buf_printf(&b, "%s) __asm__(\"%s\");\n", l->n_args ? "" : "void",
                      kli_entry_name(x, l->entry).ptr);
    }
    return kl_buf_take(&b, x->arena);
}

static kl_str calls_text(const kli_export *x) {
    const kl_kernel *k = x->kernel;
    const bool threads = k->threads.text.len > 0;
    kl_buf b = {0};
    for (int i = 0; i < k->n_buffers; i++)
        if (k->buffers[i].zero)
            kl_buf_printf(&b, "    memset(scratch + p->at_%.*s, 0, (size_t)p->bytes_%.*s);\n",
                          KL_STR_ARG(k->buffers[i].name), KL_STR_ARG(k->buffers[i].name));
    if (threads)
        kl_buf_printf(&b,
                      "    const int before = omp_get_max_threads(), cores = "
                      "omp_get_num_procs();\n"
                      "    omp_set_num_threads(p->threads < cores ? (int)p->threads : cores);\n");
    for (int i = 0; i < k->n_launches; i++) {
        kl_buf_printf(&b, "    %s_call_%d(", x->name, i);
        for (int j = 0; j < k->launches[i].n_args; j++)
            kl_buf_printf(&b, "%sarg_%d_%d", j ? ", " : "", i, j);
        kl_buf_printf(&b, ");\n");
    }
    if (threads) kl_buf_printf(&b, "    omp_set_num_threads(before);\n");
    return kl_buf_take(&b, x->arena);
}

/* ---- flags ------------------------------------------------------------------------------- */

static bool export_openmp(const kl_kernel *k) {
    for (int i = 0; i < k->n_flags; i++)
        if (kl_str_eq(k->flags[i], KL_S("-fopenmp"))) return true;
    return k->threads.text.len > 0;
}

static kl_str flags_text(const kli_export *x) {
    const char *const *flags = x->kernel->surface->build_flags(x->arena, x->kernel);
    kl_buf b = {0};
    for (; *flags; flags++) kl_buf_printf(&b, "%s%s", b.len ? " " : "", *flags);
    return kl_buf_take(&b, x->arena);
}

kl_str kli_libraries(const kli_export *x) {
    return export_openmp(x->kernel) ? KL_S("-fopenmp -lm") : KL_S("-lm");
}

static void c_values(kli_values *v, const kli_export *x) {
    const bool openmp = export_openmp(x->kernel);
    kli_value_set(v, "arguments", kli_launcher_values(v, x));
    kli_value_set(v, "include", kl_arena_printf(x->arena, "#include \"%s.h\"\n", x->name));
    kli_value_set(v, "prototypes", prototypes_text(x));
    kli_value_set(v, "calls", calls_text(x));
    kli_value_set(v, "macros", kli_export_macros(x));
    kli_value_set(v, "renames", renames_text(x));
    kli_value_set(v, "kernel_flags", flags_text(x));
    kli_value_set(v, "launcher_flags", openmp ? KL_S("-fopenmp ") : KL_S(""));
    kli_value_set(v, "libraries", kli_libraries(x));
    kli_value_set(v, "cc", KL_S("cc"));
}

kl_err kli_export_c(kli_export_files *out, const kli_export *x, kl_error *e) {
    if (kli_is_device_code(x)) return kli_export_cuda(out, x, e);
    kli_values v = {0};
    kl_arena *a = x->arena;
    c_values(&v, x);
    kli_files_add(out, kl_arena_printf(a, "%s.h", x->name), kli_template(&v, "header"));
    kli_files_add(out, kl_arena_printf(a, "%s.c", x->name), kli_template(&v, "launcher"));
    kli_files_add(out, kl_arena_printf(a, "%s_kernel.c", x->name), kli_template(&v, "kernel"));
    kli_files_add(out, KL_S("kernel.c"), x->kernel->source);
    kli_files_add(out, KL_S("Makefile"), kli_template(&v, "makefile"));
    return KL_OK;
}

/* ---- the launcher as a kernel of its own ------------------------------------------------- */

static void check_buffer(kl_buf *b, const kl_buffer *m) {
    kl_buf_printf(b, " + cdiv(%zu", kl_dtype_bytes(m->dtype));
    for (int d = 0; d < m->ndim; d++) kl_buf_printf(b, " * (%.*s)", KL_STR_ARG(m->dims[d].text));
    kl_buf_printf(b, ", 256) * 256");
}

static kl_str check_arguments(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->task->n_axes; i++)
        if (x->task->axes[i].kind == KL_AXIS_VAR)
            kl_buf_printf(&b, "i64(%.*s), ", KL_STR_ARG(x->task->axes[i].name));
    for (int i = 0; i < x->task->n_tensors; i++)
        kl_buf_printf(&b, "%.*s, ", KL_STR_ARG(x->task->tensors[i].name));
    return kl_buf_take(&b, x->arena);
}

/* What of the kernel's directives the launcher does not take over, and how it is called. */
static kl_str check_directives(const kli_export *x) {
    const kl_kernel *k = x->kernel;
    kl_buf b = {0}, room = {0};
    for (int i = 0; i < k->n_flags; i++)
        kl_buf_printf(&b, "//! flags %.*s\n", KL_STR_ARG(k->flags[i]));
    for (int i = 0; i < k->n_params; i++)
        kl_buf_printf(&b, "//! param %.*s = %lld\n", KL_STR_ARG(k->params[i].name),
                      (long long)k->params[i].value);
    for (int i = 0; i < k->n_lets; i++)
        if (!k->lets[i].real)
            kl_buf_printf(&b, "//! let %.*s = %.*s\n", KL_STR_ARG(k->lets[i].name),
                          KL_STR_ARG(k->lets[i].expr.text));
    for (int i = 0; i < k->n_required; i++)
        kl_buf_printf(&b, "//! require %.*s\n", KL_STR_ARG(k->required[i].text));
    if (k->threads.text.len) kl_buf_printf(&b, "//! threads %.*s\n", KL_STR_ARG(k->threads.text));
    if (k->nondeterministic) kl_buf_printf(&b, "//! nondeterministic\n");
    kl_buf_printf(&room, "0");
    for (int i = 0; i < k->n_buffers; i++) check_buffer(&room, &k->buffers[i]);
    kl_buf_printf(&b,
                  "//! buffer klx_workspace: u8[max(1, %s)]\n"
                  "//! launch %s_checked args(%sklx_workspace, i64(%s))\n",
                  room.ptr, x->name, check_arguments(x).ptr, room.ptr);
    kl_buf_fini(&room);
    return kl_buf_take(&b, x->arena);
}

/* Its directives are none here. */
static kl_str source_without_directives(const kli_export *x) {
    kl_str out = kl_arena_copy(x->arena, x->kernel->source);
    char *text = KL_ARRAY(x->arena, char, out.len + 1);
    memcpy(text, out.ptr, out.len);
    for (size_t i = 0; i + 2 < out.len; i++)
        if (memcmp(text + i, "//!", 3) == 0) text[i + 2] = ' ';
    return (kl_str){text, out.len};
}

kl_err kli_export_checkable(kl_kernel **out, const kli_export *x, kl_error *e) {
    if (kli_is_device_code(x)) {
        kl_fail(e, KL_EINVAL, "--check",
                "the gate judges a launcher only where it is native code; a launcher of device "
                "code is host code, which no candidate has");
        return kl_hint(e, "leave --check out; docs/how-to/export.md says how to try it on a GPU");
    }
    kli_values v = {0};
    c_values(&v, x);
    kli_value_set(&v, "include", kli_template(&v, "header"));
    kli_value_set(&v, "launcher", kli_template(&v, "launcher"));
    kli_value_set(&v, "directives", check_directives(x));
    kli_value_set(&v, "source", source_without_directives(x));
    const kl_str path =
        kl_arena_printf(x->arena, "%s as exported%s", x->name, x->kernel->surface->suffix);
    const kl_kernel_opts opts = {0};
    return kl_kernel_parse(out, x->arena, kli_template(&v, "check"), path, x->kernel->surface,
                           &opts, e);
}
