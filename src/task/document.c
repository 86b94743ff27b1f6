/* document.c - JSON with positions: typed members whose errors carry line and caret.
 *
 * jansson keeps no positions.  When an error needs one, the path (kli_doc_path) is followed again
 * through the text, which is known to be valid JSON by then; one scan of the text per error,
 * nothing per success. Deliberately not here: parsing itself (src/base/json.h) and what the members
 * mean. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "task_impl.h"

/* ---- finding a place in the text --------------------------------------------------------- */

static size_t document_skip_space(kl_str text, size_t at) {
    while (at < text.len && memchr(" \t\r\n", text.ptr[at], 4) != NULL) at++;
    return at;
}

/* From an opening quote to behind the closing one. */
static size_t skip_string(kl_str text, size_t at) {
    for (at++; at < text.len && text.ptr[at] != '"'; at++)
        if (text.ptr[at] == '\\') at++;
    return at < text.len ? at + 1 : text.len;
}

/* From the first byte of a value to behind its last.  Counts brackets instead of recursing: depth
 * is the file's choice.
 */
static size_t skip_value(kl_str text, size_t at) {
    size_t depth = 0;
    while (at < text.len) {
        const char c = text.ptr[at];
        if (depth == 0 && (c == ',' || c == ']' || c == '}')) return at;
        if (c == '"') {
            at = skip_string(text, at);
            if (depth == 0) return at;
            continue;
        }
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return at;
    }
    return at;
}

static bool is_member(kl_str text, size_t begin, size_t end, kl_str key) {
    return end - begin == key.len + 2 && memcmp(text.ptr + begin + 1, key.ptr, key.len) == 0;
}

/* The child of the container at `at`; `at` itself when it is not found (an escaped name, a missing
 * member). */
static size_t find_child(kl_str text, size_t at, const kli_doc_path *p) {
    const size_t container = at;
    const bool is_object = at < text.len && text.ptr[at] == '{';
    size_t index = 0;
    at = document_skip_space(text, at + 1);
    while (at < text.len && text.ptr[at] != '}' && text.ptr[at] != ']') {
        const size_t name = at;
        size_t name_end = at;
        if (is_object) {
            name_end = skip_string(text, at);
            at = document_skip_space(text, document_skip_space(text, name_end) + 1);
        }
        const bool hit = p->key.len > 0 ? is_object && is_member(text, name, name_end, p->key)
                                        : index == p->index;
        if (hit) return p->at_name ? name : at;
        at = document_skip_space(text, skip_value(text, at));
        if (at < text.len && text.ptr[at] == ',') at = document_skip_space(text, at + 1);
        index++;
    }
    return container;
}

static size_t find_place(const kli_doc *d, const kli_doc_path *p) {
    if (p == NULL) return document_skip_space(d->text, d->start);
    const size_t container = find_place(d, p->up);
    return find_child(d->text, container, p);
}

static kl_err fail_with(const kli_doc *d, const kli_doc_path *p, size_t inside, kl_err code,
                        const char *fmt, va_list args) {
    char message[1024];
    if (d->e == NULL) return code;
    (void)vsnprintf(message, sizeof message, fmt, args);
    size_t offset = find_place(d, p) + inside;
    if (offset > d->text.len) offset = d->text.len;
    return kl_fail_at(d->e, code, d->file, d->text, offset, "%s", message);
}

kl_err kli_doc_fail(const kli_doc *d, const kli_doc_path *p, kl_err code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const kl_err err = fail_with(d, p, 0, code, fmt, args);
    va_end(args);
    return err;
}

/* `inside` counts from the first byte of a string value, behind its quote.  Escapes before it shift
 * the caret a little.
 */
kl_err kli_doc_fail_inside(const kli_doc *d, const kli_doc_path *p, size_t inside, kl_err code,
                           const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const kl_err err = fail_with(d, p, inside + 1, code, fmt, args);
    va_end(args);
    return err;
}

/* ---- typed members ----------------------------------------------------------------------- */

static json_t *member(const json_t *o, const char *key) {
    json_t *value = json_object_get(o, key);
    return json_is_null(value) ? NULL : value;
}

