/* plan.c - a plan as text and as JSON.  SPDX-License-Identifier: Apache-2.0 */
#include "command/plan.h"
#include "base/json.h"

static void plan_value_text(kl_buf *text, const kl_plan *p, const kl_value *v) {
    switch ((kl_value_kind)v->kind) {
    case KL_VALUE_TENSOR:
        kl_buf_printf(text, "%s", p->tensors[v->index].name);
        break;
    case KL_VALUE_SCALAR:
        kl_buf_printf(text, "%s=%g", p->tensors[v->index].name, v->f);
        break;
    case KL_VALUE_BUFFER:
        KL_ASSERT(v->index < p->n_buffers);
        kl_buf_printf(text, "%s", p->buffers[v->index].name);
        break;
    case KL_VALUE_TENSORMAP:
        kl_buf_printf(text, "tensormap %u", v->index);
        break;
    case KL_VALUE_I32:
        kl_buf_printf(text, "%lld", (long long)v->i);
        break;
    case KL_VALUE_I64:
        kl_buf_printf(text, "i64(%lld)", (long long)v->i);
        break;
    case KL_VALUE_F32:
        kl_buf_printf(text, "f32(%g)", v->f);
        break;
    case KL_VALUE_F64:
        kl_buf_printf(text, "f64(%g)", v->f);
        break;
    case KL_VALUE_LOCAL:
        kl_buf_printf(text, "local(%lld)", (long long)v->i);
        break;
    case KL_VALUE_NONE:
        kl_buf_printf(text, "none");
        break;
    }
}

static json_t *plan_triple(const uint32_t v[3]) {
    return json_pack("[I, I, I]", (json_int_t)v[0], (json_int_t)v[1], (json_int_t)v[2]);
}

static json_t *plan_launch_json(kl_buf *text, const kl_plan *p, const kl_plan_launch *l) {
    const kl_value *values = kli_launch_args(p, l);
    json_t *args = json_array();
    kl_buf_printf(text, "  %s grid %u,%u,%u block %u,%u,%u", l->entry, l->grid[0], l->grid[1],
                  l->grid[2], l->block[0], l->block[1], l->block[2]);
    if (l->smem) kl_buf_printf(text, " smem %u", l->smem);
    if (l->warps) kl_buf_printf(text, " warps %u stages %u", l->warps, l->stages);
    kl_buf_printf(text, " args(");
    for (uint32_t i = 0; i < l->n_args; i++) {
        kl_buf one = {0};
        plan_value_text(&one, p, &values[i]);
        kl_buf_printf(text, "%s%s", i ? ", " : "", one.ptr);
        json_array_append_new(args, kli_json_str(kl_buf_str(&one)));
        kl_buf_fini(&one);
    }
    kl_buf_printf(text, ")\n");
    return json_pack("{ss so so so so so}", "entry", l->entry, "grid", plan_triple(l->grid),
                     "block", plan_triple(l->block), "cluster", plan_triple(l->cluster), "smem",
                     json_integer(l->smem), "args", args);
}

json_t *kli_plan_json(kl_buf *text, const kl_plan *p, kl_str workload) {
    json_t *launches = json_array(), *buffers = json_array();
    kl_buf_printf(text, "plan at %.*s\n", KL_STR_ARG(workload));
    for (uint32_t i = 0; i < p->n_launches; i++)
        json_array_append_new(launches, plan_launch_json(text, p, &p->launches[i]));
    for (uint32_t i = 0; i < p->n_buffers; i++) {
        kl_buf_printf(text, "  scratch %s, %llu bytes\n", p->buffers[i].name,
                      (unsigned long long)p->buffers[i].bytes);
        json_array_append_new(buffers, json_pack("{s:s, s:I}", "name", p->buffers[i].name, "bytes",
                                                 (json_int_t)p->buffers[i].bytes));
    }
    return json_pack("{so so so}", "workload", kli_json_str(workload), "launches", launches,
                     "buffers", buffers);
}
