"""python.py - what a Python kernel uses and how it loops, one fact a line, for python.c.

The source on standard input is data: Python's own `ast` parses it, nothing compiles or runs it.
Only what a launch reaches counts: the functions named as arguments, and those that they mention.

    NAME VALUE          a number, such as source.loops 3
    name WORD           a word in use, an argument's name included
    call WORD           the same, called: tl.dot(a, b) is dot
    number TEXT         a fraction
    asm TEXT            inline assembler

usage: python3 python.py ENTRY... < SOURCE        status 1: it does not parse, with a line why
SPDX-License-Identifier: Apache-2.0
"""
import ast
import io
import sys
import tokenize

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
RANGES = ("range", "static_range")


def word_of(node):
    """dot of tl.dot and of dot; empty for anything else."""
    return getattr(node, "attr", getattr(node, "id", ""))


def functions_of(tree):
    """Each name, and the outermost functions in which something of that name is defined."""
    found = {}
    for node in tree.body:
        for inner in ast.walk(node):
            if isinstance(inner, FUNCTIONS):
                outer = node if isinstance(node, FUNCTIONS) else inner
                found.setdefault(inner.name, []).append(outer)
    return found


def reached_from(entries, functions):
    known = entries and all(name in functions for name in entries)
    names, reached = list(entries if known else functions), {}
    while names:
        for function in functions.get(names.pop(), ()):
            if function not in reached:
                reached[function] = True
                names += {word_of(node) for node in ast.walk(function)}
    return reached


def has_stride(turns):
    """range(first, end, step) with a step that is not 1."""
    if not isinstance(turns, ast.Call) or word_of(turns.func) not in RANGES:
        return False
    step = turns.args[2:3] + [k.value for k in turns.keywords if k.arg == "step"]
    return bool(step) and getattr(step[0], "value", None) != 1


def accumulators(loop):
    """Different things that += and -= of an innermost loop add to."""
    inside = [node for part in loop.body for node in ast.walk(part)]
    if any(isinstance(node, LOOPS) for node in inside):
        return 0
    sums = [node for node in inside if isinstance(node, ast.AugAssign)
            and isinstance(node.op, (ast.Add, ast.Sub))]
    return len({ast.dump(node.target) for node in sums})


def is_empty(loop):
    return all(isinstance(part, ast.Pass) or isinstance(part, ast.Expr)
               and isinstance(part.value, ast.Constant) for part in loop.body)


def nests(function):
    """(node, loops around it) of all that a function holds."""
    left = [(function, 0)]
    while left:
        node, depth = left.pop()
        yield node, depth
        inside = depth + isinstance(node, LOOPS)
        left += [(child, inside) for child in ast.iter_child_nodes(node)]


def depth_of(function, functions, measured):
    """Deepest nest of loops, through calls; a recursion adds nothing."""
    if function not in measured:
        measured[function] = 0
        measured[function] = max(
            depth + max([depth_of(callee, functions, measured)
                         for callee in functions.get(word_of(getattr(node, "func", None)), ())],
                        default=isinstance(node, LOOPS))
            for node, depth in nests(function))
    return measured[function]


def loop_facts(reached, functions):
    loops = [node for function in reached for node in ast.walk(function) if isinstance(node, LOOPS)]
    measured = {}
    return {
        "source.functions": len(reached),
        "source.loops": len(loops),
        "source.loop_depth": max((depth_of(f, functions, measured) for f in reached), default=0),
        "source.blocked_loops": sum(has_stride(getattr(loop, "iter", None)) for loop in loops),
        "source.accumulators": max(map(accumulators, loops), default=0),
        "empty_loops": sum(map(is_empty, loops)),
    }


def stages_of(reached):
    """Of TileLang's pipelined loops, where they are numbers."""
    calls = [node for f in reached for node in ast.walk(f)
             if isinstance(node, ast.Call) and word_of(node.func) == "Pipelined"]
    given = [getattr(k.value, "value", 0) for c in calls for k in c.keywords if k.arg == "num_stages"]
    return max((n for n in given if isinstance(n, int)), default=0)


def say_words(function):
    nodes = list(ast.walk(function))
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        word = word_of(node) or getattr(node, "arg", None)
        if word:
            print("call" if node in called else "name", word)
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            print("number", node.value)
        if isinstance(node, ast.Call) and "inline_asm" in word_of(node.func):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    print("asm", " ".join(part.value.split()))


def tokens_of(source):
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    return sum(t.type not in silent for t in tokenize.generate_tokens(io.StringIO(source).readline))


def main():
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    source = sys.stdin.read()
    try:
        functions = functions_of(ast.parse(source))
        print("source.tokens", tokens_of(source))
        reached = reached_from(sys.argv[1:], functions)
        for name, value in loop_facts(reached, functions).items():
            print(name, value)
        if stages_of(reached):
            print("source.stages", stages_of(reached))
        for function in reached:
            say_words(function)
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError) as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")


main()
