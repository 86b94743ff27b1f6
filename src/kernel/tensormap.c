/* tensormap.c - TMA descriptors: the driver's rules for tiled tensor maps, checked before the
 * driver is asked.
 *
 * The driver answers a bad descriptor with one word, invalid value; here each rule has its own
 * message.  One rule is ours: a descriptor may not reach past the tensor it describes, because the
 * hardware checks against the descriptor only. Descriptors for im2col are not here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include <string.h>

#define MAX_RANK 5
#define MAX_BOX 256                   /* elements in one dimension of a box */
#define MAX_DIM ((int64_t)1 << 32)    /* elements in one dimension of the view */
#define MAX_STRIDE ((int64_t)1 << 40) /* bytes, exclusive */

/* What is described: a tensor's or buffer's shape, outermost first. */
typedef struct {
    const int64_t *dims;
    int ndim;
    uint64_t bytes;
} target;

static kl_err find_target(kli_planner *p, const kl_tensormap *m, kl_plan_tensormap *out,
                          target *about) {
    size_t offset = (size_t)(m->tensor.ptr - p->kernel->source.ptr);
    int tensor = kl_task_tensor(p->task, m->tensor),
        buffer = kli_buffer_index(p->kernel, m->tensor);
    if (tensor >= 0 && p->task->tensors[tensor].is_scalar)
        return kli_plan_fail(p, KL_EINVAL, offset,
                             "'%.*s' is a scalar; a tensormap describes a tensor or a buffer",
                             KL_STR_ARG(m->tensor));
    if (tensor >= 0) {
        const kl_plan_tensor *t = &p->plan->tensors[tensor];
        *about = (target){t->dims, t->ndim, t->bytes};
        out->index = (uint32_t)tensor;
        out->dtype = t->dtype;
        return KL_OK;
    }
    if (buffer >= 0) {
        const kl_buffer *b = &p->kernel->buffers[buffer];
        *about = (target){p->buffer_dims[buffer], b->ndim, p->plan->buffers[buffer].bytes};
        out->of_buffer = 1;
        out->index = (uint32_t)buffer;
        out->dtype = b->dtype;
        return KL_OK;
    }
    kli_plan_fail(p, KL_EINVAL, offset, "unknown tensor '%s'", kli_show(m->tensor).text);
    char list[360];
    kli_list_pointers(p, list, sizeof list);
    return kl_hint(p->error, "a tensormap describes a tensor or a buffer; there are %s", list);
}

/* One-value options with few legal values; 0 when absent. */
static kl_err read_choice(kli_planner *p, const kl_tensormap *m, kl_tensormap_option which,
                          const char *what, const uint32_t legal[4], const char *legal_text,
                          uint32_t *out) {
    int64_t value = 0;
    *out = 0;
    if (!m->n_options[which]) return KL_OK;
    kl_err err = kli_eval(p, &value, &m->options[which][0]);
    if (err) return err;
    for (int i = 0; i < 4; i++)
        if (value == (int64_t)legal[i]) return *out = legal[i], KL_OK;
    return kli_plan_fail(p, KL_EINVAL, m->options[which][0].offset,
                         "%s is %lld; it must be one of %s", what, (long long)value, legal_text);
}

static kl_err read_choices(kli_planner *p, const kl_tensormap *m, kl_plan_tensormap *out) {
    static const uint32_t swizzles[4] = {0, 32, 64, 128}, interleaves[4] = {0, 16, 32, 32},
                          promotions[4] = {0, 64, 128, 256};
    if (read_choice(p, m, KL_OPT_SWIZZLE, "swizzle", swizzles, "0 32 64 128", &out->swizzle) ||
        read_choice(p, m, KL_OPT_INTERLEAVE, "interleave", interleaves, "0 16 32",
                    &out->interleave) ||
        read_choice(p, m, KL_OPT_L2, "l2", promotions, "0 64 128 256", &out->l2))
        return p->error->code;
    if (out->interleave == 0) return KL_OK;
    size_t offset = m->options[KL_OPT_INTERLEAVE][0].offset;
    if (out->rank < 3)
        return kli_plan_fail(p, KL_EINVAL, offset,
                             "interleave needs a view of 3 dimensions or more, here %u", out->rank);
    if (out->interleave == 32 && out->swizzle != 32)
        return kli_plan_fail(p, KL_EINVAL, offset, "interleave(32) goes with swizzle(32) only");
    return KL_OK;
}

