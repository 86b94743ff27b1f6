/* record_schema.c - the fields of a table as JSON Schema and as a section of
 * docs/formats/records.md. SPDX-License-Identifier: Apache-2.0 */
#include "base/record.h"
#include <stdio.h>

#define HEX "[0-9a-f]{64}"
enum { MAX_RECORDS = 16 }; /* in one document */

static json_t *object_schema(const kli_field **at, bool strict);

static json_t *parsed(const char *text) {
    json_t *o = json_loads(text, JSON_DECODE_ANY, NULL);
    KL_ASSERT(o);
    return o;
}

static json_t *either(const char *one, json_t *other) {
    return json_pack("{s[oo]}", "anyOf", parsed(one), other);
}

static json_t *names_schema(const kli_names *names) {
    json_t *all = json_array();
    for (int i = 0; i < names->n; i++) json_array_append_new(all, json_string(names->text[i]));
    return json_pack("{so}", "enum", all);
}

static json_t *record_schema(const kl_record *r, bool strict) {
    const kli_field *f = r->fields;
    json_t *o = object_schema(&f, strict);
    if (r->rules) {
        json_t *rules = parsed(r->rules);
        json_object_update(o, rules);
        json_decref(rules);
    }
    return o;
}

static json_t *list_schema(const kli_field *f, bool strict);

static json_t *value_schema(const kli_field *f, bool strict) {
    switch (f->kind) {
    case KL_FIELD_HASH:
        return parsed("{\"type\": \"string\", \"pattern\": \"^" HEX "$\"}");
    case KL_FIELD_DIGEST:
    case KL_FIELD_KEY:
        return parsed("{\"type\": \"string\", \"pattern\": \"^(" HEX ")?$\"}");
    case KL_FIELD_REAL:
        if (strict) return parsed("{\"type\": \"number\", \"minimum\": 0}");
        return either("{\"type\": \"number\"}",
                      parsed("{\"enum\": [\"NaN\", \"Infinity\", \"-Infinity\"]}"));
    case KL_FIELD_INT:
    case KL_FIELD_I64:
    case KL_FIELD_U32:
        return parsed(f->minus ? "{\"type\": \"integer\"}"
                               : "{\"type\": \"integer\", \"minimum\": 0}");
    case KL_FIELD_SEED:
        return parsed("{\"type\": \"string\", \"pattern\": \"^[0-9]+$\"}");
    case KL_FIELD_BOOL:
        return parsed("{\"type\": \"boolean\"}");
    case KL_FIELD_EITHER:
    case KL_FIELD_NAME:
        return names_schema(f->names);
    case KL_FIELD_RECORD:
        return record_schema(f->of, strict);
    case KL_FIELD_OWN:
        return parsed(f->codec->schema);
    case KL_FIELD_LIST:
    case KL_FIELD_ARRAY:
        return list_schema(f, strict);
    default:
        return parsed("{\"type\": \"string\"}");
    }
}

static json_t *list_schema(const kli_field *f, bool strict) {
    if (f->keyed)
        return json_pack("{ss so}", "type", "object", "additionalProperties",
                         value_schema(&f->of->fields[1], strict));
    json_t *items = f->of ? record_schema(f->of, strict) : parsed("{\"type\": \"string\"}");
    return json_pack("{ss so}", "type", "array", "items", items);
}

/* The fields from `*at` to their CLOSE, where it is left. */
static json_t *object_schema(const kli_field **at, bool strict) {
    json_t *required = json_array(), *properties = json_object();
    const kli_field *f = *at;
    for (; f->kind != KL_FIELD_CLOSE; f++) {
        const kli_field *row = f;
        const bool object = f->kind == KL_FIELD_OPEN || f->kind == KL_FIELD_RECORD;
        if (f->kind == KL_FIELD_OPEN) f++;
        json_t *value =
            row->kind == KL_FIELD_OPEN ? object_schema(&f, strict) : value_schema(row, strict);
        if (object && row->when) value = either("{\"type\": \"null\"}", value);
        json_object_set_new(value, "description", json_string(row->doc));
        json_object_set_new(properties, row->key, value);
        if (!row->younger && !row->sparse && (object || !row->when))
            json_array_append_new(required, json_string(row->key));
    }
    *at = f;
    return json_pack("{ss so so}", "type", "object", "required", required, "properties",
                     properties);
}

static void add_head_schema(json_t *body, const char *schema) {
    json_t *properties = json_object_get(body, "properties"),
           *required = json_object_get(body, "required");
    json_object_set_new(properties, "schema", json_pack("{ss}", "const", schema));
    json_object_set_new(properties, "version", json_pack("{si}", "const", 1));
    json_array_append_new(required, json_string("schema"));
    json_array_append_new(required, json_string("version"));
}

