/* case.c - see case.h.  SPDX-License-Identifier: Apache-2.0 */
#include "case.h"

#include "base/fs.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- reading
 * ---------------------------------------------------------------------------------------------- */

static kl_str take_line(kl_str *rest) {
    const char *newline = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    size_t n = newline ? (size_t)(newline - rest->ptr) : rest->len;
    kl_str line = {rest->ptr, n};
    if (newline) n++;
    *rest = (kl_str){rest->ptr + n, rest->len - n};
    return line;
}

static void read_key(kit_case *c, kl_str line) {
    const char *colon = memchr(line.ptr, ':', line.len);
    if (!colon) fail_msg("%s: no colon in '%.*s'", c->path.ptr, KL_STR_ARG(line));
    assert_true(c->n_keys < (int)KL_COUNT(c->keys));
    kl_str key = {line.ptr, (size_t)(colon - line.ptr)};
    c->keys[c->n_keys] = key;
    c->values[c->n_keys++] = kl_str_trim((kl_str){colon + 1, line.len - key.len - 1});
}

static void read_case(kit_case *c, kl_str path) {
    kl_str text, rest, line;
    assert_ok(kli_fs_read(&text, arena, path.ptr, 1 << 20, &e));
    *c = (kit_case){.path = path};
    for (rest = text; !kl_str_starts(line = take_line(&rest), KL_S("--- "));) {
        if (!rest.len) fail_msg("%s: no section 'expect'", path.ptr);
        if (line.len && line.ptr[0] != '#') read_key(c, line);
    }
    c->input.ptr = rest.ptr;
    while (!kl_str_eq(line, KL_S("--- expect"))) {
        c->input.len = (size_t)(rest.ptr - c->input.ptr);
        if (!rest.len) fail_msg("%s: no section 'expect'", path.ptr);
        line = take_line(&rest);
    }
    c->expect = rest;
    c->head = (kl_str){text.ptr, text.len - rest.len};
}

kl_str kit_value(const kit_case *c, const char *key, const char *absent) {
    for (int i = 0; i < c->n_keys; i++)
        if (kl_str_eq(c->keys[i], kl_str_of(key))) return c->values[i];
    return kl_str_of(absent);
}

kl_str kit_word(kl_str *rest) {
    *rest = kl_str_trim(*rest);
    size_t n = 0;
    while (n < rest->len && rest->ptr[n] != ' ') n++;
    kl_str word = {rest->ptr, n};
    *rest = (kl_str){rest->ptr + n, rest->len - n};
    return word;
}

kl_str kit_field(kl_str words, const char *key) {
    size_t n = strlen(key);
    for (kl_str w; (w = kit_word(&words)).len;)
        if (kl_str_starts(w, kl_str_of(key)) && w.len > n && w.ptr[n] == '=')
            return kl_arena_copy(arena, (kl_str){w.ptr + n + 1, w.len - n - 1});
    return KL_S("");
}

double kit_number(kl_str text, double absent) {
    return text.len ? strtod(kl_arena_copy(arena, text).ptr, NULL) : absent;
}

/* ---- running
 * ---------------------------------------------------------------------------------------------- */

static bool run_case(kl_str path, kit_run_case *run) {
    kl_buf got = {0};
    kit_case *c;
    kit_set_up(NULL);
    c = KL_NEW(arena, kit_case);
    read_case(c, kl_arena_copy(arena, path));
    run(&got, c);
    bool same = kl_str_eq(kl_buf_str(&got), c->expect);
    if (!same && getenv("KL_UPDATE_CASES"))
        assert_ok(kli_fs_write(
            c->path.ptr,
            kl_arena_printf(arena, "%.*s%.*s", KL_STR_ARG(c->head), KL_STR_ARG(kl_buf_str(&got))),
            &e));
    else if (!same)
        printf("%s\n--- expected\n%.*s--- got\n%.*s", c->path.ptr, KL_STR_ARG(c->expect),
               KL_STR_ARG(kl_buf_str(&got)));
    kl_buf_fini(&got);
    kit_tear_down(NULL);
    return same;
}

void kit_run_cases(const char *dir, int least, kit_run_case *run) {
    kl_arena *a = kl_arena_new();
    kl_str *names;
    size_t n;
    int ran = 0, wrong = 0;
    assert_ok(kli_fs_list(&names, &n, a, dir, &e));
    for (size_t i = 0; i < n; i++) {
        if (!kl_str_ends(names[i], KL_S(".case"))) continue;
        wrong += !run_case(kli_fs_join(a, dir, names[i].ptr), run);
        ran++;
    }
    kl_arena_free(a);
    if (wrong) fail_msg("%d of %d cases", wrong, ran);
    if (ran < least) fail_msg("%d cases in %s, and there are at least %d", ran, dir, least);
}
