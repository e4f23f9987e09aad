"""Stages in C++: structs that find the rows of what they read, and compute a point."""

from __future__ import annotations

from collections.abc import Callable

from cpufree.compiler import ir
from cpufree.compiler.emit.expressions import TYPES, cxx, element, fold_index
from cpufree.compiler.layout import Key
from cpufree.compiler.passes.rows import Work, row_offset

Numbers = Callable[[Key], str]
"""Adds a number that the kernel takes; returns its text."""


class StageText:
    """The struct of a stage, and the statements that make one.

    A struct has the numbers that it needs from its `N` on, and names for its arrays: stages that
    differ in numbers and arrays alone have the same one, which compilers read and translate once.
    """

    def __init__(self, program: ir.Program, work: Work, numbers: Numbers) -> None:
        self.program, self.work, self.numbers = program, work, numbers
        self.own: list[Key] = []
        self.fields = {f.name: f for f in program.fields}
        self.dims = len(work.box)
        self.members: list[str] = []
        self.setup: list[str] = []
        self.rows: list[str] = []
        self.segments: list[str] = []
        self._reads: dict[tuple[str, tuple[ir.Axis, ...]], str] = {}
        self._scalars: dict[ir.Expr, str] = {}
        self._arrays: dict[tuple[str, bool], str] = {}
        self.line = numbers(work.line)
        self.value = self._value(work.value)
        self.lines = self._struct()

    @property
    def inner(self) -> int:
        """The axis along which points are done in one go."""
        return self.dims - 1

    def _number(self, key: int) -> str:
        """Return the text of a number in the struct."""
        self.own.append(key)
        return f"N[{len(self.own) - 1}]"

    def _value(self, value: ir.Expr) -> str:
        return cxx(value, self._leaf, self.line)

    def _leaf(self, e: ir.Expr) -> str | None:
        if isinstance(e, ir.Read):
            return self._read(e)
        if isinstance(e, ir.Element) and not e.is_checked and any(True for _ in ir.reads(e)):
            return element(self._array(e.field, True), [self._value(i) for i in e.indices])
        if isinstance(e, ir.Literal) or any(True for _ in ir.reads(e)):
            return None
        return self._scalar(e)

    def _scalar(self, e: ir.Expr) -> str:
        """Return the name of a scalar: it is computed once, as NumPy does."""
        if e not in self._scalars:
            name = f"c{len(self._scalars)}"
            self._scalars[e] = name
            self.members.append(f"{TYPES[e.type]} {name};")
            self.setup.append(f"{name} = {cxx(e, lambda part: None, self.line)};")
        return self._scalars[e]

    def _array(self, name: str, is_const: bool) -> str:
        f, key = self.fields[name], (name, is_const)
        if key not in self._arrays:
            member = self._arrays[key] = f"a{len(self._arrays)}"
            const = "const " if is_const else ""
            self.members.append(f"Array<{const}{TYPES[f.type]}, {len(f.shape)}> {member};")
            self.setup.append(f"{member} = f_{name};")
        return self._arrays[key]

    def _read(self, e: ir.Read) -> str:
        key = (e.field, e.axes)
        if key not in self._reads:
            self._reads[key] = self._pointer(e)
        return self._reads[key]

    def _pointer(self, e: ir.Read) -> str:
        """Add a pointer to a row of what is read; return the text of the value at a point."""
        k = len(self._reads)
        array = self._array(e.field, True)
        f = self.fields[e.field]
        self.members.append(f"const {TYPES[f.type]}* p{k};")
        terms, at = [f"{array}.base"], []
        for axis, a in enumerate(e.axes):
            stride = "" if axis == len(e.axes) - 1 else f" * {array}.stride[{axis}]"
            if axis == 0 and f.distributed:
                index, a = self._row_index(e, f, array)
            else:
                index = self._index(a, k)
            if a.dim == self.inner:
                step = "" if a.step == 1 else f" * {a.step}"
                r = f"r{self.inner}" if not a.wrap else f"(r{self.inner} + d{k})"
                at.append(f"{r}{step}{stride}")
            elif a.dim <= ir.FOLDED:
                step = "" if a.step == 1 else f" * {a.step}"
                at.append(f"{fold_index(a.dim)}{step}{stride}")
            terms.append(f"({index}){stride}")
        self.rows.append(f"p{k} = {' + '.join(terms)};")
        return f"p{k}[{' + '.join(at) or 0}]"

    def _row_index(self, e: ir.Read, f: ir.Field, array: str) -> tuple[str, ir.Axis]:
        """Return where the row of a distributed field is that this PE reads."""
        rows = self.work.box[0]
        work = self.work
        over = work.field if isinstance(work, ir.Assign) else work.over
        offset, _ = row_offset(e, rows, f.shape[0], self.fields[over].shape[0] if over else 0)
        start = self._number(rows.start + offset)
        if self.inner == 0:
            return f"{start} - {array}.first", ir.Axis(0, 0, rows.step)
        return f"{start} + {self._strided(0, rows.step)} - {array}.first", ir.Axis(ir.FIXED)

    def _strided(self, dim: int, step: int) -> str:
        """Return the text of r along an outer axis, times a step."""
        return f"r{dim}" if step == 1 else f"r{dim} * {self._number(step)}"

    def _index(self, a: ir.Axis, k: int) -> str:
        """Return an index along an axis; of the inner axis what does not depend on the point."""
        start = self._number(a.start)
        if a.index is not None:
            return f"{start} + {self._scalar(a.index)} * {self._number(a.step)}"
        if a.dim < 0:
            return start
        if a.dim == self.inner:
            if a.wrap:
                self._wrap(a, k)
            return start
        if not a.wrap:
            return f"{start} + {self._strided(a.dim, a.step)}"
        r = f"wrapped(r{a.dim} + {self._number(a.shift)}, {self._number(a.wrap)})"
        return f"{start} + {r}" + ("" if a.step == 1 else f" * {a.step}")

    def _wrap(self, a: ir.Axis, k: int) -> None:
        self.members.append(f"std::int64_t d{k};")
        shift, wrap = self._number(a.shift), self._number(a.wrap)
        self.segments += [
            f"d{k} = wrapped(r + {shift}, {wrap}) - r;",
            f"e = e < {wrap} - d{k} ? e : {wrap} - d{k};",
        ]

    # --- text ---

    def _struct(self) -> list[str]:
        """Return the lines of the struct, all but the one that has its name."""
        outer = ", ".join(f"[[maybe_unused]] std::int64_t r{k}" for k in range(self.inner))
        lines = [
            f"  static constexpr int dims = {self.dims};",
            f"  Points box[{self.dims}];",
            "  const std::int64_t* N;",
        ]
        work = self.work
        if isinstance(work, ir.Assign):
            self._store(work)
            body = f"o[{self._at_point(work)}] = {self.value};"
            point = f"void point(std::int64_t r{self.inner}) const {{ {body} }}"
        else:
            self.members += _reduction_members(work)
            kind = TYPES[work.value.type]
            point = (
                f"{kind} point([[maybe_unused]] std::int64_t r{self.inner}) const "
                f"{{ return {self.value}; }}"
            )
        lines += [f"  {m}" for m in self.members]
        lines += [f"  CPUFREE_FN void row({outer}) {{", *(f"    {r}" for r in self.rows), "  }"]
        lines += [
            "  CPUFREE_FN std::int64_t segment([[maybe_unused]] std::int64_t r, std::int64_t e) {",
            *(f"    {s}" for s in self.segments),
            "    return e;",
            "  }",
            f"  CPUFREE_FN {point}",
            "};",
        ]
        return lines

    def _store(self, work: ir.Assign) -> None:
        """Add the pointer to the row that is written."""
        f = self.fields[work.field]
        array = self._array(work.field, False)
        self.members.append(f"{TYPES[f.type]}* __restrict o;")
        terms = [f"{array}.base"]
        for axis, span in enumerate(work.box):
            stride = "" if axis == len(work.box) - 1 else f" * {array}.stride[{axis}]"
            index = self._index(span.axis(axis), 0)
            first = f" - {array}.first" if axis == 0 and f.distributed else ""
            terms.append(f"({index}{first}){stride}")
        self.rows.append(f"o = {' + '.join(terms)};")

    def _at_point(self, work: ir.Assign) -> str:
        step = work.box[self.inner].step
        return f"r{self.inner}" if step == 1 else f"r{self.inner} * {step}"

    def make(self, name: str, variable: str, lag: int, below: int, above: int) -> list[str]:
        """Return the statements that make one in the kernel, of the struct of a name."""
        lines = [f"Rows<{name}> {variable}{{}};"]
        s = f"{variable}.stage"
        for k, span in enumerate(self.work.box):
            numbers = ", ".join(self.numbers(n) for n in (span.start, span.step, span.count))
            lines.append(f"{s}.box[{k}] = {{{numbers}}};")
        first, *_ = [*map(self.numbers, self.own), "N[0]"]
        lines.append(f"{s}.N = &{first};")
        lines += [f"{s}.{line}" for line in self.setup]
        lags = (("lag", lag), ("below", below), ("above", above))
        lines += [f"{variable}.{what} = {rows};" for what, rows in lags if rows]
        return lines


def _reduction_members(work: ir.Reduce) -> list[str]:
    kind = TYPES[work.type]
    name = "reduce(std::int64_t lo, std::int64_t hi)"
    if work.op == "sum" and work.type.startswith("float"):
        call = "reduce_points<double>(*this, 0.0, lo, hi, Plus{})"
        return ["Accurate total;", f"CPUFREE_FN void {name} {{ total.add({call}); }}"]
    limits = f"std::numeric_limits<{kind}>"
    start = {
        "sum": f"{kind}(0)",
        "max": f"-{limits}::infinity()" if "float" in work.type else f"{limits}::lowest()",
        "min": f"{limits}::infinity()" if "float" in work.type else f"{limits}::max()",
    }[work.op]
    f = {"sum": "Plus", "max": "Max", "min": "Min"}[work.op]
    call = f"reduce_points<{kind}>(*this, {start}, lo, hi, {f}{{}})"
    return [
        f"{kind} total = {start};",
        f"CPUFREE_FN void {name} {{ total = {f}{{}}(total, {call}); }}",
    ]
