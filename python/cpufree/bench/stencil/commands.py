"""The command `cpufree bench stencil`. What it does is in the other modules, loaded when needed."""

from __future__ import annotations

from typing import Annotated

import typer

from cpufree.bench.measuring import Measuring, with_measuring
from cpufree.bench.options import number, words
from cpufree.cli import display

ITERATIONS = 1000
GRIDS_ON_CPU, PER_PE_ON_CPU = "256x256,64^3", ""
GRIDS_ON_GPUS, PER_PE_ON_GPUS = "512^3", "256x256,2048x2048,8192x8192,256^3"

STENCIL_EPILOG = """
[bold]Examples[/bold]

  cpufree bench stencil

  cpufree bench stencil --per-gpu 256x256,2048x2048,8192x8192 --pes 1,2,4,8 --precision single

  cpufree bench stencil --grid 512^3 --contenders cpufree,p2p,nccl_graph

  cpufree bench stencil --per-gpu 256x256 --variant full,no-compute,no-comm

The same command with the same --out goes on where a run has stopped.
"""


@with_measuring
def stencil_command(
    measuring: Measuring,
    grid: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Grids such as 8192x8192,512^3, whatever the PEs."),
    ] = None,
    per_gpu: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Grids for each PE: they grow with the PEs."),
    ] = None,
    precision: Annotated[str, typer.Option(metavar="LIST", help="double, single.")] = "single",
    boundary: Annotated[str, typer.Option(metavar="LIST", help="dirichlet, periodic.")] = (
        "dirichlet"
    ),
    iterations: Annotated[int, number("--iterations", "Iterations of a run.")] = ITERATIONS,
) -> None:
    """Measure Jacobi iterations: everybody on the same grids, interleaved."""
    from cpufree.bench.cg.problems import DTYPES
    from cpufree.bench.core.machine import describe_machine
    from cpufree.bench.stencil.contenders import find
    from cpufree.bench.stencil.measure import StencilRun
    from cpufree.bench.stencil.plan import Configuration, check_grids, parse_cases
    from cpufree.bench.stencil.report import show
    from cpufree.bench.stencil.results import StencilResults

    devices = measuring.devices()
    if grid is None and per_gpu is None:
        on_gpus = devices is not None
        grid = GRIDS_ON_GPUS if on_gpus else GRIDS_ON_CPU
        per_gpu = PER_PE_ON_GPUS if on_gpus else PER_PE_ON_CPU
    entries = measuring.choose(find, devices is not None)
    configuration = Configuration(
        cases=parse_cases(grid or "", per_gpu or ""),
        precisions=words(precision, "--precision", tuple(DTYPES)),
        boundaries=words(boundary, "--boundary", ("dirichlet", "periodic")),
        iterations=iterations,
        **measuring.plan(entries, devices),
    )
    check_grids(configuration, describe_machine()["memory_bytes"])
    out = measuring.measure("stencil", configuration, entries, StencilRun)
    results = StencilResults([out])
    show(results, display.report_console(quiet=measuring.quiet))
    measuring.end(out, bool(results.series))
