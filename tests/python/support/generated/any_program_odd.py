"""Broken and odd programs: what people write by mistake, or because Python has it."""

from __future__ import annotations

import random

from any_program import Case, module_text

_BEFORE = """G = np.arange(4.0)
TABLE = {"a": 1.0, "b": 2}
PAIRS = [1.0, 2.0]


class Box:
    size = 3


BOX = Box()
BOX.u = np.ones(4)


@cpufree.program
def helper(a, b=2.0):
    a += b
    return a


def plain(a):
    a += 1.0
    return 2.0
"""
_STATEMENTS = {
    "undefined": ("u += nothing", "nothing(u)", "np.nothing(u)", "u.nothing", "u.nothing()",
                  "math.nothing(1.0)", "r = np.linalg.nothing",
                  "nothing.u += 1.0", "r = G.nothing", "BOX.nothing"),
    "arguments": ("helper()", "helper(u, 1.0, 2.0)", "helper(u, d=1.0)", "helper(*[u])",
                  "helper(a=u)", "helper(**{'a': u})", "np.sqrt()",
                  "np.sqrt(u, v, u, v)", "np.maximum(u)", "r = np.where(u > 0)", "np.clip(u)",
                  "r = np.max(u, 1, 2, 3, 4, 5, 6)", "r = np.sum(u, where=u > 0)",
                  "r = np.max()", "r = np.zeros()", "r = np.zeros(4, 4, 4, 4)", "r = np.abs(x=u)",
                  "r = u.copy(1, 2)", "r = np.roll(u)", "r = range(4)", "u.fill()",
                  "r = u.astype()", "r = u.sum(5)", "r = np.add(u, v, wrong=1)", "helper(u, a=v)",
                  "plain(u)", "r = abs()", "r = abs(u, v)", "r = min(u[0])",
                  "r = max()", "r = int()", "r = float()", "r = float(u[0], 2)", "r = len(u)",
                  "r = len()", "r = len(n)"),
    "indices": ("u[None] += 1.0", "u[...] += 1.0", "u[()] += 1.0", "u[::-1] += 1.0",
                "r = u[::-1]", "u[4:1] = 0.0", "r = u[0:0]", "r = u[1:1:2]", "u[10:20] = 1.0",
                "u[-9:] = 1.0", "u[True] = 1.0", "u[[0, 1]] = 2.0", "u[u > 0] = 0.0",
                "u['a'] = 1.0", "u[1.0] = 1.0", "u[0][0] = 1.0", "u[:][:2] = 4.0",
                "r = u[:, None]", "u[..., 0] = 3.0", "u[0, ...] = 3.0", "u[::0] = 1.0",
                "u[::3] = 1.0", "u[n:n] = 1.0", "u[np.int64(1)] = 2.0", "u[10**30] = 1.0",
                "u[:10**30] = 2.0", "r = u[..., ...]", "r = u[{}]", "r = n[0]", "r = c[1:]",
                "u[slice(None)] = 5.0", "u[1:][0] = 7.0", "r = u[2**63:]", "u[-1:0:-1] = 1.0",
                "r = (u, v)[1:]", "r = (u, v)['a']", "r = (1, 2)[u]", "r = u[:, :]",
                "u[None, 0] = 1.0", "r = u[0:4:10**25]", "r = u[False]"),
    "numbers": ("r = 10**30", "u += 10**30", "u *= 10**400", "r = 1j", "u += 1j",
                "r = 2**200 % 7", "r = 1e999", "r = -1e999 * 0", "r = n // 0", "r = 0x7fff_ffff",
                "r = 1_000", "r = 5 // 2 * c",
                "r = n << 3", "r = n >> 1", "r = n ** n", "r = -n ** 2", "r = (-8) ** (1 / 3)",
                "r = True + True", "r = n @ n", "r = ~n", "r = ~True", "r = n & 1 | 2",
                "r = 7 % -3", "r = -7.5 // 2"),
    "statements": ("pass", "del r0", "del u[0]", "del u", "assert n > 0", "assert n > 99, 'no'",
                   "global G\nG = 1.0", "import math", "from math import pi",
                   "raise ValueError(n)", "return", "...", "'text'", "1", "u",
                   "u, v", "u == v", "if n: pass", "for t in (): u += 1.0",
                   "for t in []:\n    u += 1.0", "while False:\n    u += 1.0",
                   "while 0: pass\nelse:\n    u += 1.0",
                   "for t in range(2):\n    u += 1.0\nelse:\n    v += 1.0",
                   "for t in range(2):\n    break\nelse:\n    v += 1.0",
                   "for u in range(2):\n    pass", "for u[0] in range(3):\n    pass",
                   "for t in range(2):\n    return u", "if n > 1:\n    return u",
                   "for t in 'ab':\n    u += 1.0", "for t in {1: 2}:\n    u += t",
                   "for t in range(2):\n    t = 5\n    u += t", "for t in TABLE:\n    u += 1.0",
                   "for k, t in enumerate((1, 2)):\n    u += k * t",
                   "for a, b in zip((1, 2), (3, 4)):\n    u += a * b",
                   "for t in reversed(range(3)):\n    u += t", "for t in PAIRS:\n    u += t",
                   "for t in G:\n    u += t",
                   "with np.errstate(all='ignore'):\n    u += 1.0",
                   "try:\n    u += 1.0\nexcept ValueError:\n    u += 2.0",
                   "try:\n    u += 1.0\nfinally:\n    v += 1.0",
                   "match n:\n    case 2:\n        u += 1.0\n    case _:\n        u += 2.0",
                   "print(u)", "exit", "yield u", "r = yield", "await u", "type T = int",
                   "async def g():\n    pass", "class A:\n    pass",
                   "def g(x):\n    return x\nu += g(1.0)", "def g():\n    u[0] = 1.0\ng()",
                   "@cpufree.program\ndef g(a):\n    a += 1.0\ng(u)",
                   "def g():\n    nonlocal u\n    u = u + 1.0\ng()",
                   "if n > 1:\n    def g(x):\n        return x"),
    "expressions": ("r = lambda: 1.0", "r = (lambda x: x + 1.0)(c)", "r = [x for x in (1, 2)]",
                    "r = sum(x for x in (1, 2))", "r = {x: 1 for x in (1, 2)}", "r = {1, 2}",
                    "r = {'a': u}", "r = f'{n}'", "r = f'text'", "r = 'a' + 'b'", "r = 'a' * n",
                    "r = 'a' in 'abc'", "r = n in (1, 2)", "r = n not in (1, 2)",
                    "r = u in (u, v)", "r = u is u", "r = u is v", "r = n is None",
                    "r = n is not None", "r = 1 < n < 3", "r = 1 < n > 0 != c",
                    "r = c if n else n", "r = u if n > 1 else v",
                    "u += (y := 2.0)\nr = y", "if (y := np.max(u)) > 0:\n    u /= y",
                    "r = (y := n)", "r = not n", "r = not ()", "r = not None", "r = () or n",
                    "r = None or u", "r = n and u", "r = [1, 2] + [3]", "r = (1, 2) + (3,)",
                    "r = (1, 2) * 2", "r = (1, 2) == (1, 2)",
                    "r = (1, 2) < (1, 3)", "r = [u, v] == 1", "r = len((1, 2))", "r = len('abc')",
                    "r = len([u, v])", "r = sum((1, 2, 3))", "r = sum([u, v])",
                    "r = max((1, 5, 3))", "r = tuple((1, 2))", "r = list((1, 2))",
                    "r = isinstance(u, np.ndarray)", "r = isinstance(n, int)", "r = type(n)",
                    "r = type(u)", "r = str(n)", "r = repr(c)", "r = id(u)", "r = hash(n)",
                    "r = round(c)", "r = round(c, 1)", "r = divmod(n, 2)", "r = pow(n, 2)",
                    "r = pow(u, 2)", "r = sorted((3, 1))", "r = any((0, 1))",
                    "r = all((u[0], 1))", "r = complex(n)", "r = bool('')", "r = int('3')",
                    "r = int('x')",
                    "r = float('nan')", "r = np", "r = math.pi * c", "r = np.pi + np.e",
                    "r = np.inf", "r = np.nan", "r = np.newaxis", "r = helper", "r = Ellipsis",
                    "r = NotImplemented", "r = __name__", "r = G", "r = TABLE['a']",
                    "r = TABLE['z']", "r = TABLE.get('b')", "r = BOX.size", "r = BOX.u",
                    "r = PAIRS",
                    "r = PAIRS[0]", "r = *(1, 2), 3", "r = b'x'", "r = ''", "r = slice(1, 2)",
                    "r = ..."),
    "attributes": ("r = u.shape", "r = u.shape[0]", "r = u.ndim", "r = u.size", "r = u.dtype",
                   "r = u.T", "r = u.real", "r = u.flat", "r = u.base", "r = u.nbytes",
                   "r = u.itemsize", "r = u.dtype.name", "r = u.dtype.kind == 'f'",
                   "r = u.shape == (4,)", "u.shape = (2, 2)", "u.x = 1.0", "n.x = 1",
                   "r = n.real", "r = c.is_integer()", "r = n.bit_length()",
                   "r = u.reshape(2, 2)", "r = u.ravel()", "r = u.tolist()", "r = u.item(0)",
                   "r = u.sort()", "r = u.argmax()", "r = u.dot(v)", "r = u.cumsum()",
                   "r = u.view()", "r = u.T.T", "r = u.max(initial=0)", "r = u.copy().copy()",
                   "r = u.astype(np.float32).dtype", "r = u.__len__()", "r = u.__class__",
                   "r = np.float32.__name__", "r = (1, 2).count(1)", "r = [1].append(2)",
                   "r = 'a'.upper()", "r = u[0].shape", "r = u[1:].shape", "r = u.fill(0)",
                   "r = (u + 1).fill(0)", "r = (u + 1).sum()", "r = np.max(u).item()",
                   "r = u.strides", "r = u.flags",
                   "r = u.squeeze()", "r = u.swapaxes(0, 0)", "r = u.clip(0, 1)", "r = u.round()",
                   "r = u.prod()", "r = u.std()", "r = u.all()"),
    "functions": ("r = np.cumsum(u)", "r = np.dot(u, v)", "r = np.diff(u)",
                  "r = np.concatenate((u, v))", "r = np.stack((u, v))", "r = np.gradient(u)",
                  "r = np.argmax(u)", "r = np.sort(u)", "r = np.median(u)",
                  "r = np.array([1.0, 2.0])", "r = np.array(u)", "r = np.array([u[0], u[1]])",
                  "r = np.asarray(u)",
                  "r = np.asarray(c)", "r = np.arange(4)", "r = np.arange(n)",
                  "r = np.linspace(0, 1, 4)", "r = np.linspace(0, c, 4) * u", "r = np.eye(2)",
                  "r = np.random.rand(4)", "r = np.pad(u, 1)", "r = np.round(u)",
                  "r = np.shape(u)", "r = np.size(u)", "r = np.ndim(c)", "r = np.isclose(u, v)",
                  "r = np.allclose(u, v)",
                  "r = np.array_equal(u, v)", "r = np.var(u)", "r = np.std(u)", "r = np.prod(u)",
                  "r = np.nan_to_num(u)", "r = np.heaviside(u, 0.5)", "r = np.fmax(u, v)",
                  "r = np.fmin(u, v)", "r = np.square(u)", "r = np.mod(u, 2)",
                  "r = np.vectorize(abs)(u)", "r = np.add.reduce(u)", "r = np.add.at(u, 0, 1)",
                  "r = np.float16(1)",
                  "r = np.int8(3)", "r = np.uint8(3)", "r = np.complex128(1)",
                  "r = np.dtype(float)", "r = np.finfo(np.float32).eps",
                  "r = np.finfo(u.dtype).max", "r = np.iinfo(np.int32).max",
                  "r = np.result_type(u, 1.0)", "r = np.broadcast_to(u, (2, 4))",
                  "r = np.meshgrid(u, v)", "r = np.copy(u)", "r = np.empty(4) * 0",
                  "r = np.ones(u.shape)", "r = np.zeros((2, 4), dtype=u.dtype)",
                  "r = np.full((4,), n)", "r = math.gcd(n, 4)", "r = math.factorial(n)",
                  "r = math.hypot(c, c)", "r = math.isnan(c)", "r = math.isclose(c, 0.5)",
                  "r = math.ceil(c)", "r = np.ceil(c)", "r = np.trunc(u)", "r = np.sign(-0.0)",
                  "r = np.s_[1:2]", "np.seterr(all='ignore')"),
    "names": ("a: float = 2.0\nr = a", "a: float\nr = 1.0", "u: np.ndarray = v", "r0 += 1",
              "r0: int = 3", "(r) = 2.0", "[a, b] = u[0], u[1]\nr = a",
              "a, *b = (1, 2, 3)\nr = b", "*a, = (1, 2)\nr = a", "a = b = d = 1.0\nr = d",
              "a, (b, d) = 1.0, (2.0, 3.0)\nr = d", "np = 3\nr = np", "u.u = 1.0",
              "range = 3\nr = range", "len = 2\nr = len + 1",
              "abs = np.sqrt\nr = abs(v)", "n = 5\nu += n", "n += 1\nr = n", "c = u\nc += 1.0",
              "u = 3.0\nr = u", "u = None\nr = u", "v = (u, v)\nr = v", "p = u\nr = p",
              "helper = u\nr = helper", "x = y = u\nx[0] = 1.0\nr = y",
              "True_ = False\nr = True_", "G = u\nr = G", "u = u\nr = u", "_ = 2.0\nu += _",
              "φ = 2.0\nu *= φ\nr = φ", "int = float\nr = int(c)"),
    "equality": ("u @= v", "u <<= 1", "u += 'a'", "u += None", "u += [1, 2, 3, 4]",
                 "u += (1.0, 2.0, 3.0, 4.0)", "u[:] = [1, 2, 3, 4]", "u[:2] = (1.0, 2.0)",
                 "u[:] = PAIRS", "u += G", "u += PAIRS[0]", "u = u + [1, 2, 3, 4]", "c += u",
                 "n += c", "r0 += u", "u += u.shape", "u += BOX.u", "u += np", "u += helper",
                 "u ^= v", "u &= 1",
                 "r = u == None", "r = u == 'a'", "r = n == 'a'", "r = u != (1, 2)",
                 "r = None == None", "r = 'a' < 'b'", "r = 'a' < 1", "r = None < 1",
                 "r = helper == helper", "r = u.dtype == np.float64", "r = u.dtype == 'float64'",
                 "r = u.shape == v.shape", "r = np.float64 is float"),
}  # fmt: skip
_SIGNATURES = ("u, v, n, c", "u, v, n, c", "u, v, n, c", "u, v, n, c", "u, v, n, c",
               "u, v, n=2, c=0.5", "u, /, v, n, *, c=0.5", "u, v, *rest", "u, v, n, c, **more",
               "u: np.ndarray, v, n: int, c: float = 2.0")  # fmt: skip


