/* directive.c - the grammar of directive lines: one function per directive, its production above
 * it.
 *
 * A reader walks one directive's text and fills the kernel.  Every failure points at the byte that
 * is wrong, and says what would be right: read_one adds the directive's form to errors that have no
 * better hint.  Expressions are only checked for syntax here (names need a task: plan.c).  What a
 * directive may contain is never a path. SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    kl_arena *arena;
    kl_kernel *kernel;
    const kli_scan *scan;
    const char *pos, *end; /* in scan->clean */
    bool oracle, result_seen;
    kl_error *error;
} directive_reader;

typedef struct {
    const char *name, *form;
    bool own; /* not every surface has it: kli_surface_has_directive says which do */
    bool (*read)(directive_reader *r); /* false: refused, and r->error says why */
} directive;

/* ---- words ------------------------------------------------------------------------------- */

static size_t directive_offset_of(const directive_reader *r, const char *at) {
    return (size_t)(at - r->scan->clean);
}

KL_PRINTF(3, 4)
static bool directive_fail(directive_reader *r, const char *at, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return !kl_fail_at(r->error, KL_EPARSE, r->kernel->path, r->kernel->source,
                       directive_offset_of(r, at), "%s", text);
}

/* A slice of the source itself, so that it outlives the scan and shows where it stands. */
static kl_str slice(const directive_reader *r, const char *from, const char *to) {
    KL_ASSERT(r->scan->clean <= from && from <= to && to <= r->end);
    return (kl_str){r->kernel->source.ptr + directive_offset_of(r, from), (size_t)(to - from)};
}

static void directive_skip_space(directive_reader *r) {
    while (r->pos < r->end && kli_is_space(*r->pos)) r->pos++;
}

static bool directive_take(directive_reader *r, char c) {
    directive_skip_space(r);
    if (r->pos == r->end || *r->pos != c) return false;
    r->pos++;
    return true;
}

static bool directive_expect(directive_reader *r, char c) {
    if (directive_take(r, c)) return true;
    if (r->pos == r->end)
        return directive_fail(r, r->pos, "expected '%c' before the end of the directive", c);
    return directive_fail(r, r->pos, "expected '%c', found '%s'", c,
                          kli_show((kl_str){r->pos, 1}).text);
}

static bool read_name(directive_reader *r, kl_str *out, const char *of_what) {
    directive_skip_space(r);
    const char *start = r->pos;
    while (r->pos < r->end && kli_is_name_part(*r->pos)) r->pos++;
    if (r->pos == start || !kli_is_name_start(*start))
        return directive_fail(r, start, "expected the name of %s", of_what);
    if (r->pos - start >= KL_MAX_NAME)
        return !kl_fail_at(r->error, KL_ELIMIT, r->kernel->path, r->kernel->source,
                           directive_offset_of(r, start), "a name longer than %d characters",
                           KL_MAX_NAME - 1);
    *out = slice(r, start, r->pos);
    return true;
}

static bool read_int(directive_reader *r, int64_t *out) {
    directive_skip_space(r);
    const char *start = r->pos;
    while (r->pos < r->end && (kli_is_name_part(*r->pos) || *r->pos == '-' || *r->pos == '.'))
        r->pos++;
    kl_str word = {start, (size_t)(r->pos - start)};
    if (kli_parse_int(out, word)) return true;
    if (word.len == 0) return directive_fail(r, start, "expected an integer");
    return directive_fail(r, start, "'%s' is not a 64-bit integer", kli_show(word).text);
}

static bool expect_end(directive_reader *r) {
    directive_skip_space(r);
    if (r->pos == r->end) return true;
    return directive_fail(r, r->pos, "unexpected text after the directive: '%s'",
                          kli_show((kl_str){r->pos, (size_t)(r->end - r->pos)}).text);
}

/* ---- names ------------------------------------------------------------------------------- */

/* Words of the expression language and of arguments; a param called so could not be told from them.
 */
static const char *const reserved[] = {"cdiv", "min",   "max", "pow2",     "i64",   "f32",
                                       "f64",  "local", "sms", "smem_max", "cores", "and",
                                       "or",   "not",   "if",  "else",     "in",    "is"};
static const char *const reserved_macros[] = {"F64", "F32", "F16", "BF16", "F8E4M3", "F8E5M2",
                                              "I64", "I32", "I16", "I8",   "U8",     "BOOL"};

static bool find_declared(const kl_kernel *k, kl_str name, kl_str *found) {
    int i = kli_param_index(k, name);
    if (i >= 0) return *found = k->params[i].name, true;
    if ((i = kli_let_index(k, name)) >= 0) return *found = k->lets[i].name, true;
    if ((i = kli_buffer_index(k, name)) >= 0) return *found = k->buffers[i].name, true;
    if ((i = kli_tensormap_index(k, name)) >= 0) return *found = k->tensormaps[i].name, true;
    return false;
}

