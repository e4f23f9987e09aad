"""Programs that bind a name to a value of any kind before, in and after a region of any kind."""

from __future__ import annotations

import random

from any_program import Case, module_text

KINDS: dict[str, tuple[str, ...]] = {
    "None": ("None",),
    "str": ('"first"', '"second"'),
    "bool": ("True", "False"),
    "int": ("2", "3", "n"),
    "float": ("0.5", "2.5", "c"),
    "numpy number": ("np.float64(0.5)", "np.float32(1.5)", "np.int64(3)", "np.int32(2)",
                     "u.dtype.type(2)"),
    "run number": ("np.max(u)", "u[0]", "np.sum(v)", "np.min(v) * c"),
    "tuple": ("(1.0, 2.0)", "(2, 4)", "(np.max(u), 3.0)"),
    "arrays": ("(u, v)", "(v, u)", "(1.0 * u, v)"),
    "list": ("[1.0, 2.0]", "[u, v]", "[2]"),
    "nested": ("((1.0, 2.0), 3.0)", "((u, 1), (v, 2))"),
    "slice": ("slice(1, None)", "slice(0, 2)", "np.s_[1:3]"),
    "dtype": ("np.float32", "np.dtype('float64')", "u.dtype", "np.int64"),
    "program": ("double", "shift"),
    "view": ("u[1:]", "v[:-1]", "u[::2]", "v[1:4]", "u[:]"),
    "argument": ("u", "v"),
    "own": ("u + 1.0", "np.zeros(6)", "v.copy()", "2.0 * v", "np.ones_like(u)"),
    "global": ("G", "H"),
}  # fmt: skip
USES: dict[str, tuple[str, ...]] = {
    "None": ("if x is None:\n    u += 1.0\nelse:\n    u += 2.0", "v += 1.0 if x is None else 3.0"),
    "str": ('if x == "first":\n    u += 1.0\nelse:\n    u *= 2.0',
            'if x != "first":\n    v -= 1.0'),
    "bool": ("if x:\n    u += 1.0", "u += x", "if not x:\n    v *= 0.5"),
    "int": ("u += x", "v *= x + 1", "for q in range(x):\n    u += 1.0", "if x > 2:\n    v += 1.0"),
    "float": ("u += x", "v *= x", "if x > 1.0:\n    u += 1.0", "u[0] = x"),
    "numpy number": ("u += x", "v *= x", "u[1] = x", "v = v * x"),
    "run number": ("u += x", "v *= x", "if x > 1.0:\n    u += 1.0", "u[-1] = x"),
    "tuple": ("u += x[0]", "v *= x[1]", "for q in x:\n    u += q", "a, b = x\nu += a\nv -= b"),
    "arrays": ("u += x[1]", "x[0][0] = 9.0", "for q in x:\n    q += 1.0", "a, b = x\na[1] = 3.0",
               "r, s = x\nr += s"),
    "list": ("u += x[0]", "for q in x:\n    u += q"),
    "nested": ("u += x[0][0]", "(a, b), *_ = x\nu += a", "v += x[0][1]"),
    "slice": ("u[x] += 1.0", "v[x] = 2.0", "u[x] = v[x] * 2.0"),
    "dtype": ("v += u.astype(x)", "y = np.zeros(6, x)\nu += y", "u += np.ones(6, dtype=x)"),
    "program": ("x(u)", "u += x(v)"),
    "view": ("x += 1.0", "x[0] = 5.0", "u[0] = x[-1]", "x *= 0.5", "u += np.max(x)"),
    "argument": ("x += 1.0", "x[0] = 5.0", "u += x", "v = v + x", "x[1:] += x[:-1]"),
    "own": ("x += 1.0", "x[0] = 5.0", "u += x", "v[:] = x", "u = u + x"),
    "global": ("u += x", "v *= x[1]", "x[0] = 7.0", "x += 1.0"),
}  # fmt: skip
_ANY = ("y = x", "y = (x, 1)", "if x is not None:\n    u += 0.5", "z = y = x", "x = x")
_RETURNS = (
    "",
    "",
    "return x",
    "return u, x",
    "return x, x",
    "return np.max(u)",
    "return (x, 1), v",
)
_BEFORE = """G = np.arange(6.0)
H = np.full(6, 3.0)


@cpufree.program
def double(a):
    a *= 2.0
    return 1.0


@cpufree.program
def shift(a):
    a += 1.0
    return 3.0
"""
_LOOPS = {
    "for": "for t in range(n):",
    "for 0": "for t in range(0):",
    "for 1": "for t in range(1):",
    "for 2": "for t in range(2):",
    "for many": "for t in range(1, 6):",
    "for tuple": "for t in (0, 1, 2):",
    "for arrays": "for d in (u, v):",
    "while": "while k < n:",
    "while True": "while True:",
}
_BRANCHES = {
    "if known": "if n > 1:",
    "if False": "if n > 99:",
    "if run": "if u[0] > 0.0:",
    "if max": "if np.max(u) > c:",
    "if not": "if np.min(u) > 1e9:",
}
# Loops that go on while the name has a value, and the value that ends them.
_ENDS = {
    "None": ("while x is None:", "x = 1.0"),
    "str": ('while x == "first":', 'x = "second"'),
    "bool": ("while x:", "x = False"),
    "int": ("while x < 9:", "x = 10"),
    "float": ("while x < 9.0:", "x = 9.5"),
    "tuple": ("while x[0] < 9.0:", "x = (9.5, 1.0)"),
}
_REGIONS = (*_LOOPS, *_BRANCHES)


