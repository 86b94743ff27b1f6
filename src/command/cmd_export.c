/* cmd_export.c - `klineage export`: a kernel that passed the gate, as files for its users.
 *
 * Journal, then files in memory, then the gate on the launcher where it is asked for, and the
 * folder last: what is written is complete.  SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "command/request.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/proc.h"
#include "export/export.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The export against the kernel: above 1 it is faster. */
typedef struct {
    double ratio, low, high;
    kl_decision call;
} turned;

typedef struct {
    kli_context *context;
    const kli_args *args;
    kl_kernel *kernel;
    kl_task *task;
    kli_export x;
    const kli_export_form *form;
    kli_export_files files;
    kl_verdict checked; /* with --check */
    turned compared;
    json_t *overhead;
} export_ctx;

/* ---- what is asked ----------------------------------------------------------------------- */

static const kli_export_form *form_named(const char *name) {
    for (int i = 0; kli_export_form_each(i); i++)
        if (strcmp(kli_export_form_each(i)->name, name ? name : "c") == 0)
            return kli_export_form_each(i);
    return NULL;
}

static kl_err no_verdict(const export_ctx *c, kl_error *e) {
    const char *task = c->args->values[KL_OPTION_TASK];
    return kl_hint(e, "only what passed can be exported: klineage gate %.40s %.100s",
                   task ? task : "TASK", c->args->words[0]);
}

/* The journal decides which task it is, where --task does not. */
static kl_err look_up(export_ctx *c, kl_error *e) {
    kl_arena *a = c->context->arena;
    const char *task = c->args->values[KL_OPTION_TASK];
    kl_store *store = NULL;
    kl_err err = task ? kli_request_task(&c->task, a, task, e) : KL_OK;
    if (!err) err = kli_journal_open(&store, a, c->args, e);
    if (!err)
        err = kli_export_find(&c->x, store, c->task ? kl_task_hash(c->task) : NULL,
                              c->args->values[KL_OPTION_WORKLOAD], e);
    kl_store_close(store);
    if (err == KL_ENOENT) return no_verdict(c, e), err;
    if (!err && !c->task) err = kli_request_task(&c->task, a, c->x.verdict.task.ptr, e);
    if (err) return err;
    if (kl_str_eq(kl_str_of(kl_task_hash(c->task)), c->x.verdict.task_hash)) return KL_OK;
    kl_fail(e, KL_EINVAL, c->args->words[0], "it passed another version of the task %.*s",
            KL_STR_ARG(c->task->name));
    return kl_hint(e, "klineage gate %.40s %.100s", c->task->name.ptr, c->args->words[0]);
}

static kl_err name_it(export_ctx *c, kl_error *e) {
    const char *named = c->args->values[KL_OPTION_NAME];
    c->x.name = named ? named : kli_export_default_name(c->context->arena, c->task).ptr;
    if (kli_export_is_name(c->x.name)) return KL_OK;
    kl_fail(e, KL_EINVAL, c->x.name, "a function of C cannot have this name");
    return kl_hint(e, "letters, digits and _, no word of C or Python: --name my_kernel");
}

/* ---- device code ------------------------------------------------------------------------- */

/* The GPU that is here, or the one that --arch names. */
static kl_err export_device(kl_device *out, const export_ctx *c, kl_error *e) {
    kl_arena *a = c->context->arena;
    const char *arch = c->args->values[KL_OPTION_ARCH];
    const kl_backend *b = kli_backend_of_surface(c->kernel->surface, 0);
    kl_err err = KL_ENODEV;
    if (!arch) err = kl_device_probe(out, a, b->id, kl_ignored());
    return err ? kl_device_target(out, a, b->id, arch, e) : KL_OK;
}

static kl_err prepare(export_ctx *c, kl_error *e) {
    kl_arena *a = c->context->arena;
    kl_device device = {0};
    const bool is_source = c->kernel->surface->build_flags != NULL;
    kl_err err = kli_request_workload(&c->x.workload, a, c->task, c->kernel->surface->on,
                                      c->x.verdict.workload.ptr, e);
    if (!err) err = name_it(c, e);
    if (!err && is_source && kl_device_of_surface(&device, a, c->kernel->surface, 0, kl_ignored()))
        device = (kl_device){0}; /* it was gated elsewhere */
    if (!err && !is_source) err = export_device(&device, c, e);
    if (err) return err;
    if (!device.limits.sms) device.limits.sms = 1; /* no size depends on how many there are */
    c->x.task = c->task;
    c->x.domain = kli_export_domain(c->task, c->kernel, c->x.workload, &device.limits);
    err = kli_export_fits(&c->x, e);
    return err || is_source ? err : kli_export_compile(&c->x, &device, e);
}

