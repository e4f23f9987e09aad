"""`cpufree simulate`. What it does is in `cpufree.simulate`, loaded when needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cpufree.cli import display
from cpufree.cli.commands import (
    EXIT_ENGINE,
    PLOT_SUFFIXES,
    check_can_write,
    check_different,
    check_not_read,
    load_system,
    write_json,
)
from cpufree.cli.option_types import as_argument, refuse, with_options
from cpufree.cli.run_record import run_record
from cpufree.simulate import options as simulate_options

if TYPE_CHECKING:
    from cpufree.machine.clusters import Cluster
    from cpufree.simulate.sweep import Point, Problem

Given = dict[str, Any]
WHAT = {
    "message": "a message", "jacobi": "an iteration", "allreduce": "an all-reduce",
    "training": "a step",
}  # fmt: skip
EPILOG = """
[bold]Examples[/bold]

  cpufree simulate cg --matrix "gen:poisson3d?nx=64,ny=64,nz=64" --pes 2-64 --way all --plot cg.png

  cpufree simulate jacobi --points 16384 --pes 4-1024 --way hdn,gds,tn

  cpufree simulate allreduce --bytes 8000000 --pes 8 --way tn --timeline ring.json

  cpufree simulate check-paper --plot figures.png
"""


@with_options(simulate_options.SIMULATE)
def simulate(program: Annotated[str, as_argument(simulate_options.PROGRAM)], given: Given) -> None:
    """Simulate a program on PEs of a machine: time, efficiency, which way and how many PEs."""
    from cpufree import env
    from cpufree.cli.model import simulate_report
    from cpufree.machine.clusters import has_cluster, load_cluster

    written = (given["plot"], given["timeline"], given["goal"], given["json"])
    check_can_write(given["plot"], PLOT_SUFFIXES)
    check_can_write(given["timeline"], (".json", *PLOT_SUFFIXES))
    check_can_write(given["goal"])
    check_can_write(given["json"])
    check_different(*written)
    check_not_read(written, (given["machine"] or "", given["matrix"] or ""))
    if program in simulate_options.STUDIES:
        refuse_unused(given, program)
        report = simulate_report.STUDIES[program](given)
    else:
        said = env.machine_file()
        usual = said if said and has_cluster(said) else simulate_options.USUAL_MACHINE
        cluster = load_cluster(given["machine"] or usual)
        report = sweep_report(program, cluster, given)
    paper = display.report_console(stderr=given["json"] == "-", quiet=given["quiet"])
    paper.print(report.shown)
    if given["json"]:
        record = run_record(("simulate", program), simulate_options.SIMULATE, given)
        write_json(given["json"], {**record, **report.content})
    if given["quiet"]:
        last = display.report_console(stderr=given["json"] == "-")
        last.print(report.line, highlight=False, markup=False)
    if not report.good:
        raise typer.Exit(EXIT_ENGINE)


def refuse_unused(given: Given, study: str) -> None:
    """Refuse options that a study does not read."""
    unused = [simulate_options.TIMELINE, simulate_options.GOAL, simulate_options.MATRIX]
    unused += [simulate_options.MACHINE] if study != "check-paper" else []
    for option in unused:
        if given[option.name] is not None:
            raise refuse(option, given[option.name], f"{study} takes none")


def sweep_report(program: str, cluster: Cluster, given: Given) -> Any:
    """Simulate a program, and write its picture, timeline and text."""
    from cpufree.cli.model import simulate_report
    from cpufree.simulate.sweep import pes_of, sweep

    console = Console(stderr=True, highlight=False, quiet=given["quiet"])
    problem = problem_of(program, given, console)
    ways, counts = ways_of(given["way"]), pes_of(given["pes"])
    if console.is_terminal and not console.quiet:
        with console.status("  simulating") as status:
            points = sweep(problem, cluster, ways, counts, lambda text: status.update(f"  {text}"))
    else:
        points = sweep(problem, cluster, ways, counts)
    write_pictures(problem, cluster, points, given)
    return simulate_report.of_sweep(program, cluster, points)


def ways_of(text: str) -> list[str]:
    """Return the ways of a list with commas.

    Raises:
        UsageError: there is no such way.
    """
    known = simulate_options.WAY_NAMES
    words = [word.strip() for word in text.split(",")]
    if words == ["all"]:
        return list(known)
    for word in words:
        if word not in known:
            raise refuse(simulate_options.WAY, word, f"give all, or some of {', '.join(known)}")
    return list(dict.fromkeys(words))


def numbers_of(text: str) -> list[float]:
    """Return the positive numbers of a list with commas.

    Raises:
        UsageError: a word is none.
    """
    found = []
    for word in text.split(","):
        try:
            found.append(float(word))
        except ValueError:
            found.append(-1.0)
        if not 1 <= found[-1] <= 1e12:
            raise refuse(
                simulate_options.BYTES,
                word,
                "give numbers of bytes from 1 to 1e12, such as 8000,1e6",
            )
    return found


def problem_of(program: str, given: Given, console: Console) -> Problem:
    """Return what the program works on."""
    from cpufree.simulate.sweep import Coarse, Problem

    problem = Problem(
        program, given["points"], numbers_of(given["bytes"]), given["compute"],
        rounds=given["rounds"],
    )  # fmt: skip
    if program not in ("cg", "prcg", "pipecg"):
        if given["matrix"] is not None:
            raise refuse(simulate_options.MATRIX, given["matrix"], f"{program} takes no matrix")
        return problem
    if given["matrix"] is None:
        coarse = Coarse(given["rows"], given["entries"], given["dimensions"])
        return dataclasses.replace(problem, coarse=coarse)
    return dataclasses.replace(problem, matrix=load_system(given["matrix"], console))


def write_pictures(
    problem: Problem, cluster: Cluster, points: Sequence[Point], given: Given
) -> None:
    """Write the plot, the timeline and the text that are asked for."""
    what = WHAT.get(problem.program, "an iteration")
    if given["plot"]:
        from cpufree.model.plots import save_plot
        from cpufree.simulate.plots import draw_sweep

        save_plot(draw_sweep(points, f"{problem.program} on {cluster.name}", what), given["plot"])
    if not given["timeline"] and not given["goal"]:
        return
    program = problem.build(cluster, points[0].way, points[0].pes)
    if given["goal"]:
        from cpufree.simulate.goal import write_goal

        write_goal(given["goal"], program.graph)
    if given["timeline"]:
        from cpufree.simulate.run import run

        found = run(program.graph, record=True)
        if given["timeline"].endswith(".json"):
            from cpufree.simulate.timeline import write_perfetto

            write_perfetto(given["timeline"], program.graph, found)
            return
        from cpufree.model.plots import save_plot
        from cpufree.simulate.plots import draw_timeline

        title = f"{problem.program}, {points[0].way}, {points[0].pes} PEs, {cluster.name}"
        save_plot(draw_timeline(program.graph, found, title), given["timeline"])
