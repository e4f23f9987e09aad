"""The kernel of ranks where a PE goes over rows: the CPU engine.

Ranks whose programs differ in numbers only (where their boxes begin and end) share a text; each has
a table of numbers of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cpufree.compiler import ir
from cpufree.compiler.emit.kernel import KernelText
from cpufree.compiler.emit.names import in_ascii
from cpufree.compiler.layout import Key
from cpufree.compiler.ranks.routes import Ranks

MESSAGES = (ir.Grant, ir.Start, ir.Finish, ir.PutSignal, ir.WaitSignal, ir.Get)
_ENTRY = """
template <GridPort P>
bool run(P& port, const Args& args, std::byte* heap) {{
  const std::int64_t* const N = args.numbers;
  const int pe = port.pe();
  Messages<P> messages(port, heap, {{N[0], N[1], N[2], N[3], N[4], static_cast<int>(N[5])}});
  Args mine = args;
  mine.numbers = N + N[7 + pe];
  mine.results = args.results + pe * N[6];
  mine.faults = args.faults + 2 * pe;
  SoloPort<P> solo(port);
  switch (messages.variant()) {{
{cases}
    default:
      return false;
  }}
}}
"""


@dataclass(frozen=True)
class RowsText:
    """The text for all ranks; of each variant of the program that of the text, and numbers."""

    text: str
    variant_of: tuple[int, ...]
    numbers: tuple[tuple[Key, ...], ...]


def emit_rows(ranks: Ranks, programs: list[ir.Program]) -> RowsText:
    """Return the kernel of ranks; `programs` are the variants after the passes for rows."""
    texts: list[str] = []
    variant_of, numbers = [], []
    for program in programs:
        made = _Variant(program)
        text = made.whole()
        if text not in texts:
            texts.append(text)
        variant_of.append(texts.index(text))
        numbers.append(tuple(made.numbers))
    lines = [
        '#include "cpufree/programs/runtime.hpp"',
        '#include "cpufree/programs/solo_port.hpp"',
        '#include "cpufree/programs/messages.hpp"',
        "",
        "namespace {",
        "using namespace cpufree;",
        "using namespace cpufree::programs;",
        "",
    ]
    for k, text in enumerate(texts):
        lines += [f"namespace variant{k} {{", text, f"}}  // namespace variant{k}"]
    cases = "\n".join(
        f"    case {k}:\n      return variant{k}::run(solo, messages, mine, heap);"
        for k in range(len(texts))
    )
    lines += [_ENTRY.format(cases=cases), "}  // namespace", ""]
    return RowsText(in_ascii("\n".join(lines)), tuple(variant_of), tuple(numbers))


def exchanges_of(program: ir.Program) -> int:
    """Return how many exchanges a program has."""
    numbers = [s.exchange for s in ir.walk(program.body) if isinstance(s, ir.Start)]
    return max(numbers, default=-1) + 1


class _Variant(KernelText):
    def whole(self) -> str:
        """Return the structs and the function of a variant."""
        head = [*self._fields(), *self._scalars()]
        head += [f"Exchange x{k};" for k in range(exchanges_of(self.program))]
        body = self._block(self.program.body)
        lines = [
            *self.structs,
            "",
            "template <Port P, class M>",
            "bool run(P& port, [[maybe_unused]] M& messages, const Args& args, std::byte* heap) {",
            "  Runtime<P> rt(port, args, heap);",
            "  [[maybe_unused]] const std::int64_t* const N = args.numbers;",
            *(f"  {line}" for line in (*head, *body, *self._results())),
            "  return !rt.failed();",
            "}",
        ]
        return "\n".join(lines)

    def _statement(self, s: ir.Statement) -> list[str]:
        if isinstance(s, MESSAGES):
            return message_lines(s, lambda e: self._scalar(e, 0))
        return super()._statement(s)


def message_lines(s: ir.Statement, scalar: Callable[[ir.Expr], str]) -> list[str]:
    """Return the statements of messages, alike for all back ends; `scalar` gives expressions."""
    if isinstance(s, ir.Grant):
        return [f"messages.grant(x{s.exchange}, {s.receives[0].site}, {len(s.receives)});"]
    if isinstance(s, ir.Start):
        # Counted where nothing is sent, too: what is received is numbered alike.
        return [f"messages.start(x{s.exchange}, {_first(s.sends)}, {len(s.sends)});"]
    if isinstance(s, ir.Finish):
        sites = (str(_first(s.receives)), str(len(s.receives)), *(f"x{k}" for k in s.others))
        return [f"if (!messages.finish(x{s.exchange}, {', '.join(sites)})) return false;"]
    if isinstance(s, ir.PutSignal):
        return [f"messages.put_signal({s.site}, {s.signal}, {scalar(s.value)});"]
    if isinstance(s, ir.Get):
        return [f"messages.get({s.site});"]
    assert isinstance(s, ir.WaitSignal)
    return [f"if (!messages.wait_signal({s.signal}, {scalar(s.value)})) return false;"]


def _first(messages: tuple[ir.Message, ...]) -> int:
    return messages[0].site if messages else 0
