"""What a warp does that streams rows through registers: the text of a round of some turns."""

from __future__ import annotations

from cpufree.compiler import ir
from cpufree.compiler.emit.expressions import TYPES, cxx
from cpufree.compiler.emit.grid import Grid
from cpufree.compiler.emit.stream_plan import StreamPlan
from cpufree.compiler.passes.levels import Chain, Level, Version, is_thin
from cpufree.compiler.passes.tiles import offsets


class StreamPass:
    """The text of a round."""

    def __init__(
        self, kernel: Grid, tiled: list[ir.Field], plan: StreamPlan, chain: Chain, turns: int
    ) -> None:
        self.kernel, self.chain, self.turns = kernel, chain, turns
        self.program, self.plan, self.tiled = kernel.program, plan, tiled
        self.names = {id(v): f"r{k}" for k, v in enumerate(chain.versions)}
        self.scalars: dict[tuple[int, ir.Expr], str] = {}
        self.scalar_lines: dict[int, list[str]] = {}
        self.tap_lines: list[str] = []
        self.taps = 0

    def lines(self, name: str) -> list[str]:
        """Return the definition of the function."""
        plan, chain = self.plan, self.chain
        loop = plan.rounds.loop
        inside = [line for level in chain.levels for line in self._level(level)]
        left, right = plan.halo(chain)
        width = max(f.shape[1] for f in self.tiled)
        strips = f"Strips{{{width}, {left}, {plan.strip - left - right}, {plan.chunks}}}"
        setup = [
            f"[[maybe_unused]] const auto m_{f.name} = rt.rows(f_{f.name}.base, s_{f.name});"
            for f in self.tiled
        ]
        for turn in range(self.turns):
            setup.append(f"v_{loop.var} = first_turn + {turn * loop.step};")
            setup += self.scalar_lines.get(turn, [])
        return [
            f"const auto {name} = [&](std::int64_t first_turn, [[maybe_unused]] bool is_last) {{",
            *(f"  {line}" for line in setup),
            f"  rt.template stream<C>({strips}, [&](const Strip& at) {{",
            *(f"    {line}" for line in self._rows(inside)),
            "  });",
            "};",
        ]

    def _rows(self, levels: list[str]) -> list[str]:
        """Return what goes over the rows of a strip: those at edges, between them, and the rest."""
        chain, unrolled = self.chain, self.plan.unrolled
        at_rest = chain.at_rest
        lines = [*self._free()]
        rests: list[str] = []
        takes: list[str] = []
        for version in chain.versions:
            kind, name = self._kind(version), self.names[id(version)]
            rest = any(version is v for v in at_rest)
            rows = [f"[[maybe_unused]] Columns<{kind}, C> {name}_{k};" for k in range(version.rows)]
            (rests if rest else lines).extend(rows)
            if version.level < 0:
                begin, turn = self._rest(version) if rest else self._input(version)
                (rests if rest else lines).extend(begin)
                takes += turn
        lines += self.tap_lines
        stores = []
        for name, version in chain.final.items():
            begin, turn = self._store(name, version)
            lines += begin
            stores += turn
        return [
            *lines,
            "const auto go = [&](auto has_edges, int from, int to) {",
            "  constexpr bool kEdges = has_edges.value;",
            *(f"  {line}" for line in rests),
            "  CPUFREE_ONE_COPY",
            f"  for (int i = from; i < to; i += {unrolled}) {{",
            "    CPUFREE_UNROLL",
            f"    for (int n = 0; n < {unrolled}; ++n) {{",
            "      [[maybe_unused]] const int y = i + n;",
            *(f"      {line}" for line in (*takes, *levels, *stores)),
            "    }",
            "  }",
            "};",
            *self._phases(),
        ]

    def _phases(self) -> list[str]:
        """Return the statements that go over rows at the upper edge, between, at the lower edge.

        Between, each point is one of all stages, and no row is one that a PE beside keeps: the
        stores to these nearly double the instructions of a row. At a lower edge it ends some rows
        early, so that what points there keep is there when it is needed.
        """
        chain, unrolled = self.chain, self.plan.unrolled
        low, high = ["from"], []
        sent = [(n, v.lag) for n, v in chain.final.items() if self._has_ghosts(n)]
        low += [f"rt.first_unsent(g_{name}) + {lag}" for name, lag in sent]
        if not self.plan.rounds.ring[0]:
            for level in chain.levels:
                rows, lag = level.work.box[0], level.makes.lag
                if not is_thin(level.work):
                    low.append(str(rows.start + lag))
                    high.append(str(rows.stop + lag))
                elif rows.count == 1 and rows.start <= _middle(self.program, level):
                    low.append(str(rows.stop + lag))
                elif rows.count == 1:
                    high.append(str(rows.start + lag))
        early = max([0, *(v.rows + self.plan.ahead for v in chain.at_rest)])
        first = nested("most", low)
        last = f"{nested('least', high) if high else f'to + {early}'} - {early}"
        last = nested("least", [last, *(f"rt.end_of_unsent(g_{n}) + {lag}" for n, lag in sent)])
        return [
            f"int from = at.begin + {chain.first};",
            f"const int to = at.end + {chain.last};",
            f"const int begin = from + up_to({first} - from, {unrolled});",
            f"const int end = end_between(from, to, {last}, {unrolled});",
            f"const bool is_whole = begin < end && {self._is_whole()};",
            "CPUFREE_ONE_COPY",
            "for (int phase = 0; phase < 3; ++phase) {",
            "  const int next = phase == 2 || !is_whole ? to : phase == 0 ? begin : end;",
            "  if (phase == 1 && is_whole)",
            "    go(std::false_type{}, from, next);",
            "  else",
            "    go(std::true_type{}, from, next);",
            "  from = next;",
            "}",
        ]

    def _rest(self, version: Version) -> tuple[list[str], list[str]]:
        """Return what `_input` does, for what points beside boxes keep and no stage reads."""
        ahead, kind, name = self.plan.ahead, self._kind(version), self.names[id(version)]

        def load(place: str, row: str) -> str:
            call = f"rt.template row<C>(m_{version.field}, {row}, at.x)"
            return f"if (rests({row})) {name}_ahead[{place}] = {call};"

        begin = [f"[[maybe_unused]] Columns<{kind}, C> {name}_ahead[{ahead}];"]
        begin += [f"if constexpr (kEdges) {load(str(k), f'from + {k}')}" for k in range(ahead)]
        return begin, [
            "if constexpr (kEdges) {",
            *(f"  {line}" for line in self._shift(version, f"{name}_ahead[n % {ahead}]")),
            f"  {load(f'n % {ahead}', f'y + {ahead}')}",
            "}",
        ]

    def _input(self, version: Version) -> tuple[list[str], list[str]]:
        """Return the statements before the loop, and of a row, that bring what lies in memory."""
        ahead, kind, name = self.plan.ahead, self._kind(version), self.names[id(version)]
        source, take = f"{name}_source", f"{name}_ahead[n % {ahead}]"
        first = f"at.begin + {self.chain.first}"
        return [
            f"auto {source} = rt.template source<C>(m_{version.field}, {first}, at);",
            f"Columns<{kind}, C> {name}_ahead[{ahead}];",
            *(f"{name}_ahead[{k}] = rt.template take<C, true>({source});" for k in range(ahead)),
        ], [
            *self._shift(version, take),
            f"{take} = rt.template take<C, kEdges>({source});",
        ]

    def _free(self) -> list[str]:
        """Return the statements that define whether a row has points of the lane beside a box."""
        columns: dict[str, None] = {}
        rows: dict[str, None] = {}
        ring = self.plan.rounds.ring
        for level in self.chain.levels:
            for axis, at, found in ((0, "i", rows), (1, "at.x", columns)):
                span = level.work.box[axis]
                last = " + C - 1" if axis else ""
                if not ring[axis]:
                    found[f"!within({at}, {span.start}, {span.count})"] = None
                    if last:
                        found[f"!within({at}{last}, {span.start}, {span.count})"] = None
        return [
            f"[[maybe_unused]] const bool beside = {' || '.join(columns) or 'false'};",
            "[[maybe_unused]] const auto rests = [&]([[maybe_unused]] int i) {",
            f"  return {' || '.join(['beside', *rows])};",
            "};",
        ]

    def _kind(self, version: Version) -> str:
        return TYPES[self.program.field(version.field).type]

    def _shift(self, version: Version, new: str) -> list[str]:
        """Return the statements by which a version gets a row more."""
        name = self.names[id(version)]
        rows = [f"{name}_{k} = {name}_{k - 1};" for k in range(version.rows - 1, 0, -1)]
        return [*rows, f"{name}_0 = {new};"]

    def _store(self, name: str, version: Version) -> tuple[list[str], list[str]]:
        """Return the statements before the loop, and of a row, that store a version."""
        row = f"at.begin + {self.chain.first - version.lag}"
        target = f"auto to_{name} = rt.template target<C>(o_{name}, s_{name}, g_{name}, {row}, at);"
        ghosts = "kEdges" if self._has_ghosts(name) else "false"
        call = f"rt.template store<kEdges, {ghosts}>(to_{name}, {self.names[id(version)]}_0);"
        always = (
            self.turns < self.plan.turns
            or name in self.plan.rounds.exchanged
            or (not self.chain.goes_round and self._moves(name))
        )
        return [target], [call if always else f"if (is_last) {call}"]

    def _has_ghosts(self, name: str) -> bool:
        return bool(self.kernel.layout.keeps_ghosts(self.program.field(name)))

    def _moves(self, name: str) -> bool:
        loop = self.plan.rounds.loop
        return any(isinstance(s, ir.Permute) and name in s.fields for s in loop.body)

    # --- a level ---

    def _level(self, level: Level) -> list[str]:
        work, lag = level.work, level.makes.lag
        kind = self._kind(level.makes)
        texts, before = self._reads(level)
        value = f"static_cast<{kind}>({self._value(level, texts)})"
        old = f"{self._row(level, level.kept, 0)}.v[c]" if level.kept is not None else f"{kind}{{}}"
        in_rows, in_columns = self._in_box(level)
        return [
            f"{{  // line {work.line}, turn {level.turn}",
            f"  [[maybe_unused]] const int q = y - {lag};",
            *(f"  {line}" for line in before),
            f"  [[maybe_unused]] const bool is_row = {in_rows};",
            f"  Columns<{kind}, C> next;",
            "  CPUFREE_UNROLL",
            "  for (int c = 0; c < C; ++c) {",
            f"    if constexpr (kEdges) next.v[c] = is_row && {in_columns} ? {value} : {old};",
            f"    else next.v[c] = {old if is_thin(work) else value};",
            "  }",
            *(f"  {line}" for line in self._shift(level.makes, "next")),
            "}",
        ]

    def _row(self, level: Level, version: Version, rows: int) -> str:
        """Return the row of a version that is so far from a level's own."""
        return f"{self.names[id(version)]}_{level.makes.lag - version.lag - rows}"

    def _in_box(self, level: Level) -> tuple[str, str]:
        """Return the conditions under which a row, and a point of it, are ones of the stage's."""
        ring = self.plan.rounds.ring
        found = [
            "true" if ring[axis] else f"within({at}, {span.start}, {span.count})"
            for axis, at, span in zip((0, 1), ("q", "at.x + c"), level.work.box, strict=True)
        ]
        return found[0], found[1]

    def _reads(self, level: Level) -> tuple[dict[ir.Read, str], list[str]]:
        """Return the texts of a level's reads, and the statements that these need before."""
        rows: dict[str, list[int]] = {}
        places: dict[ir.Read, tuple[str, int]] = {}
        before: list[str] = []
        loaded: dict[tuple[str, int], str] = {}
        for read in ir.reads(level.work.value):
            if read in places:
                continue
            if read in level.reads:
                version, away, columns = level.reads[read]
                row = self._row(level, version, away)
            elif self.program.field(read.field).distributed:
                (away, _), (columns, _) = offsets(self.program, read, level.work)
                key = read.field, away
                if key not in loaded:
                    loaded[key] = f"l{self.taps}"
                    before += self._tap(level, *key)
                row = loaded[key]
            else:
                continue
            places[read] = row, columns
            rows.setdefault(row, []).append(columns)
        texts = {}
        for row, away_of_row in rows.items():
            left, right = max(0, -min(away_of_row)), max(0, max(away_of_row))
            if left or right:
                call = f"rt.template wide<{left}, {right}>({row})"
                before.append(f"const auto w_{row} = {call};")
        for read, (row, column) in places.items():
            left, right = max(0, -min(rows[row])), max(0, max(rows[row]))
            texts[read] = f"w_{row}.v[c + {left + column}]" if left or right else f"{row}.v[c]"
        return texts, before

    def _tap(self, level: Level, name: str, away: int) -> list[str]:
        """Return the statements that take a row of an array that the loop does not change.

        It has been on its way since the row before.
        """
        k, kind = self.taps, TYPES[self.program.field(name).type]
        self.taps += 1
        row = f"at.begin + {self.chain.first - level.makes.lag + away}"
        self.tap_lines += [
            f"auto l{k}_source = rt.template source<C>(m_{name}, {row}, at);",
            f"Columns<{kind}, C> l{k}_next = rt.template take<C, true>(l{k}_source);",
        ]
        return [
            f"const auto l{k} = l{k}_next;",
            f"l{k}_next = rt.template take<C, kEdges>(l{k}_source);",
        ]

    def _value(self, level: Level, texts: dict[ir.Read, str]) -> str:
        def leaf(e: ir.Expr) -> str | None:
            if isinstance(e, ir.Read):
                return texts[e] if e in texts else self._factor(e, level.work)
            if isinstance(e, ir.Literal) or any(True for _ in ir.reads(e)):
                return None
            return self._scalar(e, level)

        return cxx(level.work.value, leaf, str(level.work.line))

    def _factor(self, read: ir.Read, work: ir.Assign) -> str:
        """Return the value of an array that all PEs have."""
        f = self.program.field(read.field)
        strides = self.kernel.layout.strides(f)
        terms = []
        for axis, a in enumerate(read.axes):
            if a.dim == ir.FIXED:
                terms.append(f"{a.start * strides[axis]}")
                continue
            at = ("q", "at.x + c")[a.dim]
            first = a.start - a.step * work.box[a.dim].start
            terms.append(f"(({at}) * {a.step} + {first}) * {strides[axis]}")
        count = strides[0] * f.shape[0]
        return f"rt.factor(f_{f.name}.base, {' + '.join(terms) or '0'}, {count})"

    def _scalar(self, e: ir.Expr, level: Level) -> str:
        """Return a scalar, which is computed once for all points of a turn."""
        key = level.turn, e
        if key not in self.scalars:
            name = f"c{len(self.scalars)}"
            self.scalars[key] = name
            text = cxx(e, lambda part: None, str(level.work.line))
            line = f"const {TYPES[e.type]} {name} = {text};"
            self.scalar_lines.setdefault(level.turn, []).append(line)
        return self.scalars[key]

    # --- where no point keeps its value ---

    def _is_whole(self) -> str:
        """Return the condition under which columns of a strip are those of all stages.

        Of stages that compute a column at an end alone: none.
        """
        right = f"at.start + {self.plan.strip}"
        narrowest = min(f.shape[1] for f in self.tiled)
        found = dict.fromkeys(["at.start >= 0", f"{right} <= {narrowest}"])
        for level in self.chain.levels:
            rows, columns = level.work.box
            if self.plan.rounds.ring[1] or (rows.count == 1 and columns.count > 1):
                continue
            if columns.count == 1:
                found[f"({right} <= {columns.start} || at.start >= {columns.stop})"] = None
                continue
            found[f"at.start >= {columns.start}"] = None
            found[f"{right} <= {columns.stop}"] = None
        return " && ".join(found)


def _middle(program: ir.Program, level: Level) -> int:
    """Return the row in the middle of the field that a level computes."""
    return program.field(level.work.field).shape[0] // 2


def nested(function: str, terms: list[str]) -> str:
    """Return the text of a function of two values for several.

    >>> nested("most", ["a", "b", "a"])
    'most(a, b)'
    """
    first, *rest = dict.fromkeys(terms)
    for term in rest:
        first = f"{function}({first}, {term})"
    return first
