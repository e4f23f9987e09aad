"""Programs that index arrays by the turn: forcings, snapshots, weights, sweeps over columns."""

from __future__ import annotations

import random

from any_program import Case, module_text

# Holes: i for a whole number of the run, x for an array of u's shape, s for a number.
# f and out have a time, then the axes of u; w and hist a time alone; r a time, then columns.
_CONSTRUCTS = {
    "forcing": ("u += f[{i}]", "u += 0.5 * f[{i}] * w[{i}]", "u[1:] -= f[{i}, 1:] * {s}",
                "u += np.maximum(f[{i}], f[{i} - 1])", "u[1:-1] = f[{i}][2:] - f[{i}][:-2]",
                "q = f[{i}]\nu += q\nq = f[{i} - 1]\nu -= q", "u += f[{i}] - f[0]"),
    "weights": ("u *= w[{i}]", "s = w[{i}] + w[-1]\nu += s", "u += w[{i}] * w[{i} - 2]",
                "if w[{i}] > 0:\n    u += 1", "u[0] = w[{i}]"),
    "snapshots": ("out[{i}] = u", "out[{i}] = {x}", "out[{i}, 1:] = u[1:] + {s}", "out[{i}] += u",
                  "out[{i} // 2] = {x}", "out[{i}] = out[{i} - 1] + {x}", "out[{i}, :, 0] = {s}",
                  "if {i} % 2 == 0:\n    out[{i}] = u", "out[{i}][1:] = f[{i}][:-1]",
                  "out[{i}] = f[{i} - 1]", "out[{i}, 1:] = out[{i}, :-1]"),
    "history": ("hist[{i}] = np.max(u)", "hist[{i}] = {s}", "hist[{i}] += 1.0",
                "hist[{i}] = hist[{i} - 1] + {s}", "hist[{i}] = w[{i}] * 2"),
    "largest": ("s = np.max(f[{i}])\nu += s", "s = np.sum(out[{i}])\nu += s * 0.1",
                "b = np.max(f[{i}], axis=1)\nu[:, 0] += b"),
    "stencil": ("u[1:-1] = 0.5 * (u[2:] + u[:-2])", "u[:] = np.roll(u, 1, 0) + f[{i}]",
                "u[1:] += out[{i}, :-1]", "u, v = v, u", "u = u + 0.1 * v"),
    "point": ("s = u[1, 2]\nu += s", "s = f[{i}, 1, 2]\nu -= s", "out[{i}, 1, 2] = {s}"),
    "bad": ("u += f[{i} + 4]", "out[{i} - 9] = u", "hist[{i} * 3] = 1.0", "u += f[{i} * 1.0]"),
}  # fmt: skip
_WEIGHTS = {"bad": 1}
_LOOPS = {
    "for": ("for t in range({n}):", ""),
    "for from": ("for t in range(1, {n}, 2):", ""),
    "downwards": ("for t in range({n} - 1, -1, -1):", ""),
    "while": ("t = 0\nwhile t < {n}:", "t += 1"),
}
_NUMBERS = ("1.5", "np.max(u)", "c", "t", "w[0]")


def write_turns(seed: int) -> Case:
    """Return a program that indexes arrays by the turn."""
    r = random.Random(f"turns/{seed}")
    labels, lines = [], []
    for _ in range(r.choice((1, 2, 3))):
        weights = [_WEIGHTS.get(name, 3) for name in _CONSTRUCTS]
        (label,) = r.choices(list(_CONSTRUCTS), weights)
        labels.append(label)
        text = r.choice(_CONSTRUCTS[label]).replace("{i}", "t")
        for hole, choices in (("{x}", ("u", "2.0 * u", "(u + v)", "v")), ("{s}", _NUMBERS)):
            while hole in text:
                text = text.replace(hole, r.choice(choices), 1)
        lines += text.splitlines()
    loop = r.choice(list(_LOOPS))
    labels.append(loop)
    head, tail = _LOOPS[loop]
    body = [*lines, tail] if tail else lines
    lines = [*head.replace("{n}", r.choice(("n", "4", "n - 1"))).splitlines()]
    lines += [f"    {line}" for line in body]
    kind = r.choice(("float64", "float64", "float32"))
    made = f"np.random.default_rng({seed}).standard_normal({{}}).astype(np.{kind})"
    shapes = "(7, 5)", "(7, 5)", "(4, 7, 5)", "(4, 7, 5)", "4", "4"
    arguments = ", ".join([*(made.format(shape) for shape in shapes), "4, 1.5"])
    lines.append("return u, v")
    text = module_text(lines, arguments, "u, v, f, out, w, hist, n, c")
    return Case("turns", seed, text, tuple(dict.fromkeys(labels)))
