/* words.c - which word of a source shows which optimization: the one table of them.
 *
 * Words are matched whole, by beginning, or by a part in them.  What a word means on one surface
 * alone says so.  A word that is not here shows nothing; that is no error, only a trait less.
 * SPDX-License-Identifier: Apache-2.0 */
#include "source_impl.h"

#include <string.h>

enum {
    WORDS_C = KL_FAMILY_C,
    WORDS_CL = KL_FAMILY_OPENCL,
    WORDS_CU = KL_FAMILY_CUDA,
    TR = KL_FAMILY_TRITON,
    TL = KL_FAMILY_TILELANG,
    ALL = KL_FAMILY_ANY
};

typedef enum { WHOLE, BEGINS, PART } how;

typedef struct {
    how match;
    const char *text;
    bool call; /* counts only where it is called */
    unsigned families;
    kli_trait trait;
} word_row;

// clang-format off
static const word_row WORDS[] = {
    {WHOLE, "__builtin_prefetch", true, WORDS_C, KLI_TRAIT_PREFETCHES}, {WHOLE, "_mm_prefetch",
    true, WORDS_C, KLI_TRAIT_PREFETCHES},
    {WHOLE, "prefetch", true, WORDS_CL, KLI_TRAIT_PREFETCHES},
    {BEGINS, "_mm", true, WORDS_C, KLI_TRAIT_INTRINSICS}, {BEGINS, "__builtin_ia32_", true,
    WORDS_C, KLI_TRAIT_INTRINSICS},
    {BEGINS, "_pext_", true, WORDS_C, KLI_TRAIT_INTRINSICS}, {BEGINS, "_pdep_", true, WORDS_C,
    KLI_TRAIT_INTRINSICS},
    {BEGINS, "__mmask", false, WORDS_C, KLI_TRAIT_MASKED}, {PART, "_mask_", true, WORDS_C,
    KLI_TRAIT_MASKED}, {PART, "_maskz_", true, WORDS_C, KLI_TRAIT_MASKED},
    {PART, "_maskload_", true, WORDS_C, KLI_TRAIT_MASKED}, {PART, "_maskstore_", true, WORDS_C,
    KLI_TRAIT_MASKED},
    {PART, "_stream_", true, WORDS_C, KLI_TRAIT_NT_STORES}, {WHOLE, "__builtin_nontemporal_store",
    true, WORDS_C, KLI_TRAIT_NT_STORES},
    {WHOLE, "__builtin_shuffle", true, WORDS_C, KLI_TRAIT_PERMUTES}, {WHOLE,
    "__builtin_shufflevector", true, WORDS_C, KLI_TRAIT_PERMUTES},
    {PART, "_permute", true, WORDS_C, KLI_TRAIT_PERMUTES}, {PART, "_shuffle_", true, WORDS_C,
    KLI_TRAIT_PERMUTES},
    {PART, "_unpack", true, WORDS_C, KLI_TRAIT_PERMUTES}, {PART, "_compress", true, WORDS_C,
    KLI_TRAIT_PERMUTES},
    {WHOLE, "shuffle", true, WORDS_CL, KLI_TRAIT_PERMUTES}, {WHOLE, "shuffle2", true, WORDS_CL,
    KLI_TRAIT_PERMUTES},
    {WHOLE, "restrict", false, WORDS_C | WORDS_CL | WORDS_CU, KLI_TRAIT_RESTRICTS}, {WHOLE,
    "__restrict", false, WORDS_C | WORDS_CL | WORDS_CU, KLI_TRAIT_RESTRICTS},
    {WHOLE, "__restrict__", false, WORDS_C | WORDS_CL | WORDS_CU, KLI_TRAIT_RESTRICTS},
    {WHOLE, "__builtin_assume_aligned", true, WORDS_C | WORDS_CU, KLI_TRAIT_ALIGNED}, {WHOLE,
    "__align__", true, WORDS_CU, KLI_TRAIT_ALIGNED},
    {WHOLE, "alignas", true, WORDS_C | WORDS_CU, KLI_TRAIT_ALIGNED}, {WHOLE, "_Alignas", true,
    WORDS_C | WORDS_CU, KLI_TRAIT_ALIGNED},
    {WHOLE, "aligned", true, WORDS_C | WORDS_CL | WORDS_CU, KLI_TRAIT_ALIGNED}, {WHOLE,
    "aligned_alloc", true, WORDS_C, KLI_TRAIT_ALIGNED},
    {WHOLE, "__builtin_expect", true, WORDS_C | WORDS_CU, KLI_TRAIT_EXPECTS},
    {WHOLE, "always_inline", false, WORDS_C | WORDS_CL | WORDS_CU, KLI_TRAIT_INLINES}, {WHOLE,
    "__forceinline__", false, WORDS_CU, KLI_TRAIT_INLINES},
    {WHOLE, "__launch_bounds__", true, WORDS_CU, KLI_TRAIT_LAUNCH_BOUNDS}, {WHOLE,
    "reqd_work_group_size", true, WORDS_CL, KLI_TRAIT_LAUNCH_BOUNDS},
    {WHOLE, "fma", true, WORDS_C | WORDS_CL | WORDS_CU, KLI_TRAIT_FMA_CALLS}, {WHOLE, "fmaf", true,
    WORDS_C | WORDS_CU, KLI_TRAIT_FMA_CALLS},
    {WHOLE, "mad", true, WORDS_CL, KLI_TRAIT_FMA_CALLS}, {WHOLE, "__builtin_fma", true, WORDS_C,
    KLI_TRAIT_FMA_CALLS},
    {WHOLE, "__builtin_fmaf", true, WORDS_C, KLI_TRAIT_FMA_CALLS}, {BEGINS, "__fmaf_r", true,
    WORDS_CU, KLI_TRAIT_FMA_CALLS},
    {BEGINS, "__expf", true, WORDS_CU, KLI_TRAIT_FAST_MATH}, {BEGINS, "__fdividef", true, WORDS_CU,
    KLI_TRAIT_FAST_MATH},
    {BEGINS, "native_", true, WORDS_CL, KLI_TRAIT_FAST_MATH}, {BEGINS, "half_", true, WORDS_CL,
    KLI_TRAIT_FAST_MATH},
    {PART, "_rsqrt14", true, WORDS_C, KLI_TRAIT_FAST_MATH}, {PART, "_rcp14", true, WORDS_C,
    KLI_TRAIT_FAST_MATH},
    {WHOLE, "__shared__", false, WORDS_CU, KLI_TRAIT_SHARED_ARRAYS}, {WHOLE, "__local", false,
    WORDS_CL, KLI_TRAIT_SHARED_ARRAYS},
    {WHOLE, "alloc_shared", true, TL, KLI_TRAIT_SHARED_ARRAYS}, {WHOLE, "alloc_fragment", true, TL,
    KLI_TRAIT_LOCAL_ARRAYS},
    {WHOLE, "alloc_local", true, TL, KLI_TRAIT_LOCAL_ARRAYS},
    {WHOLE, "__syncthreads", true, WORDS_CU, KLI_TRAIT_BARRIERS}, {WHOLE, "barrier", true,
    WORDS_CL, KLI_TRAIT_BARRIERS},
    {WHOLE, "work_group_barrier", true, WORDS_CL, KLI_TRAIT_BARRIERS}, {WHOLE, "sync_threads",
    true, TL, KLI_TRAIT_BARRIERS},
    {BEGINS, "__shfl_", true, WORDS_CU, KLI_TRAIT_SHUFFLES}, {BEGINS, "__reduce_", true, WORDS_CU,
    KLI_TRAIT_SHUFFLES},
    {BEGINS, "sub_group_", true, WORDS_CL, KLI_TRAIT_SHUFFLES},
    {WHOLE, "__pipeline_memcpy_async", true, WORDS_CU, KLI_TRAIT_ASYNC_COPIES}, {WHOLE,
    "memcpy_async", true, WORDS_CU, KLI_TRAIT_ASYNC_COPIES},
    {BEGINS, "async_work_group_", true, WORDS_CL, KLI_TRAIT_ASYNC_COPIES},
    {WHOLE, "mma_sync", true, WORDS_CU, KLI_TRAIT_MMA}, {WHOLE, "dot", true, TR, KLI_TRAIT_MMA},
    {WHOLE, "gemm", true, TL, KLI_TRAIT_MMA},
    {BEGINS, "make_tensor_descriptor", true, TR, KLI_TRAIT_TMA},
    {WHOLE, "__ldg", true, WORDS_CU, KLI_TRAIT_CACHE_HINTS}, {WHOLE, "__ldcs", true, WORDS_CU,
    KLI_TRAIT_CACHE_HINTS},
    {WHOLE, "__ldcg", true, WORDS_CU, KLI_TRAIT_CACHE_HINTS}, {WHOLE, "__stcs", true, WORDS_CU,
    KLI_TRAIT_CACHE_HINTS},
    {WHOLE, "__stcg", true, WORDS_CU, KLI_TRAIT_CACHE_HINTS}, {WHOLE, "__stwt", true, WORDS_CU,
    KLI_TRAIT_CACHE_HINTS},
    {WHOLE, "eviction_policy", false, TR, KLI_TRAIT_CACHE_HINTS}, {WHOLE, "cache_modifier", false,
    TR, KLI_TRAIT_CACHE_HINTS},
    {BEGINS, "atomic", true, ALL, KLI_TRAIT_ATOMICS}, {BEGINS, "__atomic_", true, WORDS_C,
    KLI_TRAIT_ATOMICS},
    {WHOLE, "mask", false, TR, KLI_TRAIT_MASKED}, {BEGINS, "vload", true, WORDS_CL,
    KLI_TRAIT_VECTOR_TYPES},
    {BEGINS, "vstore", true, WORDS_CL, KLI_TRAIT_VECTOR_TYPES}, {WHOLE, "vectorized", true, TL,
    KLI_TRAIT_VECTOR_TYPES},
    {WHOLE, "unroll", true, TL, KLI_TRAIT_UNROLLS}, {WHOLE, "static_range", true, TR,
    KLI_TRAIT_UNROLLS}};

