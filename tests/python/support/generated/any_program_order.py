"""Programs whose statements have several operands or targets, some of which write."""

from __future__ import annotations

import random
import re

from any_program import Case, module_text

_BEFORE = """@cpufree.program
def bump(a):
    a += 1.0
    return 1.0


@cpufree.program
def grow(a):
    a *= 2.0
    return a


@cpufree.program
def fresh(a):
    a[0] += 3.0
    return a + 1.0


@cpufree.program
def count(a):
    a[1] += 1.0
    return 2


@cpufree.program
def mix(a, b, c=1.0):
    a += c
    return a + b


@cpufree.program
def scaled(a, c):
    return c * a


@cpufree.program
def pair(a):
    a -= 1.0
    return a, a + 1.0
"""
# Holes: x for an array, s for a number, i for a whole number.
_CONSTRUCTS = {
    "operator": ("r = {x} + {x}", "r = {x} * {s}", "r = {s} - {x}", "r = {x} - {x} * {x}",
                 "r = {s} + {s}",
                 "r = ({x} + {s}) * ({x} - {s})", "r = -{x} + {x}", "r = {x} > {x}"),
    "function": ("r = np.maximum({x}, {x})", "r = np.where({x} > {s}, {x}, {x})",
                 "r = np.abs({x}) + {x}",
                 "r = np.clip({x}, {s}, 5.0)", "r = np.minimum({s}, {x})",
                 "r = np.roll({x}, 1, 0) + {x}"),
    "number function": ("r = min({s}, {s})", "r = max({s}, {s}) + {s}", "r = float({s}) + {s}",
                        "r = abs({s}) * {s}"),
    "condition": ("r = {s} < {s} < {s}", "r = {s} > 1.0 and {s} > 0.0",
                  "r = {s} > 1.0 or {s} > 0.0",
                  "r = not {s}", "r = {s} or {s}", "r = {s} and {s}",
                  "r = {x} if {s} > 1.0 else {x}",
                  "r = {s} if {s} > 2.0 else {s}"),
    "tuple": ("r = ({x}, {x})", "r, q = {x}, {x}", "r = ({s}, {x}, {s})", "r = [{x}, {s}]",
              "r, q = {s}, {s}",
              "(r, q), z = ({x}, {s}), {x}", "r, q = pair({a})", "r = ({x}, {x})[{one}]"),
    "targets": ("r = q = {x}\nr[0] = 9.0", "u[0] = u[-1] = 0.5 * (u[0] + u[-1])",
                "u[:2] = v[1:3] = {x}[:2] + 1.0",
                "r = u[0] = {s}", "u[:] = v[:] = {x}", "r = q = {s}", "u[1:] = v[1:] = u[:-1]",
                "r = q = {x} + 1.0\nq += 1.0", "u[1:] = r = u[:-1] + v[1:]\nr[0] = 7.0"),
    "swap of parts": ("u[0], u[1] = u[1], u[0]", "u[:], v[:] = v, u",
                      "u[1:], v[1:] = v[1:] + 1.0, u[1:]",
                      "u[0], v[0] = {s}, {s}", "u, v = {x} + 1.0, {x}",
                      "u[:2], u[2:4] = u[2:4], u[:2]"),
    "in place": ("u += {x}", "u *= {s}", "u[1:] += {x}[1:]", "u[0] += {s}", "u[1:] -= u[:-1]",
                 "v -= {x} + {x}",
                 "u[{i}] += {s}", "u[1:] += u[1:] * {s}", "r = 1.0\nr += {s}",
                 "u[:-1] = u[1:] + {s}"),
    "store": ("u[0] = {s}", "u[:] = {x}", "u[1:] = {x}[:-1]", "u[{i}] = {s}", "u[:{i}] = {s}",
              "u[:] = {s}"),
    "call": ("r = mix({x}, {x})", "r = mix({x}, {x}, c={s})", "r = mix(b={x}, a={x})",
             "r = scaled({x}, {s})",
             "r = scaled(c={s}, a={x})", "r = mix({x} + 1.0, {x})",
             "r = scaled(scaled({x}, {s}), {s})",
             "mix({a}, {x})", "r = mix(u, u)", "r = grow({a}) + mix({a}, {a})"),
    "writing call": ("np.copyto({a}, {x})", "{a}.fill({s})", "np.add({x}, {x}, out={a})",
                     "np.copyto({a}[1:], {x}[:-1])",
                     "np.multiply({x}, {s}, {a})", "r = np.add({x}, {s}, out={a}) + {x}",
                     "np.add(u[1:], {s}, out=u[:-1])"),
    "loop": ("for d in ({x}, {x}):\n    u += d", "for d in (1.0 * u, 1.0 * u):\n    u += d",
             "for t in range({i}):\n    u += {s}", "for d in ({s}, {s}):\n    u += d",
             "k = 0\nwhile k < {i}:\n    k += 1\n    u += {s}", "for d in (u, v):\n    d += {x}",
             "for a, b in (({x}, {s}), ({x}, {s})):\n    v += a * b"),
    "branch": ("if {s} > 2.0:\n    u += {x}\nelse:\n    u -= {x}", "if {s} < {s}:\n    v += {s}",
               "if np.any({x} > 3.0):\n    u *= {s}"),
    "reduction": ("r = np.max({x}) + np.max({x})", "r = np.sum({x}) * {s}", "r = np.max({x} + {x})",
                  "r = {x}.max() - {x}.min()"),
}  # fmt: skip
_ARRAYS = ("u", "v", "2.0 * u", "(u + v)", "u.copy()", "v * 1.0", "np.maximum(u, v)", "(u - 1.0)")
_WRITING = ("grow({a})", "fresh({a})", "np.add({a}, 1.0, out={a})", "mix({a}, {a})", "pair({a})[0]",
            "np.negative({a}, out={a})", "np.multiply({a}, 2.0, {a})",
            "mix({a}, v, bump({a}))")  # fmt: skip
