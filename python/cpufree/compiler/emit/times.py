"""About how many microseconds a turn takes, of each kind of kernel: to choose one."""

from __future__ import annotations

from collections.abc import Collection

from cpufree.compiler import ir
from cpufree.compiler.emit.blocks import BlockPlan
from cpufree.compiler.emit.choice import cost, memory_cost, streaming_cost
from cpufree.compiler.emit.grid import register_fields
from cpufree.compiler.emit.rates import Rates
from cpufree.compiler.emit.stream_choice import stream_cost
from cpufree.compiler.emit.stream_plan import StreamPlan
from cpufree.compiler.layout import Slabs, distributed_rows
from cpufree.compiler.passes.levels import chain_of

_DOUBT = 1.05
"""Of the time of streams, which is known least."""


def time_of(
    program: ir.Program,
    plan: BlockPlan | StreamPlan,
    pes: int,
    kept: Collection[str],
    multiprocessors: int,
    rates: Rates,
) -> float:
    """Return the time of a turn by a plan."""
    slabs = Slabs(distributed_rows(program), pes)
    in_registers = register_fields(program, set(kept))
    if isinstance(plan, StreamPlan):
        chain = chain_of(program, plan.rounds, plan.turns, in_registers)
        return _DOUBT * stream_cost(program, plan, chain, slabs, multiprocessors, rates)
    if plan.tile is not None:
        return memory_cost(program, plan, slabs, multiprocessors, in_registers, rates)
    return cost(program, plan, slabs, in_registers, rates)


def sweep_time(
    program: ir.Program, pes: int, kept: Collection[str], multiprocessors: int, rates: Rates
) -> float:
    """Return the time of a turn whose groups are sweeps over memory."""
    slabs = Slabs(distributed_rows(program), pes)
    in_registers = register_fields(program, set(kept))
    return streaming_cost(program, slabs, multiprocessors, in_registers, rates)