json_t *kli_record_schema(const kl_record *r) {
    char schema[64];
    snprintf(schema, sizeof schema, "klineage/%s", r->name);
    json_t *o =
        json_pack("{ss so ss ss}", "$schema", "https://json-schema.org/draft/2020-12/schema", "$id",
                  json_sprintf("https://klineage.invalid/schema/%s.schema.json", r->name), "title",
                  schema, "description", r->doc);
    json_t *body = record_schema(r, r->strict);
    if (r->document) add_head_schema(body, schema);
    json_object_update(o, body);
    json_decref(body);
    return o;
}

/* ---- documentation ----------------------------------------------------------------------- */

static void add_names(kl_buf *out, const kli_names *names) {
    for (int i = 0; i < names->n; i++) kl_buf_printf(out, "%s`%s`", i ? " " : "", names->text[i]);
}

static bool may_be_null(const kli_field *f) {
    return f->kind == KL_FIELD_OPEN || f->kind == KL_FIELD_RECORD;
}

static void add_type(kl_buf *out, const kli_field *f) {
    static const char *const WORDS[] = {
        [KL_FIELD_OPEN] = "object",        [KL_FIELD_TEXT] = "text",
        [KL_FIELD_HASH] = "hash",          [KL_FIELD_KEY] = "hash or empty",
        [KL_FIELD_DIGEST] = "hash",        [KL_FIELD_REAL] = "number",
        [KL_FIELD_INT] = "whole number",   [KL_FIELD_I64] = "whole number",
        [KL_FIELD_U32] = "whole number",   [KL_FIELD_SEED] = "whole number as text",
        [KL_FIELD_BOOL] = "true or false", [KL_FIELD_OWN] = "see there",
    };
    const bool list = f->kind == KL_FIELD_LIST || f->kind == KL_FIELD_ARRAY;
    if (f->names)
        add_names(out, f->names);
    else if (f->keyed)
        kl_buf_add(out, KL_S("object by name"));
    else if (list && !f->of)
        kl_buf_add(out, KL_S("list of texts"));
    else if (f->of)
        kl_buf_printf(out, "%s[%s](#%s)", list ? "list of " : "", f->of->name, f->of->name);
    else
        kl_buf_add(out, kl_str_of(WORDS[f->kind]));
    if (f->when) kl_buf_add(out, may_be_null(f) ? KL_S(", or null") : KL_S(", may be absent"));
    if (f->sparse) kl_buf_add(out, KL_S(", may be absent"));
    if (f->younger) kl_buf_add(out, KL_S(", absent in older documents"));
}

static size_t record_schema_count_rows(const kli_field *fields) {
    size_t n = 0;
    for (int depth = 1; depth; n++)
        depth += (fields[n].kind == KL_FIELD_OPEN) - (fields[n].kind == KL_FIELD_CLOSE);
    return n;
}

static const kli_field *add_rows(kl_buf *out, const kli_field *f, const char *within) {
    for (; f->kind != KL_FIELD_CLOSE; f++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s%s", within, *within ? "." : "", f->key);
        kl_buf_printf(out, "| `%s` | ", path);
        add_type(out, f);
        kl_buf_printf(out, " | %s |\n", f->doc);
        if (f->kind == KL_FIELD_OPEN) f = add_rows(out, f + 1, path);
    }
    return f;
}

/* `r` and every record that is a part of it, each once. */
static void add_page(kl_buf *out, const kl_record *r, const kl_record **seen, int *n) {
    for (int i = 0; i < *n; i++)
        if (seen[i] == r) return;
    KL_ASSERT(*n < MAX_RECORDS);
    seen[(*n)++] = r;
    kl_buf_printf(out, "\n## %s\n\n%s\n\n| key | value | meaning |\n| --- | --- | --- |\n", r->name,
                  r->doc);
    if (r->document)
        kl_buf_printf(out,
                      "| `schema`, `version` | `klineage/%s`, 1 | within a version fields are "
                      "added, never renamed |\n",
                      r->name);
    add_rows(out, r->fields, "");
    for (const kli_field *f = r->fields, *end = r->fields + record_schema_count_rows(r->fields);
         f < end; f++)
        if (f->of && !f->keyed) add_page(out, f->of, seen, n);
}

void kli_record_page(kl_buf *out, const kl_record *r) {
    const kl_record *seen[MAX_RECORDS];
    int n = 0;
    add_page(out, r, seen, &n);
}
