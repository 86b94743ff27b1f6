/* native_code.c - what any surface that ends in native code is looked at for: names it may call,
 * and its instructions.
 *
 * Forbidden are instructions that enter the kernel or read a clock.  A linear disassembly can be
 * deceived; what it misses meets the system call filter when it runs.  Without objdump the features
 * are missing and say so (features.disassembled = 0).  SPDX-License-Identifier: Apache-2.0 */
#include "listing.h"
#include "base/fs.h"
#include <ctype.h>
#include <string.h>

#define MAX_DISASSEMBLY ((size_t)64 << 20)

/* ---- symbols ----------------------------------------------------------------------------- */

static const char *const MEMORY[] = {"memcpy",
                                     "memmove",
                                     "memset",
                                     "memcmp",
                                     "mempcpy",
                                     "memccpy",
                                     "memchr",
                                     "memrchr",
                                     "memmem",
                                     "rawmemchr",
                                     "bcmp",
                                     "bcopy",
                                     "bzero",
                                     "swab",
                                     "malloc",
                                     "calloc",
                                     "realloc",
                                     "reallocarray",
                                     "free",
                                     "aligned_alloc",
                                     "posix_memalign",
                                     "memalign",
                                     "strlen",
                                     "strnlen",
                                     "strcmp",
                                     "strncmp",
                                     "strcpy",
                                     "strncpy",
                                     "stpcpy",
                                     "strcat",
                                     "strchr",
                                     "strrchr",
                                     "strstr",
                                     "qsort",
                                     "qsort_r",
                                     "bsearch",
                                     "abort",
                                     "abs",
                                     "labs",
                                     "llabs",
                                     "div",
                                     "ldiv",
                                     "lldiv",
                                     "ffs",
                                     "ffsl",
                                     "ffsll",
                                     "rand_r",
                                     "__errno_location",
                                     "__tls_get_addr",
                                     "__memcpy_chk",
                                     "__memset_chk",
                                     "__memmove_chk",
                                     "__mempcpy_chk",
                                     "__strcpy_chk",
                                     "__stack_chk_fail",
                                     "__assert_fail"};
/* Each also with the suffixes f and l, and as __NAME_finite. */
static const char *const NATIVE_CODE_MATH[] = {
    "acos",      "acosh",     "asin",      "asinh", "atan",      "atan2",  "atanh",  "cbrt",
    "ceil",      "copysign",  "cos",       "cosh",  "erf",       "erfc",   "exp",    "exp10",
    "exp2",      "expm1",     "fabs",      "fdim",  "floor",     "fma",    "fmax",   "fmin",
    "fmod",      "frexp",     "hypot",     "ilogb", "ldexp",     "lgamma", "llrint", "llround",
    "log",       "log10",     "log1p",     "log2",  "logb",      "lrint",  "lround", "modf",
    "nan",       "nearbyint", "nextafter", "pow",   "remainder", "remquo", "rint",   "round",
    "roundeven", "scalbln",   "scalbn",    "sin",   "sincos",    "sinh",   "sqrt",   "tan",
    "tanh",      "tgamma",    "trunc",     "isnan", "isinf",     "finite", "j0",     "j1",
    "jn",        "y0",        "y1",        "yn",    "cabs",      "carg",   "cexp",   "clog",
    "cpow",      "csqrt",     "conj",      "creal", "cimag",     "signbit"};

static bool native_code_is_one_of(const char *name, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0) return true;
    return false;
}

static bool is_math(const char *name) {
    if (strncmp(name, "_ZGV", 4) == 0) return true; /* libmvec: vector versions of the same */
    if (strncmp(name, "__", 2) == 0) name += 2;
    for (size_t i = 0; i < KL_COUNT(NATIVE_CODE_MATH); i++) {
        size_t n = strlen(NATIVE_CODE_MATH[i]);
        if (strncmp(name, NATIVE_CODE_MATH[i], n) != 0) continue;
        const char *rest = name + n;
        if (*rest == 'f' || *rest == 'l') rest++;
        if (!*rest || strcmp(rest, "_finite") == 0) return true;
    }
    return false;
}

bool kli_symbol_is_harmless(const char *name) {
    return native_code_is_one_of(name, MEMORY, KL_COUNT(MEMORY)) || is_math(name);
}

bool kli_symbol_is_openmp(const char *name) {
    return strncmp(name, "GOMP_", 5) == 0 || strncmp(name, "omp_", 4) == 0;
}

/* ---- instructions ------------------------------------------------------------------------ */

typedef struct {
    double instructions, vector128, vector256, vector512, scalar_float, fma, gather, prefetch,
        calls, branches, store_nt, spills, pauses, clocks, atomics;
    char forbidden[32];
} counts;

static bool native_code_begins(kl_str s, const char *prefix) {
    return kl_str_starts(s, kl_str_of(prefix));
}

static bool native_code_contains(kl_str s, const char *needle) {
    return s.len && memmem(s.ptr, s.len, needle, strlen(needle)) != NULL;
}

