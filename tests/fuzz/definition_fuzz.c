/* definition_fuzz.c - any bytes as a definition, its workloads and an expression; a line "---"
 * divides the first two.
 *
 * What must hold besides "no crash": a failure has a code that says whose fault it is and a place
 * in the file, and what was accepted can be used: every tensor has a size, and every small input
 * can be drawn. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "task/task_impl.h"

#define MAX_FILLED_BYTES 65536 /* keeps one input fast */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_failure(kl_err err, const kl_error *e, const char *file) {
    KL_ASSERT(err == KL_EPARSE || err == KL_EINVAL || err == KL_ELIMIT);
    KL_ASSERT(e->code == err && e->message[0] != '\0' && e->detail[0] != '\0');
    KL_ASSERT(strncmp(e->where, file, strlen(file)) == 0);
}

static void use_input(const kl_task *t, const kl_workload *w, int tensor) {
    kl_shape shape;
    kl_error e = {0};
    kl_dist_kind kind = w->dists[tensor].kind;
    KL_ASSERT(kl_task_shape(&shape, t, w, tensor, &e) == KL_OK);
    KL_ASSERT(shape.elems >= 1 && shape.bytes <= KL_MAX_TENSOR_BYTES);
    if (shape.bytes > MAX_FILLED_BYTES) return;
    void *data = malloc(shape.bytes);
    if (data == NULL) kl_oom(shape.bytes);
    const kl_err err = kl_task_fill(data, t, w, tensor, 1, 1, 1, &e);
    KL_ASSERT(err == KL_OK || kind == KL_DIST_FILE || kind == KL_DIST_CUSTOM);
    free(data);
}

static void use_task(kl_arena *a, const kl_task *t) {
    for (int i = 0; i < t->n_workloads && i < 4; i++) {
        double flops, bytes;
        kl_workload *other = NULL;
        kl_error e = {0};
        KL_ASSERT(kl_task_work(&flops, &bytes, t, &t->workloads[i], &e) == KL_OK && flops >= 0 &&
                  bytes > 0);
        for (int k = 0; k < t->n_inputs; k++) use_input(t, &t->workloads[i], k);
        const kl_err err = kl_workload_with_axes(&other, a, t, &t->workloads[i], t->name, &e);
        KL_ASSERT(err == KL_OK || e.code == err);
    }
}

static void try_expression(kl_str text) {
    kl_error e = {0};
    int64_t value;
    if (kl_expr_eval(&value, text, NULL, NULL, &e) != KL_OK)
        check_failure(e.code, &e, "expression");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_arena *a = kl_arena_new();
    kl_task *t = KL_NEW(a, kl_task);
    kl_error e = {0};
    const char *text = size > 0 ? (const char *)data : "";
    const char *divider = size > 0 ? memmem(text, size, "\n---\n", 5) : NULL;
    const size_t split = divider == NULL ? size : (size_t)(divider - text);
    const kl_str definition = {text, split};
    const kl_str workloads = {text + (divider == NULL ? size : split + 5),
                              divider == NULL ? 0 : size - split - 5};
    try_expression(definition);
    kl_err err = kli_definition_parse(t, a, definition, KL_S("d.json"), &e);
    if (err != KL_OK)
        check_failure(err, &e, "d.json");
    else if ((err = kli_workloads_parse(t, a, workloads, KL_S("w.jsonl"), &e)) != KL_OK)
        check_failure(err, &e, "w.jsonl");
    else
        use_task(a, t);
    kl_arena_free(a);
    return 0;
}
