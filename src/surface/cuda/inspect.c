/* inspect.c - what a cubin contains: features for the record, and what no candidate may contain.
 *
 *   symbol table    kernels, variables that outlive a launch, what the driver must provide (device
 * heap, launches from the device) ptxas report    registers, spills, stack, static shared memory:
 * the largest of all kernels machine code    through cuobjdump where the toolkit has it (feature
 * `disassembled` 1), else the PTX it was made from
 *
 * Counts are static: how often an instruction stands in the code, after unrolling.  A clock or a
 * sleep is a feature, not a crime: waiting loops use them; the gate judges them where a step claims
 * to be an optimisation. Never runs the artefact.  SPDX-License-Identifier: Apache-2.0 */
#include "cuda.h"
#include "backend/cuda_cubin.h"
#include "backend/cuda_toolkit.h"
#include "backend/listing.h"
#include "base/fs.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CODE_BYTES                                                                             \
    ((size_t)64 << 20) /* of text; a kernel of 64 KB of source has below 1 MB                      \
                        */

/* An instruction whose opcode begins with `begins` and, where given, contains `contains` counts as
 * `feature`. */
typedef struct {
    const char *begins, *contains, *feature;
} inspect_row;

// clang-format off
static const inspect_row PTX[] = {
    {"wgmma.mma_async", NULL, "wgmma"}, {"mma.sync", NULL, "mma_sync"}, {"wmma.mma", NULL,
    "mma_sync"},
    {"cp.async.c", NULL, "cp_async"}, /* .ca .cg; also .commit_group, taken out below */
    {"cp.async.bulk.tensor", NULL, "tma"}, {"cp.async.bulk.shared", NULL, "tma"},
    {"cp.async.bulk.global", NULL, "tma"},
    {"cp.async.bulk", ".multicast", "tma_multicast"}, {"cp.reduce.async.bulk", NULL, "tma"},
    {"ldmatrix", NULL, "ldmatrix"},
    {"stmatrix", NULL, "stmatrix"}, {"ld.", ".v4.b32", "vector128"}, {"ld.", ".v4.u32",
    "vector128"}, {"ld.", ".v4.f32", "vector128"},
    {"ld.", ".v4.s32", "vector128"}, {"ld.", ".v2.b64", "vector128"}, {"ld.", ".v2.u64",
    "vector128"}, {"ld.", ".v2.s64", "vector128"},
    {"ld.", ".v2.f64", "vector128"}, {"ld.", ".b128", "vector128"}, {"st.", ".v4.b32",
    "vector128"}, {"st.", ".v4.u32", "vector128"},
    {"st.", ".v4.f32", "vector128"}, {"st.", ".v4.s32", "vector128"}, {"st.", ".v2.b64",
    "vector128"}, {"st.", ".v2.u64", "vector128"},
    {"st.", ".v2.s64", "vector128"}, {"st.", ".v2.f64", "vector128"}, {"st.", ".b128",
    "vector128"}, {"shfl.", NULL, "shuffles"},
    {"redux.", NULL, "shuffles"}, {"bar.", NULL, "barriers"}, {"barrier.", NULL, "barriers"},
    {"barrier.cluster", NULL, "cluster"},
    {"mapa", NULL, "cluster"}, {"mbarrier.", NULL, "mbarriers"}, {"atom.", NULL, "atomics"},
    {"red.", NULL, "atomics"},
    {"setmaxnreg", NULL, "setmaxnreg"}, {"prefetch", NULL, "prefetch"}, {"fma.", NULL, "fma"},
    {"bra", NULL, "branches"},
    {"call", NULL, "calls"}, {"nanosleep", NULL, "pauses"}, {"createpolicy", NULL, "cache_policy"},
    {"griddepcontrol", NULL, "pdl"},
    {"trap", NULL, "traps"}, {"ld.local", NULL, "local"}, {"st.local", NULL, "local"}, {"ex2.",
    NULL, "special"}, {"rsqrt.", NULL, "special"},
    {"lg2.", NULL, "special"}, {"sin.", NULL, "special"}, {"cos.", NULL, "special"}, {"tanh.",
    NULL, "special"}, {"rcp.", NULL, "special"}};

