/* error.c - how a failure is said: what, where, the source line with a caret, and the next command
 * to type.
 *
 * Text that reaches a message may come from a candidate or a model, so control characters never
 * pass: a terminal escape inside a kernel's file name must not move the reader's cursor. Not here:
 * verdicts.  A kernel that fails is a result. SPDX-License-Identifier: Apache-2.0 */
#include <klineage/base.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_LINE_BYTES                                                                           \
    160 /* of a source line, around the caret; minified sources have lines of megabytes */

KL_NORETURN void kl_bug(const char *what, const char *file, int line) {
    fprintf(stderr, "klineage: bug: %s does not hold at %s:%d\n", what, file, line);
    abort();
}

KL_NORETURN void kl_oom(size_t bytes) {
    fprintf(stderr, "klineage: out of memory: %zu bytes\n", bytes);
    abort();
}

kl_error *kl_ignored(void) {
    static _Thread_local kl_error nobodys;
    return &nobodys;
}

const char *kl_err_name(kl_err code) {
    switch (code) {
    case KL_OK:
        return "ok";
    case KL_EIO:
        return "input or output failed";
    case KL_ENOENT:
        return "not found";
    case KL_EPARSE:
        return "malformed";
    case KL_EINVAL:
        return "invalid";
    case KL_ENODEV:
        return "no device";
    case KL_ESPAWN:
        return "worker did not start";
    case KL_EISOLATION:
        return "isolation not available";
    case KL_EINTR:
        return "interrupted";
    case KL_ELIMIT:
        return "limit passed";
    case KL_EBUSY:
        return "busy";
    case KL_PENDING:
        return "pending";
    case KL_EBUDGET:
        return "budget exhausted";
    case KL_EMODEL:
        return "model failed";
    case KL_EBASELINE:
        return "baseline failed";
    }
    return "unknown error";
}

static void keep_printable(char *text, bool multi_line) {
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            if (!multi_line || (*p != '\n' && *p != '\t')) *p = ' ';
}

static KL_PRINTF(4, 0) kl_err
    fail_v(kl_error *e, kl_err code, const char *where, const char *fmt, va_list args) {
    KL_ASSERT(e && code != KL_OK);
    e->code = code;
    e->detail[0] = e->hint[0] = '\0';
    snprintf(e->where, sizeof e->where, "%s", where ? where : "");
    vsnprintf(e->message, sizeof e->message, fmt, args);
    keep_printable(e->where, false);
    keep_printable(e->message, false);
    return code;
}

kl_err kl_fail(kl_error *e, kl_err code, const char *where, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fail_v(e, code, where, fmt, args);
    va_end(args);
    return code;
}

kl_err kl_hint(kl_error *e, const char *fmt, ...) {
    KL_ASSERT(e);
    va_list args;
    va_start(args, fmt);
    vsnprintf(e->hint, sizeof e->hint, fmt, args);
    va_end(args);
    keep_printable(e->hint, false);
    return e->code;
}

typedef struct {
    size_t start, end, number;
} line_span; /* of the line that holds an offset; number from 1 */

static line_span line_at(kl_str text, size_t offset) {
    line_span line = {.number = 1};
    for (size_t i = 0; i < offset; i++)
        if (text.ptr[i] == '\n') {
            line.number++;
            line.start = i + 1;
        }
    const char *newline =
        offset < text.len ? memchr(text.ptr + offset, '\n', text.len - offset) : NULL;
    line.end = newline ? (size_t)(newline - text.ptr) : text.len;
    if (line.end > line.start && text.ptr[line.end - 1] == '\r') line.end--;
    return line;
}

/*   3 | the line
 *     |     ^        Tabs before the caret are kept, so that it stands right at every tab width. */
static void show_line(kl_error *e, kl_str text, line_span line, size_t offset) {
    size_t from =
        offset - line.start > SHOWN_LINE_BYTES / 2 ? offset - SHOWN_LINE_BYTES / 2 : line.start;
    size_t end = line.end - from > SHOWN_LINE_BYTES ? from + SHOWN_LINE_BYTES : line.end;
    KL_ASSERT(line.start <= from && from <= offset && offset <= line.end);
    char caret[SHOWN_LINE_BYTES + 1];
    size_t n = 0;
    for (size_t i = from; i < offset && n < SHOWN_LINE_BYTES; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if ((c & 0xc0) != 0x80)
            caret[n++] = c == '\t' ? '\t' : ' '; /* one column for a whole UTF-8 sequence */
    }
    caret[n] = '\0';
    int margin = snprintf(NULL, 0, "%3zu", line.number);
    snprintf(e->detail, sizeof e->detail, "%3zu | %.*s\n%*s | %s^", line.number, (int)(end - from),
             text.ptr + from, margin, "", caret);
    keep_printable(e->detail, true);
}

kl_err kl_fail_at(kl_error *e, kl_err code, kl_str file, kl_str text, size_t offset,
                  const char *fmt, ...) {
    if (!text.ptr) text = KL_S("");
    if (offset > text.len) offset = text.len;
    line_span line = line_at(text, offset);
    if (offset > line.end) offset = line.end; /* on the \r of a \r\n */
    char where[256];
    snprintf(where, sizeof where, "%.*s:%zu:%zu", KL_STR_ARG(file), line.number,
             offset - line.start + 1);
    va_list args;
    va_start(args, fmt);
    fail_v(e, code, where, fmt, args);
    va_end(args);
    show_line(e, text, line, offset);
    return code;
}

void kl_error_render(const kl_error *e, kl_buf *out) {
    const char *message = e->message[0] ? e->message : kl_err_name(e->code);
    kl_buf_printf(out, "%s%serror: %s\n", e->where, e->where[0] ? ": " : "", message);
    if (e->detail[0]) {
        kl_str detail = kl_str_of(e->detail);
        kl_buf_add(out, detail);
        if (!kl_str_ends(detail, KL_S("\n"))) kl_buf_add(out, KL_S("\n"));
    }
    if (e->hint[0]) kl_buf_printf(out, "hint: %s\n", e->hint);
}
