/* document.c - JSON with positions: typed members whose errors carry line and caret.
 *
 * jansson keeps no positions.  When an error needs one, the path (kli_node) is followed again
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
static size_t find_child(kl_str text, size_t at, const kli_node *p) {
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

static size_t find_place(const kli_node *p) {
    const kl_str text = p->doc->text;
    return p->up ? find_child(text, find_place(p->up), p)
                 : document_skip_space(text, p->doc->start);
}

static void fail_with(const kli_node *p, size_t inside, kl_err code, const char *fmt,
                      va_list args) {
    kli_doc *d = p->doc;
    char message[1024];
    KL_ASSERT(code != KL_OK);
    if (d->err) return;
    (void)vsnprintf(message, sizeof message, fmt, args);
    size_t offset = find_place(p) + inside;
    if (offset > d->text.len) offset = d->text.len;
    d->err = kl_fail_at(d->e, code, d->file, d->text, offset, "%s", message);
}

void kli_doc_fail(const kli_node *p, kl_err code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fail_with(p, 0, code, fmt, args);
    va_end(args);
}

void kli_doc_fail_name(const kli_node *p, kl_err code, const char *fmt, ...) {
    kli_node name = *p;
    va_list args;
    name.at_name = true;
    va_start(args, fmt);
    fail_with(&name, 0, code, fmt, args);
    va_end(args);
}

static KL_PRINTF(4, 5) void fail_inside(const kli_node *p, size_t inside, kl_err code,
                                        const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fail_with(p, inside, code, fmt, args);
    va_end(args);
}

/* Offsets count from the first byte of a string value, behind its quote.  Escapes before it shift
 * the caret a little. */
void kli_doc_fault(const kli_node *p, const kli_fault *fault) {
    fail_inside(p, fault->offset + 1, fault->code, "%s", fault->message);
}

/* ---- walking ----------------------------------------------------------------------------- */

kli_node kli_doc_member(const kli_node *up, const char *key) {
    return (kli_node){
        .doc = up->doc, .up = up, .key = kl_str_of(key), .value = json_object_get(up->value, key)};
}

static kli_node node_at(const kli_node *up, void *iterator, size_t index) {
    kli_node at = {.doc = up->doc, .up = up, .index = index};
    if (up->doc->err) return at;
    if (!json_is_object(up->value)) {
        at.value = json_array_get(up->value, index);
    } else if (iterator) {
        at.key = kl_str_of(json_object_iter_key(iterator));
        at.value = json_object_iter_value(iterator);
    }
    return at;
}

kli_node kli_doc_first(const kli_node *up) { return node_at(up, json_object_iter(up->value), 0); }

kli_node kli_doc_next(const kli_node *before) {
    KL_ASSERT(before->up);
    json_t *list = before->up->value;
    void *here = json_is_object(list) ? json_object_key_to_iter(before->key.ptr) : NULL;
    return node_at(before->up, json_object_iter_next(list, here), before->index + 1);
}

/* ---- typed members ----------------------------------------------------------------------- */

static kli_node present(const kli_node *up, const char *key) {
    kli_node here = kli_doc_member(up, key);
    if (json_is_null(here.value)) here.value = NULL;
    return here;
}

static void wrong_type(const kli_node *p, const char *wanted) {
    kli_doc_fail(p, KL_EPARSE, "\"%s\" must be %s", p->key.ptr, wanted);
}

void kli_doc_text(kl_str *out, const kli_node *up, const char *key) {
    const kli_node here = present(up, key);
    if (!here.value) return;
    if (!json_is_string(here.value)) return wrong_type(&here, "text");
    *out = kl_arena_copy(up->doc->arena,
                         (kl_str){json_string_value(here.value), json_string_length(here.value)});
}

void kli_doc_real(double *out, const kli_node *up, const char *key) {
    const kli_node here = present(up, key);
    if (!here.value) return;
    if (!json_is_number(here.value)) return wrong_type(&here, "a number");
    *out = json_number_value(here.value);
}

void kli_doc_bool(bool *out, const kli_node *up, const char *key) {
    const kli_node here = present(up, key);
    if (!here.value) return;
    if (!json_is_boolean(here.value)) return wrong_type(&here, "true or false");
    *out = json_is_true(here.value);
}

void kli_doc_host(kl_host_kind *out, const kli_node *up) {
    const kli_node here = present(up, "on");
    kl_str text = {0};
    kli_doc_text(&text, up, "on");
    if (!text.ptr) return;
    if (!kl_str_eq(text, KL_S("cpu")) && !kl_str_eq(text, KL_S("gpu")))
        return wrong_type(&here, "\"cpu\" or \"gpu\"");
    *out = kl_str_eq(text, KL_S("cpu")) ? KL_ON_CPU : KL_ON_GPU;
}

kli_node kli_doc_object(const kli_node *up, const char *key, bool required) {
    kli_node here = present(up, key);
    if (!here.value && required) kli_doc_fail(up, KL_EPARSE, "\"%s\" is missing", key);
    if (here.value && !json_is_object(here.value)) {
        wrong_type(&here, "an object");
        here.value = NULL;
    }
    return here;
}

kli_node kli_doc_array(const kli_node *up, const char *key, size_t most, const char *what) {
    kli_node here = present(up, key);
    if (here.value && !json_is_array(here.value)) wrong_type(&here, "an array");
    if (json_array_size(here.value) > most)
        kli_doc_fail(&here, KL_ELIMIT, "more than %zu %s", most, what);
    return here;
}

static bool document_has_word(const char *words, const char *word) {
    const size_t length = strchr(word, ' ') == NULL ? strlen(word) : 0;
    for (const char *at = strstr(words, word); length > 0 && at != NULL; at = strstr(at + 1, word))
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

void kli_doc_known(const kli_node *p, const char *known) {
    for (kli_node at = kli_doc_first(p); at.value; at = kli_doc_next(&at))
        if (!document_has_word(known, at.key.ptr))
            kli_doc_fail_name(&at, KL_EPARSE, "unknown key \"%.64s\"; there are: %s", at.key.ptr,
                              known);
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
