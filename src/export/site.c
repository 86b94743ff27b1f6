/* site.c - a call of the kernel at the top of another program's function.
 *
 * The function's own body stays behind it: it serves what the kernel refuses.  Its text is read as
 * far as this needs, the parameters' names and where its body begins; a function that cannot be
 * found so is refused with what was understood.  SPDX-License-Identifier: Apache-2.0 */
#include "patch_impl.h"

#include <ctype.h>
#include <string.h>

/* ---- text -------------------------------------------------------------------------------- */

static bool is_site_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Comments and literals as spaces, line ends kept: what is looked for cannot be in them. */
static char *site_code_of_c(kl_arena *a, kl_str text) {
    char *out = KL_ARRAY(a, char, text.len + 1);
    char until = 0; /* '"' '\'' '*' (block comment) '\n' (line comment) */
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i], next = i + 1 < text.len ? text.ptr[i + 1] : 0;
        out[i] = c == '\n' || !until ? c : ' ';
        if (!until && c == '/' && (next == '*' || next == '/')) {
            until = next == '*' ? '*' : '\n';
            out[i] = ' ';
            out[++i] = ' ';
        } else if (!until && (c == '"' || c == '\'')) {
            until = c;
        } else if ((until == '"' || until == '\'') && c == '\\' && i + 1 < text.len) {
            out[i + 1] = next == '\n' ? '\n' : ' ';
            i++;
        } else if (until == '*' && c == '*' && next == '/') {
            out[i] = out[i + 1] = ' ', i++, until = 0;
        } else if (until && until != '*' && c == until) {
            until = 0;
        }
    }
    return out;
}

static size_t site_closing(const char *code, size_t open, char begins, char ends) {
    int depth = 0;
    for (size_t i = open; code[i]; i++) {
        depth += (code[i] == begins) - (code[i] == ends);
        if (depth == 0) return i;
    }
    return 0;
}

static size_t site_skip_space(const char *code, size_t i) {
    while (isspace((unsigned char)code[i])) i++;
    return i;
}

/* The last identifier of a parameter, before an array's brackets. */
static kl_str parameter_of(const char *code, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (code[i] == '[' || code[i] == '=') to = i;
    while (to > from && !is_site_word(code[to - 1])) to--;
    size_t begin = to;
    while (begin > from && is_site_word(code[begin - 1])) begin--;
    return (kl_str){code + begin, to - begin};
}

static void patch_site_parameters(kli_site *s, const char *code, size_t open, size_t close) {
    int depth = 0;
    size_t from = open + 1;
    for (size_t i = open + 1; i <= close; i++) {
        depth += (code[i] == '(' || code[i] == '[') - (code[i] == ')' || code[i] == ']');
        if (i < close && (code[i] != ',' || depth > 0)) continue;
        const kl_str name = parameter_of(code, from, i);
        if (name.len && s->n_parameters < KLI_SITE_PARAMETERS)
            s->parameters[s->n_parameters++] = name;
        from = i + 1;
    }
}

/* Behind the last line that includes something, before `at`; 0 when there is none. */
static size_t behind_includes(const char *code, size_t at) {
    size_t found = 0;
    for (size_t line = 0; line < at;) {
        size_t end = line;
        while (code[end] && code[end] != '\n') end++;
        const size_t word = site_skip_space(code, line);
        if (word < end && code[word] == '#' &&
            strncmp(code + site_skip_space(code, word + 1), "include", 7) == 0)
            found = end + 1;
        if (!code[end]) break;
        line = end + 1;
    }
    return found;
}

/* What stands before the name: its type, and `static` and the like. */
static bool returns_nothing(const char *code, size_t name) {
    size_t from = name;
    while (from > 0 && !strchr(";}{", code[from - 1])) from--;
    bool found = false;
    for (size_t i = from; i < name; i++) {
        if (code[i] == '*') return false;
        if (strncmp(code + i, "void", 4) == 0 && !is_site_word(code[i + 4]) &&
            (i == from || !is_site_word(code[i - 1])))
            found = true;
    }
    return found;
}

/* `extern "C" {` and namespaces do not count as a body. */
static int depth_change(const char *code, size_t i) {
    if (code[i] == '}') return -1;
    if (code[i] != '{') return 0;
    size_t before = i;
    while (before > 0 &&
           (isspace((unsigned char)code[before - 1]) || is_site_word(code[before - 1]) ||
            code[before - 1] == ':' || code[before - 1] == '"'))
        before--;
    const kl_str head = {code + before, i - before};
    const bool is_scope =
        memmem(head.ptr, head.len, "namespace", 9) || memmem(head.ptr, head.len, "extern", 6);
    return is_scope ? 0 : 1;
}

