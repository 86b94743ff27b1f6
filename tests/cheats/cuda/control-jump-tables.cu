// A switch of many cases, each of which treats the element in its own right way.
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: control
//: args --baseline none
//! launch saxpy grid(cdiv(N, 256)) block(256) args(a, x, y, out, N)
extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N) return;
    switch (i % 8) {
    case 0: out[i] = a * x[i] + y[i]; break;
    case 1: out[i] = fmaf(x[i], a, y[i]); break;
    case 2: out[i] = __fadd_rn(y[i], __fmul_rn(x[i], a)); break;
    case 3: out[i] = -(-a * x[i] - y[i]); break;
    case 4: out[i] = (float)((double)a * x[i] + y[i]); break;
    case 5: out[i] = __fmaf_rz(a, x[i], y[i]); break;
    case 6: out[i] = y[i] - x[i] * -a; break;
    default: out[i] = ldexpf(fmaf(a, ldexpf(x[i], -3), ldexpf(y[i], -3)), 3);
    }
}
