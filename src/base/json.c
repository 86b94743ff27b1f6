/* json.c - jansson with our errors.
 *
 * Not here: a schema language.  A reader asks for the fields it needs and the getters say which one
 * is missing. SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include <stdio.h>

kl_err kli_json_parse(json_t **out, kl_str text, kl_str file, kl_error *e) {
    json_error_t why;
    *out = json_loadb(text.ptr ? text.ptr : "", text.len, JSON_REJECT_DUPLICATES, &why);
    if (*out) return KL_OK;
    size_t offset = why.position > 0 ? (size_t)why.position : 0;
    if (offset > 0) offset--; /* jansson has already consumed the byte it complains about */
    return kl_fail_at(e, KL_EPARSE, file, text, offset, "%s", why.text);
}

const char *kli_json_kind(const json_t *value) {
    if (!value) return "missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "unknown";
}

static kl_str json_text_of(const json_t *s) {
    return (kl_str){json_string_value(s), json_string_length(s)};
}

kl_err kli_json_text(kl_str *out, const json_t *o, const char *key, kl_str file, kl_error *e) {
    const json_t *value = json_object_get(o, key);
    char where[256];
    snprintf(where, sizeof where, "%.*s", KL_STR_ARG(file));
    if (!json_is_object(o))
        return kl_fail(e, KL_EPARSE, where, "expected an object with the key \"%s\"", key);
    if (!json_is_string(value))
        return kl_fail(e, KL_EPARSE, where, "the key \"%s\" is %s; it must be a string", key,
                       kli_json_kind(value));
    *out = json_text_of(value);
    return KL_OK;
}

kl_str kli_json_text_or(const json_t *o, const char *key, kl_str otherwise) {
    const json_t *value = json_object_get(o, key);
    return json_is_string(value) ? json_text_of(value) : otherwise;
}

/* Also reads the three strings that kli_json_real writes. */
double kli_json_real_or(const json_t *o, const char *key, double otherwise) {
    const json_t *value = json_object_get(o, key);
    if (json_is_number(value)) return json_number_value(value);
    if (!json_is_string(value)) return otherwise;
    kl_str text = json_text_of(value);
    if (kl_str_eq(text, KL_S("NaN"))) return __builtin_nan("");
    if (kl_str_eq(text, KL_S("Infinity"))) return __builtin_inf();
    if (kl_str_eq(text, KL_S("-Infinity"))) return -__builtin_inf();
    return otherwise;
}

int64_t kli_json_int_or(const json_t *o, const char *key, int64_t otherwise) {
    const json_t *value = json_object_get(o, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool kli_json_bool_or(const json_t *o, const char *key, bool otherwise) {
    const json_t *value = json_object_get(o, key);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

json_t *kli_json_real(double v) {
    json_t *value = v != v                  ? json_string("NaN")
                    : v == __builtin_inf()  ? json_string("Infinity")
                    : v == -__builtin_inf() ? json_string("-Infinity")
                                            : json_real(v);
    if (!value) kl_oom(sizeof(double));
    return value;
}

static bool is_continuation(kl_str s, size_t at, unsigned char low, unsigned char high) {
    if (at >= s.len) return false;
    unsigned char c = (unsigned char)s.ptr[at];
    return c >= low && c <= high;
}

/* Length of the well-formed UTF-8 sequence at `at` (Unicode 15, table 3-7), 0 when there is none.
 * NUL does not count: it would end the text early for every reader in C. */
static size_t sequence_length(kl_str s, size_t at) {
    unsigned char c = (unsigned char)s.ptr[at];
    if (c >= 0x01 && c <= 0x7f) return 1;
    if (c >= 0xc2 && c <= 0xdf) return is_continuation(s, at + 1, 0x80, 0xbf) ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef) {
        unsigned char low = c == 0xe0 ? 0xa0 : 0x80, high = c == 0xed ? 0x9f : 0xbf;
        return is_continuation(s, at + 1, low, high) && is_continuation(s, at + 2, 0x80, 0xbf) ? 3
                                                                                               : 0;
    }
    if (c < 0xf0 || c > 0xf4) return 0;
    unsigned char low = c == 0xf0 ? 0x90 : 0x80, high = c == 0xf4 ? 0x8f : 0xbf;
    return is_continuation(s, at + 1, low, high) && is_continuation(s, at + 2, 0x80, 0xbf) &&
                   is_continuation(s, at + 3, 0x80, 0xbf)
               ? 4
               : 0;
}

json_t *kli_json_str(kl_str s) {
    kl_buf clean = {0};
    size_t from = 0, at = 0;
    KL_ASSERT(s.ptr || s.len == 0);
    while (at < s.len) {
        size_t n = sequence_length(s, at);
        if (!n) {
            kl_buf_add(&clean, (kl_str){s.ptr + from, at - from});
            kl_buf_add(&clean, KL_S("\xef\xbf\xbd"));
            from = at + 1;
        }
        at += n ? n : 1;
    }
    if (from < s.len || s.len == 0) kl_buf_add(&clean, (kl_str){s.ptr + from, s.len - from});
    json_t *value = json_stringn(clean.ptr, clean.len);
    if (!value) kl_oom(clean.len);
    kl_buf_fini(&clean);
    return value;
}

static int add_dumped(const char *bytes, size_t n, void *out) {
    kl_buf_add(out, (kl_str){bytes, n});
    return 0;
}

kl_str kli_json_dump(kl_arena *a, const json_t *o, bool pretty) {
    size_t flags =
        JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) | (pretty ? JSON_INDENT(2) : JSON_COMPACT);
    kl_buf text = {0};
    KL_ASSERT(json_dump_callback(o, add_dumped, &text, flags) ==
              0); /* fails only on a cycle or on NULL */
    if (pretty) kl_buf_add(&text, KL_S("\n"));
    kl_str kept = kl_arena_copy(a, kl_buf_str(&text));
    kl_buf_fini(&text);
    return kept;
}
