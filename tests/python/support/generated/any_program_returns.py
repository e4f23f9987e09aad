"""Programs that return in branches and loops, in helpers and in the program itself."""

from __future__ import annotations

import random

from any_program import Case, module_text

# Holes: c for a condition, r for what is returned, w for a statement that writes.
_PARTS = {
    "branch": ("if {c}:\n    return {r}",),
    "branch with else": ("if {c}:\n    {w}\n    return {r}\nelse:\n    {w}",),
    "both": ("if {c}:\n    return {r}\nelif {c}:\n    return {r}\nelse:\n    {w}",),
    "nested": ("if {c}:\n    {w}\n    if {c}:\n        return {r}\n    {w}",),
    "loop": ("for t in range(4):\n    {w}\n    if {c}:\n        return {r}",),
    "loop and break": ("for t in range(n):\n    if {c}:\n        break\n    {w}\n    if {c}:\n"
                       "        return {r}",),
    "while": ("k = 0\nwhile k < n:\n    k += 1\n    {w}\n    if {c}:\n        return {r}",),
    "endless": ("k = 0\nwhile True:\n    k += 1\n    {w}\n    if {c}:\n        return {r}\n"
                "    if k > 5:\n        return {r}",),
    "nested loops": ("for t in range(n):\n    {w}\n    for s in range(2):\n        {w}\n"
                     "        if {c}:\n            return {r}",),
    "continue": ("for t in range(4):\n    if {c}:\n        continue\n    {w}\n    if {c}:\n"
                 "        return {r}",),
    "written out": ("for x in (u, v):\n    if {c}:\n        return {r}\n    {w}",),
    "decided": ("if n > 1:\n    return {r}", "if n > 5:\n    return {r}"),
    "plain": ("{w}",),
}  # fmt: skip
_CONDITIONS = (
    "np.max(u) > 2",
    "np.sum(v) < 0",
    "u[0] > v[1]",
    "np.any(u > 1.5)",
    "np.min(v) < 0",
    "np.max(u) > 100",
)
_WRITES = ("u += 1.0", "v -= 0.5", "u, v = v, u", "u = u + v", "v[1:] = u[:-1]", "u *= 0.5")
_FORMS = {
    "array": ("u", "v", "u + v", "2.0 * u", "u.copy()"),
    "number": ("1", "2", "-1", "7"),
    "float": ("np.max(u)", "np.sum(v)", "np.min(u)"),
    "pair": ("(u, 1)", "(v, 2)", "(u + v, 3)"),
    "mixed": ("u", "1", "None", "(u, v)", "np.max(u)"),
}


def write_returns(seed: int) -> Case:
    """Return a program that returns in several places."""
    r = random.Random(f"returns/{seed}")
    (form,) = r.choices(list(_FORMS), (2, 6, 6, 1, 1))
    labels, lines = [form], []
    for _ in range(r.choice((1, 2, 2, 3))):
        label = r.choice(list(_PARTS))
        labels.append(label)
        text = r.choice(_PARTS[label])
        for hole, choices in (("{c}", _CONDITIONS), ("{r}", _FORMS[form]), ("{w}", _WRITES)):
            while hole in text:
                text = text.replace(hole, r.choice(choices), 1)
        lines += text.splitlines()
    if r.random() < 0.85:
        lines.append(f"return {r.choice(_FORMS[form])}")
    before = ""
    if r.random() < 0.4:
        labels.append("in a helper")
        inner = "\n".join(f"    {line}" for line in lines)
        before = f"def helper(u, v, n):\n{inner}\n"
        lines = ["r = helper(u, v, n)", "v += 1", "return r"]
    made = f"np.random.default_rng({seed}).standard_normal(6)"
    text = module_text(lines, f"{made}, np.full(6, 0.5), 3", "u, v, n", before)
    return Case("returns", seed, text, tuple(dict.fromkeys(labels)))
