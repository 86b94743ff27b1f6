/* expr.c - integer expressions over named values, evaluated while they are read.
 *
 *   or      = and { ("||" | "or") and }
 *   and     = not { ("&&" | "and") not }
 *   not     = "not" not | sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
 *   sum     = product { ("+" | "-") product }
 *   product = unary { ("*" | "/" | "//" | "%") unary }
 *   unary   = ("-" | "+") unary | power
 *   power   = atom [ "**" unary ]
 *   atom    = INT | NAME | "(" or ")" | ("cdiv" | "min" | "max") "(" or "," or ")" | "pow2" "(" or
 * ")"
 *
 * Every operation is checked: overflow and division by zero are errors with a position, never
 * wrapped values.  `/` and
 * `%` truncate as in C; `//` floors as in Python.  The right side of `&&` and `||` is read but not
 * computed when the left side decides, so "K == 0 || M % K == 0" is fine.  Python's words and `**`
 * are read so that foreign constraints and SOL-ExecBench axes work; Python's chained comparison is
 * refused, because reading it as C does would be silently wrong. Deliberately not here: real
 * numbers, assignment, a syntax tree.  Expressions are short and evaluated rarely.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "task_impl.h"

#define MAX_EXPR_BYTES                                                                             \
    4096 /* bounds the work per workload; the longest honest expression seen is 200 bytes */

typedef struct {
    kl_str text;
    size_t at;
    int depth;
    bool idle; /* read without computing */
    kl_lookup *lookup;
    void *ctx;
    kli_fault *fault;
} parser;

static bool parse_or(parser *p, int64_t *out);
static bool parse_unary(parser *p, int64_t *out);

/* ---- reading ----------------------------------------------------------------------------- */

static bool expr_fail(parser *p, kl_err code, size_t offset, const char *what) {
    KL_ASSERT(code != KL_OK && offset <= p->text.len);
    p->fault->code = code;
    p->fault->offset = offset;
    (void)snprintf(p->fault->message, sizeof p->fault->message, "%s", what);
    return false;
}

static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool expr_is_digit(char c) { return c >= '0' && c <= '9'; }

static void expr_skip_space(parser *p) {
    while (p->at < p->text.len && memchr(" \t\r\n", p->text.ptr[p->at], 4) != NULL) p->at++;
}

static char expr_peek(parser *p) {
    expr_skip_space(p);
    return p->at < p->text.len ? p->text.ptr[p->at] : '\0';
}

static kl_str peek_name(parser *p) {
    expr_skip_space(p);
    size_t end = p->at;
    if (end < p->text.len && is_name_start(p->text.ptr[end]))
        while (end < p->text.len &&
               (is_name_start(p->text.ptr[end]) || expr_is_digit(p->text.ptr[end])))
            end++;
    return (kl_str){p->text.ptr + p->at, end - p->at};
}

static bool take_word(parser *p, const char *word) {
    if (!kl_str_eq(peek_name(p), kl_str_of(word))) return false;
    p->at += strlen(word);
    return true;
}

static bool take_symbol(parser *p, const char *symbol) {
    const size_t length = strlen(symbol);
    expr_skip_space(p);
    if (p->text.len - p->at < length || memcmp(p->text.ptr + p->at, symbol, length) != 0)
        return false;
    p->at += length;
    return true;
}

static bool expr_expect(parser *p, char symbol) {
    if (expr_peek(p) == symbol) {
        p->at++;
        return true;
    }
    char what[48];
    (void)snprintf(what, sizeof what, "expected '%c' here", symbol);
    return expr_fail(p, KL_EPARSE, p->at, what);
}

static bool expr_enter(parser *p) {
    if (++p->depth <= KL_MAX_EXPR_DEPTH) return true;
    return expr_fail(p, KL_EPARSE, p->at, "the expression is nested too deeply");
}

/* ---- checked arithmetic ------------------------------------------------------------------ */

