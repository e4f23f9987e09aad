"""How good the choices of "auto" are, and the iterations that it expects.

    python bench/choices.py suite [FILE] [--off 1.0]
    python bench/choices.py iterations [MATRIX ...] [--rtol TOL] [--out FILE]

`suite` makes the choices of `bench/gpu_time.sh` once more, with the constants as they are now, CUDA
running, for the iterations that were expected then, or `--off` times those taken. Where the CPU was
chosen and not measured by itself, its time is that of the choice. Halos are left out.

`iterations` solves each matrix on the CPU, and prints the iterations that parts of it let expect
over those that it took. Default: the suite paper18-small.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from records import RESULTS, command_line, write

import cpufree
from cpufree import generate, machine
from cpufree.bench.core.machine import describe_machine
from cpufree.engines.expected import Expected, by_parts
from cpufree.engines.gpu_choice import Size
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.system_rule import Forecast, choose_place
from cpufree.generate.suites import suite
from cpufree.matrix.load import as_csr
from cpufree.partition.cost import Spread

app = typer.Typer(add_completion=False)


def measured_choices(file: Path) -> dict[str, tuple[dict[str, Any], dict[int, float]]]:
    """Return facts of each matrix of a run, and its seconds by the number of GPUs (0: the CPU)."""
    places = {"1 PEs": 1, "2 PEs": 2, "CPU": 0}
    found: dict[str, tuple[dict[str, Any], dict[int, list[float]]]] = {}
    by_auto: dict[str, list[float]] = {}
    told: dict[str, float] = {}
    for line in map(json.loads, file.read_text().splitlines()):
        if line["kind"] != "choice" or not line["round"] or not line["converged"]:
            continue
        _, seconds = found.setdefault(line["case"], (line, {}))
        if line["choice"] in places:
            seconds.setdefault(places[line["choice"]], []).append(line["seconds"])
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


@app.command("suite")
def suite_command(
    file: Annotated[Path, typer.Argument()] = RESULTS / "time-2x-2026-11-26-later/suite.jsonl",
    off: Annotated[
        float, typer.Option(help="Expected iterations over those taken; 0: as in the run.")
    ] = 0.0,
    gpu: Annotated[str, typer.Option(help="Whose machine file is taken.")] = "NVIDIA H100",
    cores: int = 32,
) -> None:
    """Make the choices of a run of `bench/gpu_time.sh` once more."""
    known = machine.of_gpu(gpu)
    over = []
    for case, (facts, took) in sorted(measured_choices(file).items()):
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
    mean = statistics.geometric_mean(over)
    print(f"{len(over)} matrices: geometric mean {mean:.2f}, worst {max(over):.2f}")


@app.command("iterations")
def iterations_command(
    matrices: Annotated[list[str] | None, typer.Argument(help="Default: paper18-small.")] = None,
    rtol: Annotated[float, typer.Option(help="Of the solves.")] = 1e-8,
    out: Annotated[Path | None, typer.Option(help="Results as JSON.")] = None,
) -> None:
    """Compare expected iterations with those of solves by cg with Jacobi, b = 1."""
    entries = {one.name: (one.generator, one.params) for one in suite("paper18-small")}
    lines: list[dict[str, Any]] = []
    for name in matrices or entries:
        known = entries.get(name)
        A = as_csr(generate.generate(known[0], **known[1]) if known else cpufree.load_matrix(name))
        begin = time.perf_counter()
        expected = by_parts(A, rtol, None, 1).iterations
        passed = time.perf_counter() - begin
        result = cpufree.solve(
            A, np.ones(A.shape[0]), rtol=rtol, method="cg", engine="cpu_threads", maxiter=50_000
        )
        old = gain_on("cuda_p2p").iterations(A.shape[0])
        one = {"matrix": name, "rows": A.shape[0], "nnz": A.nnz, "reason": str(result.reason)}
        one |= {"iterations": result.iterations, "expected": expected, "by_rows": old}
        one |= {"seconds": passed, "ratio": expected / max(1, result.iterations)}
        lines.append(one)
        print(
            f"{name}: {result.iterations} iterations ({result.reason}), expected {expected:.0f}: "
            f"{one['ratio']:.2f} times, by rows {old / max(1, result.iterations):.2f}; "
            f"found in {passed * 1e3:.0f} ms",
            flush=True,
        )
    logs = [math.log(line["ratio"]) for line in lines if line["reason"] == "CONVERGED_RTOL"]
    mean = math.exp(statistics.fmean(logs))
    spread = math.exp(statistics.fmean(map(abs, logs)))
    print(
        f"geometric mean {mean:.2f}, off by {spread:.2f} in the mean, "
        f"from {math.exp(min(logs)):.2f} to {math.exp(max(logs)):.2f}"
    )
    if out is not None:
        head = {"benchmark": "expected iterations", "command": command_line(), "rtol": rtol}
        write({**head, **describe_machine(), "lines": lines}, out)


if __name__ == "__main__":
    app()