/* Params become macros, and some of those names are taken: KL_F32, KL_DTYPE_<tensor>. */
static bool is_own_macro(kl_str name) {
    for (size_t i = 0; i < KL_COUNT(reserved_macros); i++)
        if (kl_str_eq(name, kl_str_of(reserved_macros[i]))) return true;
    return kl_str_starts(name, KL_S("DTYPE_"));
}

static bool not_reserved(directive_reader *r, const char *at, kl_str name) {
    bool taken = false;
    for (size_t i = 0; i < KL_COUNT(reserved); i++)
        taken = taken || kl_str_eq(name, kl_str_of(reserved[i]));
    if (!taken) return true;
    directive_fail(r, at, "'%.*s' is a word of the directive language", KL_STR_ARG(name));
    kl_hint(r->error, "call it something else");
    return false;
}

/* Read the name that a directive declares: params, lets, buffers and tensormaps share one name
 * space. */
static bool read_new_name(directive_reader *r, kl_str *out, const char *of_what) {
    if (!read_name(r, out, of_what)) return false;
    const char *at = r->pos - out->len;
    kl_str first;
    if (!not_reserved(r, at, *out)) return false;
    if (!find_declared(r->kernel, *out, &first)) return true;
    directive_fail(r, at, "'%.*s' is declared twice", KL_STR_ARG(*out));
    size_t where = (size_t)(first.ptr - r->kernel->source.ptr);
    kl_hint(r->error,
            "the first is on line %d; params, lets, buffers and tensormaps share one set of names",
            kli_line_number(r->kernel->source, where));
    return false;
}

static bool directive_has_room(directive_reader *r, int have, int most, const char *plural) {
    KL_ASSERT(have >= 0 && have <= most);
    if (have < most) return true;
    kl_fail_at(r->error, KL_ELIMIT, r->kernel->path, r->kernel->source,
               directive_offset_of(r, r->pos), "more than %d %s", most, plural);
    kl_hint(r->error, "one kernel may have at most %d %s", most, plural);
    return false;
}

/* ---- expressions ------------------------------------------------------------------------- */

static bool any_name(void *ctx, kl_str name, int64_t *value) {
    (void)ctx;
    (void)name;
    *value = 1;
    return true;
}

/* Syntax only: with every name 1 a division by zero says nothing about real shapes. */
static bool check_syntax(directive_reader *r, const kl_expr *expr) {
    int64_t ignored;
    kl_err err = kl_expr_eval(&ignored, expr->text, any_name, NULL, r->error);
    if (err == KL_EPARSE || err == KL_ELIMIT) return !kli_rebase(r->error, r->kernel, expr);
    *r->error = (kl_error){0};
    return true;
}

/* Text up to a top-level ',' or `close`; to the end of the directive when `close` is 0. */
static bool read_span(directive_reader *r, char close, kl_expr *out) {
    directive_skip_space(r);
    const char *start = r->pos;
    int depth = 0;
    for (; r->pos < r->end; r->pos++) {
        if (close && depth == 0 && (*r->pos == close || *r->pos == ',')) break;
        depth += (*r->pos == '(') - (*r->pos == ')');
    }
    if (close && r->pos == r->end)
        return directive_fail(r, r->end, "expected '%c' before the end of the directive", close);
    const char *stop = r->pos;
    while (stop > start && kli_is_space(stop[-1])) stop--;
    *out = (kl_expr){{start, (size_t)(stop - start)}, directive_offset_of(r, start)};
    return stop > start || directive_fail(r, start, "expected an expression");
}

static bool read_expr(directive_reader *r, char close, kl_expr *out) {
    return read_span(r, close, out) && check_syntax(r, out);
}

/* list = expr { "," expr } close */
static bool read_list(directive_reader *r, char close, kl_expr *out, int most, int *n,
                      const char *what) {
    *n = 0;
    do {
        directive_skip_space(r);
        if (*n == most)
            return directive_fail(r, r->pos, "%s takes at most %d value%s", what, most,
                                  most == 1 ? "" : "s");
        if (!read_expr(r, close, &out[*n])) return false;
        ++*n;
    } while (directive_take(r, ','));
    return directive_expect(r, close);
}

/* ---- the directives ---------------------------------------------------------------------- */

static void add_value(kl_param *p, int64_t value) {
    for (int i = 0; i < p->n_values; i++)
        if (p->values[i] == value) return;
    KL_ASSERT(p->n_values < (int)KL_COUNT(p->values));
    p->values[p->n_values++] = value;
}

/* values = "{" INT { "," INT } "}" */
static bool read_values(directive_reader *r, kl_param *p) {
    do {
        int64_t value;
        if (!directive_has_room(r, p->n_values, (int)KL_COUNT(p->values), "values of one param") ||
            !read_int(r, &value))
            return false;
        add_value(p, value);
    } while (directive_take(r, ','));
    return directive_expect(r, '}');
}