typedef enum {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOOR,
    OP_MOD,
    OP_POW,
    OP_CDIV,
    OP_MIN,
    OP_MAX
} operation;

/* Quotient and remainder that truncate; false where C has no answer. */
static bool divide(int64_t a, int64_t b, int64_t *quotient, int64_t *rest) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *quotient = a / b;
    *rest = a % b;
    return true;
}

static bool power(int64_t base, int64_t exponent, int64_t *out) {
    int64_t result = 1;
    if (exponent < 0) return false;
    while (exponent > 0) {
        if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return false;
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return false;
    }
    *out = result;
    return true;
}

static bool divided(operation op, int64_t a, int64_t b, int64_t *out) {
    int64_t quotient, rest;
    if (!divide(a, b, &quotient, &rest)) return false;
    const bool same_sign = (rest < 0) == (b < 0);
    switch (op) {
    case OP_MOD:
        *out = rest;
        break;
    case OP_FLOOR:
        *out = quotient - (rest != 0 && !same_sign ? 1 : 0);
        break;
    case OP_CDIV:
        *out = quotient + (rest != 0 && same_sign ? 1 : 0);
        break;
    default:
        *out = quotient;
        break;
    }
    return true;
}

static bool compute(operation op, int64_t a, int64_t b, int64_t *out) {
    switch (op) {
    case OP_ADD:
        return !__builtin_add_overflow(a, b, out);
    case OP_SUB:
        return !__builtin_sub_overflow(a, b, out);
    case OP_MUL:
        return !__builtin_mul_overflow(a, b, out);
    case OP_POW:
        return power(a, b, out);
    case OP_MIN:
        *out = a < b ? a : b;
        return true;
    case OP_MAX:
        *out = a > b ? a : b;
        return true;
    case OP_DIV:
    case OP_FLOOR:
    case OP_MOD:
    case OP_CDIV:
        return divided(op, a, b, out);
    }
    return false;
}

/* *a = *a op b, or a fault at `offset`. */
static bool expr_apply(parser *p, operation op, size_t offset, int64_t *a, int64_t b) {
    if (p->idle) return true;
    int64_t result = 0;
    if (compute(op, *a, b, &result)) {
        *a = result;
        return true;
    }
    const bool divides = op == OP_DIV || op == OP_FLOOR || op == OP_MOD || op == OP_CDIV;
    if (divides && b == 0) return expr_fail(p, KL_EINVAL, offset, "division by zero");
    if (op == OP_POW && b < 0)
        return expr_fail(p, KL_EINVAL, offset, "a negative power is not an integer");
    return expr_fail(p, KL_EINVAL, offset, "overflows 64 bits");
}

/* ---- grammar ----------------------------------------------------------------------------- */

static bool parse_int(parser *p, int64_t *out) {
    const size_t first = p->at;
    int64_t value = 0;
    bool fits = true;
    while (p->at < p->text.len && expr_is_digit(p->text.ptr[p->at])) {
        fits = fits && !__builtin_mul_overflow(value, (int64_t)10, &value) &&
               !__builtin_add_overflow(value, (int64_t)(p->text.ptr[p->at] - '0'), &value);
        p->at++;
    }
    if (p->at < p->text.len && (is_name_start(p->text.ptr[p->at]) || p->text.ptr[p->at] == '.'))
        return expr_fail(p, KL_EPARSE, p->at,
                         "only whole decimal numbers are allowed in an expression");
    if (!fits) return expr_fail(p, KL_EINVAL, first, "the number does not fit 64 bits");
    *out = value;
    return true;
}

static bool round_up_pow2(parser *p, size_t offset, int64_t *value) {
    if (p->idle) return true;
    if (*value > ((int64_t)1 << 62)) return expr_fail(p, KL_EINVAL, offset, "overflows 64 bits");
    int64_t result = 1;
    while (result < *value) result *= 2;
    *value = result;
    return true;
}

