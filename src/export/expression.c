/* expression.c - expressions of directives as C, and as Python.
 *
 *   M * cdiv(N, BM)   ->   klx_mul(&p->bad, p->axis_M, klx_cdiv(&p->bad, p->axis_N, INT64_C(64)))
 *                     ->   _mul(M, _cdiv(N, 64))
 *
 * The grammars are those of src/task/expr.c and src/kernel/real.c, which have read the same text
 * before, so nothing here is malformed.  Integers go through checked functions
 * (templates/checked.in, templates/launch.in) that mean what the evaluation there means; `&&` and
 * `||` stop early in all of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "export_impl.h"

#include <string.h>

typedef struct {
    const kli_export *x;
    kl_str text;
    size_t at;
    bool real, python;
    int of; /* the launch whose grid_x is meant, where a compiler decided something; -1: none */
} emitter;

static kl_str emit_or(emitter *m);
static kl_str emit_unary(emitter *m);

/* ---- reading ----------------------------------------------------------------------------- */

static void emit_skip_space(emitter *m) {
    while (m->at < m->text.len && strchr(" \t\r\n", m->text.ptr[m->at])) m->at++;
}

static bool emit_take(emitter *m, const char *symbol) {
    const size_t n = strlen(symbol);
    emit_skip_space(m);
    if (m->text.len - m->at < n || memcmp(m->text.ptr + m->at, symbol, n) != 0) return false;
    m->at += n;
    return true;
}

static bool is_emit_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_emit_digit(char c) { return c >= '0' && c <= '9'; }

static kl_str emit_word(emitter *m) {
    emit_skip_space(m);
    size_t end = m->at;
    while (end < m->text.len &&
           (is_emit_letter(m->text.ptr[end]) || (end > m->at && is_emit_digit(m->text.ptr[end]))))
        end++;
    return (kl_str){m->text.ptr + m->at, end - m->at};
}

static bool emit_take_word(emitter *m, const char *word) {
    if (!kl_str_eq(emit_word(m), kl_str_of(word))) return false;
    m->at += strlen(word);
    return true;
}

/* ---- names ------------------------------------------------------------------------------- */

static kl_str emit_param(const emitter *m, kl_str name) {
    const kli_export *x = m->x;
    for (int i = 0; i < x->kernel->n_params; i++)
        if (kl_str_eq(x->kernel->params[i].name, name))
            return kl_arena_printf(x->arena, m->python ? "%lld" : "INT64_C(%lld)",
                                   (long long)x->kernel->params[i].value);
    return (kl_str){0};
}

static const kl_let *emit_let(const kli_export *x, kl_str name) {
    for (int i = 0; i < x->kernel->n_lets; i++)
        if (kl_str_eq(x->kernel->lets[i].name, name)) return &x->kernel->lets[i];
    return NULL;
}

/* "grid_x" of the launch, "tA_dim0", "tA_stride1": words of docs/formats/completion.md. */
static kl_str emit_decided(const emitter *m, kl_str name) {
    static const char *const GRID[] = {"grid_x", "grid_y", "grid_z"};
    const kl_kernel *k = m->x->kernel;
    kl_arena *a = m->x->arena;
    for (int d = 0; d < 3; d++)
        if (kl_str_eq(name, kl_str_of(GRID[d])))
            return kl_arena_printf(a, "(int64_t)grid_%d[%d]", m->of, d);
    for (int i = 0; i < k->n_tensormaps; i++) {
        const kl_str map = k->tensormaps[i].name;
        if (!kl_str_starts(name, map)) continue;
        const kl_str rest = {name.ptr + map.len, name.len - map.len};
        const bool dim = kl_str_starts(rest, KL_S("_dim"));
        if (dim || kl_str_starts(rest, KL_S("_stride")))
            return kl_arena_printf(a, "klx_%s(&p->bad, &view_%.*s, %c)", dim ? "dim" : "stride",
                                   KL_STR_ARG(map), name.ptr[name.len - 1]);
    }
    return (kl_str){0};
}

