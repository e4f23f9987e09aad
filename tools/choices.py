"""How good the choices of "auto" would be with the constants as they are now.

    python -m tools.choices [RECORD] [--off 1.0] [--gpu NAME] [--cores N]

Makes the choices of a run of bench/choices_timed.py once more, CUDA running, for the iterations
that the latest run expected (they are the matrix's, and not the machine's), else those that were
expected then, or --off times those taken. Where the CPU was chosen, its time is that of the
choice: a CPU that is asked for brings rows into another order first. Halos are left out.
"""

from __future__ import annotations

import re
import statistics
from typing import Annotated, Any

import typer

from cpufree import machine
from cpufree.bench.core.noise import geometric_mean
from cpufree.bench.declared.measure import measurements
from cpufree.engines.expected import Expected
from cpufree.engines.gpu_choice import Size
from cpufree.engines.partition_gain import gain_on
from cpufree.engines.system_rule import Forecast, choose_place
from cpufree.partition.cost import Spread
from tools.results.choices import SUITES
from tools.results.records import declared_lines, problems

PLACES = {"1 PEs": 1, "2 PEs": 2, "CPU": 0}


def measured_choices(record: str) -> dict[str, tuple[float, float, dict[int, float]]]:
    """Return iterations taken and expected of each matrix, and seconds by GPUs (0: the CPU)."""
    found = {}
    for case, of in measurements(declared_lines(record)):
        taken = float(next(iter(of.values()))[0]["iterations"])
        told = [re.search(r"([\d ]+) iterations? of", line["why"]) for line in of.get("auto", ())]
        expected = [float(one[1].replace(" ", "")) for one in told if one]
        by_auto = [x["seconds"] for x in of.get("auto", ()) if x["engine"] == "cpu_threads"]
        took: dict[int, Any] = {PLACES[k]: [x["seconds"] for x in v] for k, v in of.items()
                                if k in PLACES}  # fmt: skip
        took |= {0: by_auto} if by_auto else {}
        seconds = {gpus: statistics.median(times) for gpus, times in took.items()}
        found[case] = (taken, expected[-1] if expected else taken, seconds)
    return found


def main(
    record: Annotated[str, typer.Argument(help="Below bench/results, or a path.")] = SUITES,
    off: Annotated[
        float, typer.Option(help="Expected iterations over those taken; 0: as in a run.")
    ] = 0.0,
    gpu: Annotated[str, typer.Option(help="Whose machine file is taken.")] = "NVIDIA H100",
    cores: int = 32,
) -> None:
    """Make the choices of a run once more, and compare them with the best."""
    known, sizes, over, latest = machine.of_gpu(gpu), problems(record), [], measured_choices(SUITES)
    for case, (taken, told, took) in sorted(measured_choices(record).items()):
        size = Size(sizes[case]["rows"], sizes[case]["nnz"], 8)
        expected = Expected(off * taken if off else latest.get(case, (0, told))[1])
        forecast = Forecast(expected, Spread(size.rows, 0.0, 0.0, 0.0), gain_on("cuda_p2p"))
        blocks = cores if 0 in took else None
        chosen = choose_place(size, [True, True], blocks, forecast, known)
        over.append(took[chosen.gpus] / min(took.values()))
        times = ", ".join(f"{gpus}: {seconds:.3f}" for gpus, seconds in sorted(took.items()))
        print(f"{case}: {chosen.gpus} GPUs, {over[-1]:.2f} times the best (seconds: {times})")
    mean = geometric_mean(over)
    print(f"{len(over)} matrices: geometric mean {mean:.2f}, worst {max(over):.2f}")


if __name__ == "__main__":
    typer.run(main)
