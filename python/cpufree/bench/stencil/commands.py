"""The command `cpufree bench stencil`. What it does is in the other modules, loaded when needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ... import display
from ..options import (
    Contenders,
    EngineName,
    Gpus,
    Peers,
    Quiet,
    Repeats,
    Retry,
    Seed,
    Timeout,
    Tuning,
    Variants,
    commands_of_peers,
    default_out,
    find_gpus,
    known_word,
    measure_to,
    parse_pes,
    parse_tuning,
    words,
)

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


def stencil_command(
    grid: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Grids such as 8192x8192,512^3, whatever the PEs."),
    ] = None,
    per_gpu: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Grids for each PE: they grow with the PEs."),
    ] = None,
    contenders: Contenders = "all",
    peer: Peers = None,
    pes: Annotated[
        str, typer.Option(metavar="LIST", help="Numbers of PEs; auto: powers of 2 (CPU: 1).")
    ] = "auto",
    precision: Annotated[str, typer.Option(metavar="LIST", help="double, single.")] = "single",
    boundary: Annotated[str, typer.Option(metavar="LIST", help="dirichlet, periodic.")] = (
        "dirichlet"
    ),
    variant: Variants = "full",
    iterations: Annotated[int, typer.Option(min=1, help="Iterations of a run.")] = ITERATIONS,
    repeats: Repeats = 7,
    seed: Seed = 1,
    engine: EngineName = "auto",
    gpus: Gpus = "auto",
    tuning: Tuning = None,
    timeout: Timeout = 600.0,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keeps grids. Default: temporary folder.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Results. Default: bench-stencil-<date>.jsonl."),
    ] = None,
    retry: Retry = False,
    quiet: Quiet = False,
) -> None:
    """Measure Jacobi iterations: everybody on the same grids, interleaved."""
    from ..contenders import choose
    from ..plan import VARIANTS
    from ..problems import DTYPES
    from .contenders import find
    from .measure import StencilRun
    from .plan import Configuration, parse_cases
    from .report import show
    from .results import StencilResults

    known_word(engine, "--engine", ("auto", "cuda_p2p", "cpu_threads"))
    devices = find_gpus(engine, gpus)
    if grid is None and per_gpu is None:
        on_gpus = devices is not None
        grid = GRIDS_ON_GPUS if on_gpus else GRIDS_ON_CPU
        per_gpu = PER_PE_ON_GPUS if on_gpus else PER_PE_ON_CPU
    names = words(contenders, "--contenders")
    entries = choose(find(peer or ()), names, devices is not None)
    configuration = Configuration(
        cases=parse_cases(grid or "", per_gpu or ""),
        contenders=tuple(entry.name for entry in entries),
        variants=words(variant, "--variant", VARIANTS),
        pes=parse_pes(pes, devices),
        precisions=words(precision, "--precision", tuple(DTYPES)),
        boundaries=words(boundary, "--boundary", ("dirichlet", "periodic")),
        iterations=iterations,
        repeats=repeats,
        seed=seed,
        gpus=devices,
        timeout=timeout,
        tuning=parse_tuning(tuning or [], entries),
        peers=commands_of_peers(entries),
    )
    out = out or default_out("stencil")
    end = measure_to("stencil", out, configuration, entries, StencilRun, cache, retry, quiet)
    results = StencilResults([out])
    show(results, display.report_console(quiet=quiet))
    end(bool(results.series))
