"""What the compiler has made of a program, and why, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cpufree.compiler import ir
from cpufree.compiler.emit.choice import describe
from cpufree.compiler.grid import GridKernel
from cpufree.compiler.layout import Layout, Slabs, distributed_rows
from cpufree.compiler.passes.rows import row_reads
from cpufree.compiler.show import show
from cpufree.text import counted


@dataclass(frozen=True)
class Explanation:
    """What a call would do. Its text is what `str` gives.

    Attributes
    ----------
    program : str
        The program after all passes.
    pes : int
        PEs of the call.
    rows : tuple of int
        Rows of the first axis that each PE owns.
    halos : dict
        Ghost rows of each field: below and above.
    exchanges : int
        Places where halos are exchanged.
    groups : int
        Groups of stages; each goes over the rows once.
    bytes_moved : int
        Bytes that go to and from memory when each group runs once, if every array of a group is
        read and written once.
    bytes_exchanged : int
        Bytes that a PE sends to each side when every exchange is done once.
    reasons : tuple of str
        Why it is so, in sentences.
    on_gpus : tuple of str
        The same of the kernel for GPUs.
    """

    program: str
    pes: int
    rows: tuple[int, ...]
    halos: dict[str, tuple[int, int]]
    exchanges: int
    groups: int
    bytes_moved: int
    bytes_exchanged: int
    reasons: tuple[str, ...]
    on_gpus: tuple[str, ...] = ()

    def __str__(self) -> str:
        facts = [
            f"{counted(self.pes, 'PE')}, rows of the first axis: {', '.join(map(str, self.rows))}",
            f"{counted(self.groups, 'sweep')} over the arrays, "
            f"{counted(self.exchanges, 'exchange')} of halos, when everything is done once",
            f"{self.bytes_moved / 1e6:.4g} MB through memory, {self.bytes_exchanged / 1e3:.4g} KB "
            "from each PE to its neighbours",
        ]
        return "\n".join(
            [self.program, *facts, *(f"- {reason}" for reason in (*self.reasons, *self.on_gpus))]
        )


def explain(program: ir.Program, pes: int, asked: int | str) -> Explanation:
    """Return what a program that all passes have been through does on N PEs."""
    layout = Layout(program, pes)
    slabs = Slabs(distributed_rows(program), pes)
    bounds = [slabs.bounds(pe) for pe in range(pes)]
    groups = [s for s in ir.walk(program.body) if isinstance(s, ir.Group)]
    puts = [s for s in ir.walk(program.body) if isinstance(s, ir.Put)]
    sent = sum(
        (h.below + h.above) * _row_bytes(layout, program.field(h.field))
        for s in puts
        for h in s.halos
    )
    wide = {n: (r.below, r.above) for n, r in layout.widths.items() if r.below or r.above}
    return Explanation(
        show(program),
        pes,
        tuple(hi - lo for lo, hi in bounds),
        wide,
        len(puts),
        len(groups),
        sum(_traffic(program, g) for g in groups),
        sent,
        tuple(_reasons(program, groups, pes, asked)),
    )


def explain_kernel(kernel: GridKernel) -> tuple[str, ...]:
    """Return what a kernel for GPUs does, and why, in sentences."""
    text, pes = kernel.text, kernel.layout.slabs.pes
    sweeps = counted(sum(isinstance(s, ir.Group) for s in ir.walk(kernel.program.body)), "sweep")
    start = f"on {counted(pes, 'GPU')}: {sweeps}"
    if text.on_chip is None:
        barriers = counted(text.barriers, "barrier")
        return (f"{start}, {barriers}; values lie in memory, for {kernel.why or 'so it is asked'}",)
    return (f"{start}; {describe(text.on_chip)}",)


def _row_bytes(layout: Layout, f: ir.Field) -> int:
    return layout.strides(f)[0] * np.dtype(f.type).itemsize


def _traffic(program: ir.Program, group: ir.Group) -> int:
    """Return the bytes of a group: arrays read, and arrays written."""
    works = [stage.work for stage in group.stages]
    read = {r.field for w in works for r in ir.reads(w.value)}
    write = {w.field for w in works if isinstance(w, ir.Assign)}
    names = [*read, *write]
    fields = (program.field(name) for name in names)
    return sum(math.prod(f.given_shape) * np.dtype(f.type).itemsize for f in fields)


def _reasons(program: ir.Program, groups: list[ir.Group], pes: int, asked: int | str) -> list[str]:
    found = []
    if asked != "auto" and int(asked) > pes:
        found.append(
            f"{counted(pes, 'PE')} instead of {asked}: each needs as many rows as its neighbours "
            "read of it"
        )
    for f in program.fields:
        if f.role == "temporary":
            name = f.name.removeprefix("new_").rpartition("_")[0]
            found.append(
                f"{f.name} holds new values of {name}: the update reads points that it writes, and "
                "NumPy computes all of them first"
            )
        if not f.distributed:
            least = min((len(g.shape) for g in program.fields if g.distributed), default=0)
            why = (
                "has fewer dimensions than the others" if len(f.shape) < least else "is read whole"
            )
            found.append(f"{f.name} {why}: every PE has a copy")
    for group in groups:
        for stage in group.stages:
            work, beyond = stage.work, stage.below + stage.above
            if beyond and isinstance(work, ir.Assign):
                rows = counted(beyond, "row")
                found.append(
                    f"line {work.line}: {rows} of {work.field} beyond a PE's own are "
                    "computed twice, instead of an exchange"
                )
            for r in row_reads(program, work):
                if r.periodic:
                    found.append(f"line {work.line}: {r.field} is periodic along the first axis")
    return list(dict.fromkeys(found))
