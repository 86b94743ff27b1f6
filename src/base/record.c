/* record.c - the fields of a table, one after another, to JSON and back.
 *
 * A group (OPEN to CLOSE) is an object in JSON and nothing in the struct: both directions go
 * through the table with a cursor and call themselves for a group.  Not here: what must hold
 * between fields; their owner asks that afterwards. SPDX-License-Identifier: Apache-2.0 */
#include "base/record.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *kli_name_of(const kli_names *names, int value) {
    KL_ASSERT(value >= 0 && value < names->n && names->text[value]);
    return names->text[value];
}

int kli_name_find(const kli_names *names, kl_str name) {
    for (int i = 0; i < names->n; i++)
        if (kl_str_eq(kl_str_of(names->text[i]), name)) return i;
    return -1;
}

/* ---- to JSON ----------------------------------------------------------------------------- */

static const kli_field *put_fields(json_t *o, const kli_field *f, const char *in);

static size_t size_of_item(const kli_field *f) { return f->of ? f->of->size : sizeof(kl_str); }

/* Where the items are: the struct itself, or what its pointer points to. */
static char *items_of(const kli_field *f, const char *in) {
    char *items = (char *)in + f->at;
    if (f->kind == KL_FIELD_LIST) memcpy(&items, in + f->at, sizeof items);
    return items;
}

static json_t *value_json(const kli_field *f, const char *in);

static void put_item(json_t *list, const kli_field *f, const char *item) {
    const kl_str *text = (const void *)item;
    if (!f->of)
        json_array_append_new(list, kli_json_str(*text));
    else if (!f->keyed)
        json_array_append_new(list, kli_record_json(f->of, item));
    else
        json_object_set_new(list, text->ptr, value_json(&f->of->fields[1], item));
}

static json_t *list_json(const kli_field *f, const char *in) {
    const int n = *(const int *)(const void *)(in + f->count_at);
    const char *items = items_of(f, in);
    KL_ASSERT(n >= 0 && (n <= f->most || f->kind == KL_FIELD_LIST));
    json_t *list = f->keyed ? json_object() : json_array();
    for (int i = 0; i < n; i++) put_item(list, f, items + (size_t)i * size_of_item(f));
    return list;
}

static json_t *value_json(const kli_field *f, const char *in) {
    const void *at = in + f->at;
    switch (f->kind) {
    case KL_FIELD_TEXT:
    case KL_FIELD_HASH:
    case KL_FIELD_KEY:
        return kli_json_str(*(const kl_str *)at);
    case KL_FIELD_DIGEST:
        return json_string(at);
    case KL_FIELD_REAL:
        return kli_json_real(*(const double *)at);
    case KL_FIELD_INT:
        return json_integer(*(const int *)at);
    case KL_FIELD_I64:
        return json_integer(*(const int64_t *)at);
    case KL_FIELD_U32:
        return json_integer(*(const uint32_t *)at);
    case KL_FIELD_SEED:
        return json_sprintf("%llu", (unsigned long long)*(const uint64_t *)at);
    case KL_FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case KL_FIELD_EITHER:
        return json_string(kli_name_of(f->names, *(const bool *)at));
    case KL_FIELD_NAME:
        return json_string(kli_name_of(f->names, *(const int *)at));
    case KL_FIELD_RECORD:
        return kli_record_json(f->of, at);
    case KL_FIELD_OWN:
        return f->codec->write(in);
    case KL_FIELD_LIST:
    case KL_FIELD_ARRAY:
        return list_json(f, in);
    case KL_FIELD_OPEN:
    case KL_FIELD_CLOSE:
        break;
    }
    KL_ASSERT(false && "a field without a value");
    return NULL;
}

/* The CLOSE that belongs to the OPEN before `f`. */
static const kli_field *end_of_group(const kli_field *f) {
    for (; f->kind != KL_FIELD_CLOSE; f++)
        if (f->kind == KL_FIELD_OPEN) f = end_of_group(f + 1);
    return f;
}

static bool is_object(const kli_field *f) {
    return f->kind == KL_FIELD_OPEN || f->kind == KL_FIELD_RECORD;
}