static bool parse_call(parser *p, kl_str name, size_t offset, int64_t *out) {
    static const struct {
        const char *name;
        operation op;
    } pairs[] = {{"cdiv", OP_CDIV}, {"min", OP_MIN}, {"max", OP_MAX}};
    size_t which = 0;
    while (which < KL_COUNT(pairs) && !kl_str_eq(name, kl_str_of(pairs[which].name))) which++;
    const bool is_pair = which < KL_COUNT(pairs);
    if (!is_pair && !kl_str_eq(name, KL_S("pow2")))
        return expr_fail(p, KL_EPARSE, offset, "unknown function; there are cdiv, min, max, pow2");
    int64_t second = 0;
    if (!expr_enter(p) || !expr_expect(p, '(') || !parse_or(p, out)) return false;
    if (is_pair && (!expr_expect(p, ',') || !parse_or(p, &second))) return false;
    p->depth--;
    if (!expr_expect(p, ')')) return false;
    return is_pair ? expr_apply(p, pairs[which].op, offset, out, second)
                   : round_up_pow2(p, offset, out);
}

static bool parse_name(parser *p, kl_str name, int64_t *out) {
    const size_t offset = p->at;
    p->at += name.len;
    if (expr_peek(p) == '(') return parse_call(p, name, offset, out);
    if (p->lookup != NULL && p->lookup(p->ctx, name, out)) return true;
    const int shown = name.len > 64 ? 64 : (int)name.len;
    char what[128];
    (void)snprintf(what, sizeof what, "unknown name '%.*s' in an expression", shown, name.ptr);
    p->fault->unknown_name = name;
    return expr_fail(p, KL_EINVAL, offset, what);
}

static bool parse_atom(parser *p, int64_t *out) {
    const char c = expr_peek(p);
    if (expr_is_digit(c)) return parse_int(p, out);
    if (c == '(') {
        p->at++;
        if (!expr_enter(p) || !parse_or(p, out)) return false;
        p->depth--;
        return expr_expect(p, ')');
    }
    static const char *const words[] = {"and", "or", "not", "if", "else", "in", "is"};
    const kl_str name = peek_name(p);
    bool is_word = false;
    for (size_t i = 0; i < KL_COUNT(words); i++)
        is_word = is_word || kl_str_eq(name, kl_str_of(words[i]));
    if (name.len > 0 && !is_word) return parse_name(p, name, out);
    return expr_fail(p, KL_EPARSE, p->at, "expected a number, a name or '('");
}

static bool parse_power(parser *p, int64_t *out) {
    if (!parse_atom(p, out)) return false;
    expr_skip_space(p);
    const size_t offset = p->at;
    if (!take_symbol(p, "**")) return true;
    int64_t exponent = 0;
    if (!expr_enter(p) || !parse_unary(p, &exponent)) return false;
    p->depth--;
    return expr_apply(p, OP_POW, offset, out, exponent);
}

static bool parse_unary(parser *p, int64_t *out) {
    const char sign = expr_peek(p);
    const size_t offset = p->at;
    if (sign != '-' && sign != '+') return parse_power(p, out);
    p->at++;
    int64_t value = 0;
    if (!expr_enter(p) || !parse_unary(p, &value)) return false;
    p->depth--;
    *out = sign == '-' ? 0 : value;
    return sign == '-' ? expr_apply(p, OP_SUB, offset, out, value) : true;
}

static bool parse_product(parser *p, int64_t *out) {
    if (!parse_unary(p, out)) return false;
    for (;;) {
        expr_skip_space(p);
        const size_t offset = p->at;
        operation op;
        if (take_symbol(p, "*"))
            op = OP_MUL;
        else if (take_symbol(p, "//"))
            op = OP_FLOOR;
        else if (take_symbol(p, "/"))
            op = OP_DIV;
        else if (take_symbol(p, "%"))
            op = OP_MOD;
        else
            return true;
        int64_t right = 0;
        if (!parse_unary(p, &right) || !expr_apply(p, op, offset, out, right)) return false;
    }
}

