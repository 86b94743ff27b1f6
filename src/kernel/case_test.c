/* case_test.c - runs every tests/cases/directive/NAME.case: a kernel, and the exact error or plan that it must give.
 *
 *   # what the case shows
 *   file: k.cu                      decides the surface; default k.cu
 *   axes: 128 256                   M and N of the small task of fixture.h
 *   params: BM=64                   overrides, blank-separated
 *   oracle: yes
 *   limits: sms=132 smem_max=232448 max_threads=1024 cores=2 memory=1000000
 *   show: plan defines              what to print on success; default plan
 *   --- kernel
 *   ...
 *   --- expect
 *   ...
 *
 * With KL_UPDATE_CASES=1 in the environment the expected part is rewritten; read the difference before you keep it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"

#include "base/fs.h"
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    kl_arena *arena;
    kl_str path, file, show, kernel, expect, head; /* head: everything before the expected part */
    kl_fixture fixture;
    kl_device_limits limits;
    kl_kernel_opts opts;
    const char *params[33];
} test_case;

/* ---- reading a case ---------------------------------------------------------------------------------------- */

static kl_str take_line(kl_str *rest)
{
    const char *newline = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    size_t n = newline ? (size_t)(newline - rest->ptr) : rest->len;
    kl_str line = {rest->ptr, n};
    if (newline) n++;
    *rest = (kl_str){rest->ptr + n, rest->len - n};
    return line;
}

static void read_limit(kl_device_limits *l, const char *word)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {{"sms=", offsetof(kl_device_limits, sms)},
                  {"cores=", offsetof(kl_device_limits, cores)},
                  {"smem_max=", offsetof(kl_device_limits, smem_max)},
                  {"max_threads=", offsetof(kl_device_limits, max_threads)},
                  {"memory=", offsetof(kl_device_limits, memory)}};
    for (size_t i = 0; i < KL_COUNT(fields); i++) {
        size_t n = strlen(fields[i].name);
        if (strncmp(word, fields[i].name, n) != 0) continue;
        int64_t value = strtoll(word + n, NULL, 10);
        memcpy((char *)l + fields[i].offset, &value, sizeof value);
        return;
    }
    fail_msg("unknown limit %s", word);
}

static void read_words(test_case *c, kl_str value, bool limits)
{
    int n = 0;
    for (char *word = strtok((char *)(uintptr_t)kl_arena_copy(c->arena, value).ptr, " "); word;
         word = strtok(NULL, " ")) {
        if (limits)
            read_limit(&c->limits, word);
        else
            c->params[n++] = word;
    }
    if (!limits) c->opts.params = c->params;
}

static void read_key(test_case *c, kl_str line)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    if (!colon) fail_msg("%.*s: no colon in '%.*s'", KL_STR_ARG(c->path), KL_STR_ARG(line));
    kl_str key = {line.ptr, (size_t)(colon - line.ptr)};
    kl_str value = kl_str_trim((kl_str){colon + 1, line.len - key.len - 1});
    if (kl_str_eq(key, KL_S("file")))
        c->file = value;
    else if (kl_str_eq(key, KL_S("show")))
        c->show = value;
    else if (kl_str_eq(key, KL_S("oracle")))
        c->opts.oracle = true;
    else if (kl_str_eq(key, KL_S("params")))
        read_words(c, value, false);
    else if (kl_str_eq(key, KL_S("limits")))
        read_words(c, value, true);
    else if (kl_str_eq(key, KL_S("axes"))) {
        char *after;
        c->fixture.workload.axes[0] = strtoll(value.ptr, &after, 10);
        c->fixture.workload.axes[1] = strtoll(after, NULL, 10);
    } else
        fail_msg("%.*s: unknown key %.*s", KL_STR_ARG(c->path), KL_STR_ARG(key));
}