static const inspect_row SASS[] = {
    {"HGMMA", NULL, "wgmma"}, {"QGMMA", NULL, "wgmma"}, {"IGMMA", NULL, "wgmma"}, {"BGMMA", NULL,
    "wgmma"}, {"HMMA", NULL, "mma_sync"},
    {"IMMA", NULL, "mma_sync"}, {"DMMA", NULL, "mma_sync"}, {"QMMA", NULL, "mma_sync"}, {"LDGSTS",
    NULL, "cp_async"},
    {"UTMALDG", NULL, "tma"}, {"UTMASTG", NULL, "tma"}, {"UTMAREDG", NULL, "tma"}, {"UBLKCP", NULL,
    "tma"},
    {"UTMALDG", ".MULTICAST", "tma_multicast"}, {"LDSM", NULL, "ldmatrix"}, {"STSM", NULL,
    "stmatrix"}, {"LD", ".128", "vector128"},
    {"ST", ".128", "vector128"}, {"SHFL", NULL, "shuffles"}, {"REDUX", NULL, "shuffles"}, {"BAR.",
    NULL, "barriers"},
    {"UCGABAR", NULL, "cluster"}, {"MAPA", NULL, "cluster"}, {"SYNCS", NULL, "mbarriers"}, {"ATOM",
    NULL, "atomics"},
    {"RED.", NULL, "atomics"}, {"REDG", NULL, "atomics"}, {"USETMAXREG", NULL, "setmaxnreg"},
    {"CCTL", NULL, "prefetch"},
    {"UTMAPF", NULL, "prefetch"}, {"FFMA", NULL, "fma"}, {"DFMA", NULL, "fma"}, {"HFMA2", NULL,
    "fma"}, {"BRA", NULL, "branches"},
    {"CALL", NULL, "calls"}, {"NANOSLEEP", NULL, "pauses"}, {"BPT", NULL, "traps"}, {"LDL", NULL,
    "local"}, {"STL", NULL, "local"},
    {"MUFU", NULL, "special"}, {"ACQBULK", NULL, "pdl"}, {"PREEXIT", NULL, "pdl"}};
// clang-format on

static void inspect_count(kl_artefact *out, kl_arena *a, const char *feature) {
    kli_feature_set(out, a, feature, kli_feature_get(out, feature) + 1);
}

static bool inspect_contains(kl_str text, const char *needle) {
    return memmem(text.ptr, text.len, needle, strlen(needle)) != NULL;
}

/* ---- instructions ------------------------------------------------------------------------ */

/* The first word after a guard ("@%p1 bra", "@!P0 BRA"). */
static kl_str opcode(kl_str line) {
    line = kl_str_trim(line);
    if (line.len && line.ptr[0] == '@') {
        size_t guard = 0;
        while (guard < line.len && !isspace((unsigned char)line.ptr[guard])) guard++;
        line = kl_str_trim((kl_str){line.ptr + guard, line.len - guard});
    }
    size_t n = 0;
    while (n < line.len && !isspace((unsigned char)line.ptr[n]) && line.ptr[n] != ';') n++;
    return (kl_str){line.ptr, n};
}

static void inspect_count_rows(kl_artefact *out, kl_arena *a, kl_str op, const inspect_row *rows,
                               size_t n) {
    for (size_t i = 0; i < n; i++)
        if (kl_str_starts(op, kl_str_of(rows[i].begins)) &&
            (!rows[i].contains || inspect_contains(op, rows[i].contains)))
            inspect_count(out, a, rows[i].feature);
}

/* A PTX instruction ends with a semicolon and begins with a small letter; directives, labels and
 * braces do not. */
