"""Loops.

A loop becomes one of the run. Where its names stand for something else after the first turn, that
one is lowered apart; short loops whose turns are decided beforehand are written out.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.front.flow.branches import Flow, lower_body
from cpufree.compiler.front.flow.meeting import Join, end_here
from cpufree.compiler.front.flow.regions import Region, State, WrittenOut, assigned, set_names
from cpufree.compiler.front.lists import items_of
from cpufree.compiler.front.protocols import Left, Lowers, Returned
from cpufree.compiler.front.values import (
    Host,
    ScalarValue,
    TupleValue,
    Value,
    unpacked,
)
from cpufree.compiler.operations import kinds_of
from cpufree.errors import ProgramError

MOST_TURNS = 64
"""Of a loop that is written out."""
MOST_IN_ALL = 128
"""Turns of all loops of a program that are written out: compilers take seconds for some hundred
statements."""
MOST_STATEMENTS = 320
"""Of a loop that is written out: a C++ compiler takes 9 s for them, and more than twice for twice
as many."""
_MOST_APART = 3  # first turns of a loop that are lowered apart


def leave(lowering: Lowers, node: ast.Break | ast.Continue) -> Left:
    """Lower break and continue, of the innermost loop."""
    b = lowering.builder
    frame = lowering.loops[0]
    if frame.is_barrier:
        b.fail(node, "break or continue outside a loop", "leave the program with return at its end")
    again = isinstance(node, ast.Continue)
    if isinstance(frame, WrittenOut):
        if lowering.depth == frame.depth:
            return Left(again)
        if again:
            b.fail(
                node,
                "a continue that the run decides, in a turn that is written out",
                "put what follows into the other branch of the if",
            )
    if again:
        frame.end_turn()
    else:
        frame.exit()
    b.out.append(ir.Continue() if again else ir.Break())
    return Left(again)


# --- while ---


def while_loop(lowering: Lowers, node: ast.While) -> Flow:
    """Lower a while loop."""
    state = State(lowering)
    known = _known(lowering, node)[1]
    if known is False:
        return None
    state.restore()
    return _first_that_works(lowering, _ways_of_while(lowering, node, _MOST_APART, bool(known)))


def _ways_of_while(
    lowering: Lowers, node: ast.While, apart: int, known: bool = False
) -> Iterator[Way]:
    yield Way(lambda: _while_of_run(lowering, node, copies=False))

    def turn_apart() -> Flow:
        if not _known(lowering, node)[1]:
            lowering.builder.fail(node, "the first turn is not certain", "")
        rest = _ways_of_while(lowering, node, apart - 1)
        return _in_turn(lowering, node, [None], lambda: _first_that_works(lowering, rest))

    if apart:
        yield Way(turn_apart, by_join=True)
    yield Way(lambda: _while_of_run(lowering, node, copies=True), by_join=True)
    if known:
        turns = _while_known(lowering, node)
        yield Way(lambda: _in_turn(lowering, node, turns, None))


def _known(lowering: Lowers, node: ast.While) -> tuple[Value, bool | None]:
    """Return the condition of a loop, and its truth where that is known beforehand."""
    condition = lowering.expressions.test(node.test, lowering.scope)
    return condition, lowering.expressions.known_truth(condition)


def _while_of_run(lowering: Lowers, node: ast.While, copies: bool) -> Flow:
    b = lowering.builder
    line = b.line(node)

    def body() -> tuple[ir.Statement, ...]:
        with b.apart():
            condition, known = _known(lowering, node)
            if known is False:
                region.exit()
                return (*b.out, ir.Break())
            if known is None:
                test = lowering.expressions.truth(node.test, condition)
                with b.apart():
                    region.exit()
                    leave = (*b.out, ir.Break())
                b.out.append(ir.If(ir.Op("logical_not", (test,), "bool"), leave, (), line))
            made, flow = lower_body(lowering, node.body)
            b.out += made
            if flow is None:
                region.end_turn()
            return tuple(b.out)

    region = Region(lowering, node, copies)
    made = region.run(body)
    b.out.append(ir.Loop(made, line))
    region.after(certain=True, before=None)
    return None


# --- for ---


def for_loop(lowering: Lowers, node: ast.For) -> Flow:
    """Lower a for loop: over a range, or written out."""
    bounds = _range(lowering, node)
    if bounds is None:
        value = lowering.kept(node.iter, lowering.eval(node.iter), "item")
        return _write_out(lowering, node, value)
    turns = _turns(bounds)
    if turns is not None and not turns:
        return None
    return _first_that_works(lowering, _ways_of_range(lowering, node, bounds, turns, _MOST_APART))


def _ways_of_range(
    lowering: Lowers, node: ast.For, bounds: list[Value], turns: range | None, apart: int
) -> Iterator[Way]:
    b = lowering.builder
    yield Way(lambda: _range_of_run(lowering, node, bounds, bool(turns), copies=False))
    if turns and apart:
        rest = turns[1:]
        later = [Host(rest.start), bounds[1], bounds[2]]  # no part of the kernel's text
        ways = _ways_of_range(lowering, node, later, rest, apart - 1)
        first = replace(bounds[0], value=turns[0]) if isinstance(bounds[0], Host) else bounds[0]
        then = (lambda: _first_that_works(lowering, ways)) if rest else None
        yield Way(lambda: _in_turn(lowering, node, [first], then), by_join=True)
    yield Way(lambda: _range_of_run(lowering, node, bounds, bool(turns), copies=True), by_join=True)
    few = turns and len(turns) <= MOST_TURNS and b.written_out + len(turns) <= MOST_IN_ALL
    if few and turns and apart == _MOST_APART:
        numbers = TupleValue(tuple(Host(k, literal=True) for k in turns))
        yield Way(lambda: _write_out(lowering, node, numbers))


def _range(lowering: Lowers, node: ast.For) -> list[Value] | None:
    """Return start, stop and step of a loop over range, None of another loop."""
    call, b = node.iter, lowering.builder
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords):
        return None
    function = lowering.eval(call.func)
    if not isinstance(function, Host) or function.value is not range:
        return None
    given = lowering.expressions.in_order(call.args, lowering.scope)
    for k, value in enumerate(given):
        number = value.value if isinstance(value, Host) else None
        whole = isinstance(number, int | np.integer) and not isinstance(number, np.bool_)
        device = isinstance(value, ScalarValue) and set(kinds_of(value.kind)) <= {
            "int", "int64", "int32", "truth",
        }  # fmt: skip
        if not whole and not device:
            b.fail(call.args[k], "range takes whole numbers", "write int(...)")
        if whole and number is not None and not -(2**63) <= int(number) < 2**63:
            b.fail(call.args[k], f"{number} does not fit in 64 bits", "write a smaller number")
    one = Host(1, literal=True)
    if not 1 <= len(given) <= 3:
        b.fail(call, "range takes one to three numbers", "write range(n)")
    if len(given) == 1:
        return [Host(0, literal=True), given[0], one]
    return [*given, one] if len(given) == 2 else given


def _turns(bounds: list[Value]) -> range | None:
    numbers = [int(v.value) for v in bounds if isinstance(v, Host)]
    return range(*numbers) if len(numbers) == len(bounds) and numbers[2] else None


def _range_of_run(
    lowering: Lowers, node: ast.For, bounds: list[Value], certain: bool, copies: bool
) -> Flow:
    b, scope = lowering.builder, lowering.scope
    step, line = bounds[2], b.line(node)
    if not isinstance(node.target, ast.Name) or not isinstance(step, Host) or not step.value:
        b.fail(node, "a loop over range has one name, and a step known beforehand", "write it so")
    name = node.target.id
    start, stop = (b.cast(b.operand(node, v).expr, "int64") for v in bounds[:2])
    before = Join()

    def body() -> tuple[ir.Statement, ...]:
        variable.append(b.new_variable(b.prefix + name, "int"))
        scope.unbound.pop(name, None)
        scope.names[name] = ScalarValue(ir.Scalar(variable[-1], "int64"), "int")
        made, flow = lower_body(lowering, node.body)
        if flow is None:
            with b.apart(made):
                region.end_turn()
        return tuple(made)

    variable: list[str] = []
    region = Region(lowering, node, copies)
    made = region.run(body)
    b.out.append(before)  # type: ignore[arg-type]
    b.out.append(ir.For(variable[-1], start, stop, int(step.value), made, line))
    region.after(certain, before)
    return None


# --- turns in line ---


def _write_out(lowering: Lowers, node: ast.For, value: Value) -> Flow:
    """Lower the body once for each item of a value."""
    items = items_of(lowering.builder, node.iter, value)
    lowering.builder.written_out += len(items)
    return _in_turn(lowering, node, items, None, value)


def _while_known(lowering: Lowers, node: ast.While) -> Iterator[None]:
    """Yield for each turn of a loop whose turns are known beforehand."""
    b = lowering.builder
    for _ in range(MOST_TURNS + 1):
        known = _known(lowering, node)[1]
        if known is None:
            b.fail(node, "the run decides how many turns this loop has", "")
        if not known:
            return
        b.written_out += 1
        yield None
    b.fail(node, f"this loop has more than {MOST_TURNS} turns", "write for k in range(n)")


def _in_turn(
    lowering: Lowers,
    node: ast.For | ast.While,
    items: Iterable[Value | None],
    then: Callable[[], Flow] | None,
    over: Value | None = None,
) -> Flow:
    """Lower the body once for each item, then the rest of the loop, if any.

    Where the run may leave by a break, all of it is a loop of one turn. `over` has the items.
    """
    b = lowering.builder
    frame = WrittenOut(lowering, assigned([node], scope=lowering.scope))
    outer, b.out = b.out, []
    lowering.loops.insert(0, frame)
    # What has not been assigned yet is seen: its arrays must not move.
    to_come = f"items of line {node.lineno}, column {node.col_offset}"
    lowering.scope.names[to_come] = TupleValue(() if over is None else (unpacked(over), over))
    flow: Flow = None
    turns = 0
    try:
        for item in items:
            turns += 1
            if isinstance(node, ast.For) and item is not None:
                lowering.assign(node.target, item)
            flow = lowering.block(node.body)
            if isinstance(flow, Left) and flow.again:
                flow = None
            if flow is not None:
                break
        lowering.loops.remove(frame)
        made = sum(isinstance(s, ir.Assign | ir.Reduce) for s in ir.walk(tuple(b.out)))
        if turns > 1 and made > MOST_STATEMENTS:
            b.fail(
                node,
                f"written out turn by turn this loop has {made} statements, for which a compiler "
                "takes long",
                "write the update of all points in one statement, with slices",
            )
        if flow is None and then is not None:
            flow = then()
        if not frame.exits:
            body, b.out = b.out, outer
            b.out += body
            return None if isinstance(flow, Left) else flow
        if isinstance(flow, Returned):
            words = "a return in a loop that a break may leave", "return at the end"
            b.fail(node, *words, by_return=True)
        if flow is None or not flow.by_run:
            frame.exits.insert(
                0,
                end_here(lowering, frame.names, "the loop may end before"),
            )
            b.out.append(ir.Break())
        body, b.out = b.out, outer
        b.out.append(ir.Loop(tuple(body), b.line(node)))
        set_names(lowering, node, frame.names, frame.exits, {})
        return None
    finally:
        b.out = outer
        lowering.scope.names.pop(to_come, None)
        if frame in lowering.loops:
            lowering.loops.remove(frame)


@dataclass
class Way:
    """A way to lower a loop."""

    lower: Callable[[], Flow]
    by_join: bool = False
    """It helps where names stand for different things in the turns."""


def _first_that_works(lowering: Lowers, ways: Iterator[Way]) -> Flow:
    """Lower a loop; where no way works, what is wrong with the first one."""
    first: ProgramError | None = None
    state = State(lowering)
    for way in ways:
        if way.by_join and not (first is not None and first.by_join):
            continue
        try:
            return way.lower()
        except ProgramError as error:
            if first is not None and not way.by_join and str(error) not in str(first):
                first.args = (f"{first}\n  Nor can its turns be written out one by one:\n{error}",)
            first = first or error
            state.restore()
    assert first is not None
    raise first
