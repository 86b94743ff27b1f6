/* python.c - compilers that are Python packages: which one there is, what its front end is told,
 * and the confined process that it runs in.
 *
 * A front end is a script beside the programs, asked by compile_server.py for {arch, defines,
 * flags, launches, text}; it answers with {completion, and the text of each file that it makes}.
 * What it is told of launches is the text that `specialize` makes of a shape's plan: that text is
 * part of the key, so nothing else about a shape can find its way into an artefact.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python.h"
#include "backend/compile.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include <stdlib.h>

#define MAX_COMPLETION_BYTES ((size_t)1 << 20)

/* ---- the package -------------------------------------------------------------------------- */

/* Prints version, interpreter, its folder and the folder of the package, a line each.  The
 * interpreter is the real one: the folder of an environment need not be readable for a jail.
 * importlib.metadata knows the version too, and takes three times as long as all of this. */
static const char LOOK[] =
    "import os, sys\n"
    "from importlib.machinery import PathFinder\n"
    "spec = PathFinder.find_spec(sys.argv[1])\n"
    "if not spec:\n" /* an editable install has a finder of its own */
    "    import importlib.util\n"
    "    spec = importlib.util.find_spec(sys.argv[1])\n"
    "site = os.path.dirname(list(spec.submodule_search_locations)[0])\n"
    "start, end = sys.argv[1] + '-', '.dist-info'\n"
    "found = [f for f in os.listdir(site) if f.startswith(start) and f.endswith(end)]\n"
    "version = found[0][len(start):-len(end)] if len(found) == 1 else None\n"
    "if not version:\n"
    "    import importlib.metadata\n"
    "    version = importlib.metadata.version(sys.argv[1])\n"
    "print(version, os.path.realpath(sys.executable), sys.base_prefix, site, sep='\\n')\n";

static kl_str next_line(kl_str *rest) {
    size_t n = 0;
    while (n < rest->len && rest->ptr[n] != '\n') n++;
    const kl_str line = {rest->ptr, n};
    *rest = (kl_str){rest->ptr + n, rest->len - n};
    if (rest->len) rest->ptr++, rest->len--;
    return line;
}

static void read_look(kli_python_package *out, kl_arena *a, kl_str said, const char *script) {
    const char **readable = KL_ARRAY(a, const char *, 5);
    out->version = kl_arena_copy(a, next_line(&said));
    out->script.python = kl_arena_copy(a, next_line(&said)).ptr;
    readable[0] = kl_arena_copy(a, next_line(&said)).ptr; /* its standard library */
    out->site = kl_arena_copy(a, next_line(&said));
    out->script.site = readable[1] = out->site.ptr;
    out->script.script = kli_fs_find_part(a, script).ptr;
    readable[2] = kli_fs_dirname(a, out->script.python).ptr;
    readable[3] = kli_fs_dirname(a, out->script.script).ptr;
    out->script.readable = readable;
}

void kli_python_look(kli_python_package *out, const char *name, const char *script,
                     const char *const *modules) {
    kl_arena *a = kl_arena_new(); /* lives as long as the process */
    const char *chosen = getenv("KLINEAGE_PYTHON");
    const kl_str python = kli_fs_find_program(a, chosen && *chosen ? chosen : "python3");
    const char *argv[] = {python.ptr, "-c", LOOK, name, NULL};
    const kli_proc_spec spec = {.argv = argv, .timeout_ns = 20000000000ll};
    kli_proc_result r = {0};
    *out = (kli_python_package){.arena = a, .script.modules = modules};
    if (!python.len)
        out->missing = KL_S("no Python: install python3");
    else if (kli_proc_run(&r, a, &spec, kl_ignored()) || r.exit_code != 0)
        out->missing = kl_arena_printf(a,
                                       "no %s package: python3 -m pip install %s, or name a Python "
                                       "that has it in KLINEAGE_PYTHON",
                                       name, name);
    else
        read_look(out, a, r.out, script);
}

