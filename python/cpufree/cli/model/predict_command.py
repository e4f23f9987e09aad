"""`cpufree predict`: the time of an iteration on N GPUs, without any."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

from cpufree.cli import display
from cpufree.cli.commands import (
    PLOT_SUFFIXES,
    check_can_write,
    check_different,
    check_not_read,
    load_system,
    stage,
    write_json,
)
from cpufree.cli.model.predict_report import advice, prediction_report
from cpufree.cli.option_types import refuse, with_options
from cpufree.cli.run_record import run_record
from cpufree.model import options as model_options
from cpufree.text import counted

if TYPE_CHECKING:
    from cpufree.machine import Machine
    from cpufree.model.solve import IterationTime, SystemFacts
    from cpufree.model.stencils import StencilFacts, StencilTime

MOST_PES = 4096
GRID = "grid:"
"""What a grid's points are named by in the place of a matrix."""
EPILOG = """
[bold]Examples[/bold]

  cpufree predict A.mtx --pes 1-64

  cpufree predict A.mtx --pes 1,2,4,8 --method prcg --plot scaling.png

  cpufree predict grid:8192x8192 --pes 1-8
"""


@dataclass(frozen=True)
class Predicted:
    """Times of iterations on numbers of GPUs, and what to say of them."""

    machine: Machine
    numbers: list[int]
    facts: Sequence[SystemFacts | StencilFacts]
    times: Sequence[IterationTime | StencilTime]
    notes: list[str]


def numbers_of(text: str) -> list[int]:
    """Return the numbers of PEs of a list; UsageError where it is no such list."""
    from cpufree.errors import InvalidInputError
    from cpufree.simulate.sweep import pes_of

    try:
        return pes_of(text, MOST_PES)
    except InvalidInputError as error:
        raise refuse(model_options.PREDICT_PES, text, str(error)) from None


def machine_of(given: dict[str, Any]) -> Machine:
    """Return the machine that is asked for, or that of the GPUs there are."""
    from cpufree.engines import gpus
    from cpufree.machine import load, of_gpu

    if given["machine"]:
        return load(given["machine"])
    there = gpus.find()
    return of_gpu(there[0].name if there else "")


def predict_grid(name: str, numbers: list[int], given: dict[str, Any]) -> Predicted:
    """Predict the time of an iteration of `cpufree stencil` in single precision."""
    from cpufree.cli.stencil_input import parse_grid
    from cpufree.errors import InvalidInputError
    from cpufree.model.stencils import facts_of, stencil_seconds

    text = name.removeprefix(GRID)
    _, power, exponent = text.partition("^")
    dims = int(exponent) if power and exponent in ("2", "3") else text.count("x") + 1
    shape = parse_grid(text, dims, GRID)
    if given["plot"]:
        raise refuse(
            model_options.PREDICT_SOLVE[2], given["plot"], "grids have no plot: use --json"
        )
    if given["method"] != model_options.PREDICT_METHOD.default:
        raise refuse(model_options.PREDICT_METHOD, given["method"], "grids have no methods")
    if given["precision"] != model_options.PREDICT_PRECISION.default:
        words = "grids are predicted in single precision"
        raise refuse(model_options.PREDICT_PRECISION, given["precision"], words)
    numbers = [pes for pes in numbers if pes <= max(shape) - 2]
    if not numbers:
        raise InvalidInputError(
            f"the longest side of {text} has {max(shape) - 2} rows to update: give fewer PEs"
        )
    machine = machine_of(given)
    blocks = int(machine.number("gpu.multiprocessors", "1"))
    facts = [facts_of(shape, 4, (False,) * dims, False, pes, blocks) for pes in numbers]
    return Predicted(machine, numbers, facts, [stencil_seconds(one, machine) for one in facts], [])


