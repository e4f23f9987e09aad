"""Programs that choose points by masks: u[mask], its updates and reductions."""

from __future__ import annotations

import random

from any_program import Case, module_text

# Holes: a for an array that is written, x for a part of its shape, m for a mask, s for a number.
_CONSTRUCTS = {
    "set": ("{a}[{m}] = {s}", "{a}[{m}] = 0", "{a}[1:-1][{m}[1:-1]] = {s}", "{a}[{m}] = np.nan",
            "{a}[:, 1:][{m}[:, 1:]] = {s}", "k[{m}] = 7", "k[{m}] = {s}"),
    "set to chosen": ("{a}[{m}] = {x}[{m}]", "q = {m}\n{a}[q] = {x}[q]", "{a}[{m}] = {x}[~{m}]",
                      "q = {m}\n{a}[q] = 0.5 * ({x}[q] + {x}[q])",
                      "q = {m}\n{a}[q] = np.where({x}[q] > 0, {x}[q], {s})",
                      "q = {m}\n{a}[q] = np.clip({x}[q], -1.0, {s})",
                      "q = {m}\n{a}[q] = -{x}[q] ** 2", "q = {m}\n{a}[q] = {x}[q].astype(np.int32)",
                      "q = {m}[1:]\n{a}[1:][q] = {x}[:-1][q]", "q = {m}\n{a}[q] = {x}[q] > {x}[q]"),
    "in place": ("{a}[{m}] += {s}", "q = {m}\n{a}[q] += {x}[q]", "{a}[{m}] *= -1", "k[{m}] += 1",
                 "q = {m}\n{a}[q] /= {x}[q]", "k[{m}] += 0.5", "q = {m}\n{a}[q] -= {a}[q]",
                 "{a}[{a} < 0] *= {s}", "{a}[np.roll({m}, 1, 0)] -= {s}"),
    "count": ("r = np.count_nonzero({m})", "r = np.count_nonzero({x})", "r = np.count_nonzero(k)",
              "r = np.count_nonzero({x}[{m}])", "r = np.count_nonzero({s})"),
    "reduce": ("r = np.sum({x}[{m}])", "r = np.mean({x}[{m}])", "r = np.any({x}[{m}] > {s})",
               "r = np.all({x}[{m}])", "r = {x}[{m}].sum()", "r = np.sum(k[{m}])",
               "r = np.any({m})", "r = np.mean(k[{m}])", "r = np.all({m})", "r = np.max({x}[{m}])"),
    "rows": ("{a}[0][{m}[0]] = {s}", "{a}[0, {m}[0]] += {s}", "{a}[:, {m}[0]] = {s}",
             "{a}[{m}[:, 0]] *= {s}", "{a}[{m}[0]] = 1.0", "{a}[{m}, 0] = 1.0"),
    "refused": ("r = {x}[{m}]", "{a}[{m}] = {x}", "r = {x}[{m}] + {x}", "r = {x}[{m}].size",
                "np.add({x}[{m}], 1, out={a}[{m}])", "{a}[{m}], v[{m}] = v[{m}], {a}[{m}]",
                "{a}[{m}] = {x}[{m}] + bump({a})", "{a}[{m}] += bump({a})"),
}  # fmt: skip
_WEIGHTS = {"refused": 1}
_ARRAYS = ("u", "v", "2.0 * u", "(u + v)", "u.copy()", "np.maximum(u, v)")
_MASKS = ("(u < 0)", "(v > u)", "((u > 0) & (v < 0.5))", "~(u > 1)", "m", "(k == 1)", "np.isnan(v)")
_NUMBERS = ("1.5", "np.max(u)", "u[0, 1]", "c", "3", "np.float32(0.1)")
_BEFORE = """@cpufree.program
def bump(a):
    a += 1.0
    return 1.0
"""


def write_chosen(seed: int) -> Case:
    """Return a program that chooses points by masks."""
    r = random.Random(f"chosen/{seed}")
    labels, lines = [], ["r = 0"]
    for _ in range(r.choice((1, 2, 3))):
        weights = [_WEIGHTS.get(name, 3) for name in _CONSTRUCTS]
        (label,) = r.choices(list(_CONSTRUCTS), weights)
        labels.append(label)
        lines += _filled(r.choice(_CONSTRUCTS[label]), r).splitlines()
    if r.random() < 0.4:
        labels.append("in a loop")
        lines = [lines[0], f"for turn in range({r.choice((1, 2, 3))}):"] + [
            f"    {line}" for line in lines[1:]
        ]
    kind = r.choice(("float64", "float64", "float32"))
    wide = f"np.random.default_rng({seed}).standard_normal((7, 5)).astype(np.{kind})"
    arguments = f"{wide}, np.ones((7, 5)) * 0.5, np.arange(35).reshape(7, 5) % 3, {wide} > 0, 1.25"
    lines.append("return r, u")
    return Case("chosen", seed, module_text(lines, arguments, "u, v, k, m, c", _BEFORE),
                tuple(dict.fromkeys(labels)))  # fmt: skip


def _filled(text: str, r: random.Random) -> str:
    """Return a construct with its holes filled: all masks alike."""
    mask, array = r.choice(_MASKS), r.choice(("u", "v"))
    while "{x}" in text:
        text = text.replace("{x}", r.choice(_ARRAYS), 1)
    while "{s}" in text:
        text = text.replace("{s}", r.choice(_NUMBERS), 1)
    return text.replace("{m}", mask).replace("{a}", array)
