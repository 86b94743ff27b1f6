/* cmd_task.c - `klineage task list|show|check`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/request.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"

static json_t *cmd_task_begin(const char *schema) {
    return json_pack("{ss si}", "schema", schema, "version", 1);
}

/* ---- list -------------------------------------------------------------------------------- */

#define SUMMARY_BYTES 64 /* keeps a row within a terminal; `task show` has the rest */

/* The first sentence of a description, or as much as fits. */
static kl_str summary_of(kl_arena *a, kl_str text) {
    size_t n = 0;
    while (n < text.len && text.ptr[n] != '\n' &&
           !(text.ptr[n] == '.' && (n + 1 == text.len || text.ptr[n + 1] == ' ')))
        n++;
    if (n <= SUMMARY_BYTES) return (kl_str){text.ptr, n};
    KL_ASSERT(n <= text.len);
    while (n > SUMMARY_BYTES - 3 || (n && text.ptr[n] != ' ')) n--;
    return kl_arena_printf(a, "%.*s ...", (int)n, text.ptr);
}

static json_t *cmd_task_list_row(kl_buf *text, kl_arena *a, const kl_task *t, kl_str path) {
    int hidden = 0;
    for (int i = 0; i < t->n_workloads; i++) hidden += t->workloads[i].hidden;
    kl_buf_printf(text, "%-16.*s %2d shapes, %d hidden  %.*s\n",
                  KL_STR_ARG(kli_fs_basename(path.ptr)), t->n_workloads - hidden, hidden,
                  KL_STR_ARG(summary_of(a, t->description)));
    return json_pack("{so so so so so ss}", "name", kli_json_str(t->name), "path",
                     kli_json_str(path), "case", kli_json_str(t->case_name), "description",
                     kli_json_str(t->description), "workloads", json_integer(t->n_workloads),
                     "hash", t->hash);
}

kl_err kli_cmd_task_list(kli_context *c, const kli_args *args, kli_command_result *out,
                         kl_error *e) {
    (void)args;
    kl_str *paths;
    size_t n;
    kl_err err = kli_request_tasks(&paths, &n, c->arena, e);
    if (err) return err;
    json_t *tasks = json_array();
    for (size_t i = 0; i < n; i++) {
        kl_task *t;
        kl_error why = {0};
        if (kl_task_load(&t, c->arena, paths[i].ptr, &why))
            kli_warn("%s: %s", why.where[0] ? why.where : paths[i].ptr, why.message);
        else
            json_array_append_new(tasks, cmd_task_list_row(&out->text, c->arena, t, paths[i]));
    }
    out->json = cmd_task_begin("klineage/tasks");
    json_object_set_new(out->json, "tasks", tasks);
    if (n == 0) kli_warn("no tasks found; set KLINEAGE_TASKS to their folder");
    return KL_OK;
}

/* ---- show -------------------------------------------------------------------------------- */

static const char *host_text(kl_host_kind on) {
    return on == KL_ON_ANY ? "any" : on == KL_ON_CPU ? "cpu" : "gpu";
}

static json_t *axes_json(kl_buf *text, const kl_task *t) {
    json_t *list = json_array();
    kl_buf_printf(text, "\naxes\n");
    for (int i = 0; i < t->n_axes; i++) {
        const kl_axis *x = &t->axes[i];
        json_t *o = json_object();
        json_object_set_new(o, "name", kli_json_str(x->name));
        kl_buf_printf(text, "  %-12.*s ", KL_STR_ARG(x->name));
        if (x->kind == KL_AXIS_CONST) {
            kl_buf_printf(text, "= %lld\n", (long long)x->value);
            json_object_set_new(o, "value", json_integer(x->value));
        } else if (x->kind == KL_AXIS_EXPR) {
            kl_buf_printf(text, "= %.*s\n", KL_STR_ARG(x->expr));
            json_object_set_new(o, "expr", kli_json_str(x->expr));
        } else {
            kl_buf_printf(text, "varies by workload\n");
        }
        json_array_append_new(list, o);
    }
    return list;
}

static void cmd_task_check_text(kl_buf *out, const kl_tensor *x) {
    if (x->check.kind == KL_CHECK_EXACT)
        kl_buf_printf(out, "exact");
    else if (x->check.kind == KL_CHECK_TOPK)
        kl_buf_printf(out, "top-k of %.*s", KL_STR_ARG(x->check.input));
    else
        kl_buf_printf(out, "error at most %g x that of the naive kernel", x->check.budget);
    if (x->check.kind == KL_CHECK_BUDGET && (x->check.rtol > 0 || x->check.atol > 0))
        kl_buf_printf(out, ", rtol %g, atol %g", x->check.rtol,
                      x->check.atol); /* else those of each workload's type */
}