/* Mnemonics in inline assembler; a longer one that ends a match is taken before a shorter. */
static const struct { const char *text; kli_trait trait; } ASM[] = {
    {"wgmma.mma_async", KLI_TRAIT_WGMMA}, {"mma.sync", KLI_TRAIT_MMA}, {"ldmatrix",
    KLI_TRAIT_LDMATRIX}, {"stmatrix", KLI_TRAIT_STMATRIX},
    {"setmaxnreg", KLI_TRAIT_SETMAXNREG}, {"mbarrier.", KLI_TRAIT_MBARRIERS},
    {"cp.async.bulk.tensor", KLI_TRAIT_TMA},
    {"cp.async.bulk.shared", KLI_TRAIT_TMA}, {"cp.async.ca", KLI_TRAIT_ASYNC_COPIES},
    {"cp.async.cg", KLI_TRAIT_ASYNC_COPIES},
    {"multicast::cluster", KLI_TRAIT_CLUSTERS}, {"barrier.cluster", KLI_TRAIT_CLUSTERS}, {"mapa.",
    KLI_TRAIT_CLUSTERS},
    {"shfl.", KLI_TRAIT_SHUFFLES}, {"redux.", KLI_TRAIT_SHUFFLES}, {"bar.sync",
    KLI_TRAIT_BARRIERS}, {"prefetch", KLI_TRAIT_PREFETCHES},
    {"ex2.approx", KLI_TRAIT_FAST_MATH}, {"rcp.approx", KLI_TRAIT_FAST_MATH}, {"rsqrt.approx",
    KLI_TRAIT_FAST_MATH},
    {"ld.global.nc", KLI_TRAIT_CACHE_HINTS}, {"evict_", KLI_TRAIT_CACHE_HINTS}, {"createpolicy",
    KLI_TRAIT_CACHE_HINTS},
    {"atom.", KLI_TRAIT_ATOMICS}, {"red.global", KLI_TRAIT_ATOMICS}};

