"""Programs that make lists, go through them and let them grow."""

from __future__ import annotations

import random

from any_program import Case, module_text

# Holes: x for an array, n for a number.
_CONSTRUCTS = {
    "grows": (
        "a = [{n}]\nfor t in range(3):\n    a.append(2.0 * t)\nr = a",
        "a = []\nfor x in ({x}, v):\n    a.append(np.max(x))\nr = a",
        "a = [u]\nwhile len(a) < 3:\n    a.append(2.0 * a[-1])\nr = a[-1]",
        "a = [u, {x}]\na += [v]\na.extend([{n}, {n}])\nr = len(a), a[-1]\na[0][1:] *= 0.5",
        "a = [{n}]\nfor k in range(2):\n    a = a + [k]\nr = a",
        "a = [{x}]\nfor t in range(70):\n    a.append(t)\nr = len(a)",
    ),
    "in the run": (
        "a = [0]\nif np.max({x}) > c:\n    a.append(1)\nr = a",
        "a = [{n}]\nwhile np.max(u) < 20:\n    u *= 2.0\n    a.append(1)\nr = u[0]",
        "a = [{n}]\nfor t in range(n):\n    a.append(t)\nr = a",
        "a = []\nfor t in range(n):\n    if np.max(u) > 1:\n        a += [1]\n        break\nr = u",
    ),
    "two names": (
        "a = [u]\nb = a\nb.append(v)\nr = len(a)", "a = [1, 2]\nt = (a, a)\na.append(4)\nr = t",
        "a = [1]\nfor x in a:\n    if x < 3:\n        a.append(x + 1)\nr = a",
        "a = [{n}]\ngrow(a)\nr = a", "a = [np.max(u)]\nb = a\na.append({n})\nr = b",
        "a = [[1], [2]]\nb = a[0]\nb.append(3)\nr = a", "a = [1]\na.append(a)\nr = len(a)",
        "a = [1]\nb = [a]\na += [2]\nr = b",
        "a = [1]\nb = [2]\nif np.max(u) > c:\n    b = a\na.append(3)\nr = b",
        "a = [np.max(u)]\nb = [{n}]\nfor t in range(3):\n    a, b = b, a\na.append(3)\nr = b",
    ),
    "comprehension": (
        "r = [x[0] for x in (u, v) if len(x) > {n}]", "r = [k for k in range(4) if k % 2]",
        "r = [i * j for i in range(2) for j in (1, {n})]",
        "a = [2.0 * x for x in (u, v)]\nu *= 3\nr = a",
        "k = {n}\na = [k for k in range(3)]\nr = k, a", "r = [np.max(x) for x in [{x}, v]]",
        "a = [u[k] for k in range(3)]\nu[0] = 7.0\nr = a", "r = [x for x in u if x > 0]",
        "r = [G + k for k in range(2)]\nr = [r, [G for G in (1, 2)]]",
        "r = [f(u) for f in (grow_none, np.max)]",
    ),
    "given": (
        "gs[0][1:] += gs[1][:-1]\nr = gs", "for g in gs:\n    g *= {n}",
        "a, b = pair\na[1:] += b[:-1]",
        "r = [x + {n} for x in gs]", "h = gs\nh[1][0] = {n}\nr = h", "r = np.max(gs[0]), gs[1][2:]",
        "for t in range(n):\n    for g, h in zip(gs, pair):\n        g += 0.5 * h", "r = pair[1]",
        "gs[0], gs[1] = gs[1], gs[0]", "for t in range(2):\n    a, b = gs\n    a[:] = b + t",
        "gs.append(u)\nr = len(gs)",
        "x, y = pair\nfor t in range(n):\n    x, y = y, x\n    y += 1\nr = x",
        "r = np.roll(u, (1, 2)[len(gs) > 2])", "halve(gs)", "gs += [u]\nr = len(gs)",
    ),
    "gone through": (
        "for x in reversed([u, v]):\n    x += {n}\nr = 0", "r = [k for k in reversed(range(3))]",
        "for k, x in enumerate([u, {x}]):\n    v[k] = x[k]",
        "s = 0\nfor k in [1, {n}]:\n    s += k\nr = s",
        "r = 1\nfor a, b in zip([u, v], reversed([u, v])):\n    a[1:] += b[:-1]",
    ),
}  # fmt: skip
_WEIGHTS = {"two names": 0.3, "in the run": 0.6}
_BEFORE = """
G = 5


def grow(a):
    a.append(1)


def halve(arrays):
    for a in arrays:
        a *= 0.5


def grow_none(a):
    return len(a)
"""


def write_lists(seed: int) -> Case:
    """Return a program with lists."""
    r = random.Random(f"lists/{seed}")
    labels, lines = [], ["r = 0"]
    for _ in range(r.choice((1, 2))):
        (label,) = r.choices(list(_CONSTRUCTS), [_WEIGHTS.get(name, 3) for name in _CONSTRUCTS])
        labels.append(label)
        text = r.choice(_CONSTRUCTS[label])
        for hole, choices in (("{x}", ("u", "2.0 * u", "v[1:]")), ("{n}", ("1", "2.5", "c", "n"))):
            while hole in text:
                text = text.replace(hole, r.choice(choices), 1)
        lines += text.splitlines()
    if r.random() < 0.1:
        labels.append("in a branch")
        lines = [lines[0], "if np.sum(u > 0) > 2:", *(f"    {line}" for line in lines[1:])]
    lines.append("return r, u, v, gs, pair")
    made = f"np.random.default_rng({seed}).standard_normal({{}})"
    lists = f"[*{made.format((2, 7))}], (np.arange(7.0), np.ones(7))"
    given = f"{made.format(7)}, np.ones(7), 1.5, 3, {lists}"
    text = module_text(lines, given, "u, v, c, n, gs, pair", _BEFORE)
    return Case("lists", seed, text, tuple(dict.fromkeys(labels)))
