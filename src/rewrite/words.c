/* words.c - which word of a source shows which optimization: the one table of them.
 *
 * Words are matched whole, by beginning, or by a part in them.  What a word means on one surface
 * alone says so.  A word that is not here shows nothing; that is no error, only a trait less.
 * SPDX-License-Identifier: Apache-2.0 */
#include "source_impl.h"

#include <string.h>

enum {
    C = KL_FAMILY_C,
    CL = KL_FAMILY_OPENCL,
    CU = KL_FAMILY_CUDA,
    C_LIKE = C | CL | CU,
    TR = KL_FAMILY_TRITON,
    TL = KL_FAMILY_TILELANG,
    ALL = KL_FAMILY_ANY
};

/* IN_TEXT: a part of a longer text, where a word begins. */
typedef enum { WHOLE, BEGINS, PART, IN_TEXT } how;

/* Each use of one of `words` counts for `trait`. */
typedef struct {
    how match;
    bool call; /* counts only where it is called */
    unsigned families;
    kli_trait trait;
    const char *words;
} word_row;

#define EXP                                                                                        \
    "exp expf exp2 exp2f expm1 expm1f exp10 native_exp native_exp2 half_exp __expf exp10f "        \
    "__builtin_expf"

// clang-format off
static const word_row WORDS[] = {
    {WHOLE, true, C, KLI_TRAIT_PREFETCHES, "__builtin_prefetch _mm_prefetch"},
    {WHOLE, true, CL, KLI_TRAIT_PREFETCHES, "prefetch"},
    {BEGINS, true, C, KLI_TRAIT_INTRINSICS, "_mm __builtin_ia32_ _pext_ _pdep_"},
    {BEGINS, false, C, KLI_TRAIT_MASKED, "__mmask"},
    {PART, true, C, KLI_TRAIT_MASKED, "_mask_ _maskz_ _maskload_ _maskstore_"},
    {PART, true, C, KLI_TRAIT_NT_STORES, "_stream_"},
    {WHOLE, true, C, KLI_TRAIT_NT_STORES, "__builtin_nontemporal_store"},
    {WHOLE, true, C, KLI_TRAIT_PERMUTES, "__builtin_shuffle __builtin_shufflevector"},
    {PART, true, C, KLI_TRAIT_PERMUTES, "_permute _shuffle_ _unpack _compress"},
    {WHOLE, true, CL, KLI_TRAIT_PERMUTES, "shuffle shuffle2"},
    {WHOLE, false, C_LIKE, KLI_TRAIT_RESTRICTS, "restrict __restrict __restrict__"},
    {WHOLE, true, C_LIKE, KLI_TRAIT_ALIGNED, "aligned"},
    {WHOLE, true, C | CU, KLI_TRAIT_ALIGNED, "__builtin_assume_aligned alignas _Alignas"},
    {WHOLE, true, C, KLI_TRAIT_ALIGNED, "aligned_alloc"},
    {WHOLE, true, CU, KLI_TRAIT_ALIGNED, "__align__"},
    {WHOLE, true, C | CU, KLI_TRAIT_EXPECTS, "__builtin_expect"},
    {WHOLE, false, C_LIKE, KLI_TRAIT_INLINES, "always_inline"},
    {WHOLE, false, CU, KLI_TRAIT_INLINES, "__forceinline__"},
    {WHOLE, true, CU, KLI_TRAIT_LAUNCH_BOUNDS, "__launch_bounds__"},
    {WHOLE, true, CL, KLI_TRAIT_LAUNCH_BOUNDS, "reqd_work_group_size"},
    {WHOLE, true, C_LIKE, KLI_TRAIT_FMA_CALLS, "fma"},
    {WHOLE, true, C | CU, KLI_TRAIT_FMA_CALLS, "fmaf"},
    {WHOLE, true, CL, KLI_TRAIT_FMA_CALLS, "mad"},
    {WHOLE, true, C, KLI_TRAIT_FMA_CALLS, "__builtin_fma __builtin_fmaf"},
    {BEGINS, true, CU, KLI_TRAIT_FMA_CALLS, "__fmaf_r"},
    {BEGINS, true, CU, KLI_TRAIT_FAST_MATH, "__expf __fdividef"},
    {BEGINS, true, CL, KLI_TRAIT_FAST_MATH, "native_ half_"},
    {PART, true, C, KLI_TRAIT_FAST_MATH, "_rsqrt14 _rcp14"},
    {WHOLE, false, CU, KLI_TRAIT_SHARED_ARRAYS, "__shared__"},
    {WHOLE, false, CL, KLI_TRAIT_SHARED_ARRAYS, "__local"},
    {WHOLE, true, TL, KLI_TRAIT_SHARED_ARRAYS, "alloc_shared"},
    {WHOLE, true, TL, KLI_TRAIT_LOCAL_ARRAYS, "alloc_fragment alloc_local"},
    {WHOLE, true, CU, KLI_TRAIT_BARRIERS, "__syncthreads"},
    {WHOLE, true, CL, KLI_TRAIT_BARRIERS, "barrier work_group_barrier"},
    {WHOLE, true, TL, KLI_TRAIT_BARRIERS, "sync_threads"},
    {BEGINS, true, TL, KLI_TRAIT_MBARRIERS, "mbarrier_ barrier_arrive barrier_wait"},
    {BEGINS, true, CU, KLI_TRAIT_SHUFFLES, "__shfl_ __reduce_"},
    {BEGINS, true, CL, KLI_TRAIT_SHUFFLES, "sub_group_"},
    {BEGINS, true, TL, KLI_TRAIT_SHUFFLES, "shfl_ warp_reduce_"},
    {WHOLE, true, CU, KLI_TRAIT_ASYNC_COPIES, "__pipeline_memcpy_async memcpy_async"},
    {BEGINS, true, CL, KLI_TRAIT_ASYNC_COPIES, "async_work_group_"},
    {WHOLE, true, CU, KLI_TRAIT_MMA, "mma_sync"},
    {WHOLE, true, TR, KLI_TRAIT_MMA, "dot"},
    {WHOLE, true, TL, KLI_TRAIT_MMA, "gemm gemm_sp wgmma_gemm"},
    {WHOLE, true, TL, KLI_TRAIT_WGMMA, "wgmma_gemm"},
    {WHOLE, true, TL, KLI_TRAIT_ASYNC_COPIES, "async_copy"},
    {WHOLE, true, TL, KLI_TRAIT_TMA, "tma_copy"},
    {WHOLE, true, TL, KLI_TRAIT_SETMAXNREG, "set_max_nreg inc_max_nreg dec_max_nreg "
     "annotate_producer_reg_dealloc annotate_consumer_reg_alloc"},
    {WHOLE, false, TL, KLI_TRAIT_CLUSTERS, "ClusterKernel cluster_dims"},
    {BEGINS, true, TR, KLI_TRAIT_TMA, "make_tensor_descriptor"},
    {WHOLE, true, CU, KLI_TRAIT_CACHE_HINTS, "__ldg __ldcs __ldcg __stcs __stcg __stwt"},
    {WHOLE, false, TR, KLI_TRAIT_CACHE_HINTS, "eviction_policy cache_modifier"},
    {BEGINS, true, ALL, KLI_TRAIT_ATOMICS, "atomic"},
    {BEGINS, true, C, KLI_TRAIT_ATOMICS, "__atomic_"},
    {WHOLE, false, TR, KLI_TRAIT_MASKED, "mask"},
    {BEGINS, true, CL, KLI_TRAIT_VECTOR_TYPES, "vload vstore"},
    {WHOLE, true, TL, KLI_TRAIT_VECTOR_TYPES, "vectorized"},
    {WHOLE, true, TL, KLI_TRAIT_UNROLLS, "unroll"},
    {WHOLE, true, TR, KLI_TRAIT_UNROLLS, "static_range"},
    {WHOLE, true, ALL, KLI_TRAIT_EXP_CALLS, EXP},
    {WHOLE, true, ALL, KLI_TRAIT_MATH_CALLS, EXP},
    {WHOLE, true, ALL, KLI_TRAIT_MATH_CALLS, "sqrt sqrtf rsqrt rsqrtf log logf log2 log2f tanh "
     "tanhf pow powf sin sinf cos cosf erf erff native_sqrt native_rsqrt"}};

