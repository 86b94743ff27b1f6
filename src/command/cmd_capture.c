/* cmd_capture.c - `klineage capture`: what a program launches, and one launch as a kernel file.
 *
 *   capture [--out DIR] -- PROGRAM ARGS     run it, show the table, keep it
 *   capture DIR [--launch N]                show it again, or one launch with its arguments
 *   capture DIR --launch N --task T --args  write FILE.cu and FILE.cubin
 *
 * A folder cannot be run, so the first word says which.  What is kept is put together beside its
 * place and moved there whole.  SPDX-License-Identifier: Apache-2.0 */
#include "command/request.h"
#include "base/fs.h"
#include "base/json.h"
#include "capture/capture.h"
#include "kernel/kernel.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INTERRUPTED = 130, SHOWN_NAME = 72, OUTPUT_KEPT = 4096, MOST_OUTPUT = 64 << 20 };

/* ---- what is shown ----------------------------------------------------------------------- */

static const char *capture_text(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}

static void put_sizes(kl_buf *out, const json_t *sizes, int width) {
    char text[64];
    int n[3] = {0};
    (void)json_unpack((json_t *)(uintptr_t)sizes, "[iii]", &n[0], &n[1], &n[2]);
    (void)snprintf(text, sizeof text,
                   n[2] != 1   ? "%d,%d,%d"
                   : n[1] != 1 ? "%d,%d"
                               : "%d",
                   n[0], n[1], n[2]);
    kl_buf_printf(out, "  %-*s", width, text);
}

/* Names of C++ go over many lines; the document has them whole. */
static void put_name(kl_buf *out, const json_t *launch) {
    const char *name = capture_text(launch, "called");
    const size_t n = strlen(name);
    kl_buf_printf(out, "  %.*s%s", SHOWN_NAME, n ? name : "(without a name)",
                  n > SHOWN_NAME ? "..." : "");
}

static void show_launch_row(kl_buf *out, const json_t *launch) {
    size_t i, pointers = 0;
    int64_t bytes = 0;
    json_t *o, *parameters = json_object_get(launch, "parameters");
    json_array_foreach(parameters, i, o) {
        bytes += kli_json_int_or(o, "bytes", 0);
        pointers += json_array_size(json_object_get(o, "pointers")) +
                    json_array_size(json_object_get(o, "maps"));
    }
    kl_buf_printf(out, "%6lld %8lld", (long long)kli_json_int_or(launch, "launch", 0),
                  (long long)kli_json_int_or(launch, "count", 0));
    put_sizes(out, json_object_get(launch, "grid"), 14);
    put_sizes(out, json_object_get(launch, "block"), 11);
    kl_buf_printf(out, " %7lld %5zu %6lld %8zu", (long long)kli_json_int_or(launch, "shared", 0),
                  json_array_size(parameters), (long long)bytes, pointers);
    put_name(out, launch);
    if (!json_is_string(json_object_get(launch, "cubin")))
        kl_buf_printf(out, "\n%16s(its code is not kept: %s)", "", capture_text(launch, "why"));
    kl_buf_printf(out, "\n");
}

static void show_table(kl_buf *out, const json_t *document) {
    size_t i;
    json_t *o;
    kl_buf_printf(out, "launch    count  grid            block        shared  args  bytes pointers"
                       "  kernel\n");
    json_array_foreach(json_object_get(document, "launches"), i, o) show_launch_row(out, o);
}

/* ---- one launch -------------------------------------------------------------------------- */

static void show_place(kl_buf *out, int64_t argument, const json_t *o, bool is_map) {
    char at[48];
    const long long byte = kli_json_int_or(o, "at", 0);
    (void)snprintf(at, sizeof at, byte ? "%lld@%lld" : "%lld", (long long)argument, byte);
    kl_buf_printf(
        out, "  %-10s %s memory %lld, from byte %lld of %lld: 0x%llx\n", at,
        is_map ? "tensor map of" : "pointer into", (long long)kli_json_int_or(o, "allocation", 0),
        (long long)kli_json_int_or(o, "offset", 0), (long long)kli_json_int_or(o, "bytes", 0),
        (unsigned long long)kli_json_int_or(o, "address", 0));
}

