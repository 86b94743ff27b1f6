/* The C library's qsort: what a C programmer without a selection library writes for the K largest values.
 *
 * A whole row of (value, index) pairs is sorted from the largest down and its head copied out.  Rows are sorted one
 * after the other on one thread.  SPDX-License-Identifier: Apache-2.0 */
#include <klineage/plugin.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    float   value;
    int32_t index;
} entry;

typedef struct {
    entry  *row;
    int64_t capacity;
} scratch;

static scratch memory;

int kl_plugin_open(void **state, char *why, size_t why_bytes)
{
    (void)why, (void)why_bytes;
    *state = &memory;
    return 0;
}

int kl_plugin_prepare(void *state, const kl_plugin_call *call, char *why, size_t why_bytes)
{
    scratch *s = state;
    const kl_plugin_tensor *x = &call->tensors[0];
    if (x->dtype != KL_PLUGIN_F32) {
        snprintf(why, why_bytes, "this baseline sorts float32 only");
        return 1;
    }
    free(s->row);
    s->capacity = x->dims[1];
    s->row = malloc((size_t)s->capacity * sizeof *s->row);
    if (!s->row) {
        snprintf(why, why_bytes, "no memory for a row of %lld values", (long long)s->capacity);
        return 1;
    }
    return 0;
}

static int descending(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    return (a->value < b->value) - (a->value > b->value);
}

// Tensors are x, k (a scalar), values, indices.
int kl_plugin_run(void *state, const kl_plugin_call *call)
{
    const scratch *s = state;
    const kl_plugin_tensor *x = &call->tensors[0], *top = &call->tensors[2];
    const int64_t rows = x->dims[0], width = x->dims[1], count = top->dims[1];
    if (width > s->capacity)
        return 1;
    for (int64_t b = 0; b < rows; b++) {
        for (int64_t i = 0; i < width; i++)
            s->row[i] = (entry){((const float *)x->data)[b * width + i], (int32_t)i};
        qsort(s->row, (size_t)width, sizeof *s->row, descending);
        for (int64_t i = 0; i < count; i++) {
            ((float *)top->data)[b * count + i] = s->row[i].value;
            ((int64_t *)call->tensors[3].data)[b * count + i] = s->row[i].index;
        }
    }
    return 0;
}

const char *kl_plugin_describe(void *state)
{
    (void)state;
    return "C library qsort of whole rows";
}
