/* surface.c - a sixth surface for the conformance test: C whose directives begin with ";;!".
 *
 * It is small and complete: kernels of it are translated, compiled, inspected and judged like any
 * other.  Its compiler decides what those of other languages do: it has parameters in an order of
 * its own, a hidden buffer, an entry with another name, and code for each class of arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#include "surface/c/c.h"

#include <string.h>

static bool is_directive(kl_str line) { return kl_str_starts(kl_str_trim(line), KL_S(";;!")); }

/* Directives become empty lines, so that the compiler's messages have the lines of the file. */
static void add_in_c(kl_buf *b, kl_str source) {
    while (source.len) {
        const char *newline = memchr(source.ptr, '\n', source.len);
        const size_t n = newline ? (size_t)(newline - source.ptr) + 1 : source.len;
        const kl_str line = {source.ptr, n};
        kl_buf_add(b, is_directive(line) ? KL_S("\n") : line);
        source = (kl_str){source.ptr + n, source.len - n};
    }
}

static void add_list(kl_buf *b, int first, int step, int n, const char *type) {
    for (int i = 0; i < n; i++) kl_buf_printf(b, "%s%sa%d", i ? ", " : "", type, first + i * step);
}

/* f(a0, a1, a2) is called by f_entry(hidden, a2, a1, a0); pointers and integers are one word each.
 */
static void add_entry(kl_buf *b, const kl_launch *l) {
    kl_buf_printf(b, "\nvoid %.*s_entry(char *hidden, ", KL_STR_ARG(l->entry));
    add_list(b, l->n_args - 1, -1, l->n_args, "unsigned long ");
    kl_buf_add(b, KL_S(") {\n    for (int i = 0; i < 64; i++) hidden[i] = 1;\n    ((void (*)("));
    for (int i = 0; i < l->n_args; i++) kl_buf_printf(b, "%sunsigned long", i ? ", " : "");
    kl_buf_printf(b, "))(void *)%.*s)(", KL_STR_ARG(l->entry));
    add_list(b, 0, 1, l->n_args, "");
    kl_buf_add(b, KL_S(");\n}\n"));
}

static void add_completion(kl_buf *b, int of, const kl_launch *l) {
    kl_buf_printf(b,
                  "%s{\"of\": %d, \"entry\": \"%.*s_entry\", \"args\": [{\"buffer\": \"hidden\"}",
                  of ? ", " : "", of, KL_STR_ARG(l->entry));
    for (int i = l->n_args - 1; i >= 0; i--) kl_buf_printf(b, ", {\"arg\": %d}", i);
    kl_buf_add(b, KL_S("]}"));
}

static kl_str taken(kl_arena *a, kl_buf *b) {
    const kl_str text = kl_arena_copy(a, kl_buf_str(b));
    kl_buf_fini(b);
    return text;
}

static kl_err plain_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e) {
    kl_kernel *in_c = KL_NEW(job->arena, kl_kernel);
    kl_compile_job c_job = *job;
    kl_buf source = {0}, completion = {0};
    kl_buf_printf(&source, "#define PLAIN_LAST_16 %d\n#line 1\n",
                  kl_str_ends(job->classes, KL_S("/16")));
    add_in_c(&source, job->kernel->source);
    kl_buf_add(&completion, KL_S("{\"version\": 1, \"buffers\": [{\"name\": \"hidden\", \"bytes\": "
                                 "64}], \"launches\": ["));
    for (int i = 0; i < job->kernel->n_launches; i++) {
        add_entry(&source, &job->kernel->launches[i]);
        add_completion(&completion, i, &job->kernel->launches[i]);
    }
    kl_buf_add(&completion, KL_S("]}"));
    *in_c = *job->kernel;
    in_c->source = taken(job->arena, &source);
    c_job.kernel = in_c;
    kl_err err = kli_c_compile(out, &c_job, e);
    out->completion = taken(job->arena, &completion);
    return err;
}

static kl_str plain_specialize(kl_arena *a, const kl_kernel *k, const kl_plan *plan) {
    (void)k;
    return kli_plan_classes(a, plan);
}

static const char *const plain_types[KL_DTYPE_END] = {[KL_F64] = "double",
                                                      [KL_F32] = "float",
                                                      [KL_F16] = "_Float16",
                                                      [KL_BF16] = "unsigned short",
                                                      [KL_F8E4M3] = "unsigned char",
                                                      [KL_F8E5M2] = "unsigned char",
                                                      [KL_I64] = "long",
                                                      [KL_I32] = "int",
                                                      [KL_I16] = "short",
                                                      [KL_I8] = "signed char",
                                                      [KL_U8] = "unsigned char",
                                                      [KL_BOOL] = "unsigned char"};

const kl_surface kli_surface_plain = {
    .name = "plain",
    .families = KL_FAMILY_CPU,
    .on = KL_ON_CPU,
    .assurance = 'B',
    .suffix = ".plain",
    .comment = ";;!",
    .naive = "naive.plain",
    .oracle = "oracle.plain",
    .directives = (const char *const[]){"threads", NULL},
    .clauses = (const char *const[]){"args", NULL},
    .required = (const char *const[]){NULL},
    .example = "args(A, B, C, M, N)",
    .flags = (const char *const[]){"-O1", NULL},
    .types = plain_types,
    .fences = (const char *const[]){"plain", NULL},
    .note = "- A directive begins with two semicolons.\n",
    .backends = (const char *const[]){"cpu", NULL},
    .specialize = plain_specialize,
    .compile = plain_compile,
    .inspect = kli_c_inspect,
};
