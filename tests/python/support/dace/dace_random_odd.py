"""Programs of DaCe with rare constructs: types, names that change, views, functions of NumPy."""

from __future__ import annotations

import random
import re

from dace_random_rows import TASKLETS

# Holes: s for a number, n for a whole number from 0 to 4, cond for a condition, x for N values.
ODD = {
    "loop variable": (
        "i = 5\nfor i in range({n}):\n    u[:] = u + i",
        "for i in range({n} + 1):\n    u[i] = i\nv[0] = i",
        "i = 1\nfor t in range(3):\n    u[t] += i\n    i = i + t\nv[1] = i",
        "for t in range(2):\n    for r in range(t, 3):\n        u[r] += t\n        v[t] -= r",
        "m = {n}\nfor t in range(m):\n    m = 1\n    u[t] += m",
    ),
    "counted": (
        "m = {n} + 1\nu[m] = {s}",
        "m = 0\nfor t in range(3):\n    m = m + 1\n    u[m] = {s}",
        "m = 0\nwhile m < 9:\n    m += 1\n    if m > {n}:\n        break\n    u[m] += {s}",
        "m = 2\nif {cond}:\n    m = 3\nu[m] = {s}",
        "m = 4 - {n}\nu[:m] = {s}\nv[m:] += c",
    ),
    "swap": (
        "a, d = {s}, {s}\na, d = d, a\nu[0] = a - d",
        "u[0], u[1] = u[1], u[0]",
        "a = u[0]\nu[0] = u[1]\nu[1] = a",
        "a = u[2]\nu[2] = {s}\nv[1] = a + u[2]",
        "a = np.sum(u)\nu[:] = u - a\nv[0] = a",
        "a = u[1] + c\nu[1] = 7.0\nv[:] = v + a",
        "q = u + 0.0\nu[:] = v\nv[:] = q",
        "q = np.copy(u)\nu[1:] = {x}[:-1]\nv[:] = q",
    ),
    "return": (
        "if {cond}:\n    return\nu[:] = {x} + 1.0",
        "if {cond}:\n    u[:] = {x}\n    return\nv[:] = u * 2.0",
    ),
    "view": (
        "q = u[1:-1]\nq[:] = q * 2.0",
        "q = A[2]\nq[:] = x + 1.0",
        "q = u[1:]\nu[2] = {s}\nv[0] = q[1]",
        "q = A[:, 1]\nq[:] = {x}\nu[:] = q + A[:, 1]",
        "q = u[::2]\nq[:] = q + 1.0",
        "q = np.reshape(A, (N * M,))\nq[3] = 5.0",
    ),
    "function": (
        "w[:] = np.roll({x}, 1)",
        "a = np.dot(u, v)\nw[0] = a",
        "if np.any(u > c):\n    v[0] = 1.0",
        "if np.all(u > c):\n    v[0] = 1.0",
        "w[1] = np.prod(x)",
        "w[1] = np.std(u)",
        "w[:] = np.clip({x}, -1.0, c)",
        "w[:] = np.flip(u)",
        "w[:] = np.cumsum(u)",
        "w[:] = np.sign({x})",
        "w[:] = np.floor({x}) + np.ceil({x})",
        "A[:] = np.outer(u, x)",
        "w[2] = np.argmax(u)",
        "w[:] = np.arange(N) * c",
        "w[:] = np.minimum(np.maximum({x}, c), 1.0)",
        "w[:] = np.exp(0.1 * {x})",
        "w[:] = np.sin({x}) * np.cos({x})",
        "w[:] = np.linspace(0.0, 1.0, N)",
        "w[:] = np.square({x})",
        "w[:] = np.where(np.logical_and(u > 0.0, v < c), {x}, -{x})",
        "w[:] = np.ones((N,)) * {s}",
        "w[:] = np.full((N,), c)",
        "w[0] = np.linalg.norm(u)",
        "w[:] = np.zeros_like(u) + {x}",
    ),
    "mask": ("u[u < 0.0] = 0.0", "u[u > c] = {s}", "u[v > 0.0] += 1.0"),
    "inner program": (
        "bump(u, {s})",
        "bump(v, c)\nu[:] = u + v",
        "for t in range({n}):\n    bump(u, 1.0)",
        "w[:] = mixed({x}, v)",
        "v[1] = largest(u)",
        "bump(A[1], 2.0)",
        "bump(u[1:4], 2.0)",
    ),
    "gather": (
        "u[k[1]] = {s}",
        "u[:] = v[k]",
        "for i in dace.map[0:N]:\n    u[i] = v[k[i]]",
        "u[0] = v[k[2]]",
        "for t in range({n}):\n    u[k[t]] += 1.0",
    ),
    "whole numbers": (
        "u[:] = {n} // 2",
        "u[1] = {n} % 3",
        "u[0] = -7 // 2 + {n}",
        "v[1] = ({n} - 3) % 4",
        "u[0] = {n} ** 2",
        "u[0] = 1 / ({n} + 1)",
        "v[0] = ({n} - 3) // 2",
        "u[2] = -{n}",
        "u[3] = abs({n} - 2)",
        "u[1] = max({n}, 2)",
        "u[2] = 2.0 ** {n}",
        "for t in range({n}):\n    u[t] += (t - 2) // 2 + (t - 2) % 3",
    ),
    "copy": (
        "u[1:] = u[:-1]",
        "u[:-1] = u[1:]",
        "A[:, 0] = A[:, 1]",
        "A[0, :] = A[1, :]",
        "A[1:, :] = A[:-1, :]",
        "u[:] = A[:, 2]",
        "A[:, 1] = u",
        "A[:] = x",
        "A[:] = 0",
        "A[2] = x",
        "A[1:, 1:] = A[:-1, :-1]",
        "x[:] = A[1]",
        "u[2:4] = u[0:2]",
        "A[:, :] = B",
        "B[1:3] = A[2:4]",
        "u[:2] = x[1:3]",
        "A[0] = A[N - 1]\nA[N - 1] = A[1]",
    ),
    "order": (
        "u[1:-1] = 0.9 * v[1:-1]\nv[1:-1] = u[2:] - u[:-2]\nu[0] = -u[1]",
        "u[3:5] = v[3:5] * 2.0\nv[1:5] = u[2:6]\nu[5] = u[4] * 0.5",
        "A[:, 0] = A[:, M - 1]\nB[:] = A * 2.0\nA[:, 0] = B[:, 1]",
        "v[0] = u[1]\nu[1] = v[2]\nv[2] = u[0]",
        "w[:] = u + v\nu[0] = w[1]\nw[1] = u[0] + v[1]\nv[1] = 0.0",
    ),
    "condition": (
        "if 0.0 < u[0] < 2.0:\n    v[1] = 5.0",
        "if not u[1] > c:\n    v[:] = u",
        "a = u[0] > c\nif a:\n    v[1] = 3.0",
        "a = 1.0\nif {cond}:\n    a = 2.0\nelif {cond}:\n    a = 3.0\nelse:\n    a = 4.0\nu[1] = a",
        "if {n} > 1:\n    if {cond}:\n        u[:] = {x}\n    else:\n        v[:] = {x}",
        "for t in range({n}):\n    if t == 1:\n        continue\n    if {cond}:\n        break\n"
        "    u[:] = u + t",
    ),
    "second name": (
        "a = u[0] + c\nd = a\na = a + 1.0\nv[0] = d\nv[1] = a",
        "a = c\nd = a\na += 1.0\nv[0] = d - a",
        "a = np.sum(u)\nd = a\nfor t in range({n}):\n    a = a * 0.5\nv[0] = d\nv[1] = a",
        "q = u * 2.0\nr = q + 0.0\nq[:] = v\nw[:] = r + q",
        "q = u * 2.0\nr = q\nr[1] = {s}\nw[:] = q",
        "a = {n}\nd = a\na = a + 1\nv[0] = d\nv[1] = a",
        "a = u[1]\nfor t in range({n}):\n    d = a\n    a = u[t] + d\n    v[t] = d - a",
    ),
    "size as a number": (
        "a = N / 2\nv[0] = a",
        "v[1] = N / 4 + M",
        "a = N // 2\nv[a] = {s}",
        "v[2] = (N - 1) / (M + 1)",
        "v[0] = N % 4 + (M - 9) // 2",
        "for t in range(N // 2):\n    v[t] = u[2 * t]",
        "for t in range(N - M, N):\n    v[t] = t",
    ),
    "number types": (
        "a = 0\na = a + u[1]\nv[0] = a",
        "a = 1\nfor t in range({n}):\n    a = a * 2\nu[0] = a",
        "a = {n} / 2\nu[1] = a",
        "a = 3\na += 1\nu[a] = 2.0",
        "a = 0.0\nfor t in range({n}):\n    a = max(a, u[t])\nv[0] = a",
        "a = True\nfor t in range({n}):\n    a = a and u[t] > c\nif a:\n    v[2] = 1.0",
    ),
}
TYPES = {
    "int64": (
        "g[:] = g // 2",
        "g[:] = g % 3",
        "g[:] = g * 2 - {n}",
        "u[:] = g / 2",
        "u[:] = g",
        "g[:] = u",
        "g[:] = np.abs(g)",
        "g[:] = g ** 2",
        "g[:] = g & 3",
        "g[:] = g >> 1",
        "g[:] = np.maximum(g, 2)",
        "v[0] = np.sum(g)",
        "g[1] = np.max(g)",
        "v[1] = np.mean(g)",
        "g[1] = -g[2] // 2",
        "g[0] = g[1] % 4",
        "u[0] = g[1] / 4",
        "g[2] += {n}",
        "g[:] = -g // 3 + k",
        "g[:] = np.where(g > k, g, -k)",
        "g[1:] -= g[:-1]",
        "g[:] = np.minimum(g, k) * 2",
        "x[0] = np.sum(g * k)",
        "for i in dace.map[0:N]:\n    g[i] = g[i] // 2 + i % 3",
        "for i in dace.map[0:N]:\n    u[i] = g[i]",
        "for i in dace.map[0:N]:\n    g[i] = (i - 3) // 2 + (i - 4) % 3",
        "for i in dace.map[0:N]:\n    u[i] = g[i] / 2 + i / 4",
        "a = 0\nfor t in range({n}):\n    a += g[t]\ng[0] = a",
        "g[:] = g * u",
    ),
    "int32": (
        "h[:] = h + 1",
        "h[:] = h * h",
        "g[:] = h",
        "h[:] = g",
        "u[:] = h * 0.5",
        "h[:] = h // 2",
        "h[1] = np.max(h)",
        "g[:] = g + h",
        "u[:] = h / 2",
    ),
    "float32": (
        "f[:] = u",
        "f[:] = f * np.float32(0.5)",
        "u[:] = f + u",
        "f[:] = f + f",
        "f[:] = np.sqrt(np.abs(f))",
        "f[1] = u[2]",
        "u[:] = f",
        "f[:] = np.maximum(f, np.float32(0.25))",
        "f[:] = f * 0.1",
        "f[:] = f + c",
        "f[1:] -= f[:-1]",
        "v[0] = np.max(f)",
        "for i in dace.map[0:N]:\n    f[i] = f[i] * f[i]",
        "for i in dace.map[0:N]:\n    f[i] = 0.1 * f[i] + c",
    ),
    "bool": (
        "b[:] = u > v",
        "u[:] = np.where(b, u, v)",
        "b[:] = np.logical_and(b, u > 0.0)",
        "b[:] = np.logical_not(b)",
        "b[:] = ~b",
        "b[:] = (u > 0.0) & (v < c)",
        "b[1] = u[0] > c",
        "if b[2]:\n    u[1] = 4.0",
        "for i in dace.map[0:N]:\n    if b[i]:\n        u[i] = v[i]",
        "for i in dace.map[0:N]:\n    b[i] = u[i] > v[i]",
        "b[:] = u == v",
        "u[:] = u * b",
        "v[0] = np.sum(b)",
    ),
}
INNER = """

@dace.program
def bump(q: dace.float64[L], by: dace.float64):
    q[:] = q + by


@dace.program
def mixed(q: dace.float64[L], r: dace.float64[L]):
    return 0.5 * q + r


@dace.program
def largest(q: dace.float64[L]):
    return np.max(q)
"""
_ARRAYS = ("u", "v", "2.0 * u", "(u + v)", "A[:, 1]", "v * c", "np.abs(u)")
_NUMBERS = ("1.5", "u[0]", "v[-1]", "c", "0.25", "x[1]", "A[2, 1]", "np.max(u)")
_CONDITIONS = (
    "c > 1.0",
    "u[0] > v[0]",
    "n > 2",
    "u[1] < 0.0 or v[1] < 0.0",
    "np.max(u) > c",
    "n == 1",
    "u[2] != 0.5",
)