static const char *const EXP[] = {"exp", "expf", "exp2", "exp2f", "expm1", "expm1f", "exp10",
    "native_exp", "native_exp2", "half_exp", "__expf",
                                  "exp10f", "__builtin_expf"};
static const char *const WORDS_MATH[] = {"sqrt", "sqrtf", "rsqrt", "rsqrtf", "log", "logf", "log2",
    "log2f", "tanh", "tanhf", "pow", "powf", "sin",
                                   "sinf", "cos", "cosf", "erf", "erff", "native_sqrt",
                                   "native_rsqrt"};
static const char *const WAITS[] = {
    "sleep", "usleep", "nanosleep", "clock_nanosleep", "__nanosleep", "clock", "clock64",
    "__clock64", "clock_gettime", "gettimeofday", "time",
    "sched_yield", "pthread_yield", "thrd_yield", "thrd_sleep", "_mm_pause",
    "__builtin_ia32_pause", "__rdtsc", "__rdtscp", "_rdtsc",
    "__builtin_ia32_rdtsc", "__builtin_ia32_rdtscp", "rdtsc", "__builtin_readcyclecounter",
    "_mm_clflush", "_mm_clflushopt", "_mm_clwb",
    "_mm_mfence", "_mm_lfence", "__builtin___clear_cache", "__globaltimer", "select", "poll",
    "getpid", "syscall", "_tpause", "_umwait"};