static bool record_is_empty(const kli_field *f, const char *in) {
    const void *at = in + f->at;
    switch (f->kind) {
    case KL_FIELD_RECORD:
        return record_is_empty(f->of->fields, at);
    case KL_FIELD_REAL:
        return !(*(const double *)at > 0);
    case KL_FIELD_INT:
        return !*(const int *)at;
    case KL_FIELD_SEED:
        return !*(const uint64_t *)at;
    default:
        KL_ASSERT(f->kind == KL_FIELD_TEXT || f->kind == KL_FIELD_HASH);
        return !((const kl_str *)at)->len;
    }
}

/* Puts the field at `f`; returns the last row that belongs to it. */
static const kli_field *record_put_field(json_t *o, const kli_field *f, const char *in) {
    if (f->sparse && record_is_empty(f, in)) return f;
    const bool there = !f->when || f->when(in);
    if (!there && is_object(f)) json_object_set_new(o, f->key, json_null());
    if (f->kind == KL_FIELD_OPEN && there) {
        json_t *group = json_object();
        json_object_set_new(o, f->key, group);
        return put_fields(group, f + 1, in);
    }
    if (f->kind == KL_FIELD_OPEN) return end_of_group(f + 1);
    if (there) json_object_set_new(o, f->key, value_json(f, in));
    return f;
}

static const kli_field *put_fields(json_t *o, const kli_field *f, const char *in) {
    for (; f->kind != KL_FIELD_CLOSE; f++) f = record_put_field(o, f, in);
    return f;
}

json_t *kli_record_json(const kl_record *r, const void *in) {
    json_t *o = json_object();
    if (r->document) {
        json_object_set_new(o, "schema", json_sprintf("klineage/%s", r->name));
        json_object_set_new(o, "version", json_integer(1));
    }
    put_fields(o, r->fields, in);
    return o;
}

/* ---- from JSON --------------------------------------------------------------------------- */

typedef struct {
    kl_arena *a;
    kl_str file;
    kl_error *e;
    kl_err err; /* of the first thing that was wrong; what follows is skipped */
    bool strict;
    char at[160]; /* "edges[1].gain" */
} record_reader;

static const kli_field *read_fields(record_reader *r, const kli_field *f, char *out,
                                    const json_t *o);

static void read_record(record_reader *r, const kl_record *d, char *out, const json_t *o) {
    if (d->defaults) memcpy(out, d->defaults, d->size);
    read_fields(r, d->fields, out, o);
}

static void record_wrong(record_reader *r, const char *fmt, ...) KL_PRINTF(2, 3);
static void record_wrong(record_reader *r, const char *fmt, ...) {
    char text[400];
    va_list args;
    if (r->err) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    r->err = kl_fail(r->e, KL_EPARSE, kl_arena_copy(r->a, r->file).ptr, "%s%s%s", r->at,
                     r->at[0] ? ": " : "", text);
}

/* Go into a part; returns how to come back. */
static size_t record_enter(record_reader *r, const char *key, int index) {
    const size_t n = strlen(r->at);
    KL_ASSERT(n < sizeof r->at);
    snprintf(r->at + n, sizeof r->at - n, "%s%s", n ? "." : "", key);
    if (index >= 0) snprintf(r->at + strlen(r->at), sizeof r->at - strlen(r->at), "[%d]", index);
    return n;
}

