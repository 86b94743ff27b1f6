/* triton.c - the form `triton`: the kernel's own Python, and a wrapper that launches it as its
 * directives say, inside a package with an operator of PyTorch.
 *
 * Triton compiles it where it runs, so it is for any GPU that Triton knows; what was judged is the
 * code of one.  Only what the gate read of the file may be in it: a file that holds anything else
 * (imports, host functions, decorators) is refused, since importing it would run that.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include <string.h>

/* ---- may it be said in Triton? ----------------------------------------------------------- */

static kl_err refuse_left_out(const kli_export *x, kl_error *e) {
    const kl_str log = x->artefact.log;
    const char *found = log.len ? strstr(log.ptr, "note: left out: ") : NULL;
    if (!found) return KL_OK;
    const char *line = found;
    while (line > log.ptr && line[-1] != '\n') line--;
    kl_fail(e, KL_EINVAL, x->kernel->path.ptr, "the gate left a part of it out, %.*s",
            (int)strcspn(line, "\n"), line);
    return kl_hint(e, "a module runs all of its text: take that out, gate the kernel again");
}

static bool is_wide(const kli_export *x, const kl_arg *arg) {
    const kl_str type = kli_argument_type(x, arg);
    return arg->kind == KL_ARG_I64 || arg->kind == KL_ARG_F64 || kl_str_eq(type, KL_S("double")) ||
           kl_str_eq(type, KL_S("int64_t"));
}

/* Triton's own launcher gives an integer as few bits as it needs, and a real number 32. */
static kl_err refuse_wide(const kli_export *x, kl_error *e) {
    for (int i = 0; i < x->kernel->n_launches; i++)
        for (int j = 0; j < x->kernel->launches[i].n_args; j++) {
            const kl_arg *arg = &x->kernel->launches[i].args[j];
            if (arg->name.len || !is_wide(x, arg)) continue;
            kl_fail(e, KL_EINVAL, x->kernel->path.ptr,
                    "argument %.*s has 64 bits, which Triton's own launcher does not promise",
                    KL_STR_ARG(arg->expr.text));
            return kl_hint(e, "--as torch holds the code that was judged, for such arguments too");
        }
    return KL_OK;
}

static kl_err triton_fits(const kli_export *x, kl_error *e) {
    if (!(x->kernel->surface->families & KL_FAMILY_TRITON)) {
        kl_fail(e, KL_EINVAL, x->kernel->path.ptr, "a kernel of surface %s is not Triton's",
                x->kernel->surface->name);
        return kl_hint(e, "--as torch or --as kernels makes an operator of it");
    }
    const kl_err err = refuse_left_out(x, e);
    return err ? err : refuse_wide(x, e);
}

/* ---- sizes ------------------------------------------------------------------------------- */

#define IN_TRY "        "
#define IN_WITH "        "

static void triton_device(kl_buf *b) {
    kl_buf_printf(b, IN_TRY "properties = torch.cuda.get_device_properties(device)\n" IN_TRY
                            "device_sms = properties.multi_processor_count\n" IN_TRY
                            "device_smem_max = properties.shared_memory_per_block_optin\n");
}

static void triton_lets(kl_buf *b, const kli_export *x) {
    for (int i = 0; i < x->kernel->n_lets; i++) {
        const kl_let *let = &x->kernel->lets[i];
        if (let->real)
            kl_buf_printf(b, IN_TRY "real_%.*s = %s\n", KL_STR_ARG(let->name),
                          kli_python_real_expression(x, let->expr.text).ptr);
        else
            kl_buf_printf(b, IN_TRY "let_%.*s = %s\n", KL_STR_ARG(let->name),
                          kli_python_expression(x, let->expr.text).ptr);
    }
}

static void triton_domain(kl_buf *b, const kli_export *x) {
    for (int i = 0; i < x->task->n_axes; i++) {
        if (x->task->axes[i].kind != KL_AXIS_VAR) continue;
        kl_buf_printf(b, IN_TRY "_within(%s, %lld, %lld)\n",
                      kli_export_name(x->arena, x->task->axes[i].name).ptr,
                      (long long)x->domain.least[i], (long long)x->domain.most[i]);
    }
}

static void triton_key(kl_buf *b, const kli_export *x, const kli_key *key) {
    const char *value = key->scalar ? kli_export_name(x->arena, key->text).ptr
                                    : kli_python_expression(x, key->text).ptr;
    kl_buf_printf(b, key->kind == KLI_KEY_CLASS ? "_class(%s), " : "%s, ", value);
}

/* The classes that Triton compiled for the gate. */
static kl_str triton_classes(const kli_export *x) {
    const kli_keys keys = kli_export_keys(x);
    kl_buf b = {0};
    for (int i = 0; i < x->n_variants; i++) {
        kl_buf_printf(&b, "%s(", i ? ", " : "");
        for (int k = 0; k < keys.n; k++)
            kl_buf_printf(&b, "%lld, ", (long long)x->variants[i].keys[k]);
        kl_buf_printf(&b, ")");
    }
    return kl_buf_take(&b, x->arena);
}