kl_str kli_python_toolchain(kl_arena *a, const kli_python_front *f) {
    kl_str script;
    if (!f->package->version.len ||
        kli_fs_read(&script, a, f->package->script.script, 1 << 20, kl_ignored()))
        return (kl_str){0};
    return kl_arena_printf(a, "%s %s, front end %.12s", f->name, f->package->version.ptr,
                           kli_hash_of(script).hex);
}

/* ---- what the front end is told ----------------------------------------------------------- */

static json_t *box_of(const kl_plan_tensormap *m) {
    json_t *box = json_array();
    for (uint32_t d = 0; d < m->rank; d++)
        json_array_append_new(box, json_integer((json_int_t)m->box[d]));
    return box;
}

/* The element type of what a pointer or a descriptor points to. */
static kl_dtype type_of(const kl_plan *p, const kl_value *v) {
    if (v->kind == KL_VALUE_BUFFER) return (kl_dtype)p->buffers[v->index].dtype;
    if (v->kind == KL_VALUE_TENSORMAP) return (kl_dtype)p->tensormaps[v->index].dtype;
    return (kl_dtype)p->tensors[v->index].dtype;
}

static void add_memory(json_t *o, kl_arena *a, const kl_kernel *k, const kl_plan *p,
                       const kl_value *v) {
    json_object_set_new(o, "type", json_string(kl_dtype_name(type_of(p, v))));
    if (v->kind != KL_VALUE_TENSORMAP) return;
    const kl_plan_tensormap *m = &p->tensormaps[v->index];
    KL_ASSERT(v->index < (uint32_t)k->n_tensormaps);
    json_object_set_new(o, "map", json_string(kl_arena_copy(a, k->tensormaps[v->index].name).ptr));
    json_object_set_new(o, "box", box_of(m));
}

/* A number whose value may reach the code only as a class, unless it is named: then it may be meant
 * for a constexpr. A real input of the task stays an argument: its value is data. */
static void add_number(json_t *o, const kl_plan *p, const kl_value *v, bool named) {
    const bool scalar = v->kind == KL_VALUE_SCALAR;
    const kl_dtype type = scalar ? (kl_dtype)p->tensors[v->index].dtype : KL_F32;
    const bool real =
        scalar ? kl_dtype_is_float(type) : v->kind == KL_VALUE_F32 || v->kind == KL_VALUE_F64;
    const bool wide = v->kind == KL_VALUE_I64 || (scalar && type == KL_I64);
    if (real) {
        const bool f64 = v->kind == KL_VALUE_F64 || (scalar && type == KL_F64);
        json_object_set_new(o, "real",
                            json_string(scalar ? kl_dtype_name(type)
                                        : f64  ? "float64"
                                               : "float32"));
        if (named && !scalar) json_object_set_new(o, "value", json_real(v->f));
        return;
    }
    json_object_set_new(o, "integer", json_string(wide ? "i64" : "i32"));
    json_object_set_new(o, "by", json_integer(v->i == 1 ? 1 : v->i % 16 ? 0 : 16));
    if (named) json_object_set_new(o, "value", json_integer((json_int_t)v->i));
}

static json_t *argument_json(kl_arena *a, const kl_kernel *k, const kl_plan *p, const kl_arg *arg,
                             const kl_value *v) {
    json_t *o = json_object();
    if (arg->name.len) json_object_set_new(o, "name", kli_json_str(arg->name));
    switch ((kl_value_kind)v->kind) {
    case KL_VALUE_TENSOR:
    case KL_VALUE_BUFFER:
    case KL_VALUE_TENSORMAP:
        add_memory(o, a, k, p, v);
        break;
    case KL_VALUE_NONE:
        if (arg->kind == KL_ARG_TYPE)
            json_object_set_new(o, "dtype", json_string(kl_dtype_name((kl_dtype)v->index)));
        else
            json_object_set_new(o, "word", kli_json_str(arg->expr.text));
        break;
    default:
        add_number(o, p, v, arg->name.len > 0);
    }
    return o;
}