static bool parse_sum(parser *p, int64_t *out) {
    if (!parse_product(p, out)) return false;
    for (;;) {
        const char sign = expr_peek(p);
        const size_t offset = p->at;
        if (sign != '+' && sign != '-') return true;
        p->at++;
        int64_t right = 0;
        if (!parse_product(p, &right) ||
            !expr_apply(p, sign == '+' ? OP_ADD : OP_SUB, offset, out, right))
            return false;
    }
}

/* Index into "== != <= >= < >", or -1. */
static int take_comparison(parser *p) {
    static const char *const symbols[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < KL_COUNT(symbols); i++)
        if (take_symbol(p, symbols[i])) return (int)i;
    return -1;
}

static bool expr_compare(int which, int64_t a, int64_t b) {
    switch (which) {
    case 0:
        return a == b;
    case 1:
        return a != b;
    case 2:
        return a <= b;
    case 3:
        return a >= b;
    case 4:
        return a < b;
    default:
        return a > b;
    }
}

static bool parse_comparison(parser *p, int64_t *out) {
    if (!parse_sum(p, out)) return false;
    const int which = take_comparison(p);
    if (which < 0) return true;
    int64_t right = 0;
    if (!parse_sum(p, &right)) return false;
    *out = expr_compare(which, *out, right) ? 1 : 0;
    expr_skip_space(p);
    const size_t offset = p->at;
    if (take_comparison(p) >= 0)
        return expr_fail(p, KL_EPARSE, offset, "comparisons do not chain; join two with &&");
    return true;
}

static bool parse_not(parser *p, int64_t *out) {
    if (!take_word(p, "not")) return parse_comparison(p, out);
    if (!expr_enter(p) || !parse_not(p, out)) return false;
    p->depth--;
    *out = *out == 0 ? 1 : 0;
    return true;
}

static bool parse_and(parser *p, int64_t *out) {
    if (!parse_not(p, out)) return false;
    while (take_symbol(p, "&&") || take_word(p, "and")) {
        const bool idle = p->idle;
        int64_t right = 0;
        p->idle = idle || *out == 0;
        if (!parse_not(p, &right)) return false;
        p->idle = idle;
        *out = *out != 0 && right != 0 ? 1 : 0;
    }
    return true;
}

static bool parse_or(parser *p, int64_t *out) {
    if (!parse_and(p, out)) return false;
    while (take_symbol(p, "||") || take_word(p, "or")) {
        const bool idle = p->idle;
        int64_t right = 0;
        p->idle = idle || *out != 0;
        if (!parse_and(p, &right)) return false;
        p->idle = idle;
        *out = *out != 0 || right != 0 ? 1 : 0;
    }
    return true;
}

/* ---- entry ------------------------------------------------------------------------------- */

kl_err kli_expr_run(int64_t *out, kl_str expr, bool names_only, kl_lookup *lookup, void *ctx,
                    kli_fault *fault) {
    parser p = {.text = expr, .idle = names_only, .lookup = lookup, .ctx = ctx, .fault = fault};
    int64_t value = 0;
    *fault = (kli_fault){0};
    if (expr.len > MAX_EXPR_BYTES) {
        (void)expr_fail(&p, KL_EPARSE, MAX_EXPR_BYTES, "the expression is too long");
        return fault->code;
    }
    if (!parse_or(&p, &value)) return fault->code;
    expr_skip_space(&p);
    if (p.at < expr.len) {
        (void)expr_fail(&p, KL_EPARSE, p.at, "expected an operator or the end of the expression");
        return fault->code;
    }
    KL_ASSERT(p.depth == 0 && p.idle == names_only);
    *out = value;
    return KL_OK;
}

kl_err kl_expr_eval(int64_t *out, kl_str expr, kl_lookup *lookup, void *ctx, kl_error *e) {
    kli_fault fault;
    const kl_err err = kli_expr_run(out, expr, false, lookup, ctx, &fault);
    if (err) return kl_fail_at(e, err, KL_S("expression"), expr, fault.offset, "%s", fault.message);
    return KL_OK;
}
