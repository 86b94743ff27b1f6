/* json.h - jansson with our errors: every getter names the path it looked for.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_JSON_H
#define KL_BASE_JSON_H
#include <jansson.h>
#include <klineage/base.h>

/* Parse; the caller json_decref's.  Errors: KL_EPARSE with line and caret in `file`. Duplicate keys
 * are refused. */
KL_MUST_USE kl_err kli_json_parse(json_t **out, kl_str text, kl_str file, kl_error *e);
/* Field of an object.  A missing or differently typed field is KL_EPARSE naming `file` and the key.
 * Borrowed. */
KL_MUST_USE kl_err kli_json_text(kl_str *out, const json_t *o, const char *key, kl_str file,
                                 kl_error *e);
const char *kli_json_kind(const json_t *value); /* "a string"; NULL: "missing" */
kl_str kli_json_text_or(const json_t *o, const char *key, kl_str otherwise);
double kli_json_real_or(const json_t *o, const char *key, double otherwise);
int64_t kli_json_int_or(const json_t *o, const char *key, int64_t otherwise);
bool kli_json_bool_or(const json_t *o, const char *key, bool otherwise);
json_t *
kli_json_real(double v); /* NaN and infinity become the strings "NaN" "Infinity" "-Infinity" */
json_t *kli_json_str(kl_str s); /* invalid UTF-8 is replaced, never refused */
/* Sorted as inserted; newline at the end when pretty.  Reals keep 15 digits, so that 1.055
 * stays 1.055; a value whose last bits matter travels as text or as an integer. */
kl_str kli_json_dump(kl_arena *a, const json_t *o, bool pretty);
#endif