_NUMBERS = ("1.5", "np.max(u)", "u[0]", "v[-1]", "c", "np.sum(v)", "0.0")
_WRITING_NUMBERS = ("bump({a})", "bump({a})", "count({a})", "np.max(grow({a}))", "fresh({a})[1]")


class _Writer:
    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.labels: list[str] = []

    def fill(self, hole: re.Match[str]) -> str:
        """Return an operand for a hole."""
        kind, array = hole.group(1), self.r.choice(("u", "u", "v"))
        writes = self.r.random() < 0.4
        if kind == "a":
            return array
        if kind == "one":
            return self.r.choice("01")
        if kind == "i":
            return self.r.choice(("1", "2", "n", "count(u)"))
        pools = (_ARRAYS, _WRITING) if kind == "x" else (_NUMBERS, _WRITING_NUMBERS)
        pool: tuple[str, ...] = pools[writes]
        made = self.r.choice(pool).format(a=array)
        if writes:
            self.labels.append("out=" if "np." in made else "program")
        return made

    def statement(self) -> list[str]:
        kind = self.r.choice(list(_CONSTRUCTS))
        self.labels.append(kind)
        line = self.r.choice(_CONSTRUCTS[kind])
        return re.sub(r"\{(\w+)\}", self.fill, line).splitlines()


def write_order(seed: int) -> Case:
    """Return a program in which the order and the number of evaluations show."""
    r = random.Random(f"order/{seed}")
    w = _Writer(r)
    lines = w.statement()
    for _ in range(r.choice((0, 0, 0, 1))):
        lines += w.statement()
    if r.random() < 0.3:
        w.labels.append("in a loop")
        lines = [f"for turn in range({r.choice((1, 2, 3))}):", *(f"    {line}" for line in lines)]
    bound = [x for x in ("r", "q") if re.search(rf"\b{x}\b", "\n".join(lines))]
    lines.append(f"return {', '.join(['u', *bound])}")
    arguments = "np.arange(6.0), np.full(6, 0.5), 2, 1.25"
    text = module_text(lines, arguments, "u, v, n, c", _BEFORE)
    return Case("order", seed, text, tuple(dict.fromkeys(w.labels)))