// clang-format on

static bool words_one_of(kl_str s, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (kl_str_eq(s, kl_str_of(list[i]))) return true;
    return false;
}

static bool words_matches(const word_row *w, kl_str s) {
    const kl_str text = kl_str_of(w->text);
    return w->match == WHOLE    ? kl_str_eq(s, text)
           : w->match == BEGINS ? kl_str_starts(s, text)
                                : kli_contains(s, w->text);
}

/* float4, uint2, half8: the types of OpenCL and CUDA. */
static bool is_short_vector(kl_str s) {
    static const char *const BASES[] = {"float",  "double", "half",  "int",  "uint", "short",
                                        "ushort", "char",   "uchar", "long", "ulong"};
    for (size_t i = 0; i < KL_COUNT(BASES); i++) {
        const size_t n = strlen(BASES[i]);
        if (!kl_str_starts(s, kl_str_of(BASES[i]))) continue;
        const kl_str width = {s.ptr + n, s.len - n};
        if (kl_str_eq(width, KL_S("2")) || kl_str_eq(width, KL_S("4")) ||
            kl_str_eq(width, KL_S("8")) || kl_str_eq(width, KL_S("16")) ||
            kl_str_eq(width, KL_S("3")))
            return true;
    }
    return false;
}

bool kli_is_vector_type(kl_str s, const kl_surface *surface) {
    static const char *const X86[] = {
        "__m64",   "__m128",  "__m128d", "__m128i", "__m256",  "__m256d",  "__m256i",  "__m512",
        "__m512d", "__m512i", "__m128h", "__m256h", "__m512h", "__m128bh", "__m256bh", "__m512bh"};
    static const char *const ARM[] = {"float32x4_t", "float32x2_t", "float64x2_t",
                                      "int32x4_t",   "uint32x4_t",  "float16x8_t"};
    static const char *const CUDA[] = {"__half2", "__nv_bfloat162", "half2"};
    if (surface->families & WORDS_C)
        return words_one_of(s, X86, KL_COUNT(X86)) || words_one_of(s, ARM, KL_COUNT(ARM));
    if ((surface->families & (WORDS_CL | WORDS_CU)) && is_short_vector(s)) return true;
    return (surface->families & WORDS_CU) && words_one_of(s, CUDA, KL_COUNT(CUDA));
}