/* Little-endian, as the device has it; a float is only guessed at where it looks like one. */
static void show_number(kl_buf *out, int64_t argument, int64_t bytes, const char *value) {
    uint64_t word = 0;
    float real;
    for (int i = (int)bytes - 1; i >= 0; i--) {
        unsigned byte = 0;
        (void)sscanf(value + 2 * i, "%2x", &byte);
        word = word << 8 | byte;
    }
    const uint32_t low = (uint32_t)word;
    memcpy(&real, &low, sizeof real);
    kl_buf_printf(out, "  %-10lld ", (long long)argument);
    if (bytes == 4)
        kl_buf_printf(out, "%d, or %g\n", (int)(int32_t)low, (double)real);
    else
        kl_buf_printf(out, "%lld, %lld bytes\n", (long long)word, (long long)bytes);
}

static void show_argument(kl_buf *out, int64_t argument, const json_t *parameter) {
    size_t i;
    json_t *o;
    const int64_t bytes = kli_json_int_or(parameter, "bytes", 0);
    const json_t *pointers = json_object_get(parameter, "pointers"),
                 *maps = json_object_get(parameter, "maps");
    const char *value = capture_text(parameter, "value");
    if (bytes > 8 && !json_array_size(maps) + (bytes != 128))
        kl_buf_printf(out, "  %-10lld %lld bytes\n", (long long)argument, (long long)bytes);
    else if (bytes <= 8 && *value && !json_array_size(pointers))
        show_number(out, argument, bytes, value);
    json_array_foreach((json_t *)(uintptr_t)pointers, i, o) show_place(out, argument, o, false);
    json_array_foreach((json_t *)(uintptr_t)maps, i, o) show_place(out, argument, o, true);
}

static void show_launch(kl_buf *out, const json_t *launch) {
    size_t i;
    json_t *o;
    kl_buf_printf(out, "%s\n  launched %lld times on %s (sm_%lld), code %s, kernel %s\n  grid",
                  capture_text(launch, "called"), (long long)kli_json_int_or(launch, "count", 0),
                  capture_text(launch, "device"), (long long)kli_json_int_or(launch, "arch", 0),
                  capture_text(launch, "cubin"), capture_text(launch, "entry"));
    put_sizes(out, json_object_get(launch, "grid"), 0);
    kl_buf_printf(out, "  block");
    put_sizes(out, json_object_get(launch, "block"), 0);
    kl_buf_printf(out, "  cluster");
    put_sizes(out, json_object_get(launch, "cluster"), 0);
    kl_buf_printf(out, "  shared memory %lld\nargument\n",
                  (long long)kli_json_int_or(launch, "shared", 0));
    json_array_foreach(json_object_get(launch, "parameters"), i, o)
        show_argument(out, (int64_t)i, o);
}

/* ---- running ----------------------------------------------------------------------------- */

static void describe_end(kl_buf *out, const char *program, const kli_capture_end *end) {
    if (end->interrupted)
        kl_buf_printf(out, "%s was interrupted", program);
    else if (end->signal)
        kl_buf_printf(out, "%s was ended by SIG%s", program, sigabbrev_np(end->signal));
    else
        kl_buf_printf(out, "%s ended with status %d", program, end->exit_code);
}

static void tell_run(kli_command_result *out, const char *program, const kli_capture_end *end,
                     const char *kept) {
    const size_t n = json_array_size(json_object_get(out->json, "launches"));
    const bool good = !end->signal && !end->exit_code && !end->interrupted;
    describe_end(&out->text, program, end);
    json_object_set_new(out->json, "exit", json_integer(end->exit_code));
    json_object_set_new(out->json, "signal", json_integer(end->signal));
    json_object_set_new(out->json, "interrupted", json_boolean(end->interrupted));
    json_object_set_new(out->json, "out", kept ? json_string(kept) : json_null());
    out->exit_code = end->interrupted ? INTERRUPTED : !good || !n;
    if (!n) {
        kl_buf_printf(&out->text,
                      " and launched nothing through the CUDA driver that could be seen\n"
                      "hint: does it use the GPU, and is it linked dynamically? klineage doctor "
                      "looks for a driver\n");
        return;
    }
    kl_buf_printf(&out->text, ": %lld launches, %zu distinct%s\n",
                  (long long)kli_json_int_or(out->json, "seen", 0), n,
                  good ? "" : "; this is what it launched until then");
    show_table(&out->text, out->json);
    if (kept)
        kl_buf_printf(&out->text, "%s holds them; next: klineage capture %s --launch 0\n", kept,
                      kept);
}

