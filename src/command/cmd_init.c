/* cmd_init.c - `klineage init`: an expert kernel out of a library's sources.
 *
 * The reading is done by a process of its own (src/surface/c/extract): it parses, and runs nothing
 * of the library.  Two texts come back: the slice, and the library's own sources.  Both are
 * candidates to the gate, in its sandbox, since a library's code is as foreign as a model's.  The
 * slice is written only if it passes, is made of the same kinds of instructions, and is as fast.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/init.h"
#include "command/request.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/parts.h"
#include "task/task.h"
#include <stdlib.h>
#include <string.h>

enum { READER_NO_LIBCLANG = 7 };
#define READ_NS 180000000000ll /* the reader limits itself to two minutes of processor time */

/* ---- reading ----------------------------------------------------------------------------- */

static json_t *init_request(const kli_init *x) {
    const kli_init_asked *q = &x->asked;
    json_t *sources = json_array();
    for (int i = 0; i < q->n_sources; i++)
        json_array_append_new(sources, kli_json_str(q->sources[i]));
    kl_arena *a = x->context->arena;
    const kl_str definition =
        kli_init_whole_path(a, kli_fs_join(a, x->task->dir.ptr, "definition.json"));
    return json_pack("{so so so so so so so so so so so so}", "sources", sources, "in",
                     kli_json_str(q->in), "with", kli_json_str(q->with), "function",
                     kli_json_str(q->function), "definition", kli_json_str(definition), "args",
                     kli_json_str(q->arguments), "launch", kli_json_str(q->launch), "flags",
                     kli_json_str(q->flags), "library_flags", kli_json_str(q->library_flags),
                     "require", kli_json_str(q->require), "upstream", kli_json_str(q->upstream),
                     "licence", kli_json_str(q->licence));
}

static kl_err run_slicer(kli_proc_result *r, kli_init *x, kl_error *e) {
    kl_arena *a = x->context->arena;
    const char *chosen = getenv("KLINEAGE_PYTHON");
    const kl_str python = kli_fs_find_program(a, chosen && *chosen ? chosen : "python3");
    if (!python.len) {
        kl_fail(e, KL_ENODEV, "init", "no Python to read the sources with");
        return kl_hint(e, "install python3, or name one in KLINEAGE_PYTHON");
    }
    json_t *request = init_request(x);
    const kl_str input = kli_json_dump(a, request, false);
    json_decref(request);
    const char *argv[] = {python.ptr, "-B", kli_fs_find_part(a, "c_extract").ptr, NULL};
    const kli_proc_spec spec = {.argv = argv,
                                .cwd = x->asked.in.ptr,
                                .input = input,
                                .timeout_ns = READ_NS,
                                .max_output = 8 * KL_MAX_SOURCE_BYTES};
    return kli_proc_run(r, a, &spec, e);
}

static kl_err init_slice(kli_init *x, kl_error *e) {
    kli_proc_result r = {0};
    const char *function = x->asked.function.ptr;
    kl_err err = run_slicer(&r, x, e);
    if (err) return err;
    if (r.timed_out) return kl_fail(e, KL_ELIMIT, function, "not read within three minutes");
    if (r.exit_code == READER_NO_LIBCLANG) {
        kl_fail(e, KL_ENODEV, "init", "no libclang to read C with");
        return kl_hint(e, "apt-get install libclang-dev, or name libclang.so in KLINEAGE_LIBCLANG");
    }
    if (r.exit_code == 1 && r.err.len && !strstr(r.err.ptr, "Traceback")) {
        kl_buf_add(&x->refused, kl_str_trim(r.err));
        return KL_OK;
    }
    if (r.exit_code != 0)
        return kl_fail(e, KL_EIO, function, "the reader of C failed: %.*s", KL_STR_ARG(r.err));
    return kli_json_parse(&x->made, r.out, KL_S("c_extract"), e);
}

/* A kernel of Triton is taken by its own reader; a package cannot be built as one file, so there is
 * no library beside it. */
static kl_err init_triton(kli_init *x, kl_error *e) {
    kl_arena *a = x->context->arena;
    kli_proc_result r = {0};
    const kl_str definition = kli_fs_join(a, x->task->dir.ptr, "definition.json");
    const kl_err err = kli_extract_triton(&r, a, x->asked.sources[0].ptr,
                                          x->args->values[KL_OPTION_ARCH], definition, e);
    if (err) return err;
    if (r.exit_code) return kl_buf_add(&x->refused, kl_str_trim(r.err)), KL_OK;
    x->made = json_pack("{so ss ss ss so}", "source", kli_json_str(r.out), "surface", "triton",
                        "launch", "", "licence", "in the head of the file", "from", json_array());
    return KL_OK;
}

