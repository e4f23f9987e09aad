"""Replays the scripts of triggers on GPUs, by every back end, and runs small exchanges.

Usage: python bench/gpu_trigger_rules.py [--gpus 0,1] [--replays N] [--scripts N] [--json FILE]

Exits with 1 where an outcome differs from what the rules demand.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from cpufree import triggered
from cpufree.errors import CpufreeError
from cpufree.triggered.extension import GPU_BACK_ENDS, load_gpu_extension

EXPECTED = [1.0, 1.0, 2.0, 2.0]
SCRIPTS = Path(__file__).parent.parent / "tests/cpp/reference/trigger_scripts.txt"


def first_scripts(text: str, count: int) -> str:
    """Return the first `count` scripts of a text; 0: all."""
    parts = text.split("\nscript ")
    return text if count == 0 else "\nscript ".join(parts[: count + 1])


def check(back_end: str, gpus: list[int], text: str, replays: int) -> dict[str, Any]:
    """Return what came of the scripts, and of an exchange of some epochs."""
    core = load_gpu_extension()
    found: dict[str, Any] = {"back_end": back_end, "gpus": gpus}
    try:
        found["scripts"] = core.scripts(text, gpus, back_end, replays)
        if back_end != "on_stream":  # its puts come at the end of a kernel: nobody waits within it
            seconds, wrong, checksum, expected = core.soak(gpus, back_end, 100, 2, 200)
            found["domain"] = run_domain(back_end, gpus)
            found["exchange"] = {"seconds": seconds, "wrong": wrong, "equal": checksum == expected}
    except CpufreeError as error:
        found["error"] = str(error)
    return found


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


def is_good(found: dict[str, Any]) -> bool:
    """Return whether all is as the rules demand."""
    exchange = found.get("exchange", {"wrong": 0, "equal": True})
    scripts = found.get("scripts", [])
    return (
        "error" not in found
        and exchange["wrong"] == 0
        and exchange["equal"]
        and found.get("domain", EXPECTED) == EXPECTED
        and all(one["wrong"] == 0 for one in scripts)
    )


def show(found: dict[str, Any]) -> None:
    """Print a line for a back end, and one for each script that went wrong."""
    scripts = found.get("scripts", [])
    replays = sum(one["replays"] for one in scripts)
    wrong = sum(one["wrong"] for one in scripts)
    skipped = sum(bool(one["skipped"]) for one in scripts)
    print(
        f"{found['back_end']}: {len(scripts)} scripts, {skipped} skipped, {replays} replays, "
        f"{wrong} wrong; exchange {found.get('exchange')}; domain {found.get('domain')}; "
        f"{found.get('error', 'no error')}",
        flush=True,
    )
    for one in scripts:
        if one["wrong"]:
            print(f"  {one['name']}: {one['wrong']} wrong: {one['difference']}")


def main() -> int:
    """Replay, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", default="0,1")
    parser.add_argument("--back-ends", default=",".join(GPU_BACK_ENDS))
    parser.add_argument("--replays", type=int, default=6)
    parser.add_argument("--scripts", type=int, default=0, help="the first so many; 0: all")
    parser.add_argument("--json")
    options = parser.parse_args()
    gpus = [int(word) for word in options.gpus.split(",")]
    text = first_scripts(SCRIPTS.read_text(), options.scripts)
    all_found = []
    for back_end in options.back_ends.split(","):
        all_found.append(check(back_end, gpus, text, options.replays))
        show(all_found[-1])
        if options.json:
            Path(options.json).write_text(json.dumps(all_found, indent=1) + "\n")
    return 0 if all(map(is_good, all_found)) else 1


if __name__ == "__main__":
    sys.exit(main())