static void triton_admitted(kl_buf *b, const kli_export *x) {
    const kli_keys keys = kli_export_keys(x);
    kl_buf_printf(b, IN_TRY "if (");
    for (int k = 0; k < keys.n; k++) triton_key(b, x, &keys.at[k]);
    kl_buf_printf(b, ") not in CLASSES:\n" IN_TRY "    raise Refused(3, NOT_ADMITTED)\n");
}

static kl_str triton_evaluate(const kli_export *x) {
    kl_buf b = {0};
    triton_device(&b);
    triton_lets(&b, x);
    for (int i = 0; i < x->kernel->n_required; i++)
        kl_buf_printf(&b,
                      IN_TRY "if not %s:\n" IN_TRY
                             "    raise Refused(2, \"a requirement of the kernel does not hold for "
                             "this shape\")\n",
                      kli_python_expression(x, x->kernel->required[i].text).ptr);
    triton_domain(&b, x);
    triton_admitted(&b, x);
    return kl_buf_take(&b, x->arena);
}

/* ---- launches ---------------------------------------------------------------------------- */

static void python_list(kl_buf *b, const kli_export *x, const char *name, const kl_expr *exprs,
                        int n) {
    if (!n) return;
    kl_buf_printf(b, ", %s=[", name);
    for (int i = 0; i < n; i++)
        kl_buf_printf(b, "%s%s", i ? ", " : "", kli_python_expression(x, exprs[i].text).ptr);
    kl_buf_printf(b, "]");
}

static void triton_memory(kl_buf *b, const kli_export *x) {
    for (int i = 0; i < x->kernel->n_buffers; i++) {
        const kl_buffer *m = &x->kernel->buffers[i];
        kl_buf_printf(b, IN_WITH "buffer_%.*s = torch.%s([", KL_STR_ARG(m->name),
                      m->zero ? "zeros" : "empty");
        for (int d = 0; d < m->ndim; d++)
            kl_buf_printf(b, "%s%s", d ? ", " : "", kli_python_expression(x, m->dims[d].text).ptr);
        kl_buf_printf(b, "], dtype=%s, device=device)\n", kli_torch_type(m->dtype));
    }
    for (int i = 0; i < x->kernel->n_tensormaps; i++) {
        const kl_tensormap *m = &x->kernel->tensormaps[i];
        const bool tensor = kl_task_tensor(x->task, m->tensor) >= 0;
        kl_buf_printf(b, IN_WITH "map_%.*s = _view(%s%s", KL_STR_ARG(m->name),
                      tensor ? "" : "buffer_",
                      tensor ? kli_export_name(x->arena, m->tensor).ptr
                             : kl_arena_copy(x->arena, m->tensor).ptr);
        python_list(b, x, "box", m->options[KL_OPT_BOX], m->n_options[KL_OPT_BOX]);
        python_list(b, x, "dims", m->options[KL_OPT_DIMS], m->n_options[KL_OPT_DIMS]);
        python_list(b, x, "strides", m->options[KL_OPT_STRIDES], m->n_options[KL_OPT_STRIDES]);
        kl_buf_printf(b, ")\n");
    }
}

static bool is_named(const kli_export *x, kl_str name, bool buffers) {
    const kl_kernel *k = x->kernel;
    for (int i = 0; i < (buffers ? k->n_buffers : k->n_tensormaps); i++)
        if (kl_str_eq(buffers ? k->buffers[i].name : k->tensormaps[i].name, name)) return true;
    return false;
}

static bool is_real_let(const kli_export *x, kl_str name) {
    for (int i = 0; i < x->kernel->n_lets; i++)
        if (x->kernel->lets[i].real && kl_str_eq(x->kernel->lets[i].name, name)) return true;
    return false;
}

static const char *triton_argument(const kli_export *x, const kl_arg *arg) {
    const kl_str name = arg->expr.text;
    kl_arena *a = x->arena;
    if (arg->kind == KL_ARG_WORD) return kl_arena_copy(a, name).ptr;
    if (arg->kind == KL_ARG_TYPE)
        return kl_arena_printf(a, "_TYPES[%s]",
                               kli_torch_type(x->workload->dtypes[kl_task_tensor(x->task, name)]))
            .ptr;
    if (arg->kind == KL_ARG_F32 || arg->kind == KL_ARG_F64)
        return kli_python_real_expression(x, name).ptr;
    if (arg->kind == KL_ARG_NAME && kl_task_tensor(x->task, name) >= 0)
        return kli_export_name(a, name).ptr;
    if (arg->kind == KL_ARG_NAME && is_named(x, name, true))
        return kl_arena_printf(a, "buffer_%.*s", KL_STR_ARG(name)).ptr;
    if (arg->kind == KL_ARG_NAME && is_named(x, name, false))
        return kl_arena_printf(a, "map_%.*s", KL_STR_ARG(name)).ptr;
    if (arg->kind == KL_ARG_NAME && is_real_let(x, name))
        return kl_arena_printf(a, "real_%.*s", KL_STR_ARG(name)).ptr;
    if (arg->kind == KL_ARG_I64) return kli_python_expression(x, name).ptr;
    return kl_arena_printf(a, "_i32(%s)", kli_python_expression(x, name).ptr).ptr;
}

