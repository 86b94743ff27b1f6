/* compile.c - TileLang to a cubin for one device, in confined steps.
 *
 *   1. frontend.py   calls what builds a kernel, lowers it to CUDA C++, and says what TileLang
 *                    decided of each launch (docs/formats/completion.md)
 *   2. NVRTC         as for any CUDA C++ (surface/cuda/compile.c), with TileLang's own headers
 *   3. ptxas         again, without the 850 constants of those headers that NVRTC makes variables
 * of the device and that nothing names: a runner would restore each before each run
 *
 * The text comes out of a process in which a candidate's code ran.  As CUDA C++ it can do no more
 * than a kernel of surface cuda; yet what is judged here is TileLang's, so text that TileLang does
 * not write is refused, and a cubin holds the kernels that are launched and no other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tilelang.h"
#include "backend/cuda_cubin.h"
#include "backend/cuda_toolkit.h"
#include "base/fs.h"
#include "base/json.h"
#include "surface/cuda/cuda.h"
#include <klineage/limits.h>
#include <pthread.h>
#include <string.h>

#define MAX_PTX_BYTES ((size_t)64 << 20)
#define MAX_CUBIN_BYTES ((size_t)256 << 20)

/* ---- which TileLang there is -------------------------------------------------------------- */

static kli_python_package tilelang_package;
static pthread_once_t package_once = PTHREAD_ONCE_INIT;

/* Its front end imports TileLang itself, behind a stand-in for torch. */
static void package_look(void) {
    static const char *const NO_MODULES[] = {NULL};
    kli_python_look(&tilelang_package, "tilelang", "tilelang_frontend.py", NO_MODULES);
}

const kli_python_front *kli_tilelang_front(void) {
    static const kli_python_front front = {.package = &tilelang_package,
                                           .name = "tilelang",
                                           .title = "TileLang",
                                           .makes = {"lowered.cu"}};
    (void)pthread_once(&package_once, package_look);
    KL_ASSERT(!tilelang_package.version.len != !tilelang_package.missing.len);
    return &front;
}

/* Another front end may say no where this one says yes. */
kl_str kli_tilelang_toolchain(kl_arena *a) { return kli_python_toolchain(a, kli_tilelang_front()); }

/* ---- is it TileLang's text? --------------------------------------------------------------- */

static bool begins_with_one(kl_str line, const char *const *list) {
    for (; *list; list++)
        if (kl_str_starts(line, kl_str_of(*list))) return true;
    return false;
}

static bool holds_one(kl_str line, const char *const *list) {
    for (; *list; list++)
        if (memmem(line.ptr, line.len, *list, strlen(*list))) return true;
    return false;
}

/* Text of a message is a candidate's, and TileLang writes it out as it is: it must not end its own
 * string and go on as code.  Such a line is one call, and its text lies inside the parentheses. */
static bool messages_stay_inside(kl_str line) {
    bool in_text = false, seen = false;
    int depth = 0;
    for (size_t i = 0; i < line.len; i++) {
        const char c = line.ptr[i];
        if (c == '\\') return false;
        if (c == '"') in_text = !in_text, seen = true;
        if (in_text) continue;
        depth += (c == '(') - (c == ')');
        if (depth == 0 && c == ')' && i + 2 < line.len) return false;
    }
    return !in_text && depth == 0 && seen;
}

/* A declaration, or a definition's first line: what is in the middle ends neither. */
static bool is_signature(kl_str line) {
    static const kl_str BEGINS = {"extern \"C\" __global__ void ", 27};
    KL_ASSERT(line.len);
    if (!kl_str_starts(line, BEGINS)) return false;
    const char last = line.ptr[line.len - 1];
    for (size_t i = 0; i + 1 < line.len; i++)
        if (strchr(";{}#", line.ptr[i])) return false;
    return last == ';' || last == '{';
}