static void count_ptx(kl_artefact *out, kl_arena *a, kl_str line) {
    kl_str op = opcode(line);
    if (!op.len || !islower((unsigned char)op.ptr[0]) || op.ptr[op.len - 1] == ':') return;
    inspect_count(out, a, "instructions");
    if (inspect_contains(line, "%clock") || inspect_contains(line, "%globaltimer"))
        inspect_count(out, a, "clocks");
    if (inspect_contains(line, "evict_last")) inspect_count(out, a, "cache_policy");
    if (kl_str_starts(op, KL_S("cp.async.commit"))) return;
    inspect_count_rows(out, a, op, PTX, KL_COUNT(PTX));
}

/* "        /0070/                   LDG.E.128 R4, [R2] ;      / 0x... /": the address comment, the
 * instruction, the encoding. */
static void count_sass(kl_artefact *out, kl_arena *a, kl_str line) {
    const char *end = memmem(line.ptr, line.len, "*/", 2);
    line = kl_str_trim(line);
    if (!kl_str_starts(line, KL_S("/*")) || !end) return;
    kl_str op = opcode((kl_str){end + 2, (size_t)(line.ptr + line.len - (end + 2))});
    if (!op.len || !isupper((unsigned char)op.ptr[0])) return;
    inspect_count(out, a, "instructions");
    if (inspect_contains(line, "SR_CLOCK") || inspect_contains(line, "SR_GLOBALTIMER"))
        inspect_count(out, a, "clocks");
    inspect_count_rows(out, a, op, SASS, KL_COUNT(SASS));
}

static void each_line(kl_artefact *out, kl_arena *a, kl_str text,
                      void (*visit)(kl_artefact *, kl_arena *, kl_str)) {
    for (kl_str line; kli_code_line(&line, &text);) visit(out, a, line);
}

/* Empty where there is no disassembler, or it says nothing. */
static kl_err disassemble(kl_str *code, const kl_artefact *of, kl_arena *a, kl_error *e) {
    kli_cuda_toolkit t;
    kli_proc_result r;
    kli_cuda_toolkit_find(&t, a);
    kl_str program = t.root.len ? kli_fs_join(a, t.root.ptr, "bin/cuobjdump") : (kl_str){0};
    if (!program.len || !kli_fs_exists(program.ptr)) program = kli_fs_find_program(a, "cuobjdump");
    *code = (kl_str){0};
    if (!program.len) return KL_OK;
    const char *argv[] = {program.ptr, "-sass", kli_fs_basename(of->path.ptr).ptr, NULL};
    const char *readable[] = {t.root.len ? t.root.ptr : "/usr", NULL};
    const kl_err err = kli_compile_run(&r, a, argv, kli_fs_dirname(a, of->path.ptr).ptr, readable,
                                       MAX_CODE_BYTES, e);
    if (!err && r.exit_code == 0 && inspect_contains(r.out, "Function :")) *code = r.out;
    return err == KL_EINTR ? err : KL_OK;
}

static void read_ptx(kl_artefact *out, kl_arena *a) {
    kl_str text, path = kli_fs_join(a, kli_fs_dirname(a, out->path.ptr).ptr, "kernel.ptx");
    if (kli_fs_read(&text, a, path.ptr, MAX_CODE_BYTES, kl_ignored())) return;
    each_line(out, a, text, count_ptx);
    out->hot_loop = kli_listing_hottest(a, text);
}

/* ---- ptxas report ------------------------------------------------------------------------ */

static double number_before(kl_str line, const char *what) {
    const char *at = memmem(line.ptr, line.len, what, strlen(what));
    if (!at) return 0;
    const char *p = at;
    while (p > line.ptr && isdigit((unsigned char)p[-1])) p--;
    return p < at ? strtod(p, NULL) : 0;
}

static void raise_feature(kl_artefact *out, kl_arena *a, const char *name, double value) {
    if (value > kli_feature_get(out, name)) kli_feature_set(out, a, name, value);
}

/* "ptxas info    : Used 24 registers, used 1 barriers, 128 bytes smem" and
 * "    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" */