static json_t *launch_json(kl_arena *a, const kl_kernel *k, const kl_plan *p, int i) {
    const kl_plan_launch *l = &p->launches[i];
    const kl_value *values = kli_launch_args(p, l);
    json_t *args = json_array();
    for (uint32_t n = 0; n < l->n_args; n++)
        json_array_append_new(args, argument_json(a, k, p, &k->launches[i].args[n], &values[n]));
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:o}", "entry", l->entry, "warps", (int)l->warps,
                     "stages", (int)l->stages, "ctas", (int)l->cluster[0], "maxnreg",
                     (int)l->registers, "args", args);
}

kl_str kli_python_specialize(kl_arena *a, const kl_kernel *k, const kl_plan *plan) {
    json_t *launches = json_array();
    KL_ASSERT(plan->n_launches == (uint32_t)k->n_launches);
    for (int i = 0; i < k->n_launches; i++)
        json_array_append_new(launches, launch_json(a, k, plan, i));
    const kl_str text = kli_json_dump(a, launches, false);
    json_decref(launches);
    return text;
}

/* ---- the front end ------------------------------------------------------------------------ */

static kl_err make_request(kl_str *out, const kl_compile_job *job, kl_error *e) {
    json_t *defines = json_array(), *flags = json_array(), *launches = NULL;
    for (const char *const *d = job->defines; d && *d; d++)
        json_array_append_new(defines, json_string(*d));
    for (int i = 0; i < job->kernel->n_flags; i++)
        json_array_append_new(flags, kli_json_str(job->kernel->flags[i]));
    kl_err code = kli_json_parse(&launches, job->classes, KL_S("classes"), e);
    json_t *o =
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "arch", kli_json_str(job->device->arch), "defines",
                  defines, "flags", flags, "launches", launches ? launches : json_null(), "text",
                  kli_json_str(job->kernel->source));
    *out = kli_json_dump(job->arena, o, false);
    json_decref(o);
    return code;
}

/* Files by names of ours alone: it comes out of a process in which a candidate's code may have
 * run. */
static kl_err write_answer(kl_artefact *out, const kl_compile_job *job, const kli_python_front *f,
                           const json_t *answer, kl_error *e) {
    kl_err code = KL_OK;
    out->completion = kl_arena_copy(job->arena, kli_json_text_or(answer, "completion", KL_S("")));
    for (const char *const *name = f->makes; !code && *name; name++)
        if (json_object_get(answer, *name))
            code = kli_fs_write(kli_fs_join(job->arena, job->dir, *name).ptr,
                                kli_json_text_or(answer, *name, KL_S("")), e);
    if (!code && out->completion.len > MAX_COMPLETION_BYTES)
        code = kl_fail(e, KL_ELIMIT, f->name, "a completion longer than %zu bytes",
                       MAX_COMPLETION_BYTES);
    return code;
}

/* Isolated (-I): no variable and no folder of a user's decides what Python loads. */
static kl_err ask_script(kl_artefact *out, const kl_compile_job *job, const kli_python_front *f,
                         kl_error *e) {
    kl_str request;
    kli_proc_result r;
    json_t *answer = NULL;
    kl_err code = make_request(&request, job, e);
    if (!code)
        code = kli_compile_ask(&r, &out->degraded, job->arena, &f->package->script, request, e);
    if (code) return code;
    if (r.exit_code == 0 && !kli_json_parse(&answer, r.out, KL_S("answer"), kl_ignored()))
        code = write_answer(out, job, f, answer, e);
    json_decref(answer);
    r.out = (kl_str){0};
    if (!code) kli_compile_took(out, job->arena, &r, job->dir, f->makes[0]);
    return code;
}

kl_err kli_python_compile(kl_artefact *out, const kl_compile_job *job, const kli_python_front *f,
                          kl_error *e) {
    kl_arena *a = job->arena;
    KL_ASSERT(job->dir && job->classes.len);
    if (!f->package->version.len) {
        kl_fail(e, KL_ENODEV, f->name, "this kernel needs %s's compiler", f->title);
        return kl_hint(e, "%s", f->package->missing.ptr);
    }
    out->toolchain = kl_arena_printf(a, "%s %s", f->name, f->package->version.ptr);
    return ask_script(out, job, f, e);
}
