/* dtype.c - the element types of tensors, read and written one element at a time.
 *
 * The four narrow floats are one algorithm with four rows of numbers: a value is sign, then a code
 * that counts the format's magnitudes upwards from 0, so that rounding up carries from mantissa to
 * exponent by itself and overflow is "code above the largest finite one".  Storing rounds once,
 * straight from double: through float first it would round twice and be wrong on ties.  All in
 * integers, so that neither libm nor the CPU's half-precision units matter. Not here: bulk
 * conversion, and the rounding mode of fenv (always nearest even). SPDX-License-Identifier:
 * Apache-2.0 */
#include <klineage/base.h>
#include <string.h>

typedef struct {
    int mantissa; /* stored bits */
    int least;    /* exponent of the smallest normal number */
    uint32_t sign;
    uint32_t largest;  /* code of the largest finite magnitude */
    uint32_t overflow; /* code past it */
    uint32_t nan;
} narrow;

typedef struct {
    const char *name, *brief;
    uint8_t bytes;
    bool is_float;
    double epsilon;
    narrow narrow; /* of the floats of two bytes and one */
} dtype_row;

static const dtype_row rows[KL_DTYPE_END] = {
    [KL_F64] = {"float64", "f64", 8, true, 0x1p-53},
    [KL_F32] = {"float32", "f32", 4, true, 0x1p-24},
    [KL_F16] = {"float16", "f16", 2, true, 0x1p-11, {10, -14, 0x8000, 0x7bff, 0x7c00, 0x7e00}},
    [KL_BF16] = {"bfloat16", "bf16", 2, true, 0x1p-8, {7, -126, 0x8000, 0x7f7f, 0x7f80, 0x7fc0}},
    [KL_F8E4M3] = {"float8_e4m3fn", "f8e4m3", 1, true, 0x1p-4, {3, -6, 0x80, 0x7e, 0x7f, 0x7f}},
    [KL_F8E5M2] = {"float8_e5m2", "f8e5m2", 1, true, 0x1p-3, {2, -14, 0x80, 0x7b, 0x7c, 0x7e}},
    [KL_I64] = {"int64", "i64", 8},
    [KL_I32] = {"int32", "i32", 4},
    [KL_I16] = {"int16", "i16", 2},
    [KL_I8] = {"int8", "i8", 1},
    [KL_U8] = {"uint8", "u8", 1},
    [KL_BOOL] = {"bool", "bool", 1},
};

static const dtype_row *dtype_row_of(kl_dtype t) {
    KL_ASSERT(t > 0 && t < KL_DTYPE_END);
    return &rows[t];
}

const char *kl_dtype_name(kl_dtype t) { return dtype_row_of(t)->name; }
size_t kl_dtype_bytes(kl_dtype t) { return dtype_row_of(t)->bytes; }
bool kl_dtype_is_float(kl_dtype t) { return dtype_row_of(t)->is_float; }
double kl_dtype_epsilon(kl_dtype t) { return dtype_row_of(t)->epsilon; }

bool kl_dtype_parse(kl_dtype *out, kl_str name) {
    for (int t = 1; t < KL_DTYPE_END; t++)
        if (kl_str_eq(name, kl_str_of(rows[t].name)) || kl_str_eq(name, kl_str_of(rows[t].brief))) {
            *out = (kl_dtype)t;
            return true;
        }
    return false;
}

