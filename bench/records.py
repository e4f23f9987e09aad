"""Makes the records about GPUs again, on the GPUs of this machine: steps of commands, each bounded.

    python bench/records.py OUT [--pes 1,8] [--steps suite,time] [--dry-run]

What fails does not keep the others from running; most commands go on where they were stopped when
the same is asked again. OUT/log.txt has all output, OUT/notes.txt a line for each command. Without
--steps all are done; `--list` shows what they are, bench/records.txt has their commands. On a copy
of the sources PYTHONPATH names the build; else build/gpu/python is taken where it is.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILDS = ("build/gpu/python", "build/gpu-usual/python", "build/triggered/python")
BUILT = [str(ROOT / place) for place in BUILDS if (ROOT / place).is_dir()]
if BUILT and "PYTHONPATH" not in os.environ:
    os.environ["PYTHONPATH"] = BUILT[0]  # of the commands; for this program it is too late
    sys.path.insert(0, BUILT[0])

import cpufree  # noqa: E402
from cpufree.bench.core.processes import kill_session  # noqa: E402
from cpufree.engines import gpus  # noqa: E402
from cpufree.env import for_worker  # noqa: E402

# Kernels spin: all code is loaded before. Multicast stays off. More PEs than 8 share a GPU.
ENVIRONMENT = {"NCCL_NVLS_ENABLE": "0", "NVSHMEM_DISABLE_NVLS": "1", "MPLBACKEND": "Agg",
               "CUDA_DEVICE_MAX_CONNECTIONS": "32", "COLUMNS": "160"}  # fmt: skip
GRACE = 15.0  # seconds for a command that is asked to end
Words = list[str]
Step = tuple[str, list[str]]
"""What it is, and its commands."""


def read(text: str) -> dict[str, Step]:
    """Return the steps that a file of commands lists."""
    steps: dict[str, Step] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith(" "):
            steps[name][1].append(line.strip())
        elif line and not line.startswith("#"):
            name, _, what = line.partition(": ")
            steps[name] = (what, [])
    return steps


STEPS = read(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))


def named(out: Path, given: argparse.Namespace) -> dict[str, str]:
    """Return what stands for the names in commands of a step that writes into `out`."""
    counts = given.pes.split(",")
    most = max(map(int, counts))
    gpus = ",".join(map(str, range(most)))
    shared = f"--pes {given.pes} --cache {shlex.quote(str(out.parent / 'systems'))}"
    return {
        "shared": shared,
        "measuring": f"{shared} --repeats 5 --timeout 60",
        "grids": "--per-gpu 256x256,2048x2048,8192x8192,128^3,256^3,512^3 --grid 256^3 "
        "--iterations 1000",
        "few": "--gpus 0,1 --replays 1 --scripts 6 --contenders copy_engine proxy on_stream",
        "to": "--rtol 1e-8 --timeout 60",
        **{"out": shlex.quote(str(out)), "package": shlex.quote(str(cpufree.__path__[0]))},
        **{"pes": given.pes, "listed": " ".join(counts), "most": str(most)},
        **{"gpus": gpus, "pair": gpus[:3], "dace": shlex.quote(given.dace)},
        **{"seconds": str(given.seconds), "epochs": str(given.epochs)},
    }


def commands(step: str, out: Path, given: argparse.Namespace) -> Iterator[Words]:
    """Yield the commands of a step, but those whose file is there."""
    names = named(out, given)
    for line in STEPS[step][1]:
        words = shlex.split(line.format(**names))
        if words[0] == "unless":
            if Path(words[1].removesuffix(":")).exists():
                continue
            words = words[2:]
        if words[0] == "cpufree":
            words[:1] = ["python", "-m", "cpufree"]
        yield [sys.executable if word == "python" else word for word in words]


def run(words: Words, limit: float, out: Path) -> int:
    """Run a command, its output to the log; return its status, or -1 where it was ended."""
    environment = {**ENVIRONMENT, **for_worker()}
    with (out / "log.txt").open("a") as log:
        print(f"\n===== {shlex.join(words)}", file=log, flush=True)
        process = subprocess.Popen(
            words, cwd=ROOT, stdout=log, stderr=log, env=environment, start_new_session=True
        )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # what it has is written
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
            return -1
        finally:
            kill_session(process.pid)


def main() -> int:
    """Run the commands of the steps; return 1 where one failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, nargs="?", default=Path("records"), metavar="OUT")
    parser.add_argument("--pes", help="numbers of GPUs, such as 1,8; all that are here")
    parser.add_argument("--steps", default=",".join(STEPS), metavar="LIST")
    parser.add_argument("--seconds", type=float, default=3600.0, help="of a command (%(default)s)")
    parser.add_argument("--dace", default="cases", metavar="FOLDER")
    parser.add_argument("--epochs", type=int, default=100_000, help="of the soak (%(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="print the commands")
    parser.add_argument("--list", action="store_true", help="print the steps")
    given = parser.parse_args()
    if given.list:
        print("\n".join(f"{name:11} {what}" for name, (what, _) in STEPS.items()))
        return 0
    steps = given.steps.split(",")
    if unknown := [step for step in steps if step not in STEPS]:
        parser.error(f"step '{unknown[0]}': choose from {', '.join(STEPS)}")
    there = len(gpus.usable(gpus.find()))
    if not there and not given.dry_run:
        parser.error("no GPU can be used here: cpufree doctor says why")
    given.pes = given.pes or str(max(1, there))
    return measure(steps, given)


def measure(steps: list[str], given: argparse.Namespace) -> int:
    """Run the steps into folders of their own."""
    failed = 0
    for step in steps:
        out = given.out.absolute() / step
        for words in commands(step, out, given):
            if given.dry_run:
                print(shlex.join(words))
                continue
            out.mkdir(parents=True, exist_ok=True)
            begin = time.monotonic()
            there = shutil.which(words[0]) or (ROOT / words[0]).exists()
            status = run(words, given.seconds, out) if there else 127
            failed |= status != 0
            line = f"{step}: status {status}, {time.monotonic() - begin:.0f} s: {shlex.join(words)}"
            with (given.out / "notes.txt").open("a") as notes:
                print(line[:300], file=notes)
            print(line[:300], flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