/* ---- the gate on the export -------------------------------------------------------------- */

/* The gate timed the kernel against the export. */
static turned turn(const kl_comparison *m) {
    turned t = {1 / m->ratio, 1 / m->high, 1 / m->low, KL_DECISION_UNDECIDED};
    t.call = kl_decide(t.low, t.high, m->noise, m->stable);
    return t;
}

static json_t *check_json(const export_ctx *c, const char *key) {
    const kl_verdict *v = &c->checked;
    const kl_comparison *m = v->n_comparisons ? &v->comparisons[0] : NULL;
    const turned t = m ? c->compared : (turned){0};
    json_t *whole = kl_verdict_json(v);
    json_t *receipt = json_incref(json_object_get(whole, "receipt"));
    json_decref(whole);
    return json_pack("{ss ss so so so so so so so so}", "key", key, "outcome",
                     kl_outcome_name(v->outcome), "why", kli_json_str(v->why), "receipt", receipt,
                     "ratio", m ? kli_json_real(t.ratio) : json_null(), "low",
                     m ? kli_json_real(t.low) : json_null(), "high",
                     m ? kli_json_real(t.high) : json_null(), "floor",
                     m ? kli_json_real(m->noise) : json_null(), "call",
                     m ? json_string(kl_decision_name(t.call)) : json_null(), "overhead",
                     c->overhead ? json_incref(c->overhead) : json_null());
}

/* Kept before it is shown, as every verdict.  The key says which export it was, too. */
static kl_err keep_check(export_ctx *c, const char *gate_key, kl_error *e) {
    kl_store *journal = NULL;
    kl_arena *a = c->context->arena;
    kl_str parts[KLI_EXPORT_FILES + 2];
    int n = 0;
    parts[n++] = kl_str_of(gate_key);
    parts[n++] = kl_str_of(c->form->name);
    for (int i = 0; i < c->files.n; i++) parts[n++] = c->files.at[i].text;
    kl_hash key = kli_hash_parts(parts, (size_t)n);
    kl_err err = kli_journal_open(&journal, a, c->args, e);
    if (!err) err = kli_verdicts_keep(key.hex, journal, a, &c->checked, e);
    kl_store_close(journal);
    if (!err) c->x.check = check_json(c, key.hex);
    return err;
}

/* Native code whose sizes no tensor tells: launcher and kernel as one kernel, which is the
 * candidate. */
static kl_err judge_launcher(export_ctx *c, kl_gate *gate, kl_gate_opts *opts, kl_error *e) {
    char key[65];
    kl_kernel *launcher;
    kl_arena *a = c->context->arena;
    kl_err err = kli_export_checkable(&launcher, &c->x, e);
    opts->against = c->kernel;
    if (!err) err = kl_gate_run(&c->checked, gate, a, c->task, launcher, opts, e);
    if (!err) err = kl_gate_key(key, gate, a, c->task, launcher, opts, e);
    if (err) return err;
    if (c->checked.n_comparisons) {
        const kl_comparison *m = &c->checked.comparisons[0];
        c->compared = (turned){m->ratio, m->low, m->high, m->call};
    }
    return keep_check(c, key, e);
}

static kl_err build_export(const export_ctx *c, const char *folder, const char *target,
                           kl_error *e) {
    const char *python = getenv("KLINEAGE_PYTHON"), *home = getenv("CUDA_HOME");
    kl_arena *a = c->context->arena;
    const char *argv[] = {
        "make",
        "-s",
        "-C",
        folder,
        target,
        kl_arena_printf(a, "PYTHON=%s", python && *python ? python : "python3").ptr,
        home && *home ? kl_arena_printf(a, "CUDA_HOME=%s", home).ptr : NULL,
        NULL};
    const kli_proc_spec spec = {.argv = argv, .timeout_ns = 300 * 1000000000ll};
    kli_proc_result r;
    const kl_err err = kli_proc_run(&r, a, &spec, e);
    if (err || (r.exit_code == 0 && !r.timed_out)) return err;
    kl_fail(e, KL_EIO, target, "what was exported does not build here: %.300s",
            kl_str_trim(r.err).ptr);
    return kl_hint(e, "leave --check out to get the folder, and look at its Makefile");
}

