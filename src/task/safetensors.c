/* safetensors.c - one tensor out of a safetensors file.
 *
 *   8 bytes: little-endian length of the header | header: JSON | data
 *   header = {"__metadata__"?: {TEXT: TEXT}, NAME: {"dtype", "shape": [INT], "data_offsets":
 * [BEGIN, END]}, ...}
 *
 * The whole header is judged before one byte of data is read: the format promises that tensors
 * cover the data without holes or overlaps, and a file that breaks the promise is damaged or
 * crafted.  The file is read, never mapped, so that one which shrinks meanwhile gives an error and
 * not a signal. Deliberately not here: writing, and types that no kernel of ours takes (they are
 * placed, not decoded). SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "task_impl.h"

#define MAX_HEADER_BYTES (100u << 20) /* the bound that the format's own reader has */

typedef struct {
    int64_t begin, end;
} extent;

typedef struct {
    const char *path;
    int fd;
    int64_t data_start, data_bytes;
    json_t *header;
    kl_error *e;
} source;

static kl_err safetensors_damaged(const source *s, const char *what) {
    return kl_fail(s->e, KL_EIO, s->path, "not a sound safetensors file: %s", what);
}

/* ---- reading ----------------------------------------------------------------------------- */

static kl_err read_at(const source *s, void *out, size_t bytes, int64_t offset) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n =
            pread(s->fd, (char *)out + done, bytes - done, (off_t)(offset + (int64_t)done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return kl_fail(s->e, KL_EIO, s->path, "%s", strerror(errno));
        if (n == 0) return safetensors_damaged(s, "it ends early");
        done += (size_t)n;
    }
    return KL_OK;
}

static kl_err open_source(source *s, int64_t *file_bytes) {
    struct stat info;
    s->fd = open(s->path, O_RDONLY | O_CLOEXEC |
                              O_NONBLOCK); /* non-blocking: opening a pipe must not hang */
    if (s->fd < 0) return kl_fail(s->e, KL_EIO, s->path, "%s", strerror(errno));
    if (fstat(s->fd, &info) != 0 || !S_ISREG(info.st_mode))
        return kl_fail(s->e, KL_EIO, s->path, "not a file");
    *file_bytes = info.st_size;
    return KL_OK;
}

static kl_err safetensors_read_header(source *s) {
    unsigned char prefix[8];
    uint64_t length = 0;
    int64_t file_bytes = 0;
    json_error_t why;
    kl_err err = open_source(s, &file_bytes);
    if (err || (err = read_at(s, prefix, sizeof prefix, 0))) return err;
    for (int i = 7; i >= 0; i--) length = length << 8 | prefix[i];
    if (length < 2 || length > MAX_HEADER_BYTES || (int64_t)length > file_bytes - 8)
        return safetensors_damaged(s, "the length of the header is impossible");
    char *text = malloc(length);
    if (!text) kl_oom(length);
    err = read_at(s, text, length, 8);
    if (!err) {
        s->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
        err = json_is_object(s->header)
                  ? KL_OK
                  : safetensors_damaged(s, s->header != NULL ? "the header is not an object"
                                                             : why.text);
    }
    free(text);
    KL_ASSERT((int64_t)length <= file_bytes - 8);
    s->data_start = 8 + (int64_t)length;
    s->data_bytes = file_bytes - s->data_start;
    return err;
}

/* ---- judging ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int bytes;
    kl_dtype dtype; /* 0: not one of ours */
} types[] = {
    {"F64", 8, KL_F64},
    {"F32", 4, KL_F32},
    {"F16", 2, KL_F16},
    {"BF16", 2, KL_BF16},
    {"F8_E4M3", 1, KL_F8E4M3},
    {"F8_E5M2", 1, KL_F8E5M2},
    {"I64", 8, KL_I64},
    {"I32", 4, KL_I32},
    {"I16", 2, KL_I16},
    {"I8", 1, KL_I8},
    {"U8", 1, KL_U8},
    {"BOOL", 1, KL_BOOL},
    {"U16", 2, 0},
    {"U32", 4, 0},
    {"U64", 8, 0},
    {"C64", 8, 0},
};

/* Row of `types`, or -1 for one that is newer than this table. */
static int safetensors_type_of(const json_t *entry) {
    const char *name = json_string_value(json_object_get(entry, "dtype"));
    for (size_t i = 0; name != NULL && i < KL_COUNT(types); i++)
        if (strcmp(name, types[i].name) == 0) return (int)i;
    return -1;
}

static bool offsets_of(extent *out, const json_t *entry) {
    const json_t *pair = json_object_get(entry, "data_offsets");
    const json_t *begin = json_array_get(pair, 0), *end = json_array_get(pair, 1);
    *out = (extent){json_integer_value(begin), json_integer_value(end)};
    return json_array_size(pair) == 2 && json_is_integer(begin) && json_is_integer(end) &&
           out->begin >= 0 && out->begin <= out->end;
}

