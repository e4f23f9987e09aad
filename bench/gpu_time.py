"""Time to solution on GPUs: set-ups, scripts, commands, what "auto" chooses. Results in a folder.

    python bench/gpu_time.py OUT [--seconds N] [--steps LIST] [--small] [--matrices FOLDER]

Matrices are made at first, all side by side, and written to a folder for the commands (--matrices:
one that stays, whose matrices are taken as they are; with --steps "" they are made, and that is
all); what is measured runs alone, each step in processes of their own with an end. A step for which
no time is left is skipped, and said so. `python -m tools.results.time --show OUT` prints the table.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(add_completion=False)
STEPS = ("setup", "auto", "script", "text", "pipelined", "suite")
SUITES = ("paper18", "structured")
FULL = {
    "poisson3d-200": "gen:poisson3d?nx=200,ny=200,nz=200",
    "poisson3d-200-text": "gen:poisson3d?nx=200,ny=200,nz=200",
    "geomodel_hex": "gen:geomodel_hex?ex=112,ey=112,ez=112",
    "flange_hex": "gen:flange_hex?r_out=96,t=12,pipe=58,wall=12",
    "delaunay3d": "gen:delaunay3d?m=60",
}
SMALL = {
    "poisson3d-200": "gen:poisson3d?nx=24,ny=24,nz=24",
    "poisson3d-200-text": "gen:poisson3d?nx=24,ny=24,nz=24",
    "geomodel_hex": "gen:geomodel_hex?ex=8,ey=8,ez=8",
    "flange_hex": "gen:flange_hex?r_out=10,t=3,pipe=4",
    "delaunay3d": "gen:delaunay3d?m=12",
}
SUFFIX = {"poisson3d-200-text": ".mtx"}
OF_METHODS = "gen:poisson3d?nx=128,ny=128,nz=128", "gen:poisson3d?nx=20,ny=20,nz=20"
CPU_MOST = 2_000_000  # nonzeros up to which the CPU is measured, too, where "auto" may choose it
MAKING = 70.0  # seconds, at most
SET_UP = """
import json, sys, time
import numpy as np
import cpufree
from cpufree import _core
name, file, pes, engine = sys.argv[1:5]
A = cpufree.load_matrix(file)
pes = int(pes)
where = {"engine": engine, "pes": pes}
begin = time.perf_counter()
small = cpufree.generate.poisson2d(nx=200, ny=200)
with cpufree.Solver(small, **where) as solver:  # contexts and kernels
    solver.solve(np.ones(small.shape[0]))
started = time.perf_counter() - begin
laid_out = _core.System
def by_host(*given):
    *first, tuning, team = given
    return laid_out(*first, {**tuning, "layout": 0}, team)
given = {"host": A, "host, by the host": A}
if pes == 1 and engine == "cuda_p2p":
    try:
        import cupy, cupyx.scipy.sparse as csp
        arrays = [cupy.asarray(a) for a in (A.data, A.indices, A.indptr.astype(np.int32))]
        given["gpu"] = csp.csr_matrix(tuple(arrays), shape=A.shape)
    except Exception as error:
        print(json.dumps({"kind": "failure", "case": name, "error": str(error)[:300]}), flush=True)
if "poisson3d" in name:
    given["host, not checked"] = A.copy()
for place, matrix in given.items():
    _core.System = by_host if "by the host" in place else laid_out
    for number in range(3):
        begin = time.perf_counter()
        solver = cpufree.Solver(matrix, **where)
        seconds = time.perf_counter() - begin
        line = {"kind": "set-up", "case": name, "pes": pes, "from": place, "number": number}
        line |= {"seconds": seconds, "rows": A.shape[0], "nnz": A.nnz, "started": started}
        line |= {"timings": solver._matrix.setup_timings, "why": solver._matrix.layout.why}
        if number == 2:
            b = np.ones(A.shape[0])
            if place == "gpu":
                b = cupy.asarray(b)
            result = solver.solve(b, rtol=1e-30, maxiter=50, method="prcg")
            line["residual"] = result.relative_residual.hex()
            line["per_iteration"] = result.timings["per_iteration"]
        solver.close()
        print(json.dumps(line), flush=True)