/* "param" NAME "=" INT [ values ] */
static bool read_param(directive_reader *r) {
    kl_kernel *k = r->kernel;
    if (!directive_has_room(r, k->n_params, KL_MAX_PARAMS, "params")) return false;
    kl_param p = {0};
    if (!read_new_name(r, &p.name, "a param")) return false;
    if (is_own_macro(p.name)) {
        directive_fail(r, r->pos - p.name.len, "a param '%.*s' would redefine the macro KL_%.*s",
                       KL_STR_ARG(p.name), KL_STR_ARG(p.name));
        kl_hint(r->error, "that macro names a data type; call the param something else");
        return false;
    }
    if (!directive_expect(r, '=') || !read_int(r, &p.value)) return false;
    add_value(&p, p.value);
    if (directive_take(r, '{') && !read_values(r, &p)) return false;
    p.offset = (size_t)(p.name.ptr - k->source.ptr);
    k->params[k->n_params++] = p;
    return expect_end(r);
}

static bool read_dtype(directive_reader *r, kl_dtype *out) {
    kl_str name;
    if (!read_name(r, &name, "a data type")) return false;
    if (kl_dtype_parse(out, name)) return true;
    directive_fail(r, r->pos - name.len, "unknown data type '%s'", kli_show(name).text);
    kl_hint(r->error, "data types: f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 bool");
    return false;
}

static bool read_let_type(directive_reader *r, kl_let *let) {
    const char *at = r->pos;
    let->real = true;
    if (!read_dtype(r, &let->type)) return false;
    if (let->type == KL_F32 || let->type == KL_F64) return true;
    return directive_fail(r, at, "a let with a type is f32 or f64; without one it is an integer");
}

static bool any_real(void *ctx, kl_str name, double *out) {
    (void)ctx, (void)name;
    *out = 1;
    return true;
}

/* Syntax only, as check_syntax. */
static bool check_real_syntax(directive_reader *r, const kl_expr *expr) {
    double ignored;
    kl_err err = kli_real_eval(&ignored, expr->text, any_real, NULL, r->error);
    if (err == KL_EPARSE) return !kli_rebase(r->error, r->kernel, expr);
    *r->error = (kl_error){0};
    return true;
}

/* "let" NAME [ ":" ( "f32" | "f64" ) ] "=" expr */
static bool read_let(directive_reader *r) {
    kl_kernel *k = r->kernel;
    kl_let let = {0};
    if (!directive_has_room(r, k->n_lets, KL_MAX_LETS, "lets") ||
        !read_new_name(r, &let.name, "a let") ||
        (directive_take(r, ':') && !read_let_type(r, &let)) || !directive_expect(r, '=') ||
        !read_span(r, 0, &let.expr) ||
        !(let.real ? check_real_syntax(r, &let.expr) : check_syntax(r, &let.expr)))
        return false;
    k->lets[k->n_lets++] = let;
    return true;
}

/* "require" expr */
static bool read_require(directive_reader *r) {
    kl_kernel *k = r->kernel;
    return directive_has_room(r, k->n_required, (int)KL_COUNT(k->required), "require lines") &&
           read_expr(r, 0, &k->required[k->n_required++]);
}

/* "buffer" NAME ":" DTYPE "[" list "]" [ "zero" ] */
static bool read_buffer(directive_reader *r) {
    kl_kernel *k = r->kernel;
    kl_buffer b = {0};
    if (!directive_has_room(r, k->n_buffers, KL_MAX_BUFFERS, "buffers") ||
        !read_new_name(r, &b.name, "a buffer") || !directive_expect(r, ':') ||
        !read_dtype(r, &b.dtype) || !directive_expect(r, '[') ||
        !read_list(r, ']', b.dims, KL_MAX_DIMS, &b.ndim, "a buffer"))
        return false;
    b.offset = (size_t)(b.name.ptr - k->source.ptr);
    directive_skip_space(r);
    kl_str rest = {r->pos, (size_t)(r->end - r->pos)};
    if (kl_str_eq(rest, KL_S("zero"))) {
        b.zero = true;
        r->pos = r->end;
    }
    k->buffers[k->n_buffers++] = b;
    return expect_end(r);
}

/* NAME "(" list ")": an option of a tensormap, a clause of a launch. */
typedef struct {
    const char *name;
    int most;
} list_form;

static const list_form directive_options[KL_OPT_COUNT] = {
    [KL_OPT_BOX] = {"box", 5},
    [KL_OPT_SWIZZLE] = {"swizzle", 1},
    [KL_OPT_DIMS] = {"dims", 5},
    [KL_OPT_STRIDES] = {"strides", 4},
    [KL_OPT_INTERLEAVE] = {"interleave", 1},
    [KL_OPT_L2] = {"l2", 1},
};