/* Parts of inline assembler. */
static const struct { kli_trait trait; const char *words; } ASM[] = {
    {KLI_TRAIT_WGMMA, "wgmma.mma_async"},
    {KLI_TRAIT_MMA, "mma.sync"},
    {KLI_TRAIT_LDMATRIX, "ldmatrix"},
    {KLI_TRAIT_STMATRIX, "stmatrix"},
    {KLI_TRAIT_SETMAXNREG, "setmaxnreg"},
    {KLI_TRAIT_MBARRIERS, "mbarrier."},
    {KLI_TRAIT_TMA, "cp.async.bulk.tensor cp.async.bulk.shared"},
    {KLI_TRAIT_ASYNC_COPIES, "cp.async.ca cp.async.cg"},
    {KLI_TRAIT_CLUSTERS, "multicast::cluster barrier.cluster mapa."},
    {KLI_TRAIT_SHUFFLES, "shfl. redux."},
    {KLI_TRAIT_BARRIERS, "bar.sync"},
    {KLI_TRAIT_PREFETCHES, "prefetch"},
    {KLI_TRAIT_FAST_MATH, "ex2.approx rcp.approx rsqrt.approx"},
    {KLI_TRAIT_CACHE_HINTS, "ld.global.nc evict_ createpolicy"},
    {KLI_TRAIT_ATOMICS, "atom. red.global"}};
