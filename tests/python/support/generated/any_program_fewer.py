"""Programs that make arrays of fewer dimensions from arrays of more: sums along an axis, parts."""

from __future__ import annotations

import random

from any_program import Case, module_text

# Of each layout: arguments a (more dimensions) and b (fewer), the axis that b lacks, an index that
# gives b the dimensions of a, and indices of parts of a that have the dimensions of b.
_LAYOUTS = {
    "components first": ((3, 7, 5), (7, 5), 0, "[None]", ("[0]", "[1]", "[-1]")),
    "components last": ((7, 5, 3), (7, 5), 2, "[..., None]", ("[..., 0]", "[:, :, 1]")),
    "rows": ((7, 5), (7,), 1, "[:, None]", ("[:, 0]", "[:, -1]", "[:, 2]")),
    "columns": ((7, 5), (5,), 0, "[None]", ("[0]", "[-1]", "[3]")),
    "planes": ((4, 6, 5), (6, 5), 0, "", ("[0]", "[2]", "[-1]")),
    "middle": ((6, 3, 5), (6, 5), 1, "[:, None]", ("[:, 0]", "[:, 1]")),
    "long": ((40, 6), (6,), 0, "", ("[0]", "[33]")),
}
# Holes: a and b, axis, wide (the index), p for a part of a, f for a value of a's shape, x of b's.
_CONSTRUCTS = {
    "sum": ("b = np.sum({f}, axis={axis})", "b[...] = {f}.sum({axis})", "b += np.sum(a, {axis})"),
    "largest": ("b = np.max({f}, axis={axis})", "b[:] = {f}.min(axis={axis})",
                "b = np.amax(a, {axis}) - np.amin(a, {axis})"),
    "mean": ("b = np.mean({f}, axis={axis})", "a -= np.mean(a, axis={axis}, keepdims=True)",
             "b[:] = {f}.mean({axis})"),
    "keepdims": ("a /= 1.0 + np.max(np.abs(a), axis={axis}, keepdims=True)",
                 "r = np.sum({f}, axis={axis}, keepdims=True)", "r = np.sum({f}, keepdims=True)",
                 "r = np.max({f}, axis={axis}, keepdims=False)"),
    "truth": ("r = np.any({f} > 0.5, axis={axis})", "r = np.all({f} > 0, {axis})",
              "r = np.count_nonzero({f} > 0, axis={axis})",
              "r = np.where(np.any(a > 1, axis={axis}), {x}, 0.0)"),
    "parts": ("b[:] = a{p} + a{p}", "b = a{p} - 0.5 * a{p}", "a{p} = {x}", "a{p} += {x}",
              "r = a{p} * {x}", "b += a{p}", "r = 2 * a{p}", "a{p} -= a{p}"),
    "spread": ("a += {x}{wide}", "a[...] = {f} * b{wide}", "a -= 0.5 * b{wide}",
               "r = a * {x}{wide} + {f}"),
    "stencil": ("b[1:-1] = 0.5 * ({x}[2:] + {x}[:-2])", "b[:] = np.roll({x}, 1, 0) + {x}",
                "b[1:] += b[:-1]", "b[0] = b[-1]", "b = {x} + np.roll({x}, -1, axis=0)"),
    "branch": ("if np.max(b) > 1.0:\n    b *= 0.5", "s = np.sum({x})\nb -= s / 100.0"),
}  # fmt: skip


def write_fewer(seed: int) -> Case:
    """Return a program with arrays of more and of fewer dimensions."""
    r = random.Random(f"fewer/{seed}")
    layout = r.choice(list(_LAYOUTS))
    more, fewer, axis, wide, parts = _LAYOUTS[layout]
    labels, lines = [layout], []
    for _ in range(r.choice((1, 2, 3, 4))):
        label = r.choice(list(_CONSTRUCTS))
        labels.append(label)
        text = r.choice(_CONSTRUCTS[label]).replace("{axis}", str(axis - r.choice((0, len(more)))))
        while "{p}" in text:
            text = text.replace("{p}", r.choice(parts), 1)
        while "{f}" in text:
            text = text.replace("{f}", r.choice(("a", "2.0 * a", "a * a", "np.abs(a)")), 1)
        while "{x}" in text:
            text = text.replace("{x}", r.choice(("b", "(b + c)", "(2.0 * b)", "np.abs(b)")), 1)
        lines += text.replace("{wide}", wide).splitlines()
    if r.random() < 0.5:
        labels.append("in a loop")
        lines = [f"for turn in range({r.choice((2, 3))}):"] + [f"    {line}" for line in lines]
    kind = r.choice(("float64", "float64", "float32", "int64"))
    made = f"(3 * np.random.default_rng({seed}).standard_normal({{}})).astype(np.{kind})"
    arguments = f"{made.format(more)}, {made.format(fewer)}, 1.5"
    lines = ["r = 0", *lines, "return r, a, b"]
    return Case("fewer", seed, module_text(lines, arguments, "a, b, c"), tuple(labels))
