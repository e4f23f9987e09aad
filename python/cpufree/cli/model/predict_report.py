"""Tables of predicted times, and of how far they are from records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from cpufree.cli import display
from cpufree.text import counted

if TYPE_CHECKING:
    from cpufree.machine import Machine
    from cpufree.model.records import Summary
    from cpufree.model.solve import IterationTime, SystemFacts
    from cpufree.model.stencils import StencilTime

MOST_MEASURED = 8
"""GPUs up to which constants were measured."""
BEYOND = (
    f"beyond the {MOST_MEASURED} GPUs of a node messages are simulated, as cpufree simulate does; "
    "no network was measured"
)
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
    machine: Machine,
    numbers: Sequence[int],
    times: Sequence[IterationTime | StencilTime],
    notes: Sequence[str],
) -> RenderableType:
    """Return times, efficiency and bounds as a table, and what they rest on."""
    first = times[0].seconds * numbers[0]
    rows = [
        (
            str(pes),
            display.seconds(one.seconds),
            interval_of(one),
            f"{first / (one.seconds * pes):.0%}",
            f"{one.bound} ({one.parts[one.bound] / one.seconds:.0%})",
        )
        for pes, one in zip(numbers, times, strict=True)
    ]
    over = "efficiency" if numbers[0] == 1 else f"efficiency over {numbers[0]}"
    head = ("GPUs", "iteration", "95 % interval", over, "bound by")
    lines = [advice(numbers, [one.seconds for one in times]), *notes]
    table = display.columns(head, rows, f"Predicted for {told_machine(machine)}")
    return Group(table, *(Text(f"  {line}") for line in lines))


def interval_of(one: IterationTime | StencilTime) -> str:
    """Return the ends of the interval of a time, as far as they are known."""
    low, high = getattr(one, "low", None), getattr(one, "high", None)
    return (
        "" if low is None or high is None else f"{display.seconds(low)} to {display.seconds(high)}"
    )


def told_system(facts: SystemFacts) -> str:
    """Return the size of a system."""
    return (
        f"{counted(facts.rows, 'row')}, {counted(facts.nnz, 'nonzero')}, "
        f"{facts.matrix_bytes / max(facts.nnz, 1):.1f} bytes each as GPUs store them (by a sample "
        "of rows)"
    )


def errors_report(found: Sequence[Summary], title: str) -> RenderableType:
    """Return how far times are from records."""
    rows = [
        (one.name, str(one.count), f"{one.median:.1%}", f"{one.mean:+.1%}", f"{one.largest:.0%}")
        for one in found
    ]
    head = ("of", "times", "median", "signed mean", "largest")
    return display.columns(head, rows, title)
