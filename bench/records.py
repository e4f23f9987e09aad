"""Makes the records about GPUs again, on the GPUs of this machine: steps of commands, each bounded.

    python bench/records.py OUT [--pes 1,8] [--steps suite,time] [--dry-run]

What fails does not keep the others from running; most commands go on where they were stopped when
the same is asked again. OUT/log.txt has all output, OUT/notes.txt a line for each command. Without
--steps all are done; `--list` tells what they are. On a copy of the sources PYTHONPATH names the
build; else build/gpu/python is taken where it is.
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
STEPS = {
    "suite": "suite paper18, all contenders that are here",
    "structured": "the same on suite structured, of few distinct values",
    "overlap": "suite paper18 without computing, and without communication",
    "tolerance": "the same to a tolerance of 1e-6, with Jacobi",
    "irregular": "suites poisson1d (reductions), heart (halos), consolidation",
    "stencils": "grids of the thesis, discrete kernels beside",
    "double": "the same in double precision, and periodic",
    "kernels": "the ways of a stencil one by one (needs make gpu)",
    "nvshmem": "one process for each GPU",
    "model": "the communication model: measured, fitted, validated, compared with records",
    "programs": "compiled programs, against host-driven ones",
    "dace": "DaCe's distributed programs (--dace: a folder of bench/dace_distributed.py)",
    "time": 'time to solution: set-ups, scripts, commands, "auto" on suites',
    "triggered": "triggered operations: rules, every study",
    "sanitizer": "the rules of triggers under compute-sanitizer",
}
THESIS = "256x256,2048x2048,8192x8192,128^3,256^3,512^3"
RECORDS = ("cg-1x-2026-11-24", "cg-2x-sorted-2026-11-23", "cg-4x-2026-11-22", "cg-8x-2026-11-22")
TIMED = {
    "poisson3d-200.cpufree": "gen:poisson3d?nx=200,ny=200,nz=200",
    "poisson3d-200.mtx": "gen:poisson3d?nx=200,ny=200,nz=200",
    "geomodel_hex.cpufree": "gen:geomodel_hex?ex=112,ey=112,ez=112",
    "flange_hex.cpufree": "gen:flange_hex?r_out=96,t=12,pipe=58,wall=12",
    "delaunay3d.cpufree": "gen:delaunay3d?m=60",
}
Words = list[str]


class Commands:
    """The commands of each step."""

    def __init__(self, out: Path, given: argparse.Namespace) -> None:
        self._out, self._given, self._systems = out, given, out.parent / "systems"
        self._most = max(map(int, given.pes.split(",")))
        self._listed = given.pes.split(",")
        self._cpufree = [sys.executable, "-m", "cpufree"]

    def of(self, step: str) -> Iterator[Words]:
        """Yield the commands of a step."""
        solves = {
            "suite": ("suite:paper18", "--iterations 100"),
            "structured": ("suite:structured", "--iterations 100"),
            "overlap": ("suite:paper18", "--iterations 100 --variant full,no-compute,no-comm"),
            "tolerance": ("suite:paper18", "--rtol 1e-6 --pc jacobi"),
            "irregular": ("suite:poisson1d suite:heart suite:consolidation", "--iterations 100"),
        }
        grids = {
            "stencils": "--variant full,no-compute,no-comm",
            "double": "--precision double --boundary dirichlet,periodic",
        }
        if step in solves:
            yield from self._solves(step, *(text.split() for text in solves[step]))
        elif step in grids:
            words = ["stencil", "--per-gpu", THESIS, "--grid", "256^3", "--iterations", "1000"]
            yield self._bench(*words, *self._measuring(), *grids[step].split(), out=step)
        else:
            yield from getattr(self, f"_{step}")()

    def _solves(self, step: str, systems: Words, options: Words) -> Iterator[Words]:
        shared = ["--pes", self._given.pes, "--cache", str(self._systems)]
        yield [*self._cpufree, "bench", "prepare", *systems, *shared]
        yield self._bench("cg", *systems, *self._measuring(), *options, out=f"cg-{step}")

    def _measuring(self) -> Words:
        shared = ["--pes", self._given.pes, "--cache", str(self._systems)]
        return [*shared, "--repeats", "5", "--timeout", "60"]

    def _bench(self, *words: str, out: str) -> Words:
        return [*self._cpufree, "bench", *words, "--out", self._path(f"{out}.jsonl")]

    def _script(self, name: str, *words: str, out: str = "") -> Words:
        written = ["--out", self._path(f"{out}.jsonl")] if out else []
        return [sys.executable, f"bench/{name}.py", *words, *written]

    def _path(self, name: str) -> str:
        return str(self._out / name)

    def _kernels(self) -> Iterator[Words]:
        for what in ("checks", "times", "boxes", "specialized"):
            yield ["build/gpu/run_stencils", str(self._most), what]

    def _nvshmem(self) -> Iterator[Words]:
        yield self._script("nvshmem", "--pes", str(self._most), out="nvshmem")

    def _programs(self) -> Iterator[Words]:
        words = ["--pes", *self._listed, "--seconds", str(self._given.seconds)]
        yield self._script("programs", *words, out="programs")

    def _dace(self) -> Iterator[Words]:
        words = ["--folder", self._given.dace, "--gpus", str(self._most)]
        yield self._script("gpu_dace", *words, out="dace")

    def _model(self) -> Iterator[Words]:
        samples, machine = self._path("samples.jsonl"), self._path("machine.json")
        model = [*self._cpufree, "model"]
        # The first run compiles and loads the probes' kernels, so that no measurement does.
        yield [*model, "measure", "--quick", "--sizes", "8", "--out", self._path("first.jsonl")]
        plot = ["--plot", self._path("measured.png")]
        yield [*model, "measure", "--quick", "--out", samples, *plot]
        yield [*model, "fit", samples, "--out", machine, "--plot", self._path("fit.png")]
        yield [*model, "validate", machine, samples, "--json", self._path("validate.json")]
        records = [f"bench/results/{name}.jsonl" for name in RECORDS]
        yield [*model, "compare", *records, "--json", self._path("compare.json")]

    def _time(self) -> Iterator[Words]:
        # As pip does: a package that was copied has no bytecode.
        yield [sys.executable, "-m", "compileall", "-q", str(Path(cpufree.__path__[0]))]
        files = {name: self._path(name) for name in TIMED}
        for name, spec in TIMED.items():
            if not Path(files[name]).exists():
                yield [*self._cpufree, "convert", spec, "--out", files[name]]
        yield self._script("setups", "--pes", *self._listed, out="setups")
        to, both = ["--rtol", "1e-8", "--timeout", "60"], ["--contenders", "cpufree,cupy"]
        binary = [file for file in files.values() if file.endswith(".cpufree")]
        script, text = ["--kinds", "script", "--repeats", "3"], files["poisson3d-200.mtx"]
        words = ["--kinds", "command", "--pes", self._given.pes, "--repeats", "2"]
        yield self._bench("time", *binary, *words, *to, "--contenders", "cpufree", out="auto")
        yield self._bench("time", TIMED["poisson3d-200.mtx"], *script, *both, *to, out="script")
        yield self._bench("time", text, *script, *both, *to, out="text")
        methods = ["gen:poisson3d?nx=128,ny=128,nz=128", "--contenders", "cpufree"]
        options = ["--pc", "jacobi", "--pes", self._given.pes, "--repeats", "5"]
        yield self._bench("cg", *methods, *options, out="methods")
        yield self._script("choices_timed", "--pes", self._given.pes, out="choices")

    def _triggered(self) -> Iterator[Words]:
        numbers = ",".join(map(str, range(self._most)))
        yield self._script("gpu_trigger_rules", "--gpus", numbers, out="rules")
        studies = {
            "messages": f"--repeats 2 --plot {self._path('messages.png')}",
            "order": "--repeats 2 --sizes 64",
            "overlap": "--repeats 2",
            "allreduce": "--repeats 2",
            "jacobi": "--repeats 2 --grids 256,1024,4096",
            "soak": f"--repeats 1 --epochs {self._given.epochs} --back-ends copy_engine,block",
            "flood": "--repeats 1",
        }
        for name, options in studies.items():
            pair = numbers if name in ("allreduce", "jacobi", "soak") else numbers[:3]
            words = ["triggered", "--gpus", pair, "--studies", name, *shlex.split(options)]
            yield [*self._cpufree, "bench", *words, "--json", self._path(f"{name}.json")]
        yield [sys.executable, "-m", "tools.results.triggered", "--show", str(self._out)]

    def _sanitizer(self) -> Iterator[Words]:
        # The first line shows whether kernels that wait for others end there.
        yield self._script("gpu_concurrent_kernels", out="concurrent-kernels")
        for tool in ("memcheck", "racecheck", "synccheck"):
            words = ["compute-sanitizer", "--tool", tool, "--report-api-errors", "no"]
            options = ["--gpus", "0,1", "--replays", "1", "--scripts", "6"]
            options += ["--contenders", "copy_engine", "proxy", "on_stream"]
            yield [*words, *self._script("gpu_trigger_rules", *options, out=tool)]


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
        print("\n".join(f"{name:11} {what}" for name, what in STEPS.items()))
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
        for words in Commands(out, given).of(step):
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
