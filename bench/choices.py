"""How good the choices of "auto" would be with the constants as they are now.

    python bench/choices.py [RECORD] [--off 1.0] [--gpu NAME] [--cores N]

Makes the choices of a run of bench/choices_timed.py once more, CUDA running, for the iterations
that were expected then, or --off times those taken. Where the CPU was chosen and not measured by
itself, its time is that of the choice. Halos are left out.
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Annotated, Any

import typer

from cpufree import machine
from cpufree.bench.core.noise import geometric_mean
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import Size
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.system_rule import Forecast, choose_place
from cpufree.partition.cost import Spread

RECORD = Path(__file__).parent / "results/time-2x-2026-11-26-later/suite.jsonl"
PLACES = {"1 PEs": 1, "2 PEs": 2, "CPU": 0}


def solves_of(file: Path) -> list[dict[str, Any]]:
    """Return the solves of a record that found an answer, without those that warmed up."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    problems = {line["case"]: line for line in lines if line["kind"] == "problem"}
    declared = [
        {**problems[line["case"]], **line, "choice": line["contender"]}
        for line in lines
        if line["kind"] == "measurement"
    ]
    older = (line for line in lines if line["kind"] == "choice" and line["round"])
    return [*declared, *(line for line in older if line["converged"])]


def measured_choices(file: Path) -> dict[str, tuple[dict[str, Any], dict[int, float]]]:
    """Return facts of each matrix of a run, and its seconds by the number of GPUs (0: the CPU)."""
    found: dict[str, tuple[dict[str, Any], dict[int, list[float]]]] = {}
    by_auto: dict[str, list[float]] = {}
    told: dict[str, float] = {}
    for line in solves_of(file):
        _, seconds = found.setdefault(line["case"], (line, {}))
        if line["choice"] in PLACES:
            seconds.setdefault(PLACES[line["choice"]], []).append(line["seconds"])
        elif told_now := re.search(r"([\d ]+) iterations? of", line["why"]):
            told[line["case"]] = float(told_now[1].replace(" ", ""))
        if line["choice"] == "auto" and line["engine"] == "cpu_threads":
            by_auto.setdefault(line["case"], []).append(line["seconds"])
    for case, times in by_auto.items():
        found[case][1].setdefault(0, times)
    return {
        case: (
            {**facts, "expected": told.get(case, facts["iterations"])},
            {gpus: statistics.median(times) for gpus, times in seconds.items()},
        )
        for case, (facts, seconds) in found.items()
    }


def main(
    record: Annotated[Path, typer.Argument()] = RECORD,
    off: Annotated[
        float, typer.Option(help="Expected iterations over those taken; 0: as in the run.")
    ] = 0.0,
    gpu: Annotated[str, typer.Option(help="Whose machine file is taken.")] = "NVIDIA H100",
    cores: int = 32,
) -> None:
    """Make the choices of a run once more, and compare them with the best."""
    known = machine.of_gpu(gpu)
    over = []
    for case, (facts, took) in sorted(measured_choices(record).items()):
        size = Size(facts["rows"], facts["nnz"], 8)
        expected = Expected(off * facts["iterations"] if off else facts["expected"])
        forecast = Forecast(expected, Spread(size.rows, 0.0, 0.0, 0.0), gain_on("cuda_p2p"))
        blocks = cores if 0 in took else None
        chosen = choose_place(size, [True, True], blocks, forecast, known)
        over.append(took[chosen.gpus] / min(took.values()))
        told = ", ".join(f"{gpus}: {seconds:.3f}" for gpus, seconds in sorted(took.items()))
        print(
            f"{case}: {chosen.gpus} GPUs, {over[-1]:.2f} times the best (seconds by GPUs: {told})"
        )
    mean = geometric_mean(over)
    print(f"{len(over)} matrices: geometric mean {mean:.2f}, worst {max(over):.2f}")


if __name__ == "__main__":
    typer.run(main)
