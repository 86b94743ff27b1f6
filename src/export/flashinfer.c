/* flashinfer.c - the form `flashinfer`: a Solution and a Trace as FlashInfer-Bench reads them.
 *
 * The language of the Solution is python, because its entry is main.py, which builds the launcher
 * and calls it; the kernel's source is among the sources.  The Trace says what the gate measured:
 * its reference time is that of the verdict's first baseline, which `log` names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include "base/json.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

static json_t *source_of(const char *path, kl_str text) {
    return json_pack("{ss so}", "path", path, "content", kli_json_str(text));
}

static json_t *sources_json(const kli_export_files *files) {
    json_t *list = json_array();
    for (int i = 0; i < files->n; i++)
        json_array_append_new(list, source_of(files->at[i].path.ptr, files->at[i].text));
    return list;
}

/* "NVIDIA_H200" */
static kl_str hardware(const kli_export *x) {
    kl_str out =
        kl_arena_copy(x->arena, x->verdict.device.len ? x->verdict.device : KL_S("unknown"));
    char *text = KL_ARRAY(x->arena, char, out.len + 1);
    for (size_t i = 0; i < out.len; i++)
        text[i] = isalnum((unsigned char)out.ptr[i]) ? out.ptr[i] : '_';
    return (kl_str){text, out.len};
}

static kl_str solution_name(const kli_export *x) {
    return kl_arena_printf(x->arena, "%s_klineage_%.8s", x->name, x->kernel->hash);
}

static json_t *solution_json(const kli_export *x, const kli_export_files *files) {
    return json_pack(
        "{so so ss s{ss s[s] ss s[] sb sn} so so}", "name", kli_json_str(solution_name(x)),
        "definition", kli_json_str(x->task->name), "author", "klineage", "spec", "language",
        "python", "target_hardware", kli_is_device_code(x) ? "cuda" : "cpu", "entry_point",
        "main.py::run", "dependencies", "destination_passing_style", 1, "binding", "sources",
        sources_json(files), "description",
        kli_json_str(kl_arena_printf(x->arena,
                                     "kernel %.16s of surface %s behind its launcher; main.py "
                                     "builds it with make and cc",
                                     x->kernel->hash, x->kernel->surface->name)));
}

/* ---- trace ------------------------------------------------------------------------------- */

static json_t *trace_inputs(const kli_export *x) {
    json_t *inputs = json_object();
    for (int i = 0; i < x->task->n_inputs; i++) {
        const kl_tensor *t = &x->task->tensors[i];
        const kl_dist *d = &x->workload->dists[i];
        json_t *how;
        if (t->is_scalar)
            how = json_pack("{ss so}", "type", "scalar", "value",
                            kl_dtype_is_float(x->workload->dtypes[i])
                                ? json_real(x->workload->scalars[i])
                                : json_integer((json_int_t)x->workload->scalars[i]));
        else if (d->kind == KL_DIST_FILE)
            how = json_pack("{ss so so}", "type", "safetensors", "path", kli_json_str(d->file),
                            "tensor_key", kli_json_str(d->tensor_key));
        else
            how = json_pack("{ss}", "type", "random");
        json_object_set_new(inputs, kl_arena_copy(x->arena, t->name).ptr, how);
    }
    return inputs;
}

static json_t *workload_json(const kli_export *x) {
    json_t *axes = json_object();
    for (int i = 0; i < x->task->n_axes; i++)
        if (x->task->axes[i].kind == KL_AXIS_VAR)
            json_object_set_new(axes, kl_arena_copy(x->arena, x->task->axes[i].name).ptr,
                                json_integer((json_int_t)x->workload->axes[i]));
    return json_pack("{so so so}", "axes", axes, "inputs", trace_inputs(x), "uuid",
                     kli_json_str(x->workload->uuid.len ? x->workload->uuid : x->workload->label));
}

static json_t *correctness(const kli_export *x) {
    double relative = 0, absolute = 0;
    for (int i = 0; i < x->verdict.n_checks; i++) {
        relative = fmax(relative, x->verdict.checks[i].rms_error);
        absolute = fmax(absolute, x->verdict.checks[i].max_abs_error);
    }
    return json_pack("{so so s{ss ss}}", "max_relative_error", kli_json_real(relative),
                     "max_absolute_error", kli_json_real(absolute), "extra", "receipt",
                     x->verdict.receipt, "relative_error_is", "relative RMS error of an output");
}

static json_t *trace_json(const kli_export *x) {
    const kl_comparison *m = &x->verdict.comparisons[0];
    const kl_str log = kl_arena_printf(
        x->arena, "klineage verdict %.12s; reference is %.*s; ratio %.4f [%.4f, %.4f] %s",
        x->verdict_key, KL_STR_ARG(m->baseline), m->ratio, m->low, m->high,
        kl_decision_name(m->call));
    return json_pack("{so so so s{ss s{so s{so}} so so so s{sf sf sf}}}", "definition",
                     kli_json_str(x->task->name), "workload", workload_json(x), "solution",
                     kli_json_str(solution_name(x)), "evaluation", "status", "PASSED",
                     "environment", "hardware", kli_json_str(hardware(x)), "libs", "toolchain",
                     kli_json_str(x->verdict.toolchain), "timestamp",
                     kli_json_str(x->verdict.created), "log", kli_json_str(log), "correctness",
                     correctness(x), "performance", "latency_ms", m->candidate_ns * 1e-6,
                     "reference_latency_ms", m->baseline_ns * 1e-6, "speedup_factor", m->ratio);
}

static void add_json(kli_export_files *out, const kli_export *x, const char *path, json_t *o) {
    kli_files_add(out, kl_str_of(path), kli_json_dump(x->arena, o, true));
    json_decref(o);
}

kl_err kli_export_flashinfer(kli_export_files *out, const kli_export *x, kl_error *e) {
    kli_values v = {0};
    kli_export_files sources = {0};
    if (!x->verdict.n_comparisons) {
        kl_fail(e, KL_EINVAL, x->kernel->path.ptr,
                "a Trace says how fast it is, and its verdict "
                "was not timed");
        return kl_hint(e, "klineage gate %.*s %.100s", KL_STR_ARG(x->task->name),
                       x->kernel->path.ptr);
    }
    kl_err err = kli_python_values(&v, x, e);
    if (err) return err;
    const kl_axis *untold = kli_untold_axis(x);
    if (untold)
        return kl_fail(e, KL_EINVAL, x->task->name.ptr,
                       "no tensor has the axis %.*s, and a Solution is given tensors alone",
                       KL_STR_ARG(untold->name));
    kli_files_add(&sources, KL_S("main.py"), kli_template(&v, "flashinfer"));
    kli_files_add(&sources, KL_S("native.py"), kli_template(&v, "native"));
    err = kli_export_native(&sources, x, "native", e);
    if (err) return err;
    add_json(out, x, "solution.json", solution_json(x, &sources));
    add_json(out, x, "trace.json", trace_json(x));
    return KL_OK;
}