static kl_err wrong_type(const kli_doc *d, const kli_doc_path *up, const char *key,
                         const char *wanted) {
    const kli_doc_path here = {.up = up, .key = kl_str_of(key)};
    return kli_doc_fail(d, &here, KL_EPARSE, "\"%s\" must be %s", key, wanted);
}

kl_err kli_doc_text(kl_str *out, const kli_doc *d, const kli_doc_path *up, const json_t *o,
                    const char *key) {
    const json_t *value = member(o, key);
    if (value == NULL) return KL_OK;
    if (!json_is_string(value)) return wrong_type(d, up, key, "text");
    *out = kl_arena_copy(d->arena, (kl_str){json_string_value(value), json_string_length(value)});
    return KL_OK;
}

kl_err kli_doc_real(double *out, const kli_doc *d, const kli_doc_path *up, const json_t *o,
                    const char *key) {
    const json_t *value = member(o, key);
    if (value == NULL) return KL_OK;
    if (!json_is_number(value)) return wrong_type(d, up, key, "a number");
    *out = json_number_value(value);
    return KL_OK;
}

kl_err kli_doc_bool(bool *out, const kli_doc *d, const kli_doc_path *up, const json_t *o,
                    const char *key) {
    const json_t *value = member(o, key);
    if (value == NULL) return KL_OK;
    if (!json_is_boolean(value)) return wrong_type(d, up, key, "true or false");
    *out = json_is_true(value);
    return KL_OK;
}

kl_err kli_doc_host(kl_host_kind *out, const kli_doc *d, const kli_doc_path *up, const json_t *o) {
    kl_str text = {0};
    const kl_err err = kli_doc_text(&text, d, up, o, "on");
    if (err != KL_OK || text.ptr == NULL) return err;
    if (!kl_str_eq(text, KL_S("cpu")) && !kl_str_eq(text, KL_S("gpu")))
        return wrong_type(d, up, "on", "\"cpu\" or \"gpu\"");
    *out = kl_str_eq(text, KL_S("cpu")) ? KL_ON_CPU : KL_ON_GPU;
    return KL_OK;
}

kl_err kli_doc_object(json_t **out, const kli_doc *d, const kli_doc_path *up, const json_t *o,
                      const char *key, bool required) {
    *out = member(o, key);
    if (*out == NULL && required) return kli_doc_fail(d, up, KL_EPARSE, "\"%s\" is missing", key);
    return *out == NULL || json_is_object(*out) ? KL_OK : wrong_type(d, up, key, "an object");
}

kl_err kli_doc_array(json_t **out, const kli_doc *d, const kli_doc_path *up, const json_t *o,
                     const char *key) {
    *out = member(o, key);
    return *out == NULL || json_is_array(*out) ? KL_OK : wrong_type(d, up, key, "an array");
}

static bool document_has_word(const char *words, const char *word) {
    const size_t length = strchr(word, ' ') == NULL ? strlen(word) : 0;
    for (const char *at = strstr(words, word); length > 0 && at != NULL; at = strstr(at + 1, word))
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

kl_err kli_doc_known(const kli_doc *d, const kli_doc_path *p, json_t *o, const char *known) {
    for (void *i = json_object_iter(o); i != NULL; i = json_object_iter_next(o, i)) {
        const char *key = json_object_iter_key(i);
        if (document_has_word(known, key)) continue;
        const kli_doc_path here = {.up = p, .key = kl_str_of(key), .at_name = true};
        return kli_doc_fail(d, &here, KL_EPARSE, "unknown key \"%.64s\"; there are: %s", key,
                            known);
    }
    return KL_OK;
}

bool kli_is_printable(kl_str s, size_t max) {
    if (s.len == 0 || s.len > max) return false;
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f) return false;
    return true;
}

bool kli_is_inside(kl_str file) {
    if (!kli_is_printable(file, 255) || file.ptr[0] == '/' ||
        memchr(file.ptr, '\\', file.len) != NULL)
        return false;
    const char *at = file.ptr;
    while ((at = strstr(at, "..")) != NULL) {
        const bool whole = (at == file.ptr || at[-1] == '/') && (at[2] == '/' || at[2] == '\0');
        if (whole) return false;
        at += 2;
    }
    return true;
}