static void hint_known(directive_reader *r, kl_str word, const kl_str *known, int n) {
    char list[256] = "";
    int close = kli_closest(word, known, n);
    if (close >= 0) snprintf(list, sizeof list, "did you mean '%.*s'?  ", KL_STR_ARG(known[close]));
    size_t used = strlen(list);
    used += (size_t)snprintf(list + used, sizeof list - used, "known:");
    for (int i = 0; i < n && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, " %.*s", KL_STR_ARG(known[i]));
    kl_hint(r->error, "%s", list);
}

static bool unknown_word(directive_reader *r, kl_str word, const char *kind, const kl_str *known,
                         int n) {
    directive_fail(r, r->pos - word.len, "unknown %s '%s'", kind, kli_show(word).text);
    hint_known(r, word, known, n);
    return false;
}

/* The row that `word` names, or -1; `known` gets the names of all, for a hint. */
static int find_form(const list_form *forms, int n, kl_str word, kl_str *known) {
    int which = -1;
    for (int i = 0; i < n; i++) {
        known[i] = kl_str_of(forms[i].name);
        if (kl_str_eq(word, known[i])) which = i;
    }
    return which;
}

/* option = ( "box" | "swizzle" | "dims" | "strides" | "interleave" | "l2" ) "(" list ")" */
static bool read_option(directive_reader *r, kl_tensormap *map) {
    kl_str word;
    if (!read_name(r, &word, "a tensormap option")) return false;
    kl_str known[KL_OPT_COUNT];
    const int which = find_form(directive_options, KL_OPT_COUNT, word, known);
    if (which < 0) return unknown_word(r, word, "tensormap option", known, KL_OPT_COUNT);
    if (map->n_options[which])
        return directive_fail(r, r->pos - word.len, "%s() is given twice",
                              directive_options[which].name);
    if (!directive_expect(r, '(')) return false;
    return read_list(r, ')', map->options[which], directive_options[which].most,
                     &map->n_options[which], directive_options[which].name);
}

/* "tensormap" NAME ":" NAME { option } */
static bool read_tensormap(directive_reader *r) {
    kl_kernel *k = r->kernel;
    kl_tensormap map = {0};
    if (!directive_has_room(r, k->n_tensormaps, KL_MAX_TENSORMAPS, "tensormaps") ||
        !read_new_name(r, &map.name, "a tensormap") || !directive_expect(r, ':') ||
        !read_name(r, &map.tensor, "a tensor or buffer"))
        return false;
    map.offset = (size_t)(map.name.ptr - k->source.ptr);
    for (directive_skip_space(r); r->pos < r->end; directive_skip_space(r))
        if (!read_option(r, &map)) return false;
    if (!map.n_options[KL_OPT_BOX])
        return directive_fail(r, r->end, "tensormap '%.*s' has no box(...)", KL_STR_ARG(map.name));
    k->tensormaps[k->n_tensormaps++] = map;
    return true;
}

/* "threads" expr */
static bool read_threads(directive_reader *r) {
    if (r->kernel->threads.text.len) return directive_fail(r, r->pos, "threads is given twice");
    return read_expr(r, 0, &r->kernel->threads);
}

/* As many of the allowed flags as a hint holds. */
static void hint_flags(directive_reader *r, const kl_str *known, int n) {
    char list[440] = "";
    size_t used = 0;
    int shown = 0;
    for (; shown < n && used + known[shown].len + 2 < sizeof list; shown++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, " %.*s", KL_STR_ARG(known[shown]));
    if (n == 0)
        kl_hint(r->error, "surface %s takes no compile flags", r->kernel->surface->name);
    else
        kl_hint(r->error, "allowed:%s%s", list, shown < n ? " and more" : "");
}

static bool refuse_flag(directive_reader *r, const char *at, kl_str word) {
    enum { DIRECTIVE_MOST = 96 };
    kl_str known[DIRECTIVE_MOST];
    int n = 0;
    const char *const *allowed = r->kernel->surface->flags;
    for (; allowed[n] && n < DIRECTIVE_MOST; n++) known[n] = kl_str_of(allowed[n]);
    directive_fail(r, at, "flag '%s' is not on the allow-list of %s", kli_show(word).text,
                   r->kernel->surface->name);
    int close = kli_closest(word, known, n);
    if (close >= 0)
        kl_hint(r->error, "did you mean '%.*s'?", KL_STR_ARG(known[close]));
    else
        hint_flags(r, known, n);
    return false;
}

static kl_str read_word(directive_reader *r) {
    directive_skip_space(r);
    const char *start = r->pos;
    while (r->pos < r->end && !kli_is_space(*r->pos)) r->pos++;
    return slice(r, start, r->pos);
}

