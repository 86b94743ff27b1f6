"""The gated delta rule in chunks of 64 tokens, in plain PyTorch.

Within a chunk the recurrence is a unit lower triangular system, solved for all chunks at once; only the state walks
from chunk to chunk.  With G the running sum of g inside a chunk and decay[i, j] = exp(G_i - G_j) for i >= j (always of
a difference, so it never overflows):

    (I + L) [U | W] = beta [V | exp(G) K]        L = strictly lower part of beta (decay * K K')
    V' = U - W S
    output = (exp(G) Q S + lower(decay * Q K') V') / sqrt(D)
    S = exp(G_last) S + (exp(G_last - G) K)' V'

All arithmetic is float32, as the task asks of the recurrence.
SPDX-License-Identifier: Apache-2.0
"""
import torch

CHUNK = 64


def _chunks(tensor, length):
    """[B, T, heads, ...] -> [B, heads, T / CHUNK, CHUNK, ...] in float32, the last chunk filled up with zeros."""
    padded = torch.zeros(tensor.shape[0], length, *tensor.shape[2:], dtype=torch.float32, device=tensor.device)
    padded[:, :tensor.shape[1]] = tensor
    return padded.unflatten(1, (-1, CHUNK)).movedim(3, 1)


def run(q, k, v, g, beta, initial_state):
    tokens, per_head = q.shape[1], v.shape[2] // q.shape[2]
    length = -(-tokens // CHUNK) * CHUNK
    query = _chunks(q.repeat_interleave(per_head, dim=2), length) * q.shape[-1] ** -0.5
    key = _chunks(k.repeat_interleave(per_head, dim=2), length)
    value, beta = _chunks(v, length), _chunks(beta, length)[..., None]
    total = _chunks(g, length).cumsum(-1)

    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).tril()
    decay = torch.exp((total[..., :, None] - total[..., None, :]).masked_fill(~lower, float("-inf")))
    system = (beta * decay * (key @ key.transpose(-1, -2))).tril(-1)    # the unit diagonal is implied below
    right = torch.cat((beta * value, beta * torch.exp(total)[..., None] * key), dim=-1)
    solved = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    new_value, seen_key = solved.split((value.shape[-1], key.shape[-1]), dim=-1)
    within = decay * (query @ key.transpose(-1, -2))
    query = query * torch.exp(total)[..., None]
    last = total[..., -1:]
    key = (key * torch.exp(last - total)[..., None]).transpose(-1, -2)
    fade = torch.exp(last)[..., None]

    state, parts = initial_state, []
    for n in range(length // CHUNK):
        delta = new_value[:, :, n] - seen_key[:, :, n] @ state
        parts.append(query[:, :, n] @ state + within[:, :, n] @ delta)
        state = fade[:, :, n] * state + key[:, :, n] @ delta
    output = torch.stack(parts, dim=2).flatten(2, 3)[:, :, :tokens].transpose(1, 2)
    return {"output": output.to(v.dtype).contiguous(), "final_state": state}


def describe():
    return f"PyTorch {torch.__version__}, chunked gated delta rule of {CHUNK} tokens"