static void read_case(test_case *c, kl_arena *a, kl_str path)
{
    kl_error e = {0};
    kl_str text;
    assert_ok(kl_fs_read(&text, a, path.ptr, 1 << 20, &e));
    *c = (test_case){.arena = a, .path = path, .file = KL_S("k.cu"), .show = KL_S("plan")};
    fixture_init(&c->fixture, 128, 256);
    kl_str rest = text, line;
    while (!kl_str_eq(line = take_line(&rest), KL_S("--- kernel"))) {
        assert_true(rest.len > 0);
        if (line.len && line.ptr[0] != '#') read_key(c, line);
    }
    c->kernel.ptr = rest.ptr;
    do c->kernel.len = (size_t)(rest.ptr - c->kernel.ptr);
    while (rest.len && !kl_str_eq(take_line(&rest), KL_S("--- expect")));
    c->expect = rest;
    c->head = (kl_str){text.ptr, text.len - rest.len};
}

/* ---- printing what came out -------------------------------------------------------------------------------- */

static void print_list(kl_buf *out, const char *label, const uint64_t *values, uint32_t n)
{
    kl_buf_printf(out, " %s(", label);
    for (uint32_t i = 0; i < n; i++) kl_buf_printf(out, "%s%llu", i ? ", " : "", (unsigned long long)values[i]);
    kl_buf_printf(out, ")");
}

static void print_sizes(kl_buf *out, const char *label, const uint32_t *values, uint32_t n)
{
    uint64_t wide[5] = {0};
    for (uint32_t i = 0; i < n; i++) wide[i] = values[i];
    print_list(out, label, wide, n);
}

static void print_value(kl_buf *out, const kl_plan *p, const kl_value *v)
{
    switch (v->kind) {
    case KL_VALUE_TENSOR:
        kl_buf_printf(out, "  tensor %s\n", p->tensors[v->index].name);
        break;
    case KL_VALUE_BUFFER:
        kl_buf_printf(out, "  buffer %s\n", p->buffers[v->index].name);
        break;
    case KL_VALUE_TENSORMAP:
        kl_buf_printf(out, "  tensormap %u\n", v->index);
        break;
    case KL_VALUE_I32:
        kl_buf_printf(out, "  i32 %lld\n", (long long)v->i);
        break;
    case KL_VALUE_I64:
        kl_buf_printf(out, "  i64 %lld\n", (long long)v->i);
        break;
    case KL_VALUE_F32:
        kl_buf_printf(out, "  f32 %g\n", v->f);
        break;
    case KL_VALUE_F64:
        kl_buf_printf(out, "  f64 %g\n", v->f);
        break;
    case KL_VALUE_LOCAL:
        kl_buf_printf(out, "  local %lld\n", (long long)v->i);
        break;
    case KL_VALUE_SCALAR:
        kl_buf_printf(out, "  scalar %s %g\n", p->tensors[v->index].name, v->f);
        break;
    default:
        fail_msg("argument of kind %u", v->kind);
    }
}

static void print_tensors(kl_buf *out, const kl_plan *p)
{
    static const char *const roles[] = {"input", "output", "mutable", "scalar"};
    for (uint32_t i = 0; i < p->n_tensors; i++) {
        const kl_plan_tensor *t = &p->tensors[i];
        kl_buf_printf(out, "tensor %s %s %llu bytes %s\n", t->name, kl_dtype_name((kl_dtype)t->dtype),
                      (unsigned long long)t->bytes, roles[t->role]);
    }
}

static void print_plan(kl_buf *out, const kl_plan *p)
{
    if (p->threads != 1) kl_buf_printf(out, "threads %u\n", p->threads);
    for (uint32_t i = 0; i < p->n_buffers; i++)
        kl_buf_printf(out, "buffer %s %s %llu bytes%s\n", p->buffers[i].name,
                      kl_dtype_name((kl_dtype)p->buffers[i].dtype), (unsigned long long)p->buffers[i].bytes,
                      p->buffers[i].zero ? " zero" : "");
    for (uint32_t i = 0; i < p->n_tensormaps; i++) {
        const kl_plan_tensormap *m = &p->tensormaps[i];
        kl_buf_printf(out, "tensormap %u of %s %u %s", i, m->of_buffer ? "buffer" : "tensor", m->index,
                      kl_dtype_name((kl_dtype)m->dtype));
        print_list(out, "dims", m->dims, m->rank);
        print_list(out, "strides", m->strides + 1, m->rank - 1);
        print_sizes(out, "box", m->box, m->rank);
        kl_buf_printf(out, " swizzle %u interleave %u l2 %u\n", m->swizzle, m->interleave, m->l2);
    }
    for (uint32_t i = 0; i < p->n_launches; i++) {
        const kl_plan_launch *l = &p->launches[i];
        kl_buf_printf(out, "launch %s", l->entry);
        print_sizes(out, "grid", l->grid, 3);
        print_sizes(out, "block", l->block, 3);
        print_sizes(out, "cluster", l->cluster, 3);
        kl_buf_printf(out, " smem %u warps %u stages %u\n", l->smem, l->warps, l->stages);
        for (uint32_t j = 0; j < l->n_args; j++) print_value(out, p, &l->args[j]);
    }
}