static json_t *tensor_json(kl_buf *text, const kl_tensor *x) {
    const char *role = x->is_output    ? "output"
                       : x->is_scalar  ? "scalar"
                       : x->is_mutable ? "in place"
                                       : "input";
    json_t *dims = json_array();
    kl_buf shape = {0};
    for (int i = 0; i < x->ndim; i++) {
        kl_buf_printf(&shape, "%s%.*s", i ? ", " : "", KL_STR_ARG(x->dims[i]));
        json_array_append_new(dims, kli_json_str(x->dims[i]));
    }
    kl_buf_printf(text, "  %-8s %-12.*s %-9s [%s]", role, KL_STR_ARG(x->name),
                  kl_dtype_name(x->dtype), shape.len ? shape.ptr : "");
    if (x->is_output) {
        kl_buf_printf(text, "  ");
        cmd_task_check_text(text, x);
    }
    kl_buf_printf(text, "\n");
    kl_buf_fini(&shape);
    return json_pack("{so ss ss so}", "name", kli_json_str(x->name), "role", role, "dtype",
                     kl_dtype_name(x->dtype), "shape", dims);
}

static json_t *workload_json(kl_buf *text, const kl_task *t, const kl_workload *w) {
    json_t *axes = json_object();
    kl_buf_printf(text, "  %-12.*s %-3s %s", KL_STR_ARG(w->label), host_text(w->on),
                  w->hidden ? "hidden" : "      ");
    for (int i = 0; i < t->n_axes; i++) {
        kl_buf_printf(text, " %.*s=%lld", KL_STR_ARG(t->axes[i].name), (long long)w->axes[i]);
        json_object_setn_new(axes, t->axes[i].name.ptr, t->axes[i].name.len,
                             json_integer(w->axes[i]));
    }
    kl_buf_printf(text, "\n");
    return json_pack("{so so ss sb so}", "uuid", kli_json_str(w->uuid), "label",
                     kli_json_str(w->label), "on", host_text(w->on), "hidden", w->hidden, "axes",
                     axes);
}

static json_t *baseline_json(kl_buf *text, const kl_baseline *b) {
    kl_buf_printf(text, "  %-12.*s %-3s %.*s\n", KL_STR_ARG(b->name), host_text(b->on),
                  KL_STR_ARG(b->file));
    return json_pack("{so ss so}", "name", kli_json_str(b->name), "on", host_text(b->on), "file",
                     kli_json_str(b->file));
}

kl_err kli_cmd_task_show(kli_context *c, const kli_args *args, kli_command_result *out,
                         kl_error *e) {
    kl_task *t;
    kl_err err = kli_request_task(&t, c->arena, args->words[0], e);
    if (err) return err;
    json_t *o = cmd_task_begin("klineage/task"), *tensors = json_array(), *workloads = json_array(),
           *baselines = json_array();
    kl_buf_printf(&out->text, "%.*s  %.*s\n", KL_STR_ARG(t->name), KL_STR_ARG(t->description));
    json_object_set_new(o, "name", kli_json_str(t->name));
    json_object_set_new(o, "description", kli_json_str(t->description));
    json_object_set_new(o, "case", kli_json_str(t->case_name));
    json_object_set_new(o, "path", kli_json_str(t->dir));
    json_object_set_new(o, "hash", json_string(t->hash));
    json_object_set_new(o, "axes", axes_json(&out->text, t));
    kl_buf_printf(&out->text, "\ntensors, in argument order\n");
    for (int i = 0; i < t->n_tensors; i++)
        json_array_append_new(tensors, tensor_json(&out->text, &t->tensors[i]));
    kl_buf_printf(&out->text, "\nworkloads\n");
    for (int i = 0; i < t->n_workloads; i++)
        json_array_append_new(workloads, workload_json(&out->text, t, &t->workloads[i]));
    kl_buf_printf(&out->text, t->n_baselines ? "\nbaselines\n" : "\nbaselines: none\n");
    for (int i = 0; i < t->n_baselines; i++)
        json_array_append_new(baselines, baseline_json(&out->text, &t->baselines[i]));
    kl_buf_printf(&out->text, "\nfolder %.*s\nversion %.16s\n", KL_STR_ARG(t->dir), t->hash);
    json_object_set_new(o, "tensors", tensors);
    json_object_set_new(o, "workloads", workloads);
    json_object_set_new(o, "baselines", baselines);
    out->json = o;
    return KL_OK;
}

