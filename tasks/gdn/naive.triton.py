# Gated delta rule by its recurrence, one program per 16 columns of the state, which stays in registers.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! let DIMS = pow2(D)
#! launch gdn grid(cdiv(D, 16), B * HV) warps(4) stages(1) \
#!        args(q, k, v, g, beta, initial_state, output, final_state, T, HQ, HV, D, DIMS=DIMS, COLUMNS=16)
import triton
import triton.language as tl


@triton.jit
def gdn(q, k, v, g, beta, initial_state, output, final_state, T, HQ, HV, D, DIMS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, DIMS)
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    b, h = tl.program_id(1) // HV, tl.program_id(1) % HV
    place = (b.to(tl.int64) * HV + h) * D * D + i[:, None] * D + j[None, :]
    inside = (i[:, None] < D) & (j[None, :] < D)
    state = tl.load(initial_state + place, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(D.to(tl.float32))
    for t in range(T):
        token = b.to(tl.int64) * T + t
        shared = (token * HQ + h // (HV // HQ)) * D + i
        key = tl.load(k + shared, mask=i < D, other=0.0).to(tl.float32)
        query = tl.load(q + shared, mask=i < D, other=0.0).to(tl.float32)
        own = token * HV + h
        value = tl.load(v + own * D + j, mask=j < D, other=0.0).to(tl.float32)
        state *= tl.exp(tl.load(g + own).to(tl.float32))
        known = tl.sum(state * key[:, None], 0)
        delta = tl.load(beta + own).to(tl.float32) * (value - known)
        state += key[:, None] * delta[None, :]
        result = tl.sum(state * query[:, None], 0) * scale
        tl.store(output + own * D + j, result.to(output.dtype.element_ty), mask=j < D)
    tl.store(final_state + place, state.to(final_state.dtype.element_ty), mask=inside)
