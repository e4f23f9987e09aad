"""What the memory of a GPU gives to persistent blocks: runs memory_rates.cu, and reads it.

    python bench/machine/memory_rates.py measure --out rates.jsonl [--gpu 0]
    python bench/machine/memory_rates.py constants rates.jsonl

`measure` compiles the program with nvcc and runs it, some ten seconds; `constants` prints the
entries of a machine file that follow from the rates (docs/model.md). No system and no solver takes
part in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

SOURCE = Path(__file__).with_suffix(".cu")
ARCHITECTURE = "-arch=sm_90"
"""The least that has bulk copies; its code runs on later ones of its generation."""
BUILD_LIMIT, RUN_LIMIT = 90.0, 60.0
app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.command()
def measure(
    out: Annotated[Path, typer.Option(help="The record, JSON lines.")],
    gpu: Annotated[int, typer.Option(help="Number of the GPU.")] = 0,
    nvcc: Annotated[str, typer.Option(help="The compiler.")] = "nvcc",
) -> None:
    """Measure rates on one GPU."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "memory_rates"
        build = [nvcc, "-O3", "-std=c++17", ARCHITECTURE, "-o", str(program), str(SOURCE)]
        for command, limit in ((build, BUILD_LIMIT), ([str(program), str(gpu)], RUN_LIMIT)):
            try:
                ran = subprocess.run(
                    command, capture_output=True, text=True, timeout=limit, check=True
                )
            except (OSError, subprocess.SubprocessError) as error:
                said = getattr(error, "stderr", "") or ""
                out.write_text(str(getattr(error, "stdout", "") or ""), encoding="utf-8")
                sys.exit(f"memory_rates: {' '.join(command)}: {error}\n{said}")
    out.write_text(ran.stdout, encoding="utf-8")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the experiments of a record."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [one for one in lines if one["kind"] == "rate"]


@app.command()
def constants(record: Annotated[Path, typer.Argument(help="Made by `measure`.")]) -> None:
    """Print the entries of a machine file that follow from a record, as JSON.

    Rates are those of whole phases. What a product streams while it gathers is the mean of gathers
    of neighbouring sectors and of sectors far apart, by the sectors that miss the L1 cache.
    """
    found: dict[str, dict[str, float]] = {}
    rates = read(record)

    def put(name: str, key: float, one: dict[str, Any]) -> None:
        found.setdefault(name, {})[f"{key:.0f}"] = one["bytes"] / one["phase_ns"] * 1e9

    streams = [one for one in rates if one["what"] == "ring"]
    put("product.memory_rate", 0, max(streams, key=lambda one: one["bytes"]))
    put("product.cache_rate", 0, next(one for one in streams if one["bytes"] > 20e6))
    for where, least in (("memory", 1e9), ("cache", 0.0)):
        both: dict[int, list[float]] = {}
        for one in rates:
            if one["what"] == "ring and gathers" and least <= one["bytes"] < least + 1e9:
                ten = round(320 * one["sectors"] / one["entries"])
                both.setdefault(ten, []).append(one["bytes"] / one["phase_ns"] * 1e9)
        for ten, several in sorted(both.items()):
            found[f"product.{where}_rate"][str(ten)] = sum(several) / len(several)
    fastest = max(one["bytes"] / one["phase_ns"] for one in streams)
    slowest = found["product.memory_rate"]["0"] / 1e9
    for one in streams:  # bytes that the cache holds take the time of the cache
        mine = one["bytes"] / one["phase_ns"]
        if 30e6 < one["bytes"] < 70e6:
            share = (1 / mine - 1 / slowest) / (1 / fastest - 1 / slowest)
            key = f"{one['bytes'] / 1e6:.0f}"
            found.setdefault("product.held", {})[key] = min(1.0, max(0.0, share))
    for rows, where in ((4000000, "memory"), (400000, "cache")):
        for one in rates:
            if one["what"].startswith("vectors") and one["rows"] == rows:
                numbers = [int(word) for word in one["what"].split() if word.isdigit()]
                put(f"loop.{where}_rate", sum(numbers), one)
    digits = {name: {key: float(f"{v:.3g}") for key, v in table.items()}
              for name, table in found.items()}  # fmt: skip
    print(json.dumps(digits, indent=2))


if __name__ == "__main__":
    app()