static bool init_is_triton(const kli_init *x) {
    const kl_str source = x->asked.sources[0];
    return kli_contains(source, ":") && !kli_fs_exists(source.ptr);
}

/* ---- kernels ----------------------------------------------------------------------------- */

static kl_err init_kernel(kl_kernel **out, kli_init *x, const char *key, const char *name,
                          kl_error *e) {
    kl_arena *a = x->context->arena;
    const kl_str text = kl_arena_copy(a, kli_json_text_or(x->made, key, KL_S("")));
    const kl_str surface = kli_json_text_or(x->made, "surface", KL_S("c"));
    const char *ending = kl_str_eq(surface, KL_S("c"))      ? "c"
                         : kl_str_eq(surface, KL_S("cuda")) ? "cu"
                                                            : "py";
    if (!text.len) return KL_OK;
    return kl_kernel_parse(out, a, text, kl_arena_printf(a, "%s.%s", name, ending), NULL, NULL, e);
}

/* The option that wrote the line that `where`, FILE:LINE:COLUMN, names of a text that nobody has;
 * `where` itself if it was none. */
static const char *init_option_of(const kli_init *x, const char *key, const char *where) {
    const bool own_flags = strcmp(key, "library") == 0 && x->asked.library_flags.len;
    const struct {
        kl_str line;
        const char *option;
    } written[] = {{KL_S("//! flags "), own_flags ? "--library-flags" : "--flags"},
                   {KL_S("//! require "), "--require"},
                   {KL_S("//! launch "), x->asked.launch.len ? "--launch or --args" : "--args"}};
    const char *colon = strchr(where, ':');
    kl_str line = {0}, rest = kli_json_text_or(x->made, key, KL_S(""));
    for (long n = colon ? strtol(colon + 1, NULL, 10) : 0; n > 0; n--)
        if (!kl_str_cut(&line, &rest, '\n')) return where;
    for (size_t i = 0; i < KL_COUNT(written); i++)
        if (kl_str_starts(line, written[i].line)) return written[i].option;
    return where;
}

/* Their directives come from the same options, so what is wrong with one is wrong with all. */
static kl_err init_kernels(kli_init *x, kl_error *e) {
    const char *key = "source";
    kl_err err = init_kernel(&x->kernel, x, key, "slice", e);
    if (!err) err = init_kernel(&x->library, x, key = "library", "library", e);
    if (err != KL_EPARSE && err != KL_EINVAL && err != KL_ELIMIT) return err;
    kl_buf_printf(&x->refused, "%s: %s", init_option_of(x, key, e->where), e->message);
    if (e->hint[0]) kl_buf_printf(&x->refused, "; %s", e->hint);
    *e = (kl_error){0};
    return KL_OK;
}

/* ---- the command ------------------------------------------------------------------------- */

static kl_err init_check_place(const kli_args *args, kl_error *e) {
    const char *place = args->values[KL_OPTION_OUT];
    if (!place || !kli_fs_exists(place)) return KL_OK;
    if (kli_fs_is_dir(place)) {
        kl_fail(e, KL_EINVAL, place, "this is a folder");
        return kl_hint(e, "name the file in it: --out %.200s/NAME.c", place);
    }
    if (kli_args_has(args, KL_OPTION_FORCE)) return KL_OK;
    kl_fail(e, KL_EINVAL, place, "this exists already");
    return kl_hint(e, "name another file with --out, or replace this one with --force");
}

static kl_err init_take(kli_init *x, kli_command_result *out, kl_error *e) {
    kl_err err = init_is_triton(x) ? init_triton(x, e) : init_slice(x, e);
    if (!err && !x->refused.len) err = init_kernels(x, e);
    if (err) return err;
    if (x->refused.len) return kli_init_refuse(out, x), KL_OK;
    err = kli_init_judge(x, e);
    return err ? err : kli_init_answer(x, out, e);
}

kl_err kli_cmd_init(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    kli_init *x = KL_NEW(c->arena, kli_init);
    x->context = c;
    x->args = args;
    kl_err err = init_check_place(args, e);
    if (!err) err = kli_init_read(&x->asked, c->arena, args, e);
    if (!err) err = kli_request_task(&x->task, c->arena, x->asked.task.ptr, e);
    if (!err) err = init_take(x, out, e);
    json_decref(x->made);
    json_decref(x->differences);
    kl_buf_fini(&x->refused);
    return err;
}