def predict_system(name: str, numbers: list[int], given: dict[str, Any]) -> Predicted:
    """Predict the time of an iteration of a solver."""
    from cpufree.cli.model.predict_report import BEYOND, MOST_MEASURED, told_system
    from cpufree.cli.model.system_facts import facts_of, over_network
    from cpufree.errors import InvalidInputError
    from cpufree.machine import DEFAULT
    from cpufree.machine.clusters import has_cluster, load_cluster
    from cpufree.model.solve import LOOPS, UNMEASURED, iteration_seconds

    notes = Console(stderr=True, highlight=False, quiet=given["quiet"])
    system = load_system(name, notes)
    numbers = [pes for pes in numbers if pes <= system.shape[0]]
    if not numbers:
        raise InvalidInputError(f"{name} has {system.shape[0]} rows: give fewer PEs")
    machine, method = machine_of(given), given["method"]
    several = load_cluster(machine.origin if has_cluster(machine.origin) else DEFAULT)
    if LOOPS[method].like and numbers[-1] > several.count("node.gpus"):
        raise refuse(
            model_options.PREDICT_METHOD, method,
            f"beyond the {several.count('node.gpus')} GPUs of a node messages are simulated, of "
            "cg, prcg and pipecg: give fewer PEs",
        )  # fmt: skip
    if given["precision"] != "double" and numbers[-1] > several.count("node.gpus"):
        raise refuse(
            model_options.PREDICT_PRECISION, given["precision"],
            f"beyond the {several.count('node.gpus')} GPUs of a node messages are simulated, of "
            "systems in double precision: give fewer PEs",
        )  # fmt: skip
    if given["precision"] == "single":
        system = dataclasses.replace(system, data=system.data.astype(np.float32))
    facts = stage(
        notes,
        "partitioning",
        lambda: facts_of(system, numbers, machine, mixed=given["precision"] == "mixed"),
        lambda found: counted(len(found), "number") + " of PEs",
    )
    times = [
        over_network(system, iteration_seconds(one, method, machine), one.pes, method, machine)
        for one in facts
    ]
    if given["precision"] != "double":
        times = [
            dataclasses.replace(one, low=one.low / UNMEASURED, high=one.high * UNMEASURED)
            for one in times
        ]
    if given["plot"]:
        from cpufree.model.plots import draw_prediction, save_plot

        save_plot(draw_prediction(name, numbers, times), given["plot"])
    told = [told_system(facts[0])] + [BEYOND] * (numbers[-1] > MOST_MEASURED)
    if like := LOOPS[method].like:
        wider = ", intervals of several GPUs are wider" * (numbers[-1] > 1)
        told.append(f"{method} has no constants of its own: those of {like} stand in{wider}")
    if given["precision"] != "double":
        told.append(
            f"{given['precision']} precision has no constants of its own: those of double "
            "precision stand in for them, intervals are wider"
        )
    return Predicted(machine, numbers, facts, times, told)


@with_options(model_options.PREDICT_SOLVE)
def predict(
    matrix: Annotated[
        str,
        typer.Argument(metavar="A", help="The matrix, as for solve; or a grid, as for stencil."),
    ],
    given: dict[str, Any],
) -> None:
    """Predict the time of an iteration on GPUs, and what bounds it; no GPU is needed."""
    check_can_write(given["json"])
    check_can_write(given["plot"], PLOT_SUFFIXES)
    check_different(given["plot"], given["json"])
    check_not_read((given["plot"], given["json"]), (matrix, given["machine"] or ""))
    numbers = numbers_of(given["pes"])
    paper = display.report_console(stderr=given["json"] == "-", quiet=given["quiet"])
    found = (predict_grid if matrix.startswith(GRID) else predict_system)(matrix, numbers, given)
    paper.print(prediction_report(found.machine, found.numbers, found.times, found.notes))
    if given["json"]:
        lines = [
            {**dataclasses.asdict(one), "bound": time.bound, **dataclasses.asdict(time)}
            for one, time in zip(found.facts, found.times, strict=True)
        ]
        record = run_record(("predict", matrix), model_options.PREDICT_SOLVE, given)
        told = {"machine": found.machine.machine, "iterations": lines}
        write_json(given["json"], {**record, **told})
    if given["quiet"]:
        line = advice(found.numbers, [time.seconds for time in found.times])
        display.report_console(stderr=given["json"] == "-").print(line, highlight=False)
