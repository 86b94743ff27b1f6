/* draw.h - the arithmetic of random values, as one text for hosts and devices: what a host draws
 * and what a kernel draws are the same bytes.
 *
 * It is restricted to what C and CUDA C++ share, and to what IEEE 754 and integers define to the
 * last bit: no libm, no sum whose order is open, no fused product.  Whoever compiles it says so
 * (-ffp-contract=off, -fmad=false).  Element i of a tensor depends on its draw and on i alone, so
 * blocks and threads share it as they like.
 *
 *   keys -> hash of a counter -> uniform, below, normal -> kli_draw_* -> kli_draw_put
 *
 * Not here: sigmoids (libm), rows of length 1 (a sum), offsets (each depends on the one before),
 * all of which src/task draws on the host.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_BASE_DRAW_H
#define KL_BASE_DRAW_H

#ifdef __CUDACC__
#define KLI_DRAW static __device__ __forceinline__
#ifdef __CUDACC_RTC__
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif
#else
#define KLI_DRAW static inline
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#endif

/* ---- bits -------------------------------------------------------------------------------- */

#ifdef __CUDACC__
KLI_DRAW uint32_t kli_bits_of_float(float v) { return __float_as_uint(v); }
KLI_DRAW uint64_t kli_bits_of_double(double v) { return (uint64_t)__double_as_longlong(v); }
KLI_DRAW double kli_double_of_bits(uint64_t bits) { return __longlong_as_double((int64_t)bits); }
KLI_DRAW uint64_t kli_high_product(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
#else
KLI_DRAW uint32_t kli_bits_of_float(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
KLI_DRAW uint64_t kli_bits_of_double(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
KLI_DRAW double kli_double_of_bits(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
KLI_DRAW uint64_t kli_high_product(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)a * b) >> 64);
}
#endif

/* ---- values of a stream ------------------------------------------------------------------ */

/* The splitmix64 finaliser: a bijection of 64 bits in which every input bit reaches every output
 * bit. */
KLI_DRAW uint64_t kli_mix64(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

KLI_DRAW uint64_t kli_key_u64(uint64_t key, uint64_t i) {
    return kli_mix64(key + (i + 1) * 0x9e3779b97f4a7c15ull);
}

/* [0,1), 53 bits */
KLI_DRAW double kli_key_uniform(uint64_t key, uint64_t i) {
    return (double)(kli_key_u64(key, i) >> 11) * 0x1p-53;
}

/* [0,n), n > 0; biased by less than n / 2^64 */
KLI_DRAW uint64_t kli_key_below(uint64_t key, uint64_t i, uint64_t n) {
    return kli_high_product(kli_key_u64(key, i), n);
}

/* Mean 0, variance 1: eight 16-bit uniforms summed in integers, so that every platform gives the
 * same bits. |x| < 4.9. Four of the eight come from the hash and four from one more multiplication
 * of it: a kernel's inputs are hundreds of millions of these, and 64-bit products are what they
 * cost.  Value i uses the hash that kli_key_u64(key, i) gives. */
KLI_DRAW float kli_key_normal(uint64_t key, uint64_t i) {
    const uint64_t lanes = 0x0000ffff0000ffffull;
    uint64_t h = kli_key_u64(key, i);
    uint64_t g = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ull;
    g ^= g >> 32;
    uint64_t pairs = (h & lanes) + ((h >> 16) & lanes) + (g & lanes) + ((g >> 16) & lanes);
    int32_t sum = (int32_t)((uint32_t)pairs + (uint32_t)(pairs >> 32)) - 8 * 65535 / 2;
    return (float)sum * 1.86881237e-5f; /* 1 / sqrt(8 (2^32 - 1) / 12) */
}

/* ---- narrow floats ----------------------------------------------------------------------- */

/* Numbers of kl_dtype, which a device's compiler does not see. */
enum {
    KLI_AS_F64 = 1,
    KLI_AS_F32,
    KLI_AS_F16,
    KLI_AS_BF16,
    KLI_AS_F8E4M3,
    KLI_AS_F8E5M2,
    KLI_AS_I64,
    KLI_AS_I32,
    KLI_AS_I16,
    KLI_AS_I8,
    KLI_AS_U8,
    KLI_AS_BOOL
};

/* The four narrow floats are one algorithm with four rows of numbers: a value is sign, then a code
 * that counts the format's magnitudes upwards from 0, so that rounding up carries from mantissa to
 * exponent by itself and overflow is "code above the largest finite one". */
typedef struct {
    int mantissa; /* stored bits */
    int least;    /* exponent of the smallest normal number */
    uint32_t sign;
    uint32_t largest;  /* code of the largest finite magnitude */
    uint32_t overflow; /* code past it */
    uint32_t nan;
} kli_narrow;

KLI_DRAW kli_narrow kli_narrow_of(int dtype) {
    const kli_narrow f16 = {10, -14, 0x8000, 0x7bff, 0x7c00, 0x7e00};
    const kli_narrow bf16 = {7, -126, 0x8000, 0x7f7f, 0x7f80, 0x7fc0};
    const kli_narrow f8e4m3 = {3, -6, 0x80, 0x7e, 0x7f, 0x7f};
    const kli_narrow f8e5m2 = {2, -14, 0x80, 0x7b, 0x7c, 0x7e};
    return dtype == KLI_AS_F16      ? f16
           : dtype == KLI_AS_BF16   ? bf16
           : dtype == KLI_AS_F8E4M3 ? f8e4m3
                                    : f8e5m2;
}

/* Rounded once, straight from double: through float first it would round twice and be wrong on
 * ties. */
KLI_DRAW uint32_t kli_narrow_encode(kli_narrow f, double v) {
    const uint64_t bits = kli_bits_of_double(v);
    const uint32_t sign = bits >> 63 ? f.sign : 0;
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    const uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    if (exponent == 1024) return sign | (fraction ? f.nan : f.overflow);
    const uint64_t significand = fraction | (uint64_t)1 << 52;
    const int shift = 52 - f.mantissa + (exponent < f.least ? f.least - exponent : 0);
    if (shift > 53) return sign; /* below half of the smallest subnormal */
    uint64_t kept = significand >> shift;
    const uint64_t rest = significand & (((uint64_t)1 << shift) - 1);
    const uint64_t half = (uint64_t)1 << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    if (exponent > f.least) kept += (uint64_t)(exponent - f.least) << f.mantissa;
    return sign | (kept > f.largest ? f.overflow : (uint32_t)kept);
}

/* The code, moved to the top of a double, is the value divided by 2^(difference of the two biases).
 */
KLI_DRAW double kli_narrow_decode(kli_narrow f, uint32_t stored) {
    const uint32_t code = stored & (f.sign - 1);
    const uint64_t sign = stored & f.sign ? (uint64_t)1 << 63 : 0;
    if (code > f.largest) {
        const bool infinite = code == f.overflow && f.overflow != f.nan;
        return kli_double_of_bits(sign | (uint64_t)0x7ff << 52 |
                                  (infinite ? 0 : (uint64_t)1 << 51));
    }
    const double scale = kli_double_of_bits((uint64_t)(1023 + 1022 + f.least) << 52);
    const double magnitude = kli_double_of_bits((uint64_t)code << (52 - f.mantissa)) * scale;
    return kli_double_of_bits(kli_bits_of_double(magnitude) | sign);
}

/* Nearest even, clamped; NaN gives 0.  Adding 2^52 leaves no bits for a fraction, so the addition
 * itself rounds. */
KLI_DRAW int64_t kli_to_integer(double v, int64_t low, int64_t high) {
    if (v != v) return 0;
    if (v >= (double)high)
        return high; /* (double)INT64_MAX is 2^63: everything from there on saturates */
    if (v <= (double)low) return low;
    if (v >= 0 && v < 0x1p52)
        v = (v + 0x1p52) - 0x1p52;
    else if (v < 0 && v > -0x1p52)
        v = (v - 0x1p52) + 0x1p52;
    return (int64_t)v;
}

/* Of a finite float or an infinity. */
KLI_DRAW uint16_t kli_bfloat_of(float value) {
    const uint32_t bits = kli_bits_of_float(value);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Nearest even, of a finite float or an infinity.  Below 2^-14 the sum with 0.5 has exactly the
 * half's last place, so the addition itself rounds. */
KLI_DRAW uint16_t kli_half_of(float value) {
    const uint32_t sign = kli_bits_of_float(value) >> 16 & 0x8000;
    const uint32_t bits = kli_bits_of_float(value) & 0x7fffffff;
    const uint32_t normal = (bits + 0x0fff + (bits >> 13 & 1) - 0x38000000) >> 13;
    const uint32_t subnormal = kli_bits_of_float((value < 0 ? -value : value) + 0.5f) - 0x3f000000;
    const uint32_t finite = bits < 0x38800000 ? subnormal : normal;
    return (uint16_t)(sign | (bits >= 0x477ff000 ? 0x7c00 : finite));
}

/* ---- one tensor's draw ------------------------------------------------------------------- */

typedef enum {
    KLI_DRAW_NONE, /* not by this text */
    KLI_DRAW_NORMAL,
    KLI_DRAW_UNIFORM,
    KLI_DRAW_TIES,
    KLI_DRAW_DISTINCT,
    KLI_DRAW_CONSTANT,
    KLI_DRAW_INTEGER, /* whole numbers from here on */
    KLI_DRAW_BIT,
    KLI_DRAW_INTEGER_DISTINCT,
    KLI_DRAW_INTEGER_CONSTANT
} kli_draw_kind;

typedef struct {
    uint64_t values, order; /* keys; order: permutations of rows */
    int64_t elems, row;     /* row: length of the last axis */
    int64_t active;         /* elements of a row that are not zero */
    int64_t first;          /* of a range of integers, or the constant */
    uint64_t count;         /* its length */
    double low, high;       /* of a range of floats; the upper is excluded */
    float scale, value;     /* value: the constant */
    float under_high;       /* the float below `high` */
    int32_t kind, dtype;
    int32_t is_signed; /* KLI_DRAW_INTEGER_DISTINCT: ranks around zero */
} kli_draw;

/* One tensor of one input set, as a device gets it. */
typedef struct {
    kli_draw draw;
    uint64_t data; /* address of its first element */
} kli_draw_job;

/* Where element i of permutation `which` of [0, n) goes: a Feistel network over the next even
 * number of bits, walked until it lands inside (at most 16 steps on average for tiny n, 4
 * otherwise). */
KLI_DRAW uint64_t kli_permute(uint64_t order, uint64_t which, uint64_t i, uint64_t n) {
    const uint64_t rounds = 4;
    int half = 2;
    while (half < 32 && ((uint64_t)1 << (2 * half)) < n) half++;
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < rounds; round++) {
            const uint64_t key = kli_key_u64(order, which * rounds + round);
            const uint64_t next = left ^ (kli_key_u64(key, right) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* Which place element i of a row got in the row's own order. */
KLI_DRAW int64_t kli_draw_rank(const kli_draw *d, int64_t index) {
    return (int64_t)kli_permute(d->order, (uint64_t)(index / d->row), (uint64_t)(index % d->row),
                                (uint64_t)d->row);
}

/* Zero outside a random share of the last axis: the same positions in every row, as heads without a
 * gate are. */
KLI_DRAW bool kli_draw_is_active(const kli_draw *d, int64_t index) {
    return d->active >= d->row || kli_permute(d->order, 0, (uint64_t)(index % d->row),
                                              (uint64_t)d->row) < (uint64_t)d->active;
}

/* Significant bits of a float type. */
KLI_DRAW int kli_float_digits(int dtype) {
    return dtype == KLI_AS_F16      ? 11
           : dtype == KLI_AS_BF16   ? 8
           : dtype == KLI_AS_F8E4M3 ? 4
           : dtype == KLI_AS_F8E5M2 ? 3
                                    : 24;
}

/* The pattern of 8.0, which is the largest magnitude where patterns are counted; 0: they are not.
 */
KLI_DRAW int64_t kli_float_top(int dtype) {
    return dtype == KLI_AS_F16      ? 0x4800
           : dtype == KLI_AS_BF16   ? 0x4100
           : dtype == KLI_AS_F8E4M3 ? 0x50
           : dtype == KLI_AS_F8E5M2 ? 0x48
                                    : 0;
}

/* The rank-th smallest of n different floats: evenly spaced while the significand holds that, else
 * neighbouring patterns below 8, which are denser towards zero. */
KLI_DRAW float kli_distinct_float(int dtype, int64_t rank, int64_t n) {
    const int64_t centred = rank - n / 2;
    int spread = 0;
    if (n / 2 <= (int64_t)1 << kli_float_digits(dtype)) {
        while (((int64_t)2 << spread) < n / 2) spread++;
        return (float)((double)centred * kli_double_of_bits((uint64_t)(1023 - spread) << 52));
    }
    const int64_t code = kli_float_top(dtype) - n / 2 + (centred < 0 ? -centred : centred);
    const double value = kli_narrow_decode(kli_narrow_of(dtype), (uint32_t)code);
    return centred < 0 ? -(float)value : (float)value;
}

KLI_DRAW float kli_draw_uniform(const kli_draw *d, int64_t index) {
    const double unit = kli_key_uniform(d->values, (uint64_t)index);
    const float value = (float)(d->low + unit * (d->high - d->low));
    /* Rounding may reach the excluded bound. */
    return ((double)value >= d->high ? d->under_high : value) * d->scale;
}

KLI_DRAW float kli_draw_float(const kli_draw *d, int64_t index) {
    if (!kli_draw_is_active(d, index)) return 0;
    switch (d->kind) {
    case KLI_DRAW_UNIFORM:
        return kli_draw_uniform(d, index);
    case KLI_DRAW_TIES:
        return floorf(kli_key_normal(d->values, (uint64_t)index) * 2 + 0.5f) * 0.5f * d->scale;
    case KLI_DRAW_DISTINCT:
        return kli_distinct_float(d->dtype, kli_draw_rank(d, index), d->row);
    case KLI_DRAW_CONSTANT:
        return d->value;
    default:
        return kli_key_normal(d->values, (uint64_t)index) * d->scale;
    }
}

KLI_DRAW int64_t kli_draw_integer(const kli_draw *d, int64_t index) {
    const uint64_t at = (uint64_t)index;
    switch (d->kind) {
    case KLI_DRAW_BIT:
        return (int64_t)(kli_key_u64(d->values, at) >> 63);
    case KLI_DRAW_INTEGER_CONSTANT:
        return d->first;
    case KLI_DRAW_INTEGER_DISTINCT:
        return kli_draw_rank(d, index) - (d->is_signed ? d->row / 2 : 0);
    default:
        return (int64_t)((uint64_t)d->first + kli_key_below(d->values, at, d->count));
    }
}

/* ---- storing ----------------------------------------------------------------------------- */

/* As kl_dtype_store, of an aligned element. */
KLI_DRAW void kli_store_double(int dtype, void *data, int64_t i, double v) {
    switch (dtype) {
    case KLI_AS_F64:
        ((double *)data)[i] = v;
        break;
    case KLI_AS_F32:
        ((float *)data)[i] = (float)v;
        break;
    case KLI_AS_F16:
    case KLI_AS_BF16:
        ((uint16_t *)data)[i] = (uint16_t)kli_narrow_encode(kli_narrow_of(dtype), v);
        break;
    case KLI_AS_F8E4M3:
    case KLI_AS_F8E5M2:
        ((uint8_t *)data)[i] = (uint8_t)kli_narrow_encode(kli_narrow_of(dtype), v);
        break;
    case KLI_AS_I64:
        ((int64_t *)data)[i] = kli_to_integer(v, (int64_t)(1ull << 63), (int64_t)(~0ull >> 1));
        break;
    case KLI_AS_I32:
        ((int32_t *)data)[i] = (int32_t)kli_to_integer(v, -2147483648ll, 2147483647ll);
        break;
    case KLI_AS_I16:
        ((uint16_t *)data)[i] = (uint16_t)kli_to_integer(v, -32768, 32767);
        break;
    case KLI_AS_I8:
        ((uint8_t *)data)[i] = (uint8_t)kli_to_integer(v, -128, 127);
        break;
    case KLI_AS_U8:
        ((uint8_t *)data)[i] = (uint8_t)kli_to_integer(v, 0, 255);
        break;
    default:
        ((uint8_t *)data)[i] = v != 0;
    }
}

KLI_DRAW void kli_store_float(int dtype, void *data, int64_t i, float v) {
    switch (dtype) {
    case KLI_AS_F32:
        ((float *)data)[i] = v;
        break;
    case KLI_AS_F16:
        ((uint16_t *)data)[i] = kli_half_of(v);
        break;
    case KLI_AS_BF16:
        ((uint16_t *)data)[i] = kli_bfloat_of(v);
        break;
    default:
        kli_store_double(dtype, data, i, (double)v);
    }
}

/* A double would lose bits above 2^53. */
KLI_DRAW void kli_store_integer(int dtype, void *data, int64_t i, int64_t v) {
    if (dtype == KLI_AS_I64)
        ((int64_t *)data)[i] = v;
    else if (dtype == KLI_AS_I32)
        ((int32_t *)data)[i] = (int32_t)v;
    else
        kli_store_double(dtype, data, i, (double)v);
}

KLI_DRAW void kli_draw_put(const kli_draw *d, void *data, int64_t index) {
    if (d->kind >= KLI_DRAW_INTEGER)
        kli_store_integer(d->dtype, data, index, kli_draw_integer(d, index));
    else
        kli_store_float(d->dtype, data, index, kli_draw_float(d, index));
}
#endif
