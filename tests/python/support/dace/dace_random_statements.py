"""Statements of random programs of DaCe: of arrays, elements, sums, branches and loops."""

from __future__ import annotations

from dace_random_maps import write_map
from dace_random_values import FLOATS, Writer


def block(w: Writer, kinds: tuple[str, ...], most: int = 3) -> list[str]:
    """Return the lines of some statements of these kinds."""
    lines: list[str] = []
    for _ in range(w.r.randint(1, most)):
        kind = w.r.choice(kinds)
        if kind in ("loop", "branch", "while") and w.depth >= 3:
            kind = "array"
        w.note(kind)
        lines += STATEMENTS[kind](w, kinds)
    return lines


def indented(lines: list[str]) -> list[str]:
    """Return the lines of a block one level deeper."""
    return [f"    {line}" for line in lines]


# --- arrays ---


def _array(w: Writer, _kinds: tuple[str, ...]) -> list[str]:
    trim = w.trim()
    if w.chance(0.55):
        target, values = w.line(trim), [w.line(trim) for _ in range(2)]
    elif w.chance(0.7):
        columns = w.trim()
        target = f"{w.pick('A', 'B')}[{w.part(trim, 'N')}, {w.part(columns, 'M')}]"
        values = [w.grid(trim, columns) for _ in range(2)]
    else:
        w.note("row")
        target, values = w.row(trim), [w.row(trim) for _ in range(2)]
    values = [v if w.chance(0.8) else w.number() for v in values]
    text = w.r.choice(FLOATS).format(a=values[0], b=values[1])
    if w.chance(0.12):
        text = values[0]
    if w.chance(0.2):
        w.note("in place")
        return [f"{_whole(target)} {w.pick('+=', '-=')} {text}"]
    return [f"{_whole(target)} = {text}"]


def _whole(target: str) -> str:
    return target if "[" in target else f"{target}[:]"


def _element(w: Writer, _kinds: tuple[str, ...]) -> list[str]:
    return [f"{w.element()} {w.pick('=', '=', '+=')} {w.one()}"]


def _number(w: Writer, _kinds: tuple[str, ...]) -> list[str]:
    if w.numbers and w.chance(0.5):
        return [f"{w.r.choice(w.numbers)} {w.pick('=', '+=')} {w.one()}"]
    value = w.pick("0.0", "0.5", "1.0 * c")
    name = w.fresh("s")
    w.numbers.append(name)
    return [f"{name} = {value}"]


def _temporary(w: Writer, _kinds: tuple[str, ...]) -> list[str]:
    name = w.fresh("q")
    trim = w.trim()
    a, b = w.line((0, 1)), w.line((0, 1))
    first = w.pick(f"{name} = {a} + {b}", f"{name} = np.zeros((N,))", f"{name} = {a} * c",
                   f"{name} = np.copy({w.pick('u', 'v')})")  # fmt: skip
    target = w.line(trim)
    part = f"{name}[{w.part(trim, 'N')}]"
    return [first, f"{part} = {w.line(trim)} - c", f"{_whole(target)} = 0.5 * {part}"]


# --- sums ---


def _reduction(w: Writer, _kinds: tuple[str, ...]) -> list[str]:
    fold = w.pick("np.sum", "np.sum", "np.max", "np.min", "np.mean")
    if w.chance(0.35):
        return _fold_by_dace(w)
    if w.chance(0.3):
        w.note("along an axis")
        return [w.pick(f"x[:] = {fold}({w.pick('A', 'B')}, axis=0)",
                       f"u[:] = {fold}({w.pick('A', 'B')}, axis=1)",
                       f"x[1:] = {fold}({w.pick('A', 'B')}[1:, 1:], axis=0)")]  # fmt: skip
    if w.chance(0.3):
        w.note("product")
        k = w.count()
        return [w.pick("u[:] = A @ x", "x[:] = u @ B", "u[1] = v @ w", "x[2] = A[1, :] @ x",
                       "x[:] = A[2, :] + v @ A", f"w[0] = u[:{k}] @ v[:{k}]")]  # fmt: skip
    region = _summed(w, fold)
    target = w.element()
    if w.chance(0.5):
        target = w.fresh("s")
        w.numbers.append(target)
    return [f"{target} = {fold}({region})"]


def _summed(w: Writer, fold: str) -> str:
    """Return what is summed: it may have one point or, where it may be, none."""
    if w.chance(0.4):
        return w.line(w.trim())
    k = w.index(1) if fold == "np.sum" else w.pick("2", "3")
    if k.startswith("-"):
        k = "3"
    w.note("part of unknown length")
    return w.pick(f"u[:{k}]", f"A[1, :{k}]", f"A[:{k}, 2]", f"v[{k}:{k} + 1]", f"x[{k}:{k}+1]")


def _fold_by_dace(w: Writer) -> list[str]:
    w.note("dace.reduce")
    function = w.pick("a + b", "a + b", "b + a", "max(a, b)", "min(a, b)")
    identity = w.pick("", ", identity=0", ", identity=5", ", identity=-100")
    axis, target = w.r.choice(((0, "x"), (1, "u"), (1, "v")))
    source = w.pick("A", "B")
    return [f"dace.reduce(lambda a, b: {function}, {source}, {target}, axis={axis}{identity})"]


# --- control flow ---


def _branch(w: Writer, kinds: tuple[str, ...]) -> list[str]:
    lines = [f"if {w.condition()}:"]
    with w.inside():
        lines += indented(block(w, kinds, 2))
    if w.chance(0.25):
        lines.append(f"elif {w.condition()}:")
        with w.inside():
            lines += indented(block(w, kinds, 1))
    if w.chance(0.4):
        lines.append("else:")
        with w.inside():
            lines += indented(block(w, kinds, 1))
    return lines


def _loop(w: Writer, kinds: tuple[str, ...]) -> list[str]:
    t = w.fresh("t")
    n = w.count()
    turn, row = t, ""
    bounds = w.pick(n, n, "4", f"1, {n}", f"{n}, -1, -1", "0, 5, 2", "N", "1, N - 1",
                    "N - 1, -1, -1", f"{n} // 2", f"{n} + 1", "M")  # fmt: skip
    if "N" in bounds:
        turn, row = "", t
    lines = [f"for {t} in range({bounds}):"]
    w.loops += 1
    with w.inside(turn=turn, row=row):
        before = _leaving(w)
        lines += indented([*before, *block(w, kinds, 3), *([] if before else _leaving(w))])
    w.loops -= 1
    return lines


def _leaving(w: Writer) -> list[str]:
    if not w.chance(0.3):
        return []
    word = w.pick("break", "continue")
    w.note(word)
    return [f"if {w.condition()}:", f"    {word}"]


def _while(w: Writer, kinds: tuple[str, ...]) -> list[str]:
    m = w.fresh("m")
    test = f"{m} < {w.pick('3', '4', w.count())}"
    if w.chance(0.4):
        test += f" and {w.condition()}"
    lines = [f"{m} = 0", f"while {test}:"]
    with w.inside(turn=m):
        lines += indented([*block(w, kinds, 2), f"{m} = {m} + 1"])
    return lines


def _map(w: Writer, _kinds: tuple[str, ...]) -> list[str]:
    return write_map(w)


STATEMENTS = {
    "array": _array,
    "element": _element,
    "number": _number,
    "temporary": _temporary,
    "reduction": _reduction,
    "branch": _branch,
    "loop": _loop,
    "while": _while,
    "map": _map,
}