/* "flags" WORD { WORD }; "-Xptxas -O3" counts as the one word "-Xptxas=-O3" */
static bool read_flags(directive_reader *r) {
    kl_kernel *k = r->kernel;
    directive_skip_space(r);
    if (r->pos == r->end) return directive_fail(r, r->pos, "expected a compile flag");
    for (; r->pos < r->end; directive_skip_space(r)) {
        const char *at = r->pos;
        if (!directive_has_room(r, k->n_flags, (int)KL_COUNT(k->flags), "compile flags"))
            return false;
        kl_str word = read_word(r);
        if (kl_str_eq(word, KL_S("-Xptxas"))) {
            kl_str value = read_word(r);
            word = kl_arena_printf(r->arena, "-Xptxas=%.*s", KL_STR_ARG(value));
        }
        if (!k->trusted && !kli_surface_has_flag(k->surface, word)) return refuse_flag(r, at, word);
        k->flags[k->n_flags++] = word;
    }
    return true;
}

/* "surface" NAME, of those whose files end alike; kernel.c has already obeyed it, before the first
 * directive was read */
static bool directive_read_surface(directive_reader *r) {
    enum { DIRECTIVE_MOST = 16 };
    kl_str name, known[DIRECTIVE_MOST];
    const kl_surface *s, *meant = NULL;
    int n = 0;
    if (!read_name(r, &name, "a surface")) return false;
    for (; n < DIRECTIVE_MOST &&
           (s = kl_surface_of_path(kl_str_of(r->kernel->surface->suffix), n)) != NULL;
         n++) {
        known[n] = kl_str_of(s->name);
        if (kl_str_eq(name, known[n])) meant = s;
    }
    if (!meant) return unknown_word(r, name, "surface of such a file", known, n);
    if (meant != r->kernel->surface)
        return directive_fail(r, r->pos - name.len, "surface %s, but this file was given as %s",
                              meant->name, r->kernel->surface->name);
    return expect_end(r);
}

/* "nondeterministic" */
static bool read_nondeterministic(directive_reader *r) {
    r->kernel->nondeterministic = true;
    return expect_end(r);
}

/* "result" ( "f32" | "f64" ) */
static bool read_result(directive_reader *r) {
    directive_skip_space(r);
    const char *at = r->pos;
    kl_dtype dtype = 0;
    if (!read_dtype(r, &dtype)) return false;
    if (dtype != KL_F32 && dtype != KL_F64) return directive_fail(r, at, "a result is f32 or f64");
    if (!r->oracle) {
        directive_fail(r, at, "only an oracle chooses its result type");
        kl_hint(r->error,
                "drop the line: outputs have the task's data types, see the macros kl_t_<tensor>");
        return false;
    }
    if (r->result_seen) return directive_fail(r, at, "result is given twice");
    r->result_seen = true;
    r->kernel->result = dtype;
    return expect_end(r);
}

static bool is_cubin_name(kl_str s) {
    if (!kl_str_ends(s, KL_S(".cubin")) || !kli_is_name_part(s.ptr[0])) return false;
    for (size_t i = 0; i < s.len; i++)
        if (!kli_is_name_part(s.ptr[i]) && s.ptr[i] != '.' && s.ptr[i] != '-') return false;
    return true;
}

static bool is_sha256(kl_str s) {
    for (size_t i = 0; i < s.len; i++)
        if (!strchr("0123456789abcdef", s.ptr[i])) return false;
    return s.len == 64;
}

/* "cubin" FILE SHA256: a file beside this one, never a path */
static bool read_compiled(directive_reader *r) {
    kl_kernel *k = r->kernel;
    const char *at = r->pos;
    if (!k->may_be_code) {
        directive_fail(r, at, "only a baseline can be compiled code");
        kl_hint(r->error, "name the file with --against, or as a baseline of the task");
        return false;
    }
    if (k->cubin.len) return directive_fail(r, at, "cubin is given twice");
    k->cubin = read_word(r);
    if (!is_cubin_name(k->cubin))
        return directive_fail(r, k->cubin.ptr,
                              "expected the name of a .cubin file, without a path");
    k->cubin_hash = read_word(r);
    if (!is_sha256(k->cubin_hash))
        return directive_fail(r, k->cubin_hash.ptr, "expected the file's sha256, in 64 digits");
    return expect_end(r);
}

/* ---- launch ------------------------------------------------------------------------------ */

static const list_form clauses[KL_CLAUSE_COUNT] = {
    [KL_CLAUSE_GRID] = {"grid", 3},       [KL_CLAUSE_BLOCK] = {"block", 3},
    [KL_CLAUSE_CLUSTER] = {"cluster", 3}, [KL_CLAUSE_GLOBAL] = {"global", 3},
    [KL_CLAUSE_LOCAL] = {"local", 3},     [KL_CLAUSE_SMEM] = {"smem", 1},
    [KL_CLAUSE_WARPS] = {"warps", 1},     [KL_CLAUSE_STAGES] = {"stages", 1},
    [KL_CLAUSE_CTAS] = {"ctas", 1},       [KL_CLAUSE_MAXNREG] = {"maxnreg", 1},
};

