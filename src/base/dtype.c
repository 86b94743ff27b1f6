/* dtype.c - the element types of tensors, read and written one element at a time.
 *
 * How the narrow floats and the integers round is draw.h's: devices do it too.  Not here: bulk
 * conversion, and the rounding mode of fenv (always nearest even). SPDX-License-Identifier:
 * Apache-2.0 */
#include "base/draw.h"
#include <klineage/base.h>
#include <string.h>

_Static_assert((int)KLI_AS_F64 == (int)KL_F64 && (int)KLI_AS_BOOL == (int)KL_BOOL &&
                   (int)KL_BOOL - (int)KL_F64 == 11,
               "draw.h numbers the types in this order");

typedef struct {
    const char *name, *brief;
    uint8_t bytes;
    bool is_float;
    double epsilon;
} dtype_row;

static const dtype_row rows[KL_DTYPE_END] = {
    [KL_F64] = {"float64", "f64", 8, true, 0x1p-53},
    [KL_F32] = {"float32", "f32", 4, true, 0x1p-24},
    [KL_F16] = {"float16", "f16", 2, true, 0x1p-11},
    [KL_BF16] = {"bfloat16", "bf16", 2, true, 0x1p-8},
    [KL_F8E4M3] = {"float8_e4m3fn", "f8e4m3", 1, true, 0x1p-4},
    [KL_F8E5M2] = {"float8_e5m2", "f8e5m2", 1, true, 0x1p-3},
    [KL_I64] = {"int64", "i64", 8, false, 0},
    [KL_I32] = {"int32", "i32", 4, false, 0},
    [KL_I16] = {"int16", "i16", 2, false, 0},
    [KL_I8] = {"int8", "i8", 1, false, 0},
    [KL_U8] = {"uint8", "u8", 1, false, 0},
    [KL_BOOL] = {"bool", "bool", 1, false, 0},
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

static double narrow_load(kl_dtype t, uint32_t stored) {
    return kli_narrow_decode(kli_narrow_of((int)t), stored);
}

static uint32_t narrow_store(kl_dtype t, double value) {
    return kli_narrow_encode(kli_narrow_of((int)t), value);
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
        return narrow_load(t, LOAD(uint16_t));
    case KL_F8E4M3:
    case KL_F8E5M2:
        return narrow_load(t, LOAD(uint8_t));
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
        STORE(uint16_t, narrow_store(t, value));
        return;
    case KL_F8E4M3:
    case KL_F8E5M2:
        STORE(uint8_t, narrow_store(t, value));
        return;
    case KL_I64:
        STORE(int64_t, kli_to_integer(value, INT64_MIN, INT64_MAX));
        return;
    case KL_I32:
        STORE(int32_t, kli_to_integer(value, INT32_MIN, INT32_MAX));
        return;
    case KL_I16:
        STORE(int16_t, kli_to_integer(value, INT16_MIN, INT16_MAX));
        return;
    case KL_I8:
        STORE(int8_t, kli_to_integer(value, INT8_MIN, INT8_MAX));
        return;
    case KL_U8:
        STORE(uint8_t, kli_to_integer(value, 0, UINT8_MAX));
        return;
    case KL_BOOL:
        STORE(uint8_t, value != 0);
        return;
    case KL_DTYPE_END:
        break;
    }
    kl_bug("a known data type", __FILE__, __LINE__);
}
