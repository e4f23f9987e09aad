"""Random programs of DaCe by feature, as modules of text that plain Python can run, too."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial

from any_program import Case
from dace_plain import HEAD
from dace_random_odd import INNER, ODD, TYPES, write_lines, write_tasklets
from dace_random_rows import ROWS, TASKLETS
from dace_random_statements import block
from dace_random_values import Writer

_KINDS = {
    "dace arrays": ("array", "array", "array", "element", "temporary", "loop"),
    "dace maps": ("map", "map", "map", "map", "array", "loop"),
    "dace loops": ("loop", "loop", "array", "element", "element", "number", "branch", "while"),
    "dace sums": ("reduction", "reduction", "reduction", "array", "loop", "number"),
    "dace calls": ("array", "element", "map", "loop", "branch", "reduction"),
    "dace mixed": ("array", "element", "number", "temporary", "reduction", "branch", "loop",
                   "while", "map", "map"),
}  # fmt: skip
_CONSTRUCTS = {"dace odd": ODD, "dace types": TYPES, "dace rows": ROWS, "dace tasklets": TASKLETS}
_SHAPES = {"u": "[N]", "v": "[N]", "w": "[N]", "x": "[M]", "A": "[N, M]", "B": "[N, M]",
           "C": "[N, M, 3]", "D": "[M, M]", "g": "[N]", "h": "[N]", "f": "[N]", "b": "[N]",
           "k": "[N]"}  # fmt: skip
_KINDS_OF = {"g": "int64", "h": "int32", "f": "float32", "b": "bool", "k": "int64"}


def write_odd(feature: str, seed: int) -> Case:
    """Return a program with rare constructs."""
    r = random.Random(f"{feature}/{seed}")
    of = _CONSTRUCTS[feature]
    lines, labels = write_tasklets(r) if of is TASKLETS else write_lines(r, of)
    if r.random() < 0.2:
        lines.append("return u + v")
    return Case(feature, seed, _module(lines, r, False), tuple(dict.fromkeys(labels)))


def write(feature: str, seed: int) -> Case:
    """Return a program of a feature."""
    r = random.Random(f"{feature}/{seed}")
    calls = feature == "dace calls"
    sizes = r.choice((("n",), ("n",), ("k0",), ("n", "k0"), ("n", "K"))) if calls else ("n",)
    w = Writer(r, sizes)
    if "k0" in sizes:
        w.note("symbol")
    lines = block(w, _KINDS[feature], 4 if feature != "dace mixed" else 5)
    if w.numbers and r.random() < 0.5:
        w.note("returned")
        lines.append(f"return {', '.join(w.numbers[:2])}")
    elif r.random() < 0.2:
        w.note("returned array")
        lines.append("return u + v")
    return Case(feature, seed, _module(lines, r, calls), tuple(dict.fromkeys(w.labels)))


def _module(lines: list[str], r: random.Random, several: bool) -> str:
    """Return the text of a module with arguments for its program."""
    body = "\n".join(f"    {line}" for line in lines)
    used = [n for n in _SHAPES if re.search(rf"\b{n}\b", body)] or ["u"]
    if re.search(r"\bM\b", body) and not any("M" in _SHAPES[n] for n in used):
        used.append("x")  # whose size it is
    parts = [f"{n}: dace.{_KINDS_OF.get(n, 'float64')}{_SHAPES[n]}" for n in used]
    numbers = [(n, kind) for n, kind in (("c", "float64"), ("n", "int64"))
               if re.search(rf"\b{n}\b", body)]  # fmt: skip
    parts += [f"{n}: dace.{kind}" for n, kind in numbers]
    values = [_value(k, n) for k, n in enumerate(used)]
    values += [{"c": str(r.choice((0.5, -0.25, 1.5))), "n": "count"}[n] for n, _ in numbers]
    many = r.randint(6, 9)
    state = {"rows": many, "columns": r.randint(5, many), "count": r.choice((2, 3, 4, 1, 0))}
    head = [f"{n} = {v}" for n, v in state.items()]
    head += [f"K = {r.randint(0, 3)}"] if re.search(r"\bK\b", body) else []
    symbols = ""
    if re.search(r"\bk0\b", body):
        head += ['k0 = dace.symbol("k0", dace.int64)']
        symbols = f'\n\ndef symbols():\n    return {{"k0": {r.choice(("count", "2", "1", "3"))}}}\n'
    inner = re.search(r"\b(bump|mixed|largest)\(", body)
    head += ['L = dace.symbol("L", dace.int64)'] if inner else []
    text = HEAD + "\n".join(head) + "\n" + _MAKERS + (INNER if inner else "")
    text += f"\n\n@cpufree.dace.persistent\n@dace.program\ndef p({', '.join(parts)}):\n{body}\n"
    text += f"\n\ndef arguments():\n    return ({', '.join(values)},)\n" + symbols
    return text + _between(r, "K =" in text) if several and r.random() < 0.5 else text


def _value(k: int, name: str) -> str:
    """Return what makes the k-th argument."""
    if name == "k":
        return "wholes()"
    made = f"floats({k}, {_SHAPES[name][1:-1]})"
    if name == "b":
        return f"{made} > 0.0"
    return f"({made} * 4).astype(np.{_KINDS_OF[name]})" if name in _KINDS_OF else made


_MAKERS = """

def floats(seed, *names):
    shape = [{"N": rows, "M": columns, "3": 3}[str(n)] for n in names]
    return np.random.default_rng(seed).integers(-8, 9, shape) * 0.25


def wholes():
    return np.random.default_rng(9).integers(0, rows, rows)
"""


def _between(r: random.Random, constant: bool) -> str:
    """Return what changes between two calls: sizes, a number, or a constant of the module."""
    changes = ["rows, columns = rows + 3, columns + 1", "count = (count + 2) % 5"]
    if constant:
        changes = ["K = (K + 1) % 4"]
    chosen = r.sample(changes, r.randint(1, len(changes)))
    inner = "\n".join(f"    {line}" for line in chosen)
    return f"\n\ndef between():\n    global rows, columns, count, K\n{inner}\n"


DACE: dict[str, Callable[[int], Case]] = {
    **{name: partial(write, name) for name in _KINDS},
    **{name: partial(write_odd, name) for name in _CONSTRUCTS},
}
"""Generators by feature."""