/* For "i64(...)" and its like: the kind, and `inner` what stands between the parentheses. */
static bool wrapped(kl_str text, kl_arg_kind *kind, kl_str *inner) {
    static const struct {
        const char *name;
        kl_arg_kind kind;
    } wrappers[] = {{"i64", KL_ARG_I64},
                    {"f32", KL_ARG_F32},
                    {"f64", KL_ARG_F64},
                    {"local", KL_ARG_LOCAL},
                    {"dtype", KL_ARG_TYPE}};
    size_t n = 0;
    while (n < text.len && kli_is_name_part(text.ptr[n])) n++;
    size_t open = n;
    while (open < text.len && kli_is_space(text.ptr[open])) open++;
    if (open == text.len || text.ptr[open] != '(') return false;
    for (size_t i = 0; i < KL_COUNT(wrappers); i++) {
        if (!kl_str_eq((kl_str){text.ptr, n}, kl_str_of(wrappers[i].name))) continue;
        *kind = wrappers[i].kind;
        *inner = (kl_str){text.ptr + open + 1, text.len - open - 1};
        return true;
    }
    return false;
}

/* Does the parenthesis that opened before `s` close at the last byte of `s`? */
static bool closes_at_end(kl_str s) {
    int depth = 1;
    for (size_t i = 0; i < s.len; i++) {
        depth += (s.ptr[i] == '(') - (s.ptr[i] == ')');
        if (depth == 0) return i + 1 == s.len;
    }
    return false;
}

static bool check_real(directive_reader *r, const kl_arg *arg) {
    double value = 0;
    kl_str text = arg->expr.text;
    bool number = kli_parse_real(&value, text);
    if (number && arg->kind == KL_ARG_F32 && (value > FLT_MAX || value < -FLT_MAX))
        return directive_fail(r, text.ptr, "'%s' does not fit float32", kli_show(text).text);
    if (number || kli_is_name(text)) return true;
    directive_fail(r, text.ptr, "expected a number or a name, found '%s'", kli_show(text).text);
    kl_hint(r->error,
            "f32(...) and f64(...) take a decimal number, or one axis, param, let or scalar input; "
            "a `let` can name an integer expression");
    return false;
}

static bool refuse_for_compiler(directive_reader *r, const kl_arg *arg, const char *what) {
    return directive_fail(r, arg->expr.text.ptr, "surface %s has no %s in args(...)",
                          r->kernel->surface->name, what);
}

static bool check_type(directive_reader *r, const kl_arg *arg) {
    if (!r->kernel->surface->named_args) return refuse_for_compiler(r, arg, "dtype(TENSOR)");
    if (kli_is_name(arg->expr.text)) return true;
    return directive_fail(r, arg->expr.text.ptr, "dtype(...) takes the name of a tensor or buffer");
}

/* None, True, False, or 'text' without quotes and escapes in it. */
static bool directive_is_word(kl_str s) {
    if (kl_str_eq(s, KL_S("None")) || kl_str_eq(s, KL_S("True")) || kl_str_eq(s, KL_S("False")))
        return true;
    if (s.len < 2 || (s.ptr[0] != '\'' && s.ptr[0] != '"') || s.ptr[s.len - 1] != s.ptr[0])
        return false;
    for (size_t i = 1; i + 1 < s.len; i++)
        if (s.ptr[i] == s.ptr[0] || s.ptr[i] == '\\' || s.ptr[i] < ' ') return false;
    return true;
}

/* "NAME=" before a value; "M == 1" is none. */
static void directive_take_name(kl_arg *arg) {
    kl_str text = arg->expr.text;
    size_t n = 0, eq;
    while (n < text.len && kli_is_name_part(text.ptr[n])) n++;
    for (eq = n; eq < text.len && kli_is_space(text.ptr[eq]);) eq++;
    if (!kli_is_name((kl_str){text.ptr, n}) || eq + 1 >= text.len || text.ptr[eq] != '=' ||
        text.ptr[eq + 1] == '=')
        return;
    arg->name = (kl_str){text.ptr, n};
    arg->expr.text = kl_str_trim((kl_str){text.ptr + eq + 1, text.len - eq - 1});
    arg->expr.offset += (size_t)(arg->expr.text.ptr - text.ptr);
}