/* The document beside its code, moved into place whole; nothing is kept of nothing. */
static kl_err keep_capture(kl_arena *a, const json_t *document, const char *from, const char *place,
                           kl_error *e) {
    const kl_err err =
        kli_fs_write(kli_fs_join(a, from, "capture.json").ptr, kli_json_dump(a, document, true), e);
    if (err || rename(from, place) == 0) return err;
    return kl_fail(e, KL_EIO, place, "cannot be put here: %s", strerror(errno));
}

/* The end of what the program said; all of it where nobody wants a document. */
static void add_output(json_t *document, kl_arena *a, const char *path) {
    kl_str text;
    if (kli_fs_read(&text, a, path, MOST_OUTPUT, kl_ignored())) text = (kl_str){0};
    if (text.len > OUTPUT_KEPT) text.ptr += text.len - OUTPUT_KEPT, text.len = OUTPUT_KEPT;
    json_object_set_new(document, "output", kli_json_str(text));
}

static kl_err capture_run_in(kli_context *c, const kli_args *args, kli_command_result *out,
                             const char *folder, const char *to, kl_error *e) {
    const char *place = args->values[KL_OPTION_OUT];
    const bool apart = /* the streams are for documents then */
        kli_args_has(args, KL_OPTION_JSON) || kli_args_has(args, KL_OPTION_JSON_PRETTY);
    const kl_str output = kli_fs_join(c->arena, folder, "output");
    kli_capture_end end;
    kl_err err = kli_capture_run(&end, c->arena, args->words, folder, apart ? output.ptr : NULL, e);
    if (!err) err = kli_capture_read(&out->json, c->arena, folder, to, e);
    if (err) return err;
    if (apart) add_output(out->json, c->arena, output.ptr);
    json_t *program = json_array();
    for (int i = 0; i < args->n_words; i++)
        json_array_append_new(program, kli_json_str(kl_str_of(args->words[i])));
    json_object_set_new(out->json, "program", program);
    const bool kept = place && json_array_size(json_object_get(out->json, "launches")) > 0;
    tell_run(out, args->words[0], &end, kept ? place : NULL);
    return kept ? keep_capture(c->arena, out->json, to, place, e) : KL_OK;
}

static kl_err capture_program(kli_context *c, const kli_args *args, kli_command_result *out,
                              kl_error *e) {
    const char *place = args->values[KL_OPTION_OUT];
    kl_str folder, to;
    if (place && kli_fs_exists(place)) {
        kl_fail(e, KL_EINVAL, place, "this exists already");
        return kl_hint(e, "name another folder, or show it: klineage capture %s", place);
    }
    if (kli_args_has(args, KL_OPTION_TASK) || kli_args_has(args, KL_OPTION_LAUNCH)) {
        kl_fail(e, KL_EINVAL, args->words[0], "--task and --launch are of a capture that was kept");
        return kl_hint(e, "first: klineage capture --out DIR -- %s ...", args->words[0]);
    }
    kl_err err = kli_fs_temp_dir(&folder, c->arena, e);
    if (err) return err;
    to = place ? kl_arena_printf(c->arena, "%s.capture-%d", place, (int)getpid())
               : kli_fs_join(c->arena, folder.ptr, "kept");
    err = capture_run_in(c, args, out, folder.ptr, to.ptr, e);
    kli_fs_remove_tree(to.ptr);
    kli_fs_remove_tree(folder.ptr);
    return err;
}

/* ---- a kept one -------------------------------------------------------------------------- */

/* The file must be what the gate reads, and its plan must hold at this shape. */
static kl_err check_written(kl_arena *a, const kli_capture_binding *b, kl_str text, kl_error *e) {
    const kl_kernel_opts opts = {.may_be_code = true};
    const kl_device_limits none = {0};
    kl_kernel *k;
    kl_plan *plan = KL_NEW(a, kl_plan);
    const kl_err err = kl_kernel_parse(&k, a, text, kl_str_of(b->file), NULL, &opts, e);
    return err ? err : kli_kernel_plan(plan, k, b->task, b->workload, &none, e);
}