void kli_count_name(kli_source *out, kl_str s, bool call, bool body, const kl_surface *surface) {
    for (size_t n = 0; n < KL_COUNT(WORDS); n++) {
        const word_row *w = &WORDS[n];
        if (!(w->families & surface->families) || (w->call && !call) || !words_matches(w, s))
            continue;
        if (w->trait == KLI_TRAIT_INTRINSICS && kl_str_eq(s, KL_S("_mm_prefetch"))) continue;
        out->count[w->trait]++;
    }
    if (body && (kli_is_vector_type(s, surface) || kl_str_eq(s, KL_S("vector_size"))))
        out->count[KLI_TRAIT_VECTOR_TYPES]++;
    if (!call) return;
    out->count[KLI_TRAIT_EXP_CALLS] += words_one_of(s, EXP, KL_COUNT(EXP));
    out->count[KLI_TRAIT_MATH_CALLS] +=
        words_one_of(s, EXP, KL_COUNT(EXP)) || words_one_of(s, WORDS_MATH, KL_COUNT(WORDS_MATH));
    out->waits += words_one_of(s, WAITS, KL_COUNT(WAITS));
    out->slow_flags += kl_str_eq(s, KL_S("optimize"));
}

/* A coefficient: a decimal fraction of five or more digits.  Naive kernels have none; polynomials
 * and folded scales do. */
void kli_count_number(kli_source *out, kl_str text) {
    size_t digits = 0;
    bool point = false, leading = true;
    for (size_t i = 0;
         i < text.len && (text.ptr[i] == '.' || (text.ptr[i] >= '0' && text.ptr[i] <= '9')); i++) {
        point = point || text.ptr[i] == '.';
        leading = leading && (text.ptr[i] == '0' || text.ptr[i] == '.');
        digits += !leading && text.ptr[i] != '.';
    }
    out->count[KLI_TRAIT_CONSTANTS] += point && digits >= 5;
}

void kli_count_pragma(kli_source *out, kl_str text) {
    const bool line = text.len && text.ptr[0] == '#';
    if (line && !kli_contains((kl_str){text.ptr, text.len < 24 ? text.len : 24}, "pragma")) return;
    if (kli_contains(text, "unroll")) out->count[KLI_TRAIT_UNROLLS]++;
    if (kli_contains(text, "omp simd") || kli_contains(text, "ivdep") ||
        kli_contains(text, "omp declare simd") || kli_contains(text, "vectorize("))
        out->count[KLI_TRAIT_SIMD_PRAGMAS]++;
    else if (kli_contains(text, "omp "))
        out->count[KLI_TRAIT_OMP_PRAGMAS]++;
    out->slow_flags += kli_contains(text, "optimize");
}

/* Not in the middle of a word: "shared.global" is no "red.global". */
static bool words_has_word(kl_str s, const char *part) {
    const char *at = s.len ? memmem(s.ptr, s.len, part, strlen(part)) : NULL;
    return at && (at == s.ptr || !((at[-1] >= 'a' && at[-1] <= 'z') || at[-1] == '_'));
}

void kli_count_asm(kli_source *out, kl_str text) {
    static const char *const WAIT[] = {"nanosleep", "pause",  "rdtsc",  "globaltimer", "%clock",
                                       "cpuid",     "mfence", "lfence", "clflush",     "nop"};
    for (size_t i = 0; i < KL_COUNT(ASM); i++)
        out->count[ASM[i].trait] += words_has_word(text, ASM[i].text);
    for (size_t i = 0; i < KL_COUNT(WAIT); i++) out->waits += kli_contains(text, WAIT[i]);
}
