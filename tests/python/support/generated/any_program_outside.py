"""Programs whose values come from outside: globals, closures, lists, objects, overlaps."""

from __future__ import annotations

import random

from any_program import HEAD, Case

_GLOBALS = {
    "number": ("X = 2.0", "X = 5.0", ("u *= X", "u += X * v", "if X > 3.0:\n    u += 1.0")),
    "whole number": ("X = 2", "X = 4", ("for t in range(X):\n    u += 1.0", "u[X - 2] = 7.0",
                     "u *= X")),
    "type of a number": ("X = 2", "X = np.float32(2.5)", ("return u * X", "u += X")),
    "array": ("X = np.ones(4)", "X = np.arange(4.0)", ("u += X", "u *= X[1]", "X += u",
              "X[0] = 9.0", "return X", "v[:] = X")),
    "array's values": ("X = np.ones(4)", "X[1] = 7.0", ("u += X", "u *= X[1]", "y = X\ny += u",
                       "for t in range(2):\n    u += X")),
    "list": ("X = [1.0, 2.0]", "X.append(3.0)", ("u += X[-1]", "for q in X:\n    u += q",
             "u *= len(X)")),
    "list of arrays": ("X = [np.ones(4)]", "X[0][1] = 4.0", ("u += X[0]", "X[0] += u",
                       "for q in X:\n    q += u")),
    "dict": ("X = {'a': 1.0}", "X['a'] = 3.0", ("u += X['a']", "u *= X.get('a')")),
    "object": ("class Box:\n    pass\n\n\nX = Box()\nX.u, X.n = np.ones(4), 2",
               "X.n, X.u = 4, np.zeros(4)",
               ("u += X.u", "u *= X.n", "X.u += u", "X.u[0] = 8.0", "X.n = 3",
               "y = X.u\nfor t in range(2):\n    y += 1.0")),
    "string": ("X = 'fast'", "X = 'slow'", ("if X == 'fast':\n    u += 1.0\nelse:\n    u += 5.0",)),
    "program": ("@cpufree.program\ndef X(a):\n    a += 1.0\n\n\n"
                "@cpufree.program\ndef Y(a):\n    a *= 3.0",
                "X = Y", ("X(u)", "X(v)\nu += v")),
    "none": ("X = None", "X = 2.0", ("if X is None:\n    u += 1.0\nelse:\n    u += X",
             "u += 1.0 if X is None else 4.0")),
    "function": ("X = np.sqrt", "X = np.square", ("u[:] = X(u)", "u += X(4.0)")),
}  # fmt: skip
_ARGUMENTS = {
    "list": ("[np.zeros(4), np.ones(4)]", ("a[0][1] = 3.0", "for q in a:\n    q += 1.0",
             "u += a[1]", "x = a[0]\nx += u", "return a", "return a[1]", "a[0] = u",
             "a.append(u)")),
    "tuple": ("(np.zeros(4), np.ones(4))", ("a[0][1] = 3.0", "x, y = a\nx += y", "u += a[1]",
              "return a", "return a[0]", "for q in a:\n    q *= 2.0")),
    "dict": ("{'x': np.ones(4), 'k': 2}", ("a['x'] += 1.0", "u += a['x']",
             "x = a['x']\nx[0] = 4.0", "u *= a['k']", "return a['x']", "a['k'] = 3")),
    "numbers": ("(1.0, 2, True)", ("u += a[0]", "for q in a:\n    u += q", "u *= a[1]",
                "return a", "return a[2]")),
    "text": ("'fast'", ("if a == 'fast':\n    u += 1.0", "return a", "u += len(a)")),
    "none": ("None", ("if a is None:\n    u += 1.0", "return a", "u += a", "a = u\na += 1.0")),
    "type": ("np.float32", ("u += np.ones(4, a)", "return u.astype(a)", "u += a(0.1)")),
    "slice": ("slice(1, 3)", ("u[a] += 1.0", "return u[a]", "u[a] = v[a]")),
    "object": ("Box()", ("a.u += 1.0", "u += a.u", "x = a.u\nfor t in range(2):\n    x += 1.0",
               "a.n = 3", "u *= a.n", "return a.u", "a.u = u")),
    "zero dimensions": ("np.array(2.0)", ("u += a", "a += 1.0", "return a", "return a * u",
                        "a[...] = 5.0")),
    "view of u": ("X[1:]", ("a += 1.0", "u[0] = a[-1]", "u[:3] += a", "return a")),
    "u again": ("X", ("a += 1.0", "u += a", "a[0] = 3.0", "return a is u", "u[1:] += a[:-1]",
                "return a")),
    "u backwards": ("X[::-1]", ("a += u", "u += a", "return a + u")),
    "read only": ("np.broadcast_to(np.ones(1), (4,))", ("u += a", "a += u", "return a + u",
                  "a = a + 1.0\nu += a")),
    "itself": ("np.lib.stride_tricks.as_strided(np.ones(5), (4,), (0,))", ("u += a", "a += 1.0",
               "a[1:] = u[1:]", "return a + 1.0")),
    "steps": ("np.arange(8.0)[::2]", ("a += 1.0", "u += a", "a[0] = 3.0", "return a",
              "return a[1:]", "x = a\na = u + a\nx += a")),
    "columns": ("np.arange(12.0).reshape(4, 3)[:, 1]", ("a += 1.0", "u += a", "return a",
                "a[:] = u")),
    "whole of NumPy": ("np.int32(3)", ("u += a", "for t in range(a):\n    u += 1.0", "u[a] = 1.0",
                       "return a", "return a + 1")),
    "subclass": ("np.ma.masked_array(np.ones(4), [0, 1, 0, 0])", ("u += a", "return a + u")),
    "program": ("other", ("a(u)", "u += a(v)", "return a")),
    "plain function": ("plain", ("a(u)", "u += a(v)")),
    "large number": ("2**70", ("u += a", "return a", "return a % 7", "u[0] = a")),
    "big-endian": ("np.ones(4, '>f8')", ("u += a", "a += 1.0")),
    "complex": ("np.ones(4, complex)", ("u += a.real", "a += 1.0", "return a * u")),
    "no rows": ("np.zeros(0)", ("u += np.sum(a)", "a += 1.0", "return a")),
}  # fmt: skip
_CLOSURE = """def made():
    factor = {first}

    @cpufree.program
    def p(u, v):
        {line}
        return u

    {after}
    return p


p = made()
"""
_CLOSURES = (
    ("2.0", "u *= factor", "pass"), ("2.0", "u *= factor", "factor = 5.0"), ("None",
    "u += 1.0 if factor is None else 4.0", "factor = 1.0"),
    ("np.ones(4)", "u += factor", "factor[0] = 3.0"), ("np.ones(4)", "factor += u", "pass"),
    ("np.ones(4)", "factor[1] = 9.0", "pass"),
    ("[1.0, 2.0]", "u += factor[1]", "factor[1] = 7.0"), ("p", "factor(u, v)", "pass"), ("3",
    "factor = 2\n        u += factor", "pass"),
    ("3", "nonlocal factor\n        factor = 2", "pass"),
)  # fmt: skip
_WRAPPED = """def twice(f):
    @functools.wraps(f)
    def both(*given):
        f(*given)
        return f(*given)

    return both


{decorators}
def p(u, v):
    u += 1.0
    return u
"""
_ORDERS = ("@cpufree.program\n@twice", "@cpufree.program\n@functools.lru_cache",
           "@cpufree.program\n@cpufree.program",
           "@cpufree.program\n@(lambda f: f)", "@cpufree.program\n@functools.partial")  # fmt: skip