def write_odd(seed: int) -> Case:
    """Return a program with an odd statement somewhere."""
    r = random.Random(f"odd/{seed}")
    kind = r.choice(list(_STATEMENTS))
    made = r.choice(_STATEMENTS[kind]).splitlines()
    labels = [kind]
    place = r.choice(("first", "first", "last", "loop", "branch", "region"))
    labels.append(place)
    # Some write `r`, which other places set before, so that something is returned.
    lines = ["r = r0 = 1", "u[0] += 1.0"]
    if place == "first":
        lines = ["r = r0 = 1", *made, "u[0] += 1.0"]
    elif place == "last":
        lines += made
    elif place == "loop":
        lines += [f"for turn in range({r.choice('n03')}):", *(f"    {x}" for x in made)]
    elif place == "branch":
        lines += ["if np.max(u) > 0.0:", *(f"    {x}" for x in made)]
    else:
        lines += ["for turn in range(n):", "    if turn == 1:", *(f"        {x}" for x in made)]
        lines += ["        break"] if r.random() < 0.3 else []
    if r.random() < 0.1:
        lines.insert(0, '"""A docstring."""')
    signature = r.choice(_SIGNATURES)
    if signature == "u, v, *rest":
        lines.insert(0, "n, c = rest")
    lines.append(r.choice(("return r", "return r", "return u", "return r, u")))
    arguments = "np.arange(4.0), np.full(4, 0.5), 2, 0.5"
    if signature.startswith("u, /"):
        arguments = "np.arange(4.0), np.full(4, 0.5), 2"
    return Case("odd", seed, module_text(lines, arguments, signature, _BEFORE), tuple(labels))