static bool is_hash(const char *s) {
    return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static bool is_amount(const json_t *value) {
    return json_is_number(value) && isfinite(json_number_value(value)) &&
           json_number_value(value) >= 0;
}

/* What a strict reader demands of a field, as its message says it; NULL: nothing. */
static const char *demand(const kli_field *f, const json_t *value) {
    const char *text = json_string_value(value);
    switch (f->kind) {
    case KL_FIELD_TEXT:
        return text ? NULL : "a string";
    case KL_FIELD_HASH:
        return text && is_hash(text) ? NULL : "64 hexadecimal digits";
    case KL_FIELD_KEY:
        return text && (!*text || is_hash(text)) ? NULL : "64 hexadecimal digits, or empty";
    case KL_FIELD_REAL:
        return is_amount(value) ? NULL : "a number from 0 up";
    case KL_FIELD_INT:
    case KL_FIELD_I64:
    case KL_FIELD_U32:
        return json_is_integer(value) && is_amount(value) ? NULL : "a whole number from 0 up";
    case KL_FIELD_EITHER:
    case KL_FIELD_NAME:
        return text ? NULL : "a string";
    case KL_FIELD_OPEN:
    case KL_FIELD_RECORD:
        return json_is_object(value) || (f->when && json_is_null(value)) ? NULL : "an object";
    case KL_FIELD_LIST:
    case KL_FIELD_ARRAY:
        if (f->keyed) return json_is_object(value) ? NULL : "an object";
        return json_is_array(value) ? NULL : "an array";
    default:
        return NULL;
    }
}

/* Is the field there and what it must be? */
static void check_demand(record_reader *r, const kli_field *f, const json_t *o) {
    const json_t *value = json_object_get(o, f->key);
    if (!r->strict || (!value && f->when && !is_object(f))) return;
    const char *wanted = demand(f, value);
    if (wanted)
        record_wrong(r, "\"%s\" is %s; it must be %s", f->key, kli_json_kind(value), wanted);
}

static uint64_t record_seed_of(kl_str s) {
    uint64_t v = 0;
    for (size_t i = 0; i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9'; i++)
        v = v * 10 + (uint64_t)(s.ptr[i] - '0');
    return v;
}

/* -1: not there, or none of them. */
static int record_name_in(record_reader *r, const kli_field *f, const json_t *o) {
    const kl_str word = kli_json_text_or(o, f->key, (kl_str){0});
    const int found = kli_name_find(f->names, word);
    if (r->strict && word.ptr && found < 0)
        record_wrong(r, "\"%s\": '%.60s' is unknown", f->key, word.ptr);
    return found;
}

static void read_item(record_reader *r, const kli_field *f, char *item, const char *key,
                      json_t *value) {
    kl_str *text = (void *)item;
    if (!f->of) {
        *text = kl_arena_copy(r->a, kl_str_of(json_string_value(value)));
        return;
    }
    if (!f->keyed) {
        read_record(r, f->of, item, value);
        return;
    }
    kli_field named = f->of->fields[1];
    named.key = "value";
    json_t *alone = json_pack("{sO}", "value", value);
    read_fields(r, (kli_field[]){named, KL_ROWS_END}, item, alone);
    json_decref(alone);
    *text = kl_arena_copy(r->a, kl_str_of(key));
}

static size_t count_items(record_reader *r, const kli_field *f, const json_t *list) {
    const size_t n = f->keyed ? json_object_size(list) : json_array_size(list),
                 most = (size_t)f->most;
    if (n <= most) return n;
    if (r->strict || f->kind == KL_FIELD_LIST)
        record_wrong(r, "\"%s\" has %zu items; the limit is %zu", f->key, n, most);
    return most; /* of an array in the struct the first are kept */
}

static void read_items(record_reader *r, const kli_field *f, char *out, const json_t *o) {
    json_t *list = json_object_get(o, f->key);
    const size_t n = count_items(r, f, list), size = size_of_item(f);
    void *cursor = f->keyed ? json_object_iter(list) : NULL;
    if (r->err) return;
    if (f->kind == KL_FIELD_LIST)
        memcpy(out + f->at, &(void *){kl_arena_alloc(r->a, n + 1, size)}, sizeof(void *));
    char *items = items_of(f, out);
    KL_ASSERT(n <= (size_t)f->most);
    for (size_t i = 0; i < n && !r->err; i++) {
        const size_t back = record_enter(r, f->key, (int)i);
        read_item(r, f, items + i * size, cursor ? json_object_iter_key(cursor) : NULL,
                  cursor ? json_object_iter_value(cursor) : json_array_get(list, i));
        if (cursor) cursor = json_object_iter_next(list, cursor);
        r->at[back] = '\0';
    }
    *(int *)(void *)(out + f->count_at) = (int)n;
}

static void read_own(record_reader *r, const kli_field *f, char *out, const json_t *o) {
    const json_t *value = json_object_get(o, f->key);
    if (!f->codec->read(out, r->a, value) && r->strict)
        record_wrong(r, "\"%s\" is %s, and not what belongs there", f->key, kli_json_kind(value));
}

/* An object within: what is null, or missing before a reader that is not strict, has the defaults
 * of its fields. */
static const kli_field *record_read_object(record_reader *r, const kli_field *f, char *out,
                                           const json_t *o) {
    const json_t *inner = json_object_get(o, f->key);
    const bool strict = r->strict;
    const size_t back = record_enter(r, f->key, -1);
    r->strict = strict && json_is_object(inner);
    if (f->kind == KL_FIELD_OPEN)
        f = read_fields(r, f + 1, out, inner);
    else
        read_record(r, f->of, out + f->at, inner);
    r->strict = strict;
    r->at[back] = '\0';
    return f;
}

static void read_value(record_reader *r, const kli_field *f, char *out, const json_t *o) {
    void *at = out + f->at;
    int name;
    switch (f->kind) {
    case KL_FIELD_TEXT:
    case KL_FIELD_HASH:
    case KL_FIELD_KEY:
        *(kl_str *)at = kl_arena_copy(r->a, kli_json_text_or(o, f->key, *(kl_str *)at));
        break;
    case KL_FIELD_DIGEST:
        snprintf(at, 65, "%s", kl_arena_copy(r->a, kli_json_text_or(o, f->key, KL_S(""))).ptr);
        break;
    case KL_FIELD_REAL:
        *(double *)at = kli_json_real_or(o, f->key, *(double *)at);
        break;
    case KL_FIELD_INT:
        *(int *)at = (int)kli_json_int_or(o, f->key, *(int *)at);
        break;
    case KL_FIELD_I64:
        *(int64_t *)at = kli_json_int_or(o, f->key, *(int64_t *)at);
        break;
    case KL_FIELD_U32:
        *(uint32_t *)at = (uint32_t)kli_json_int_or(o, f->key, *(uint32_t *)at);
        break;
    case KL_FIELD_SEED:
        *(uint64_t *)at = record_seed_of(kli_json_text_or(o, f->key, KL_S("0")));
        break;
    case KL_FIELD_BOOL:
        *(bool *)at = kli_json_bool_or(o, f->key, *(bool *)at);
        break;
    case KL_FIELD_EITHER:
        *(bool *)at = record_name_in(r, f, o) == 1;
        break;
    case KL_FIELD_NAME:
        if ((name = record_name_in(r, f, o)) >= 0) *(int *)at = name;
        break;
    case KL_FIELD_OWN:
        read_own(r, f, out, o);
        break;
    default:
        read_items(r, f, out, o);
    }
}

static const kli_field *read_fields(record_reader *r, const kli_field *f, char *out,
                                    const json_t *o) {
    for (; f->kind != KL_FIELD_CLOSE; f++) {
        check_demand(r, f, o);
        if (is_object(f))
            f = record_read_object(r, f, out, o);
        else if (!r->err)
            read_value(r, f, out, o);
    }
    return f;
}

/* What wrote this, and would this program understand it? */
static void read_head(record_reader *r, const kl_record *d, const json_t *o) {
    const kl_str schema = kli_json_text_or(o, "schema", (kl_str){0});
    const int64_t version = kli_json_int_or(o, "version", 0);
    const kl_str mine = kl_arena_printf(r->a, "klineage/%s", d->name);
    if ((schema.ptr || d->strict) && !kl_str_eq(schema, mine))
        record_wrong(r, "this is no %s: \"schema\" is not \"%s\"", d->name, mine.ptr);
    else if (version != 1)
        record_wrong(r, "a %s of version %lld, and this program reads version 1", d->name,
                     (long long)version);
}

kl_err kli_record_read(void *out, const kl_record *d, kl_arena *a, const json_t *o, kl_str file,
                       kl_error *e) {
    record_reader r = {.a = a, .file = file, .e = e, .strict = d->strict};
    KL_ASSERT(d->size > 0 && (!d->document || d->name));
    memset(out, 0, d->size);
    if (d->document) read_head(&r, d, o);
    if (!r.err) read_record(&r, d, out, o);
    return r.err;
}
