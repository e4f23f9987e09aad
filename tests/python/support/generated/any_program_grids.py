"""Programs on several grids: coarse arrays from fine ones and back, cycles, lists of grids."""

from __future__ import annotations

import random

from any_program import Case, module_text

# Of each layout: shapes of three grids, a slice of fine points that coarse ones stand for, further
# slices of as many, a slice of coarse points, one of the same whose ends are free, and the ratio.
_LAYOUTS = {
    "points": ((17, 9, 5), "2:-2:2", ("1:-3:2", "3:-1:2", "2:-2:2"), "1:-1"),
    "cells": ((16, 8, 4), "::2", ("1::2", "::2"), ":"),
    "cells with ghosts": ((18, 10, 6), "1:-1:2", ("2::2", "1:-1:2", "0:-2:2"), "1:-1"),
    "thirds": ((18, 6, 2), "::3", ("1::3", "2::3"), ":"),
}
# Holes: f and c for a fine grid and the next coarser one (u, v, w by level), with rows and columns:
# {fine} and {near} for fine slices, {coarse} for coarse ones, {s} for a number.
_CONSTRUCTS = {
    "to coarse": (
        "{c}[{coarse}, {coarse}] = {s} * {f}[{fine}, {fine}]",
        "{c}[{coarse}, {coarse}] = 0.5 * ({f}[{near}, {fine}] + {f}[{fine}, {near}])",
        "{c}[{coarse}, {coarse}] -= {f}[{near}, {near}]",
        "r = {f}[{fine}, {fine}] - {f}[{near}, {near}]",
        "made = {f}[{fine}, {fine}] + {s} * {c}[{coarse}, {coarse}]\nr = made[0]",
    ),
    "averages": (
        "{c}[{coarse}, {coarse}] = 0.25 * ({f}[{fine}, {fine}] + {f}[{near}, {fine}]"
        " + {f}[{fine}, {near}] + {f}[{near}, {near}])",
    ),
    "to fine": (
        "{f}[{near}, {near}] += {s} * {c}[{coarse}, {coarse}]",
        "{f}[{fine}, {near}] = {c}[{coarse}, {coarse}] - {f}[{near}, {fine}]",
        "{f}[{near}, {fine}] *= {c}[{coarse}, {coarse}] > 0",
    ),
    "on one": (
        "{c}[1:-1, 1:-1] = 0.25 * ({c}[2:, 1:-1] + {c}[:-2, 1:-1]"
        " + {c}[1:-1, 2:] + {c}[1:-1, :-2])",
        "{c} += {s} * np.roll({c}, 1, axis=0)", "{c}[0] = {c}[-2]", "{f}[-1] = {f}[1]",
        "{c}[1:] -= 0.5 * {c}[:-1]", "q = 2.0 * {c}\n{c}[...] = q", "{f} *= 0.75",
        "q = {f}.copy()\n{f}, q = q, {f}\nr = q", "{c}[{s} > 1:, :] = {s}",
    ),
    "numbers": (
        "r = np.max(np.abs({c}))", "r = np.sum({f} > 0), np.min({c})",
        "if np.max({c}) > {s}:\n    {c} *= 0.5", "r = {c}[1:]", "r = {c}",
        "r = np.count_nonzero({c} > 0.5), len({c})",
    ),
    "helper": (
        "restrict({f}, {c})", "restrict({f}, {c})\n{f}[{near}, {near}] -= {c}[{coarse}, {coarse}]",
    ),
    "levels": (
        "grids = [u, v, w]\nfor k in range(2):\n    restrict(grids[k], grids[k + 1])",
        "for a, b in zip([u, v], [v, w]):\n    restrict(a, b)",
        "made = [np.zeros_like(x) for x in (u, v, w)]\nmade[0][...] = u\n"
        "restrict(made[0], made[1])\nr = made[1]",
        "grids = [u]\ngrids.append(v)\ngrids += [w]\n"
        "for k in reversed(range(2)):\n    restrict(grids[k], grids[k + 1])",
        "cycle([u, v, w])",
    ),
    "refused": ("{c}[{coarse}, {coarse}] = {f}[: len({c}[{coarse}]), : len({c}[{coarse}])]",
                "{f}[: len({c}), : len({c})] = {c}", "u[: len(w), : len(w)] -= w[::-1]"),
}  # fmt: skip
_WEIGHTS = {"refused": 0.4}
_BEFORE = """
def restrict(fine, coarse):
    coarse[{coarse}, {coarse}] = 0.5 * (fine[{fine}, {fine}] + fine[{near}, {near}])


def cycle(grids):
    if len(grids) > 1:
        restrict(grids[0], grids[1])
        cycle(grids[1:])
        grids[0][{near}, {near}] += 0.5 * grids[1][{coarse}, {coarse}]
    grids[0][1:] -= 0.25 * grids[0][:-1]
"""


def write_grids(seed: int) -> Case:
    """Return a program on three grids."""
    r = random.Random(f"grids/{seed}")
    layout = r.choice(list(_LAYOUTS))
    sizes, fine, near, coarse = _LAYOUTS[layout]
    labels, lines = [layout], ["r = 0"]

    def filled(text: str, a: str, b: str) -> str:
        text = text.replace("{f}", a).replace("{c}", b)
        while "{near}" in text:
            text = text.replace("{near}", r.choice(near), 1)
        while "{s}" in text:
            text = text.replace("{s}", r.choice(("1.5", "0.5", "c", "2")), 1)
        return text.replace("{fine}", fine).replace("{coarse}", coarse)

    for _ in range(r.choice((2, 3, 4, 5))):
        weights = [_WEIGHTS.get(name, 2) for name in _CONSTRUCTS]
        (label,) = r.choices(list(_CONSTRUCTS), weights)
        labels.append(label)
        lines += filled(r.choice(_CONSTRUCTS[label]), *r.choice(("uv", "vw"))).splitlines()
    if r.random() < 0.5:
        labels.append("in a loop")
        lines = [lines[0], f"for turn in range({r.choice((2, 3))}):"] + [
            f"    {line}" for line in lines[1:]
        ]
    kind = r.choice(("float64", "float64", "float32"))
    rows = r.choice((sizes, sizes, (sizes[0] + 24, sizes[1] + 12, sizes[2] + 6)))
    if layout == "thirds":
        rows = sizes
    made = f"np.random.default_rng({seed}).standard_normal({{}}).astype(np.{kind})"
    arguments = ", ".join(made.format(shape) for shape in zip(rows, sizes, strict=True))
    lines.append("return r, u, v, w")
    before = filled(_BEFORE, "", "")
    return Case(
        "grids", seed, module_text(lines, f"{arguments}, 1.5", "u, v, w, c", before), tuple(labels)
    )