static bool check_wrapped(directive_reader *r, kl_arg *arg, kl_str inner) {
    const char *at = arg->expr.text.ptr;
    if (!closes_at_end(inner))
        return directive_fail(r, at, "a type such as f32(...) must enclose the whole argument");
    inner.len--;
    inner = kl_str_trim(inner);
    if (inner.len == 0) return directive_fail(r, at, "nothing between the parentheses");
    arg->expr = (kl_expr){inner, directive_offset_of(r, inner.ptr)};
    if (arg->kind == KL_ARG_F32 || arg->kind == KL_ARG_F64) return check_real(r, arg);
    if (arg->kind == KL_ARG_TYPE) return check_type(r, arg);
    if (arg->kind == KL_ARG_LOCAL && !r->kernel->surface->local_args) {
        directive_fail(r, at, "surface %s has no local(...) arguments", r->kernel->surface->name);
        const bool smem = kli_surface_has_clause(r->kernel->surface, KL_S("smem"));
        kl_hint(r->error, "%s",
                smem ? "shared memory is a clause of the launch: smem(bytes)"
                     : "memory of its own is a directive: buffer NAME: f32[N]");
        return false;
    }
    return check_syntax(r, &arg->expr);
}

/* "&": what follows lies behind the argument before it, in a struct that is passed by value. */
static bool take_joint(directive_reader *r, kl_launch *launch, kl_arg *arg) {
    directive_skip_space(r);
    const char *at = r->pos;
    arg->joined = directive_take(r, '&');
    if (!arg->joined || (r->kernel->may_be_code && launch->n_args)) return true;
    return directive_fail(r, at,
                          launch->n_args ? "only compiled code takes structs: no source here"
                                         : "there is no argument before the first");
}

static int all_args(const kl_kernel *k) {
    int n = 0;
    for (int i = 0; i < k->n_launches; i++) n += k->launches[i].n_args;
    return n;
}

/* arg = [ "&" ] [ NAME "=" ] value
 * value = expr | "i64" "(" expr ")" | ( "f32" | "f64" ) "(" ( NUMBER | NAME ) ")" | "local" "("
 * expr
 * ")" | "dtype" "(" NAME ")" | "None" | "True" | "False" | TEXT */
static bool read_arg(directive_reader *r, kl_launch *launch) {
    const int most = r->kernel->may_be_code ? KL_MAX_ARGS : KL_MAX_SOURCE_ARGS;
    if (!directive_has_room(r, launch->n_args, most, "arguments") ||
        !directive_has_room(r, all_args(r->kernel), KL_MAX_PLAN_ARGS, "arguments of all launches"))
        return false;
    kl_arg read = {0};
    kl_str inner;
    if (!take_joint(r, launch, &read) || !read_span(r, ')', &read.expr)) return false;
    kl_arg *arg = KL_PUSH(r->arena, launch->args, launch->n_args);
    *arg = read;
    directive_take_name(arg);
    if (arg->name.len && !r->kernel->surface->named_args)
        return refuse_for_compiler(r, arg, "NAME=value");
    if (directive_is_word(arg->expr.text)) {
        arg->kind = KL_ARG_WORD;
        return r->kernel->surface->named_args || refuse_for_compiler(r, arg, "None, True or text");
    }
    if (wrapped(arg->expr.text, &arg->kind, &inner)) return check_wrapped(r, arg, inner);
    arg->kind = kli_is_name(arg->expr.text) ? KL_ARG_NAME : KL_ARG_EXPR;
    return check_syntax(r, &arg->expr);
}

/* "args" "(" [ arg { "," arg } ] ")" */
static bool read_args(directive_reader *r, kl_launch *launch) {
    if (!directive_expect(r, '(')) return false;
    if (directive_take(r, ')')) return true;
    do {
        if (!read_arg(r, launch)) return false;
    } while (directive_take(r, ','));
    return directive_expect(r, ')');
}

static bool refuse_clause(directive_reader *r, kl_str word) {
    const kl_surface *s = r->kernel->surface;
    directive_fail(r, r->pos - word.len, "surface %s has no %.*s(...)", s->name, KL_STR_ARG(word));
    char list[128] = "";
    size_t used = 0;
    for (const char *const *c = s->clauses; *c; c++)
        used += (size_t)snprintf(list + used, sizeof list - used, " %s(...)", *c);
    kl_hint(r->error, "a launch of %s takes%s", s->name, list);
    return false;
}

/* clause = NAME "(" list ")" | args; `*has_args` tells that args were there, empty or not */
static bool read_clause(directive_reader *r, kl_launch *launch, bool *has_args) {
    kl_str word, known[KL_CLAUSE_COUNT + 1];
    if (!read_name(r, &word, "a launch clause")) return false;
    const int which = find_form(clauses, KL_CLAUSE_COUNT, word, known);
    known[KL_CLAUSE_COUNT] = KL_S("args");
    bool is_args = kl_str_eq(word, KL_S("args"));
    if (which < 0 && !is_args)
        return unknown_word(r, word, "launch clause", known, KL_CLAUSE_COUNT + 1);
    if (!is_args && !kli_surface_has_clause(r->kernel->surface, word))
        return refuse_clause(r, word);
    if (is_args ? *has_args : launch->n_clauses[which] > 0)
        return directive_fail(r, r->pos - word.len, "%.*s(...) is given twice", KL_STR_ARG(word));
    if (is_args) {
        *has_args = true;
        return read_args(r, launch);
    }
    if (!directive_expect(r, '(')) return false;
    return read_list(r, ')', launch->clauses[which], clauses[which].most, &launch->n_clauses[which],
                     clauses[which].name);
}