/* In the order of the plan: axis, param, let, device constant; reals know scalar inputs too. */
static kl_str emit_name(emitter *m, kl_str name) {
    const kli_export *x = m->x;
    kl_arena *a = x->arena;
    const kl_let *let = emit_let(x, name);
    const int tensor = kl_task_tensor(x->task, name), axis = kl_task_axis(x->task, name);
    const char *as = m->real && !m->python ? "(double)" : "", *of = m->python ? "" : "p->";
    if (m->real && let && let->real) return kl_arena_printf(a, "real_%.*s", KL_STR_ARG(name));
    if (m->real && tensor >= 0 && x->task->tensors[tensor].is_scalar)
        return kl_arena_printf(a, "%s%s", as, kli_export_name(a, name).ptr);
    if (axis >= 0)
        return kl_arena_printf(a, "%s%s%s", as, m->python ? "" : "p->axis_",
                               kli_export_name(a, name).ptr);
    const kl_str param = emit_param(m, name);
    if (param.len) return kl_arena_printf(a, "%s%.*s", as, KL_STR_ARG(param));
    const kl_str decided = m->of >= 0 ? emit_decided(m, name) : (kl_str){0};
    if (decided.len) return decided;
    if (let) return kl_arena_printf(a, "%s%slet_%.*s", as, of, KL_STR_ARG(name));
    return kl_arena_printf(a, "%s%sdevice_%.*s", as, of, KL_STR_ARG(name));
}

/* ---- grammar ----------------------------------------------------------------------------- */

static kl_str emit_call(emitter *m, const char *function, kl_str left, kl_str right) {
    return kl_arena_printf(m->x->arena,
                           m->python ? "_%s(%.*s, %.*s)" : "klx_%s(&p->bad, %.*s, %.*s)", function,
                           KL_STR_ARG(left), KL_STR_ARG(right));
}

static kl_str emit_number(emitter *m) {
    const size_t first = m->at;
    while (m->at < m->text.len) {
        const char c = m->text.ptr[m->at];
        const bool sign =
            (c == '+' || c == '-') && m->at > first && (m->text.ptr[m->at - 1] | 32) == 'e';
        if (!is_emit_digit(c) && !(m->real && (c == '.' || (c | 32) == 'e' || sign))) break;
        m->at++;
    }
    const kl_str text = {m->text.ptr + first, m->at - first};
    if (!m->real)
        return kl_arena_printf(m->x->arena, m->python ? "%.*s" : "INT64_C(%.*s)", KL_STR_ARG(text));
    const bool whole = !memchr(text.ptr, '.', text.len) && !memchr(text.ptr, 'e', text.len) &&
                       !memchr(text.ptr, 'E', text.len);
    return kl_arena_printf(m->x->arena, "%.*s%s", KL_STR_ARG(text), whole ? ".0" : "");
}

static kl_str emit_function(emitter *m, kl_str name) {
    (void)emit_take(m, "(");
    const kl_str first = emit_or(m);
    kl_str out;
    if (kl_str_eq(name, KL_S("pow2"))) {
        out = kl_arena_printf(m->x->arena, m->python ? "_pow2(%.*s)" : "klx_pow2(&p->bad, %.*s)",
                              KL_STR_ARG(first));
    } else {
        (void)emit_take(m, ",");
        out = emit_call(m, kl_arena_copy(m->x->arena, name).ptr, first, emit_or(m));
    }
    (void)emit_take(m, ")");
    return out;
}

static kl_str emit_atom(emitter *m) {
    if (emit_take(m, "(")) {
        const kl_str inner = emit_or(m);
        (void)emit_take(m, ")");
        return kl_arena_printf(m->x->arena, "(%.*s)", KL_STR_ARG(inner));
    }
    const kl_str name = emit_word(m);
    if (!name.len) return emit_number(m);
    m->at += name.len;
    emit_skip_space(m);
    const bool called = !m->real && m->at < m->text.len && m->text.ptr[m->at] == '(';
    return called ? emit_function(m, name) : emit_name(m, name);
}

static kl_str emit_power(emitter *m) {
    const kl_str base = emit_atom(m);
    if (!emit_take(m, "**")) return base;
    const kl_str exponent = emit_unary(m);
    if (!m->real) return emit_call(m, "power", base, exponent);
    return kl_arena_printf(m->x->arena, m->python ? "math.pow(%.*s, %.*s)" : "pow(%.*s, %.*s)",
                           KL_STR_ARG(base), KL_STR_ARG(exponent));
}

