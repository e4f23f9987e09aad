"""A program's kernel in C++.

The text does not depend on the extents of arrays, on values of scalars or on the number of PEs:
these are numbers that the kernel takes, in the order of `Emitted.numbers`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cpufree.compiler import ir
from cpufree.compiler.emit.expressions import TYPES, cxx
from cpufree.compiler.emit.names import in_ascii
from cpufree.compiler.emit.stage import StageText
from cpufree.compiler.layout import Key, far_fields


@dataclass(frozen=True)
class Emitted:
    """The text of a kernel and the numbers that it takes."""

    text: str
    numbers: tuple[Key, ...]


def emit(program: ir.Program) -> Emitted:
    """Return the kernel of a program that all passes have been through."""
    return KernelText(program).emit()


_MOST_WORKS = 64  # that a compiler optimises as a whole in seconds


class KernelText:
    """The text of a kernel: its control flow, and what back ends have in common."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.numbers: list[Key] = [("rows_of_all", 0), ("slots", 0), ("stop", 0)]
        self.structs: list[str] = []
        self.names: dict[tuple[str, ...], str] = {}
        """Of structs, by their lines."""
        self.depth = 0
        self.ids_are_places = False
        """Whether the storage that a field has follows from where its values lie."""
        self.far = far_fields(program)

    def number(self, key: Key) -> str:
        """Return the text of a number that the kernel knows."""
        self.numbers.append(key)
        return f"N[{len(self.numbers) - 1}]"

    def emit(self) -> Emitted:
        """Return the whole text."""
        head = [*self._fields(), *self._scalars(), *self._channels()]
        body = self._block(self.program.body)
        works = [s for s in ir.walk(self.program.body) if isinstance(s, ir.Assign | ir.Reduce)]
        long = "CPUFREE_LONG_FN " if len(works) > _MOST_WORKS else ""
        lines = [
            '#include "cpufree/programs/runtime.hpp"',
            "",
            "namespace {",
            "using namespace cpufree;",
            "using namespace cpufree::programs;",
            "",
            *self.structs,
            "",
            "template <Port P>",
            f"{long}bool run(P& port, const Args& args, std::byte* heap) {{",
            "  Runtime<P> rt(port, args, heap);",
            "  [[maybe_unused]] const std::int64_t* const N = args.numbers;",
            *(f"  {line}" for line in (*head, *body, *self._results())),
            "  return !rt.failed();",
            "}",
            "}  // namespace",
            "",
        ]
        return Emitted(in_ascii("\n".join(lines)), tuple(self.numbers))

    def _fields(self) -> list[str]:
        lines = []
        for k, f in enumerate(self.program.fields):
            at = len(self.numbers)
            for what in ("offset", "points", "below", *(f"stride{a}" for a in range(len(f.shape)))):
                self.number((what, f.name))
            shared = "true" if f.distributed else "false"
            kind = f"{TYPES[f.type]}, {len(f.shape)}"
            call = f"rt.template field<{kind}>({at}, {k}, {shared})"
            lines.append(f"[[maybe_unused]] auto f_{f.name} = {call};")
        return lines

    def _scalars(self) -> list[str]:
        lines = [
            f"[[maybe_unused]] const auto v_{name} = rt.template scalar<{TYPES[kind]}>({k});"
            for k, (name, kind) in enumerate(self.program.scalars)
        ]
        return lines + [
            f"[[maybe_unused]] {TYPES[kind]} v_{name}{{}};" for name, kind in self.program.variables
        ]

    def _channels(self) -> list[str]:
        lines = []
        for s in ir.walk(self.program.body):
            if isinstance(s, ir.Put):
                at = len(self.numbers)
                for what in ("flags", "mail", "slot", "from_above"):
                    self.number((what, s.channel))
                ring = "true" if any(h.periodic for h in s.halos) else "false"
                lines.append(f"auto channel{s.channel} = rt.channel({at}, {ring});")
        return lines

    def _results(self) -> list[str]:
        names = [name for name, _ in self.program.variables]
        lines = [f"rt.result({k}, v_{name});" for k, name in enumerate(names)]
        first = len(names)
        return lines + [
            f"rt.result({first + k}, std::int64_t{{f_{f.name}.id}});"
            for k, f in enumerate(self.program.fields)
        ]

    # --- statements ---

    def _block(self, body: tuple[ir.Statement, ...]) -> list[str]:
        return [line for s in body for line in self._statement(s)]

    def _statement(self, s: ir.Statement) -> list[str]:
        if isinstance(s, ir.Group):
            return [f"rt.section({s.stages[0].work.line});", *self._group(s)]
        if isinstance(s, ir.Assign | ir.Reduce):
            return self._everywhere(s)
        if isinstance(s, ir.Put | ir.Wait):
            halos = ", ".join(f"rt.halo(f_{h.field}, {h.below}, {h.above})" for h in s.halos)
            put = f"rt.put(channel{s.channel}, {halos});"
            wait = f"if (!rt.wait(channel{s.channel}, {halos})) return false;"
            if isinstance(s, ir.Put):
                return [put]
            if not self.far & {h.field for h in s.halos}:
                return [wait]
            # Ghosts go on to the next PE: each time those of one PE more have come.
            hops = self.number(("hops", s.channel))
            again = f"for (std::int64_t hop = 1; hop < {hops}; ++hop) {{"
            return [wait, again, f"  {put}", f"  {wait}", "}"]
        if isinstance(s, ir.Set):
            return [f"v_{s.name} = {self._scalar(s.value, s.line)};"]
        if isinstance(s, ir.Permute):
            lines = [f"const auto old_{f} = f_{f};" for f in s.fields]
            moves = zip(s.fields, s.sources, strict=True)
            take = "take_values" if s.values or self.ids_are_places else "take"
            return ["{", *lines, *(f"f_{f}.{take}(old_{g});" for f, g in moves), "}"]
        if isinstance(s, ir.Break | ir.Continue):
            return [f"{type(s).__name__.lower()};"]
        assert isinstance(s, ir.For | ir.Loop | ir.If), f"{s} is for other back ends"
        return self._control(s)

    def _scalar(self, e: ir.Expr, line: int) -> str:
        return cxx(e, lambda part: None, self.number(line))

    def _control(self, s: ir.For | ir.Loop | ir.If) -> list[str]:
        if isinstance(s, ir.If):
            lines = [f"if ({self._scalar(s.condition, s.line)}) {{"]
            lines += [f"  {line}" for line in self._block(s.then)]
            if s.otherwise:
                lines += ["} else {", *(f"  {line}" for line in self._block(s.otherwise))]
            return [*lines, "}"]
        outermost = "true" if self.depth == 0 else "false"
        head = ["for (;;) {"]
        turn = f"  {self._turn(s, outermost)}"
        first = [turn]
        if isinstance(s, ir.For):
            i, e = f"i_{s.var}", f"e_{s.var}"
            start, stop = self._scalar(s.start, s.line), self._scalar(s.stop, s.line)
            sign = "<" if s.step > 0 else ">"
            bounds = f"std::int64_t {i} = {start}, {e} = {stop}; {i} {sign} {e}; {i} += {s.step}"
            head = [f"for ({bounds}) {{"]
            first = [f"  v_{s.var} = {i};", turn]
        self.depth += 1
        body = [f"  {line}" for line in self._block(s.body)]
        self.depth -= 1
        return [*head, *first, *body, "}"]

    def _turn(self, s: ir.For | ir.Loop, outermost: str) -> str:
        """Return the statement at the begin of a loop's turn."""
        return f"if (!rt.turn({outermost})) return false;"

    # --- stages ---

    def _stage(
        self,
        work: ir.Assign | ir.Reduce,
        variable: str,
        lag: int = 0,
        below: int = 0,
        above: int = 0,
    ) -> list[str]:
        """Return the statements that make a stage; its struct is there before."""
        text = StageText(self.program, work, self.number)
        key = tuple(text.lines)
        if key not in self.names:
            self.names[key] = f"Stage{len(self.names)}"
            self.structs += [f"struct {self.names[key]} {{", *key]
        return text.make(self.names[key], variable, lag, below, above)

    def _group(self, s: ir.Group) -> list[str]:
        lines, names, after = [], [], []
        fields: dict[str, None] = {}
        for k, stage in enumerate(s.stages):
            lines += self._stage(stage.work, f"stage{k}", stage.lag, stage.below, stage.above)
            names.append(f"stage{k}")
            fields.update({r.field: None for r in ir.reads(stage.work.value)})
            if isinstance(stage.work, ir.Assign):
                fields[stage.work.field] = None
            else:
                fields[stage.work.over] = None
                after += _joined(stage.work, f"stage{k}", True)
        block = self.number(("block", ",".join(fields)))
        lines.append(f"rt.group({block}, {', '.join(names)});")
        return ["{", *(f"  {line}" for line in (*lines, *after)), "}"]

    def _everywhere(self, work: ir.Assign | ir.Reduce) -> list[str]:
        lines = [*self._stage(work, "stage0"), "rt.everywhere(stage0);"]
        if isinstance(work, ir.Reduce):
            lines += _joined(work, "stage0", False)
        return ["{", *(f"  {line}" for line in lines), "}"]


def _joined(work: ir.Reduce, stage: str, among_pes: bool) -> list[str]:
    """Return the statements that bring the parts of a reduction together."""
    total = f"{stage}.stage.total"
    accurate = work.op == "sum" and work.type.startswith("float")
    f = {"sum": "Plus{}", "max": "Max{}", "min": "Min{}"}[work.op]
    f = "joined_sums" if accurate else f
    value = f"{total}.value()" if accurate else total
    lines = [f"if (!rt.join({total}, {f})) return false;"] if among_pes else []
    return [*lines, f"v_{work.name} = static_cast<{TYPES[work.type]}>({value});"]
