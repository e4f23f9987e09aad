"""Programs that call NumPy's functions of fields: differences, gradients, padding, products."""

from __future__ import annotations

import random

from any_program import Case, module_text

# Holes: x for an array of u's shape, axis, s for a number, w for a width.
_CONSTRUCTS = {
    "diff": ("r = np.diff({x}, axis={axis})", "r = np.diff({x})", "r = np.diff({x}, 2, {axis})",
             "u[1:] += np.diff({x}, axis=0)", "u[:, :-1] -= np.diff({x}, n=1)"),
    "gradient": ("r = np.gradient({x})", "r = np.gradient({x}, {s}, axis={axis})",
                 "gx, gy = np.gradient({x}, {s}, 0.25)\nr = gx * gy",
                 "r = np.gradient({x}, axis={axis}, edge_order=2)", "r = np.gradient({x}, {s})",
                 "u -= 0.1 * np.gradient({x}, {axis} + 2.5, axis={axis}, edge_order=2)",
                 "r = np.gradient({x}, axis=({axis},))"),
    "round": ("r = np.round({x})", "u[:] = np.round({x}, 2)", "r = np.around({x}, -1)",
              "r = np.round(np.max({x}), 1)", "r = np.round({x}, decimals=3)"),
    "pad": ("r = np.pad({x}, {w})", "r = np.pad({x}, {w}, mode='edge')",
            "r = np.pad({x}, {w}, 'wrap')", "r = np.pad({x}, {w}, constant_values={s})",
            "q = np.pad({x}, 1, mode='edge')\nu[:] = 0.25 * (q[2:, 1:-1] + q[:-2, 1:-1] + "
            "q[1:-1, 2:] + q[1:-1, :-2])"),
    "roll": ("r = np.roll({x}, (1, -2), axis=(0, 1))", "u[:] = np.roll({x}, 1, axis=(0, 1))",
             "r = np.roll({x}, (1, 2), axis=(1, {axis}))"),
    "product": ("r = np.vdot({x}, {x})", "r = np.dot(u[:, 0], v[:, 1])", "r = np.inner(u[0], v[1])",
                "r = np.linalg.norm({x})", "r = np.einsum('ij,ij->', {x}, {x})",
                "r = np.einsum('ij,ij->ij', {x}, {x})", "r = np.einsum('ij,ij->{ij}', {x}, {x})"),
    "in between": ("u += {s}", "v[1:] = {x}[:-1]", "u, v = v, u", "u *= 0.5"),
    "refused": ("r = np.dot(u, v)", "r = np.pad(u, 1, mode='reflect')", "r = np.pad(u, (1, 2, 3))",
                "r = np.gradient(u, np.arange(7.0), axis=0)", "r = np.einsum('ij,jk->ik', u, v)",
                "r = np.diff(u, axis=3)", "r = np.gradient(u, 1.0, 2.0, 3.0)"),
}  # fmt: skip
_WEIGHTS = {"refused": 1}
_ARRAYS = ("u", "v", "2.0 * u", "(u + v)", "u.copy()", "np.abs(v)")
_NUMBERS = ("1.5", "2", "c", "np.float32(0.5)")
_WIDTHS = ("1", "(1, 2)", "((1, 2), (0, 1))", "((2, 0), (1, 1))", "2")


def write_fields(seed: int) -> Case:
    """Return a program that calls NumPy's functions of fields."""
    r = random.Random(f"fields/{seed}")
    labels, lines = [], ["r = 0"]
    axis = str(r.choice((0, 1, -1)))
    for _ in range(r.choice((1, 2, 3))):
        weights = [_WEIGHTS.get(name, 3) for name in _CONSTRUCTS]
        (label,) = r.choices(list(_CONSTRUCTS), weights)
        labels.append(label)
        text = r.choice(_CONSTRUCTS[label]).replace("{axis}", axis)
        for hole, choices in (("{x}", _ARRAYS), ("{s}", _NUMBERS), ("{w}", _WIDTHS)):
            while hole in text:
                text = text.replace(hole, r.choice(choices), 1)
        lines += text.replace("{ij}", r.choice("ij")).splitlines()
    if r.random() < 0.4:
        labels.append("in a loop")
        lines = [lines[0], f"for turn in range({r.choice((2, 3))}):"] + [
            f"    {line}" for line in lines[1:]
        ]
    kind = r.choice(("float64", "float64", "float32", "int64"))
    made = f"(3 * np.random.default_rng({seed}).standard_normal((7, 5))).astype(np.{kind})"
    lines.append("return r, u, v")
    text = module_text(lines, f"{made}, np.ones((7, 5), np.{kind}), 1.5", "u, v, c")
    return Case("fields", seed, text, tuple(dict.fromkeys(labels)))