/* TileLang indents the bodies of its kernels; what begins a line is one of few things. */
static bool is_lowered_line(kl_str line) {
    static const char *const AT_THE_MARGIN[] = {"#if defined(_MSC_VER)",
                                                "#ifdef ENABLE_BF16",
                                                "#endif",
                                                "#define _tl_orig_alignas alignas",
                                                "#define alignas",
                                                "#undef alignas",
                                                "#include <cuda.h>",
                                                "#include <math_constants.h>",
                                                "#include <mma.h>",
                                                "#include <tl_templates/cuda/",
                                                NULL};
    static const char *const NEVER_INSIDE[] = {
        "__device__", "__constant__", "__managed__", "__global__", "asm", "_Pragma", NULL};
    static const char *const ABOVE[] = {"..", NULL};
    const kl_str inner = kl_str_trim(line);
    if (inner.len == 0) return true;
    if (is_signature(line) || kl_str_eq(line, KL_S("}"))) return true;
    if (line.ptr[0] != ' ') return begins_with_one(line, AT_THE_MARGIN) && !holds_one(line, ABOVE);
    if (inner.ptr[0] == '#') return kl_str_eq(inner, KL_S("#pragma unroll"));
    if (memchr(inner.ptr, '"', inner.len) && !messages_stay_inside(inner)) return false;
    return !holds_one(inner, NEVER_INSIDE);
}

int kli_tilelang_foreign_line(kl_str text) {
    int number = 0;
    for (kl_str line; kli_code_line(&line, &text);)
        if (number++, !is_lowered_line(line)) return number;
    return 0;
}

static kl_err tilelang_say_no(kl_artefact *out, kl_arena *a, kl_str said, const char *what) {
    out->ok = false;
    out->log = kl_arena_printf(a, "%.*skernel.py:1:1: error: %s\n", KL_STR_ARG(said), what);
    return KL_OK;
}

/* ---- the second step ---------------------------------------------------------------------- */

static bool launches_entry(const json_t *launches, const char *kernel) {
    for (size_t i = 0; i < json_array_size(launches); i++)
        if (kl_str_eq(kli_json_text_or(json_array_get(launches, i), "entry", (kl_str){0}),
                      kl_str_of(kernel)))
            return true;
    return false;
}

/* As many kernels as launches, each of them launched. */
static bool holds_what_is_launched(kl_str cubin, kl_str completion) {
    json_t *root = NULL;
    kli_cubin_walk walk;
    kli_cubin_symbol s;
    size_t kernels = 0;
    if (kli_json_parse(&root, completion, KL_S("completion"), kl_ignored())) return false;
    const json_t *launches = json_object_get(root, "launches");
    bool ok = true;
    kli_cubin_begin(&walk, cubin.ptr, cubin.len);
    while (kli_cubin_next(&walk, &s))
        if (s.kind == KLI_CUBIN_KERNEL) kernels++, ok = ok && launches_entry(launches, s.name);
    ok = ok && kernels == json_array_size(launches);
    json_decref(root);
    return ok;
}

/* The job as the CUDA compilers see it: TileLang's options in place of ours. */
static kl_err compile_lowered(kl_artefact *out, const kl_compile_job *job, kl_str text,
                              kl_error *e) {
    static const char *const NVRTC[] = {
        "-default-device", "--pre-include=tl_templates/cuda/nvrtc_std.h",
        "-diag-suppress=47,177,550,1046,1444,20012", /* of its text */
        NULL};
    kl_arena *a = job->arena;
    const char *site = tilelang_package.site.ptr;
    const char *defines[] = {kl_arena_printf(a, "-I%s/tilelang/src", site).ptr,
                             kl_arena_printf(a, "-I%s/tilelang/3rdparty/cutlass/include", site).ptr,
                             "-DENABLE_BF16", NULL};
    KL_ASSERT(site); /* its front end ran */
    kl_kernel *kernel = KL_NEW(a, kl_kernel);
    *kernel = *job->kernel;
    kernel->n_flags = 0;
    for (int i = 0; i < job->kernel->n_flags; i++)
        if (kl_str_eq(job->kernel->flags[i], KL_S("-tl.enable_fast_math")))
            kernel->flags[kernel->n_flags++] = KL_S("-use_fast_math");
    kl_compile_job lowered = *job;
    lowered.kernel = kernel;
    lowered.defines = defines;
    return kli_cuda_compile_text(
        out, &lowered, &(kli_cuda_text){.source = text, .headers = site, .nvrtc = NVRTC}, e);
}