kl_err kli_site_in_c(kli_site *s, kl_arena *a, kl_str text, kl_str function, kl_error *e) {
    const char *code = site_code_of_c(a, text);
    int depth = 0, opened = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (code[i] == '{' && depth_change(code, i) == 0) opened++;
        if (code[i] == '}' && depth == 0 && opened)
            opened--;
        else
            depth += depth_change(code, i);
        if (depth || strncmp(code + i, function.ptr, function.len) != 0 ||
            is_site_word(code[i + function.len]) || (i && is_site_word(code[i - 1])))
            continue;
        const size_t open = site_skip_space(code, i + function.len);
        const size_t close = code[open] == '(' ? site_closing(code, open, '(', ')') : 0;
        const size_t body = close ? site_skip_space(code, close + 1) : 0;
        if (!body || code[body] != '{') continue; /* a declaration, a call */
        s->body = body + 1;
        s->top = behind_includes(code, i);
        s->returns_nothing = returns_nothing(code, i);
        patch_site_parameters(s, code, open, close);
        return KL_OK;
    }
    return kl_fail(e, KL_EINVAL, s->file, "there is no function %.*s with a body",
                   KL_STR_ARG(function));
}

/* ---- Python ------------------------------------------------------------------------------ */

static size_t line_end(kl_str text, size_t at) {
    while (at < text.len && text.ptr[at] != '\n') at++;
    return at;
}

/* "x: Tensor = None" is x; "*", "*args" and "/" are none. */
static void python_parameters(kli_site *s, const char *code, size_t open, size_t close) {
    int depth = 0;
    size_t from = open + 1;
    for (size_t i = open + 1; i <= close; i++) {
        depth += (strchr("([{", code[i]) != NULL) - (strchr(")]}", code[i]) != NULL);
        if (i < close && (code[i] != ',' || depth > 0)) continue;
        size_t begin = site_skip_space(code, from), end = begin;
        while (is_site_word(code[end])) end++;
        if (end > begin && s->n_parameters < KLI_SITE_PARAMETERS)
            s->parameters[s->n_parameters++] = (kl_str){code + begin, end - begin};
        from = i + 1;
    }
}

/* Past a docstring, which has to stay first. */
static size_t past_docstring(kl_str text, size_t body) {
    const size_t at = site_skip_space(text.ptr, body);
    const kl_str rest = {text.ptr + at, text.len - at};
    const char *mark = kl_str_starts(rest, KL_S("\"\"\"")) ? "\"\"\""
                       : kl_str_starts(rest, KL_S("'''"))  ? "'''"
                       : kl_str_starts(rest, KL_S("\""))   ? "\""
                                                           : NULL;
    const char *end = mark ? strstr(rest.ptr + strlen(mark), mark) : NULL;
    return end ? line_end(text, (size_t)(end - text.ptr)) + 1 : body;
}

/* Of the first line from `body` on that holds something. */
static size_t site_indent(kl_str text, size_t body) {
    const size_t at = site_skip_space(text.ptr, body);
    size_t line = at;
    while (line > body && text.ptr[line - 1] != '\n') line--;
    return at - line;
}

static size_t behind_imports(kl_str text, size_t at) {
    size_t found = 0;
    for (size_t line = 0; line < at; line = line_end(text, line) + 1) {
        const kl_str rest = {text.ptr + line, text.len - line};
        if (!kl_str_starts(rest, KL_S("import ")) && !kl_str_starts(rest, KL_S("from "))) continue;
        size_t end = line_end(text, line);
        const char *open = memchr(text.ptr + line, '(', end - line);
        if (open) end = line_end(text, site_closing(text.ptr, (size_t)(open - text.ptr), '(', ')'));
        found = end + 1;
    }
    return found;
}

kl_err kli_site_in_python(kli_site *s, kl_str text, kl_str function, kl_error *e) {
    for (size_t line = 0; line < text.len; line = line_end(text, line) + 1) {
        size_t i = line;
        while (text.ptr[i] == ' ') i++;
        if (strncmp(text.ptr + i, "def ", 4) != 0 ||
            strncmp(text.ptr + i + 4, function.ptr, function.len) != 0)
            continue;
        const size_t open = i + 4 + function.len;
        const size_t close = text.ptr[open] == '(' ? site_closing(text.ptr, open, '(', ')') : 0;
        const char *colon = close ? strchr(text.ptr + close, ':') : NULL;
        if (!colon || (size_t)(colon - text.ptr) > line_end(text, close)) continue;
        const size_t body = line_end(text, (size_t)(colon - text.ptr)) + 1;
        if (site_skip_space(text.ptr, (size_t)(colon - text.ptr) + 1) < body) continue;
        s->body = past_docstring(text, body);
        s->top = behind_imports(text, line);
        s->indent = site_indent(text, body);
        s->returns_nothing = true;
        python_parameters(s, text.ptr, open, close);
        return KL_OK;
    }
    return kl_fail(e, KL_EINVAL, s->file, "there is no function %.*s with a body of its own lines",
                   KL_STR_ARG(function));
}