def write_lines(r: random.Random, of: dict[str, tuple[str, ...]]) -> tuple[list[str], list[str]]:
    """Return the lines of a program with some of these constructs, and which ones they are."""
    lines, labels = [], []
    for _ in range(r.choice((1, 1, 2, 3))):
        label = r.choice(list(of))
        labels.append(label)
        lines += re.sub(
            r"\{(\w+)\}", lambda hole: _filled(r, hole), r.choice(of[label])
        ).splitlines()
    if r.random() < 0.2 and "return" not in labels:
        labels.append("in a loop")
        lines = [
            f"for turn in range({r.choice(('1', '2', '3', 'n'))}):",
            *(f"    {x}" for x in lines),
        ]
    return lines, labels


def write_tasklets(r: random.Random) -> tuple[list[str], list[str]]:
    """Return the lines of maps with tasklets, and which kinds they are."""
    lines, labels = [], []
    for _ in range(r.choice((1, 1, 2, 3))):
        label = r.choice(list(TASKLETS))
        labels.append(label)
        inside = [f"        {line}" for line in r.choice(TASKLETS[label]).splitlines()]
        lines += [
            f"for i in dace.map[{r.choice(('0:N', '1:N', '0:N:2'))}]:",
            "    with dace.tasklet:",
        ]
        lines += inside
    return lines, labels


def _filled(r: random.Random, hole: re.Match[str]) -> str:
    pools = {"s": _NUMBERS, "x": _ARRAYS, "cond": _CONDITIONS, "n": ("n", "2", "3", "1")}
    return r.choice(pools[hole.group(1)])
