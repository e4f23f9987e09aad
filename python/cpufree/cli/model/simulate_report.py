"""What `cpufree simulate` shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from cpufree.cli import display

if TYPE_CHECKING:
    from cpufree.machine.clusters import Cluster
    from cpufree.simulate.study import Finding
    from cpufree.simulate.sweep import Point


@dataclass(frozen=True)
class Report:
    """What is shown, what goes into JSON, the line that --quiet leaves, and whether all is good."""

    shown: RenderableType
    content: Mapping[str, Any]
    line: str
    good: bool = True


def of_sweep(program: str, cluster: Cluster, points: Sequence[Point]) -> Report:
    """Return the report of a sweep."""
    from cpufree.simulate.sweep import answer

    rows = [
        (point.way, str(point.pes), f"{point.seconds * 1e6:.4g} µs", f"{point.efficiency:.0%}",
         str(point.operations), str(point.spilled), point.halo)
        for point in points
    ]  # fmt: skip
    head = ("way", "PEs", "time", "efficiency", "operations", "spilled", "halos")
    said = answer(points)
    shown = Group(
        Text(cluster.machine, style="bold"),
        display.columns(head, rows, f"Simulated: {program}"),
        Text("Answer", style="bold"),
        *(Text(f"  {line}") for line in said),
    )
    content = {"machine": cluster.name, "points": [dataclasses.asdict(point) for point in points],
               "answer": said}  # fmt: skip
    return Report(shown, content, said[0])


def of_findings(findings: Sequence[Finding], title: str, more: Sequence[RenderableType]) -> Report:
    """Return the report of a study: numbers, their bands, and verdicts."""
    rows = [
        (finding.figure, finding.what, f"{finding.value:.4g}", band(finding),
         "holds" if finding.holds else "MISSED")
        for finding in findings
    ]  # fmt: skip
    missed = sum(not finding.holds for finding in findings)
    head = ("figure", "what", "simulated", "band", "")
    line = f"{len(findings) - missed} of {len(findings)} hold"
    content = {"findings": [{**dataclasses.asdict(one), "holds": one.holds} for one in findings]}
    return Report(
        Group(display.columns(head, rows, title), *more, Text(line)),
        plain(content),
        line,
        missed == 0,
    )


def plain(content: dict[str, Any]) -> dict[str, Any]:
    """Return findings with None for a band's end that is not there; JSON has no infinity."""
    for one in content["findings"]:
        if one["most"] == float("inf"):
            one["most"] = None
    return content


def band(finding: Finding) -> str:
    """Return a band as a text."""
    if finding.most == float("inf"):
        return f"≥ {finding.least:g}"
    return f"{finding.least:g} to {finding.most:g}"


def paper(given: Mapping[str, Any]) -> Report:
    """Simulate figures 8 to 11 of LeBeane et al. 2017, and check its statements."""
    from cpufree.machine.clusters import load_cluster
    from cpufree.simulate import study
    from cpufree.simulate.options import PAPER_MACHINE

    cluster = load_cluster(given["machine"] or PAPER_MACHINE)
    if given["plot"]:
        from cpufree.model.plots import save_plot
        from cpufree.simulate.plots import draw_paper

        messages = study.figure_8(cluster)
        figure = draw_paper(
            messages, study.SIDES, study.figure_9(cluster), study.NODES,
            study.figure_10(cluster), study.figure_11(cluster), study.TABLE_3,
        )  # fmt: skip
        save_plot(figure, given["plot"])
    entries = study.seventeenth_entry(cluster)
    rows = [
        (str(one.messages), str(one.spilled), f"{one.microseconds:.2f} µs", f"{one.dynamic:.2f} µs")
        for one in entries
    ]
    head = ("messages", "spilled", "all have arrived", "with dynamic triggers")
    more = display.columns(head, rows, "Messages of one kernel, all posted ahead")
    title = "LeBeane et al. 2017, simulated again"
    return of_findings(study.check_paper(cluster), title, [more])


def scaling(given: Mapping[str, Any]) -> Report:
    """Simulate the scaling of Trotter et al. 2025, and project it where that is asked for."""
    from cpufree.simulate import scaling as study
    from cpufree.simulate.sweep import pes_of

    more: list[RenderableType] = []
    for experiment in study.EXPERIMENTS:
        found = study.curves(experiment)
        rows = [
            (one.method, study.STYLES[one.way],
             *(f"{t * 1e6:.0f} µs, {share:.0%}"
               for t, share in zip(one.seconds, one.efficiency, strict=True)))
            for one in found
        ]  # fmt: skip
        head = ("method", "style", *(f"{pes} GPUs" for pes in experiment.pes))
        more.append(display.columns(head, rows, f"{experiment.mesh.name} on {experiment.machine}"))
        first = study.crossover(found)
        won = f"from {first} GPUs on" if first else f"on none up to {experiment.pes[-1]}"
        more.append(Text(f"  the persistent kernel (IBRC) is the fastest with CG {won}"))
    last = pes_of(given["pes"])[-1]
    if last > study.LUMI[-1]:
        rows = [
            (study.STYLES[one.way], f"{one.seconds * 1e6:.0f} µs",
             f"{one.least * 1e6:.0f} to {one.most * 1e6:.0f} µs")
            for one in study.project(study.EXPERIMENTS[2], last)
        ]  # fmt: skip
        head = ("style", "iteration of CG", "latencies halved, doubled")
        more.append(display.columns(head, rows, f"Projection: poisson1d on {last} GPUs of lumi-g"))
    return of_findings(study.check_scaling(), "Trotter et al. 2025, simulated", more)


def measured(given: Mapping[str, Any]) -> Report:
    """Compare the simulator with measured records."""
    from cpufree.cli.model.predict_report import errors_report
    from cpufree.machine.clusters import load_cluster
    from cpufree.simulate import measured as study
    from cpufree.simulate.study import Finding

    found = study.errors_of(study.compare(load_cluster("h200"), study.read_cases(given["records"])))
    limit = study.LARGEST_ERROR
    findings = [Finding("records", f"median error, {found[-1].name}", found[-1].median, 0.0, limit)]
    table = errors_report(found, "Simulated against measured: CG and Jacobi")
    return of_findings(findings, "Trust", [table])


STUDIES: Mapping[str, Callable[[Mapping[str, Any]], Report]] = {
    "check-paper": paper,
    "check-scaling": scaling,
    "check-measured": measured,
}
