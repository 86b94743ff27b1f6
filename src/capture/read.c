/* read.c - the lines that record.c wrote, as one document, with the code of each launch beside it.
 *
 * A line that breaks off belongs to a process that was killed while it wrote: it is left out.  Any
 * other line must have the members and types that its kind has; what follows from them (an index, a
 * length) is held against what there is where it is used.  SPDX-License-Identifier: Apache-2.0 */
#include "capture/capture.h"
#include "capture/counts.h"
#include "capture/fatbin.h"
#include "backend/cuda_cubin.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/proc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PROCESSES = 64, /* whose launches are shown */
    MOST_IMAGES = 65536,
    MOST_PARAMETERS = 1024,
    MOST_SHOWN_ORDER = 4096 /* launches, in the document */
};
#define MOST_LINES_BYTES ((size_t)256 << 20)
#define MOST_IMAGE_FILE ((size_t)1 << 30)
#define DEMANGLE_NS 20000000000ll

typedef struct {
    kl_arena *arena;
    const char *folder, *to;
    const char *pid; /* "1234": which files */
    json_t *launches, *notes, *order;
    json_t *by_number[CAPTURE_MOST_LAUNCHES]; /* of this process; borrowed */
    const capture_counts *counts;
    int64_t seen, left_out;
} capture_reader;

/* ---- shapes of lines --------------------------------------------------------------------- */

static bool is_launch(json_t *o, int *number) {
    int image, arch, g[9], shared;
    const char *name, *device;
    json_t *parameters;
    return json_unpack(o, "{s:i s:i s:i s:s s:s s:[iii] s:[iii] s:[iii] s:i s:b s:b s:b s:b s:o}",
                       "launch", number, "image", &image, "arch", &arch, "name", &name, "device",
                       &device, "grid", &g[0], &g[1], &g[2], "block", &g[3], &g[4], &g[5],
                       "cluster", &g[6], &g[7], &g[8], "shared", &shared, "cooperative", &g[0],
                       "graph", &g[0], "overlaps", &g[0], "told", &g[0], "parameters",
                       &parameters) == 0 &&
           *number >= 0 && *number < CAPTURE_MOST_LAUNCHES && json_is_array(parameters) &&
           json_array_size(parameters) <= MOST_PARAMETERS;
}

/* Of a pointer and of a tensor map alike. */
static bool is_place(json_t *o) {
    json_int_t at, allocation, offset, bytes;
    return json_unpack(o, "{s:I s:I s:I s:I}", "at", &at, "allocation", &allocation, "offset",
                       &offset, "bytes", &bytes) == 0 &&
           at >= 0 && offset >= 0;
}

static bool are_places(const json_t *list) {
    size_t i;
    json_t *o;
    json_array_foreach((json_t *)(uintptr_t)list, i, o) if (!is_place(o)) return false;
    return json_is_array(list);
}

static bool is_passed(json_t *o) {
    json_int_t offset, bytes;
    const char *value;
    size_t n;
    json_t *pointers, *maps;
    return json_unpack(o, "{s:I s:I s:s% s:o s:o}", "offset", &offset, "bytes", &bytes, "value",
                       &value, &n, "pointers", &pointers, "maps", &maps) == 0 &&
           offset >= 0 && bytes > 0 && bytes <= 32764 && (n == 0 || n == 2 * (size_t)bytes) &&
           strspn(value, "0123456789abcdef") == n && are_places(pointers) && are_places(maps);
}

static bool are_parameters(const json_t *launch) {
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(launch, "parameters"), i, o) if (!is_passed(o)) return false;
    return true;
}

/* ---- code -------------------------------------------------------------------------------- */

/* As a directive can write it: its own name, or its place among the kernels. */
static kl_str entry_of(kl_arena *a, kl_str cubin, const char *name) {
    kli_cubin_walk walk;
    kli_cubin_symbol s;
    int n = 0;
    const size_t len = strlen(name);
    const bool plain = len && len < KL_MAX_NAME && (name[0] < '0' || name[0] > '9') &&
                       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                    "0123456789") == len;
    if (plain) return kl_arena_copy(a, kl_str_of(name));
    kli_cubin_begin(&walk, cubin.ptr, cubin.len);
    while (kli_cubin_next(&walk, &s)) {
        if (s.kind != KLI_CUBIN_KERNEL) continue;
        if (strcmp(s.name, name) == 0) break;
        n++;
    }
    return kl_arena_printf(a, "kernel_%d", n);
}