/* The default view: the shape collapsed to as many dimensions as the box has, the outermost ones
 * multiplied. */
static kl_err default_dims(kli_planner *p, const kl_tensormap *m, const target *about,
                           kl_plan_tensormap *out) {
    int rank = (int)out->rank, ndim = about->ndim;
    if (rank > ndim && !(rank == 1 && ndim == 0)) {
        kl_err err = kli_plan_fail(p, KL_EINVAL, m->options[KL_OPT_BOX][0].offset,
                                   "a box of %d dimensions over '%.*s', which has %d", rank,
                                   KL_STR_ARG(m->tensor), ndim);
        kl_hint(p->error, "give the view with dims(...), innermost first");
        return err;
    }
    for (int d = 0; d < rank; d++) out->dims[d] = 1;
    for (int i = 0; i < ndim;
         i++) { /* i counts from the innermost; products fit, since the tensor's bytes do */
        int d = i < rank ? i : rank - 1;
        out->dims[d] *= (uint64_t)about->dims[ndim - 1 - i];
    }
    for (int d = 0; d < rank; d++)
        if (out->dims[d] > (uint64_t)MAX_DIM)
            return kli_plan_fail(
                p, KL_EINVAL, m->offset,
                "dimension %d of the view has %llu elements; at most 2^32 are possible", d + 1,
                (unsigned long long)out->dims[d]);
    return KL_OK;
}

static kl_err plan_dims(kli_planner *p, const kl_tensormap *m, const target *about,
                        kl_plan_tensormap *out) {
    int n = m->n_options[KL_OPT_DIMS];
    if (n == 0) return default_dims(p, m, about, out);
    if (n != (int)out->rank)
        return kli_plan_fail(p, KL_EINVAL, m->options[KL_OPT_DIMS][0].offset,
                             "dims has %d dimension%s, box has %u", n, n == 1 ? "" : "s",
                             out->rank);
    for (int d = 0; d < n; d++) {
        int64_t dim = 0;
        kl_err err =
            kli_eval_range(p, &dim, &m->options[KL_OPT_DIMS][d], "this dimension", 1, MAX_DIM);
        if (err) return err;
        out->dims[d] = (uint64_t)dim;
    }
    return KL_OK;
}

static kl_err check_stride(kli_planner *p, size_t offset, int d, int64_t bytes, int64_t granule) {
    if (bytes % granule == 0 && bytes < MAX_STRIDE) return KL_OK;
    kl_err err = kli_plan_fail(
        p, KL_EINVAL, offset,
        "stride of dimension %d is %lld bytes; it must be a multiple of %lld and below 2^40", d + 1,
        (long long)bytes, (long long)granule);
    kl_hint(p->error, "TMA needs rows that begin on 16-byte borders: refuse other shapes with `//! "
                      "require`, or pad into a buffer");
    return err;
}

/* strides(...) counts elements of dimensions 2.., so it has one value less than the view has
 * dimensions. */
static kl_err plan_strides(kli_planner *p, const kl_tensormap *m, kl_plan_tensormap *out) {
    int64_t width = (int64_t)kl_dtype_bytes(out->dtype), granule = out->interleave == 32 ? 32 : 16;
    int64_t stride = width;
    int n = m->n_options[KL_OPT_STRIDES];
    if (n && n != (int)out->rank - 1)
        return kli_plan_fail(p, KL_EINVAL, m->options[KL_OPT_STRIDES][0].offset,
                             "strides has %d value%s; a view of %u dimensions needs %u, in "
                             "elements, the innermost being 1",
                             n, n == 1 ? "" : "s", out->rank, out->rank - 1);
    for (int d = 1; d < (int)out->rank; d++) {
        size_t offset = n ? m->options[KL_OPT_STRIDES][d - 1].offset : m->offset;
        if (n) {
            kl_err err = kli_eval_range(p, &stride, &m->options[KL_OPT_STRIDES][d - 1],
                                        "this stride", 1, MAX_STRIDE);
            if (err) return err;
            stride *= width;
        } else if (__builtin_mul_overflow(stride, (int64_t)out->dims[d - 1], &stride)) {
            return kli_plan_fail(p, KL_EINVAL, offset,
                                 "the stride of dimension %d overflows 64 bits", d + 1);
        }
        kl_err err = check_stride(p, offset, d, stride, granule);
        if (err) return err;
        KL_ASSERT(stride > 0 && stride < MAX_STRIDE);
        out->strides[d] = (uint64_t)stride;
    }
    return KL_OK;
}

