/* torch.c - the forms `torch` and `kernelbench`: a package whose operator calls the launcher of the
 * form `c`, which lies inside it.
 *
 * Not here: gradients, and shapes that the launcher refuses; both raise.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include <string.h>

/* The files of the form `c`, in a folder of the package. */
kl_err kli_export_native(kli_export_files *out, const kli_export *x, const char *folder,
                         kl_error *e) {
    kli_export_files native = {0};
    const kl_err err = kli_export_c(&native, x, e);
    for (int i = 0; !err && i < native.n; i++)
        kli_files_add(out,
                      kl_arena_printf(x->arena, "%s/%.*s", folder, KL_STR_ARG(native.at[i].path)),
                      native.at[i].text);
    return err;
}

static kl_str in_folder(kl_arena *a, const char *folder, const char *file) {
    return kl_arena_printf(a, "%s%s%s", folder, *folder ? "/" : "", file);
}

static kl_str dashed(const kli_export *x) {
    char *name = KL_ARRAY(x->arena, char, strlen(x->name) + 1);
    for (size_t i = 0; x->name[i]; i++) name[i] = x->name[i] == '_' ? '-' : x->name[i];
    return kl_str_of(name);
}

/* The task's reference, where that is Python and takes what the operator takes: it serves the
 * shapes that the kernel does not. */
static bool has_reference(const kli_export *x) {
    return x->task->python_reference.len && !kli_untold_axis(x);
}

static void package_files(kli_values *v, kli_export_files *out, const kli_export *x,
                          const char *folder) {
    kl_arena *a = x->arena;
    kli_operator_values(v, x);
    kli_value_set(v, "reference",
                  has_reference(x) ? KL_S("from . import reference") : KL_S("reference = None"));
    kli_files_add(out, in_folder(a, folder, "__init__.py"), kli_template(v, "torch"));
    if (has_reference(x))
        kli_files_add(out, in_folder(a, folder, "reference.py"), x->task->python_reference);
}

/* What shows that the package does what PyTorch wants, and how pip finds it. */
static void project_files(kli_values *v, kli_export_files *out, const kli_export *x) {
    kli_value_set(v, "dashed", dashed(x));
    kli_value_set(v, "package", kl_str_of(x->name));
    kli_files_add(out, kl_arena_printf(x->arena, "test_%s.py", x->name),
                  kli_template(v, "test_torch"));
    kli_files_add(out, KL_S("pyproject.toml"), kli_template(v, "pyproject"));
}

static kl_err native_package(kli_values *v, kli_export_files *out, const kli_export *x,
                             const char *folder, kl_error *e) {
    kl_arena *a = x->arena;
    const kl_err err = kli_python_values(v, x, e);
    if (err) return err;
    kli_value_set(v, "inner", KL_S("native"));
    package_files(v, out, x, folder);
    kli_files_add(out, in_folder(a, folder, "native.py"), kli_template(v, "native"));
    return kli_export_native(out, x, in_folder(a, folder, "native").ptr, e);
}

kl_err kli_export_torch(kli_export_files *out, const kli_export *x, kl_error *e) {
    kli_values v = {0};
    const kl_err err = native_package(&v, out, x, x->name, e);
    if (!err) project_files(&v, out, x);
    return err;
}

kl_err kli_export_triton(kli_export_files *out, const kli_export *x, kl_error *e) {
    kli_values v = {0};
    const kl_err err = kli_triton_files(&v, out, x, x->name, e);
    if (err) return err;
    package_files(&v, out, x, x->name);
    project_files(&v, out, x);
    return KL_OK;
}

kl_err kli_export_kernelbench(kli_export_files *out, const kli_export *x, kl_error *e) {
    kli_values v = {0};
    const kl_err err = native_package(&v, out, x, x->name, e);
    if (err) return err;
    kli_value_set(&v, "task", kli_export_name(x->arena, x->task->name));
    kli_files_add(out, KL_S("model_new.py"), kli_template(&v, "kernelbench"));
    return KL_OK;
}

/* ---- Hugging Face kernels ---------------------------------------------------------------- */

/* "batched-gemm": ^[a-z][-a-z0-9]*[a-z0-9]$ */
static kl_str hub_name(const kli_export *x) {
    const kl_str from = dashed(x);
    char *name = KL_ARRAY(x->arena, char, from.len + 3);
    size_t n = 0;
    for (size_t i = 0; i < from.len; i++) {
        const char c =
            from.ptr[i] >= 'A' && from.ptr[i] <= 'Z' ? (char)(from.ptr[i] + 32) : from.ptr[i];
        if (n || (c >= 'a' && c <= 'z')) name[n++] = c;
    }
    while (n && name[n - 1] == '-') n--;
    if (n < 2) name[n++] = 'k', name[n++] = 'l';
    return (kl_str){name, n};
}

static void kernels_values(kli_values *v, const kli_export *x) {
    const bool device = kli_is_device_code(x);
    const kl_str name = hub_name(x);
    char *module = KL_ARRAY(x->arena, char, name.len + 1);
    for (size_t i = 0; i < name.len; i++) module[i] = name.ptr[i] == '-' ? '_' : name.ptr[i];
    kli_value_set(v, "hub_name", name);
    kli_value_set(v, "hub_module", (kl_str){module, name.len});
    kli_value_set(v, "hub_backend", device ? KL_S("cuda") : KL_S("cpu"));
    kli_value_set(v, "hub_id",
                  kl_arena_printf(x->arena, "_%s_%s_%.12s", module, device ? "cuda" : "cpu",
                                  x->kernel->hash));
}

kl_err kli_package(kli_values *v, kli_export_files *out, const kli_export *x, const char *folder,
                   kl_error *e) {
    if (!(x->kernel->surface->families & KL_FAMILY_TRITON))
        return native_package(v, out, x, folder, e);
    const kl_err err = kli_triton_files(v, out, x, folder, e);
    if (!err) package_files(v, out, x, folder);
    return err;
}

kl_err kli_export_kernels(kli_export_files *out, const kli_export *x, kl_error *e) {
    kli_values v = {0};
    kl_arena *a = x->arena;
    const char *folder =
        kl_arena_printf(a, "build/torch-%s", kli_is_device_code(x) ? "cuda" : "cpu").ptr;
    const kl_err err = kli_package(&v, out, x, folder, e);
    if (err) return err;
    kernels_values(&v, x);
    kli_files_add(out, in_folder(a, folder, "metadata.json"), kli_template(&v, "kernels_metadata"));
    kli_files_add(out, KL_S("README.md"), kli_template(&v, "kernels_card"));
    kli_files_add(out, kl_arena_printf(a, "test_%s.py", x->name), kli_template(&v, "kernels_test"));
    return KL_OK;
}
