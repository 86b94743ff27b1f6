/* init_tell.c - see init.h: what is said of a slice, and when it is written.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/init.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "task/task.h"
#include <math.h>
#include <string.h>

enum { INIT_NO = 1, INIT_REFUSED = 10, INIT_PENDING = 11 };
#define AS_FAST 0.99 /* of the library, at the lower end of the interval */

typedef struct {
    int exit_code;
    kl_str why; /* empty: the kernel is good */
} init_end;

static init_end init_ending(const kli_init *x) {
    kl_arena *a = x->context->arena;
    const kl_verdict *v = &x->verdict;
    if (x->library && x->alone.outcome != KL_OUTCOME_PASS)
        return (init_end){kl_verdict_exit_code(&x->alone),
                          kl_arena_printf(a,
                                          "the library's own function does not pass (%s: %.*s), so "
                                          "it is no kernel of this task, or --args maps it wrongly",
                                          kl_outcome_name(x->alone.outcome),
                                          KL_STR_ARG(x->alone.why))};
    if (v->outcome != KL_OUTCOME_PASS)
        return (init_end){kl_verdict_exit_code(v),
                          kl_arena_printf(a, "the slice does not pass: %s: %.*s%s",
                                          kl_outcome_name(v->outcome), KL_STR_ARG(v->why),
                                          v->outcome == KL_OUTCOME_UNSTABLE
                                              ? "; repeat it with --wait-quiet"
                                              : "")};
    if (json_array_size(x->differences))
        return (init_end){INIT_NO,
                          KL_S("it is made of other kinds of instructions than the library")};
    if (x->library && v->n_comparisons && v->comparisons[0].low < AS_FAST)
        return (init_end){INIT_NO,
                          kl_arena_printf(a,
                                          "its speed is not shown to be at least %g of the "
                                          "library's: the interval begins at %.3f",
                                          AS_FAST, v->comparisons[0].low)};
    return (init_end){x->compiled_for.len ? INIT_PENDING : 0, {0}};
}

static void tell_difference(kl_buf *out, const json_t *d) {
    const double mine = kli_json_real_or(d, "kernel", 0),
                 theirs = kli_json_real_or(d, "library", 0);
    kl_buf_printf(out, "  differs   %s: %g in the slice, %g in the library\n",
                  json_string_value(json_object_get(d, "feature")), mine, theirs);
}

static void tell_speed(kl_buf *out, const kli_init *x) {
    const kl_verdict *v = &x->verdict;
    if (!v->n_comparisons || !x->library) return;
    const kl_comparison *c = &v->comparisons[0];
    kl_buf_printf(
        out, "  speed     %.3f of the library's, 95 %% [%.3f, %.3f], %lld ns against %lld ns\n",
        c->ratio, c->low, c->high, (long long)llround(c->candidate_ns),
        (long long)llround(c->baseline_ns));
}

static void tell_init(kl_buf *out, const kli_init *x, const init_end *end) {
    const char *path = x->args->values[KL_OPTION_OUT];
    size_t i;
    json_t *d;
    kl_buf_printf(out, "%.*s\n", KL_STR_ARG(kli_json_text_or(x->made, "launch", KL_S(""))));
    kl_buf_printf(out, "  licence   %.*s\n",
                  KL_STR_ARG(kli_json_text_or(x->made, "licence", KL_S(""))));
    kl_buf_printf(out, "  edits     %lld of %lld lines\n",
                  (long long)kli_json_int_or(x->made, "edits", 0),
                  (long long)kli_json_int_or(x->made, "upstream_lines", 0));
    json_array_foreach(x->differences, i, d) tell_difference(out, d);
    tell_speed(out, x);
    if (end->why.len) {
        kl_buf_printf(out, "not taken: %.*s\n", KL_STR_ARG(end->why));
        kl_buf_add(out, x->verdict.outcome == KL_OUTCOME_PASS ? KL_S("") : x->alone.detail);
        kl_buf_add(out, x->verdict.detail);
        return;
    }
    if (x->compiled_for.len)
        kl_buf_printf(out,
                      "pending: compiled for %.*s; answers and speed are judged where a GPU is\n",
                      KL_STR_ARG(x->compiled_for));
    else if (!x->verdict.n_comparisons || !x->library)
        kl_buf_printf(out, "  speed     not compared with the library's\n");
    if (path)
        kl_buf_printf(out, "%s is the kernel\nnext: klineage gate %.*s %s\n", path,
                      KL_STR_ARG(x->asked.task), path);
}

static json_t *init_json(const kli_init *x, const init_end *end) {
    const char *path = x->args->values[KL_OPTION_OUT];
    const bool judged = x->verdict.n_features > 0 && !x->compiled_for.len;
    return json_pack(
        "{ss si sb so so ss? so so sO so so so sO so? so so}", "schema", "klineage/init", "version",
        1, "ok", !end->why.len, "task", kli_json_str(x->task->name), "function",
        kli_json_str(x->asked.function), "out", end->why.len ? NULL : path, "refused",
        end->why.len ? kli_json_str(end->why) : json_null(), "launch",
        kli_json_str(kli_json_text_or(x->made, "launch", KL_S(""))), "from",
        json_object_get(x->made, "from"), "licence",
        kli_json_str(kli_json_text_or(x->made, "licence", KL_S(""))), "edits",
        json_integer(kli_json_int_or(x->made, "edits", 0)), "upstream_lines",
        json_integer(kli_json_int_or(x->made, "upstream_lines", 0)), "differences", x->differences,
        "verdict", judged ? kl_verdict_json(&x->verdict) : NULL, "compiled_for",
        x->compiled_for.len ? kli_json_str(x->compiled_for) : json_null(), "source",
        kli_json_str(kli_json_text_or(x->made, "source", KL_S(""))));
}

kl_err kli_init_answer(kli_init *x, kli_command_result *out, kl_error *e) {
    const init_end end = init_ending(x);
    const char *path = x->args->values[KL_OPTION_OUT];
    kl_err err = KL_OK;
    if (!end.why.len && path) err = kli_fs_write(path, x->kernel->source, e);
    if (err) return err;
    if (path || end.why.len)
        tell_init(&out->text, x, &end);
    else
        kl_buf_add(&out->text, x->kernel->source);
    if (!path && x->compiled_for.len)
        kli_warn("pending: compiled for %.*s; answers and speed are judged where a GPU is",
                 KL_STR_ARG(x->compiled_for));
    out->exit_code = end.exit_code;
    out->json = init_json(x, &end);
    return KL_OK;
}

void kli_init_refuse(kli_command_result *out, const kli_init *x) {
    kl_buf_printf(&out->text, "not taken: %.*s\n", (int)x->refused.len, x->refused.ptr);
    out->exit_code = INIT_REFUSED;
    out->json =
        json_pack("{ss si sb so so so so}", "schema", "klineage/init", "version", 1, "ok", false,
                  "task", kli_json_str(x->task->name), "function", kli_json_str(x->asked.function),
                  "out", json_null(), "refused", kli_json_str(kl_buf_str(&x->refused)));
}
