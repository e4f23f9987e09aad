"""Programs with plain helper functions, methods, enumerate, zip, slice objects and np.s_."""

from __future__ import annotations

import random

from any_program import Case, module_text

_BEFORE = """K = 2.0
INNER = np.s_[1:-1, 1:-1]
WEIGHTS = np.array([0.5, 0.25, 0.125])
SHIFTS = ((0, 1), (1, 0), (-1, 2))


def lap(a):
    return a[2:, 1:-1] + a[:-2, 1:-1] - 2 * a[1:-1, 1:-1]


def react(a, rate=0.1):
    a *= 1 - rate
    return K * np.max(a)


def pair(a, b):
    d = a - b
    return d, np.sum(d * b)


def pick(a, way):
    if way > 1:
        return a[0]
    return 2.0 * a[0]


def recursive(a, n):
    return recursive(a, n - 1) + a if n > 0 else a


def last(*many, **named):
    return many[-1]


class Model:
    rate = 0.25

    def step(self, a):
        a += self.rate

    @staticmethod
    def scaled(a, c):
        return c * a


MODEL = Model()
"""
_CONSTRUCTS = {
    "helper": ("u[1:-1, 1:-1] += 0.1 * lap({x})", "s = react(u)", "s = react({x} + 0.0, rate=c)",
               "d, s = pair({x}, {x})\nu += d", "u[0] = pick({x}, n)", "u = last({x}, u)",
               "u += recursive({x}, 2)", "u -= pair(u, v)[0]", "r = react(v) + react(v)"),
    "method": ("MODEL.step(u)", "u = MODEL.scaled({x}, 0.5)", "u += Model.scaled({x}, MODEL.rate)"),
    "enumerate": ("for k, x in enumerate((u, v)):\n    x += k",
                  "for k, w in enumerate(WEIGHTS):\n    u[k] *= w",
                  "for k, (dy, dx) in enumerate(SHIFTS, 1):\n"
                  "    v += k * np.roll(u, (dy, dx), (0, 1))",
                  "for k, w in enumerate([c, n, 2.0]):\n    v[:, k] = w"),
    "zip": ("for w, (dy, dx) in zip(WEIGHTS, SHIFTS):\n    v += w * np.roll(u, (dy, dx), (0, 1))",
            "for k, w in zip(range(2), (0.5, c)):\n    u[k] += w",
            "for a, b in zip((u, v), (v, u)):\n    a -= 0.5 * b",
            "for a, k in zip([u, v], range(5)):\n    a[k] = k"),
    "slices": ("u[INNER] *= 0.5", "mid = slice(1, -1)\nu[mid, mid] += v[mid, mid]",
               "left = np.s_[:, :-1]\nright = np.s_[:, 1:]\nu[left] += v[right]",
               "u[np.s_[0]] = 7", "v[INNER] = u[INNER] + 1",
               "at = (slice(None), 0)\nu[at] = c"),
    "choice": ("s = np.max(u)\nt = s if s > 1 else 2 * s\nv += t", "u += c if n > 1 else v",
               "s = u[0, 0] if np.sum(v) > 0 else c\nu -= s", "w = (u if n else v)\nw += 1"),
    "in between": ("u, v = v, u", "u += {x}", "v = 0.5 * {x}", "u[1:] = v[:-1]"),
}  # fmt: skip


def write_helpers(seed: int) -> Case:
    """Return a program with plain helpers, or what of Python's goes with them."""
    r = random.Random(f"helpers/{seed}")
    labels, lines = [], []
    for _ in range(r.choice((1, 2, 3))):
        label = r.choice(list(_CONSTRUCTS))
        labels.append(label)
        text = r.choice(_CONSTRUCTS[label])
        while "{x}" in text:
            text = text.replace("{x}", r.choice(("u", "v", "(u + v)", "2.0 * u")), 1)
        lines += text.splitlines()
    if r.random() < 0.5:
        labels.append("in a loop")
        lines = [f"for turn in range({r.choice((2, 3, 'n'))}):"] + [f"    {one}" for one in lines]
    made = f"np.random.default_rng({seed}).standard_normal((7, 5))"
    after = "" if r.random() < 0.7 else "def between():\n    global K\n    K = 3.0\n"
    lines.append("return u, v")
    text = module_text(lines, f"{made}, np.ones((7, 5)), 1.5, 2", "u, v, c, n", _BEFORE, after)
    return Case("helpers", seed, text, tuple(dict.fromkeys(labels)))
