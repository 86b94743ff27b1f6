/* text.c - characters, numbers, "did you mean" and carets: what reading directives and planning
 * have in common.
 *
 * Locale plays no part: a directive means the same everywhere.  SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool kli_is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

bool kli_is_digit(char c) { return c >= '0' && c <= '9'; }

bool kli_is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool kli_is_name_part(char c) { return kli_is_name_start(c) || kli_is_digit(c); }

bool kli_is_name(kl_str s) {
    if (s.len == 0 || !kli_is_name_start(s.ptr[0])) return false;
    for (size_t i = 1; i < s.len; i++)
        if (!kli_is_name_part(s.ptr[i])) return false;
    return true;
}

bool kli_parse_int(int64_t *out, kl_str s) {
    bool negative = s.len > 0 && s.ptr[0] == '-';
    size_t i = negative ? 1 : 0;
    if (i == s.len) return false;
    int64_t value = 0;
    for (; i < s.len; i++) {
        if (!kli_is_digit(s.ptr[i])) return false;
        int64_t digit = s.ptr[i] - '0';
        if (__builtin_mul_overflow(value, (int64_t)10, &value)) return false;
        if (__builtin_add_overflow(value, negative ? -digit : digit, &value)) return false;
    }
    *out = value;
    return true;
}

/* real = [ "-" ] digits [ "." digits ] [ "e" [ sign ] digits ], with a digit on at least one side
 * of the point: what strtod reads to its end, without its words and its hexadecimal numbers */
bool kli_parse_real(double *out, kl_str s) {
    char copy[64];
    if (s.len == 0 || s.len >= sizeof copy || memchr(s.ptr, '\0', s.len)) return false;
    memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    char *end;
    *out = strtod(copy, &end);
    return copy[0] != '+' && strspn(copy, "0123456789.eE+-") == s.len && *end == '\0' &&
           isfinite(*out);
}

/* Edit distance of two short words: insert, delete, replace and swap of neighbours cost one each.
 */
static int text_distance(kl_str a, kl_str b) {
    enum { TEXT_LONGEST = 32 };
    int row[3][TEXT_LONGEST + 1];
    if (a.len > TEXT_LONGEST || b.len > TEXT_LONGEST) return TEXT_LONGEST;
    for (size_t j = 0; j <= b.len; j++) row[0][j] = (int)j;
    for (size_t i = 1; i <= a.len; i++) {
        int *now = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= b.len; j++) {
            int best = up[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            if (up[j] + 1 < best) best = up[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            bool swapped =
                i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1];
            if (swapped && up2[j - 2] + 1 < best) best = up2[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[a.len % 3][b.len];
}

int kli_closest(kl_str word, const kl_str *names, int n) {
    int best = -1,
        best_distance = (int)(word.len / 3) + 1; /* a third of the letters may be wrong */
    if (best_distance > 4) best_distance = 4;
    for (int i = 0; i < n; i++) {
        int d = text_distance(word, names[i]);
        if (d < best_distance) {
            best = i;
            best_distance = d;
        }
    }
    return best;
}

int kli_line_number(kl_str source, size_t offset) {
    int line = 1;
    for (size_t i = 0; i < offset && i < source.len; i++) line += source.ptr[i] == '\n';
    return line;
}

kli_kernel_shown kli_show(kl_str word) {
    enum { TEXT_LONGEST = 40 };
    kli_kernel_shown shown = {{0}};
    size_t n = word.len < TEXT_LONGEST ? word.len : TEXT_LONGEST;
    for (size_t i = 0; i < n; i++)
        shown.text[i] = word.ptr[i] >= ' ' && word.ptr[i] <= '~' ? word.ptr[i] : '?';
    if (word.len > TEXT_LONGEST) strcpy(shown.text + TEXT_LONGEST, "...");
    return shown;
}

/* `where` ends in :line:column, and an expression has one line. */
static size_t column_of(const char *where) {
    const char *colon = strrchr(where, ':');
    long column = colon ? strtol(colon + 1, NULL, 10) : 1;
    return column > 1 ? (size_t)column - 1 : 0;
}

kl_err kli_rebase(kl_error *e, const kl_kernel *k, const kl_expr *expr) {
    kl_error inner = *e;
    size_t column = column_of(inner.where);
    if (column > expr->text.len) column = expr->text.len;
    kl_fail_at(e, inner.code, k->path, k->source, expr->offset + column, "%s", inner.message);
    if (inner.hint[0]) kl_hint(e, "%s", inner.hint);
    return inner.code;
}