"""


@dataclass
class Run:
    """A run: where results go, and how much time is left."""

    out: Path
    folder: Path
    end: float
    engine: str
    names: dict[str, str]
    suite: dict[str, str] = field(default_factory=dict)
    notes: list[dict[str, Any]] = field(default_factory=list)

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.end - time.monotonic()

    def file(self, name: str) -> str:
        """Return the path of a matrix that has been made."""
        return str(self.folder / (name + SUFFIX.get(name, ".cpufree")))

    def note(self, what: str, **facts: Any) -> None:
        """Keep a line about the run itself, and print it."""
        line = {"kind": "note", "what": what, **facts}
        self.notes.append(line)
        print(" ".join(f"{name} {value}" for name, value in line.items()), flush=True)

    def run(self, what: str, words: list[str], most: float, out: Path | None = None) -> None:
        """Run a process; its output becomes a file of the results, or lines of the log."""
        limit = min(most, self.left())
        if limit < 5.0:
            self.note(what, result="skipped", why="no time left")
            return
        begin = time.monotonic()
        text = open(out, "w") if out else (self.out / "log.txt").open("a")  # noqa: SIM115
        with text, (self.out / "log.txt").open("a") as log:
            log.write(f"\n===== {what}: {shlex.join(words)[:400]}\n")
            log.flush()
            try:
                status = subprocess.run(words, stdout=text, stderr=log, timeout=limit).returncode
            except subprocess.TimeoutExpired:
                status = -1
        seconds = round(time.monotonic() - begin, 1)
        self.note(what, status=status, seconds=seconds)

    def bench(self, what: str, cases: list[str], options: list[str], most: float) -> None:
        """Run `cpufree bench time`."""
        words = [sys.executable, "-m", "cpufree", "bench", "time", *cases, "--engine", self.engine]
        words += ["--rtol", "1e-8", "--timeout", "60", "--out", str(self.out / f"{what}.jsonl")]
        self.run(what, [*words, "-q", *options], most)


def suite_names(suites: tuple[str, ...], small: bool) -> dict[str, str]:
    """Return the specifications of suites' matrices; those that are the same in two, once."""
    from cpufree.generate.suites import suite

    found: dict[str, str] = {}
    for name in suites:
        for entry in suite(f"{name}-small" if small else name):
            spec = f"gen:{entry.spec}"
            if spec not in found.values():
                found[f"{name}-{entry.name}"] = spec
    return found


def make(run: Run, names: dict[str, str], most: float) -> None:
    """Write matrices that are not there, one for four cores at a time: large ones take memory."""
    if most <= 0.0:
        return
    begin = time.monotonic()
    words = [sys.executable, "-m", "cpufree", "convert"]

    def convert(name: str, spec: str) -> None:
        left = max(1.0, most - (time.monotonic() - begin))
        command = [*words, spec, "--out", run.file(name)]
        try:
            status = subprocess.run(command, stdout=log, stderr=log, timeout=left).returncode
        except subprocess.TimeoutExpired:
            status = -1
        if status:
            run.note(f"making {name}", status=status)

    missing = {name: spec for name, spec in names.items() if not Path(run.file(name)).exists()}
    with (
        (run.out / "log.txt").open("a") as log,
        ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 4)) as pool,
    ):
        list(pool.map(convert, missing, missing.values()))
    run.note("making", seconds=round(time.monotonic() - begin, 1))


def numbers_up_to(gpus: int) -> list[int]:
    """Return the powers of 2 below a number of GPUs, and that."""
    return sorted({gpus, *(1 << k for k in range(gpus.bit_length()) if 1 << k < gpus)})


def set_ups(run: Run, gpus: int) -> None:
    """Measure set-ups in a process for each matrix, CUDA running, on one GPU and on all."""
    for name in ("poisson3d-200", "geomodel_hex", "flange_hex"):
        for pes in numbers_up_to(gpus):
            words = [sys.executable, "-c", SET_UP, name, run.file(name), str(pes), run.engine]
            run.run(f"setup-{name}-{pes}", words, 40.0, run.out / f"setup-{name}-{pes}.jsonl")


