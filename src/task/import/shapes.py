"""shapes.py - which sizes a problem is tried at, and what the sizes of its tensors are made of.

A problem has parameters (numbers that its author chose) and a reference that runs at some of their values.
Nothing says at which, so it is tried: small ones, then one parameter at a time changed, then odd ones together.
From what was seen, each size of each tensor becomes an axis, an expression over axes, or a number.
SPDX-License-Identifier: Apache-2.0
"""
import itertools
import os
import time

SMALL = 16
LEVELS = (16, 32, 64, 128, 256)
TINIER = (4, 2)    # where constant sizes are large
MOST_TRIES = 80
MOST_SECONDS = 60
MOST_ELEMS = 1 << 22    # of all tensors of one small shape


def shrunk(value, level):
    return value if value <= (level if level in TINIER else max(8, level)) else level if value % level == 0 or value > 4 * level else value


def tiny_candidates(real, free):
    for level in LEVELS + TINIER:
        yield {k: shrunk(v, level) if k in free else v for k, v in real.items()}
    base = {k: shrunk(v, SMALL) if k in free else v for k, v in real.items()}
    for n in (1, 2):
        for chosen in itertools.combinations([k for k in free if real[k] > SMALL], n):
            for level in LEVELS[1:] + (None,):
                yield {**base, **{k: real[k] if level is None else shrunk(real[k], level) for k in chosen}}
    yield dict(real)


def other_values(value, place):
    """Odd ones first: tails are where kernels are wrong.  Each parameter has its own, so that none is mistaken for another."""
    wanted = [value + 5 - value % 2 + 2 * place, value + 5 - value % 2, value + 1, 2 * value, value + 8, value * 3, value // 2 + 1]
    return [v for v in dict.fromkeys(wanted) if v != value and v >= 1]


def key_of(params):
    return tuple(sorted(params.items()))


class Search:
    """`attempt(params)` gives what was seen, or None."""

    def __init__(self, attempt, dull):
        self.dull = dull    # where a wrong answer would pass
        self.attempt, self.seen, self.tries, self.end = attempt, {}, 0, time.monotonic() + MOST_SECONDS

    def look(self, params):
        key = key_of(params)
        if key not in self.seen:
            if self.tries >= MOST_TRIES or time.monotonic() > self.end:
                return None
            self.tries += 1
            self.seen[key] = self.attempt(params)
        return self.seen[key]

    def tiny(self, real, free):
        return next((c for c in tiny_candidates(real, free) if self.look(c)), None)

    def probes(self, tiny, real, free):
        """Per parameter, the first other value at which all else still works."""
        found = {}
        for place, name in enumerate(free):
            value = next((v for v in other_values(tiny[name], place) if self.look({**tiny, name: v})), None)
            if value:
                found[name] = value
        return found

    def hidden(self, tiny, probes, most=4):
        """Odd shapes, and one with a size of 1, at which a wrong answer is seen to be wrong."""
        names = list(probes)
        half = len(names) // 2
        groups = [names, names[:half], names[half:]] + [[n] for n in names]
        shapes = [{**tiny, **{n: probes[n] for n in group}} for group in groups if group]
        edge = [{**tiny, n: 1} for n in names if tiny[n] > 1][:2]
        good = []
        for shape in edge + shapes:
            if shape not in good and shape != tiny and self.look(shape) and key_of(shape) not in self.dull:
                good.append(shape)
        odd, ones = [s for s in good if s not in edge], [s for s in good if s in edge][:1]
        return odd[:most - len(ones)] + ones

    @staticmethod
    def for_draft(tiny, hidden, probes):
        """Where a draft is traced and tried; where no hidden shape is larger than 1 everywhere, one size at a time is another."""
        large = [h for h in hidden if min(h.values(), default=0) > 1]
        return [tiny, *hidden, *([] if large else [{**tiny, n: v} for n, v in probes.items() if v > 1])]


# ---- what a size is made of -------------------------------------------------------------------------------

def fits(values, points, text):
    return all(v == evaluated(text, p) for v, p in zip(values, points))


def evaluated(text, point):
    try:
        return eval(text, {"__builtins__": {}, "cdiv": lambda a, b: -(-a // b), "min": min, "max": max}, point)
    except (ZeroDivisionError, NameError, SyntaxError, TypeError):
        return None


def shifted(text, by):
    return text if by == 0 else f"{text} + {by}" if by > 0 else f"{text} - {-by}"


def candidates(names, first, value):
    """Expressions over axes that give `value` at the point `first`, the simplest first."""
    for a in names:
        x = first[a]
        if value == x:
            yield a
        if value != x and abs(value - x) <= 64:
            yield f"{a} + {value - x}" if value > x else f"{a} - {x - value}"
        if x and value % x == 0:
            yield f"{a} * {value // x}"
        if value and x % value == 0:
            yield f"{a} // {x // value}"
    for a, b in itertools.combinations(names, 2):
        x, y = first[a], first[b]
        if value == x * y:
            yield f"{a} * {b}"
        if value == x + y:
            yield f"{a} + {b}"
        for p, q, s, t in ((a, b, x, y), (b, a, y, x)):
            if abs(value - (s - t)) <= 9:
                yield shifted(f"{p} - {q}", value - (s - t))
            for step in (2, 3):    # windows that move by steps, and what undoes them
                if abs(value - s * step - t) <= 9:
                    yield shifted(f"{p} * {step} + {q}", value - s * step - t)
                for c in range(0, 9):
                    if value == (s - t + c) // step + 1:
                        yield f"({shifted(f'{p} - {q}', c)}) // {step} + 1"
            if t and s % t == 0 and value == s // t:
                yield f"{p} // {q}"
        if x * y and value % (x * y) == 0:
            yield f"{a} * {b} * {value // (x * y)}"
    for a in names:
        for s in (1, 2, 3, 4, 5, 8):
            for p in range(-12, 13):
                for q in (0, 1, 2, -1):
                    if value == (first[a] + p) // s + q:
                        yield f"({a} + {p}) // {s} + {q}".replace("+ -", "- ").replace(" + 0)", ")").removesuffix(" + 0")
            rest = value - first[a] * s
            if s > 1 and 0 < abs(rest) <= 24:
                yield f"{a} * {s} + {rest}".replace("+ -", "- ")
    for a, b, c in itertools.combinations(names, 3):
        if value == first[a] * first[b] * first[c]:
            yield f"{a} * {b} * {c}"


def expression(values, points, names):
    """Over `names`, right at every point; a number where it never changes; None."""
    if len(set(values)) == 1:
        return str(values[0])
    return next((text for text in candidates(names, points[0], values[0]) if fits(values, points, text)), None)


def on_this(bytes_):
    return "gpu" if bytes_ > int(os.environ.get("KLINEAGE_IMPORT_CPU_BYTES", 64 << 20)) else None