unsigned __int128 kli_tensormap_end(const kl_plan_tensormap *m) {
    KL_ASSERT(m->rank >= 1 && m->rank <= MAX_RANK);
    unsigned __int128 end = (unsigned __int128)m->dims[0] * kl_dtype_bytes(m->dtype);
    for (uint32_t d = 1; d < m->rank; d++)
        end += (unsigned __int128)(m->dims[d] - 1) * m->strides[d];
    return end;
}

/* Last byte of the view <= last byte of the tensor. */
static kl_err check_reach(kli_planner *p, const kl_tensormap *m, const target *about,
                          const kl_plan_tensormap *out) {
    const unsigned __int128 reach = kli_tensormap_end(out);
    if (reach <= about->bytes) return KL_OK;
    kli_plan_fail(p, KL_EINVAL, m->offset, "tensormap '%.*s' reaches past the end of '%.*s'",
                  KL_STR_ARG(m->name), KL_STR_ARG(m->tensor));
    return kl_hint(p->error, "'%.*s' has %llu bytes; the view's dims and strides end at %llu",
                   KL_STR_ARG(m->tensor), (unsigned long long)about->bytes,
                   reach > UINT64_MAX ? (unsigned long long)UINT64_MAX : (unsigned long long)reach);
}

static kl_err plan_box(kli_planner *p, const kl_tensormap *m, kl_plan_tensormap *out) {
    for (int d = 0; d < (int)out->rank; d++) {
        int64_t size = 0;
        kl_err err = kli_eval_range(p, &size, &m->options[KL_OPT_BOX][d], "this side of the box", 1,
                                    MAX_BOX);
        if (err) return err;
        out->box[d] = (uint32_t)size;
    }
    size_t offset = m->options[KL_OPT_BOX][0].offset;
    uint32_t inner = out->box[0] * (uint32_t)kl_dtype_bytes(out->dtype);
    if (out->interleave == 0 && inner % 16 != 0)
        return kli_plan_fail(p, KL_EINVAL, offset,
                             "the box is %u bytes wide; TMA moves multiples of 16", inner);
    if (out->interleave == 0 && out->swizzle && inner > out->swizzle) {
        kl_err err = kli_plan_fail(p, KL_EINVAL, offset,
                                   "the box is %u bytes wide, more than the swizzle of %u", inner,
                                   out->swizzle);
        kl_hint(p->error, "%u elements of %s fit; the box is given innermost first",
                out->swizzle / (unsigned)kl_dtype_bytes(out->dtype), kl_dtype_name(out->dtype));
        return err;
    }
    return KL_OK;
}

static kl_err plan_tensormap(kli_planner *p, const kl_tensormap *m, kl_plan_tensormap *out) {
    target about = {0};
    out->rank = (uint32_t)m->n_options[KL_OPT_BOX];
    KL_ASSERT(out->rank >= 1 && out->rank <= MAX_RANK);
    const bool refused = find_target(p, m, out, &about) || plan_dims(p, m, &about, out) ||
                         read_choices(p, m, out) || plan_strides(p, m, out) ||
                         check_reach(p, m, &about, out) || plan_box(p, m, out);
    return refused ? p->error->code : KL_OK;
}

kl_err kli_plan_tensormaps(kli_planner *p) {
    const kl_kernel *k = p->kernel;
    kl_err err = KL_OK;
    p->plan->n_tensormaps = (uint32_t)k->n_tensormaps;
    for (int i = 0; i < k->n_tensormaps && !err; i++)
        err = plan_tensormap(p, &k->tensormaps[i], &p->plan->tensormaps[i]);
    return err;
}
