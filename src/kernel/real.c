/* real.c - expressions of real numbers over named values: a `let` with a type.
 *
 *   sum     = product { ("+" | "-") product }
 *   product = unary { ("*" | "/") unary }
 *   unary   = "-" unary | power
 *   power   = atom [ "**" unary ]
 *   atom    = NUMBER | NAME | "(" sum ")"
 *
 * Doubles throughout; what is not finite has no value.  No functions: a root is `** 0.5`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include <math.h>
#include <string.h>

typedef struct {
    kl_str text;
    size_t at;
    int depth;
    kli_real_lookup *lookup;
    void *ctx;
    kl_error *error;
} real_reader;

static bool read_sum(real_reader *r, double *out);

static bool real_fail(real_reader *r, kl_err code, size_t at, const char *what) {
    KL_ASSERT(at <= r->text.len);
    return !kl_fail_at(r->error, code, KL_S("expression"), r->text, at, "%s", what);
}

static void real_skip_space(real_reader *r) {
    while (r->at < r->text.len && kli_is_space(r->text.ptr[r->at])) r->at++;
}

static bool real_take(real_reader *r, const char *symbol) {
    const size_t n = strlen(symbol);
    real_skip_space(r);
    if (r->text.len - r->at < n || memcmp(r->text.ptr + r->at, symbol, n) != 0) return false;
    r->at += n;
    return true;
}

static bool is_number_part(const real_reader *r, size_t i) {
    const char c = r->text.ptr[i];
    const bool sign = (c == '-' || c == '+') && i > r->at && (r->text.ptr[i - 1] | 32) == 'e';
    return kli_is_name_part(c) || c == '.' || sign;
}

static bool read_real_number(real_reader *r, double *out) {
    size_t end = r->at;
    while (end < r->text.len && is_number_part(r, end)) end++;
    if (!kli_parse_real(out, (kl_str){r->text.ptr + r->at, end - r->at}))
        return real_fail(r, KL_EPARSE, r->at, "expected a number, a name or '('");
    r->at = end;
    return true;
}

static bool read_real_name(real_reader *r, double *out) {
    kl_str name = {r->text.ptr + r->at, 0};
    while (r->at + name.len < r->text.len && kli_is_name_part(name.ptr[name.len])) name.len++;
    if (!r->lookup(r->ctx, name, out))
        return real_fail(r, KL_EINVAL, r->at, "unknown name in an expression");
    r->at += name.len;
    return true;
}

static bool read_atom(real_reader *r, double *out) {
    if (real_take(r, "(")) {
        if (++r->depth > KL_MAX_EXPR_DEPTH)
            return real_fail(r, KL_EPARSE, r->at, "the expression is nested too deeply");
        if (!read_sum(r, out)) return false;
        r->depth--;
        return real_take(r, ")") || real_fail(r, KL_EPARSE, r->at, "expected ')' here");
    }
    const bool name = r->at < r->text.len && kli_is_name_start(r->text.ptr[r->at]);
    return name ? read_real_name(r, out) : read_real_number(r, out);
}

static bool read_unary(real_reader *r, double *out) {
    double exponent;
    bool negative = false;
    while (real_take(r, "-")) negative = !negative;
    if (!read_atom(r, out)) return false;
    if (real_take(r, "**")) {
        if (++r->depth > KL_MAX_EXPR_DEPTH)
            return real_fail(r, KL_EPARSE, r->at, "the expression is nested too deeply");
        if (!read_unary(r, &exponent)) return false;
        r->depth--;
        *out = pow(*out, exponent);
    }
    if (negative) *out = -*out;
    return true;
}

static bool read_product(real_reader *r, double *out) {
    double right;
    if (!read_unary(r, out)) return false;
    for (;;) {
        const bool times = real_take(r, "*");
        if (!times && !real_take(r, "/")) return true;
        if (!read_unary(r, &right)) return false;
        *out = times ? *out * right : *out / right;
    }
}

static bool read_sum(real_reader *r, double *out) {
    double right;
    if (!read_product(r, out)) return false;
    for (;;) {
        const bool plus = real_take(r, "+");
        if (!plus && !real_take(r, "-")) return true;
        if (!read_product(r, &right)) return false;
        *out = plus ? *out + right : *out - right;
    }
}

kl_err kli_real_eval(double *out, kl_str text, kli_real_lookup *lookup, void *ctx, kl_error *e) {
    real_reader r = {.text = text, .lookup = lookup, .ctx = ctx, .error = e};
    if (!read_sum(&r, out)) return e->code;
    real_skip_space(&r);
    if (r.at < text.len)
        (void)real_fail(&r, KL_EPARSE, r.at, "expected an operator or the end of the expression");
    else if (!isfinite(*out))
        (void)real_fail(&r, KL_EINVAL, 0, "no finite number");
    KL_ASSERT(e->code || r.depth == 0);
    return e->code;
}