static void print_defines(kl_buf *out, test_case *c, const kl_kernel *k)
{
    const char **flags = kl_kernel_defines(c->arena, k, &c->fixture.task, &c->fixture.workload);
    for (; *flags; flags++) kl_buf_printf(out, "%s\n", *flags);
}

/* ---- running ------------------------------------------------------------------------------------------------ */

static void print_failure(kl_buf *out, kl_err err, const kl_error *e)
{
    kl_buf_printf(out, "%s\n",
                  err == KL_EPARSE   ? "EPARSE"
                  : err == KL_EINVAL ? "EINVAL"
                  : err == KL_ELIMIT ? "ELIMIT"
                                     : "other");
    kl_error_render(e, out);
}

static void run_case(kl_buf *out, test_case *c)
{
    kl_error e = {0};
    kl_kernel *k;
    kl_plan *plan = KL_NEW(c->arena, kl_plan);
    kl_err err = kl_kernel_parse(&k, c->arena, c->kernel, c->file, NULL, &c->opts, &e);
    if (!err) err = kl_kernel_plan(plan, k, &c->fixture.task, &c->fixture.workload, &c->limits, &e);
    if (err) {
        print_failure(out, err, &e);
        return;
    }
    const char *show = kl_arena_copy(c->arena, c->show).ptr;
    if (strstr(show, "hash")) kl_buf_printf(out, "hash %s\n", k->hash);
    if (strstr(show, "flags"))
        for (int i = 0; i < k->n_flags; i++) kl_buf_printf(out, "flag %.*s\n", KL_STR_ARG(k->flags[i]));
    if (strstr(show, "tensors")) print_tensors(out, plan);
    if (strstr(show, "plan")) print_plan(out, plan);
    if (strstr(show, "defines")) print_defines(out, c, k);
}

static bool check_case(const char *dir, kl_str name)
{
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_buf got = {0};
    test_case *c = KL_NEW(a, test_case);
    read_case(c, a, kl_fs_join(a, dir, name.ptr));
    run_case(&got, c);
    bool same = kl_str_eq(kl_buf_str(&got), c->expect);
    if (!same && getenv("KL_UPDATE_CASES"))
        assert_ok(kl_fs_write(c->path.ptr,
                              kl_arena_printf(a, "%.*s%.*s", KL_STR_ARG(c->head), KL_STR_ARG(kl_buf_str(&got))), &e));
    else if (!same)
        print_message("%s\n--- expected\n%.*s--- got\n%.*s", c->path.ptr, KL_STR_ARG(c->expect),
                      KL_STR_ARG(kl_buf_str(&got)));
    kl_buf_fini(&got);
    kl_arena_free(a);
    return same;
}

static void test_kernel_case__every_case_gives_what_it_says(void **state)
{
    (void)state;
    const char *dir = KL_TEST_ROOT "/tests/cases/directive";
    kl_arena *a = kl_arena_new();
    kl_error e = {0};
    kl_str *names;
    size_t n, ran = 0, wrong = 0;
    assert_ok(kl_fs_list(&names, &n, a, dir, &e));
    for (size_t i = 0; i < n; i++) {
        if (!kl_str_ends(names[i], KL_S(".case"))) continue;
        wrong += !check_case(dir, names[i]);
        ran++;
    }
    kl_arena_free(a);
    if (wrong) fail_msg("%zu of %zu cases", wrong, ran);
    assert_true(ran >= 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernel_case__every_case_gives_what_it_says)};
    return cmocka_run_group_tests_name("kernel_case", tests, NULL, NULL);
}
