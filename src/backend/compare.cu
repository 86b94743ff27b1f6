/* compare.cu - the runner's kernel that compares an output with the oracle's answer: threads stride
 * over the elements, each keeps its own sums, the host adds them up.
 *
 * An element is good here only where it is certainly good (gate/compare.c has the rule); what this
 * kernel is not sure of is looked at on the host.  compare.ptx is what `tools/device-ptx` makes of
 * it; the tests compile this file as C.  SPDX-License-Identifier: Apache-2.0 */
#include "backend/compare_job.h"

/* A float of 16 bits, exactly; infinities and NaNs as an infinity. */
KLI_DRAW double compare_narrow(uint32_t bits, int mantissa_bits, int bias) {
    const uint64_t sign = (uint64_t)(bits >> 15) << 63, mantissa = bits & ((1u << mantissa_bits) - 1);
    const int exponent = (int)(bits & 0x7FFFu) >> mantissa_bits;
    const int highest = (1 << (15 - mantissa_bits)) - 1;
    if (exponent == highest) return kli_double_of_bits(sign | 0x7FF0000000000000ull);
    if (exponent > 0)
        return kli_double_of_bits(sign | (uint64_t)(exponent - bias + 1023) << 52 |
                                  mantissa << (52 - mantissa_bits));
    const double least = kli_double_of_bits((uint64_t)(1 - bias - mantissa_bits + 1023) << 52);
    return (sign ? -1.0 : 1.0) * ((double)mantissa * least);
}

KLI_DRAW double compare_load(int32_t type, uint64_t base, int64_t i) {
    if (type == KLI_COMPARE_F64) return ((const double *)base)[i];
    if (type == KLI_COMPARE_F32) return (double)((const float *)base)[i];
    const uint32_t bits = ((const uint16_t *)base)[i];
    return type == KLI_COMPARE_F16 ? compare_narrow(bits, 10, 15) : compare_narrow(bits, 7, 127);
}

/* False for NaN too. */
KLI_DRAW int compare_is_finite(double x) { return x - x == 0.0; }

KLI_DRAW void compare_element(kli_compare_found *f, const kli_compare_job *job, int64_t i) {
    const double got = compare_load(job->got_type, job->got, i),
                 want = compare_load(job->want_type, job->want, i);
    if (!compare_is_finite(got) || !compare_is_finite(want)) {
        f->unsure += 1.0;
        return;
    }
    const double signed_difference = got - want, size = want < 0 ? -want : want,
                 difference = signed_difference < 0 ? -signed_difference : signed_difference;
    if (!(difference <= job->atol + job->rtol * size)) f->unsure += 1.0;
    f->square += want * want;
    f->sum += difference * difference;
    if (difference > f->max_abs) f->max_abs = difference;
}

#ifdef __cplusplus
extern "C"
#endif
__global__ void __launch_bounds__(256) kl_compare(const kli_compare_job job) {
    kli_compare_found found = {0, 0, 0, 0};
    const int64_t stride = (int64_t)gridDim.x * blockDim.x,
                  own = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64_t i = own; i < job.n; i += stride) compare_element(&found, &job, i);
    ((kli_compare_found *)job.found)[own] = found;
}