class _Writer:
    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.kind = r.choice(list(KINDS))
        self.labels = [self.kind]
        self.maybe_none = False

    def value(self) -> str:
        """Return a value, mostly of the kind of this program."""
        kind = self.kind
        if self.r.random() < 0.06:
            kind = self.r.choice(list(KINDS))
        return self.r.choice(KINDS[kind])

    def use(self) -> list[str]:
        if self.r.random() < 0.15:
            return self.r.choice(_ANY).splitlines()
        lines = self.r.choice(USES[self.kind]).splitlines()
        if self.maybe_none and self.r.random() < 0.8:
            return ["if x is not None:", *(f"    {line}" for line in lines)]
        return lines

    def bind(self) -> list[str]:
        if self.kind in ("int", "float", "run number") and self.r.random() < 0.3:
            return [self.r.choice(("x += 1", "x = x + 1", "x = 2 * x", "x = x + np.max(u)"))]
        if self.kind in ("own", "argument") and self.r.random() < 0.3:
            return [self.r.choice(("x = x + 1.0", "x = u + x", "x, v = v, x", "u, v = v, u"))]
        return [f"x = {self.value()}"]

    def some(self, chance: float, lines: list[str]) -> list[str]:
        return lines if self.r.random() < chance else []

    def inside(self, depth: int, in_loop: bool) -> list[str]:
        """Return the lines of a region."""
        lines = self.some(0.5, self.use())
        if in_loop and self.r.random() < 0.25:
            test = self.r.choice(("t == 1", "np.max(u) > 3.0", "u[0] > 1.0", "n > 2", "k > 1"))
            leave = self.r.choice(("break", "continue", "break", "u += 1.0"))
            self.labels.append(leave if leave != "u += 1.0" else "if in loop")
            extra = self.some(0.4, self.bind())
            lines += [f"if {test}:", *(f"    {line}" for line in [*extra, leave])]
        if depth and self.r.random() < 0.3:
            lines += self.region(depth - 1)
        lines += self.some(0.75, self.bind())
        lines += self.some(0.5, self.use())
        return lines or ["u += 1.0"]

    def region(self, depth: int) -> list[str]:
        """Return a loop or a branch with what is in it."""
        if self.kind in _ENDS and self.r.random() < 0.3:
            return self.until_set()
        name = self.r.choice(_REGIONS)
        self.labels.append(name)
        head = _LOOPS.get(name) or _BRANCHES[name]
        inner = self.inside(depth, name in _LOOPS)
        if name == "while":
            inner = ["k += 1", *inner]
        if name == "while True":
            inner = ["k += 1", "if k > n:", "    break", *inner]
        lines = [head, *(f"    {line}" for line in inner)]
        if name in _BRANCHES and self.r.random() < 0.5:
            self.labels.append("else")
            lines += ["else:", *(f"    {line}" for line in self.inside(0, False))]
        if name.startswith("while"):
            lines = ["k = 0", *lines]
        return lines

    def until_set(self) -> list[str]:
        """Return a loop that ends when the name gets another value."""
        self.labels.append("while name")
        head, end = _ENDS[self.kind]
        inner = ["k += 1", *self.some(0.6, self.use()), "if k > n:", f"    {end}"]
        return ["k = 0", head, *(f"    {line}" for line in inner)]


def write_names(seed: int) -> Case:
    """Return a program with a name of any kind in a region of any kind."""
    r = random.Random(f"names/{seed}")
    w = _Writer(r)
    first = r.choice(("None", "None", *(w.value() for _ in range(9)), "missing"))
    w.maybe_none = first == "None" and w.kind != "None"
    lines = [] if first == "missing" else [f"x = {first}"]
    lines += w.some(0.3, w.use())
    inner = r.random() < 0.15
    after = [*w.some(0.2, w.bind()), *w.some(0.6, w.use())]
    result = r.choice(_RETURNS)
    before, region = _BEFORE, w.region(1)
    if inner:
        w.labels.append("inner")
        body = [
            *lines,
            *region,
            r.choice(("return x", "return x, u", "return None", "return (x, 1)")),
        ]
        before += "\n\n@cpufree.program\ndef inner(u, v, n, c):\n"
        before += "".join(f"    {line}\n" for line in body)
        call = "x, u = inner(u, v, n, c)" if body[-1] == "return x, u" else "x = inner(u, v, n, c)"
        lines, region = [], [call]
    body = [*lines, *region, *after, *([result] if result else [])]
    n, sign = r.choice((0, 1, 2, 3, 5)), r.choice(("", "-"))
    arguments = f"np.arange(6.0) + {sign}0.5, np.arange(6.0)[::-1].copy(), {n}, 1.5"
    text = module_text(body, arguments, "u, v, n, c", before)
    return Case("names", seed, text, tuple(dict.fromkeys(w.labels)))