static bool has_clause(const kl_launch *launch, const char *name) {
    for (int i = 0; i < KL_CLAUSE_COUNT; i++)
        if (strcmp(clauses[i].name, name) == 0) return launch->n_clauses[i] > 0;
    return false;
}

/* The clauses that a surface cannot do without. */
static bool check_complete(directive_reader *r, const kl_launch *launch, bool has_args) {
    const kl_surface *s = r->kernel->surface;
    const char *const *missing = s->required;
    while (*missing && has_clause(launch, *missing)) missing++;
    if (!*missing && has_args) return true;
    directive_fail(r, r->end, "launch '%.*s' has no %s(...)", KL_STR_ARG(launch->entry),
                   *missing ? *missing : "args");
    kl_hint(r->error, "for example: %s launch f %s", s->comment, s->example);
    return false;
}

/* "launch" NAME { clause } */
static bool read_launch(directive_reader *r) {
    kl_kernel *k = r->kernel;
    if (!directive_has_room(r, k->n_launches, KL_MAX_LAUNCHES, "launches")) return false;
    kl_launch *launch = &k->launches[k->n_launches++];
    if (!read_name(r, &launch->entry, "a function")) return false;
    launch->offset = (size_t)(launch->entry.ptr - k->source.ptr);
    bool has_args = false;
    for (directive_skip_space(r); r->pos < r->end; directive_skip_space(r))
        if (!read_clause(r, launch, &has_args)) return false;
    return check_complete(r, launch, has_args);
}

/* ---- which directive --------------------------------------------------------------------- */

static const directive directives[] = {
    {"param", "param NAME = INT {INT, INT, ...}", false, read_param},
    {"let", "let NAME = expression", false, read_let},
    {"require", "require expression", false, read_require},
    {"buffer", "buffer NAME: DTYPE[expression, ...] zero (`zero` is optional)", false, read_buffer},
    {"tensormap",
     "tensormap NAME: TENSOR box(...) swizzle(...) dims(...) strides(...) interleave(...) l2(...)",
     true, read_tensormap},
    {"threads", "threads expression", true, read_threads},
    {"flags", "flags -FLAG -FLAG ...", false, read_flags},
    {"surface", "surface NAME", true, directive_read_surface},
    {"nondeterministic", "nondeterministic", false, read_nondeterministic},
    {"result", "result f32 or result f64", false, read_result},
    {"cubin", "cubin NAME.cubin SHA256", true, read_compiled},
    {"launch", "launch FUNCTION clause(...) ... args(...)", false, read_launch},
};

static const directive *directive_find_directive(directive_reader *r, kl_str word) {
    kl_str known[KL_COUNT(directives)];
    int n = 0;
    bool elsewhere = false;
    for (size_t i = 0; i < KL_COUNT(directives); i++) {
        const kl_str name = kl_str_of(directives[i].name);
        const bool here = !directives[i].own || kli_surface_has_directive(r->kernel->surface, name);
        if (here && (directives[i].read != read_compiled || r->kernel->may_be_code))
            known[n++] = name;
        if (!kl_str_eq(word, name)) continue;
        if (here) return &directives[i];
        elsewhere = true;
    }
    if (elsewhere)
        directive_fail(r, r->pos - word.len, "surface %s has no directive '%.*s'",
                       r->kernel->surface->name, KL_STR_ARG(word));
    else
        directive_fail(r, r->pos - word.len, "unknown directive '%s'", kli_show(word).text);
    hint_known(r, word, known, n);
    return NULL;
}

static bool read_one(directive_reader *r, int line) {
    const kli_line *l = &r->scan->lines[line];
    kl_str word = kli_line_word(r->scan, line);
    r->pos = r->scan->clean + l->text + word.len;
    r->end = r->scan->clean + l->end;
    if (word.len == 0) {
        directive_fail(r, r->pos, "expected a directive after '%s'", r->kernel->surface->comment);
        kl_hint(r->error,
                "write an ordinary comment without the '!', or a directive such as `%s launch`",
                r->kernel->surface->comment);
        return false;
    }
    const directive *d = directive_find_directive(r, word);
    if (!d || d->read(r)) return d;
    if (!r->error->hint[0])
        kl_hint(r->error, "the form is `%s %s`", r->kernel->surface->comment, d->form);
    return false;
}

kl_err kli_read_directives(kl_kernel *k, kl_arena *a, const kli_scan *scan, bool oracle,
                           kl_error *e) {
    directive_reader r = {.arena = a, .kernel = k, .scan = scan, .oracle = oracle, .error = e};
    for (int i = 0; i < scan->n_lines; i++)
        if (!read_one(&r, i)) return e->code;
    return KL_OK;
}
