"""Tables of predicted times, and of how far they are from records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from cpufree.cli import display
from cpufree.text import counted

if TYPE_CHECKING:
    from cpufree.machine import Machine
    from cpufree.model.records import Comparison
    from cpufree.model.solve import IterationTime, SystemFacts
    from cpufree.model.stencil_records import ComparedStencil
    from cpufree.model.stencils import StencilTime

MOST_MEASURED = 8
"""GPUs up to which constants were measured."""


WORTH = 0.5
"""Efficiency from which GPUs are taken to be worth it."""


def advice(numbers: Sequence[int], seconds: Sequence[float]) -> str:
    """Return in a line the fastest number of GPUs that is worth it, and the fastest of all."""
    efficiency = [
        seconds[0] * numbers[0] / (time * pes) for pes, time in zip(numbers, seconds, strict=True)
    ]
    places = range(len(numbers))
    worth = min((k for k in places if efficiency[k] >= WORTH), key=lambda k: seconds[k])
    best = min(places, key=lambda k: seconds[k])

    def told(k: int) -> str:
        time, gpus = display.seconds(seconds[k]), counted(numbers[k], "GPU")
        return f"{time} on {gpus}, at {efficiency[k]:.0%} efficiency"

    more = f"; the fastest: {told(best)}" if best != worth else ""
    return f"{told(worth)}{more}"


def told_machine(machine: Machine) -> str:
    """Return what a machine is, and whether its numbers are those of such GPUs."""
    stands_in = "" if machine.known else ", whose numbers stand in: these GPUs were not measured"
    return f"{machine.machine}{stands_in}"


def prediction_report(
    machine: Machine, facts: Sequence[SystemFacts], times: Sequence[IterationTime]
) -> RenderableType:
    """Return times, efficiency and bounds as a table, and what they rest on."""
    numbers = [one.pes for one in facts]
    first = times[0].seconds * numbers[0]
    rows = [
        (
            str(pes),
            display.seconds(one.seconds),
            f"{display.seconds(one.low)} to {display.seconds(one.high)}",
            f"{first / (one.seconds * pes):.0%}",
            f"{one.bound} ({one.parts[one.bound] / one.seconds:.0%})",
        )
        for pes, one in zip(numbers, times, strict=True)
    ]
    head = ("GPUs", "iteration", "95 % interval", "efficiency", "bound by")
    parts: list[RenderableType] = [
        display.columns(head, rows, f"Predicted for {told_machine(machine)}"),
        Text(f"  {advice(numbers, [one.seconds for one in times])}"),
        Text(
            f"  {counted(facts[0].rows, 'row')}, {counted(facts[0].nnz, 'nonzero')}, "
            f"{facts[0].matrix_bytes / max(facts[0].nnz, 1):.1f} bytes each as GPUs store them (by "
            "a sample of rows)"
        ),
    ]
    if numbers[-1] > MOST_MEASURED:
        parts.append(
            Text(
                f"  beyond the {MOST_MEASURED} GPUs of a node messages are simulated, as cpufree "
                "simulate does; no network was measured"
            )
        )
    return Group(*parts)


def comparison_report(found: Comparison) -> RenderableType:
    """Return how far predictions are from records, by the number of GPUs."""
    rows = []
    for pes in [*found.pes(), None]:
        errors = found.errors(pes)
        rows.append(
            (
                "all" if pes is None else str(pes),
                str(len(errors)),
                f"{np.median(errors):.1%}",
                f"{errors.max():.1%}",
            )
        )
    low, high = found.ratios()
    head = ("GPUs", "systems and methods", "median error", "worst")
    lost = found.lost()
    with_gpus = found.lost_with_gpus()
    more = [
        Text(f"  with the number of GPUs, of {counted(len(with_gpus), 'system')}: "
             f"mean {with_gpus.mean():.1%}, worst {with_gpus.max():.1%}")
    ] if len(with_gpus) else []  # fmt: skip
    return Group(
        display.columns(head, rows, "Predicted iterations beside records"),
        Text(f"  95 % of measured over predicted: {low:.2f} to {high:.2f}"),
        Text(f"  time lost by the method predicted as fastest: mean {lost.mean():.1%}, "
             f"worst {lost.max():.1%}"),
        *more,
    )  # fmt: skip


def stencil_report(
    machine: Machine, numbers: Sequence[int], times: Sequence[StencilTime]
) -> RenderableType:
    """Return times of an iteration on a grid, efficiency and bounds as a table."""
    first = times[0].seconds * numbers[0]
    rows = [
        (
            str(pes),
            display.seconds(one.seconds),
            f"{first / (one.seconds * pes):.0%}",
            one.bound,
        )
        for pes, one in zip(numbers, times, strict=True)
    ]
    head = ("GPUs", "iteration", "efficiency", "bound by")
    return Group(
        display.columns(head, rows, f"Predicted for {told_machine(machine)}"),
        Text(f"  {advice(numbers, [one.seconds for one in times])}"),
    )


def stencil_comparison_report(found: Sequence[ComparedStencil]) -> RenderableType:
    """Return how far predictions are from records of stencils, by the number of GPUs."""
    if not found:
        return Text("no grid of these records was iterated on by GPUs")
    rows = []
    for pes in [*sorted({one.facts.pes for one in found}), None]:
        errors = np.abs([one.error for one in found if pes in (None, one.facts.pes)])
        name = "all" if pes is None else str(pes)
        rows.append((name, str(len(errors)), f"{np.median(errors):.1%}", f"{errors.max():.1%}"))
    head = ("GPUs", "grids", "median error", "worst")
    return display.columns(head, rows, "Predicted iterations on grids beside records")