/* Elements of an entry; -1 when its shape is not one. */
static int64_t elements_of(const json_t *entry) {
    const json_t *shape = json_object_get(entry, "shape");
    int64_t elements = 1;
    if (!json_is_array(shape)) return -1;
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 0 ||
            __builtin_mul_overflow(elements, (int64_t)json_integer_value(size), &elements))
            return -1;
    }
    return elements;
}

static kl_err judge_entry(extent *out, const source *s, const json_t *entry) {
    const int type = safetensors_type_of(entry);
    const int64_t elements = elements_of(entry);
    int64_t bytes = 0;
    if (!json_is_object(entry) || !json_is_string(json_object_get(entry, "dtype")) || elements < 0)
        return safetensors_damaged(s, "an entry has no dtype and shape");
    if (!offsets_of(out, entry) || out->end > s->data_bytes)
        return safetensors_damaged(s, "the offsets of an entry are outside the data");
    const bool is_known = type >= 0;
    if (is_known && (__builtin_mul_overflow(elements, (int64_t)types[type].bytes, &bytes) ||
                     bytes != out->end - out->begin))
        return safetensors_damaged(s, "the offsets of an entry do not match its shape");
    return KL_OK;
}

static bool is_metadata(json_t *value) {
    const char *key;
    const json_t *text;
    bool sound = json_is_object(value);
    json_object_foreach(value, key, text) sound = sound && json_is_string(text);
    return sound;
}

static int by_begin(const void *a, const void *b) {
    const extent *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static kl_err judge_cover(const source *s, extent *extents, size_t n) {
    int64_t at = 0;
    qsort(extents, n, sizeof *extents, by_begin);
    for (size_t i = 0; i < n; i++) {
        if (extents[i].begin != at)
            return safetensors_damaged(s, "its tensors overlap or leave holes");
        at = extents[i].end;
    }
    return at == s->data_bytes ? KL_OK
                               : safetensors_damaged(s, "its tensors do not cover the data");
}

static kl_err judge_header(const source *s) {
    extent *extents = calloc(json_object_size(s->header) + 1, sizeof *extents);
    size_t n = 0;
    kl_err err = KL_OK;
    const char *key;
    json_t *value;
    if (!extents) kl_oom(sizeof *extents);
    json_object_foreach(s->header, key, value) {
        if (strcmp(key, "__metadata__") != 0)
            err = judge_entry(&extents[n++], s, value);
        else if (!is_metadata(value))
            err = safetensors_damaged(s, "its metadata is not text");
        if (err) break;
    }
    KL_ASSERT(n <= json_object_size(s->header));
    if (!err) err = judge_cover(s, extents, n);
    free(extents);
    return err;
}

/* ---- the tensor -------------------------------------------------------------------------- */

static kl_err match(const source *s, const json_t *entry, const char *key, kl_dtype dtype,
                    const kl_shape *shape) {
    const int type = safetensors_type_of(entry);
    const json_t *sizes = json_object_get(entry, "shape");
    if (!entry)
        return kl_fail(s->e, KL_EINVAL, s->path, "there is no tensor '%.128s' in this file", key);
    if (type < 0 || types[type].dtype != dtype)
        return kl_fail(s->e, KL_EINVAL, s->path, "tensor '%.128s' is %.16s; the task wants %s", key,
                       json_string_value(json_object_get(entry, "dtype")), kl_dtype_name(dtype));
    bool same = json_array_size(sizes) == (size_t)shape->ndim;
    for (int i = 0; i < shape->ndim && same; i++)
        same = json_integer_value(json_array_get(sizes, (size_t)i)) == shape->dims[i];
    if (!same)
        return kl_fail(s->e, KL_EINVAL, s->path,
                       "the shape of tensor '%.128s' is not that of the workload", key);
    return KL_OK;
}

/* The contents of a bool are 0 or 1 for every reader, whatever the file says. */
static void clean_bools(unsigned char *data, size_t n) {
    for (size_t i = 0; i < n; i++) data[i] = data[i] != 0;
}

static kl_err read_tensor(void *data, source *s, const char *key, kl_dtype dtype,
                          const kl_shape *shape) {
    kl_err err = safetensors_read_header(s);
    if (err || (err = judge_header(s))) return err;
    const json_t *entry = strcmp(key, "__metadata__") == 0 ? NULL : json_object_get(s->header, key);
    extent where;
    if ((err = match(s, entry, key, dtype, shape))) return err;
    KL_ASSERT(offsets_of(&where, entry) && (size_t)(where.end - where.begin) == shape->bytes);
    if ((err = read_at(s, data, shape->bytes, s->data_start + where.begin)) == KL_OK &&
        dtype == KL_BOOL)
        clean_bools(data, shape->bytes);
    return err;
}

kl_err kli_safetensors_read(void *data, const char *path, kl_str key, kl_dtype dtype,
                            const kl_shape *shape, kl_error *e) {
    source s = {.path = path, .fd = -1, .e = e};
    const kl_err err = read_tensor(data, &s, key.ptr, dtype, shape);
    json_decref(s.header);
    if (s.fd >= 0) (void)close(s.fd);
    return err;
}