// clang-format on

/* Calls and instructions that only pass the time, or ask for it. */
static const char WAITS[] =
    "sleep usleep nanosleep clock_nanosleep __nanosleep clock clock64 __clock64 clock_gettime "
    "gettimeofday time sched_yield pthread_yield thrd_yield thrd_sleep _mm_pause "
    "__builtin_ia32_pause __rdtsc __rdtscp _rdtsc __builtin_ia32_rdtsc __builtin_ia32_rdtscp rdtsc "
    "__builtin_readcyclecounter _mm_clflush _mm_clflushopt _mm_clwb _mm_mfence _mm_lfence "
    "__builtin___clear_cache __globaltimer select poll getpid syscall _tpause _umwait";
static const char ASM_WAITS[] =
    "nanosleep pause rdtsc globaltimer %clock cpuid mfence lfence clflush nop";

/* Not in the middle of a word: "shared.global" is no "red.global". */
static bool begins_word(kl_str s, kl_str part) {
    const char *at = s.len ? memmem(s.ptr, s.len, part.ptr, part.len) : NULL;
    return at && (at == s.ptr || !((at[-1] >= 'a' && at[-1] <= 'z') || at[-1] == '_'));
}

static bool words_matches(how match, kl_str s, kl_str word) {
    switch (match) {
    case WHOLE:
        return kl_str_eq(s, word);
    case BEGINS:
        return kl_str_starts(s, word);
    case PART:
        return memmem(s.ptr, s.len, word.ptr, word.len) != NULL;
    case IN_TEXT:
        return begins_word(s, word);
    }
    KL_ASSERT(false && "a way to match");
    return false;
}

/* How many of `words` match. */
static int words_count(how match, kl_str s, const char *words) {
    int n = 0;
    for (kl_str word, rest = kl_str_of(words); kli_next_word(&word, &rest);)
        n += words_matches(match, s, word);
    return n;
}

/* float4, uint2, half8: the types of OpenCL and CUDA. */
static bool is_short_vector(kl_str s) {
    kl_str base, rest = KL_S("float double half int uint short ushort char uchar long ulong");
    while (kli_next_word(&base, &rest))
        if (kl_str_starts(s, base) && kli_one_of(kli_from(s, base.len), "2 3 4 8 16")) return true;
    return false;
}

bool kli_is_vector_type(kl_str s, const kl_surface *surface) {
    if (surface->families & C)
        return kli_one_of(s, "__m64 __m128 __m128d __m128i __m256 __m256d __m256i __m512 __m512d "
                             "__m512i __m128h __m256h __m512h __m128bh __m256bh __m512bh "
                             "float32x4_t float32x2_t float64x2_t int32x4_t uint32x4_t "
                             "float16x8_t");
    return ((surface->families & (CL | CU)) && is_short_vector(s)) ||
           ((surface->families & CU) && kli_one_of(s, "__half2 __nv_bfloat162 half2"));
}

void kli_count_name(kli_source *out, kl_str s, bool call, bool body, const kl_surface *surface) {
    for (const word_row *w = WORDS; w < WORDS + KL_COUNT(WORDS); w++) {
        const bool applies = (w->families & surface->families) && (call || !w->call);
        if (!applies || (w->trait == KLI_TRAIT_INTRINSICS && kl_str_eq(s, KL_S("_mm_prefetch"))))
            continue;
        out->count[w->trait] += words_count(w->match, s, w->words);
    }
    if (body && (kli_is_vector_type(s, surface) || kl_str_eq(s, KL_S("vector_size"))))
        out->count[KLI_TRAIT_VECTOR_TYPES]++;
    out->waits += call && kli_one_of(s, WAITS);
    out->slow_flags += call && kl_str_eq(s, KL_S("optimize"));
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
    if (line && !kli_contains(kli_cut(text, 24), "pragma")) return;
    if (kli_contains(text, "unroll")) out->count[KLI_TRAIT_UNROLLS]++;
    if (kli_contains(text, "omp simd") || kli_contains(text, "ivdep") ||
        kli_contains(text, "omp declare simd") || kli_contains(text, "vectorize("))
        out->count[KLI_TRAIT_SIMD_PRAGMAS]++;
    else if (kli_contains(text, "omp "))
        out->count[KLI_TRAIT_OMP_PRAGMAS]++;
    out->slow_flags += kli_contains(text, "optimize");
}

void kli_count_asm(kli_source *out, kl_str text) {
    for (size_t i = 0; i < KL_COUNT(ASM); i++)
        out->count[ASM[i].trait] += words_count(IN_TEXT, text, ASM[i].words);
    out->waits += kli_parts_in(text, ASM_WAITS);
}