static void count_width(counts *n, kl_str op, kl_str args) {
    if (native_code_contains(args, "%zmm"))
        n->vector512++;
    else if (native_code_contains(args, "%ymm"))
        n->vector256++;
    else if (!native_code_contains(args, "%xmm"))
        return;
    else if (kl_str_ends(op, KL_S("ss")) || kl_str_ends(op, KL_S("sd")))
        n->scalar_float++;
    else
        n->vector128++;
}

static bool begins_with_any(kl_str op, const char *const *prefixes) {
    for (; *prefixes; prefixes++)
        if (native_code_begins(op, *prefixes)) return true;
    return false;
}

#define BEGINS(op, ...) begins_with_any(op, (const char *const[]){__VA_ARGS__, NULL})

static void count_memory(counts *n, kl_str op, kl_str args) {
    bool to_stack = kl_str_ends(args, KL_S("(%rsp)")) || kl_str_ends(args, KL_S("(%rbp)"));
    n->spills += to_stack && BEGINS(op, "vmov", "mov");
    n->prefetch += BEGINS(op, "prefetch");
    n->gather += BEGINS(op, "vgather", "vpgather");
    n->store_nt += BEGINS(op, "movnt", "vmovnt");
    n->atomics += BEGINS(op, "lock") || (BEGINS(op, "xchg") && native_code_contains(args, "("));
}

static void native_code_forbid(counts *n, kl_str op, kl_str args) {
    bool enters = BEGINS(op, "syscall", "sysenter") ||
                  (BEGINS(op, "int") && native_code_begins(args, "$0x80"));
    bool odd = BEGINS(op, "wrfsbase", "wrgsbase", "wrpkru", "lcall", "ljmp");
    n->clocks += BEGINS(op, "rdtsc", "rdpmc");
    n->pauses += BEGINS(op, "pause", "tpause", "umwait", "hlt");
    if ((enters || odd) && !n->forbidden[0])
        memcpy(n->forbidden, op.ptr, op.len < 31 ? op.len : 31);
}

/* "    1139:\tvfmadd231ps (%rdi),%zmm1,%zmm0" */
static void count_line(counts *n, kl_str line) {
    const char *tab = memchr(line.ptr, '\t', line.len);
    if (!tab || tab == line.ptr || tab[-1] != ':') return;
    kl_str op = {tab + 1, line.len - (size_t)(tab + 1 - line.ptr)};
    size_t k = 0;
    while (k < op.len && !isspace((unsigned char)op.ptr[k])) k++;
    kl_str args = kl_str_trim((kl_str){op.ptr + k, op.len - k});
    op.len = k;
    n->instructions++;
    n->calls += BEGINS(op, "call");
    n->branches += BEGINS(op, "j");
    n->fma += BEGINS(op, "vfmadd", "vfmsub", "vfnmadd", "vfnmsub");
    count_width(n, op, args);
    count_memory(n, op, args);
    native_code_forbid(n, op, args);
}

static void native_code_record(kl_artefact *out, kl_arena *a, const counts *n) {
    const struct {
        const char *name;
        double value;
    } rows[] = {{"instructions", n->instructions},
                {"vector128", n->vector128},
                {"vector256", n->vector256},
                {"vector512", n->vector512},
                {"scalar_float", n->scalar_float},
                {"fma", n->fma},
                {"gather", n->gather},
                {"prefetch", n->prefetch},
                {"calls", n->calls},
                {"branches", n->branches},
                {"store_nt", n->store_nt},
                {"spills", n->spills},
                {"pauses", n->pauses},
                {"atomics", n->atomics}};
    double widest = n->vector512 > 0 ? 512 : n->vector256 > 0 ? 256 : n->vector128 > 0 ? 128 : 0;
    for (size_t i = 0; i < KL_COUNT(rows); i++)
        kli_feature_set(out, a, rows[i].name, rows[i].value);
    kli_feature_set(out, a, "vector_bits", widest);
    if (n->forbidden[0])
        out->suspicious = kl_arena_printf(a, "it holds the instruction %s", n->forbidden);
    if (n->clocks > 0 && !out->suspicious.len)
        out->suspicious = KL_S("it reads a clock or a counter");
}

kl_err kli_inspect_code(kl_artefact *out, kl_arena *a, const char *const *names, kl_error *e) {
    const char *argv[KLI_MAX_OBJECTS + 4] = {"objdump", "-d",
                                             "--no-show-raw-insn"}; /* every executable section */
    kli_proc_result r;
    counts n = {0};
    for (int i = 0; names[i] && i < KLI_MAX_OBJECTS; i++) argv[3 + i] = names[i];
    kl_err code = kli_compile_run(&r, a, argv, kli_fs_dirname(a, out->path.ptr).ptr, NULL,
                                  MAX_DISASSEMBLY, e);
    bool read = code == KL_OK && r.exit_code == 0;
    kli_feature_set(out, a, "disassembled", read);
    if (code == KL_ENODEV) return KL_OK; /* no binutils here */
    if (code || !read) return code;
    for (kl_str line, rest = r.out; kli_code_line(&line, &rest);) count_line(&n, line);
    native_code_record(out, a, &n);
    out->hot_loop = kli_listing_hottest(a, r.out);
    return KL_OK;
}