def suite_choices(run: Run, gpus: int) -> None:
    """Measure what "auto" chooses of each matrix of suites, and what it could; small ones first."""
    sizes = {name: Path(run.file(name)) for name in run.suite if Path(run.file(name)).exists()}
    if left_out := sorted(set(run.suite) - set(sizes)):
        run.note("suite", result="not made", why=" ".join(left_out))
    files = [str(sizes[name]) for name in sorted(sizes, key=lambda one: sizes[one].stat().st_size)]
    words = [sys.executable, "bench/choices_timed.py", *files, "--engine", run.engine]
    words += ["--pes", ",".join(map(str, numbers_up_to(gpus)))]
    words += ["--cpu-most", str(CPU_MOST)] if run.engine == "cuda_p2p" else []
    run.run("suite", words, 600.0, run.out / "suite.jsonl")


def steps_of(run: Run, gpus: int) -> dict[str, Any]:
    """Return what each step does."""
    poisson, text = run.names["poisson3d-200"], run.file("poisson3d-200-text")
    others = "cpufree,cupy" if run.engine != "cpu_threads" else "cpufree,scipy"
    pes = ",".join(map(str, numbers_up_to(gpus)))
    choices = ["--contenders", "cpufree", "--kinds", "command", "--pes", pes, "--repeats", "2"]
    names = ("poisson3d-200", "geomodel_hex", "flange_hex", "delaunay3d")
    chosen = [run.file(name) for name in names]
    script = ["--kinds", "script", "--contenders", others]
    methods = [sys.executable, "-m", "cpufree", "bench", "cg", OF_METHODS[run.names is SMALL]]
    methods += ["--contenders", "cpufree", "--pc", "jacobi", "--engine", run.engine, "--pes", pes]
    methods += ["--methods", "cg,prcg,pipecg", "--out", str(run.out / "pipelined.jsonl")]
    methods += ["--repeats", "3"]
    return {
        "setup": lambda: set_ups(run, gpus),
        "auto": lambda: run.bench("auto", chosen, choices, 90.0),
        "script": lambda: run.bench("script", [poisson], [*script, "--repeats", "3"], 80.0),
        "text": lambda: run.bench("text", [text], [*script, "--repeats", "3"], 60.0),
        "pipelined": lambda: run.run("pipelined", methods, 60.0),
        "suite": lambda: suite_choices(run, gpus),
    }


@app.command()
def main(
    out: Path,
    seconds: float = 150.0,
    steps: str = ",".join(STEPS),
    small: Annotated[bool, typer.Option(help="Small matrices: to try it out.")] = False,
    engine: str = "cuda_p2p",
    gpus: Annotated[int, typer.Option(help="GPUs, or PEs of the CPU engine.")] = 2,
    matrices: Annotated[Path | None, typer.Option(help="Where matrices are kept.")] = None,
    suites: Annotated[str, typer.Option(help="Of the step suite.")] = ",".join(SUITES),
    making: Annotated[
        float, typer.Option(help="Seconds for matrices that are not there.")
    ] = MAKING,
    small_suites: Annotated[bool, typer.Option(help="Their small matrices.")] = False,
) -> None:
    """Measure, and say what was not."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        end = time.monotonic() + seconds
        kept = matrices or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        run = Run(out, kept, end, engine, SMALL if small else FULL)
        chosen = [step for step in steps.split(",") if step]
        if "suite" in chosen or matrices:
            run.suite = suite_names(tuple(suites.split(",")), small or small_suites)
        run.note("begin", engine=engine, gpus=gpus, cpus=os.cpu_count())
        alone = chosen == ["suite"]
        make(run, run.suite if alone else {**run.names, **run.suite}, min(making, seconds))
        does = steps_of(run, gpus)
        for step in chosen:
            does[step]()
        (out / "notes.jsonl").write_text("".join(json.dumps(one) + "\n" for one in run.notes))


if __name__ == "__main__":
    app()
