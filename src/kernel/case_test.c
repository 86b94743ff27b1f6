/* case_test.c - runs every tests/cases/directive/NAME.case: a kernel, and the exact error or plan
 * that it must give.
 *
 *   file: k.cu                      decides the surface; default k.cu
 *   axes: 128 256                   M and N of the small task of fixture.h
 *   params: BM=64                   overrides, blank-separated
 *   oracle: yes
 *   limits: sms=132 smem_max=232448 max_threads=1024 cores=2 memory=1000000
 *   show: plan defines              what to print on success; default plan
 *   --- kernel
 *
 * The rest of the format is that of kit/case.h.  SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "kit/case.h"

static kl_fixture fixture;

/* ---- reading a case ---------------------------------------------------------------------- */

static void read_axes(kl_str words) {
    fixture_init(&fixture, 128, 256);
    for (int i = 0; words.len; i++)
        fixture.workload.axes[i] = (int64_t)kit_number(kit_word(&words), 0);
}

static kl_kernel_opts options_of(const kit_case *c) {
    kl_str words = kit_value(c, "params", "");
    const char **params = KL_ARRAY(arena, const char *, KL_MAX_PARAMS + 1);
    for (int i = 0; words.len; i++) params[i] = kl_arena_copy(arena, kit_word(&words)).ptr;
    return (kl_kernel_opts){.oracle = kit_value(c, "oracle", "").len > 0, .params = params};
}

static kl_device_limits limits_of(const kit_case *c) {
    kl_str words = kit_value(c, "limits", "");
#define LIMIT(name) .name = (int64_t)kit_number(kit_field(words, #name), 0)
    return (kl_device_limits){LIMIT(sms), LIMIT(cores), LIMIT(smem_max), LIMIT(max_threads),
                              LIMIT(memory)};
#undef LIMIT
}

/* ---- printing what came out -------------------------------------------------------------- */

static void print_list(kl_buf *out, const char *label, const uint64_t *values, uint32_t n) {
    kl_buf_printf(out, " %s(", label);
    for (uint32_t i = 0; i < n; i++)
        kl_buf_printf(out, "%s%llu", i ? ", " : "", (unsigned long long)values[i]);
    kl_buf_printf(out, ")");
}

static void print_sizes(kl_buf *out, const char *label, const uint32_t *values, uint32_t n) {
    uint64_t wide[5] = {0};
    for (uint32_t i = 0; i < n; i++) wide[i] = values[i];
    print_list(out, label, wide, n);
}

static void print_value(kl_buf *out, const kl_plan *p, const kl_value *v) {
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

static void print_tensors(kl_buf *out, const kl_plan *p) {
    static const char *const roles[] = {"input", "output", "mutable", "scalar"};
    for (uint32_t i = 0; i < p->n_tensors; i++) {
        const kl_plan_tensor *t = &p->tensors[i];
        kl_buf_printf(out, "tensor %s %s %llu bytes %s\n", t->name,
                      kl_dtype_name((kl_dtype)t->dtype), (unsigned long long)t->bytes,
                      roles[t->role]);
    }
}

static void print_plan(kl_buf *out, const kl_plan *p) {
    if (p->threads != 1) kl_buf_printf(out, "threads %u\n", p->threads);
    for (uint32_t i = 0; i < p->n_buffers; i++)
        kl_buf_printf(out, "buffer %s %s %llu bytes%s\n", p->buffers[i].name,
                      kl_dtype_name((kl_dtype)p->buffers[i].dtype),
                      (unsigned long long)p->buffers[i].bytes, p->buffers[i].zero ? " zero" : "");
    for (uint32_t i = 0; i < p->n_tensormaps; i++) {
        const kl_plan_tensormap *m = &p->tensormaps[i];
        kl_buf_printf(out, "tensormap %u of %s %u %s", i, m->of_buffer ? "buffer" : "tensor",
                      m->index, kl_dtype_name((kl_dtype)m->dtype));
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
        const kl_value *args = kli_launch_args(p, l);
        for (uint32_t j = 0; j < l->n_args; j++) print_value(out, p, &args[j]);
    }
}

static void print_defines(kl_buf *out, const kl_kernel *k) {
    const char **flags = kli_kernel_defines(arena, k, &fixture.task, &fixture.workload);
    for (; *flags; flags++) kl_buf_printf(out, "%s\n", *flags);
}

/* ---- running ----------------------------------------------------------------------------- */

static void print_failure(kl_buf *out, kl_err err) {
    kl_buf_printf(out, "%s\n",
                  err == KL_EPARSE   ? "EPARSE"
                  : err == KL_EINVAL ? "EINVAL"
                  : err == KL_ELIMIT ? "ELIMIT"
                                     : "other");
    kl_error_render(&e, out);
}

static void print_success(kl_buf *out, const kl_kernel *k, const kl_plan *plan, const char *show) {
    if (strstr(show, "hash")) kl_buf_printf(out, "hash %s\n", k->hash);
    if (strstr(show, "flags"))
        for (int i = 0; i < k->n_flags; i++)
            kl_buf_printf(out, "flag %.*s\n", KL_STR_ARG(k->flags[i]));
    if (strstr(show, "tensors")) print_tensors(out, plan);
    if (strstr(show, "plan")) print_plan(out, plan);
    if (strstr(show, "defines")) print_defines(out, k);
}

static void run_case(kl_buf *out, const kit_case *c) {
    kl_kernel *k;
    kl_plan *plan = KL_NEW(arena, kl_plan);
    kl_kernel_opts options = options_of(c);
    kl_device_limits limits = limits_of(c);
    read_axes(kit_value(c, "axes", "128 256"));
    kl_err err =
        kl_kernel_parse(&k, arena, c->input, kit_value(c, "file", "k.cu"), NULL, &options, &e);
    if (!err) err = kli_kernel_plan(plan, k, &fixture.task, &fixture.workload, &limits, &e);
    if (err)
        print_failure(out, err);
    else
        print_success(out, k, plan, kl_arena_copy(arena, kit_value(c, "show", "plan")).ptr);
}

static void test_kernel_case__every_case_gives_what_it_says(void **state) {
    (void)state;
    kit_run_cases(KL_TEST_ROOT "/tests/cases/directive", 40, run_case);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_case__every_case_gives_what_it_says)};
    return cmocka_run_group_tests_name("kernel_case", tests, NULL, NULL);
}