static kl_err put_code(json_t *launch, const capture_reader *r, kl_str cubin, const char *name,
                       kl_error *e) {
    kl_arena *a = r->arena;
    const kl_hash hash = kli_hash_of(cubin);
    const kl_str file = kl_arena_printf(a, "cubins/%s.cubin", hash.hex);
    const kl_str path = kli_fs_join(a, r->to, file.ptr);
    json_object_set_new(launch, "cubin", kli_json_str(file));
    json_object_set_new(launch, "entry", kli_json_str(entry_of(a, cubin, name)));
    return kli_fs_exists(path.ptr) ? KL_OK : kli_fs_write(path.ptr, cubin, e);
}

static const char *no_code(json_t *launch, const char *why) {
    json_object_set_new(launch, "cubin", json_null());
    json_object_set_new(launch, "why", json_string(why));
    return why;
}

static kl_err find_code(json_t *launch, const capture_reader *r, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    kl_str image, cubin;
    kl_error why = {0};
    const int number = (int)kli_json_int_or(launch, "image", -1),
              arch = (int)kli_json_int_or(launch, "arch", 0);
    const char *name = json_string_value(json_object_get(launch, "name"));
    const kl_str path = kl_arena_printf(scratch, "%s/%s-%d.image", r->folder, r->pid, number);
    kl_err err = KL_OK;
    if (number < 0)
        (void)no_code(launch, "its code was not loaded in a way that is watched");
    else if (kli_fs_read(&image, scratch, path.ptr, MOST_IMAGE_FILE, &why) ||
             kli_fatbin_cubin(&cubin, scratch, image, arch, name, &why))
        (void)no_code(launch, why.message);
    else
        err = put_code(launch, r, cubin, name, e);
    kl_arena_free(scratch);
    return err;
}

/* ---- one process ------------------------------------------------------------------------- */

static kl_err take_launch(capture_reader *r, json_t *o, int number, kl_error *e) {
    const uint64_t seen = r->counts ? r->counts->seen[number] : 1;
    const bool full = json_array_size(r->launches) == CAPTURE_MOST_LAUNCHES;
    if (full || r->by_number[number] || !are_parameters(o)) {
        r->left_out++;
        return KL_OK;
    }
    KL_ASSERT(number >= 0 && number < CAPTURE_MOST_LAUNCHES);
    r->by_number[number] = o;
    json_object_del(o, "record");
    json_object_set_new(o, "launch", json_integer((json_int_t)json_array_size(r->launches)));
    json_object_set_new(o, "process", json_integer(atoi(r->pid)));
    json_object_set_new(o, "count", json_integer((json_int_t)(seen & INT64_MAX)));
    json_array_append(r->launches, o);
    return find_code(o, r, e);
}

static kl_err take_event(capture_reader *r, kl_str line, kl_error *e) {
    json_t *o = NULL;
    int number;
    kl_err err = KL_OK;
    if (kli_json_parse(&o, line, KL_S("capture"), kl_ignored())) return r->left_out++, KL_OK;
    if (kl_str_eq(kli_json_text_or(o, "record", KL_S("")), KL_S("launch"))) {
        if (is_launch(o, &number))
            err = take_launch(r, o, number, e);
        else
            r->left_out++;
    }
    json_decref(o);
    return err;
}

static void take_order(capture_reader *r) {
    const capture_counts *c = r->counts;
    if (!c) return;
    r->seen += (int64_t)(c->all & INT64_MAX);
    for (uint64_t i = 0;
         i < c->all && i < CAPTURE_MOST_ORDER && json_array_size(r->order) < MOST_SHOWN_ORDER;
         i++) {
        json_t *o = c->order[i] < CAPTURE_MOST_LAUNCHES ? r->by_number[c->order[i]] : NULL;
        json_array_append_new(r->order,
                              o ? json_incref(json_object_get(o, "launch")) : json_null());
    }
}

