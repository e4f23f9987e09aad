"""Replays the scripts of triggers on GPUs, by every back end, and runs small exchanges.

Each back end replays every script, exchanges some epochs, and has two blocks trigger a put by the
public way. The command fails where an outcome differs from what the rules demand.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cpufree import triggered
from cpufree.bench.declared import Bench, Call, Case
from cpufree.bench.declared.command import main
from cpufree.triggered.extension import GPU_BACK_ENDS, load_gpu_extension

EXPECTED = [1.0, 1.0, 2.0, 2.0]
SCRIPTS = Path(__file__).parent.parent / "tests/cpp/triggered/trigger_scripts.txt"


def first_scripts(text: str, count: int) -> str:
    """Return the first `count` scripts of a text; 0: all."""
    parts = text.split("\nscript ")
    return text if count == 0 else "\nscript ".join(parts[: count + 1])


def run_domain(back_end: str, gpus: list[int]) -> list[float]:
    """Return what PE 1 has of a put that two blocks of PE 0 trigger together, by the public way."""
    with triggered.Domain(pes=2, blocks=2, gpus=gpus, back_end=back_end, wait_limit=10.0) as domain:
        source, target = domain.buffer("source", 4), domain.buffer("target", 4)
        result = domain.buffer("result", 4)
        domain.put(7, source, target, pe=0, to=1, threshold=2, signal=3)
        program = domain.program()
        for block in range(2):
            program.block(0, block).store(source.at(2 * block, 2), 1.0 + block).trigger(7)
        program.block(1).wait_signal(3, origin=0).copy(target, result)
        domain.run(program)
        values: list[float] = result.on(1).tolist()
        return values


def check(back_end: str, gpus: list[int], text: str, replays: int) -> dict[str, Any]:
    """Return what came of the scripts and of an exchange; raise an error where that is wrong."""
    core = load_gpu_extension()
    scripts = core.scripts(text, gpus, back_end, replays)
    found = {"scripts": len(scripts), "skipped": sum(bool(one["skipped"]) for one in scripts)}
    found["replays"] = sum(one["replays"] for one in scripts)
    wrong = [f"{one['name']}: {one['difference']}" for one in scripts if one["wrong"]]
    if back_end != "on_stream":  # its puts come at the end of a kernel: no block waits within it
        _, bad, checksum, expected = core.soak(gpus, back_end, 100, 2, 200)
        wrong += [f"{bad} wrong values of an exchange"] * (bad > 0 or checksum != expected)
        if (values := run_domain(back_end, gpus)) != EXPECTED:
            wrong.append(f"a put of two blocks brought {values}")
    if wrong:
        raise RuntimeError("; ".join(wrong))
    return found


def set_up(case: Case) -> Iterator[Mapping[str, Call]]:
    text = first_scripts(SCRIPTS.read_text(), case.scripts)
    gpus = [int(word) for word in case.gpus.split(",")]
    yield {name: partial(check, name, gpus, text, case.replays) for name in GPU_BACK_ENDS}


BENCH = Bench(
    name="trigger-rules",
    set_up=set_up,
    axes={"gpus": ("0,1",), "replays": (6,), "scripts": (0,)},
    unit="s",
    shown=("scripts", "skipped", "replays"),
    cold=True,
    strict=True,
    repeats=1,
)

if __name__ == "__main__":
    raise SystemExit(main(BENCH, __doc__))