_MADE = """class Box:
    def __init__(self):
        self.u, self.n = np.ones(4), 2


X = np.arange(4.0)


@cpufree.program
def other(a):
    a *= 2.0
    return 1.0


def plain(a):
    a += 1.0
    return 1.0
"""
_ARRAYS = "def arguments():\n    return np.arange(4.0), np.full(4, 0.5)\n"


def _indented(line: str) -> str:
    return "".join(f"    {part}\n" for part in line.splitlines())


def write_outside(seed: int) -> Case:
    """Return a program whose values come from outside."""
    r = random.Random(f"outside/{seed}")
    way = r.choice(("global", "global", "argument", "argument", "argument", "closure", "wrapped"))
    if way == "global":
        kind = r.choice(list(_GLOBALS))
        first, change, lines = _GLOBALS[kind]
        line, result = r.choice(lines), r.choice(("", "return u", "return u + 1.0"))
        body = f"@cpufree.program\ndef p(u, v):\n{_indented(line)}{_indented(result)}"
        between = f"def between():\n    global X\n    {change}\n"
        order = [first, body] if r.random() < 0.85 else [body, first]
        parts, labels = [HEAD, *order, _ARRAYS, between], ["global", f"global {kind}"]
    elif way == "argument":
        kind = r.choice(list(_ARGUMENTS))
        value, lines = _ARGUMENTS[kind]
        body = f"@cpufree.program\ndef p(u, v, a):\n{_indented(r.choice(lines))}"
        given = (
            "def arguments():\n    global X\n    X = np.arange(4.0)\n"
            f"    return X, np.full(4, 0.5), {value}\n"
        )
        parts, labels = [HEAD, _MADE, body, given], ["argument", f"argument {kind}"]
    elif way == "closure":
        first, line, after = r.choice(_CLOSURES)
        parts = [HEAD, _CLOSURE.format(first=first, line=line, after=after), _ARRAYS]
        if first == "p":
            other = "@cpufree.program\ndef p(u, v):\n    u += v"
            parts.insert(1, other)
        labels = ["closure"]
    else:
        wrapped = _WRAPPED.format(decorators=r.choice(_ORDERS))
        parts, labels = ["import functools\n" + HEAD, wrapped, _ARRAYS], ["wrapped"]
    return Case("outside", seed, "\n\n".join(parts), tuple(labels))
