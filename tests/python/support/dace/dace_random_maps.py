"""Maps of random programs of DaCe: with branches, local numbers, maps and loops in them.

Points of a map depend on one another in no program: what a map writes it reads at its own point.
"""

from __future__ import annotations

from dace_random_values import ONES, Writer


class _Point:
    """Reads and writes at a point of a map."""

    def __init__(self, w: Writer, target: str, index: str, sources: tuple[str, ...]) -> None:
        """`sources`: texts of what may be read."""
        self.w, self.target, self.index, self.sources = w, target, index, sources
        self.locals: list[str] = []

    @property
    def place(self) -> str:
        return f"{self.target}[{self.index}]"

    def value(self) -> str:
        w = self.w
        kind = w.r.random()
        if kind < 0.3 and self.locals:
            return w.r.choice(self.locals)
        if kind < 0.75:
            return w.r.choice((*self.sources, self.place))
        if kind < 0.8 and w.numbers:
            return w.r.choice(w.numbers)
        if kind < 0.9:
            return w.pick(*self.index.split(", "), *w.turns, *w.rows)
        return w.pick("c", "0.5", "-1.25", "2.0")

    def one(self) -> str:
        return self.w.r.choice(ONES).format(a=self.value(), b=self.value())

    def condition(self) -> str:
        w = self.w
        i = self.index.split(", ")[-1]
        if w.chance(0.3):
            return w.pick(
                f"{i} > 0", f"{i} % 2 == 0", f"{i} == 1", f"{i} < 3", f"{i} > {w.count()}"
            )
        found = f"{self.value()} {w.pick('<', '>', '<=')} {self.value()}"
        return f"{found} and {i} != 2" if w.chance(0.1) else found


def write_map(w: Writer) -> list[str]:
    """Return the lines of a map."""
    kind = w.r.choice(("line", "line", "line", "grid", "grid", "nested", "triangle", "sums",
                       "guarded", "total"))  # fmt: skip
    w.note(f"map: {kind}")
    return _KINDS[kind](w)


def _line(w: Writer) -> list[str]:
    """Return a map over points of a line."""
    i = w.fresh("i")
    lo, hi = w.r.choice(((0, 0), (0, 0), (1, 1), (2, 0), (0, 1)))
    target = w.pick("u", "v", "w")
    others = [x for x in ("u", "v", "w") if x != target]
    sources = [f"{x}[{i}{_moved(w, lo, hi)}]" for x in others for _ in range(2)]
    sources += [f"A[{i}, {w.index(1)}]"]
    if w.chance(0.15):
        w.note("index by floor division")
        sources.append(f"{others[0]}[{i} // 2]")
    if w.chance(0.1):
        w.note("reversed in a map")
        sources.append(f"{others[0]}[N - 1 - {i}]")
    if w.chance(0.1):
        w.note("index by data")
        sources += [f"{others[0]}[k[{i}]]"] * 3
    bound = "N" if hi == 0 else f"N - {hi}"
    head = f"for {i} in dace.map[{lo}:{bound}]:"
    if w.chance(0.1):
        w.note("map by steps")
        head = f"for {i} in dace.map[{lo}:{bound}:2]:"
    return [head, *_indented(_body(_Point(w, target, i, tuple(sources))))]


def _moved(w: Writer, lo: int, hi: int) -> str:
    d = w.r.randint(-lo, hi)
    return f" + {d}" if d > 0 else f" - {-d}" if d < 0 else ""


def _grid(w: Writer) -> list[str]:
    """Return a map over points of a grid."""
    i, j = w.fresh("i"), w.fresh("j")
    lo, hi = w.r.choice(((0, 0), (1, 1), (0, 1)))
    target, other = w.r.choice((("A", "B"), ("B", "A")))
    sources = (f"{other}[{i}{_moved(w, lo, hi)}, {j}]", f"{other}[{i}, {j}{_moved(w, lo, hi)}]",
               f"u[{i}]", f"x[{j}]")  # fmt: skip
    end = f" - {hi}" if hi else ""
    head = f"for {i}, {j} in dace.map[{lo}:N{end}, {lo}:M{end}]:"
    return [head, *_indented(_body(_Point(w, target, f"{i}, {j}", sources)))]


def _nested(w: Writer) -> list[str]:
    """Return a map inside a map, with a number between them."""
    i, j, s = w.fresh("i"), w.fresh("j"), w.fresh("s")
    outer = _Point(w, "v", i, (f"u[{i}]", f"A[{i}, 1]", f"w[{i}]"))
    inner = _Point(w, "B", f"{i}, {j}", (f"A[{i}, {j}]", f"x[{j}]", f"w[{i}]"))
    inner.locals.append(s)
    inside = [f"for {j} in dace.map[{w.pick('0:M', '1:M - 1', '0:M', '0:1')}]:",
              *_indented(_body(inner))]  # fmt: skip
    before = [f"{s} = {outer.one()}"]
    if w.chance(0.3):
        before += [f"if {outer.condition()}:", f"    {s} = {outer.one()}"]
    after = [f"v[{i}] = {outer.one()}"] if w.chance(0.4) else []
    return [f"for {i} in dace.map[0:N]:", *_indented([*before, *inside, *after])]