/* The files as their users get them, built, and what the gate loads of them. */
static kl_err lay_out(const char **checker, const export_ctx *c, const char *folder, kl_error *e) {
    kli_export_checker_text text;
    kl_arena *a = c->context->arena;
    kl_err err = kli_export_checker(&text, &c->x, c->form->name, folder, e);
    if (!err) err = kli_export_write(&c->files, a, folder, true, e);
    if (!err && text.target) err = build_export(c, folder, text.target, e);
    if (err) return err;
    *checker = kli_fs_join(a, folder, text.file).ptr;
    return kli_fs_write(*checker, text.text, e);
}

/* On cores what a call through the export takes more than the kernel, at the smallest shape; on a
 * device what the host needs to enqueue one. */
static kl_err find_overhead(export_ctx *c, kl_gate *gate, const kl_gate_opts *opts,
                            const char *folder, kl_error *e) {
    kl_arena *a = c->context->arena;
    kl_gate_opts tiny = *opts;
    kl_verdict v = {0};
    kl_str text = {0};
    const bool device = c->kernel->surface->on == KL_ON_GPU;
    if (device) {
        if (!kli_fs_read(&text, a, kli_fs_join(a, folder, "host_ns").ptr, 64, kl_ignored()))
            c->overhead = json_pack("{sI ss}", "ns", (json_int_t)strtoll(text.ptr, NULL, 10), "is",
                                    "host time of a call, least of all");
        return KL_OK;
    }
    tiny.workload = "tiny";
    tiny.quick = true;
    const kl_err err = kl_task_workload(c->task, KL_S("tiny"), KL_ON_CPU)
                           ? kl_gate_run(&v, gate, a, c->task, c->kernel, &tiny, e)
                           : KL_OK;
    if (!err && v.outcome == KL_OUTCOME_PASS && v.n_comparisons)
        c->overhead = json_pack(
            "{sI ss}", "ns",
            (json_int_t)llround(v.comparisons[0].baseline_ns - v.comparisons[0].candidate_ns), "is",
            "a call through the export less one of the kernel, at the tiny shape");
    return err;
}

static kl_err judge_export(export_ctx *c, kl_gate *gate, kl_gate_opts *opts, kl_error *e) {
    char key[65];
    kl_str folder;
    kl_arena *a = c->context->arena;
    kl_err err = kli_fs_temp_dir(&folder, a, e);
    if (err) return err;
    err = lay_out(&opts->through, c, folder.ptr, e);
    if (!err) err = kl_gate_run(&c->checked, gate, a, c->task, c->kernel, opts, e);
    if (!err) err = kl_gate_key(key, gate, a, c->task, c->kernel, opts, e);
    if (!err && c->checked.n_comparisons) c->compared = turn(&c->checked.comparisons[0]);
    if (!err && c->checked.n_comparisons) err = find_overhead(c, gate, opts, folder.ptr, e);
    kli_fs_remove_tree(folder.ptr);
    return err ? err : keep_check(c, key, e);
}

static kl_err check_it(export_ctx *c, kl_error *e) {
    kl_gate *gate = NULL;
    kl_gate_opts opts = {0};
    kl_err err =
        kli_request_options(&opts, c->context->arena, c->args, c->task, c->kernel->surface->on, e);
    opts.workload = c->x.verdict.workload.ptr;
    if (!err) err = kl_gate_open(&gate, e);
    if (err) return err;
    const bool as_kernel = strcmp(c->form->name, "c") == 0 && !kli_export_is_told(&c->x);
    err = as_kernel ? judge_launcher(c, gate, &opts, e) : judge_export(c, gate, &opts, e);
    kl_gate_close(gate);
    return err;
}

/* ---- what came out ----------------------------------------------------------------------- */

static void tell_check(kli_command_result *out, const export_ctx *c) {
    const kl_verdict *v = &c->checked;
    kl_buf_printf(&out->text, "  checked   %s", kl_outcome_name(v->outcome));
    if (v->n_comparisons) {
        const turned *t = &c->compared;
        kl_buf_printf(&out->text, " through the export, %.3fx [%.3f, %.3f] of the kernel: %s",
                      t->ratio, t->low, t->high, kl_decision_name(t->call));
        if (t->call == KL_DECISION_SLOWER) out->exit_code = 1;
    }
    if (c->overhead)
        kl_buf_printf(&out->text, "; %lld ns are its host's",
                      (long long)json_integer_value(json_object_get(c->overhead, "ns")));
    if (v->why.len) kl_buf_printf(&out->text, ": %.*s", KL_STR_ARG(v->why));
    if (v->outcome != KL_OUTCOME_PASS) out->exit_code = kl_verdict_exit_code(v);
    kl_buf_printf(&out->text, "\n");
}

