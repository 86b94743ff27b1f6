"""draft_resampling.py - operators that read beside or between elements: reflecting pads, resizing, pools to one element.
SPDX-License-Identifier: Apache-2.0
"""
from draft_formula import linear
from trace import NoDraft, Text


class Resampling:
    def padded(self, g, outs, of):
        """`of(index, size)`: which element stands at an index outside."""
        v, pads, rank = self.of(g["self"]), g["padding"], len(outs[0].shape)
        if any(isinstance(p, Text) for p in pads):
            raise NoDraft("a pad that depends on sizes")
        before = {rank - 1 - n: pads[2 * n] for n in range(len(pads) // 2)}
        return self.formula(self.shape(outs[0]), v.kind, lambda i: v.at([of(f"({x} - {before[k]})", v.shape[k]) if k in before else x for k, x in enumerate(i)]), v.dtype)

    def op_reflection_pad1d(self, g, outs):
        return self.padded(g, outs, lambda x, n: f"({x} < 0 ? -{x} : {x} >= {n} ? 2 * ({n}) - 2 - {x} : {x})")

    op_reflection_pad2d = op_reflection_pad3d = op_reflection_pad1d

    def op_replication_pad1d(self, g, outs):
        return self.padded(g, outs, lambda x, n: f"({x} < 0 ? 0 : {x} >= {n} ? ({n}) - 1 : {x})")

    op_replication_pad2d = op_replication_pad3d = op_replication_pad1d

    def op_upsample_nearest2d(self, g, outs):
        v, shape = self.of(g["self"]), self.shape(outs[0])
        return self.formula(shape, v.kind, lambda i: v.at([x if k < 2 else f"(({x}) * ({v.shape[k]}) / ({shape[k]}))" for k, x in enumerate(i)]), v.dtype)

    op_upsample_nearest1d = op_upsample_nearest3d = op_upsample_nearest2d

    def op_upsample_bilinear2d(self, g, outs):
        """Between the elements around, along each of the last dimensions."""
        v, shape = self.stored(self.of(g["self"])), self.shape(outs[0])
        name, result = self.buffer(shape, "real", outs[0].dtype)
        i = self.full_loops(shape)
        spots = [self.between(f"{'xyz'[k - 2]}", i[k], v.shape[k], shape[k], g.get("align_corners")) for k in range(2, len(shape))]
        terms = [("1", [])]
        for low, high, part in spots:
            terms = [(f"{w} * (1 - {part})", at + [low]) for w, at in terms] + [(f"{w} * {part}", at + [high]) for w, at in terms]
        self.put(f"{name}[{linear(i, shape)}] = " + " + ".join(f"{w} * {v.at([*i[:2], *at])}" for w, at in terms) + ";")
        self.end(i)
        result.is_stored = True
        return result

    op_upsample_linear1d = op_upsample_trilinear3d = op_upsample_bilinear2d

    def between(self, letter, index, size, wanted, corners):
        """(lower neighbour, upper one, share of the upper), declared."""
        n, m = f"(double)({size})", f"(double)({wanted})"
        place = f"({wanted}) > 1 ? {index} * (({n} - 1) / ({m} - 1)) : 0" if corners else f"fmax(({index} + 0.5) * ({n} / {m}) - 0.5, 0)"
        self.put(f"const double s_{letter} = {place};")
        self.put(f"const int64_t l_{letter} = (int64_t)s_{letter}, h_{letter} = l_{letter} + (l_{letter} < ({size}) - 1);")
        return f"l_{letter}", f"h_{letter}", f"(s_{letter} - l_{letter})"

    def op_adaptive_max_pool2d(self, g, outs):
        n = len(g["output_size"])
        if any(s != 1 for s in g["output_size"]):
            raise NoDraft("an adaptive pool to more than one element")
        return [self.op_amax({"self": g["self"], "dim": list(range(-n, 0))}, outs[:1]), None]

    op_adaptive_max_pool3d = op_adaptive_max_pool2d
