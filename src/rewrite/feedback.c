/* feedback.c - what a model is told of a verdict.
 *
 * What it can act on, first things first, and nothing of the machine: no paths, no seeds, no
 * hashes.  At most MAX_FEEDBACK bytes.  SPDX-License-Identifier: Apache-2.0 */
#include "rewrite_impl.h"

#include <ctype.h>
#include <string.h>

enum { MAX_FEEDBACK = 4096, MAX_DETAIL = 2600, MAX_FAILED = 4 };

_Static_assert(MAX_DETAIL + 64 < MAX_FEEDBACK, "a detail leaves room for what stands before it");

static bool is_path_char(char c) { return isalnum((unsigned char)c) || (c && strchr("_-.+@", c)); }

/* Length of an absolute path's folders at `s`: "/tmp/x/" of "/tmp/x/kernel.c".  A division has
 * something on its left. */
static size_t folders_at(kl_str s, size_t at) {
    const char before = at ? s.ptr[at - 1] : ' ';
    if (s.ptr[at] != '/' || is_path_char(before) || before == ')' || before == ']' || before == '/')
        return 0;
    size_t last = 0;
    for (size_t i = at + 1; i < s.len && (is_path_char(s.ptr[i]) || s.ptr[i] == '/'); i++)
        if (s.ptr[i] == '/' && i > at + 1 && s.ptr[i - 1] != '/') last = i + 1;
    return last ? last - at : 0;
}

/* Printable, without folders, and cut at a line. */
static void feedback_add_plain(kl_buf *b, kl_str s, size_t most) {
    const size_t begin = b->len;
    for (size_t i = 0; i < s.len; i++) {
        i += folders_at(s, i);
        if (i >= s.len) break;
        const char c = s.ptr[i];
        const bool plain = (unsigned char)c >= 0x20 ? c != 0x7f : c == '\n' || c == '\t';
        if (b->len - begin >= most) {
            kl_buf_add(b, KL_S("\n[cut]"));
            break;
        }
        kl_buf_add(b, (kl_str){plain ? &c : " ", 1});
    }
    if (b->len > begin && b->ptr[b->len - 1] != '\n') kl_buf_add(b, KL_S("\n"));
}

static void add_failed(kl_buf *b, const kl_verdict *v) {
    int n = 0;
    for (int i = 0; i < v->n_checks && n < MAX_FAILED; i++) {
        const kl_check_result *r = &v->checks[i];
        if (r->ok) continue;
        n++;
        kl_buf_printf(b, "output %.*s, shape %.*s", KL_STR_ARG(kli_cut(r->output, 64)),
                      KL_STR_ARG(kli_cut(r->workload, 64)));
        if (r->scale > 0 && (r->scale < 1 || r->scale > 1))
            kl_buf_printf(b, ", inputs scaled by %g", r->scale);
        kl_buf_printf(b, ": relative RMS error %.3g of %.3g allowed", r->rms_error, r->budget);
        if (r->first_bad >= 0) /* of a hidden shape nobody says how many or where */
            kl_buf_printf(b,
                          ", %lld elements outside their bound; first at flat index %lld: got "
                          "%.9g, expected %.9g",
                          (long long)r->bad, (long long)r->first_bad, r->got, r->expected);
        kl_buf_printf(b, "\n");
    }
}

static void add_time(kl_buf *b, const kl_verdict *v) {
    if (!v->median_ns) return;
    kl_buf_printf(b, "time: %.4g us", (double)v->median_ns * 1e-3);
    if (v->roofline_ns)
        kl_buf_printf(b, " (the device cannot do it below %.4g us)", (double)v->roofline_ns * 1e-3);
    kl_buf_printf(b, "\n");
    for (int i = 0; i < v->n_comparisons && i < 4; i++) {
        const kl_comparison *m = &v->comparisons[i];
        kl_buf_printf(b, "speed relative to %.*s: %.4g [%.4g, %.4g], %s\n",
                      KL_STR_ARG(kli_cut(m->baseline, 64)), m->ratio, m->low, m->high,
                      kl_decision_name(m->call));
    }
}

static void add_resources(kl_buf *b, const kl_verdict *v) {
    for (int i = 0; i < v->n_resources && i < 8; i++) {
        const kl_resources *r = &v->resources[i];
        if (!r->registers && !r->static_smem && !r->local_bytes) continue;
        kl_buf_printf(b,
                      "launch %d: %u registers, %u bytes of static shared memory, %u bytes spilled "
                      "or local\n",
                      i + 1, r->registers, r->static_smem, r->local_bytes);
    }
    for (int i = 0; i < v->n_features; i++)
        if (kl_str_eq(v->features[i].name, KL_S("spills")) && v->features[i].value > 0)
            kl_buf_printf(b, "stores to the stack, in all of the compiled code: %.0f\n",
                          v->features[i].value);
}

kl_str kl_rewrite_feedback(kl_arena *a, const kl_verdict *v) {
    kl_buf b = {0};
    kl_buf_printf(&b, "outcome: %s", kl_outcome_name(v->outcome));
    if (v->outcome != KL_OUTCOME_PASS) kl_buf_printf(&b, " (at stage %s)", kl_stage_name(v->stage));
    kl_buf_printf(&b, "\n");
    if (v->why.len) {
        kl_buf_printf(&b, "why: ");
        feedback_add_plain(&b, v->why, 400);
    }
    add_failed(&b, v);
    add_time(&b, v);
    add_resources(&b, v);
    if (v->detail.len)
        feedback_add_plain(&b, v->detail,
                           b.len + MAX_DETAIL < MAX_FEEDBACK ? MAX_DETAIL
                           : MAX_FEEDBACK > b.len + 64       ? MAX_FEEDBACK - 64 - b.len
                                                             : 0);
    const kl_str text = kl_arena_copy(a, kli_cut(kl_buf_str(&b), MAX_FEEDBACK));
    kl_buf_fini(&b);
    return text;
}