/* ---- check ------------------------------------------------------------------------------- */

/* Why a wrong answer failed is no news; why a right one failed, or a wrong one passed, is. */
static json_t *admission_json(kl_buf *text, const kl_admission_row *r) {
    bool right = r->passed == r->expected_pass;
    kl_buf_printf(text, "  %-4s %-44.*s %s, %s", right ? "ok" : "BAD", KL_STR_ARG(r->name),
                  r->passed ? "passes" : "fails",
                  right              ? "as it must"
                  : r->expected_pass ? "but must pass"
                                     : "but must fail");
    if (!right && r->why.len) kl_buf_printf(text, ": %.*s", KL_STR_ARG(r->why));
    kl_buf_printf(text, "\n");
    return json_pack("{so sb sb so}", "name", kli_json_str(r->name), "expected_pass",
                     r->expected_pass, "passed", r->passed, "why", kli_json_str(r->why));
}

static bool has_gpu(kl_arena *a) {
    kl_device device;
    return kl_device_probe(&device, a, KL_BACKEND_CUDA, kl_ignored()) == KL_OK;
}

static bool has_shapes(const kl_task *t, kl_host_kind on) {
    return kl_task_workload(t, (kl_str){0}, on) != NULL;
}

/* A check is only known to be fair when a plain kernel passes it. */
static bool task_has_naive(kl_arena *a, const kl_task *t, kl_host_kind on) {
    return kli_fs_exists(kli_fs_join(a, t->dir.ptr, kl_surface_of_host(on)->naive).ptr);
}

/* Admit on every kind of host that this machine is and the task has shapes for. */
static kl_err admit(kli_context *c, const kl_task *t, kl_host_kind on, kl_gate *gate, json_t *rows,
                    bool *sound, const char **half, kl_buf *text, kl_error *e) {
    kl_admission_row *row;
    int n;
    if (!has_shapes(t, on)) return KL_OK;
    kl_err err = kl_gate_admit_task(&row, &n, gate, c->arena, t, on, e);
    if (err) return err;
    kl_buf_printf(text, "%.*s on %s\n", KL_STR_ARG(t->name), host_text(on));
    for (int i = 0; i < n; i++) {
        *sound &= row[i].passed == row[i].expected_pass;
        json_array_append_new(rows, admission_json(text, &row[i]));
    }
    if (task_has_naive(c->arena, t, on)) return KL_OK;
    *half = kl_surface_of_host(on)->naive;
    kl_buf_printf(text, "  --   no %s: that a plain kernel passes is not shown\n", *half);
    return KL_OK;
}

kl_err kli_cmd_task_check(kli_context *c, const kli_args *args, kli_command_result *out,
                          kl_error *e) {
    kl_task *t;
    kl_gate *gate = NULL;
    json_t *rows = json_array();
    bool sound = true;
    const char *half = NULL; /* the naive kernel that is missing */
    kl_err err = kli_request_task(&t, c->arena, args->words[0], e);
    if (!err) err = kl_gate_open(&gate, e);
    if (!err) err = admit(c, t, KL_ON_CPU, gate, rows, &sound, &half, &out->text, e);
    if (!err && has_gpu(c->arena))
        err = admit(c, t, KL_ON_GPU, gate, rows, &sound, &half, &out->text, e);
    if (!err && json_array_size(rows) == 0)
        err = kl_fail(e, KL_ENODEV, args->words[0],
                      "the task has no shape for this machine, so it was not checked");
    kl_gate_close(gate);
    if (err) return json_decref(rows), err;
    if (sound && half)
        kl_buf_printf(&out->text,
                      "half admitted: its check rejects wrong answers; write %s, as in "
                      "docs/how-to/add-a-task.md\n",
                      half);
    else
        kl_buf_printf(&out->text, sound ? "admitted: its check rejects wrong kernels\n"
                                        : "NOT admitted: see the lines marked BAD\n");
    out->json = cmd_task_begin("klineage/admission");
    json_object_set_new(out->json, "task", kli_json_str(t->name));
    json_object_set_new(out->json, "hash", json_string(t->hash));
    json_object_set_new(out->json, "admitted", json_boolean(sound && !half));
    json_object_set_new(out->json, "rows", rows);
    out->exit_code = sound && !half ? 0 : 1;
    return KL_OK;
}