static void tell_export(kli_command_result *out, const export_ctx *c, const char *dir,
                        const json_t *provenance) {
    const kl_verdict *v = &c->x.verdict;
    kl_buf_printf(&out->text, "%s  %s of %.*s as %s\n", dir, c->x.name, KL_STR_ARG(c->task->name),
                  c->form->name);
    kl_buf_printf(&out->text, "  verdict   %.12s, assurance %c on %.*s at %.*s", c->x.verdict_key,
                  v->assurance, KL_STR_ARG(v->platform), KL_STR_ARG(v->workload));
    if (v->n_comparisons)
        kl_buf_printf(&out->text, ", %.3fx [%.3f, %.3f] of %.*s: %s", v->comparisons[0].ratio,
                      v->comparisons[0].low, v->comparisons[0].high,
                      KL_STR_ARG(v->comparisons[0].baseline),
                      kl_decision_name(v->comparisons[0].call));
    kl_buf_printf(&out->text, "\n  sizes     checked at %d shapes; others are refused\n",
                  c->x.domain.shapes);
    if (json_is_null(json_object_get(json_object_get(provenance, "kernel"), "licence")))
        kl_buf_printf(&out->text, "  licence   not known: the source has no SPDX line\n");
    if (c->x.artefact.ok && !kl_str_eq(kl_str_of(c->x.artefact.hash), v->artefact_hash))
        kl_buf_printf(&out->text,
                      "  code      for %.*s, not the code that was judged: another "
                      "architecture or compiler\n",
                      KL_STR_ARG(c->x.arch));
    if (c->x.check) tell_check(out, c);
    kl_buf_printf(&out->text, "  files    ");
    for (int i = 0; i < c->files.n; i++) kl_buf_printf(&out->text, " %s", c->files.at[i].path.ptr);
    kl_buf_printf(&out->text, "\n");
}

static kl_err deliver(export_ctx *c, kli_command_result *out, kl_error *e) {
    kl_arena *a = c->context->arena;
    const char *named = c->args->values[KL_OPTION_OUT];
    const char *dir = named ? named : kl_arena_printf(a, "%s-%s", c->x.name, c->form->name).ptr;
    json_t *provenance = kli_export_provenance(&c->x, c->form->name, &c->files);
    kli_export_files files = c->files;
    files.at[files.n++] =
        (kli_export_file){KL_S("provenance.json"), kli_json_dump(a, provenance, true)};
    const kl_err err = kli_export_write(&files, a, dir, kli_args_has(c->args, KL_OPTION_FORCE), e);
    if (!err) {
        c->files = files;
        tell_export(out, c, dir, provenance);
        out->json = json_pack("{ss si ss sO}", "schema", "klineage/exported", "version", 1,
                              "folder", dir, "provenance", provenance);
    }
    json_decref(provenance);
    return err;
}

kl_err kli_cmd_export(kli_context *context, const kli_args *args, kli_command_result *out,
                      kl_error *e) {
    export_ctx *c = KL_NEW(context->arena, export_ctx);
    c->context = context;
    c->args = args;
    c->form = form_named(args->values[KL_OPTION_AS]);
    KL_ASSERT(c->form); /* the option is a choice */
    c->x.arena = context->arena;
    c->x.into = args->values[KL_OPTION_INTO];
    c->x.replace = args->values[KL_OPTION_REPLACE];
    kl_err err =
        kli_request_sound_kernel(&c->kernel, context->arena, args->words[0], args->params, e);
    c->x.kernel = c->kernel;
    if (!err) err = kli_export_fits_surface(c->kernel, e);
    if (!err) err = look_up(c, e);
    if (!err) err = prepare(c, e);
    if (!err) err = c->form->files(&c->files, &c->x, e);
    if (!err && kli_args_has(args, KL_OPTION_CHECK)) err = check_it(c, e);
    if (!err) err = deliver(c, out, e);
    json_decref(c->x.origin);
    json_decref(c->x.check);
    json_decref(c->overhead);
    return err;
}