static uint64_t dtype_bits_of(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits) {
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint32_t encode(const narrow *f, double v) {
    uint64_t bits = dtype_bits_of(v);
    uint32_t sign = bits >> 63 ? f->sign : 0;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    if (exponent == 1024) return sign | (fraction ? f->nan : f->overflow);
    uint64_t significand = fraction | (uint64_t)1 << 52;
    int shift = 52 - f->mantissa + (exponent < f->least ? f->least - exponent : 0);
    if (shift > 53) return sign; /* below half of the smallest subnormal */
    KL_ASSERT(shift > 0);
    uint64_t kept = significand >> shift;
    uint64_t rest = significand & (((uint64_t)1 << shift) - 1);
    uint64_t half = (uint64_t)1 << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    if (exponent > f->least) kept += (uint64_t)(exponent - f->least) << f->mantissa;
    return sign | (kept > f->largest ? f->overflow : (uint32_t)kept);
}

/* The code, moved to the top of a double, is the value divided by 2^(difference of the two biases).
 */
static double decode(const narrow *f, uint32_t stored) {
    uint32_t code = stored & (f->sign - 1);
    uint64_t sign = stored & f->sign ? (uint64_t)1 << 63 : 0;
    if (code > f->largest) {
        bool infinite = code == f->overflow && f->overflow != f->nan;
        return double_of(sign | (uint64_t)0x7ff << 52 | (infinite ? 0 : (uint64_t)1 << 51));
    }
    double scale = double_of((uint64_t)(1023 + 1022 + f->least) << 52);
    double magnitude = double_of((uint64_t)code << (52 - f->mantissa)) * scale;
    return double_of(dtype_bits_of(magnitude) | sign);
}

/* Nearest even, clamped; NaN gives 0.  Adding 2^52 leaves no bits for a fraction, so the addition
 * itself rounds. */
static int64_t to_integer(double v, int64_t low, int64_t high) {
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

#define LOAD(type) (*(type *)memcpy(&(type){0}, at, sizeof(type)))

double kl_dtype_load(kl_dtype t, const void *base, size_t index) {
    const char *at = (const char *)base + index * dtype_row_of(t)->bytes;
    switch (t) {
    case KL_F64:
        return LOAD(double);
    case KL_F32:
        return (double)LOAD(float);
    case KL_F16:
    case KL_BF16:
        return decode(&rows[t].narrow, LOAD(uint16_t));
    case KL_F8E4M3:
    case KL_F8E5M2:
        return decode(&rows[t].narrow, LOAD(uint8_t));
    case KL_I64:
        return (double)LOAD(int64_t);
    case KL_I32:
        return LOAD(int32_t);
    case KL_I16:
        return LOAD(int16_t);
    case KL_I8:
        return LOAD(int8_t);
    case KL_U8:
        return LOAD(uint8_t);
    case KL_BOOL:
        return LOAD(uint8_t) != 0;
    case KL_DTYPE_END:
        break;
    }
    kl_bug("a known data type", __FILE__, __LINE__);
}

#define STORE(type, value) ((void)memcpy(at, &(type){(type)(value)}, sizeof(type)))

void kl_dtype_store(kl_dtype t, void *base, size_t index, double value) {
    char *at = (char *)base + index * dtype_row_of(t)->bytes;
    switch (t) {
    case KL_F64:
        STORE(double, value);
        return;
    case KL_F32:
        STORE(float, value);
        return;
    case KL_F16:
    case KL_BF16:
        STORE(uint16_t, encode(&rows[t].narrow, value));
        return;
    case KL_F8E4M3:
    case KL_F8E5M2:
        STORE(uint8_t, encode(&rows[t].narrow, value));
        return;
    case KL_I64:
        STORE(int64_t, to_integer(value, INT64_MIN, INT64_MAX));
        return;
    case KL_I32:
        STORE(int32_t, to_integer(value, INT32_MIN, INT32_MAX));
        return;
    case KL_I16:
        STORE(int16_t, to_integer(value, INT16_MIN, INT16_MAX));
        return;
    case KL_I8:
        STORE(int8_t, to_integer(value, INT8_MIN, INT8_MAX));
        return;
    case KL_U8:
        STORE(uint8_t, to_integer(value, 0, UINT8_MAX));
        return;
    case KL_BOOL:
        STORE(uint8_t, value != 0);
        return;
    case KL_DTYPE_END:
        break;
    }
    kl_bug("a known data type", __FILE__, __LINE__);
}