def _triangle(w: Writer) -> list[str]:
    """Return a map whose inner range grows or shrinks with the outer parameter."""
    i, j = w.fresh("i"), w.fresh("j")
    inner = _Point(w, "B", f"{i}, {j}", (f"A[{i}, {j}]", f"x[{j}]", f"u[{i}]"))
    span = w.pick(f"0:{i} + 1", f"0:{i}", f"{i}:M", f"{i} + 1:M")
    if w.chance(0.3):
        s = w.fresh("s")
        w.note("sum over a triangle")
        start, stop = span.split(":")
        return [f"for {i} in dace.map[0:M]:", f"    {s} = 0.0",
                f"    for {j} in range({start}, {stop}):", f"        {s} += A[{i}, {j}]",
                f"    u[{i}] = {s}"]  # fmt: skip
    return [f"for {i} in dace.map[0:M]:", f"    for {j} in dace.map[{span}]:",
            *_indented(_indented(_body(inner)))]  # fmt: skip


def _sums(w: Writer) -> list[str]:
    """Return a map with a loop over a row in it."""
    i, j, s = w.fresh("i"), w.fresh("j"), w.fresh("s")
    term = w.pick(f"A[{i}, {j}]", f"A[{i}, {j}] * x[{j}]", f"B[{i}, {j}] - u[{i}]",
                  f"max(A[{i}, {j}], {s}) - {s}")  # fmt: skip
    span = w.pick("M", "M", "1, M", "3", w.count())
    word = w.pick("dace.map", "range", "range")
    head = f"for {j} in range({span}):"
    if word == "dace.map":
        head = f"for {j} in dace.map[{span.replace(', ', ':') if ',' in span else '0:' + span}]:"
    inside = [f"{s} += {term}"]
    if word == "range" and w.chance(0.3):
        w.note("branch in a loop in a map")
        inside = [f"if A[{i}, {j}] {w.pick('>', '<')} {w.pick('0.0', 'c', f'u[{i}]')}:",
                  f"    {s} {w.pick('+=', '=')} {term}"]  # fmt: skip
    start = w.pick("0.0", f"u[{i}]", "c + 0.0")
    return [f"for {i} in dace.map[0:N]:",
            *_indented([f"{s} = {start}", head, *_indented(inside), f"v[{i}] = {s}"])]  # fmt: skip


def _guarded(w: Writer) -> list[str]:
    """Return a map whose branches keep it from reading beyond the ends."""
    i = w.fresh("i")
    guard, read = w.r.choice(((f"{i} > 0", f"u[{i} - 1]"), (f"{i} < N - 1", f"u[{i} + 1]"),
                              (f"{i} >= 2", f"u[{i} - 2]")))  # fmt: skip
    other = [["else:", f"    v[{i}] = {w.pick('7.0', f'u[{i}]', f'w[{i}]')}"], []]
    inside = [f"if {guard}:", f"    v[{i}] = {read}{w.pick('', f' + u[{i}]', ' * c')}",
              *w.r.choice(other)]  # fmt: skip
    return [f"for {i} in dace.map[0:N]:", *_indented(inside)]


def _total(w: Writer) -> list[str]:
    """Return a map whose points add to one number."""
    i, s = w.fresh("i"), w.fresh("s")
    w.numbers.append(s)
    term = w.pick(f"u[{i}]", f"u[{i}] * v[{i}]", f"A[{i}, 1] - c")
    return [f"{s} = {w.pick('0.0', 'u[0]')}", f"for {i} in dace.map[0:N]:", f"    {s} += {term}"]


def _body(at: _Point) -> list[str]:
    """Return statements at a point."""
    w = at.w
    lines: list[str] = []
    for _ in range(w.r.choice((0, 0, 1, 1, 2))):
        s = w.fresh("s")
        lines.append(f"{s} = {at.one()}")
        at.locals.append(s)
        if w.chance(0.5):
            w.note("number under a branch")
            lines += [f"if {at.condition()}:", f"    {s} {w.pick('=', '=', '+=')} {at.one()}"]
            if w.chance(0.4):
                lines += ["else:", f"    {s} = {at.one()}"]
    for _ in range(w.r.choice((1, 1, 1, 2))):
        if w.chance(0.4):
            lines += _choice(at)
        else:
            lines.append(f"{at.place} {w.pick('=', '=', '+=')} {at.one()}")
    return lines


def _choice(at: _Point) -> list[str]:
    w = at.w
    w.note("branch in a map")
    lines = [f"if {at.condition()}:", f"    {at.place} = {at.one()}"]
    if w.chance(0.3):
        lines += [f"elif {at.condition()}:", f"    {at.place} = {at.one()}"]
    if w.chance(0.5):
        lines += ["else:", f"    {at.place} {w.pick('=', '+=')} {at.one()}"]
    if w.chance(0.15):
        w.note("branch in a branch in a map")
        lines = [f"if {at.condition()}:", *_indented(lines)]
    return lines


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


_KINDS = {
    "line": _line,
    "grid": _grid,
    "nested": _nested,
    "triangle": _triangle,
    "sums": _sums,
    "guarded": _guarded,
    "total": _total,
}
