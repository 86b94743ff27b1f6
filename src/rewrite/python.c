/* python.c - the numbers of a Python kernel, read by Python's own parser.
 *
 * python.py runs in a process of its own, confined like a compiler: the text is a stranger's, and
 * deep nesting can end an interpreter.  What it prints is data: facts, one a line.  Where the text
 * does not parse, or there is no python3, directives alone are known of the kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/isolation.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/proc.h"
#include "source_impl.h"

extern const unsigned char kl_rewrite_python[];
extern const size_t kl_rewrite_python_bytes;

enum {
    CPU_SECONDS = 5, /* a kernel of the largest size takes less than one */
    MEMORY_BYTES = 512 << 20,
    MAX_FACTS_BYTES = 16 << 20 /* some times the largest source */
};
/* One elsewhere may lie where a confined process does not look. */
#define SYSTEM_PYTHON "/usr/bin/python3"
#define WALL_NS 60000000000ll /* beside other work; the processor's time is the limit */

static void set_number(kli_source *out, kl_str name, double value) {
    for (int i = 0; i < KLI_TRAIT_COUNT; i++)
        if (kl_str_eq(name, kl_str_of(kli_trait_name((kli_trait)i)))) out->count[i] = value;
    if (kl_str_eq(name, KL_S("empty_loops"))) out->empty_loops = value;
}

static double python_number_of(kl_str digits) {
    double value = 0;
    for (size_t i = 0; i < digits.len && digits.ptr[i] >= '0' && digits.ptr[i] <= '9'; i++)
        value = value * 10 + (digits.ptr[i] - '0');
    return value;
}

static void take_fact(kli_source *out, kl_str line, const kl_surface *surface) {
    kl_str rest = line, kind;
    if (!kli_next_word(&kind, &rest)) return;
    rest = kl_str_trim(rest);
    if (kl_str_eq(kind, KL_S("name")) || kl_str_eq(kind, KL_S("call")))
        kli_count_name(out, rest, kind.ptr[0] == 'c', true, surface);
    else if (kl_str_eq(kind, KL_S("number")))
        kli_count_number(out, rest);
    else if (kl_str_eq(kind, KL_S("asm")))
        kli_count_asm(out, rest);
    else
        set_number(out, kind, python_number_of(rest));
}

static const char *const *python_arguments(kl_arena *a, const kl_kernel *k) {
    const char **argv = KL_ARRAY(a, const char *, k->n_launches + 6);
    const kl_str script = {(const char *)kl_rewrite_python, kl_rewrite_python_bytes};
    int n = 0;
    argv[n++] = kli_fs_exists(SYSTEM_PYTHON) ? SYSTEM_PYTHON : "python3";
    argv[n++] = "-IS"; /* no variable and no file of anybody's changes what it does */
    argv[n++] = "-c";
    argv[n++] = kl_arena_copy(a, script).ptr;
    for (int i = 0; i < k->n_launches; i++) argv[n++] = kl_arena_copy(a, k->launches[i].entry).ptr;
    KL_ASSERT(n < k->n_launches + 6); /* a NULL ends it */
    return argv;
}

static bool python_run(kli_proc_result *r, kl_arena *a, const kl_kernel *k, kl_error *e) {
    static const char *const ENVIRONMENT[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};
    kli_jail jail;
    kli_jail_open(&jail, "", NULL); /* it writes nowhere */
    jail.cpu_seconds = CPU_SECONDS;
    jail.memory_bytes = MEMORY_BYTES;
    const kl_err err = kli_proc_run(r, a,
                                    &(kli_proc_spec){.argv = python_arguments(a, k),
                                                     .envp = ENVIRONMENT,
                                                     .cwd = "/",
                                                     .input = k->source,
                                                     .timeout_ns = WALL_NS,
                                                     .max_output = MAX_FACTS_BYTES,
                                                     .confine = kli_jail_enter,
                                                     .confine_ctx = &jail},
                                    e);
    kli_jail_close(&jail);
    return !err && r->exit_code == 0;
}

void kli_python_read(kli_source *out, kl_arena *a, const kl_kernel *k) {
    kli_proc_result r = {0};
    kl_error e = {0};
    kl_str line;
    if (!python_run(&r, a, k, &e)) {
        kli_debug("%.*s: only its directives are read: %s%.*s", KL_STR_ARG(k->path), e.message,
                  KL_STR_ARG(kl_str_trim(r.err)));
        return;
    }
    for (kl_str rest = r.out; kli_next_line(&line, &rest);) take_fact(out, line, k->surface);
}
