#! surface triton
#! param BM = 128 {64, 128}
#! param BN = 64 {32, 64, 128}
#! require B == 1 && D == 128
#! tensormap tQ: q box(D, 1, BM)
#! tensormap tK: k box(D, 1, BN)
#! tensormap tV: v box(D, 1, BN)
#! tensormap tO: output box(D, 1, BM)
#! launch flash grid(cdiv(total_q, BM), H) warps(8) stages(3) args(tQ, tK, tV, tO, causal, total_q, total_kv, D=D)
import triton
import triton.language as tl


@triton.jit
def flash(dq, dk, dv, do, causal, rows, keys, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    first, head = tl.program_id(0) * BM, tl.program_id(1)
    i, scale = first + tl.arange(0, BM), 1.44269504 * (D ** -0.5)
    q = dq.load([first, head, 0]).reshape([BM, D])
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    sums = tl.zeros([BM, D], tl.float32)
    for n in range(0, keys, BN):
        j = n + tl.arange(0, BN)
        visible = (j[None, :] < keys) & ((causal == 0) | (j[None, :] <= i[:, None] + keys - rows))
        scores = tl.where(visible, tl.dot(q, dk.load([n, head, 0]).reshape([BN, D]).T) * scale, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        safe = tl.where(higher == float("-inf"), 0.0, higher)
        weights, fade = tl.math.exp2(scores - safe[:, None]), tl.math.exp2(top - safe)
        total = total * fade + tl.sum(weights, 1)
        sums = tl.dot(weights.to(dv.dtype), dv.load([n, head, 0]).reshape([BN, D]), sums * fade[:, None])
        top = higher
    result = tl.where(total[:, None] > 0, sums / total[:, None], 0.0)
    do.store([first, head, 0], result.to(do.dtype).reshape([BM, 1, D]))