static kl_err read_process(capture_reader *r, kl_arena *a, kl_str file, kl_error *e) {
    kl_str text, line, counts;
    const kl_str pid = {file.ptr, file.len - 6};
    KL_ASSERT(kl_str_ends(file, KL_S(".jsonl")));
    r->pid = kl_arena_copy(a, pid).ptr;
    memset(r->by_number, 0, sizeof r->by_number);
    r->counts = NULL;
    kl_err err =
        kli_fs_read(&text, a, kli_fs_join(a, r->folder, file.ptr).ptr, MOST_LINES_BYTES, e);
    if (err) return err;
    const kl_str path = kl_arena_printf(a, "%s/%s.counts", r->folder, r->pid);
    if (!kli_fs_read(&counts, a, path.ptr, sizeof(capture_counts), kl_ignored()) &&
        counts.len == sizeof(capture_counts))
        r->counts = (const capture_counts *)(const void *)counts.ptr;
    while (!err && kl_str_cut(&line, &text, '\n'))
        if (line.len) err = take_event(r, line, e);
    take_order(r);
    return err;
}

/* ---- names ------------------------------------------------------------------------------- */

/* Those of C++ as they were written, where binutils are there. */
static void demangle(json_t *launches, kl_arena *a) {
    static const char *const argv[] = {"c++filt", NULL};
    kli_proc_result said = {0};
    kl_buf names = {0};
    kl_str line;
    size_t i;
    json_t *o;
    json_array_foreach(launches, i, o)
        kl_buf_printf(&names, "%s\n", json_string_value(json_object_get(o, "name")));
    const kli_proc_spec spec = {.argv = argv,
                                .input = kl_buf_str(&names),
                                .timeout_ns = DEMANGLE_NS,
                                .max_output = (size_t)64 << 20};
    const bool ok = names.len && !kli_proc_run(&said, a, &spec, kl_ignored()) && !said.exit_code;
    json_array_foreach(launches, i, o) {
        if (!ok || !kl_str_cut(&line, &said.out, '\n'))
            line = kl_str_of(json_string_value(json_object_get(o, "name")));
        json_object_set_new(o, "called", kli_json_str(line));
    }
    kl_buf_fini(&names);
}

/* ---- the whole --------------------------------------------------------------------------- */

static json_t *document_of(capture_reader *r) {
    return json_pack("{ss si so sI sI so so}", "schema", "klineage/capture", "version", 1,
                     "launches", r->launches, "seen", (json_int_t)r->seen, "left_out",
                     (json_int_t)r->left_out, "order", r->order, "notes", r->notes);
}

kl_err kli_capture_read(json_t **out, kl_arena *a, const char *folder, const char *to,
                        kl_error *e) {
    kl_str *names;
    size_t n, processes = 0;
    capture_reader *r = KL_NEW(a, capture_reader);
    *r = (capture_reader){.arena = a,
                          .folder = folder,
                          .to = to,
                          .launches = json_array(),
                          .notes = json_array(),
                          .order = json_array()};
    kl_err err = kli_fs_mkdirs(kli_fs_join(a, to, "cubins").ptr, e);
    if (!err) err = kli_fs_list(&names, &n, a, folder, e);
    for (size_t i = 0; !err && i < n; i++) {
        if (!kl_str_ends(names[i], KL_S(".jsonl"))) continue;
        if (processes++ < MOST_PROCESSES) err = read_process(r, a, names[i], e);
    }
    if (processes > MOST_PROCESSES)
        json_array_append_new(r->notes, json_string("there were more processes than are shown"));
    demangle(r->launches, a);
    *out = document_of(r);
    if (err) json_decref(*out);
    return err;
}

kl_err kli_capture_parse(json_t **out, kl_str text, kl_str path, kl_error *e) {
    size_t i;
    json_t *o;
    int number;
    const kl_err err = kli_json_parse(out, text, path, e);
    if (err) return err;
    json_array_foreach(json_object_get(*out, "launches"), i, o) {
        if (is_launch(o, &number) && are_parameters(o)) continue;
        json_decref(*out);
        return kl_fail(e, KL_EPARSE, path.ptr, "launch %zu is not as a capture writes it", i);
    }
    return KL_OK;
}

kl_err kli_capture_load(json_t **out, kl_arena *a, const char *folder, kl_error *e) {
    kl_str text;
    const kl_str path = kli_fs_join(a, folder, "capture.json");
    const kl_err err = kli_fs_read(&text, a, path.ptr, MOST_LINES_BYTES, e);
    return err ? err : kli_capture_parse(out, text, path, e);
}

json_t *kli_capture_launch(const json_t *document, int64_t i) {
    return i < 0 ? NULL : json_array_get(json_object_get(document, "launches"), (size_t)i);
}