static kl_err write_bound(kli_command_result *out, kl_arena *a, const kli_capture_binding *b,
                          kl_error *e) {
    kl_str text, cubin;
    kl_err err = kli_capture_bind(&text, &cubin, a, b, e);
    KL_ASSERT(kl_str_ends(kl_str_of(b->file), KL_S(".cu")));
    const kl_str code = kl_arena_printf(a, "%.*s.cubin", (int)strlen(b->file) - 3, b->file);
    if (!err) err = check_written(a, b, text, e);
    if (!err) err = kli_fs_write(code.ptr, cubin, e);
    if (!err) err = kli_fs_write(b->file, text, e);
    if (err) return err;
    kl_buf_printf(&out->text, "%s launches the captured code of %s on the tensors of %.*s\n",
                  b->file, code.ptr, KL_STR_ARG(b->task->name));
    kl_buf_printf(&out->text, "next: klineage gate %.*s mine.cu --against %s --workload %.*s\n",
                  KL_STR_ARG(b->task->name), b->file, KL_STR_ARG(b->workload->label));
    out->json = json_pack("{ss si sI ss so so so so}", "schema", "klineage/capture-kernel",
                          "version", 1, "launch", (json_int_t)b->launch, "kernel", b->file, "code",
                          kli_json_str(code), "task", kli_json_str(b->task->name), "workload",
                          kli_json_str(b->workload->label), "source", kli_json_str(text));
    return KL_OK;
}

static kl_err bind_launch(kli_command_result *out, kl_arena *a, const kli_args *args,
                          kli_capture_binding *b, kl_error *e) {
    kl_task *task;
    b->args = args->values[KL_OPTION_ARGS];
    b->file = args->values[KL_OPTION_OUT];
    if (!b->file) b->file = "captured.cu";
    if (!kl_str_ends(kl_str_of(b->file), KL_S(".cu")))
        return kl_fail(e, KL_EINVAL, b->file, "what is written is a kernel file: FILE.cu");
    if (!kli_args_has(args, KL_OPTION_LAUNCH)) {
        kl_fail(e, KL_EINVAL, args->words[0], "which launch?");
        return kl_hint(e, "klineage capture %s shows them; add --launch N", args->words[0]);
    }
    kl_err err = kli_request_task(&task, a, args->values[KL_OPTION_TASK], e);
    if (!err)
        err = kli_request_workload(&b->workload, a, task, KL_ON_GPU,
                                   args->values[KL_OPTION_WORKLOAD], e);
    if (err) return err;
    if (!b->workload) b->workload = kl_task_workload(task, (kl_str){0}, KL_ON_GPU);
    if (!b->workload)
        return kl_fail(e, KL_EINVAL, args->values[KL_OPTION_TASK], "it has no shape for a GPU");
    b->task = task;
    return write_bound(out, a, b, e);
}

static bool is_launch_number(const char *text) {
    return *text && strlen(text) < 10 && strspn(text, "0123456789") == strlen(text);
}

static kl_err capture_kept(kli_context *c, const kli_args *args, kli_command_result *out,
                           kl_error *e) {
    const bool one = kli_args_has(args, KL_OPTION_LAUNCH);
    kli_capture_binding b = {.folder = args->words[0]};
    json_t *document, *launch;
    if (one && !is_launch_number(args->values[KL_OPTION_LAUNCH]))
        return kl_fail(e, KL_EINVAL, "--launch", "a launch is a number of the table, not '%s'",
                       args->values[KL_OPTION_LAUNCH]);
    kl_err err = kli_capture_load(&document, c->arena, args->words[0], e);
    if (err == KL_ENOENT) kl_hint(e, "klineage capture --out DIR -- PROGRAM makes one");
    if (err) return err;
    b.document = document;
    b.launch = one ? strtoll(args->values[KL_OPTION_LAUNCH], NULL, 10) : 0;
    launch = kli_capture_launch(document, b.launch);
    if (one && !launch) {
        kl_fail(e, KL_EINVAL, args->words[0], "there is no launch %lld", (long long)b.launch);
        err = kl_hint(e, "klineage capture %s shows them", args->words[0]);
    } else if (kli_args_has(args, KL_OPTION_TASK)) {
        err = bind_launch(out, c->arena, args, &b, e);
    } else {
        if (one)
            show_launch(&out->text, launch);
        else
            show_table(&out->text, document);
        out->json = json_incref(document);
    }
    json_decref(document);
    return err;
}

kl_err kli_cmd_capture(kli_context *c, const kli_args *args, kli_command_result *out, kl_error *e) {
    return args->n_words == 1 && kli_fs_is_dir(args->words[0]) ? capture_kept(c, args, out, e)
                                                               : capture_program(c, args, out, e);
}