static void triton_arguments(kl_buf *b, const kli_export *x, const kl_launch *l, bool named) {
    for (int j = 0; j < l->n_args; j++) {
        const kl_arg *arg = &l->args[j];
        if ((arg->name.len > 0) != named) continue;
        if (named) kl_buf_printf(b, "\"%.*s\": ", KL_STR_ARG(arg->name));
        kl_buf_printf(b, "%s, ", triton_argument(x, arg));
    }
}

static void triton_options(kl_buf *b, const kli_export *x, const kl_launch *l) {
    static const struct {
        kl_clause clause;
        const char *name;
        int absent;
    } OPTIONS[] = {{KL_CLAUSE_WARPS, "num_warps", 4},
                   {KL_CLAUSE_STAGES, "num_stages", 3},
                   {KL_CLAUSE_CTAS, "num_ctas", 0},
                   {KL_CLAUSE_MAXNREG, "maxnreg", 0}};
    for (size_t i = 0; i < KL_COUNT(OPTIONS); i++) {
        if (l->n_clauses[OPTIONS[i].clause])
            kl_buf_printf(b, ", %s=%s", OPTIONS[i].name,
                          kli_python_expression(x, l->clauses[OPTIONS[i].clause][0].text).ptr);
        else if (OPTIONS[i].absent)
            kl_buf_printf(b, ", %s=%d", OPTIONS[i].name, OPTIONS[i].absent);
    }
}

static kl_str triton_launches(const kli_export *x) {
    kl_buf b = {0};
    triton_memory(&b, x);
    for (int i = 0; i < x->kernel->n_launches; i++) {
        const kl_launch *l = &x->kernel->launches[i];
        kl_buf_printf(&b, IN_WITH "_launch(\"%.*s\", (", KL_STR_ARG(l->entry));
        for (int d = 0; d < l->n_clauses[KL_CLAUSE_GRID]; d++)
            kl_buf_printf(&b, "%s, ",
                          kli_python_expression(x, l->clauses[KL_CLAUSE_GRID][d].text).ptr);
        kl_buf_printf(&b, "), [");
        triton_arguments(&b, x, l, false);
        kl_buf_printf(&b, "], {");
        triton_arguments(&b, x, l, true);
        kl_buf_printf(&b, "}");
        triton_options(&b, x, l);
        kl_buf_printf(&b, ")\n");
    }
    return kl_buf_take(&b, x->arena);
}

/* ---- files ------------------------------------------------------------------------------- */

/* What -DKL_NAME= says to a compiler of C: params and constant axes. */
static kl_str triton_constexprs(const kli_export *x) {
    kl_buf b = {0};
    for (int i = 0; i < x->kernel->n_params; i++)
        kl_buf_printf(&b, "\"%.*s\": %lld, ", KL_STR_ARG(x->kernel->params[i].name),
                      (long long)x->kernel->params[i].value);
    for (int i = 0; i < x->task->n_axes; i++)
        if (x->task->axes[i].kind == KL_AXIS_CONST)
            kl_buf_printf(&b, "\"%.*s\": %lld, ", KL_STR_ARG(x->task->axes[i].name),
                          (long long)x->workload->axes[i]);
    return kl_buf_take(&b, x->arena);
}

kl_err kli_triton_files(kli_values *v, kli_export_files *out, const kli_export *x,
                        const char *folder, kl_error *e) {
    kl_arena *a = x->arena;
    kl_err err = triton_fits(x, e);
    if (!err) err = kli_python_values(v, x, e);
    if (err) return err;
    kli_value_set(v, "constexprs", triton_constexprs(x));
    kli_value_set(v, "classes", triton_classes(x));
    kli_value_set(v, "evaluate", triton_evaluate(x));
    kli_value_set(v, "launches", triton_launches(x));
    kli_value_set(v, "inner", KL_S("launch"));
    kli_files_add(out, kl_arena_printf(a, "%s%slaunch.py", folder, *folder ? "/" : ""),
                  kli_template(v, "launch"));
    kli_files_add(out, kl_arena_printf(a, "%s%skernel.py", folder, *folder ? "/" : ""),
                  x->kernel->source);
    return KL_OK;
}