static kl_str emit_unary(emitter *m) {
    if (emit_take(m, "+")) return emit_unary(m);
    if (!emit_take(m, "-")) return emit_power(m);
    const kl_str value = emit_unary(m);
    return m->real ? kl_arena_printf(m->x->arena, "(-%.*s)", KL_STR_ARG(value))
                   : emit_call(m, "sub", m->python ? KL_S("0") : KL_S("INT64_C(0)"), value);
}

static kl_str emit_joined(emitter *m, const char *symbol, const char *function, kl_str left,
                          kl_str right) {
    if (!m->real) return emit_call(m, function, left, right);
    return kl_arena_printf(m->x->arena, "(%.*s %s %.*s)", KL_STR_ARG(left), symbol,
                           KL_STR_ARG(right));
}

static kl_str emit_product(emitter *m) {
    kl_str out = emit_unary(m);
    for (;;) {
        if (emit_take(m, "*"))
            out = emit_joined(m, "*", "mul", out, emit_unary(m));
        else if (!m->real && emit_take(m, "//"))
            out = emit_call(m, "floor", out, emit_unary(m));
        else if (emit_take(m, "/"))
            out = emit_joined(m, "/", "div", out, emit_unary(m));
        else if (!m->real && emit_take(m, "%"))
            out = emit_call(m, "mod", out, emit_unary(m));
        else
            return out;
    }
}

static kl_str emit_sum(emitter *m) {
    kl_str out = emit_product(m);
    for (;;) {
        if (emit_take(m, "+"))
            out = emit_joined(m, "+", "add", out, emit_product(m));
        else if (emit_take(m, "-"))
            out = emit_joined(m, "-", "sub", out, emit_product(m));
        else
            return out;
    }
}

static kl_str emit_comparison(emitter *m) {
    static const char *const symbols[] = {"==", "!=", "<=", ">=", "<", ">"};
    const kl_str left = emit_sum(m);
    for (size_t i = 0; i < KL_COUNT(symbols); i++) {
        if (!emit_take(m, symbols[i])) continue;
        const kl_str right = emit_sum(m);
        return kl_arena_printf(m->x->arena,
                               m->python ? "int(%.*s %s %.*s)" : "(int64_t)(%.*s %s %.*s)",
                               KL_STR_ARG(left), symbols[i], KL_STR_ARG(right));
    }
    return left;
}

static kl_str emit_not(emitter *m) {
    if (!emit_take_word(m, "not")) return emit_comparison(m);
    const kl_str value = emit_not(m);
    return kl_arena_printf(m->x->arena, m->python ? "int(not %.*s)" : "(int64_t)!(%.*s)",
                           KL_STR_ARG(value));
}

static kl_str emit_truth(emitter *m, const char *symbol, kl_str left, kl_str right) {
    if (m->python)
        return kl_arena_printf(m->x->arena, "int(bool(%.*s) %s bool(%.*s))", KL_STR_ARG(left),
                               symbol[0] == '&' ? "and" : "or", KL_STR_ARG(right));
    return kl_arena_printf(m->x->arena, "(int64_t)((%.*s) %s (%.*s))", KL_STR_ARG(left), symbol,
                           KL_STR_ARG(right));
}

static kl_str emit_and(emitter *m) {
    kl_str out = emit_not(m);
    while (emit_take(m, "&&") || emit_take_word(m, "and"))
        out = emit_truth(m, "&&", out, emit_not(m));
    return out;
}

static kl_str emit_or(emitter *m) {
    kl_str out = m->real ? emit_sum(m) : emit_and(m);
    while (!m->real && (emit_take(m, "||") || emit_take_word(m, "or")))
        out = emit_truth(m, "||", out, emit_and(m));
    return out;
}

static kl_str emitted(emitter m) { return emit_or(&m); }

kl_str kli_expression(const kli_export *x, kl_str text) {
    return emitted((emitter){.x = x, .text = text, .of = -1});
}

kl_str kli_real_expression(const kli_export *x, kl_str text) {
    return emitted((emitter){.x = x, .text = text, .real = true, .of = -1});
}

kl_str kli_decided_expression(const kli_export *x, kl_str text, int launch) {
    return emitted((emitter){.x = x, .text = text, .of = launch});
}

kl_str kli_python_expression(const kli_export *x, kl_str text) {
    return emitted((emitter){.x = x, .text = text, .python = true, .of = -1});
}

kl_str kli_python_real_expression(const kli_export *x, kl_str text) {
    return emitted((emitter){.x = x, .text = text, .real = true, .python = true, .of = -1});
}