static void inspect_read_report(kl_artefact *out, kl_arena *a, kl_str line) {
    double spills =
        number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    raise_feature(out, a, "registers", number_before(line, " registers"));
    raise_feature(out, a, "spill_bytes", spills);
    raise_feature(out, a, "stack_bytes", number_before(line, " bytes stack frame"));
    raise_feature(out, a, "static_smem_bytes", number_before(line, " bytes smem"));
}

/* ---- symbols ----------------------------------------------------------------------------- */

static const char *verdict_on_external(const char *name) {
    if (strcmp(name, "malloc") == 0 || strcmp(name, "free") == 0)
        return "it uses the device heap, which outlives a run";
    if (strncmp(name, "cuda", 4) == 0 || strncmp(name, "__cuda", 6) == 0 ||
        strncmp(name, "cnp", 3) == 0)
        return "it calls the device runtime (launches from device code)";
    return NULL;
}

static void inspect_read_symbols(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_str cubin) {
    double kernels = 0, text = 0, variables = 0, state = 0, constants = 0, prints = 0;
    kli_cubin_walk walk;
    kli_cubin_symbol s;
    kli_cubin_begin(&walk, cubin.ptr, cubin.len);
    while (kli_cubin_next(&walk, &s)) {
        if (s.kind == KLI_CUBIN_KERNEL) kernels++, text += (double)s.bytes;
        if (s.kind == KLI_CUBIN_VARIABLE && s.name[0] != '$') variables++, state += (double)s.bytes;
        if (s.kind == KLI_CUBIN_CONSTANT) constants += (double)s.bytes;
        if (s.kind != KLI_CUBIN_EXTERNAL) continue;
        prints += strcmp(s.name, "vprintf") == 0;
        const char *why = k->trusted ? NULL : verdict_on_external(s.name);
        if (why && !out->suspicious.len)
            out->suspicious = kl_arena_printf(a, "%s: %s", why, s.name);
    }
    kli_feature_set(out, a, "kernels", kernels);
    kli_feature_set(out, a, "text_bytes", text);
    if (variables > 0) kli_feature_set(out, a, "variables", variables);
    kli_feature_set(out, a, "static_bytes", state);
    kli_feature_set(out, a, "constant_bytes", constants);
    if (prints > 0) kli_feature_set(out, a, "prints", prints);
}

/* All but the instructions. */
static kl_err read_cubin(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e) {
    kl_str cubin;
    kl_err code = kli_fs_read(&cubin, a, out->path.ptr, MAX_CODE_BYTES * 4, e);
    if (code) return code;
    if (!kli_cubin_valid(cubin.ptr, cubin.len))
        return kl_fail(e, KL_EIO, "compile", "the compiler's output is not a cubin");
    inspect_read_symbols(out, a, k, cubin);
    static const char *const always[] = {"registers", "spill_bytes", "stack_bytes",
                                         "static_smem_bytes", "instructions"};
    for (size_t i = 0; i < KL_COUNT(always); i++) kli_feature_set(out, a, always[i], 0);
    each_line(out, a, out->log, inspect_read_report);
    out->remarks = kli_listing_warnings(a, out->log);
    return KL_OK;
}

kl_err kli_cuda_inspect(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e) {
    const kl_err err = read_cubin(out, a, k, e);
    if (!err) read_ptx(out, a);
    return err;
}

/* Machine code takes the place of the PTX that it was made from. */
kl_err kli_cuda_describe(kl_artefact *out, kl_arena *a, const kl_kernel *k, kl_error *e) {
    kl_str code;
    kl_err err = disassemble(&code, out, a, e);
    if (!err && code.len) {
        out->n_features = 0;
        err = read_cubin(out, a, k, e);
        each_line(out, a, code, count_sass);
        out->hot_loop = kli_listing_hottest(a, code);
    }
    if (!err) kli_feature_set(out, a, "disassembled", code.len > 0);
    return err;
}
