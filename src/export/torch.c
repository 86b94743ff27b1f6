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

static kl_str dashed(const kli_export *x) {
    char *name = KL_ARRAY(x->arena, char, strlen(x->name) + 1);
    for (size_t i = 0; x->name[i]; i++) name[i] = x->name[i] == '_' ? '-' : x->name[i];
    return kl_str_of(name);
}

static kl_err torch_files(kli_values *v, kli_export_files *out, const kli_export *x, kl_error *e) {
    kl_arena *a = x->arena;
    kl_err err = kli_python_values(v, x, e);
    if (err) return err;
    kli_operator_values(v, x);
    kli_value_set(v, "dashed", dashed(x));
    kli_files_add(out, kl_arena_printf(a, "%s/__init__.py", x->name), kli_template(v, "torch"));
    kli_files_add(out, kl_arena_printf(a, "%s/native.py", x->name), kli_template(v, "native"));
    return kli_export_native(out, x, kl_arena_printf(a, "%s/native", x->name).ptr, e);
}

kl_err kli_export_torch(kli_export_files *out, const kli_export *x, kl_error *e) {
    kli_values v = {0};
    const kl_err err = torch_files(&v, out, x, e);
    if (err) return err;
    kli_files_add(out, kl_arena_printf(x->arena, "test_%s.py", x->name),
                  kli_template(&v, "test_torch"));
    kli_files_add(out, KL_S("pyproject.toml"), kli_template(&v, "pyproject"));
    return KL_OK;
}

kl_err kli_export_kernelbench(kli_export_files *out, const kli_export *x, kl_error *e) {
    kli_values v = {0};
    const kl_err err = torch_files(&v, out, x, e);
    if (err) return err;
    kli_value_set(&v, "task", kli_export_name(x->arena, x->task->name));
    kli_files_add(out, KL_S("model_new.py"), kli_template(&v, "kernelbench"));
    return KL_OK;
}