/* ---- the third step ----------------------------------------------------------------------- */

/* The name that a line `.global ... NAME...;` defines; empty for any other line. */
static kl_str variable_defined(kl_str line) {
    size_t end = 0, n = 0;
    if (!kl_str_starts(line, KL_S(".global ")) || line.ptr[line.len - 1] != ';') return (kl_str){0};
    while (end < line.len && !strchr(";=[", line.ptr[end])) end++;
    while (end > 0 && line.ptr[end - 1] == ' ') end--;
    while (n < end && line.ptr[end - n - 1] != ' ') n++;
    return (kl_str){line.ptr + end - n, n};
}

/* Is it named anywhere but where it is defined? */
static bool variable_is_named(kl_str text, kl_str name) {
    const char *first = memmem(text.ptr, text.len, name.ptr, name.len);
    KL_ASSERT(first && name.len);
    const size_t rest = (size_t)(text.ptr + text.len - (first + name.len));
    return memmem(first + name.len, rest, name.ptr, name.len) != NULL;
}

void kli_tilelang_without_idle(kl_buf *out, kl_str ptx) {
    kl_str rest = ptx;
    for (kl_str line; kli_code_line(&line, &rest);) {
        const kl_str name = variable_defined(line);
        if (name.len && !variable_is_named(ptx, name)) continue;
        kl_buf_add(out, line);
        kl_buf_add(out, KL_S("\n"));
    }
    KL_ASSERT(out->len <= ptx.len + 1); /* the last line may have had no end */
}

/* Where NVRTC came without an assembler its own cubin stands, and its kernels are slower to judge.
 */
static kl_err tilelang_assemble(kl_artefact *out, const kl_compile_job *job, kl_error *e) {
    kl_arena *a = job->arena;
    kli_cuda_toolkit t;
    kl_buf text = {0};
    kl_str ptx;
    kli_cuda_toolkit_find(&t, a);
    const kl_str ptxas = t.root.len ? kli_fs_join(a, t.root.ptr, "bin/ptxas") : (kl_str){0};
    const kl_str path = kli_fs_join(a, job->dir, "kernel.ptx");
    if (!ptxas.len || !kli_fs_exists(ptxas.ptr) ||
        kli_fs_read(&ptx, a, path.ptr, MAX_PTX_BYTES, kl_ignored()))
        return KL_OK;
    kli_tilelang_without_idle(&text, ptx);
    kl_err code = kli_fs_write(path.ptr, kl_buf_str(&text), e);
    kl_buf_fini(&text);
    out->log = (kl_str){0}; /* the same report comes again */
    return code ? code : kli_cuda_assemble(out, job, ptxas.ptr, e);
}

kl_err kli_tilelang_compile(kl_artefact *out, const kl_compile_job *job, kl_error *e) {
    kl_arena *a = job->arena;
    kl_str text, cubin = {0};
    kl_err code = kli_python_compile(out, job, kli_tilelang_front(), e);
    if (code || !out->ok) return code;
    const kl_str said = out->log, by = out->toolchain;
    if (kli_fs_read(&text, a, out->path.ptr, KL_MAX_SOURCE_BYTES, kl_ignored()))
        return tilelang_say_no(out, a, said, "lowered, it is longer than is compiled here");
    const int line = kli_tilelang_foreign_line(text);
    if (line)
        return tilelang_say_no(
            out, a, said,
            kl_arena_printf(a, "line %d of what it was lowered to is not TileLang's", line).ptr);
    code = compile_lowered(out, job, text, e);
    if (!code && out->ok) code = tilelang_assemble(out, job, e);
    if (code) return code;
    out->toolchain = kl_arena_printf(a, "%.*s, %.*s", KL_STR_ARG(by), KL_STR_ARG(out->toolchain));
    out->log = kl_arena_printf(a, "%.*s%.*s", KL_STR_ARG(said), KL_STR_ARG(out->log));
    if (!out->ok) return KL_OK;
    code = kli_fs_read(&cubin, a, out->path.ptr, MAX_CUBIN_BYTES, e);
    if (!code && !holds_what_is_launched(cubin, out->completion))
        return tilelang_say_no(out, a, said,
                               "the compiled kernels are not those that are launched");
    return code;
}
