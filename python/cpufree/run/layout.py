"""Set-up of a solve: the matrix is shared among PEs, reordered, and handed to the core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..partition import Int32s, choose_order, partition
from ..problem import CsrMatrix
from ..result import counted
from . import choices, core, gpus
from .placement import Placement

if TYPE_CHECKING:
    from .._core import System

# Largest over mean nonzeros per PE from which the user is told.
UNBALANCED = 1.25


@dataclass(frozen=True)
class Layout:
    """A matrix laid out on its PEs, how it lies there and why."""

    system: System
    plan: dict[str, Any]
    engine: str
    devices: tuple[int, ...]
    """Numbers of the GPUs, one for each PE; none on the CPU engine."""
    device_names: str
    """Such as "4 × NVIDIA H200"; "" on the CPU engine."""
    why: list[str]
    warnings: list[str]


def lay_out(matrix: CsrMatrix, placement: Placement, method: str, reorder: str | bool) -> Layout:
    """Partition and reorder a matrix, and set it up on its PEs.

    Args:
        matrix: checked, in the type of the solve.
        placement: where it goes.
        method: of the partition; see `partition`.
        reorder: see `choose_order`.
    """
    part, why_part, warnings = share(matrix, placement.pes, method)
    ordering = choose_order(matrix, part, reorder)
    devices = tuple(gpu.index for gpu in placement.gpus)
    system = core.make_system(
        matrix.indptr,
        matrix.indices,
        matrix.data,
        part,
        ordering.order,
        pes=placement.pes,
        blocks=placement.blocks,
        engine=placement.engine,
        gpus=devices,
    )
    plan: dict[str, Any] = {**system.plan()}
    blocks = counted(plan.get("blocks", placement.blocks), "block")
    if placement.gpus:
        blocks += f" × {counted(plan['threads'], 'thread')}"
    return Layout(
        system=system,
        plan=plan,
        engine=placement.engine,
        devices=devices,
        device_names=gpus.models(placement.gpus),
        why=[*placement.why, f"{blocks} each: {placement.why_blocks}", *why_part, ordering.why],
        warnings=[*placement.warnings, *warnings, *oversubscription(placement)],
    )


def share(A: CsrMatrix, pes: int, method: str) -> tuple[Int32s | None, list[str], list[str]]:
    """Return the owners of the rows (None: one PE), why, and what is amiss."""
    if pes == 1 and method == "auto":
        return None, [], []
    parts = partition(A, pes, method)
    warnings = []
    if parts.fallback:
        warnings.append(f"rows are shared out in consecutive blocks: {parts.why}")
    if parts.report.imbalance > UNBALANCED:
        warnings.append(
            f"the largest PE has {parts.report.imbalance:.2f} times the mean nonzeros; the "
            "others wait for it: fewer PEs may be as fast"
        )
    return parts.part, [f"{parts.method} partition: {parts.why}"], warnings


def oversubscription(placement: Placement) -> list[str]:
    """Return a warning where the CPU engine has more threads than cores."""
    cores = choices.available_cores()
    threads = placement.pes * placement.blocks
    if placement.gpus or threads <= cores:
        return []
    return [
        f"{counted(placement.pes, 'PE')} × {counted(placement.blocks, 'block')} are {threads} "
        f"threads on {counted(cores, 'core')}: they take turns, which is slow"
    ]
